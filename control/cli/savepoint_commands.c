/* savepoint_commands: `weir savepoint` and `weir stop`.
 *
 * An operation has an id that this side chooses, so that it can be asked for again when the
 * coordinator died meanwhile: it is the same operation, or begins anew when nothing of it is left.
 */

#include "control/cli/exit_codes.h"
#include "control/cli/job_commands.h"
#include "control/cli/job_question.h"
#include "control/cli/local_path.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/ids.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PATIENCE_NS UINT64_C(20000000000)

enum { BEGUN_MAX = 20 };

struct operation {
	const struct job_question *q;
	const char *post; /* to begin it */
	const char *get;  /* how far it is, with the id behind */
	json_t *body;
	char id[ID128_TEXT_BYTES];
	uint32_t begun_count;
	bool is_taken;            /* by a coordinator, which may be gone by now */
	uint64_t silent_since_ns; /* 0: the coordinator answers */
};

/* Nobody there for a while may be a coordinator that is started again. */
static bool is_passing(struct operation *o, int rc)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (!rest_is_silence(rc))
		return false;
	if (o->silent_since_ns == 0)
		o->silent_since_ns = now_ns;
	return now_ns - o->silent_since_ns < PATIENCE_NS;
}

static void pause_a_little(void)
{
	struct timespec pause = {.tv_nsec = 20000000};

	nanosleep(&pause, NULL);
}

/* Who took it up and does not answer any more may have died after it was done. */
static int complain(const struct operation *o, const char *error)
{
	char text[REST_ERROR_BYTES + 128];

	if (!o->is_taken || o->silent_since_ns == 0)
		return job_question_complain(o->q, error);
	snprintf(text, sizeof(text),
			"%s; the request had been taken up and may have been carried out: look "
			"whether the savepoint is there",
			error);
	return job_question_complain(o->q, text);
}

/* 0, or an exit code after complaint. */
static int begin(struct operation *o)
{
	char error[REST_ERROR_BYTES];
	int rc;

	o->begun_count++;
	while ((rc = rest_call(&o->q->server, "POST", o->post, o->body, NULL, error)) != 0) {
		/* The first time somebody must be there. */
		if (o->begun_count == 1 || !is_passing(o, rc))
			return complain(o, error);
		pause_a_little();
	}
	o->is_taken = true;
	o->silent_since_ns = 0;
	return WEIR_EXIT_DONE;
}

/* The answer when it is over, the caller's; NULL after complaint. */
static json_t *await(struct operation *o)
{
	char error[REST_ERROR_BYTES], target[JOB_TARGET_BYTES];
	json_t *answer = NULL;

	snprintf(target, sizeof(target), "%s/%s", o->get, o->id);
	for (;;) {
		int rc = rest_call(&o->q->server, "GET", target, NULL, &answer, error);
		const char *state = job_text(json_object_get(answer, "status"), "id");

		if (rc == 0 && strcmp(state, "IN_PROGRESS") != 0)
			return answer;
		json_decref(answer);
		answer = NULL;
		if (rc == 0)
			o->silent_since_ns = 0;
		/* Another coordinator, which does not know of it: asked again, under its id. */
		else if (rc == -ENOENT && o->begun_count < BEGUN_MAX) {
			if (begin(o) != WEIR_EXIT_DONE)
				return NULL;
		} else if (!is_passing(o, rc)) {
			(void)complain(o, error);
			return NULL;
		}
		pause_a_little();
	}
}

/* `where`: of what has no location. */
static int report(const struct operation *o, json_t *answer, const char *done, const char *where)
{
	const json_t *operation = json_object_get(answer, "operation");
	const json_t *cause = json_object_get(operation, "failure-cause");
	int code = WEIR_EXIT_DONE;

	if (cause != NULL)
		code = job_question_complain(o->q, job_text(cause, "stack-trace"));
	else if (o->q->is_json)
		job_print_json(answer);
	else
		printf("%s %s\n", done, where != NULL ? where : job_text(operation, "location"));
	json_decref(answer);
	return code;
}

static int carry_out(struct operation *o, const char *done, const char *where)
{
	rest_make_id(o->id);
	json_object_set_new(o->body, "triggerId", json_string(o->id));
	int code = begin(o);
	if (code != WEIR_EXIT_DONE)
		return code;
	json_t *answer = await(o);
	return answer == NULL ? WEIR_EXIT_FAILURE : report(o, answer, done, where);
}

/* Of a job; `path` is "savepoints" or "stop".  Takes `body`. */
static int carry_out_of_job(const struct job_question *q, const char *path, json_t *body,
		const char *done)
{
	char post[JOB_TARGET_BYTES], get[JOB_TARGET_BYTES];
	struct operation o = {.q = q, .post = post, .get = get, .body = body};

	snprintf(post, sizeof(post), "/jobs/%s/%s", q->job, path);
	snprintf(get, sizeof(get), "/jobs/%s/savepoints", q->job);
	int code = carry_out(&o, done, NULL);
	json_decref(body);
	return code;
}

static int dispose(const struct job_question *q)
{
	char path[LOCAL_PATH_BYTES];
	struct operation o = {
			.q = q, .post = "/savepoint-disposal", .get = "/savepoint-disposal"};

	if (local_path_absolute(q->dispose, path) != 0)
		return job_question_usage(q, "the savepoint's path is too long");
	o.body = json_pack("{s:s}", "savepoint-path", path);
	if (o.body == NULL)
		return job_question_usage(q, "the savepoint's path is not UTF-8");
	int code = carry_out(&o, "disposed of", path);
	json_decref(o.body);
	return code;
}

int savepoint_command(int argc, char **argv)
{
	struct job_question q = {.command = "savepoint", .needs_job = true,
		.takes_directory = true, .takes_dispose = true,
		.help = "Usage: weir savepoint JOB [DIR] [OPTION]...\n"
			"       weir savepoint --dispose PATH [OPTION]...\n"
			"Takes a savepoint of a job, in a new directory below DIR or else below\n"
			"execution.checkpointing.savepoint-dir, and waits until it is durable.\n"
			"The job goes on; nothing of weir's deletes a savepoint by itself.\n\n"
			"  --dispose PATH    delete the savepoint PATH; one that a job would go\n"
			"                    back to is refused, and so is what is no savepoint\n"
			JOB_QUESTION_HELP
			"\nExamples:\n  weir savepoint flow-metering /var/lib/weir/savepoints\n"
			"  weir run JOB.yaml --restore /var/lib/weir/savepoints/savepoint-...\n"
			"  weir savepoint --dispose /var/lib/weir/savepoints/savepoint-...\n"};
	char directory[LOCAL_PATH_BYTES];

	int code = job_question_read(&q, argc, argv);
	if (code >= 0)
		return code;
	if (q.dispose != NULL)
		return dispose(&q);
	if (q.directory != NULL && local_path_absolute(q.directory, directory) != 0)
		return job_question_usage(&q, "the directory's path is too long");
	json_t *body = json_pack("{s:s?}", "target-directory",
			q.directory != NULL ? directory : NULL);
	return carry_out_of_job(&q, "savepoints", body, "savepoint");
}

/* Without a savepoint: the coordinator is told, and the job ends by itself. */
static int stop_with_checkpoint(const struct job_question *q)
{
	char error[REST_ERROR_BYTES], target[JOB_TARGET_BYTES];
	json_t *answer = NULL;

	snprintf(target, sizeof(target), "/jobs/%s/stop", q->job);
	if (rest_call(&q->server, "POST", target, NULL, &answer, error) != 0) {
		json_decref(answer);
		return job_question_complain(q, error);
	}
	if (q->is_json)
		job_print_json(answer);
	else
		printf("%s is being stopped\n", q->job);
	json_decref(answer);
	return WEIR_EXIT_DONE;
}

int stop_command(int argc, char **argv)
{
	struct job_question q = {.command = "stop", .needs_job = true, .takes_stop = true,
		.help = "Usage: weir stop JOB [OPTION]...\n"
			"Ends a job so that it can go on later: with a last checkpoint, which\n"
			"weir run --restore latest begins from, or with a savepoint, waiting\n"
			"until that is durable and the job has ended.\n\n"
			"  --savepoint DIR   a savepoint in a new directory below DIR\n"
			"  --drain           for good: event time goes to its end before the\n"
			"                    savepoint, so that windows close; without DIR that\n"
			"                    goes below execution.checkpointing.savepoint-dir\n"
			JOB_QUESTION_HELP
			"\nExamples:\n  weir stop flow-metering\n"
			"  weir stop flow-metering --savepoint /var/lib/weir/savepoints\n"
			"  weir stop flow-metering --savepoint /var/lib/weir/savepoints --drain\n"};
	char directory[LOCAL_PATH_BYTES];

	int code = job_question_read(&q, argc, argv);
	if (code >= 0)
		return code;
	if (q.directory == NULL && !q.must_drain)
		return stop_with_checkpoint(&q);
	if (q.directory != NULL && local_path_absolute(q.directory, directory) != 0)
		return job_question_usage(&q, "the directory's path is too long");
	json_t *body = json_pack("{s:s?, s:b}", "targetDirectory",
			q.directory != NULL ? directory : NULL, "drain", q.must_drain);
	return carry_out_of_job(&q, "stop", body, "stopped with savepoint");
}
