/* job_stop: the end that a user asks for: with a last checkpoint, or with a savepoint (SV-3).
 *
 * A stop with savepoint waits until all tasks can take it.  Then the job's record announces where
 * it will be, before the tasks are triggered.  Its `_metadata` is what decides: once that is there
 * tasks hear of its completion, sinks commit, and there is no way back to an older checkpoint.  The
 * job does nothing but leave then, over failures of tasks and over coordinators.
 */

#include "control/coordinator/job_master_internal.h"
#include "control/metadata/metadata.h"
#include "control/net/loop.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STOP_RETRY_NS UINT64_C(50000000)
#define SAVE_RETRY_NS UINT64_C(10000000)
#define LEAVING_NS UINT64_C(1000000000)
#define STOP_PATIENCE_NS UINT64_C(10000000000)

static bool is_late(const struct job_master *jm)
{
	return clock_monotonic_ns() - jm->stop.since_ns > STOP_PATIENCE_NS;
}

/* ---- with a last checkpoint ---- */

/* Tries until a checkpoint that began after the stop has completed; tasks may be on their way up,
 * or another checkpoint may be in the way. */
static void try_checkpoint(struct job_master *jm)
{
	struct checkpoint_answer answer = {.is_done = true};
	bool has_asked = job_master_checkpoint_answer(jm, jm->stop.request, &answer);

	/* At its end all by itself: nothing is left to stop. */
	if (job_status_is_terminal(jm->status) || jm->is_released || jm->is_ending)
		return;
	if (has_asked && answer.is_done && answer.is_success) {
		job_master_cancel(jm);
		return;
	}
	if (jm->status == JOB_STATUS_RUNNING && answer.is_done && !is_late(jm)) {
		memset(&jm->stop.request, 0, sizeof(jm->stop.request));
		(void)job_master_checkpoint(jm, CHECKPOINT_CONFIGURED, &jm->stop.request);
	} else if (is_late(jm) && answer.is_done) {
		log_warn("job_master",
				"job %s stops without a final checkpoint: %s; it can go on from "
				"the last one that completed",
				jm->spec->name, has_asked ? answer.text : "it is not running");
		job_master_cancel(jm);
		return;
	}
	loop_timer_set(jm->stop_timer, STOP_RETRY_NS);
}

void job_master_stop(struct job_master *jm)
{
	if (jm->stop.step != STOP_NONE || job_status_is_terminal(jm->status))
		return;
	/* What never ran has nothing to keep, and what waits to be restarted has its newest
	 * checkpoint already. */
	if (jm->status != JOB_STATUS_RUNNING) {
		job_master_cancel(jm);
		return;
	}
	log_info("job_master", "job %s stops after a final checkpoint", jm->spec->name);
	jm->stop.step = STOP_WITH_CHECKPOINT;
	jm->stop.since_ns = clock_monotonic_ns();
	try_checkpoint(jm);
}

/* ---- with a savepoint ---- */

void job_stop_announce(Weir__JobRecord *record, const char *location, struct id128 request)
{
	/* Empty ones of protobuf-c are not from malloc. */
	free(record->stop_request.data);
	record->stop_request = (ProtobufCBinaryData){0};
	if (record->stop_location != protobuf_c_empty_string)
		free(record->stop_location);
	record->stop_location = (char *)(uintptr_t)protobuf_c_empty_string;
	if (location == NULL)
		return;
	record->stop_request.data = malloc(sizeof(request.bytes));
	record->stop_location = strdup(location);
	CHECK(record->stop_request.data != NULL && record->stop_location != NULL);
	memcpy(record->stop_request.data, request.bytes, sizeof(request.bytes));
	record->stop_request.len = sizeof(request.bytes);
}

/* The job goes on, or ends in its own way. */
static void give_up(struct job_master *jm)
{
	memset(&jm->stop, 0, sizeof(jm->stop));
	loop_timer_clear(jm->stop_timer);
}

static struct job_request *request_of(struct job_master *jm)
{
	struct job_request *r = job_find_request(jm, jm->stop.request);

	CHECK(r != NULL && !r->is_done); /* one under way keeps its place */
	return r;
}

/* TK-14: it would decline.  One that stays for long has something else to wait for. */
static bool is_leaving(const struct job_leaving *l)
{
	return l->since_ns != 0 && clock_monotonic_ns() - l->since_ns < LEAVING_NS;
}

/* All that are there can take it, and none is on its way out. */
static bool can_save(const struct job_master *jm)
{
	if (jm->status != JOB_STATUS_RUNNING || jm->is_released)
		return false;
	for (uint32_t s = 0; s < jm->subtask_count; s++)
		if (jm->executions[s].state != EXECUTION_FINISHED &&
				(jm->executions[s].state != EXECUTION_RUNNING ||
						is_leaving(&jm->leaving[s])))
			return false;
	return true;
}

static void save(struct job_master *jm)
{
	struct job_request *r = request_of(jm);
	struct trigger_request request = {
			.kind = jm->stop.end == SAVEPOINT_DRAIN ? REQUEST_STOP_DRAIN : REQUEST_STOP,
			.format = jm->stop.is_native ? FORMAT_NATIVE : FORMAT_CANONICAL,
			.directory = jm->stop.directory[0] == 0 ? NULL : jm->stop.directory,
	};

	jm->stop.step = STOP_SAVING;
	int rc = checkpoint_coordinator_request(
			jm->checkpoints, &request, job_now(), &r->handle);
	if (rc != 0) {
		job_fail_request(r, "no savepoint could be begun: %s", strerror(-rc));
		give_up(jm);
	}
	job_pump(jm);
}

static void try_savepoint(struct job_master *jm)
{
	if (can_save(jm)) {
		save(jm);
		return;
	}
	/* At its end all by itself: job_stop_on_end tells. */
	if (jm->is_released || jm->is_ending || job_status_is_terminal(jm->status))
		return;
	if (is_late(jm)) {
		const struct job_failure *f = job_master_failure(jm, 0);

		job_fail_request(request_of(jm),
				"job %s cannot be stopped with a savepoint: for 10 s not all of "
				"its tasks were running (it is %s%s%s)",
				jm->spec->name, job_status_name(jm->status), f == NULL ? "" : ": ",
				f == NULL ? "" : f->text);
		give_up(jm);
		return;
	}
	loop_timer_set(jm->stop_timer, SAVE_RETRY_NS);
}

int job_stop_with_savepoint(struct job_master *jm, const struct savepoint_order *order,
		struct id128 id, char text[JOB_TEXT_BYTES])
{
	struct job_request *r = job_add_request(jm, id);

	if (r == NULL) {
		snprintf(text, JOB_TEXT_BYTES, "too many requests are under way");
		return -EAGAIN;
	}
	r->is_savepoint = r->is_stop = true;
	log_info("job_master", "job %s stops with a savepoint%s", jm->spec->name,
			order->end == SAVEPOINT_DRAIN ? ", drained" : "");
	jm->stop.step = STOP_WAITING;
	jm->stop.request = id;
	jm->stop.since_ns = clock_monotonic_ns();
	jm->stop.end = order->end;
	jm->stop.is_native = order->is_native;
	snprintf(jm->stop.directory, sizeof(jm->stop.directory), "%s",
			order->directory == NULL ? "" : order->directory);
	try_savepoint(jm);
	return 0;
}

/* What cut the savepoint off: the job's own trouble says more than "suspended". */
static void tell_failure(const struct job_master *jm, struct job_request *r,
		const struct checkpoint_decision *d)
{
	const struct job_failure *f = job_master_failure(jm, 0);
	const char *text = d->text != NULL ? d->text : checkpoint_failure_reason_text(d->reason);

	if (d->reason == REASON_COORDINATOR_SUSPEND && jm->status == JOB_STATUS_CANCELLING)
		job_fail_request(r, "job %s was cancelled before its savepoint was complete",
				jm->spec->name);
	else if (d->reason == REASON_COORDINATOR_SUSPEND && f != NULL)
		job_fail_request(r,
				"job %s failed before its savepoint was complete, and is %s: %s",
				jm->spec->name, job_status_name(jm->status), f->text);
	else
		job_fail_request(r, "%s: %s; the job was not stopped",
				checkpoint_failure_reason_name(d->reason), text);
}

void job_stop_on_saved(struct job_master *jm, struct job_request *r,
		const struct checkpoint_decision *d)
{
	if (!d->is_success) {
		tell_failure(jm, r, d);
		/* Before anything of the job is read again: the I/O thread keeps the order. */
		job_stop_announce(jm->record, NULL, r->id);
		job_write_record(jm, NULL);
		give_up(jm);
		return;
	}
	jm->stop.step = STOP_LEAVING;
	log_info("job_master", "job %s: savepoint %" PRId64 " is complete in %s", jm->spec->name,
			d->checkpoint_id, r->location);
}

/* ---- leaving ---- */

/* True when the savepoint that the record announces is there; what was made of another one goes. */
static bool is_savepoint_complete(const Weir__JobRecord *record)
{
	char path[STORAGE_PATH_BYTES + 16];

	snprintf(path, sizeof(path), "%s/" METADATA_FILE, record->stop_location);
	if (access(path, F_OK) == 0)
		return true;
	(void)checkpoint_storage_delete(&(struct deletion){
			.kind = DELETION_LOCATION, .location = record->stop_location});
	return false;
}

void job_stop_recover(struct job_master *jm)
{
	const Weir__JobRecord *record = jm->record;
	struct id128 id = {{0}};

	if (record->stop_location[0] == 0)
		return;
	if (!is_savepoint_complete(record)) {
		job_stop_announce(jm->record, NULL, id);
		return;
	}
	if (record->stop_request.len == sizeof(id.bytes))
		memcpy(id.bytes, record->stop_request.data, sizeof(id.bytes));
	struct job_request *r = job_add_request(jm, id);
	r->is_savepoint = r->is_stop = true;
	snprintf(r->location, sizeof(r->location), "%s", record->stop_location);
	jm->stop = (struct job_stop){.step = STOP_LEAVING, .request = id};
}

void job_stop_on_end(struct job_master *jm)
{
	if (jm->stop.step < STOP_WAITING)
		return;
	struct job_request *r = request_of(jm);
	if (jm->stop.step == STOP_LEAVING && jm->status == JOB_STATUS_FINISHED)
		r->is_done = r->is_success = true;
	else if (jm->stop.step == STOP_LEAVING)
		job_fail_request(r,
				"savepoint %.900s is complete, but the job is %s instead of "
				"FINISHED%s%.400s; what its sinks have not committed is committed "
				"when a job goes on from it",
				r->location, job_status_name(jm->status),
				jm->record->failure[0] == 0 ? "" : ": ", jm->record->failure);
	else
		job_fail_request(r, "job %s is %s, before a savepoint could stop it",
				jm->spec->name, job_status_name(jm->status));
	give_up(jm);
}

void job_on_stop_timer(void *context)
{
	struct job_master *jm = context;

	if (jm->stop.step == STOP_WITH_CHECKPOINT)
		try_checkpoint(jm);
	else if (jm->stop.step == STOP_WAITING)
		try_savepoint(jm);
}
