#include "tests/support/journal_world.h"

#include "dataplane/checkpoint/store_select.h"
#include "tests/support/store_await.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEPS_MAX = 100000, TAKE_MAX = 512 };

void journal_world_begin(struct journal_world *w)
{
	char why[STORE_WHY_BYTES];

	memset(w, 0, sizeof(*w));
	make_test_directory(w->directory);
	snprintf(w->path, sizeof(w->path), "%s/journal/subtask-0", w->directory);
	cr_assert_eq(store_open(&w->inner, STORE_THREADS, why), 0);
	fault_store_init(&w->disk, w->inner);
	w->config = (struct weir_journal_config){
			.directory = w->path,
			.memory = aligned_alloc(STORE_ALIGN_BYTES, WORLD_MEMORY_BYTES),
			.memory_bytes = WORLD_MEMORY_BYTES,
			.record_bytes_max = 1024,
			.segment_bytes = WORLD_SEGMENT_BYTES,
			.disk_bytes_max = UINT64_MAX,
	};
}

static void wait_a_little(void)
{
	nanosleep(&(struct timespec){0, 20000}, NULL);
}

void journal_world_crash(struct journal_world *w)
{
	struct store_done done;

	while (store_inflight(&w->disk.store) > 0) {
		if (store_reap(&w->disk.store, &done, 1) == 0)
			wait_a_little();
	}
	journal_destroy(w->journal);
	w->journal = NULL;
}

void journal_world_end(struct journal_world *w)
{
	if (w->journal != NULL)
		journal_world_crash(w);
	store_destroy(w->inner);
	free(w->config.memory);
	remove_test_directory(w->directory);
}

int journal_world_try_open(struct journal_world *w)
{
	int rc = journal_create(&w->journal, &w->disk.store, &w->config, w->error);

	if (rc == 0)
		w->face = journal_face(w->journal);
	return rc;
}

void journal_world_open(struct journal_world *w)
{
	w->expected = w->config.id == 0 ? 0 : w->config.sequence;
	cr_assert_eq(journal_world_try_open(w), 0, "%s", w->error);
}

void journal_world_step(struct journal_world *w)
{
	if (journal_step(w->journal, w->now_ns) == 0)
		wait_a_little();
	w->now_ns += 1000000;
}

int journal_world_failure(const struct journal_world *w)
{
	const char *text;

	return journal_failure(w->journal, &text);
}

const char *journal_world_failure_text(const struct journal_world *w)
{
	const char *text;

	journal_failure(w->journal, &text);
	return text;
}

void journal_world_take(struct journal_world *w, uint32_t count_max)
{
	struct weir_batch batch;

	if (!w->face->next(w->face, count_max, &batch))
		return;
	const uint8_t *at = batch.data;
	for (uint32_t i = 0; i < batch.count; i++) {
		uint64_t number;
		uint32_t size;

		at = weir_record_at(at, &size);
		memcpy(&number, at, sizeof(number));
		cr_assert_eq(number, w->expected, "record %llu instead of %llu",
				(unsigned long long)number, (unsigned long long)w->expected);
		w->expected++;
		at += size;
	}
	cr_assert_eq(at - batch.data, batch.data_bytes);
	w->face->take(w->face, &batch);
}

bool journal_world_put(struct journal_world *w, uint32_t size)
{
	uint8_t *at;

	if (w->face->place(w->face, size + 4, &at) == 0)
		return false;
	memcpy(at, &size, sizeof(size));
	memset(at + 4, 0, size);
	memcpy(at + 4, &w->appended, sizeof(w->appended));
	w->face->append(w->face, 1, size + 4);
	w->appended++;
	return true;
}

static void step_and_take(struct journal_world *w)
{
	journal_world_step(w);
	journal_world_take(w, TAKE_MAX);
}

void journal_world_put_all(struct journal_world *w, uint32_t count, uint32_t size)
{
	for (uint32_t i = 0; i < count; i++) {
		while (!journal_world_put(w, size))
			step_and_take(w);
	}
}

static void expect_whole(const struct journal_world *w)
{
	cr_assert_eq(journal_world_failure(w), 0, "%s", journal_world_failure_text(w));
}

void journal_world_await_replayed(struct journal_world *w)
{
	const struct weir_journal_status *status = &w->face->status;

	for (int i = 0; i < STEPS_MAX && status->is_replaying; i++) {
		step_and_take(w);
		expect_whole(w);
	}
	cr_assert_not(status->is_replaying);
	w->appended = status->appended;
}

void journal_world_await_taken(struct journal_world *w)
{
	for (int i = 0; i < STEPS_MAX && w->face->status.taken < w->appended; i++) {
		step_and_take(w);
		expect_whole(w);
	}
	cr_assert_eq(w->expected, w->appended);
}

void journal_world_await_failure(struct journal_world *w)
{
	for (int i = 0; i < STEPS_MAX && journal_world_failure(w) == 0; i++)
		step_and_take(w);
	cr_assert_neq(journal_world_failure(w), 0);
}

void journal_world_stop(struct journal_world *w)
{
	journal_stop(w->journal);
	for (int i = 0; i < STEPS_MAX && !journal_is_idle(w->journal); i++)
		journal_world_step(w);
	cr_assert(journal_is_idle(w->journal));
	cr_assert_eq(store_inflight(&w->disk.store), 0);
	journal_destroy(w->journal);
	w->journal = NULL;
}

void journal_world_checkpoint(struct journal_world *w)
{
	w->config.id = w->face->status.id;
	w->config.sequence = w->face->status.taken;
}

void journal_world_segment(
		const struct journal_world *w, uint64_t ordinal, char name[JOURNAL_ERROR_BYTES])
{
	char segment[JOURNAL_NAME_BYTES];

	journal_name(segment, ordinal);
	snprintf(name, JOURNAL_ERROR_BYTES, "%s/%s", w->path, segment);
}
