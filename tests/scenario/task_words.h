#pragma once

/*
 * task_words: the words behind a verb of a script about one task.
 *
 * Place    tests/scenario, used by what reads lines (task_arrivals.c, task_events.c).
 */

#include "dataplane/wire/event.h"
#include "tests/scenario/task_world.h"

/* The words behind the numbers of a line. */
struct task_options {
	bool is_forced, is_no_drain;
	enum snapshot_kind snapshot;
	int64_t timestamp_ms;
	int64_t latest_id;
};

/* The words of `l` at and behind `from`, all of them in `allowed`: " ts forced ". */
bool task_read_options(struct task_world *w, const struct scenario_line *l, uint32_t from,
		const char *allowed, struct task_options *o);

/* Index of the first word at or behind `from` that is not a number. */
uint32_t task_numbers_end(const struct scenario_line *l, uint32_t from);

/* Does something for every number in the words from `from` on, which stop where numbers do. */
bool task_for_each(struct task_world *w, const struct scenario_line *l, uint32_t from,
		uint32_t limit, bool (*act)(struct task_world *w, uint32_t number, void *context),
		void *context);

/* The id behind the verb. */
bool task_read_id(struct task_world *w, const struct scenario_line *l, int64_t *id);

/* Options of 10.3 as the coordinator computes them; of a barrier in line they are those of an
 * aligned one. */
struct checkpoint_options task_world_options(
		const struct task_world *w, enum snapshot_kind snapshot);
struct checkpoint_options task_world_trigger_options(
		const struct task_world *w, enum snapshot_kind snapshot);
