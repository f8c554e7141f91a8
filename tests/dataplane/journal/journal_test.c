/* journal: what was given out is there again after any crash, each record once. */

#include "tests/support/journal_world.h"
#include "tests/support/store_await.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct journal_world w;

static void begin(void)
{
	journal_world_begin(&w);
}

static void end(void)
{
	journal_world_end(&w);
}

TestSuite(journal, .init = begin, .fini = end, .timeout = 60);

Test(journal, what_is_given_out_is_durable_and_in_order)
{
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	for (uint32_t round = 0; round < 50; round++) {
		journal_world_put_all(&w, round, 8 + round * 20);
		journal_world_step(&w);
		cr_assert_leq(w.face->status.taken, w.face->status.durable);
		journal_world_take(&w, 7);
	}
	journal_world_await_taken(&w);
	cr_expect_eq(w.face->status.lag_bytes, 0);
	journal_world_stop(&w);
}

Test(journal, all_that_was_given_out_is_read_again_after_a_crash_at_any_moment)
{
	for (uint32_t round = 0; round < 40; round++) {
		journal_world_open(&w);
		uint64_t given = w.face->status.taken;
		journal_world_await_replayed(&w);
		cr_assert_geq(w.expected, given);
		uint64_t durable = w.expected;
		journal_world_put_all(&w, round * 7, 700);
		for (uint32_t i = 0; i < round % 9; i++) {
			journal_world_step(&w);
			journal_world_take(&w, 512);
		}
		cr_assert_geq(w.expected, durable);
		given = w.expected;
		journal_world_crash(&w);
		journal_world_open(&w);
		journal_world_await_replayed(&w);
		cr_assert_geq(w.expected, given, "%llu of %llu", (unsigned long long)w.expected,
				(unsigned long long)given);
		journal_world_crash(&w);
	}
}

Test(journal, it_goes_on_from_the_position_of_a_checkpoint)
{
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	journal_world_put_all(&w, 300, 900);
	journal_world_await_taken(&w);
	journal_world_put_all(&w, 100, 900);
	journal_world_checkpoint(&w);
	uint64_t position = w.expected;
	journal_world_await_taken(&w);
	journal_world_put_all(&w, 2000, 900); /* over several segments */
	journal_world_await_taken(&w);
	journal_world_crash(&w);
	journal_world_open(&w);
	cr_expect_eq(w.face->status.taken, position);
	journal_world_await_replayed(&w);
	cr_expect_eq(w.expected, 2400);
	cr_expect_eq(w.face->status.replayed, 2400 - position);
	journal_world_put_all(&w, 10, 64);
	journal_world_await_taken(&w);
	cr_expect_eq(w.expected, 2410);
	journal_world_stop(&w);
}

Test(journal, a_position_within_a_block_is_found)
{
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	journal_world_put_all(&w, 100, 16);
	for (int i = 0; i < 1000 && w.face->status.durable < 100; i++)
		journal_world_step(&w);
	journal_world_take(&w, 37);
	journal_world_checkpoint(&w);
	cr_expect_eq(w.config.sequence, 37);
	journal_world_crash(&w);
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	cr_expect_eq(w.expected, 100);
	journal_world_crash(&w);
}

Test(journal, what_was_taken_is_written_when_the_task_ends)
{
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	journal_world_put_all(&w, 200, 1000);
	journal_world_stop(&w);
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	cr_expect_eq(w.expected, 200);
	journal_world_crash(&w);
}

/* ---- its end --------------------------------------------------------------------------------- */

/* A byte of that segment changes. */
static void damage(uint64_t ordinal, uint64_t offset)
{
	char name[JOURNAL_ERROR_BYTES];

	journal_world_segment(&w, ordinal, name);
	int fd = open(name, O_WRONLY);

	cr_assert(fd >= 0);
	cr_assert_eq(pwrite(fd, "x", 1, (off_t)offset), 1);
	close(fd);
}

/* Three blocks, each durable before the next one is written, behind the header. */
static void write_three_blocks(void)
{
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	for (uint32_t i = 0; i < 3; i++) {
		journal_world_put_all(&w, 10, 100);
		journal_world_await_taken(&w);
	}
	journal_world_crash(&w);
}

Test(journal, a_torn_last_block_is_the_end)
{
	write_three_blocks();
	damage(0, JOURNAL_ALIGN_BYTES * 3 + 500);
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	cr_expect_eq(w.expected, 20);
	journal_world_put_all(&w, 5, 100); /* in the place of those that are lost */
	journal_world_await_taken(&w);
	cr_expect_eq(w.expected, 25);
	journal_world_crash(&w);
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	cr_expect_eq(w.expected, 25);
	journal_world_crash(&w);
}

Test(journal, a_damaged_block_before_a_durable_one_is_no_torn_end)
{
	write_three_blocks();
	damage(0, JOURNAL_ALIGN_BYTES * 2 + 500);
	journal_world_open(&w);
	journal_world_await_failure(&w);
	cr_expect_eq(journal_world_failure(&w), -EBADMSG);
	cr_expect(strstr(journal_world_failure_text(&w), "record 10 is not there") != NULL, "%s",
			journal_world_failure_text(&w));
	journal_world_stop(&w);
}

Test(journal, a_damaged_segment_before_the_last_one_is_refused_with_what_is_lost)
{
	write_three_blocks();
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	journal_world_put_all(&w, 1, 100);
	journal_world_await_taken(&w);
	journal_world_crash(&w);
	damage(0, JOURNAL_ALIGN_BYTES * 3 + 500);
	journal_world_open(&w);
	journal_world_await_failure(&w);
	cr_expect_eq(journal_world_failure(&w), -EBADMSG);
	cr_expect(strstr(journal_world_failure_text(&w), "the records from 20 to 29 are lost") !=
					NULL,
			"%s", journal_world_failure_text(&w));
	journal_world_stop(&w);
}

Test(journal, a_journal_that_ends_before_its_checkpoint_is_refused)
{
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	for (uint32_t i = 0; i < 3; i++) {
		journal_world_put_all(&w, 10, 100);
		journal_world_await_taken(&w);
	}
	journal_world_checkpoint(&w);
	journal_world_crash(&w);
	damage(0, JOURNAL_ALIGN_BYTES * 3 + 500);
	journal_world_open(&w);
	journal_world_await_failure(&w);
	cr_expect_eq(journal_world_failure(&w), -EBADMSG);
	cr_expect(strstr(journal_world_failure_text(&w), "ends at record 20") != NULL, "%s",
			journal_world_failure_text(&w));
	journal_world_stop(&w);
}

Test(journal, a_segment_whose_header_was_torn_has_nothing_durable)
{
	char name[JOURNAL_ERROR_BYTES];

	write_three_blocks();
	journal_world_segment(&w, 1, name);
	close(open(name, O_WRONLY | O_CREAT, 0644));
	for (int i = 0; i < 2; i++) {
		journal_world_open(&w);
		journal_world_await_replayed(&w);
		cr_expect_eq(w.expected, 30);
		journal_world_crash(&w);
	}
}

/* ---- which position fits -----------------------------------------------------------------------
 */

Test(journal, segments_below_a_completed_checkpoint_are_deleted)
{
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	journal_world_put_all(&w, 3000, 1000); /* about 3 MB: six segments */
	journal_world_await_taken(&w);
	cr_expect_geq(w.face->status.disk_bytes, 5 * (uint64_t)WORLD_SEGMENT_BYTES);
	uint64_t before = w.face->status.disk_bytes;
	w.face->trim(w.face, 1500);
	for (int i = 0; i < 1000; i++)
		journal_world_step(&w);
	cr_expect_lt(w.face->status.disk_bytes, before);
	cr_expect_leq(w.face->status.first, 1500);
	cr_expect_gt(w.face->status.first, 900);
	w.face->trim(w.face, 3000);
	for (int i = 0; i < 1000; i++)
		journal_world_step(&w);
	cr_expect_eq(w.face->status.disk_bytes, WORLD_SEGMENT_BYTES);
	cr_expect_eq(count_files(w.path), 3); /* one segment, the lock, the mark */
	journal_world_checkpoint(&w);
	journal_world_crash(&w);
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	cr_expect_eq(w.expected, 3000);
	journal_world_crash(&w);
	w.config.sequence = 10;
	cr_expect_eq(journal_world_try_open(&w), -ESTALE);
	cr_expect(strstr(w.error, "a newer checkpoint has covered") != NULL, "%s", w.error);
	w.config.accepts_gap = true;
	w.expected = 0;
	journal_world_open(&w);
	cr_expect_eq(w.face->status.gap, w.face->status.taken - 10);
}

Test(journal, without_a_position_all_is_read_unless_a_checkpoint_covered_some)
{
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	journal_world_put_all(&w, 20, 100);
	journal_world_await_taken(&w);
	journal_world_crash(&w);
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	cr_expect_eq(w.expected, 20);
	w.face->trim(w.face, 20);
	for (int i = 0; i < 200; i++)
		journal_world_step(&w);
	journal_world_crash(&w);
	cr_expect_eq(journal_world_try_open(&w), -ESTALE);
	cr_expect(strstr(w.error, "--restore latest") != NULL, "%s", w.error);
}

Test(journal, another_journal_and_an_empty_one_are_refused_by_name)
{
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	journal_world_put_all(&w, 20, 100);
	journal_world_await_taken(&w);
	journal_world_checkpoint(&w);
	journal_world_crash(&w);
	w.config.id ^= 2;
	cr_expect_eq(journal_world_try_open(&w), -ESTALE);
	cr_expect(strstr(w.error, "another one") != NULL, "%s", w.error);
	snprintf(w.path, sizeof(w.path), "%s/journal/subtask-1", w.directory);
	cr_expect_eq(journal_world_try_open(&w), -ESTALE);
	cr_expect(strstr(w.error, "is empty") != NULL, "%s", w.error);
	w.config.sequence = 0; /* its checkpoint was before anything was durable */
	journal_world_open(&w);
}

Test(journal, it_is_open_once)
{
	struct journal *first;

	journal_world_open(&w);
	first = w.journal;
	cr_expect_eq(journal_world_try_open(&w), -EBUSY);
	cr_expect(strstr(w.error, "in use") != NULL, "%s", w.error);
	w.journal = first;
}

Test(journal, larger_records_than_the_source_makes_now_are_refused)
{
	write_three_blocks();
	w.config.record_bytes_max = 512;
	cr_expect_eq(journal_world_try_open(&w), -EMSGSIZE);
	cr_expect(strstr(w.error, "snap") != NULL, "%s", w.error);
}
