#include "dataplane/operator/builtins.h"
#include "dataplane/operator/packet/flow_record.h"
#include "tests/sim/mem_port.h"
#include "tests/support/operator_harness.h"

#include <criterion/criterion.h>

enum { SECOND = 1000000000 };

static struct mem_port *port;

static void begin(void)
{
	port = mem_port_create();
}

static void end(void)
{
	mem_port_destroy(port);
}

TestSuite(nic_source, .init = begin, .fini = end);

static struct harness *create(const char *frames)
{
	const struct param_text params[] = {{.name = "port", .text = "net_tap0"},
			{.name = "snap", .text = "64 b"}, {.name = "frames", .text = frames}, {0}};
	struct harness *h = harness_create(&(struct harness_config){
			.op = &builtin_nic_source, .params = params, .port = mem_port_face(port)});

	cr_assert_null(harness_error(h), "%s", harness_error(h));
	return h;
}

static struct harness *open_source(const char *frames)
{
	struct harness *h = create(frames);

	cr_assert_eq(harness_open(h), 0);
	return h;
}

static void put(uint32_t count, uint32_t size)
{
	uint8_t bytes[1514];

	for (uint32_t i = 0; i < count; i++) {
		memset(bytes, (int)i, sizeof(bytes));
		mem_port_put(port, bytes, size);
	}
}

Test(nic_source, packets_become_records_of_at_most_snap_bytes)
{
	struct harness *h = open_source("0");
	uint32_t count, size;
	size_t bytes;

	put(2, 100);
	mem_port_put(port, "short", 5);
	cr_expect_eq(harness_poll(h, 512), WEIR_POLL_MORE);
	const uint8_t *at = harness_output(h, &count, &bytes);
	cr_assert_eq(count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		struct captured_packet header;

		at = weir_record_at(at, &size);
		memcpy(&header, at, sizeof(header));
		cr_expect_eq(size, sizeof(header) + (i < 2 ? 64 : 5));
		cr_expect_eq(header.original_bytes, i < 2 ? 100 : 5);
		cr_expect_eq(header.link_type, 1);
		if (i < 2)
			cr_expect_eq(at[sizeof(header)], i);
		at += size;
	}
	cr_expect_eq(mem_port_held(port), 0);
	cr_expect_eq(harness_counter(h, "frames"), 3);
	cr_expect_eq(harness_counter(h, "bytes"), 205);
	cr_expect_eq(harness_poll(h, 512), WEIR_POLL_IDLE);
	harness_destroy(h);
	cr_expect_eq(mem_port_held(port), 0);
}

Test(nic_source, it_takes_no_more_than_there_is_room_for)
{
	struct harness *h = open_source("0");

	put(10, 60);
	harness_set_room(h, 4);
	harness_poll(h, 512);
	cr_expect_eq(harness_counter(h, "frames"), 4);
	harness_set_room(h, 512);
	harness_poll(h, 512);
	cr_expect_eq(harness_counter(h, "frames"), 10);
	harness_destroy(h);
}

Test(nic_source, the_input_ends_after_so_many_frames_and_not_before)
{
	struct harness *h = open_source("70");

	put(100, 60);
	cr_expect_eq(harness_poll(h, 512), WEIR_POLL_MORE);
	cr_expect_eq(harness_poll(h, 512), WEIR_POLL_MORE);
	cr_expect_eq(harness_counter(h, "frames"), 70);
	cr_expect_eq(harness_poll(h, 512), WEIR_POLL_END);
	harness_destroy(h);
}

Test(nic_source, event_time_goes_on_without_packets_and_never_back_over_a_restore)
{
	struct harness *h = open_source("0");

	harness_set_now(h, 5 * (uint64_t)SECOND);
	harness_poll(h, 512);
	int64_t first = harness_out_watermark(h);
	harness_set_now(h, 6 * (uint64_t)SECOND);
	harness_poll(h, 512);
	cr_expect_eq(harness_out_watermark(h) - first, SECOND);
	harness_set_now(h, 1000000 * (uint64_t)SECOND);
	harness_poll(h, 512);
	int64_t last = harness_out_watermark(h);
	struct harness_snapshot *s = harness_save(h, 1);
	struct harness *second = create("0");
	harness_restore(second, s);
	cr_assert_eq(harness_open(second), 0);
	harness_set_now(second, 7 * (uint64_t)SECOND);
	harness_poll(second, 512);
	cr_expect_eq(harness_out_watermark(second), last);
	harness_snapshot_free(s);
	harness_destroy(h);
	harness_destroy(second);
}

Test(nic_source, what_no_completed_checkpoint_covers_is_counted_unsafe)
{
	struct harness *h = open_source("0");

	put(5, 60);
	harness_poll(h, 512);
	harness_before_barrier(h, 1);
	put(3, 60);
	harness_poll(h, 512);
	harness_before_barrier(h, 2);
	cr_expect_eq(harness_counter(h, "unsafe"), 8);
	harness_notify_complete(h, 1);
	cr_expect_eq(harness_counter(h, "unsafe"), 3);
	harness_notify_complete(h, 2);
	cr_expect_eq(harness_counter(h, "unsafe"), 0);
	harness_destroy(h);
}

Test(nic_source, the_ledger_adds_up_over_a_restart_in_the_same_process)
{
	struct harness *first = open_source("0");

	put(5, 60);
	harness_set_now(first, SECOND);
	harness_poll(first, 512);
	struct harness_snapshot *s = harness_save(first, 1);
	put(4, 60);
	mem_port_lose(port, (struct weir_port_losses){.missed = 3, .errors = 1});
	harness_set_now(first, 2 * (uint64_t)SECOND);
	harness_poll(first, 512);
	cr_expect_eq(harness_counter(first, "missed"), 3);
	harness_destroy(first);

	struct harness *second = create("0");
	harness_restore(second, s);
	cr_assert_eq(harness_open(second), 0);
	put(2, 60);
	harness_set_now(second, 3 * (uint64_t)SECOND);
	harness_poll(second, 512);
	cr_expect_eq(harness_counter(second, "frames"), 7);
	cr_expect_eq(harness_counter(second, "rolled_back"), 4);
	cr_expect_eq(harness_counter(second, "missed"), 3);
	cr_expect_eq(harness_counter(second, "errors"), 1);
	harness_snapshot_free(s);
	harness_destroy(second);
}

Test(nic_source, another_process_counts_losses_from_its_own_start)
{
	struct harness *first = open_source("0");

	mem_port_lose(port, (struct weir_port_losses){.missed = 3});
	harness_set_now(first, SECOND);
	harness_poll(first, 512);
	struct harness_snapshot *s = harness_save(first, 1);
	harness_destroy(first);
	mem_port_reopen(port);
	mem_port_lose(port, (struct weir_port_losses){.missed = 2});
	struct harness *second = create("0");
	harness_restore(second, s);
	cr_assert_eq(harness_open(second), 0);
	harness_set_now(second, 2 * (uint64_t)SECOND);
	harness_poll(second, 512);
	cr_expect_eq(harness_counter(second, "missed"), 5);
	cr_expect_eq(harness_counter(second, "rolled_back"), 0);
	harness_snapshot_free(s);
	harness_destroy(second);
}

Test(nic_source, packets_on_their_way_that_were_taken_for_missed_are_taken_back)
{
	struct harness *h = open_source("0");

	mem_port_lose(port, (struct weir_port_losses){.missed = 9});
	harness_set_now(h, SECOND);
	harness_poll(h, 512);
	mem_port_lose(port, (struct weir_port_losses){.missed = 1});
	harness_set_now(h, 2 * (uint64_t)SECOND);
	harness_poll(h, 512);
	cr_expect_eq(harness_counter(h, "missed"), 1);
	harness_destroy(h);
}

Test(nic_source, a_port_that_is_not_there_fails_the_job_and_one_it_has_is_given_back)
{
	const struct param_text params[] = {{.name = "port", .text = "net_tap7"}, {0}};
	struct harness *h = harness_create(
			&(struct harness_config){.op = &builtin_nic_source, .params = params});

	cr_expect_neq(harness_open(h), 0);
	cr_expect(strstr(harness_error(h), "net_tap7") != NULL, "%s", harness_error(h));
	harness_destroy(h);
	h = open_source("0");
	cr_expect_eq(harness_port_use(h), WEIR_PORT_RECEIVE);
	harness_destroy(h);
}
