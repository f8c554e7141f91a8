/* rest_operations: what is asked of a job: checkpoints, cancel, stop. */

#include "control/rest/rest_internal.h"

#include <errno.h>
#include <string.h>

/* ---- checkpoints on request ---- */

static bool read_type(struct rest_call *call, const json_t *body, enum checkpoint_type *type)
{
	const char *name = "CONFIGURED";

	if (!rest_read_text(call, body, "checkpointType", &name))
		return false;
	if (strcmp(name, "CONFIGURED") != 0 && strcmp(name, "FULL") != 0) {
		rest_refuse(call, 400, "\"checkpointType\": expected CONFIGURED or FULL");
		return false;
	}
	*type = strcmp(name, "FULL") == 0 ? CHECKPOINT_FULL : CHECKPOINT_CONFIGURED;
	return true;
}

void rest_post_checkpoint(struct rest_call *call)
{
	enum checkpoint_type type = CHECKPOINT_CONFIGURED;
	char text[ID128_TEXT_BYTES];
	struct id128 id = {{0}};
	json_t *body = rest_body(call);

	if (body == NULL)
		return;
	bool is_read = read_type(call, body, &type) && rest_read_trigger_id(call, body, &id);
	json_decref(body);
	if (!is_read)
		return;
	int rc = job_master_checkpoint(call->job, type, &id);
	if (rc == 0) {
		id128_print(id, text);
		rest_answer(call, 202, json_pack("{s:s}", "request-id", text));
	} else if (rc == -EAGAIN) {
		rest_refuse(call, 409, "job %s is %s; a checkpoint needs it RUNNING",
				job_master_name(call->job),
				job_status_name(job_master_status(call->job)));
	} else {
		rest_refuse(call, 500, "no checkpoint could be begun: %s", strerror(-rc));
	}
}

void rest_get_request(struct rest_call *call)
{
	struct checkpoint_answer a;

	if (!job_master_checkpoint_answer(call->job, call->request_id, &a) || a.is_savepoint) {
		rest_refuse(call, 404, "There is no such request to job %s",
				job_master_name(call->job));
		return;
	}
	rest_answer_operation(call, &a, "failureCause",
			a.is_success ? json_pack("{s:I}", "checkpointId",
						       (json_int_t)a.checkpoint_id)
				     : NULL);
}

void rest_patch_checkpoints(struct rest_call *call)
{
	char periodic[REST_PART_BYTES];

	rest_query(call, "periodic", periodic);
	if (strcmp(periodic, "on") != 0 && strcmp(periodic, "off") != 0) {
		rest_refuse(call, 400, "?periodic=: expected on or off");
	} else if (job_status_is_terminal(job_master_status(call->job))) {
		rest_refuse(call, 409, "job %s is %s", job_master_name(call->job),
				job_status_name(job_master_status(call->job)));
	} else {
		job_master_set_periodic(call->job, strcmp(periodic, "on") == 0);
		rest_answer(call, 202, json_object());
	}
}

/* ---- the end of a job ---- */

/* Asking again for what has come true is no mistake. */
static void end_job(struct rest_call *call, void (*end)(struct job_master *jm))
{
	enum job_status status = job_master_status(call->job);

	if (job_status_is_terminal(status) && status != JOB_STATUS_CANCELED) {
		rest_refuse(call, 409, "job %s is %s already", job_master_name(call->job),
				job_status_name(status));
		return;
	}
	end(call->job);
	rest_answer(call, 202, json_object());
}

void rest_patch_job(struct rest_call *call)
{
	char mode[REST_PART_BYTES];

	rest_query(call, "mode", mode);
	if (mode[0] != 0 && strcmp(mode, "cancel") != 0)
		rest_refuse(call, 400, "?mode=: expected cancel; POST .../stop stops a job with a "
				       "last checkpoint");
	else
		end_job(call, job_master_cancel);
}

void rest_post_stop(struct rest_call *call)
{
	json_t *body = rest_body(call);

	if (body == NULL)
		return;
	if (json_object_size(body) > 0)
		rest_stop_with_savepoint(call, body);
	else
		end_job(call, job_master_stop);
	json_decref(body);
}
