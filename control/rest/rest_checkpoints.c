/* rest_checkpoints: the statistics of a job's checkpoints (semantics 24.1). */

#include "control/config/job_file.h"
#include "control/coordinator/checkpoint_stats.h"
#include "control/rest/rest_internal.h"

enum { NS_IN_MS = 1000000 };

/* ---- the distribution of a number over completed checkpoints ---- */

static json_t *quantile(const struct histogram *h, double q)
{
	return h->count == 0 ? json_string("NaN") : json_real((double)histogram_quantile(h, q));
}

static json_t *distribution(const struct histogram *h)
{
	return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "min",
			(json_int_t)(h->count == 0 ? 0 : h->min), "max",
			(json_int_t)(h->count == 0 ? 0 : h->max), "avg",
			(json_int_t)histogram_mean(h), "p50", quantile(h, 0.5), "p90",
			quantile(h, 0.9), "p95", quantile(h, 0.95), "p99", quantile(h, 0.99),
			"p999", quantile(h, 0.999));
}

static json_t *nothing_buffered(void)
{
	return json_pack("{s:i, s:i, s:i, s:f, s:f, s:f, s:f, s:f}", "min", 0, "max", 0, "avg", 0,
			"p50", 0.0, "p90", 0.0, "p95", 0.0, "p99", 0.0, "p999", 0.0);
}

static json_t *summary(const struct checkpoint_stats *s)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "checkpointed_size",
			distribution(checkpoint_stats_summary(s, SUMMARY_CHECKPOINTED_BYTES)),
			"state_size",
			distribution(checkpoint_stats_summary(s, SUMMARY_STATE_BYTES)),
			"end_to_end_duration",
			distribution(checkpoint_stats_summary(s, SUMMARY_DURATION_MS)),
			"alignment_buffered", nothing_buffered(), "processed_data",
			distribution(checkpoint_stats_summary(s, SUMMARY_PROCESSED_BYTES)),
			"persisted_data",
			distribution(checkpoint_stats_summary(s, SUMMARY_PERSISTED_BYTES)));
}

/* ---- one checkpoint ---- */

static const char *type_of(const struct checkpoint_record *r)
{
	if (checkpoint_properties_is_synchronous(&r->properties))
		return "SYNC_SAVEPOINT";
	if (checkpoint_properties_is_savepoint(&r->properties))
		return "SAVEPOINT";
	return r->is_unaligned ? "UNALIGNED_CHECKPOINT" : "CHECKPOINT";
}

static json_t *format_of(const struct checkpoint_record *r)
{
	if (!checkpoint_properties_is_savepoint(&r->properties))
		return json_null();
	return json_string(r->properties.format == FORMAT_NATIVE ? "NATIVE" : "CANONICAL");
}

/* What Flink has not. */
static void add_own(const struct job_master *jm, json_t *json, const struct checkpoint_record *r)
{
	char text[SUBTASK_TEXT_BYTES];
	uint32_t slowest = checkpoint_record_slowest(r);

	if (r->status != CHECKPOINT_COMPLETED)
		json_object_set_new(json, "phase", json_string(checkpoint_phase_name(r->phase)));
	json_object_set_new(json, "tasks_triggered_ns", json_integer((json_int_t)r->tasks_ns));
	json_object_set_new(json, "slowest_subtask",
			slowest == UINT32_MAX
					? json_null()
					: rest_text(job_master_print_subtask(jm, slowest, text)));
}

/* `tasks` is taken. */
static json_t *checkpoint(const struct job_master *jm, const struct checkpoint_record *r,
		json_t *tasks)
{
	static const char *const classes[] = {"in_progress", "completed", "failed"};
	static const char *const statuses[] = {"IN_PROGRESS", "COMPLETED", "FAILED"};
	json_t *json = json_pack("{s:s, s:I, s:s, s:b, s:o, s:I, s:I, s:I, s:I, s:I, s:i, s:I, "
				 "s:I, s:i, s:i, s:s, s:o}",
			"className", classes[r->status], "id", (json_int_t)r->id, "status",
			statuses[r->status], "is_savepoint",
			checkpoint_properties_is_savepoint(&r->properties), "savepointFormat",
			format_of(r), "trigger_timestamp", (json_int_t)r->trigger_ms,
			"latest_ack_timestamp", (json_int_t)r->latest_ack_ms, "checkpointed_size",
			(json_int_t)r->checkpointed_bytes, "state_size",
			(json_int_t)r->state_bytes, "end_to_end_duration",
			(json_int_t)checkpoint_record_duration_ms(r), "alignment_buffered", 0,
			"processed_data", (json_int_t)r->processed_bytes, "persisted_data",
			(json_int_t)r->persisted_bytes, "num_subtasks", (int)r->planned_count,
			"num_acknowledged_subtasks", (int)r->acknowledged_count, "checkpoint_type",
			type_of(r), "tasks", tasks);

	if (r->status == CHECKPOINT_COMPLETED) {
		json_object_set_new(json, "external_path",
				rest_text(r->location != NULL ? r->location : ""));
		json_object_set_new(json, "discarded",
				json_boolean(!checkpoint_properties_is_savepoint(&r->properties) &&
						!job_master_is_retained(jm, r->id)));
	} else if (r->status == CHECKPOINT_FAILED) {
		json_object_set_new(json, "failure_timestamp", json_integer(r->end_ms));
		json_object_set_new(json, "failure_message",
				r->failure_message == NULL ? json_null()
							   : rest_text(r->failure_message));
	}
	add_own(jm, json, r);
	return json;
}

static json_t *checkpoint_or_null(
		const struct job_master *jm, const struct checkpoint_record *r)
{
	return r == NULL ? json_null() : checkpoint(jm, r, json_object());
}

static json_t *restored_or_null(const struct checkpoint_stats *s)
{
	const struct restored_stats *r = checkpoint_stats_restored(s);

	if (r->id == 0)
		return json_null();
	return json_pack("{s:I, s:I, s:b, s:o}", "id", (json_int_t)r->id, "restore_timestamp",
			(json_int_t)r->restore_ms, "is_savepoint", r->is_savepoint,
			"external_path",
			r->location == NULL ? json_null() : rest_text(r->location));
}

/* What Flink has not: whether they do what they should. */
static json_t *watchdog(const struct job_master *jm)
{
	struct job_watch w = job_master_watch(jm);

	return json_pack("{s:o, s:o, s:i, s:o}", "since_completed_ms",
			w.since_completed_ms < 0 ? json_null()
						 : json_integer(w.since_completed_ms),
			"overdue", w.overdue == NULL ? json_null() : rest_text(w.overdue),
			"failed_in_a_row", (int)w.failed_count, "failure",
			w.failure == NULL ? json_null() : rest_text(w.failure));
}

void rest_get_checkpoints(struct rest_call *call)
{
	const struct job_master *jm = call->job;
	const struct checkpoint_stats *s = job_master_checkpoints(call->job);
	struct checkpoint_counts c = checkpoint_stats_counts(s);
	const struct checkpoint_record *r;
	json_t *history = json_array();

	for (uint32_t i = 0; (r = checkpoint_stats_history(s, i)) != NULL; i++)
		json_array_append_new(history, checkpoint(jm, r, json_object()));
	json_t *counts = json_pack("{s:I, s:I, s:I, s:I, s:I}", "restored", (json_int_t)c.restored,
			"total", (json_int_t)c.total, "in_progress", (json_int_t)c.in_progress,
			"completed", (json_int_t)c.completed, "failed", (json_int_t)c.failed);
	json_t *latest = json_pack("{s:o, s:o, s:o, s:o}", "completed",
			checkpoint_or_null(jm, checkpoint_stats_latest_completed(s)), "savepoint",
			checkpoint_or_null(jm, checkpoint_stats_latest_savepoint(s)), "failed",
			checkpoint_or_null(jm, checkpoint_stats_latest_failed(s)), "restored",
			restored_or_null(s));
	rest_answer(call, 200,
			json_pack("{s:o, s:o, s:o, s:o, s:o}", "counts", counts, "summary",
					summary(s), "latest", latest, "history", history,
					"watchdog", watchdog(jm)));
}

void rest_get_checkpoint(struct rest_call *call)
{
	json_t *tasks = json_object();

	for (uint32_t place = 0; place < job_master_spec(call->job)->vertex_count; place++) {
		json_t *id = rest_vertex_id(rest_vertex(call->job, place)->uid);

		json_object_set_new(tasks, json_string_value(id),
				rest_checkpoint_task(call->job, call->checkpoint, place));
		json_decref(id);
	}
	rest_answer(call, 200, checkpoint(call->job, call->checkpoint, tasks));
}

/* ---- how they are taken ---- */

#define CHECKPOINTING "execution.checkpointing."

static json_int_t ms_of(const struct config *c, const char *key)
{
	return config_is_set(c, key) ? config_duration_ns(c, key) / NS_IN_MS : 0;
}

void rest_get_checkpoints_config(struct rest_call *call)
{
	const struct config *c = job_master_config(call->job);
	const char *retention = CHECKPOINTING "externalized-checkpoint-retention";
	json_int_t interval = ms_of(c, CHECKPOINTING "interval");
	json_t *externalization = json_pack("{s:b, s:b}", "enabled",
			!config_is_choice(c, retention, "NO_EXTERNALIZED_CHECKPOINTS"),
			"delete_on_cancellation",
			!config_is_choice(c, retention, "RETAIN_ON_CANCELLATION"));

	/* Flink's "never" is the largest number. */
	rest_answer(call, 200,
			json_pack("{s:s, s:I, s:I, s:I, s:I, s:o, s:s, s:s, s:b, s:I, s:I, s:b, "
				  "s:b, s:i, s:s}",
					"mode",
					config_is_choice(c, CHECKPOINTING "mode", "EXACTLY_ONCE")
							? "exactly_once"
							: "at_least_once",
					"interval",
					interval > 0 ? interval : (json_int_t)INT64_MAX, "timeout",
					ms_of(c, CHECKPOINTING "timeout"), "min_pause",
					ms_of(c, CHECKPOINTING "min-pause"), "max_concurrent",
					(json_int_t)config_int(c, CHECKPOINTING
							"max-concurrent-checkpoints"),
					"externalization", externalization, "state_backend",
					"HashMapStateBackend", "checkpoint_storage",
					"FileSystemCheckpointStorage", "unaligned_checkpoints",
					config_bool(c, CHECKPOINTING "unaligned.enabled"),
					"tolerable_failed_checkpoints",
					(json_int_t)config_int(c, CHECKPOINTING
							"tolerable-failed-checkpoints"),
					"aligned_checkpoint_timeout",
					ms_of(c, CHECKPOINTING "aligned-checkpoint-timeout"),
					"checkpoints_after_tasks_finish", 1,
					"state_changelog_enabled", 0,
					"changelog_periodic_materialization_interval", 0,
					"changelog_storage", "none"));
}
