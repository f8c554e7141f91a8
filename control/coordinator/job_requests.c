/* job_requests: checkpoints that somebody asked for, and the stop with a final one. */

#include "control/coordinator/job_master_internal.h"
#include "control/net/loop.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/log.h"

#include <errno.h>
#include <string.h>

#define STOP_RETRY_NS UINT64_C(50000000)
#define FINAL_RETRY_NS UINT64_C(1000000000)
#define STOP_PATIENCE_NS UINT64_C(10000000000)

static struct job_request *find_request(struct job_master *jm, struct id128 id)
{
	for (uint32_t i = 0; i < JOB_REQUESTS_MAX; i++)
		if (jm->requests[i].is_used && id128_is_equal(jm->requests[i].id, id))
			return &jm->requests[i];
	return NULL;
}

int job_master_checkpoint(struct job_master *jm, enum checkpoint_type type, struct id128 *id)
{
	static const struct id128 none;
	struct trigger_request request = {
			.kind = type == CHECKPOINT_FULL ? REQUEST_FULL : REQUEST_CHECKPOINT,
	};

	while (id128_is_equal(*id, none))
		for (int i = 0; i < 16; i += 8)
			memcpy(id->bytes + i, &(uint64_t){prng_next(&jm->prng)}, 8);
	if (find_request(jm, *id) != NULL)
		return 0;
	if (jm->status != JOB_STATUS_RUNNING || jm->is_released)
		return -EAGAIN;
	struct job_request *r = &jm->requests[jm->request_next++ % JOB_REQUESTS_MAX];
	memset(r, 0, sizeof(*r));
	r->is_used = true;
	r->id = *id;
	request.client_id = *id;
	int rc = checkpoint_coordinator_request(
			jm->checkpoints, &request, job_now(), &r->handle);
	if (rc != 0)
		r->is_used = false;
	job_pump(jm);
	return rc;
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

bool job_master_checkpoint_answer(
		struct job_master *jm, struct id128 id, struct checkpoint_answer *answer)
{
	const struct job_request *r = find_request(jm, id);

	if (r == NULL)
		return false;
	*answer = (struct checkpoint_answer){
			r->is_done, r->is_success, r->checkpoint_id, r->text};
	return true;
}

static bool must_have_final(const struct job_master *jm)
{
	return jm->status == JOB_STATUS_RUNNING && !jm->is_released &&
			execution_graph_is_ended(jm->graph);
}

void job_retry_final(struct job_master *jm)
{
	if (must_have_final(jm))
		loop_timer_set(jm->final_timer, FINAL_RETRY_NS);
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

/* Tries until a checkpoint that began after the stop has completed; tasks may be on their way up,
 * or another checkpoint may be in the way. */
void job_on_stop_timer(void *context)
{
	struct job_master *jm = context;
	struct checkpoint_answer answer = {.is_done = true};
	bool has_asked = job_master_checkpoint_answer(jm, jm->stop_request, &answer);
	bool is_late = clock_monotonic_ns() - jm->stop_since_ns > STOP_PATIENCE_NS;

	/* At its end all by itself: nothing is left to stop. */
	if (job_status_is_terminal(jm->status) || jm->is_released || jm->is_ending)
		return;
	if (has_asked && answer.is_done && answer.is_success) {
		job_master_cancel(jm);
		return;
	}
	if (jm->status == JOB_STATUS_RUNNING && answer.is_done && !is_late) {
		memset(&jm->stop_request, 0, sizeof(jm->stop_request));
		(void)job_master_checkpoint(jm, CHECKPOINT_CONFIGURED, &jm->stop_request);
	} else if (is_late && answer.is_done) {
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
	if (jm->is_stopping || job_status_is_terminal(jm->status))
		return;
	/* What never ran has nothing to keep, and what waits to be restarted has its newest
	 * checkpoint already. */
	if (jm->status != JOB_STATUS_RUNNING) {
		job_master_cancel(jm);
		return;
	}
	log_info("job_master", "job %s stops after a final checkpoint", jm->spec->name);
	jm->is_stopping = true;
	jm->stop_since_ns = clock_monotonic_ns();
	job_on_stop_timer(jm);
}
