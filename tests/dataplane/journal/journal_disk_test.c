/* journal on a disk that is full, broken or hangs. */

#include "tests/support/journal_world.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

static struct journal_world w;

static void begin(void)
{
	journal_world_begin(&w);
}

static void end(void)
{
	journal_world_end(&w);
}

TestSuite(journal_disk, .init = begin, .fini = end, .timeout = 60);

Test(journal_disk, a_full_disk_takes_nothing_and_goes_on_when_there_is_room)
{
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	journal_world_put_all(&w, 10, 100);
	journal_world_await_taken(&w);
	w.disk.fail_ops = 1u << STORE_WRITE;
	w.disk.fail_nth = 1;
	w.disk.op_count = 0;
	w.disk.fail_count = UINT32_MAX;
	w.disk.fail_status = -ENOSPC;
	uint32_t taken = 0;
	for (int i = 0; i < 2000; i++) {
		journal_world_step(&w);
		journal_world_take(&w, 512);
		taken += journal_world_put(&w, 1000);
	}
	cr_expect(w.face->status.is_full);
	cr_expect_leq(taken * 1000, WORLD_MEMORY_BYTES);
	cr_expect_eq(journal_world_failure(&w), 0);
	cr_expect_eq(w.expected, 10);
	w.disk.fail_nth = 0;
	journal_world_await_taken(&w);
	cr_expect_not(w.face->status.is_full);
	journal_world_stop(&w);
}

Test(journal_disk, its_own_limit_is_a_full_disk_until_a_checkpoint_completes)
{
	w.config.disk_bytes_max = 2 * WORLD_SEGMENT_BYTES;
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	uint32_t taken = 0;
	for (int i = 0; i < 100000 && !w.face->status.is_full; i++) {
		journal_world_step(&w);
		journal_world_take(&w, 512);
		taken += journal_world_put(&w, 1000);
	}
	cr_expect(w.face->status.is_full);
	cr_expect_leq(w.face->status.disk_bytes, w.config.disk_bytes_max);
	cr_expect_lt(taken, 2000);
	for (int i = 0; i < 100; i++)
		journal_world_take(&w, 512);
	w.face->trim(w.face, w.face->status.taken);
	journal_world_await_taken(&w);
	journal_world_put_all(&w, 100, 1000);
	journal_world_await_taken(&w);
	journal_world_stop(&w);
}

Test(journal_disk, any_other_error_fails_the_task_once_whichever_request_it_meets)
{
	bool has_failed = true;
	uint32_t count = 0;

	for (uint64_t nth = 1; has_failed; nth++, count++) {
		snprintf(w.path, sizeof(w.path), "%s/journal/run-%llu", w.directory,
				(unsigned long long)nth);
		w.disk.op_count = 0;
		w.disk.failed_count = 0;
		w.disk.fail_nth = nth;
		w.disk.fail_status = -EIO;
		w.appended = 0;
		w.expected = 0;
		journal_world_open(&w);
		for (int i = 0; i < 3000 && journal_world_failure(&w) == 0 && w.appended < 1000;
				i++) {
			journal_world_step(&w);
			journal_world_take(&w, 512);
			journal_world_put(&w, 1000);
		}
		for (int i = 0; i < 200 && journal_world_failure(&w) == 0; i++) {
			journal_world_step(&w);
			journal_world_take(&w, 512);
		}
		has_failed = w.disk.failed_count > 0;
		/* A close has nothing to lose. */
		cr_expect(!has_failed || journal_world_failure(&w) == -EIO ||
				w.expected == w.appended);
		w.disk.fail_nth = 0;
		journal_world_stop(&w);
		cr_assert_eq(store_inflight(&w.disk.store), 0);
	}
	cr_expect_gt(count, 10);
}

Test(journal_disk, a_sync_that_failed_gives_nothing_out)
{
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	journal_world_put_all(&w, 10, 100);
	journal_world_await_taken(&w);
	w.disk.fail_ops = 1u << STORE_SYNC;
	w.disk.op_count = 0;
	w.disk.fail_nth = 1;
	w.disk.fail_status = -EIO;
	journal_world_put_all(&w, 10, 100);
	journal_world_await_failure(&w);
	cr_expect_eq(journal_world_failure(&w), -EIO);
	cr_expect_eq(w.expected, 10);
	journal_world_stop(&w);
}

Test(journal_disk, a_disk_that_hangs_stops_the_taking_within_its_memory)
{
	journal_world_open(&w);
	journal_world_await_replayed(&w);
	w.disk.is_hung = true;
	uint32_t taken = 0;
	for (int i = 0; i < 2000; i++) {
		journal_world_step(&w);
		journal_world_take(&w, 512);
		taken += journal_world_put(&w, 1000);
	}
	cr_expect_leq(taken * 1000, WORLD_MEMORY_BYTES);
	cr_expect_leq(w.face->status.lag_bytes, WORLD_MEMORY_BYTES);
	w.disk.is_hung = false;
	fault_store_settle(&w.disk);
	journal_world_await_taken(&w);
	journal_world_stop(&w);
}
