/* job_counts: the sums of a job over its subtasks. */

#include "control/coordinator/job_master_internal.h"
#include "dataplane/base/check.h"

#include <stdlib.h>
#include <string.h>

/* A counter is a sum, but one whose name ends in _xor. */
static bool is_xor(const char *name)
{
	size_t length = strlen(name);

	return length >= 4 && strcmp(name + length - 4, "_xor") == 0;
}

/* The counters of a vertex have offsets in the order of its operators; visits each with what
 * `value_of` makes of it. */
struct counter_walk {
	const struct job_master *jm;
	uint32_t place, subtask;
	uint64_t (*value_of)(const struct counter_walk *w, uint32_t offset, const char *name);
	void (*visit)(void *context, const char *uid, const char *name, uint64_t value);
	void *context;
};

static uint64_t combine(const struct counter_walk *w, uint32_t offset, const char *name)
{
	const struct job_master *jm = w->jm;
	uint64_t all = 0;

	for (uint32_t s = 0; s < job_vertex_at(jm, w->place)->parallelism; s++) {
		uint32_t subtask = execution_graph_subtask(jm->graph, w->place, s);
		uint64_t value = jm->counters[jm->counters_at[subtask] + offset];

		all = is_xor(name) ? all ^ value : all + value;
	}
	return all;
}

static uint64_t of_subtask(const struct counter_walk *w, uint32_t offset, const char *name)
{
	(void)name;
	return w->jm->counters[w->jm->counters_at[w->subtask] + offset];
}

static void walk_counters(const struct counter_walk *w)
{
	const struct job_vertex *v = job_vertex_at(w->jm, w->place);
	uint32_t offset = 0;

	for (uint32_t i = 0; i < v->operator_count; i++) {
		const struct weir_declaration *d = &v->operators[i].declared;

		for (uint32_t k = 0; k < 2 + d->counter_count; k++) {
			const char *name = k == 0   ? "records_in"
					   : k == 1 ? "records_out"
						    : d->counters[k - 2];

			w->visit(w->context, v->operators[i].uid, name,
					w->value_of(w, offset + k, name));
		}
		offset += 2 + d->counter_count;
	}
}

void job_master_visit_counters(const struct job_master *jm,
		void (*visit)(void *context, const char *uid, const char *name, uint64_t value),
		void *context)
{
	for (uint32_t place = 0; place < jm->spec->vertex_count; place++)
		walk_counters(&(struct counter_walk){
				jm, place, UINT32_MAX, combine, visit, context});
}

void job_master_visit_subtask_counters(const struct job_master *jm, uint32_t place,
		uint32_t subtask_index,
		void (*visit)(void *context, const char *uid, const char *name, uint64_t value),
		void *context)
{
	walk_counters(&(struct counter_walk){jm, place,
			execution_graph_subtask(jm->graph, place, subtask_index), of_subtask, visit,
			context});
}

struct totals {
	const struct job_master *jm;
	struct job_counts *counts;
};

static void add_total(void *context, const char *uid, const char *name, uint64_t value)
{
	struct totals *t = context;
	const struct job_operator *op = job_spec_find(t->jm->spec, uid, NULL);

	CHECK(op != NULL);
	if (op->table->role == WEIR_SOURCE && strcmp(name, "records_out") == 0)
		t->counts->records_in += value;
	if (op->table->role == WEIR_SINK && strcmp(name, "records_in") == 0)
		t->counts->records_out += value;
}

static int by_value(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return x < y ? -1 : x > y;
}

static void fill_durations(const struct job_master *jm, struct job_counts *c)
{
	int32_t sorted[JOB_RECENT_MAX];
	uint32_t n = jm->recent_count < JOB_RECENT_MAX ? jm->recent_count : JOB_RECENT_MAX;

	c->checkpoint_p50_ms = c->checkpoint_p99_ms = c->checkpoint_last_ms = -1;
	if (n == 0)
		return;
	memcpy(sorted, jm->recent_ms, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_value);
	/* Nearest rank. */
	c->checkpoint_p50_ms = sorted[(n * 50 + 99) / 100 - 1];
	c->checkpoint_p99_ms = sorted[(n * 99 + 99) / 100 - 1];
	c->checkpoint_last_ms = jm->recent_ms[(jm->recent_count - 1) % JOB_RECENT_MAX];
}

struct job_counts job_master_counts(const struct job_master *jm)
{
	struct checkpoint_counts k = checkpoint_stats_counts(
			checkpoint_coordinator_stats(jm->checkpoints));
	struct job_counts c = {
			.checkpoints_completed = jm->completed_before + k.completed,
			.checkpoints_failed = jm->failed_before + k.failed - jm->failed_wanted,
			.restarts = jm->record->restarts,
			.stale_messages = jm->stale_count,
	};

	job_master_visit_counters(jm, add_total, &(struct totals){jm, &c});
	fill_durations(jm, &c);
	return c;
}
