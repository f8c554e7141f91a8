#include "dataplane/operator/builtins.h"
#include "dataplane/operator/packet/flow_record.h"
#include "tests/support/operator_harness.h"

#include <criterion/criterion.h>

static const int64_t second_ns = 1000000000;

static struct harness *open_window(const struct harness_snapshot *s)
{
	const struct param_text params[] = {{"size", "10 s"}, {"max-flows", "2000"}, {NULL, NULL}};
	struct harness *h = harness_create(&(struct harness_config){.op = &builtin_flow_window,
			.params = params,
			.in_record_bytes = sizeof(struct flow_packet)});

	if (s != NULL)
		harness_restore(h, s);
	cr_assert_eq(harness_open(h), 0);
	return h;
}

static struct flow_packet packet(uint16_t port, int64_t time_ns, uint32_t bytes, uint16_t flags)
{
	return (struct flow_packet){.key = {.source_port = port, .ip_version = 4},
			.time_ns = time_ns,
			.bytes = bytes,
			.tcp_flags = flags};
}

static void feed(struct harness *h, struct flow_packet p)
{
	harness_process_all(h, &p, 1);
}

static const struct flow_row *rows_of(struct harness *h, uint32_t *count)
{
	return (const struct flow_row *)(const void *)harness_output(h, count, NULL);
}

Test(flow_window, a_flow_has_one_row_a_window_with_all_it_needs)
{
	struct harness *h = open_window(NULL);
	uint32_t count;

	feed(h, packet(1, 12 * second_ns, 100, 0x02));
	feed(h, packet(1, 11 * second_ns, 50, 0x10));
	feed(h, packet(1, 19 * second_ns, 7, 0x01));
	harness_watermark_all(h, 20 * second_ns);
	const struct flow_row *r = rows_of(h, &count);
	cr_assert_eq(count, 1);
	cr_expect_eq(r->window_start_ns, 10 * second_ns);
	cr_expect_eq(r->window_end_ns, 20 * second_ns);
	cr_expect_eq(r->packets, 3);
	cr_expect_eq(r->bytes, 157);
	cr_expect_eq(r->first_ns, 11 * second_ns);
	cr_expect_eq(r->last_ns, 19 * second_ns);
	cr_expect_eq(r->tcp_flags, 0x13);
	cr_expect_eq(harness_keyed_count(h, 0), 0);
	harness_destroy(h);
}

Test(flow_window, a_window_leaves_when_the_watermark_reaches_its_end_and_not_before)
{
	struct harness *h = open_window(NULL);
	uint32_t count;

	feed(h, packet(1, 10 * second_ns, 1, 0));
	feed(h, packet(1, 20 * second_ns, 1, 0));
	harness_watermark_all(h, 20 * second_ns - 1);
	rows_of(h, &count);
	cr_expect_eq(count, 0);
	harness_watermark_all(h, 20 * second_ns);
	rows_of(h, &count);
	cr_expect_eq(count, 1);
	harness_watermark_all(h, WEIR_WATERMARK_END);
	rows_of(h, &count);
	cr_expect_eq(count, 2);
	harness_destroy(h);
}

Test(flow_window, a_time_at_the_border_belongs_to_the_later_window)
{
	struct harness *h = open_window(NULL);
	uint32_t count;

	feed(h, packet(1, 20 * second_ns - 1, 1, 0));
	feed(h, packet(1, 20 * second_ns, 1, 0));
	feed(h, packet(1, -1, 1, 0));
	harness_watermark_all(h, WEIR_WATERMARK_END);
	const struct flow_row *r = rows_of(h, &count);
	cr_assert_eq(count, 3);
	cr_expect_eq(r[0].window_start_ns, 10 * second_ns);
	cr_expect_eq(r[1].window_start_ns, 20 * second_ns);
	cr_expect_eq(r[2].window_start_ns, -10 * second_ns);
	harness_destroy(h);
}

Test(flow_window, a_late_packet_has_a_row_of_its_own_at_once_and_is_merged_with_none)
{
	struct harness *h = open_window(NULL);
	struct flow_packet late = packet(1, 15 * second_ns, 60, 0x02);
	uint32_t count;

	late.is_late = 1;
	feed(h, packet(1, 12 * second_ns, 100, 0));
	feed(h, late);
	const struct flow_row *r = rows_of(h, &count);
	cr_assert_eq(count, 1);
	cr_expect_eq(r->packets, 1);
	cr_expect_eq(r->bytes, 60);
	cr_expect_eq(r->window_start_ns, 10 * second_ns);
	cr_expect_eq(r->first_ns, 15 * second_ns);
	cr_expect_eq(harness_counter(h, "late_records"), 1);
	harness_watermark_all(h, WEIR_WATERMARK_END);
	r = rows_of(h, &count);
	cr_assert_eq(count, 2);
	cr_expect_eq(r[1].packets, 1);
	cr_expect_eq(r[1].bytes, 100);
	harness_destroy(h);
}

Test(flow_window, a_packet_behind_our_own_watermark_never_opens_its_window_again)
{
	struct harness *h = open_window(NULL);
	uint32_t count;

	harness_watermark_all(h, 20 * second_ns);
	struct harness_snapshot *s = harness_save(h, 1);
	harness_destroy(h);
	h = open_window(s); /* the watermark is state */
	feed(h, packet(1, 15 * second_ns, 1, 0));
	rows_of(h, &count);
	cr_expect_eq(count, 1);
	cr_expect_eq(harness_counter(h, "late_records"), 1);
	cr_expect_eq(harness_keyed_count(h, 0), 0);
	harness_snapshot_free(s);
	harness_destroy(h);
}

Test(flow_window, a_watermark_that_runs_out_of_room_goes_on_where_it_was)
{
	struct harness *h = open_window(NULL);
	uint32_t count, calls = 0;

	for (uint16_t i = 0; i < 1500; i++)
		feed(h, packet(i, (i % 2 == 0 ? 5 : 15) * second_ns, 1, 0));
	do {
		harness_set_room(h, 100);
		calls++;
	} while (!harness_watermark(h, 10 * second_ns));
	const struct flow_row *r = rows_of(h, &count);
	cr_expect_eq(count, 750);
	cr_expect_geq(calls, 8);
	for (uint32_t i = 0; i < count; i++)
		cr_expect_eq(r[i].key.source_port % 2, 0);
	cr_expect_eq(harness_keyed_count(h, 0), 750);
	harness_set_room(h, 0);
	cr_expect_eq(harness_watermark(h, 20 * second_ns), false);
	harness_watermark_all(h, 20 * second_ns);
	rows_of(h, &count);
	cr_expect_eq(count, 1500);
	harness_destroy(h);
}

Test(flow_window, a_checkpoint_amid_a_watermark_repeats_and_loses_no_row)
{
	struct harness *h = open_window(NULL);
	uint32_t before, after;

	for (uint16_t i = 0; i < 1000; i++)
		feed(h, packet(i, 5 * second_ns, 1, 0));
	harness_set_room(h, 300);
	cr_expect_eq(harness_watermark(h, 10 * second_ns), false);
	rows_of(h, &before);
	struct harness_snapshot *s = harness_save(h, 1);
	harness_destroy(h);
	h = open_window(s);
	harness_watermark_all(h, 10 * second_ns);
	rows_of(h, &after);
	cr_expect_eq(before + after, 1000);
	harness_snapshot_free(s);
	harness_destroy(h);
}

Test(flow_window, after_a_restore_open_windows_leave_at_the_first_watermark_that_ends_them)
{
	struct harness *h = open_window(NULL);
	uint32_t count;

	feed(h, packet(1, 15 * second_ns, 1, 0));
	harness_watermark_all(h, 12 * second_ns);
	struct harness_snapshot *s = harness_save(h, 1);
	harness_destroy(h);
	h = open_window(s);
	harness_watermark_all(h, 13 * second_ns);
	harness_watermark_all(h, 20 * second_ns);
	rows_of(h, &count);
	cr_expect_eq(count, 1);
	harness_snapshot_free(s);
	harness_destroy(h);
}

Test(flow_window, entries_stay_with_the_subtask_the_exchange_sends_their_flow_to)
{
	struct harness *h = open_window(NULL);
	const struct weir_declaration *d = harness_declaration(h);

	/* The key in the state begins with what flow-parse is keyed by. */
	cr_expect_eq(d->states[0].group_bytes, sizeof(struct flow_key));
	cr_expect_eq(d->states[0].key_bytes, sizeof(struct flow_key) + sizeof(int64_t));
	harness_destroy(h);
}

Test(flow_window, more_flows_than_there_is_room_for_fail_the_task_once)
{
	struct harness *h = open_window(NULL);

	for (uint32_t i = 0; i < 2001 && harness_error(h) == NULL; i++)
		feed(h, packet((uint16_t)i, 5 * second_ns, 1, 0));
	cr_expect_not_null(harness_error(h));
	harness_destroy(h);
}
