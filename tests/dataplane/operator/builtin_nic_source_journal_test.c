/* nic-source with a journal: nothing goes on before it is durable, and all of that again after a
 * failure. */

#include "dataplane/checkpoint/store_select.h"
#include "dataplane/journal/journal.h"
#include "dataplane/operator/builtins.h"
#include "dataplane/operator/chain.h"
#include "dataplane/operator/packet/flow_record.h"
#include "tests/sim/fault_store.h"
#include "tests/sim/mem_port.h"
#include "tests/support/operator_harness.h"
#include "tests/support/store_await.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SECOND = 1000000000 };

static struct mem_port *port;
static struct store *inner;
static struct fault_store disk;
static struct journal *journal; /* of the operator that is open */
static struct journal_port journals;
static char directory[64];
static uint64_t now_ns;

static struct weir_journal *open_journal(struct journal_port *p,
		const struct weir_journal_config *config, bool *is_final,
		char error[WEIR_ERROR_BYTES])
{
	(void)p;
	*is_final = true;
	return journal_create(&journal, &disk.store, config, error) == 0 ? journal_face(journal)
									 : NULL;
}

static void close_journal(struct journal_port *p, struct weir_journal *face)
{
	struct store_done done;

	(void)p;
	cr_assert_eq(face, journal_face(journal));
	while (store_inflight(&disk.store) > 0)
		store_reap(&disk.store, &done, 1);
	journal_destroy(journal);
	journal = NULL;
}

static void begin(void)
{
	char why[STORE_WHY_BYTES];

	port = mem_port_create();
	make_test_directory(directory);
	cr_assert_eq(store_open(&inner, STORE_THREADS, why), 0);
	fault_store_init(&disk, inner);
	journals = (struct journal_port){open_journal, close_journal};
	now_ns = SECOND;
}

static void end(void)
{
	store_destroy(inner);
	mem_port_destroy(port);
	remove_test_directory(directory);
}

TestSuite(nic_source_journal, .init = begin, .fini = end, .timeout = 60);

static struct harness *create(uint32_t parallelism)
{
	static char path[128]; /* the operator keeps what it is given */
	const struct param_text params[] = {{"port", "net_tap0"}, {"snap", "64 b"},
			{"journal", path}, {"journal-lag", "512 kb"}, {"journal-segment", "1 mb"},
			{0}};

	snprintf(path, sizeof(path), "%s/journal", directory);
	struct harness *h = harness_create(&(struct harness_config){.op = &builtin_nic_source,
			.params = params,
			.parallelism = parallelism,
			.port = mem_port_face(port),
			.journals = &journals});
	cr_assert_null(harness_error(h), "%s", harness_error(h));
	return h;
}

/* One turn of its task. */
static void turn(struct harness *h)
{
	if (journal_step(journal, now_ns) == 0)
		nanosleep(&(struct timespec){0, 20000}, NULL);
	harness_set_now(h, now_ns);
	harness_set_room(h, 512);
	harness_poll(h, 512);
	now_ns += 1000000;
}

static void turns(struct harness *h, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		turn(h);
}

static void await(struct harness *h, const char *counter, uint64_t value)
{
	for (int i = 0; i < 20000 && harness_counter(h, counter) != value; i++)
		turn(h);
	cr_assert_eq(harness_counter(h, counter), value, "%s is %llu", counter,
			(unsigned long long)harness_counter(h, counter));
}

/* Open, and what is on disk read again. */
static struct harness *open_source(const struct harness_snapshot *from)
{
	struct harness *h = create(1);

	if (from != NULL)
		harness_restore(h, from);
	cr_assert_eq(harness_open(h), 0, "%s", harness_error(h));
	for (int i = 0; i < 20000 && journal_face(journal)->status.is_replaying; i++)
		turn(h);
	turns(h, 2);
	return h;
}

static void put(uint32_t count)
{
	static uint8_t number;
	uint8_t bytes[100];

	for (uint32_t i = 0; i < count; i++) {
		memset(bytes, number++, sizeof(bytes));
		mem_port_put(port, bytes, sizeof(bytes));
	}
}

/* Few at a time, so that each few have a block of their own. */
static void pass_blocks(struct harness *h, uint32_t count)
{
	for (uint32_t done = 0; done < count; done++) {
		put(10);
		await(h, "frames", 10 * (done + 1));
	}
}

Test(nic_source_journal, a_packet_goes_on_only_when_it_is_durable)
{
	struct harness *h = open_source(NULL);
	uint32_t count;
	size_t bytes;

	put(10);
	disk.is_hung = true;
	turns(h, 50);
	harness_output(h, &count, &bytes);
	cr_expect_eq(count, 0);
	cr_expect_eq(harness_counter(h, "frames"), 0);
	cr_expect_eq(harness_counter(h, "unsafe"), 10);
	cr_expect_eq(harness_counter(h, "journal_pending"), 10);
	cr_expect_gt(harness_counter(h, "journal_lag"), 0);
	disk.is_hung = false;
	fault_store_settle(&disk);
	await(h, "frames", 10);
	harness_output(h, &count, &bytes);
	cr_expect_eq(count, 10);
	cr_expect_eq(harness_counter(h, "bytes"), 1000);
	cr_expect_eq(harness_counter(h, "unsafe"), 0);
	cr_expect_eq(harness_counter(h, "journal_lag"), 0);
	cr_expect_eq(harness_counter(h, "journalled"), 10);
	harness_destroy(h);
}

Test(nic_source_journal, the_same_records_come_again_behind_the_checkpoint)
{
	struct harness *h = open_source(NULL);
	uint32_t count;
	size_t bytes;

	put(20);
	await(h, "frames", 20);
	struct harness_snapshot *s = harness_save(h, 1);
	harness_clear_output(h);
	put(30);
	await(h, "frames", 50);
	const uint8_t *output = harness_output(h, &count, &bytes);
	uint8_t *first = malloc(bytes);
	memcpy(first, output, bytes);
	size_t first_bytes = bytes;
	harness_destroy(h);

	h = open_source(s);
	cr_expect_eq(harness_counter(h, "frames"), 50);
	cr_expect_eq(harness_counter(h, "replayed"), 30);
	cr_expect_eq(harness_counter(h, "rolled_back"), 0);
	output = harness_output(h, &count, &bytes);
	cr_expect_eq(count, 30);
	cr_assert_eq(bytes, first_bytes);
	cr_expect_eq(memcmp(output, first, bytes), 0);
	put(5);
	await(h, "frames", 55);
	free(first);
	harness_snapshot_free(s);
	harness_destroy(h);
}

Test(nic_source_journal, event_time_waits_for_packets_that_have_not_gone_on)
{
	struct harness *h = open_source(NULL);
	struct captured_packet header;
	uint32_t count, size;
	size_t bytes;

	turns(h, 20);
	disk.is_hung = true;
	put(1);
	turns(h, 20);
	int64_t watermark = harness_out_watermark(h);
	now_ns += 10 * (uint64_t)SECOND;
	turns(h, 20);
	cr_expect_eq(harness_out_watermark(h), watermark);
	disk.is_hung = false;
	fault_store_settle(&disk);
	await(h, "frames", 1);
	const uint8_t *at = weir_record_at(harness_output(h, &count, &bytes), &size);
	memcpy(&header, at, sizeof(header));
	cr_expect_gt(header.time_ns, watermark);
	turns(h, 20);
	cr_expect_gt(harness_out_watermark(h), watermark + 9 * (int64_t)SECOND);
	harness_destroy(h);
}

Test(nic_source_journal, what_was_not_durable_is_taken_back_in_the_ledger)
{
	struct harness *h = open_source(NULL);

	put(7);
	await(h, "frames", 7);
	struct harness_snapshot *s = harness_save(h, 1);
	put(4);
	await(h, "frames", 11);
	disk.fail_ops = 1u << STORE_WRITE;
	disk.op_count = 0;
	disk.fail_nth = 1;
	disk.fail_status = -EIO;
	put(3);
	for (int i = 0; i < 1000 && harness_counter(h, "unsafe") < 3; i++)
		turn(h);
	turns(h, 20);
	harness_destroy(h);
	h = open_source(s);
	cr_expect_eq(harness_counter(h, "frames"), 11);
	cr_expect_eq(harness_counter(h, "rolled_back"), 3);
	harness_snapshot_free(s);
	harness_destroy(h);
}

Test(nic_source_journal, the_port_is_not_read_while_the_disk_is_behind)
{
	struct harness *h = open_source(NULL);

	disk.is_hung = true;
	for (uint32_t i = 0; i < 16; i++) {
		put(500);
		turns(h, 20);
	}
	cr_expect_lt(harness_counter(h, "journal_pending"), 512 * 1024 / 84);
	cr_expect_leq(harness_counter(h, "journal_lag"), 512 * 1024);
	disk.is_hung = false;
	fault_store_settle(&disk);
	await(h, "frames", 8000);
	harness_destroy(h);
}

Test(nic_source_journal, a_completed_checkpoint_trims)
{
	struct harness *h = open_source(NULL);

	pass_blocks(h, 400); /* of 4 KiB at least */
	uint64_t before = harness_counter(h, "journal_bytes");
	harness_before_barrier(h, 1);
	cr_expect_eq(harness_counter(h, "trimmed"), 0);
	harness_notify_complete(h, 1);
	for (int i = 0; i < 1000 && harness_counter(h, "trimmed") == 0; i++)
		turn(h);
	cr_expect_gt(harness_counter(h, "trimmed"), 0);
	cr_expect_lt(harness_counter(h, "journal_bytes"), before);
	harness_destroy(h);
}

Test(nic_source_journal, fewer_subtasks_than_the_checkpoint_had_are_refused)
{
	struct harness *h = create(2);

	cr_assert_eq(harness_open(h), 0);
	struct harness_snapshot *s = harness_save(h, 1);
	harness_destroy(h);
	h = create(1);
	harness_restore(h, s);
	cr_expect_neq(harness_open(h), 0);
	cr_expect(strstr(harness_error(h), "journals of 2 subtasks") != NULL, "%s",
			harness_error(h));
	harness_snapshot_free(s);
	harness_destroy(h);
}
