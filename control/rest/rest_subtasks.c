/* rest_subtasks: one vertex of one checkpoint, subtask by subtask (semantics 24.1, 24.2). */

#include "control/config/job_file.h"
#include "control/coordinator/checkpoint_stats.h"
#include "control/rest/rest_internal.h"
#include "dataplane/base/clock.h"

enum { NS_IN_MS = 1000000 };

/* Least, most and mean of one number. */
struct span {
	int64_t min, max, sum;
	uint32_t count;
};

struct task_sum {
	uint32_t total, acknowledged;
	int64_t latest_ms;
	struct span checkpointed, state, processed, persisted;
	struct span took, sync, async, alignment, start_delay;
};

uint32_t rest_first_subtask(const struct job_master *jm, uint32_t place)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < place; i++)
		first += rest_vertex(jm, i)->parallelism;
	return first;
}

static void add(struct span *s, int64_t value)
{
	s->min = s->count == 0 || value < s->min ? value : s->min;
	s->max = s->count == 0 || value > s->max ? value : s->max;
	s->sum += value;
	s->count++;
}

static struct task_sum sum_of(
		const struct job_master *jm, const struct checkpoint_record *r, uint32_t place)
{
	struct task_sum sum = {.total = rest_vertex(jm, place)->parallelism, .latest_ms = -1};
	uint32_t first = rest_first_subtask(jm, place);

	for (uint32_t i = first; i < first + sum.total && i < r->subtask_count; i++) {
		const struct subtask_stats *s = &r->subtasks[i];
		const struct subtask_metrics *m = &s->metrics;

		if (s->ack_ms < 0 || s->is_aborted)
			continue;
		sum.acknowledged++;
		sum.latest_ms = s->ack_ms > sum.latest_ms ? s->ack_ms : sum.latest_ms;
		add(&sum.checkpointed, m->checkpointed_bytes);
		add(&sum.state, m->state_bytes);
		add(&sum.processed, m->processed_bytes);
		add(&sum.persisted, m->persisted_bytes);
		add(&sum.took, s->ack_ms - r->trigger_ms);
		add(&sum.sync, m->sync_ns / NS_IN_MS);
		add(&sum.async, m->async_ns / NS_IN_MS);
		add(&sum.alignment, m->alignment_ns / NS_IN_MS);
		add(&sum.start_delay, m->start_delay_ns / NS_IN_MS);
	}
	return sum;
}

json_t *rest_checkpoint_task(
		const struct job_master *jm, const struct checkpoint_record *r, uint32_t place)
{
	static const char *const statuses[] = {"IN_PROGRESS", "COMPLETED", "FAILED"};
	struct task_sum sum = sum_of(jm, r, place);

	return json_pack("{s:I, s:s, s:I, s:I, s:I, s:I, s:i, s:I, s:I, s:i, s:i}", "id",
			(json_int_t)r->id, "status", statuses[r->status], "latest_ack_timestamp",
			(json_int_t)sum.latest_ms, "checkpointed_size",
			(json_int_t)sum.checkpointed.sum, "state_size", (json_int_t)sum.state.sum,
			"end_to_end_duration",
			(json_int_t)(sum.latest_ms < 0 ? -1 : sum.latest_ms - r->trigger_ms),
			"alignment_buffered", 0, "processed_data", (json_int_t)sum.processed.sum,
			"persisted_data", (json_int_t)sum.persisted.sum, "num_subtasks",
			(int)sum.total, "num_acknowledged_subtasks", (int)sum.acknowledged);
}

/* Flink has no percentiles here. */
static json_t *span_json(const struct span *s)
{
	return json_pack("{s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:s}", "min", (json_int_t)s->min,
			"max", (json_int_t)s->max, "avg",
			(json_int_t)(s->count == 0 ? 0 : s->sum / s->count), "p50", "NaN", "p90",
			"NaN", "p95", "NaN", "p99", "NaN", "p999", "NaN");
}

static json_t *nothing_buffered(void)
{
	return json_pack("{s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f}", "min", 0, "max", 0, "avg", 0,
			"p50", 0.0, "p90", 0.0, "p95", 0.0, "p99", 0.0, "p999", 0.0);
}

static json_t *summary(const struct task_sum *sum)
{
	json_t *duration = json_pack("{s:o, s:o}", "sync", span_json(&sum->sync), "async",
			span_json(&sum->async));
	json_t *alignment = json_pack("{s:o, s:o, s:o, s:o}", "buffered", nothing_buffered(),
			"processed", span_json(&sum->processed), "persisted",
			span_json(&sum->persisted), "duration", span_json(&sum->alignment));

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "checkpointed_size",
			span_json(&sum->checkpointed), "state_size", span_json(&sum->state),
			"end_to_end_duration", span_json(&sum->took), "checkpoint_duration",
			duration, "alignment", alignment, "start_delay",
			span_json(&sum->start_delay));
}

/* On monotonic clocks: that of the task's host, and for the last one the coordinator's. */
static json_t *moments(const struct subtask_stats *s)
{
	const struct subtask_metrics *m = &s->metrics;

	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "heard", (json_int_t)m->heard_ns, "began",
			(json_int_t)m->began_ns, "ended", (json_int_t)m->ended_ns, "sent",
			(json_int_t)m->sent_ns, "received", (json_int_t)s->ack_ns);
}

static json_t *channels(const struct subtask_stats *s)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < s->kept_count; i++) {
		const struct channel_metrics *c = &s->kept[i];

		json_array_append_new(all, json_pack("{s:s, s:I, s:I, s:I, s:I}", "side",
						c->is_output ? "output" : "input", "gate",
						(json_int_t)c->gate, "channel",
						(json_int_t)c->channel, "buffers",
						(json_int_t)c->buf_count, "bytes",
						(json_int_t)c->bytes));
	}
	return all;
}

/* What Flink has not: more than milliseconds, which attempt it was, and how it ended. */
static void add_own(json_t *json, const struct subtask_stats *s)
{
	static const char *const modes[] = {"aligned", "unaligned", "timed out"};
	const struct subtask_metrics *m = &s->metrics;

	json_object_set_new(json, "attempt",
			json_integer((json_int_t)execution_number_of(s->attempt)));
	if (s->ack_ms < 0)
		return;
	json_object_set_new(json, "finished", json_boolean(s->is_finished));
	json_object_set_new(json, "mode", json_string(modes[m->ended]));
	json_object_set_new(json, "channel_state",
			json_pack("{s:I, s:I, s:I, s:I, s:o}", "channels",
					(json_int_t)m->channel_count, "buffers",
					(json_int_t)m->buf_count, "bytes",
					(json_int_t)m->persisted_bytes, "files",
					(json_int_t)m->file_count, "per_channel", channels(s)));
	json_object_set_new(json, "nanoseconds",
			json_pack("{s:I, s:I, s:I, s:I, s:o}", "start_delay",
					(json_int_t)m->start_delay_ns, "alignment",
					(json_int_t)m->alignment_ns, "sync",
					(json_int_t)m->sync_ns, "async",
					(json_int_t)m->async_ns, "at", moments(s)));
}

static json_t *completed(
		const struct checkpoint_record *r, const struct subtask_stats *s, uint32_t index)
{
	const struct subtask_metrics *m = &s->metrics;

	return json_pack("{s:s, s:i, s:I, s:I, s:I, s:I, s:{s:I, s:I}, s:{s:i, s:I, s:I, s:I}, "
			 "s:I, s:b, s:b, s:s}",
			"className", "completed", "index", (int)index, "ack_timestamp",
			(json_int_t)s->ack_ms, "end_to_end_duration",
			(json_int_t)(s->ack_ms - r->trigger_ms), "checkpointed_size",
			(json_int_t)m->checkpointed_bytes, "state_size",
			(json_int_t)m->state_bytes, "checkpoint", "sync",
			(json_int_t)(m->sync_ns / NS_IN_MS), "async",
			(json_int_t)(m->async_ns / NS_IN_MS), "alignment", "buffered", 0,
			"processed", (json_int_t)m->processed_bytes, "persisted",
			(json_int_t)m->persisted_bytes, "duration",
			(json_int_t)(m->alignment_ns / NS_IN_MS), "start_delay",
			(json_int_t)(m->start_delay_ns / NS_IN_MS), "unaligned_checkpoint",
			m->is_unaligned, "aborted", s->is_aborted, "status", "completed");
}

/* Of one that is waited for: what it is at. */
static void add_progress(json_t *json, struct job_master *jm, uint32_t subtask)
{
	char text[PROGRESS_TEXT_BYTES];

	checkpoint_stats_print_progress(
			job_master_checkpoints(jm), subtask, clock_wall_ms(), text);
	json_object_set_new(json, "phase", rest_text(text));
}

static json_t *subtask(struct job_master *jm, const struct checkpoint_record *r, uint32_t first,
		uint32_t index)
{
	const struct subtask_stats *s =
			first + index < r->subtask_count ? &r->subtasks[first + index] : NULL;
	json_t *json;

	if (s == NULL || s->ack_ms < 0)
		json = json_pack("{s:s, s:i, s:s}", "className", "pending", "index", (int)index,
				"status", "pending_or_failed");
	else
		json = completed(r, s, index);
	if (s != NULL)
		add_own(json, s);
	if (s != NULL && s->ack_ms < 0 && r->status == CHECKPOINT_IN_PROGRESS)
		add_progress(json, jm, first + index);
	return json;
}

void rest_get_checkpoint_subtasks(struct rest_call *call)
{
	struct task_sum sum = sum_of(call->job, call->checkpoint, call->place);
	json_t *json = rest_checkpoint_task(call->job, call->checkpoint, call->place);
	uint32_t first = rest_first_subtask(call->job, call->place);
	json_t *subtasks = json_array();

	for (uint32_t i = 0; i < sum.total; i++)
		json_array_append_new(subtasks, subtask(call->job, call->checkpoint, first, i));
	json_object_set_new(json, "summary", summary(&sum));
	json_object_set_new(json, "subtasks", subtasks);
	rest_answer(call, 200, json);
}
