#include "dataplane/operator/builtins.h"
#include "dataplane/operator/packet/flow_record.h"
#include "tests/sim/mem_port.h"
#include "tests/support/operator_harness.h"

#include <criterion/criterion.h>

static struct mem_port *port;

static void begin(void)
{
	port = mem_port_create();
}

static void end(void)
{
	mem_port_destroy(port);
}

TestSuite(nic_sink, .init = begin, .fini = end);

static struct harness *create(
		const char *as, uint32_t record_bytes, const char *name, const char *text)
{
	const struct param_text params[] = {{.name = "port", .text = "net_tap0"},
			{.name = "as", .text = as}, {.name = name, .text = text}, {0}};

	return harness_create(&(struct harness_config){.op = &builtin_nic_sink,
			.params = params,
			.in_record_bytes = record_bytes,
			.port = mem_port_face(port)});
}

static struct harness *open_sink(const char *as, uint32_t record_bytes)
{
	struct harness *h = create(as, record_bytes, NULL, NULL);

	cr_assert_null(harness_error(h), "%s", harness_error(h));
	cr_assert_eq(harness_open(h), 0, "%s", harness_error(h));
	return h;
}

/* A record of a source: `size` bytes, of which `kept` were captured. */
static uint32_t make_record(uint8_t *at, uint32_t size, uint32_t kept, uint8_t fill)
{
	const struct captured_packet header = {.original_bytes = size, .link_type = 1};
	uint32_t bytes = (uint32_t)sizeof(header) + kept;

	memcpy(at, &bytes, 4);
	memcpy(at + 4, &header, sizeof(header));
	memset(at + 4 + sizeof(header), fill, kept);
	return 4 + bytes;
}

Test(nic_sink, whole_packets_leave_as_they_came_and_cut_ones_are_counted)
{
	struct harness *h = open_sink("packet", 0);
	uint8_t records[1024];
	uint32_t bytes = make_record(records, 60, 60, 7), size;

	bytes += make_record(records + bytes, 100, 64, 8);
	bytes += make_record(records + bytes, 62, 62, 9);
	cr_expect_eq(harness_process_bytes(h, records, 3, bytes), 3);
	cr_assert_eq(mem_port_sent_count(port), 2);
	cr_expect_eq(mem_port_sent(port, 0, &size)[59], 7);
	cr_expect_eq(size, 60);
	cr_expect_eq(mem_port_sent(port, 1, &size)[0], 9);
	cr_expect_eq(size, 62);
	cr_expect_eq(harness_counter(h, "frames"), 2);
	cr_expect_eq(harness_counter(h, "cut"), 1);
	harness_destroy(h);
}

Test(nic_sink, a_record_shorter_than_its_head_is_no_packet)
{
	struct harness *h = open_sink("packet", 0);
	const uint8_t records[] = {3, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0};

	cr_expect_eq(harness_process_bytes(h, records, 2, sizeof(records)), 2);
	cr_expect_eq(mem_port_sent_count(port), 0);
	cr_expect_eq(harness_counter(h, "cut"), 2);
	harness_destroy(h);
}

static uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

Test(nic_sink, records_become_datagrams_with_a_right_ip_checksum)
{
	struct harness *h = open_sink("udp", 16);
	const char record[17] = "0123456789abcdef";
	uint32_t size, sum = 0;

	harness_process_all(h, record, 1);
	cr_assert_eq(mem_port_sent_count(port), 1);
	const uint8_t *f = mem_port_sent(port, 0, &size);
	cr_expect_eq(size, 14 + 20 + 8 + 16);
	cr_expect_eq(f[5], 0xff);
	cr_expect_eq(f[11], 9, "from the MAC of the port");
	cr_expect_eq(get16(f + 12), 0x0800);
	for (int i = 0; i < 20; i += 2)
		sum += get16(f + 14 + i);
	cr_expect_eq((sum & 0xffff) + (sum >> 16), 0xffff);
	cr_expect_eq(get16(f + 16), 44);
	cr_expect_eq(get16(f + 34), 6126);
	cr_expect_eq(get16(f + 38), 24);
	cr_expect_eq(memcmp(f + 42, record, 16), 0);
	harness_destroy(h);
}

Test(nic_sink, a_full_port_is_backpressure_and_loses_nothing)
{
	struct harness *h = open_sink("udp", 4);
	uint32_t records[200], taken, size;

	for (uint32_t i = 0; i < 200; i++)
		records[i] = i;
	mem_port_set_room(port, 10);
	taken = harness_process(h, records, 200);
	cr_expect_eq(mem_port_sent_count(port), 10);
	cr_expect_eq(taken, 64, "what its queue holds");
	taken += harness_process(h, records + taken, 200 - taken);
	cr_expect_eq(taken, 74);
	cr_expect_eq(harness_process(h, records + taken, 200 - taken), 0);
	cr_expect_not(harness_finish(h));
	mem_port_set_room(port, 1000);
	while (taken < 200)
		taken += harness_process(h, records + taken, 200 - taken);
	cr_expect(harness_finish(h));
	cr_assert_eq(mem_port_sent_count(port), 200);
	for (uint32_t i = 0; i < 200; i++)
		cr_expect_eq(memcmp(mem_port_sent(port, i, &size) + 42, &records[i], 4), 0);
	harness_destroy(h);
}

Test(nic_sink, what_waits_at_a_checkpoint_is_sent_after_a_restore)
{
	struct harness *first = open_sink("udp", 4), *second;
	const uint32_t records[3] = {1, 2, 3};
	uint32_t size;

	mem_port_set_room(port, 1);
	cr_expect_eq(harness_process(first, records, 3), 3);
	struct harness_snapshot *s = harness_save(first, 1);
	harness_destroy(first);
	second = create("udp", 4, NULL, NULL);
	harness_restore(second, s);
	cr_assert_eq(harness_open(second), 0);
	mem_port_set_room(port, 100);
	harness_before_barrier(second, 2);
	cr_assert_eq(mem_port_sent_count(port), 3);
	cr_expect_eq(memcmp(mem_port_sent(port, 2, &size) + 42, &records[2], 4), 0);
	harness_snapshot_free(s);
	harness_destroy(second);
}

Test(nic_sink, what_cannot_be_sent_is_refused_before_it_starts)
{
	static const struct {
		const char *as;
		uint32_t record_bytes;
		const char *name, *text, *says;
	} cases[] = {
			{"packet", 16, NULL, NULL, "go out with as: udp"},
			{"udp", 16, "to", "10.0.0.2", "no IPv4 address with a port"},
			{"udp", 16, "to", "10.0.0.2:0", "no IPv4 address with a port"},
			{"udp", 16, "from", "10.0.0.2:66000", "no IPv4 address with a port"},
			{"udp", 16, "to-mac", "1:2:3:4:5", "no MAC"},
			{"udp", 1500, NULL, NULL, "do not fit"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct harness *h = create(
				cases[i].as, cases[i].record_bytes, cases[i].name, cases[i].text);

		cr_assert_not_null(harness_error(h), "%zu", i);
		cr_expect(strstr(harness_error(h), cases[i].says) != NULL, "%s", harness_error(h));
		harness_destroy(h);
	}
}
