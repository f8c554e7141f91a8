/* rest_checkpoints: the checkpoints of a job, their settings, and asking for one. */

#include "control/config/config.h"
#include "control/coordinator/checkpoint_stats.h"
#include "control/rest/rest_internal.h"

#include <errno.h>
#include <string.h>

static const char *status_name(enum checkpoint_status status)
{
	return status == CHECKPOINT_COMPLETED ? "COMPLETED"
			: status == CHECKPOINT_FAILED ? "FAILED"
						      : "IN_PROGRESS";
}

static const char *class_name(enum checkpoint_status status)
{
	return status == CHECKPOINT_COMPLETED ? "completed"
			: status == CHECKPOINT_FAILED ? "failed"
						      : "in_progress";
}

static const char *type_name(const struct checkpoint_record *r)
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

json_t *rest_checkpoint_object(const struct checkpoint_record *r)
{
	json_t *o = json_pack("{s:s, s:o, s:s, s:b, s:o, s:o, s:o}", "className",
			class_name(r->status), "id", rest_int(r->id), "status",
			status_name(r->status), "is_savepoint",
			checkpoint_properties_is_savepoint(&r->properties), "savepointFormat",
			format_of(r), "trigger_timestamp", rest_int(r->trigger_ms),
			"latest_ack_timestamp", rest_int(r->latest_ack_ms));

	json_object_set_new(o, "checkpointed_size", rest_int(r->checkpointed_bytes));
	json_object_set_new(o, "state_size", rest_int(r->state_bytes));
	json_object_set_new(o, "end_to_end_duration", rest_int(checkpoint_record_duration_ms(r)));
	json_object_set_new(o, "alignment_buffered", json_integer(0));
	json_object_set_new(o, "processed_data", rest_int(r->processed_bytes));
	json_object_set_new(o, "persisted_data", rest_int(r->persisted_bytes));
	json_object_set_new(o, "num_subtasks", json_integer(r->planned_count));
	json_object_set_new(o, "num_acknowledged_subtasks", json_integer(r->acknowledged_count));
	json_object_set_new(o, "checkpoint_type", json_string(type_name(r)));
	json_object_set_new(o, "tasks", json_object());
	if (r->status == CHECKPOINT_COMPLETED) {
		json_object_set_new(o, "external_path",
				r->location == NULL ? json_null()
						    : json_sprintf("file:%s", r->location));
		json_object_set_new(o, "discarded", json_false());
	} else if (r->status == CHECKPOINT_FAILED) {
		json_object_set_new(o, "failure_timestamp", rest_int(r->end_ms));
		json_object_set_new(o, "failure_message",
				r->failure_message == NULL ? json_null()
							   : json_string(r->failure_message));
	}
	return o;
}

/* ---- all of a job ---- */

static json_t *summary_object(const struct histogram *h)
{
	bool is_empty = h->count == 0;

	return json_pack("{s:o, s:o, s:o, s:f, s:f, s:f, s:f, s:f}", "min",
			rest_int(is_empty ? 0 : h->min), "max", rest_int(is_empty ? 0 : h->max),
			"avg", rest_int((int64_t)histogram_mean(h)), "p50",
			(double)histogram_quantile(h, 0.5), "p90",
			(double)histogram_quantile(h, 0.9), "p95",
			(double)histogram_quantile(h, 0.95), "p99",
			(double)histogram_quantile(h, 0.99), "p999",
			(double)histogram_quantile(h, 0.999));
}

static json_t *summaries_object(const struct checkpoint_stats *s)
{
	static const struct {
		const char *name;
		enum checkpoint_summary which;
	} rows[] = {
			{"checkpointed_size", SUMMARY_CHECKPOINTED_BYTES},
			{"state_size", SUMMARY_STATE_BYTES},
			{"end_to_end_duration", SUMMARY_DURATION_MS},
			{"processed_data", SUMMARY_PROCESSED_BYTES},
			{"persisted_data", SUMMARY_PERSISTED_BYTES},
	};
	static const struct histogram none;
	json_t *o = json_object();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		json_object_set_new(o, rows[i].name,
				summary_object(checkpoint_stats_summary(s, rows[i].which)));
	json_object_set_new(o, "alignment_buffered", summary_object(&none));
	return o;
}

static json_t *object_or_null(const struct checkpoint_record *r)
{
	return r == NULL ? json_null() : rest_checkpoint_object(r);
}

static json_t *restored_object(const struct checkpoint_stats *s)
{
	const struct restored_stats *r = checkpoint_stats_restored(s);

	if (r == NULL || r->id == 0)
		return json_null();
	return json_pack("{s:o, s:o, s:b, s:o}", "id", rest_int(r->id), "restore_timestamp",
			rest_int(r->restore_ms), "is_savepoint", r->is_savepoint, "external_path",
			r->location == NULL ? json_null() : json_sprintf("file:%s", r->location));
}

json_t *rest_checkpoints(struct rest_exchange *x)
{
	const struct checkpoint_stats *s = job_master_checkpoints(x->job);
	struct checkpoint_counts c = checkpoint_stats_counts(s);
	const struct checkpoint_record *r;
	json_t *history = json_array();

	for (uint32_t i = 0; (r = checkpoint_stats_history(s, i)) != NULL; i++)
		json_array_append_new(history, rest_checkpoint_object(r));
	json_t *counts = json_pack("{s:o, s:o, s:o, s:o, s:o}", "restored",
			rest_int((int64_t)c.restored), "total", rest_int((int64_t)c.total),
			"in_progress", rest_int((int64_t)c.in_progress), "completed",
			rest_int((int64_t)c.completed), "failed", rest_int((int64_t)c.failed));
	json_t *latest = json_pack("{s:o, s:o, s:o, s:o}", "completed",
			object_or_null(checkpoint_stats_latest_completed(s)), "savepoint",
			object_or_null(checkpoint_stats_latest_savepoint(s)), "failed",
			object_or_null(checkpoint_stats_latest_failed(s)), "restored",
			restored_object(s));
	return json_pack("{s:o, s:o, s:o, s:o}", "counts", counts, "summary", summaries_object(s),
			"latest", latest, "history", history);
}

/* ---- settings ---- */

#define CHECKPOINTING "execution.checkpointing."

static json_t *ms_of(const struct config *c, const char *key, int64_t unset)
{
	return rest_int(config_is_set(c, key) ? config_duration_ns(c, key) / 1000000 : unset);
}

json_t *rest_checkpoint_config(struct rest_exchange *x)
{
	static const char retention[] = CHECKPOINTING "externalized-checkpoint-retention";
	const struct config *c = job_master_config(x->job);
	bool is_exact = config_is_choice(c, CHECKPOINTING "mode", "EXACTLY_ONCE");
	json_t *o = json_pack("{s:s, s:o, s:o, s:o, s:I, s:{s:b, s:b}}", "mode",
			is_exact ? "exactly_once" : "at_least_once", "interval",
			ms_of(c, CHECKPOINTING "interval", INT64_MAX), "timeout",
			ms_of(c, CHECKPOINTING "timeout", 0), "min_pause",
			ms_of(c, CHECKPOINTING "min-pause", 0), "max_concurrent",
			(json_int_t)config_int(c, CHECKPOINTING "max-concurrent-checkpoints"),
			"externalization", "enabled",
			!config_is_choice(c, retention, "NO_EXTERNALIZED_CHECKPOINTS"),
			"delete_on_cancellation",
			!config_is_choice(c, retention, "RETAIN_ON_CANCELLATION"));

	json_object_set_new(o, "state_backend", json_string("HashMapStateBackend"));
	json_object_set_new(o, "checkpoint_storage", json_string("FileSystemCheckpointStorage"));
	json_object_set_new(o, "unaligned_checkpoints",
			json_boolean(config_bool(c, CHECKPOINTING "unaligned.enabled")));
	json_object_set_new(o, "tolerable_failed_checkpoints",
			rest_int(config_int(c, CHECKPOINTING "tolerable-failed-checkpoints")));
	json_object_set_new(o, "aligned_checkpoint_timeout",
			ms_of(c, CHECKPOINTING "aligned-checkpoint-timeout", 0));
	json_object_set_new(o, "checkpoints_after_tasks_finish",
			json_boolean(config_bool(
					c, CHECKPOINTING "checkpoints-after-tasks-finish")));
	json_object_set_new(o, "state_changelog_enabled", json_false());
	json_object_set_new(o, "changelog_periodic_materialization_interval",
			json_integer(600000));
	json_object_set_new(o, "changelog_storage", json_string("memory"));
	return o;
}

/* ---- asking for one ---- */

static json_t *trigger(struct rest_exchange *x, const char *type, const char *trigger_id)
{
	bool is_full = type != NULL && strcmp(type, "FULL") == 0;
	char text[ID128_TEXT_BYTES];
	struct id128 id = {0};

	if (type != NULL && !is_full && strcmp(type, "CONFIGURED") != 0)
		return rest_refuse(x, 400, "checkpointType %s: expected CONFIGURED or FULL", type);
	if (trigger_id != NULL && !id128_parse(trigger_id, &id))
		return rest_refuse(x, 400, "triggerId %s: expected 32 hex digits", trigger_id);
	int rc = job_master_checkpoint(
			x->job, is_full ? CHECKPOINT_FULL : CHECKPOINT_CONFIGURED, &id);
	if (rc != 0)
		return rest_refuse(x, 409, "no checkpoint can be taken now: the job is %s",
				rc == -EAGAIN ? job_status_name(job_master_status(x->job))
					      : strerror(-rc));
	x->status = 202;
	id128_print(id, text);
	return json_pack("{s:s}", "request-id", text);
}

json_t *rest_checkpoint_trigger(struct rest_exchange *x)
{
	json_t *answer, *body = rest_body(x, &answer);

	if (body == NULL)
		return answer;
	answer = trigger(x, json_string_value(json_object_get(body, "checkpointType")),
			json_string_value(json_object_get(body, "triggerId")));
	json_decref(body);
	return answer;
}

json_t *rest_checkpoint_request(struct rest_exchange *x)
{
	struct checkpoint_answer a;
	struct id128 id;

	if (!id128_parse(x->arguments[0], &id))
		return rest_refuse(x, 400, "%s: expected 32 hex digits", x->arguments[0]);
	if (!job_master_checkpoint_answer(x->job, id, &a))
		return rest_refuse(x, 404, "There is no checkpoint operation with triggerId=%s.",
				x->arguments[0]);
	if (!a.is_done)
		return json_pack("{s:{s:s}, s:n}", "status", "id", "IN_PROGRESS", "operation");
	if (a.is_success)
		return json_pack("{s:{s:s}, s:{s:o}}", "status", "id", "COMPLETED", "operation",
				"checkpointId", rest_int(a.checkpoint_id));
	return json_pack("{s:{s:s}, s:{s:{s:s, s:s}}}", "status", "id", "COMPLETED", "operation",
			"failureCause", "class", "CheckpointException", "stack-trace", a.text);
}
