/* job_requests: checkpoints and savepoints that somebody asked for, and the last checkpoint of a
 * job at its end. */

#include "control/config/config.h"
#include "control/coordinator/job_master_internal.h"
#include "control/net/loop.h"
#include "dataplane/base/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define FINAL_RETRY_NS UINT64_C(1000000000)

/* ---- the table ---- */

struct job_request *job_find_request(struct job_master *jm, struct id128 id)
{
	for (uint32_t i = 0; i < JOB_REQUESTS_MAX; i++)
		if (jm->requests[i].is_used && id128_is_equal(jm->requests[i].id, id))
			return &jm->requests[i];
	return NULL;
}

struct job_request *job_request_of(struct job_master *jm, uint64_t handle)
{
	for (uint32_t i = 0; i < JOB_REQUESTS_MAX; i++) {
		struct job_request *r = &jm->requests[i];

		if (r->is_used && !r->is_done && r->handle == handle && handle != 0)
			return r;
	}
	return NULL;
}

void job_make_request_id(struct job_master *jm, struct id128 *id)
{
	static const struct id128 none;

	while (id128_is_equal(*id, none))
		for (int i = 0; i < 16; i += 8)
			memcpy(id->bytes + i, &(uint64_t){prng_next(&jm->prng)}, 8);
}

struct job_request *job_add_request(struct job_master *jm, struct id128 id)
{
	for (uint32_t i = 0; i < JOB_REQUESTS_MAX; i++) {
		struct job_request *r = &jm->requests[jm->request_next++ % JOB_REQUESTS_MAX];

		if (r->is_used && !r->is_done)
			continue;
		memset(r, 0, sizeof(*r));
		r->is_used = true;
		r->id = id;
		return r;
	}
	return NULL;
}

void job_fail_request(struct job_request *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->text, sizeof(r->text), format, args);
	va_end(args);
	r->is_done = true;
	r->is_success = false;
}

bool job_master_checkpoint_answer(
		struct job_master *jm, struct id128 id, struct checkpoint_answer *answer)
{
	struct job_request *r = job_find_request(jm, id);

	if (r == NULL)
		return false;
	r->is_told = r->is_done;
	*answer = (struct checkpoint_answer){r->is_done, r->is_success, r->is_savepoint,
			r->checkpoint_id, r->location, r->text};
	return true;
}

bool job_master_has_news(const struct job_master *jm)
{
	for (uint32_t i = 0; i < JOB_REQUESTS_MAX; i++) {
		const struct job_request *r = &jm->requests[i];

		if (r->is_used && r->is_done && !r->is_told && (r->is_stop || r->must_cancel))
			return true;
	}
	return false;
}

/* ---- asking ---- */

/* The rules are asked; a failure takes the request back. */
static int ask(struct job_master *jm, struct job_request *r, struct trigger_request *request)
{
	int rc = checkpoint_coordinator_request(
			jm->checkpoints, request, job_now(), &r->handle);
	if (rc != 0)
		r->is_used = false;
	job_pump(jm);
	return rc;
}

int job_master_checkpoint(struct job_master *jm, enum checkpoint_type type, struct id128 *id)
{
	struct trigger_request request = {
			.kind = type == CHECKPOINT_FULL ? REQUEST_FULL : REQUEST_CHECKPOINT,
	};

	job_make_request_id(jm, id);
	if (job_find_request(jm, *id) != NULL)
		return 0;
	if (jm->status != JOB_STATUS_RUNNING || jm->is_released)
		return -EAGAIN;
	struct job_request *r = job_add_request(jm, *id);
	return r == NULL ? -EAGAIN : ask(jm, r, &request);
}

/* What stands in the way of a savepoint, or 0. */
static int refuse_savepoint(struct job_master *jm, const struct savepoint_order *order,
		char text[JOB_TEXT_BYTES])
{
	const char *configured = config_text(
			jm->config, "execution.checkpointing.savepoint-dir");

	if (order->directory == NULL && (configured == NULL || configured[0] == 0)) {
		snprintf(text, JOB_TEXT_BYTES,
				"a savepoint needs a target directory, or a default one: "
				"execution.checkpointing.savepoint-dir");
		return -EINVAL;
	}
	if (order->directory != NULL && strlen(order->directory) >= STORAGE_PATH_BYTES / 2) {
		snprintf(text, JOB_TEXT_BYTES, "the path of the target directory is too long");
		return -EINVAL;
	}
	if (job_status_is_terminal(jm->status) || jm->is_ending || jm->is_released) {
		snprintf(text, JOB_TEXT_BYTES, "job %s %s: there is nothing left to save",
				jm->spec->name,
				job_status_is_terminal(jm->status) ? "has ended" : "is at its end");
		return -EAGAIN;
	}
	if (jm->stop.step != STOP_NONE) {
		snprintf(text, JOB_TEXT_BYTES, "job %s is being stopped already", jm->spec->name);
		return -EBUSY;
	}
	return 0;
}

static int begin_savepoint(struct job_master *jm, const struct savepoint_order *order,
		struct job_request *r, char text[JOB_TEXT_BYTES])
{
	struct trigger_request request = {
			.kind = REQUEST_SAVEPOINT,
			.format = order->is_native ? FORMAT_NATIVE : FORMAT_CANONICAL,
			.directory = order->directory,
	};

	r->is_savepoint = true;
	r->must_cancel = order->end == SAVEPOINT_CANCEL;
	if (r->must_cancel)
		checkpoint_coordinator_stop(jm->checkpoints, job_now());
	int rc = ask(jm, r, &request);
	if (rc != 0)
		snprintf(text, JOB_TEXT_BYTES, "no savepoint could be begun: %s", strerror(-rc));
	return rc;
}

int job_master_savepoint(struct job_master *jm, const struct savepoint_order *order,
		struct id128 *id, char text[JOB_TEXT_BYTES])
{
	bool is_stop = order->end == SAVEPOINT_SUSPEND || order->end == SAVEPOINT_DRAIN;

	job_make_request_id(jm, id);
	if (job_find_request(jm, *id) != NULL)
		return 0;
	int rc = refuse_savepoint(jm, order, text);
	if (rc != 0)
		return rc;
	if (is_stop)
		return job_stop_with_savepoint(jm, order, *id, text);
	if (jm->status != JOB_STATUS_RUNNING) {
		snprintf(text, JOB_TEXT_BYTES, "job %s is %s; a savepoint needs it RUNNING",
				jm->spec->name, job_status_name(jm->status));
		return -EAGAIN;
	}
	struct job_request *r = job_add_request(jm, *id);
	if (r != NULL)
		return begin_savepoint(jm, order, r, text);
	snprintf(text, JOB_TEXT_BYTES, "too many requests are under way");
	return -EAGAIN;
}

void job_master_set_periodic(struct job_master *jm, bool is_on)
{
	jm->is_periodic_off = !is_on;
	if (is_on)
		job_check_running(jm);
	else
		checkpoint_coordinator_stop(jm->checkpoints, job_now());
	job_pump(jm);
}

bool job_master_is_retained(const struct job_master *jm, int64_t checkpoint_id)
{
	const struct completed_checkpoint *c;

	for (uint32_t i = 0; (c = checkpoint_coordinator_retained(jm->checkpoints, i)) != NULL; i++)
		if (c->id == checkpoint_id)
			return true;
	return false;
}

/* What it was told to begin from counts until something of it is retained. */
void job_master_visit_snapshots(const struct job_master *jm,
		void (*visit)(void *context, const char *location), void *context)
{
	const char *asked = jm->record->restore;
	const struct completed_checkpoint *c;
	uint32_t count = 0;

	if (job_status_is_terminal(jm->status))
		return;
	while ((c = checkpoint_coordinator_retained(jm->checkpoints, count)) != NULL) {
		visit(context, c->location);
		count++;
	}
	if (jm->record->stop_location[0] != 0)
		visit(context, jm->record->stop_location);
	if (asked[0] != '/' && config_is_set(jm->config, "execution.state-recovery.path"))
		asked = config_text(jm->config, "execution.state-recovery.path");
	if (count == 0 && asked[0] == '/')
		visit(context, asked);
}

/* ---- outcomes ---- */

static const char *why(const struct checkpoint_decision *d)
{
	return d->text == NULL ? checkpoint_failure_reason_text(d->reason) : d->text;
}

/* A periodic one that was not begun, for the next will be; and what the end of a run cut off.  When
 * that goes on for long the watchdog tells. */
static bool is_no_news(const struct checkpoint_decision *d)
{
	switch (d->reason) {
	case REASON_COORDINATOR_SUSPEND:
	case REASON_COORDINATOR_SHUTDOWN:
		return true;
	case REASON_IO_EXCEPTION:
		return false;
	default:
		return d->is_periodic && checkpoint_failure_reason_is_preflight(d->reason);
	}
}

/* SV-2: the job goes the way that was asked for, or on. */
static void end_or_go_on(struct job_master *jm, const struct job_request *r)
{
	if (r->is_success)
		job_master_cancel(jm);
	else
		job_check_running(jm);
}

static void settle(struct job_master *jm, struct job_request *r,
		const struct checkpoint_decision *d)
{
	r->checkpoint_id = d->checkpoint_id;
	if (d->is_success && r->is_savepoint)
		snprintf(r->location, sizeof(r->location), "%s", d->path);
	if (r->is_stop) {
		job_stop_on_saved(jm, r, d);
		return;
	}
	if (d->is_success)
		r->is_done = r->is_success = true;
	else
		job_fail_request(r, "%s: %s", checkpoint_failure_reason_name(d->reason), why(d));
	if (r->must_cancel)
		end_or_go_on(jm, r);
}

void job_on_request_done(struct job_master *jm, const struct checkpoint_decision *d)
{
	if (!d->is_success && !is_no_news(d))
		job_note_failed_checkpoint(jm, d->checkpoint_id, why(d));
	if (!d->is_success)
		job_retry_final(jm);
	struct job_request *r = job_request_of(jm, d->request);
	if (r != NULL)
		settle(jm, r, d);
}

/* ---- the last checkpoint of a job at its end ---- */

static bool must_have_final(const struct job_master *jm)
{
	return jm->status == JOB_STATUS_RUNNING && !jm->is_released &&
			jm->stop.step < STOP_SAVING && execution_graph_is_ended(jm->graph);
}

void job_retry_final(struct job_master *jm)
{
	if (must_have_final(jm))
		loop_timer_set(jm->final_timer, FINAL_RETRY_NS);
}

void job_hasten_final(struct job_master *jm)
{
	if (must_have_final(jm))
		loop_timer_set(jm->final_timer, 0);
}

void job_on_final_timer(void *context)
{
	struct job_master *jm = context;
	uint64_t handle;

	if (!must_have_final(jm))
		return;
	if (checkpoint_coordinator_pending(jm->checkpoints, 0) == NULL &&
			!checkpoint_coordinator_is_triggering(jm->checkpoints))
		(void)checkpoint_coordinator_request(jm->checkpoints,
				&(struct trigger_request){.kind = REQUEST_CHECKPOINT}, job_now(),
				&handle);
	job_pump(jm);
}
