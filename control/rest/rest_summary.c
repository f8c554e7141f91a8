/* rest_summary: what `weir run` shows of a job, and what each subtask last said. */

#include "control/config/job_file.h"
#include "control/coordinator/job_places.h"
#include "control/rest/rest_internal.h"
#include "dataplane/base/limits.h"

#include <stdio.h>
#include <string.h>

#define UNPARSED "unparsed."

struct counters {
	json_t *by_uid, *unparsed;
};

/* JSON's integers end at 2^63.  A digest is any of 64 bits, so it is text in hex. */
static json_t *counter_json(const char *name, uint64_t value)
{
	bool is_digest = strncmp(name, "digest_", 7) == 0;
	char text[32];

	if (!is_digest && value <= INT64_MAX)
		return json_integer((json_int_t)value);
	snprintf(text, sizeof(text), is_digest ? "0x%016llx" : "%llu", (unsigned long long)value);
	return json_string(text);
}

static void add_counter(void *context, const char *uid, const char *name, uint64_t value)
{
	struct counters *c = context;

	if (json_object_get(c->by_uid, uid) == NULL)
		json_object_set_new(c->by_uid, uid, json_object());
	json_object_set_new(json_object_get(c->by_uid, uid), name, counter_json(name, value));
	if (strncmp(name, UNPARSED, strlen(UNPARSED)) != 0)
		return;
	/* Several operators may count one reason. */
	const char *reason = name + strlen(UNPARSED);
	json_int_t before = json_integer_value(json_object_get(c->unparsed, reason));
	json_object_set_new(c->unparsed, reason, json_integer(before + (json_int_t)value));
}

/* What it is down for; one that it has got over is no failure of the job. */
static json_t *failure_of(const struct job_master *jm)
{
	const struct job_failure *f = job_master_failure(jm, 0);
	enum job_status status = job_master_status(jm);
	bool is_down = status == JOB_STATUS_FAILED || status == JOB_STATUS_FAILING ||
			status == JOB_STATUS_RESTARTING;

	return f == NULL || !is_down ? json_null() : rest_text(f->text);
}

static json_t *ms_or_null(int64_t ms)
{
	return ms < 0 ? json_null() : json_integer((json_int_t)ms);
}

static json_t *text_or_null(const char *text)
{
	return text == NULL ? json_null() : rest_text(text);
}

/* `failure`, `waiting` and what is in `counters` and `tasks` are taken. */
struct summary {
	struct job_id id;
	struct job_watch watch;
	const char *state, *name;
	struct job_counts counts;
	struct counters counters;
	json_t *failure, *waiting, *tasks;
	bool is_refused;
};

static void answer(struct rest_call *call, const struct summary *s)
{
	const struct job_counts *c = &s->counts;
	char id[ID128_TEXT_BYTES];

	json_t *checkpoints = json_pack("{s:o, s:o, s:i, s:o, s:o, s:I, s:I, s:o, s:o, s:o}",
			"since_completed_ms", ms_or_null(s->watch.since_completed_ms), "overdue",
			text_or_null(s->watch.overdue), "failed_in_a_row",
			(int)s->watch.failed_count, "failed_id",
			s->watch.failure == NULL ? json_null()
						 : json_integer(s->watch.failed_id),
			"failure", text_or_null(s->watch.failure), "completed",
			(json_int_t)c->checkpoints_completed, "failed",
			(json_int_t)c->checkpoints_failed, "p50_ms",
			ms_or_null(c->checkpoint_p50_ms), "p99_ms",
			ms_or_null(c->checkpoint_p99_ms), "last_ms",
			ms_or_null(c->checkpoint_last_ms));
	id128_print(s->id.id, id);
	rest_answer(call, 200,
			json_pack("{s:s, s:s, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:i, s:I, s:o, "
				  "s:o, s:b, s:o, s:o}",
					"state", s->state, "job_id", id, "name", rest_text(s->name),
					"records_in", (json_int_t)c->records_in, "records_out",
					(json_int_t)c->records_out, "unparsed",
					s->counters.unparsed, "ledger",
					rest_ledger(s->counters.by_uid), "counters",
					s->counters.by_uid,
					"checkpoints", checkpoints, "restarts", (int)c->restarts,
					"stale_messages", (json_int_t)c->stale_messages,
					"failure", s->failure, "waiting", s->waiting, "refused",
					s->is_refused, "tasks", s->tasks, "link",
					rest_link_totals(call->coordinator)));
}

/* Counters of a record are named UID.COUNTER, and a uid has no dot. */
static void add_kept(struct counters *c, const Weir__NamedCount *kept)
{
	const char *dot = strchr(kept->name, '.');
	char uid[UID_BYTES_MAX];

	if (dot == NULL || (size_t)(dot - kept->name) >= sizeof(uid))
		return;
	snprintf(uid, sizeof(uid), "%.*s", (int)(dot - kept->name), kept->name);
	add_counter(c, uid, dot + 1, kept->value);
}

const char *rest_end_name(const struct ended_job *e)
{
	switch (e->record->end) {
	case WEIR__JOB_END__ENDED_FINISHED:
		return job_status_name(JOB_STATUS_FINISHED);
	case WEIR__JOB_END__ENDED_CANCELED:
		return job_status_name(JOB_STATUS_CANCELED);
	default:
		return job_status_name(JOB_STATUS_FAILED);
	}
}

static void answer_ended(struct rest_call *call)
{
	const Weir__JobRecord *r = call->ended->record;
	bool has_failed = r->end == WEIR__JOB_END__ENDED_FAILED;
	struct rest_states none = {0};
	struct summary s = {
			.id = call->ended->id,
			.watch = {.since_completed_ms = -1},
			.state = rest_end_name(call->ended),
			.name = r->name,
			.counts = {r->records_in, r->records_out, r->checkpoints_completed,
					r->checkpoints_failed, r->restarts, -1, -1, -1, 0},
			.counters = {json_object(), json_object()},
			.failure = has_failed ? rest_text(r->failure) : json_null(),
			.waiting = json_null(),
			.tasks = rest_states_lower(&none),
			.is_refused = r->refused,
	};

	for (size_t i = 0; i < r->n_counters; i++)
		add_kept(&s.counters, r->counters[i]);
	answer(call, &s);
}

void rest_get_summary(struct rest_call *call)
{
	const struct job_master *jm = call->job;

	if (jm == NULL) {
		answer_ended(call);
		return;
	}
	struct rest_states states = rest_count_job(jm);
	char waiting[JOB_WAITING_BYTES];
	struct summary s = {
			.id = job_master_id(jm),
			.watch = job_master_watch(jm),
			.state = job_status_name(job_master_status(jm)),
			.name = job_master_name(jm),
			.counts = job_master_counts(jm),
			.counters = {json_object(), json_object()},
			.failure = failure_of(jm),
			.waiting = job_is_waiting(jm, waiting) ? rest_text(waiting) : json_null(),
			.tasks = rest_states_lower(&states),
			.is_refused = job_master_is_restore_refused(jm),
	};

	job_master_visit_counters(jm, add_counter, &s.counters);
	answer(call, &s);
}

static json_t *row(const struct job_master *jm, uint32_t place, uint32_t index)
{
	const struct execution *e = job_master_execution(jm, place, index);
	const struct execution_numbers *n = &e->numbers;

	return json_pack("{s:o, s:i, s:i, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			"vertex", rest_text(rest_vertex(jm, place)->uid), "subtask", (int)index,
			"attempt", (int)e->attempt_number, "state",
			execution_state_name(e->state), "records_in", (json_int_t)n->records_in,
			"records_out", (json_int_t)n->records_out, "bytes_in",
			(json_int_t)n->bytes_in, "bytes_out", (json_int_t)n->bytes_out, "busy_ns",
			(json_int_t)n->busy_ns, "idle_ns", (json_int_t)n->idle_ns,
			"backpressured_ns", (json_int_t)n->backpressured_ns, "watermark",
			(json_int_t)n->watermark, "read_at_ns", (json_int_t)n->read_at_ns);
}

void rest_get_numbers(struct rest_call *call)
{
	const struct job_spec *spec = job_master_spec(call->job);
	json_t *rows = json_array();

	for (uint32_t place = 0; place < spec->vertex_count; place++)
		for (uint32_t i = 0; i < rest_vertex(call->job, place)->parallelism; i++)
			json_array_append_new(rows, row(call->job, place, i));
	rest_answer(call, 200, rows);
}
