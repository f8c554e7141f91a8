/* rest_checkpoint: one checkpoint by vertex and by subtask (semantics 24.1, 24.2). */

#include "control/config/job_file.h"
#include "control/coordinator/checkpoint_stats.h"
#include "control/rest/rest_internal.h"

#include <stdlib.h>
#include <string.h>

/* What the subtasks of one vertex make together. */
struct vertex_sums {
	int64_t latest_ack_ms, checkpointed, state, processed, persisted;
	uint32_t acknowledged, count;
};

/* The first subtask of a place; subtasks are counted through the places. */
static uint32_t first_subtask(const struct job_master *jm, uint32_t place)
{
	uint32_t first = 0;

	for (uint32_t p = 0; p < place; p++)
		first += rest_vertex_at(jm, p)->parallelism;
	return first;
}

static struct vertex_sums sums_of(
		const struct job_master *jm, const struct checkpoint_record *r, uint32_t place)
{
	struct vertex_sums v = {.latest_ack_ms = -1,
			.count = rest_vertex_at(jm, place)->parallelism};
	uint32_t first = first_subtask(jm, place);

	for (uint32_t i = first; i < first + v.count && i < r->subtask_count; i++) {
		const struct subtask_stats *s = &r->subtasks[i];

		if (s->ack_ms < 0)
			continue;
		v.acknowledged += !s->is_aborted;
		if (s->ack_ms > v.latest_ack_ms)
			v.latest_ack_ms = s->ack_ms;
		v.checkpointed += s->metrics.checkpointed_bytes;
		v.state += s->metrics.state_bytes;
		v.processed += s->metrics.processed_bytes;
		v.persisted += s->metrics.persisted_bytes;
	}
	return v;
}

static const char *status_of(const struct checkpoint_record *r, const struct vertex_sums *v)
{
	if (r->status == CHECKPOINT_FAILED)
		return "FAILED";
	return v->acknowledged == v->count ? "COMPLETED" : "IN_PROGRESS";
}

static json_t *task_object(
		const struct job_master *jm, const struct checkpoint_record *r, uint32_t place)
{
	struct vertex_sums v = sums_of(jm, r, place);

	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:i, s:i}", "id",
			rest_int(r->id), "status", status_of(r, &v), "latest_ack_timestamp",
			rest_int(v.latest_ack_ms), "checkpointed_size", rest_int(v.checkpointed),
			"state_size", rest_int(v.state), "end_to_end_duration",
			rest_int(v.latest_ack_ms < 0 ? -1 : v.latest_ack_ms - r->trigger_ms),
			"alignment_buffered", 0, "processed_data", rest_int(v.processed),
			"persisted_data", rest_int(v.persisted), "num_subtasks", (int)v.count,
			"num_acknowledged_subtasks", (int)v.acknowledged);
}

/* The record of a path's checkpoint id; NULL after rest_refuse. */
static const struct checkpoint_record *find_record(struct rest_exchange *x, json_t **refusal)
{
	char *end;
	long long id = strtoll(x->arguments[0], &end, 10);

	if (end == x->arguments[0] || *end != 0 || id <= 0) {
		*refusal = rest_refuse(x, 400, "checkpoint %s: expected a number",
				x->arguments[0]);
		return NULL;
	}
	const struct checkpoint_record *r =
			checkpoint_stats_find(job_master_checkpoints(x->job), id);
	if (r == NULL)
		*refusal = rest_refuse(x, 404, "Could not find checkpointing statistics for "
				"checkpoint %lld.", id);
	return r;
}

json_t *rest_checkpoint_details(struct rest_exchange *x)
{
	json_t *answer = NULL;
	const struct checkpoint_record *r = find_record(x, &answer);
	char id[ID128_TEXT_BYTES];

	if (r == NULL)
		return answer;
	answer = rest_checkpoint_object(r);
	json_t *tasks = json_object_get(answer, "tasks");
	for (uint32_t p = 0; p < job_master_spec(x->job)->vertex_count; p++) {
		rest_vertex_id(rest_vertex_at(x->job, p)->uid, id);
		json_object_set_new(tasks, id, task_object(x->job, r, p));
	}
	return answer;
}

/* ---- subtasks ---- */

static json_t *subtask_object(
		const struct checkpoint_record *r, uint32_t index, const struct subtask_stats *s)
{
	const struct subtask_metrics *m = &s->metrics;

	if (s->ack_ms < 0)
		return json_pack("{s:s, s:i, s:s}", "className", "pending", "index", (int)index,
				"status", "pending_or_failed");
	json_t *o = json_pack("{s:s, s:i, s:s, s:o, s:o, s:o, s:o}", "className", "completed",
			"index", (int)index, "status", "completed", "ack_timestamp",
			rest_int(s->ack_ms), "end_to_end_duration",
			rest_int(s->ack_ms - r->trigger_ms), "checkpointed_size",
			rest_int(m->checkpointed_bytes), "state_size", rest_int(m->state_bytes));
	json_object_set_new(o, "checkpoint",
			json_pack("{s:o, s:o}", "sync", rest_int(m->sync_ms), "async",
					rest_int(m->async_ms)));
	json_object_set_new(o, "alignment",
			json_pack("{s:i, s:o, s:o, s:o}", "buffered", 0, "processed",
					rest_int(m->processed_bytes), "persisted",
					rest_int(m->persisted_bytes), "duration",
					rest_int(m->alignment_ns / 1000000)));
	json_object_set_new(o, "start_delay", rest_int(m->start_delay_ns / 1000000));
	json_object_set_new(o, "unaligned_checkpoint", json_boolean(m->is_unaligned));
	json_object_set_new(o, "aborted", json_boolean(s->is_aborted));
	return o;
}

/* One value of each acknowledged subtask. */
typedef int64_t (*value_of)(const struct checkpoint_record *r, const struct subtask_stats *s);

static int64_t checkpointed(const struct checkpoint_record *r, const struct subtask_stats *s)
{
	(void)r;
	return s->metrics.checkpointed_bytes;
}

static int64_t state(const struct checkpoint_record *r, const struct subtask_stats *s)
{
	(void)r;
	return s->metrics.state_bytes;
}

static int64_t duration(const struct checkpoint_record *r, const struct subtask_stats *s)
{
	return s->ack_ms - r->trigger_ms;
}

static int64_t sync_ms(const struct checkpoint_record *r, const struct subtask_stats *s)
{
	(void)r;
	return s->metrics.sync_ms;
}

static int64_t async_ms(const struct checkpoint_record *r, const struct subtask_stats *s)
{
	(void)r;
	return s->metrics.async_ms;
}

static int64_t processed(const struct checkpoint_record *r, const struct subtask_stats *s)
{
	(void)r;
	return s->metrics.processed_bytes;
}

static int64_t persisted(const struct checkpoint_record *r, const struct subtask_stats *s)
{
	(void)r;
	return s->metrics.persisted_bytes;
}

static int64_t alignment(const struct checkpoint_record *r, const struct subtask_stats *s)
{
	(void)r;
	return s->metrics.alignment_ns / 1000000;
}

static int64_t start_delay(const struct checkpoint_record *r, const struct subtask_stats *s)
{
	(void)r;
	return s->metrics.start_delay_ns / 1000000;
}

static int64_t nothing(const struct checkpoint_record *r, const struct subtask_stats *s)
{
	(void)r;
	(void)s;
	return 0;
}

struct range {
	const struct checkpoint_record *record;
	uint32_t first, count;
};

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Nearest rank in a sorted list. */
static double quantile(const int64_t *values, uint32_t n, double q)
{
	uint32_t rank = n == 0 ? 0 : (uint32_t)(q * n + 0.999999);

	return n == 0 ? 0 : (double)values[rank == 0 ? 0 : rank > n ? n - 1 : rank - 1];
}

static json_t *spread(const struct range *range, value_of value)
{
	int64_t *values = calloc(range->count + 1, sizeof(*values)), sum = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; values != NULL && i < range->count; i++) {
		const struct subtask_stats *s = &range->record->subtasks[range->first + i];

		if (s->ack_ms < 0)
			continue;
		values[n] = value(range->record, s);
		sum += values[n++];
	}
	if (n > 0)
		qsort(values, n, sizeof(*values), by_value);
	json_t *o = json_pack("{s:o, s:o, s:o, s:f, s:f, s:f, s:f, s:f}", "min",
			rest_int(n == 0 ? 0 : values[0]), "max",
			rest_int(n == 0 ? 0 : values[n - 1]), "avg",
			rest_int(n == 0 ? 0 : sum / n), "p50", quantile(values, n, 0.5),
			"p90", quantile(values, n, 0.9), "p95", quantile(values, n, 0.95), "p99",
			quantile(values, n, 0.99), "p999", quantile(values, n, 0.999));
	free(values);
	return o;
}

static json_t *summary_object(const struct range *range)
{
	return json_pack("{s:o, s:o, s:o, s:{s:o, s:o}, s:{s:o, s:o, s:o, s:o}, s:o}",
			"checkpointed_size", spread(range, checkpointed), "state_size",
			spread(range, state), "end_to_end_duration", spread(range, duration),
			"checkpoint_duration", "sync", spread(range, sync_ms), "async",
			spread(range, async_ms), "alignment", "buffered", spread(range, nothing),
			"processed", spread(range, processed), "persisted",
			spread(range, persisted), "duration", spread(range, alignment),
			"start_delay", spread(range, start_delay));
}

/* The place of a vertex id, or UINT32_MAX. */
static uint32_t find_place(const struct job_master *jm, const char *vertex)
{
	char id[ID128_TEXT_BYTES];

	for (uint32_t p = 0; p < job_master_spec(jm)->vertex_count; p++) {
		const char *uid = rest_vertex_at(jm, p)->uid;

		rest_vertex_id(uid, id);
		if (strcmp(vertex, id) == 0 || strcmp(vertex, uid) == 0)
			return p;
	}
	return UINT32_MAX;
}

json_t *rest_checkpoint_subtasks(struct rest_exchange *x)
{
	json_t *answer = NULL;
	const struct checkpoint_record *r = find_record(x, &answer);

	if (r == NULL)
		return answer;
	uint32_t place = find_place(x->job, x->arguments[1]);
	if (place == UINT32_MAX)
		return rest_refuse(x, 404, "There is no vertex %s in the job.", x->arguments[1]);
	struct range range = {r, first_subtask(x->job, place),
			rest_vertex_at(x->job, place)->parallelism};
	json_t *subtasks = json_array();
	for (uint32_t i = 0; i < range.count; i++)
		json_array_append_new(subtasks,
				subtask_object(r, i, &r->subtasks[range.first + i]));
	answer = task_object(x->job, r, place);
	json_object_set_new(answer, "summary", summary_object(&range));
	json_object_set_new(answer, "subtasks", subtasks);
	return answer;
}
