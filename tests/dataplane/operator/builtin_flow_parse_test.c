#include "dataplane/operator/builtins.h"
#include "dataplane/operator/packet/flow_record.h"
#include "tests/support/frame_builder.h"
#include "tests/support/operator_harness.h"

#include <criterion/criterion.h>

static struct frame batch; /* records one after the other */
static uint32_t batch_count;

static void add_record(const struct frame *f, uint16_t link_type, uint8_t is_late)
{
	struct captured_packet header = {.time_ns = 1000 + batch_count,
			.original_bytes = 1500,
			.link_type = link_type,
			.is_late = is_late};
	uint32_t size = sizeof(header) + f->size;

	frame_add(&batch, &size, sizeof(size));
	frame_add(&batch, &header, sizeof(header));
	frame_add(&batch, f->bytes, f->size);
	batch_count++;
}

static struct harness *open_parse(void)
{
	struct harness *h = harness_create(&(struct harness_config){.op = &builtin_flow_parse});

	cr_assert_eq(harness_open(h), 0);
	return h;
}

Test(flow_parse, flows_go_on_and_the_rest_is_counted_by_reason)
{
	struct harness *h = open_parse();
	struct frame flow = {.size = 0}, arp = {.size = 0}, odd = {.size = 0};
	uint32_t count;

	frame_ether(&flow, 0x0800);
	frame_ip4_udp(&flow);
	frame_ether(&arp, 0x0806);
	frame_zeros(&arp, 28);
	frame_zeros(&odd, 20);
	add_record(&flow, 1, 0);
	add_record(&arp, 1, 0);
	add_record(&flow, 1, 1);
	add_record(&odd, 105, 0);
	cr_expect_eq(harness_process_bytes(h, batch.bytes, batch_count, batch.size), 4);
	const struct flow_packet *out =
			(const struct flow_packet *)(const void *)harness_output(h, &count, NULL);
	cr_assert_eq(count, 2);
	cr_expect_eq(out[0].key.destination_port, 53);
	cr_expect_eq(out[0].time_ns, 1000);
	cr_expect_eq(out[0].bytes, 1500);
	cr_expect_eq(out[0].is_late, 0);
	cr_expect_eq(out[1].time_ns, 1002);
	cr_expect_eq(out[1].is_late, 1);
	cr_expect_eq(memcmp(&out[0].key, &out[1].key, sizeof(out[0].key)), 0);
	cr_expect_eq(harness_counter(h, "parsed"), 2);
	cr_expect_eq(harness_counter(h, "late"), 1);
	cr_expect_eq(harness_counter(h, "unparsed.no_ip"), 1);
	cr_expect_eq(harness_counter(h, "unparsed.unsupported_link_type"), 1);
	cr_expect_eq(harness_counter(h, "unparsed.malformed_ip"), 0);
	harness_destroy(h);
}

Test(flow_parse, the_key_of_the_exchange_is_the_flow)
{
	struct harness *h = open_parse();

	cr_expect_eq(harness_declaration(h)->out_key_offset, offsetof(struct flow_packet, key));
	cr_expect_eq(harness_declaration(h)->out_key_bytes, sizeof(struct flow_key));
	harness_destroy(h);
}

Test(flow_parse, a_record_too_short_for_its_header_fails_the_task)
{
	struct harness *h = open_parse();
	const uint8_t record[] = {3, 0, 0, 0, 1, 2, 3};

	cr_expect_eq(harness_process_bytes(h, record, 1, sizeof(record)), 0);
	cr_expect_not_null(harness_error(h));
	harness_destroy(h);
}
