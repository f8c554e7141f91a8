/* The flow-metering job in one thread, on real captures. */

#include "tests/support/capture_writer.h"
#include "tests/support/flow_pipeline.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

static const int64_t second_ns = 1000000000;

static uint64_t packets_in(const struct flow_pipeline *p)
{
	uint64_t packets = 0;

	for (uint32_t i = 0; i < p->row_count; i++)
		packets += p->rows[i].packets;
	return packets;
}

static uint64_t unparsed_in(const struct flow_pipeline *p)
{
	const struct weir_declaration *d = harness_declaration(p->parse);
	uint64_t unparsed = 0;

	for (uint32_t i = 0; i < d->counter_count; i++) {
		if (strncmp(d->counters[i], "unparsed.", 9) == 0)
			unparsed += harness_counter(p->parse, d->counters[i]);
	}
	return unparsed;
}

static void run_file(struct flow_pipeline *p, const char *file)
{
	const char *files[] = {file, NULL};

	flow_pipeline_open(p, &(struct flow_pipeline_config){.files = files});
	flow_pipeline_run(p);
	cr_assert_null(harness_error(p->source), "%s", harness_error(p->source));
	cr_assert_null(harness_error(p->window), "%s", harness_error(p->window));
}

/* ---- against tshark ---------------------------------------------------------------------------
 */

enum { PAIRS_MAX = 4096, TEXT_BYTES = 128 };

struct pair {
	char name[TEXT_BYTES]; /* source and destination */
	uint64_t packets, bytes;
};

struct pairs {
	struct pair pair[PAIRS_MAX];
	uint32_t count;
};

static void add_pair(struct pairs *p, const char *name, uint64_t packets, uint64_t bytes)
{
	for (uint32_t i = 0; i < p->count; i++) {
		if (strcmp(p->pair[i].name, name) == 0) {
			p->pair[i].packets += packets;
			p->pair[i].bytes += bytes;
			return;
		}
	}
	cr_assert_lt(p->count, PAIRS_MAX);
	snprintf(p->pair[p->count].name, TEXT_BYTES, "%s", name);
	p->pair[p->count].packets = packets;
	p->pair[p->count++].bytes = bytes;
}

/* The first IP header of each frame, as tshark sees it. */
static void pairs_of_tshark(const char *file, struct pairs *pairs)
{
	char command[1024], line[4096];

	snprintf(command, sizeof(command),
			"tshark -n -r '%s' -T fields -E occurrence=f -E separator=/t -e ip.src -e "
			"ip.dst -e ipv6.src -e ipv6.dst -e frame.len -e frame.protocols "
			"2>/dev/null",
			file);
	FILE *f = popen(command, "r");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		char *at = line, *field[6], name[TEXT_BYTES];

		for (int i = 0; i < 6; i++) {
			field[i] = strsep(&at, "\t\n");
			cr_assert_not_null(field[i]);
		}
		char *ip4 = strstr(field[5], ":ip:"), *ip6 = strstr(field[5], ":ipv6:");
		bool is_ip4 = field[1][0] != '\0' &&
			      (field[3][0] == '\0' || ip6 == NULL || (ip4 != NULL && ip4 < ip6));
		const char *source = is_ip4 ? field[0] : field[2];
		const char *destination = is_ip4 ? field[1] : field[3];
		if (destination[0] == '\0')
			continue;
		snprintf(name, sizeof(name), "%s %s", source, destination);
		add_pair(pairs, name, 1, strtoull(field[4], NULL, 10));
	}
	pclose(f);
}

static void pairs_of_rows(const struct flow_pipeline *p, struct pairs *pairs)
{
	for (uint32_t i = 0; i < p->row_count; i++) {
		const struct flow_row *r = &p->rows[i];
		int family = r->key.ip_version == 6 ? AF_INET6 : AF_INET;
		char source[INET6_ADDRSTRLEN], destination[INET6_ADDRSTRLEN], name[TEXT_BYTES];

		inet_ntop(family, r->key.source, source, sizeof(source));
		inet_ntop(family, r->key.destination, destination, sizeof(destination));
		snprintf(name, sizeof(name), "%s %s", source, destination);
		add_pair(pairs, name, r->packets, r->bytes);
	}
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct pair *)a)->name, ((const struct pair *)b)->name);
}

static void expect_same_pairs(const char *file)
{
	struct flow_pipeline p;
	struct pairs *ours = calloc(1, sizeof(*ours)), *theirs = calloc(1, sizeof(*theirs));

	run_file(&p, file);
	pairs_of_rows(&p, ours);
	pairs_of_tshark(file, theirs);
	qsort(ours->pair, ours->count, sizeof(struct pair), compare);
	qsort(theirs->pair, theirs->count, sizeof(struct pair), compare);
	cr_expect_eq(ours->count, theirs->count, "%s: %u pairs, tshark has %u", file, ours->count,
			theirs->count);
	for (uint32_t i = 0; i < ours->count && i < theirs->count; i++) {
		cr_assert_str_eq(ours->pair[i].name, theirs->pair[i].name, "%s", file);
		cr_expect_eq(ours->pair[i].packets, theirs->pair[i].packets, "%s: %s", file,
				ours->pair[i].name);
		cr_expect_eq(ours->pair[i].bytes, theirs->pair[i].bytes, "%s: %s", file,
				ours->pair[i].name);
	}
	flow_pipeline_close(&p);
	free(ours);
	free(theirs);
}

Test(flow_metering, packets_and_bytes_by_address_pair_equal_those_of_tshark, .timeout = 120)
{
	glob_t found;

	if (system("command -v tshark >/dev/null 2>&1") != 0)
		cr_skip_test("SKIPPED: tshark is not installed, nothing to compare with");
	cr_assert_eq(glob(TEST_DATA "/*.pcap*", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		expect_same_pairs(found.gl_pathv[i]);
	cr_expect_geq(found.gl_pathc, 8);
	globfree(&found);
}

/* ---- exactness --------------------------------------------------------------------------------
 */

Test(flow_metering, packets_in_the_output_and_unparsed_ones_are_the_frames_read)
{
	glob_t found;

	cr_assert_eq(glob(TEST_DATA "/*.pcap*", 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct flow_pipeline p;

		run_file(&p, found.gl_pathv[i]);
		cr_expect_gt(harness_counter(p.source, "frames"), 0);
		cr_expect_eq(packets_in(&p) + unparsed_in(&p),
				harness_counter(p.source, "frames"), "%s", found.gl_pathv[i]);
		cr_expect_eq(harness_keyed_count(p.window, 0), 0);
		flow_pipeline_close(&p);
	}
	globfree(&found);
}

/* Runs `steps` batches, saves, goes on a little as a task does before it is killed, restores, and
 * compares all rows with an undisturbed run's. */
static void expect_exact_after_kill(const struct flow_pipeline_config *config,
		const struct flow_pipeline *whole, uint32_t steps, uint32_t records_max)
{
	struct flow_pipeline first, second;
	struct flow_pipeline_snapshot s;
	struct flow_pipeline_config restored = *config;

	flow_pipeline_open(&first, config);
	for (uint32_t i = 0; i < steps; i++)
		flow_pipeline_step(&first, records_max);
	uint32_t row_count = first.row_count;
	flow_pipeline_save(&first, &s);
	for (uint32_t i = 0; i < 7; i++)
		flow_pipeline_step(&first, records_max);
	restored.restore = &s;
	flow_pipeline_open(&second, &restored);
	flow_pipeline_run(&second);
	cr_assert_null(harness_error(second.source), "%s", harness_error(second.source));
	cr_expect(flow_rows_are_equal(whole, &first, row_count, &second),
			"differs when killed after %u batches of %u", steps, records_max);
	cr_expect_eq(harness_counter(second.source, "frames"),
			harness_counter(whole->source, "frames"));
	cr_expect_eq(harness_counter(second.window, "late_records"),
			harness_counter(whole->window, "late_records"));
	flow_pipeline_snapshot_free(&s);
	flow_pipeline_close(&first);
	flow_pipeline_close(&second);
}

static void expect_exact(const struct flow_pipeline_config *config)
{
	struct flow_pipeline whole;

	flow_pipeline_open(&whole, config);
	flow_pipeline_run(&whole);
	cr_assert_gt(whole.row_count, 0);
	for (uint32_t steps = 0; steps < 60; steps += 7) {
		expect_exact_after_kill(config, &whole, steps, 13);
		expect_exact_after_kill(config, &whole, steps, 512);
	}
	for (uint32_t steps = 500; steps < 700; steps += 61)
		expect_exact_after_kill(config, &whole, steps, 1);
	flow_pipeline_close(&whole);
}

Test(flow_metering, rows_are_the_same_after_a_kill_at_any_packet, .timeout = 120)
{
	static const char *const pcap[] = {TEST_DATA "/gnutella.pcap", NULL};
	static const char *const pcapng[] = {TEST_DATA "/opera-vpn.pcapng", NULL};
	static const char *const many[] = {TEST_DATA "/6in4tunnel.pcap",
			TEST_DATA "/gre.pcapng", TEST_DATA "/http_ipv6.pcap",
			TEST_DATA "/dns_fragmented.pcap", NULL};

	expect_exact(&(struct flow_pipeline_config){.files = pcap});
	expect_exact(&(struct flow_pipeline_config){.files = pcapng, .window_size = "100 ms",
			.out_of_orderness = "1 ms"});
	expect_exact(&(struct flow_pipeline_config){.files = many});
}

/* ---- time -------------------------------------------------------------------------------------
 */

/* A minute, an hour back for another minute, then on from the first. */
static void write_jump(const char *path)
{
	struct capture_writer w;
	const int64_t start_ns = 1700000000 * second_ns;

	capture_writer_open(&w, path, CAPTURE_PCAP, 1);
	for (int64_t i = 0; i < 180; i++) {
		struct frame f = {.size = 0};
		int64_t shift_ns = i >= 60 && i < 120 ? 3600 * second_ns : 0;

		frame_ether(&f, 0x0800);
		frame_ip4_udp(&f);
		capture_writer_add(
				&w, start_ns + i * second_ns - shift_ns, f.bytes, f.size, f.size);
	}
	capture_writer_close(&w);
}

Test(flow_metering, a_clock_that_jumps_back_an_hour_makes_late_rows_and_loses_nothing)
{
	char directory[256], path[300];
	const char *files[] = {path, NULL};
	struct flow_pipeline p;
	uint32_t late = 0;

	make_test_directory(directory);
	snprintf(path, sizeof(path), "%s/jump.pcap", directory);
	write_jump(path);
	flow_pipeline_open(&p, &(struct flow_pipeline_config){.files = files,
			.window_size = "10 s"});
	flow_pipeline_run(&p);
	for (uint32_t i = 0; i < p.row_count; i++) {
		const struct flow_row *r = &p.rows[i];

		cr_expect_leq(r->window_start_ns, r->first_ns);
		cr_expect_lt(r->last_ns, r->window_end_ns);
		late += r->is_late;
		cr_expect(!r->is_late || r->packets == 1);
	}
	cr_expect_eq(packets_in(&p), 180);
	cr_expect_eq(late, 60);
	cr_expect_eq(harness_counter(p.window, "late_records"), 60);
	cr_expect_eq(harness_counter(p.source, "late"), 60);
	flow_pipeline_close(&p);
	expect_exact(&(struct flow_pipeline_config){.files = files, .window_size = "10 s"});
	remove_test_directory(directory);
}

Test(flow_metering, windows_leave_while_the_input_goes_on_and_the_state_stays_small)
{
	static const char *const files[] = {TEST_DATA "/gnutella.pcap", NULL};
	struct flow_pipeline p;
	uint64_t most = 0;
	uint32_t first_seen = 0, steps = 0;

	flow_pipeline_open(&p, &(struct flow_pipeline_config){.files = files});
	while (flow_pipeline_step(&p, 50)) {
		uint64_t open_flows = harness_keyed_count(p.window, 0);

		most = open_flows > most ? open_flows : most;
		steps++;
		if (p.row_count > 0 && first_seen == 0)
			first_seen = (uint32_t)harness_counter(p.source, "frames");
	}
	cr_expect_gt(first_seen, 0);
	cr_expect_lt(first_seen, 3905 / 2, "rows only after %u packets", first_seen);
	cr_expect_lt(most, p.row_count / 2, "%llu of %u flows were open at once",
			(unsigned long long)most, p.row_count);
	flow_pipeline_close(&p);
}
