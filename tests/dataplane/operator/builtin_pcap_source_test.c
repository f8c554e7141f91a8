#include "dataplane/operator/builtins.h"
#include "dataplane/operator/packet/flow_record.h"
#include "tests/support/capture_writer.h"
#include "tests/support/operator_harness.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t start_ns = 1700000000000000000;

static char directory[256], path[300];

static void setup(void)
{
	make_test_directory(directory);
	snprintf(path, sizeof(path), "%s/a.pcap", directory);
}

static void teardown(void)
{
	remove_test_directory(directory);
}

TestSuite(pcap_source, .init = setup, .fini = teardown, .timeout = 60);

static struct harness *create_source(const char *asked, const char *rate)
{
	const struct param_text params[] = {{"path", asked}, {"rate", rate}, {NULL, NULL}};

	return harness_create(&(struct harness_config){
			.op = &builtin_pcap_source, .params = params});
}

static struct harness *open_source(const struct harness_snapshot *s)
{
	struct harness *h = create_source(path, "0");

	if (s != NULL)
		harness_restore(h, s);
	cr_assert_eq(harness_open(h), 0);
	return h;
}

/* Polls until something was collected, the source failed, or ended. */
static enum weir_poll poll_some(struct harness *h, uint32_t records_max)
{
	uint64_t before = harness_counter(h, "frames");
	enum weir_poll rc = WEIR_POLL_IDLE;

	for (int i = 0; i < 100000 && harness_error(h) == NULL; i++) {
		uint32_t asked = harness_event_count(h);

		harness_set_room(h, 512);
		rc = harness_poll(h, records_max);
		if (rc == WEIR_POLL_END || harness_counter(h, "frames") != before ||
				harness_event_count(h) != asked)
			break;
		usleep(20);
	}
	return rc;
}

/* Reads one file to its end: until the source asks for the next one. */
static void read_file(struct harness *h, const char *file)
{
	char text[400];

	poll_some(h, 512);
	cr_assert_str_eq(harness_last_event(h), "REQUEST");
	uint32_t asked = harness_event_count(h);
	snprintf(text, sizeof(text), "FILE %s", file);
	harness_event(h, text);
	while (harness_event_count(h) == asked && harness_error(h) == NULL)
		poll_some(h, 512);
}

Test(pcap_source, it_asks_for_a_file_once_and_ends_when_there_is_no_more)
{
	struct harness *h = open_source(NULL);

	for (int i = 0; i < 5; i++)
		cr_expect_eq(harness_poll(h, 512), WEIR_POLL_IDLE);
	cr_expect_eq(harness_event_count(h), 1);
	cr_expect_str_eq(harness_last_event(h), "REQUEST");
	harness_event(h, "NO-MORE");
	cr_expect_eq(harness_poll(h, 512), WEIR_POLL_END);
	harness_destroy(h);
}

static void expect_records(enum capture_format format)
{
	struct harness *h = open_source(NULL);
	uint32_t count, size;
	size_t bytes;
	const int64_t step_ns = format == CAPTURE_PCAP ? 1000 : 1001;

	write_udp_capture(path, format, 3000, 10, start_ns, step_ns / 1000 * 1000);
	read_file(h, path);
	const uint8_t *at = harness_output(h, &count, &bytes), *end = at + bytes;
	cr_assert_eq(count, 3000);
	for (uint32_t i = 0; i < count; i++) {
		struct captured_packet p;

		at = weir_record_at(at, &size);
		memcpy(&p, at, sizeof(p));
		cr_assert_eq(size, sizeof(p) + 46);
		cr_assert_eq(p.time_ns, start_ns + i * 1000);
		cr_assert_eq(p.original_bytes, 46 + i % 7);
		cr_assert_eq(p.link_type, 1);
		cr_assert_eq(p.is_late, 0);
		cr_assert_eq(at[sizeof(p) + 35], i % 10);
		at += size;
	}
	cr_expect_eq(at, end);
	cr_expect_eq(harness_counter(h, "frames"), 3000);
	cr_expect_eq(harness_counter(h, "files"), 1);
	harness_destroy(h);
}

Test(pcap_source, each_format_gives_the_same_records)
{
	expect_records(CAPTURE_PCAP);
	expect_records(CAPTURE_PCAP_NS);
	expect_records(CAPTURE_PCAP_SWAPPED);
	expect_records(CAPTURE_PCAPNG);
	expect_records(CAPTURE_PCAPNG_SWAPPED);
}

Test(pcap_source, nanoseconds_are_kept)
{
	static const enum capture_format formats[] = {CAPTURE_PCAP_NS, CAPTURE_PCAPNG};

	for (int i = 0; i < 2; i++) {
		struct harness *h = open_source(NULL);
		struct captured_packet p;
		uint32_t count, size;

		write_udp_capture(path, formats[i], 1, 1, start_ns + 123456789, 0);
		read_file(h, path);
		const uint8_t *at = harness_output(h, &count, NULL);
		cr_assert_eq(count, 1);
		memcpy(&p, weir_record_at(at, &size), sizeof(p));
		cr_expect_eq(p.time_ns, start_ns + 123456789);
		harness_destroy(h);
	}
}

Test(pcap_source, packets_are_cut_to_the_snap_and_keep_their_length)
{
	const struct param_text params[] = {{"path", path}, {"snap", "64 b"}, {NULL, NULL}};
	struct harness *h = harness_create(
			&(struct harness_config){.op = &builtin_pcap_source, .params = params});
	struct capture_writer w;
	struct captured_packet p;
	uint8_t bytes[1500] = {0};
	uint32_t count, size;

	capture_writer_open(&w, path, CAPTURE_PCAP, 1);
	capture_writer_add(&w, start_ns, bytes, 1500, 9000);
	capture_writer_close(&w);
	cr_assert_eq(harness_open(h), 0);
	read_file(h, path);
	memcpy(&p, weir_record_at(harness_output(h, &count, NULL), &size), sizeof(p));
	cr_expect_eq(size, sizeof(p) + 64);
	cr_expect_eq(p.original_bytes, 9000);
	cr_expect_eq(harness_counter(h, "bytes"), 9000);
	harness_destroy(h);
}

/* ---- position ---------------------------------------------------------------------------------
 */

static void expect_rest_after(enum capture_format format, uint32_t taken)
{
	struct harness *first = open_source(NULL);
	uint32_t count, size;
	char text[400];

	write_udp_capture(path, format, 3000, 250, start_ns, 1000);
	poll_some(first, 512);
	snprintf(text, sizeof(text), "FILE %s", path);
	harness_event(first, text);
	while (harness_counter(first, "frames") < taken)
		poll_some(first, (uint32_t)(taken - harness_counter(first, "frames")));
	struct harness_snapshot *s = harness_save(first, 3);
	poll_some(first, 100); /* lost in the crash */
	harness_destroy(first);

	struct harness *second = open_source(s);
	while (harness_event_count(second) == 0 && harness_error(second) == NULL)
		poll_some(second, 512);
	cr_assert_null(harness_error(second), "%s", harness_error(second));
	const uint8_t *at = harness_output(second, &count, NULL);
	cr_expect_eq(count, 3000 - taken, "%u follow %u", count, taken);
	if (count > 0) {
		struct captured_packet p;

		memcpy(&p, weir_record_at(at, &size), sizeof(p));
		cr_expect_eq(p.time_ns, start_ns + taken * INT64_C(1000));
	}
	cr_expect_eq(harness_counter(second, "frames"), 3000);
	harness_snapshot_free(s);
	harness_destroy(second);
}

Test(pcap_source, a_restore_goes_on_behind_the_last_packet_collected)
{
	static const uint32_t points[] = {0, 1, 512, 700, 993, 994, 995, 2000, 2999, 3000};

	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		expect_rest_after(CAPTURE_PCAP, points[i]);
		expect_rest_after(CAPTURE_PCAPNG, points[i]);
	}
}

/* Takes 1000 of 3000 packets of a file that is then changed; what the restore says. */
static void restore_after(void (*change)(void), enum capture_format format, const char *expected)
{
	struct harness *first = open_source(NULL);
	char text[400];

	write_udp_capture(path, format, 3000, 250, start_ns, 1000);
	poll_some(first, 512);
	snprintf(text, sizeof(text), "FILE %s", path);
	harness_event(first, text);
	while (harness_counter(first, "frames") < 1000)
		poll_some(first, (uint32_t)(1000 - harness_counter(first, "frames")));
	struct harness_snapshot *s = harness_save(first, 3);
	harness_destroy(first);
	change();
	struct harness *second = open_source(s);
	poll_some(second, 512);
	if (expected == NULL) {
		cr_expect_null(harness_error(second), "%s", harness_error(second));
	} else {
		cr_assert_not_null(harness_error(second), "expected %s", expected);
		cr_expect_not_null(strstr(harness_error(second), expected), "\"%s\" lacks \"%s\"",
				harness_error(second), expected);
		cr_expect_not_null(strstr(harness_error(second), "a.pcap"));
	}
	harness_snapshot_free(s);
	harness_destroy(second);
}

static void remove_it(void)
{
	unlink(path);
}

static void shorten_it(void)
{
	cr_assert_eq(truncate(path, 20000), 0);
}

static void replace_it(void)
{
	write_udp_capture(path, CAPTURE_PCAP, 4000, 250, start_ns + 5000, 1000);
}

static void replace_it_by_blocks(void)
{
	write_udp_capture(path, CAPTURE_PCAPNG, 4000, 250, start_ns + 5000, 1000);
}

static void append_to_it(void)
{
	FILE *f = fopen(path, "ab");

	cr_assert_not_null(f);
	fputs("more", f);
	fclose(f);
}

Test(pcap_source, a_file_that_is_gone_or_changed_refuses_the_restore)
{
	restore_after(remove_it, CAPTURE_PCAP, "No such file");
	restore_after(shorten_it, CAPTURE_PCAP, "shorter than at the checkpoint");
	restore_after(replace_it, CAPTURE_PCAP, "differ");
	restore_after(replace_it_by_blocks, CAPTURE_PCAPNG, "differ");
	restore_after(append_to_it, CAPTURE_PCAP, NULL);
}

Test(pcap_source, a_file_handed_out_before_the_barrier_is_in_the_state)
{
	struct harness *first = open_source(NULL);
	char text[400];

	write_udp_capture(path, CAPTURE_PCAP, 10, 1, start_ns, 1000);
	poll_some(first, 512);
	snprintf(text, sizeof(text), "FILE %s", path);
	harness_event(first, text);
	struct harness_snapshot *s = harness_save(first, 1);
	harness_destroy(first);
	struct harness *second = open_source(s);
	while (harness_event_count(second) == 0)
		poll_some(second, 512);
	cr_expect_eq(harness_counter(second, "frames"), 10);
	harness_snapshot_free(s);
	harness_destroy(second);
}

Test(pcap_source, a_request_that_was_not_answered_is_made_again_after_a_restore)
{
	struct harness *first = open_source(NULL);

	poll_some(first, 512);
	struct harness_snapshot *s = harness_save(first, 1);
	harness_destroy(first);
	struct harness *second = open_source(s);
	poll_some(second, 512);
	cr_expect_eq(harness_event_count(second), 1);
	harness_snapshot_free(s);
	harness_destroy(second);
}

/* ---- time -------------------------------------------------------------------------------------
 */

Test(pcap_source, the_watermark_follows_the_records_and_never_goes_back)
{
	struct harness *h = open_source(NULL);
	char other[300];

	cr_expect_eq(harness_out_watermark(h), WEIR_WATERMARK_NONE);
	write_udp_capture(path, CAPTURE_PCAP, 100, 1, start_ns, 1000000000);
	read_file(h, path);
	cr_expect_eq(harness_out_watermark(h), start_ns + 98 * INT64_C(1000000000));
	cr_expect_eq(harness_counter(h, "late"), 0);
	snprintf(other, sizeof(other), "%s/b.pcap", directory);
	write_udp_capture(other, CAPTURE_PCAP, 50, 1, start_ns - 3600 * INT64_C(1000000000), 1000);
	char text[400];
	snprintf(text, sizeof(text), "FILE %s", other);
	harness_event(h, text);
	while (harness_counter(h, "files") < 2)
		poll_some(h, 512);
	cr_expect_eq(harness_out_watermark(h), start_ns + 98 * INT64_C(1000000000));
	cr_expect_eq(harness_counter(h, "late"), 50);
	harness_destroy(h);
}

Test(pcap_source, a_packet_is_late_by_those_in_front_of_it_wherever_batches_end)
{
	static const int64_t times_ms[] = {0, 5000, 4000, 3999, 9000, 8500, 7000, 20000, 18999};
	static const uint8_t late[] = {0, 0, 0, 1, 0, 0, 1, 0, 1};

	for (uint32_t batch = 1; batch < 10; batch++) {
		struct harness *h = open_source(NULL);
		struct capture_writer w;
		uint32_t count, size;
		char text[400];

		capture_writer_open(&w, path, CAPTURE_PCAP, 1);
		for (uint32_t i = 0; i < 9; i++)
			capture_writer_add(&w, start_ns + times_ms[i] * 1000000, "x", 1, 1);
		capture_writer_close(&w);
		poll_some(h, batch);
		snprintf(text, sizeof(text), "FILE %s", path);
		harness_event(h, text);
		while (harness_counter(h, "files") == 0)
			poll_some(h, batch);
		const uint8_t *at = harness_output(h, &count, NULL);
		for (uint32_t i = 0; i < count; i++) {
			struct captured_packet p;

			at = weir_record_at(at, &size);
			memcpy(&p, at, sizeof(p));
			cr_expect_eq(p.is_late, late[i], "packet %u in batches of %u", i, batch);
			at += size;
		}
		harness_destroy(h);
	}
}

Test(pcap_source, a_rate_is_kept_by_not_before)
{
	struct harness *h = create_source(path, "1000");
	char text[400];

	write_udp_capture(path, CAPTURE_PCAP, 3000, 1, start_ns, 1000);
	cr_assert_eq(harness_open(h), 0);
	poll_some(h, 512);
	snprintf(text, sizeof(text), "FILE %s", path);
	harness_event(h, text);
	poll_some(h, 512);
	cr_expect_eq(harness_counter(h, "frames"), 1);
	cr_expect_eq(harness_poll(h, 512), WEIR_POLL_IDLE);
	cr_expect_eq(harness_not_before(h), 1000000000 + 1000000);
	harness_set_now(h, 1000000000 + 20000000);
	poll_some(h, 512);
	cr_expect_eq(harness_counter(h, "frames"), 21);
	harness_destroy(h);
}

/* ---- bad files --------------------------------------------------------------------------------
 */

Test(pcap_source, a_capture_that_is_cut_counts_up_to_the_cut)
{
	static const enum capture_format formats[] = {CAPTURE_PCAP, CAPTURE_PCAPNG};

	for (int i = 0; i < 2; i++) {
		struct harness *h = open_source(NULL);
		struct stat st;

		write_udp_capture(path, formats[i], 1000, 10, start_ns, 1000);
		cr_assert_eq(stat(path, &st), 0);
		cr_assert_eq(truncate(path, st.st_size - 30), 0);
		read_file(h, path);
		cr_expect_null(harness_error(h), "%s", harness_error(h));
		cr_expect_eq(harness_counter(h, "frames"), 999);
		cr_expect_eq(harness_counter(h, "files_cut"), 1);
		harness_destroy(h);
	}
}

Test(pcap_source, an_empty_file_holds_no_packets_and_is_no_error)
{
	struct harness *h = open_source(NULL);
	FILE *f = fopen(path, "wb");

	fclose(f);
	read_file(h, path);
	cr_expect_null(harness_error(h));
	cr_expect_eq(harness_counter(h, "files"), 1);
	harness_destroy(h);
}

static void write_text(const char *file, const char *text)
{
	FILE *f = fopen(file, "wb");

	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

Test(pcap_source, a_file_that_is_no_capture_fails_the_task_with_its_name)
{
	struct harness *h = open_source(NULL);

	write_text(path, "this is no capture at all\n");
	read_file(h, path);
	cr_assert_not_null(harness_error(h));
	cr_expect_not_null(strstr(harness_error(h), "a.pcap"));
	cr_expect_not_null(strstr(harness_error(h), "neither pcap nor pcapng"));
	harness_destroy(h);
}

Test(pcap_source, in_a_directory_what_is_no_capture_is_passed_over_and_counted)
{
	struct harness *h = create_source(directory, "0");
	char readme[300], text[400];

	snprintf(readme, sizeof(readme), "%s/README", directory);
	write_text(readme, "captures of last week\n");
	write_udp_capture(path, CAPTURE_PCAP, 10, 1, start_ns, 1000);
	cr_assert_eq(harness_open(h), 0);
	read_file(h, readme);
	snprintf(text, sizeof(text), "FILE %s", path);
	harness_event(h, text);
	while (harness_counter(h, "files") == 0 && harness_error(h) == NULL)
		poll_some(h, 512);
	cr_expect_null(harness_error(h), "%s", harness_error(h));
	cr_expect_eq(harness_counter(h, "files_skipped"), 1);
	cr_expect_eq(harness_counter(h, "frames"), 10);
	harness_destroy(h);
}

Test(pcap_source, a_pipe_does_not_hold_the_reader)
{
	struct harness *h = open_source(NULL);

	cr_assert_eq(mkfifo(path, 0600), 0);
	read_file(h, path);
	cr_assert_not_null(harness_error(h));
	cr_expect_not_null(strstr(harness_error(h), "not a regular file"));
	harness_destroy(h);
}

Test(pcap_source, an_event_nobody_should_send_fails_the_task)
{
	static const char *const events[] = {"FILE ", "FILE", "", "file x", "NO-MORE "};

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		struct harness *h = open_source(NULL);

		harness_event(h, events[i]);
		cr_expect_not_null(harness_error(h), "\"%s\" was accepted", events[i]);
		harness_destroy(h);
	}
}

/* ---- the reader -------------------------------------------------------------------------------
 */

Test(pcap_source, it_ends_at_once_while_the_reader_waits_for_room, .timeout = 10)
{
	for (int i = 0; i < 20; i++) {
		struct harness *h = open_source(NULL);
		char text[400];

		write_udp_capture(path, CAPTURE_PCAP, 20000, 1, start_ns, 1000);
		poll_some(h, 512);
		snprintf(text, sizeof(text), "FILE %s", path);
		harness_event(h, text);
		usleep(1000U * (unsigned int)(i % 4)); /* long enough to fill all chunks, or not */
		harness_destroy(h);
	}
}
