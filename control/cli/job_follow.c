#include "control/cli/job_follow.h"

#include "control/cli/exit_codes.h"
#include "control/config/job_file.h"
#include "dataplane/base/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	ROUND_MS = 20,
	LONG_ROUND_MS = 100, /* once the job has been running for a while */
	TARGET_BYTES = 128,
};

#define PROGRESS_PERIOD_NS UINT64_C(500000000)
#define SETTLED_NS UINT64_C(10000000000)

void job_follow_init(struct job_follow *f, const char *command, bool is_json, bool is_quiet)
{
	*f = (struct job_follow){
			.command = command,
			.is_json = is_json,
			.is_quiet = is_quiet,
			.began_ns = clock_monotonic_ns(),
			.progress = {.is_tty = isatty(STDERR_FILENO)},
	};
}

void job_follow_release(struct job_follow *f)
{
	json_decref(f->summary);
	f->summary = NULL;
}

void job_follow_say(struct job_follow *f, const char *format, ...)
{
	va_list args;

	if (f->is_quiet)
		return;
	run_print_break(&f->progress, stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

void job_follow_complain(struct job_follow *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(f->error, sizeof(f->error), format, args);
	va_end(args);
	run_print_break(&f->progress, stderr);
	fprintf(stderr, "weir %s: %s\n", f->command, f->error);
}

/* ---- handing over ---- */

/* NULL: one is not UTF-8. */
static json_t *texts(const char *const *items, uint32_t count)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < count; i++) {
		if (json_array_append_new(array, json_string(items[i])) == 0)
			continue;
		json_decref(array);
		return NULL;
	}
	return array;
}

static json_t *submission(const struct job_handover *h)
{
	const struct job_source *source = h->source;

	return json_pack("{s:s, s:s%, s:s, s:o, s:o, s:s, s:b, s:s}", "file", source->name, "job",
			source->text, source->text_bytes, "plugin_dir", source->plugin_dir, "sets",
			texts(source->sets, source->set_count), "settings",
			texts(h->settings, h->setting_count), "restore", h->restore,
			"allow_rewind", h->must_allow_rewind, "triggerId", h->id);
}

static int code_of(int rc, const json_t *answer)
{
	if (json_is_true(json_object_get(answer, "refused")))
		return WEIR_EXIT_RESTORE_REFUSED;
	if (rc == -EBUSY)
		return WEIR_EXIT_BUSY;
	return rc == -EPERM ? WEIR_EXIT_CONFIG : WEIR_EXIT_FAILURE;
}

static void keep_text(const json_t *answer, const char *key, char *text, size_t size)
{
	const char *value = json_string_value(json_object_get(answer, key));

	snprintf(text, size, "%s", value != NULL ? value : "");
}

int job_follow_submit(struct job_follow *f, const struct job_handover *h, int *silence)
{
	char error[REST_ERROR_BYTES];
	json_t *answer = NULL, *body = submission(h);
	int code = -1;

	*silence = 0;
	if (body == NULL) {
		job_follow_complain(f, "the job file, or an option, is not UTF-8");
		return WEIR_EXIT_CONFIG;
	}
	int rc = rest_call(&f->server, "POST", "/jobs", body, &answer, error);
	json_decref(body);
	if (rest_is_silence(rc)) {
		*silence = rc;
	} else if (rc != 0) {
		job_follow_complain(f, "%.1400s", error);
		code = code_of(rc, answer);
	} else {
		keep_text(answer, "jobid", f->job_id, sizeof(f->job_id));
		keep_text(answer, "name", f->job_name, sizeof(f->job_name));
	}
	json_decref(answer);
	return code;
}

/* ---- following ---- */

static const char *state_of(const struct job_follow *f)
{
	const char *state = json_string_value(json_object_get(f->summary, "state"));

	return state != NULL ? state : "";
}

bool job_follow_has_ended(const struct job_follow *f)
{
	const char *state = state_of(f);

	return strcmp(state, "FINISHED") == 0 || strcmp(state, "FAILED") == 0 ||
			strcmp(state, "CANCELED") == 0;
}

/* Why the job restarts, once for each reason.  One that fails for good is told at its end. */
static void tell_failure(struct job_follow *f)
{
	const char *text = json_string_value(json_object_get(f->summary, "failure"));
	bool is_over = job_follow_has_ended(f) || strcmp(state_of(f), "FAILING") == 0;

	if (text == NULL || is_over || strncmp(text, f->failure, sizeof(f->failure) - 1) == 0)
		return;
	snprintf(f->failure, sizeof(f->failure), "%s", text);
	run_print_break(&f->progress, stderr);
	fprintf(stderr, "the job failed and is started again: %s\n", text);
}

static void ask_summary(struct job_follow *f)
{
	char error[REST_ERROR_BYTES], target[TARGET_BYTES];
	json_t *summary;

	snprintf(target, sizeof(target), "/jobs/%s/summary", f->job_id);
	int rc = rest_call(&f->server, "GET", target, NULL, &summary, error);
	if (rc == 0) {
		json_decref(f->summary);
		f->summary = summary;
	} else {
		json_decref(summary);
		summary = NULL;
	}
	f->is_unknown = rc == -ENOENT;
	tell_failure(f);
	if (summary != NULL && !job_follow_has_ended(f))
		run_print_troubles(&f->progress, stderr, summary, clock_monotonic_ns());
	if (!f->is_quiet && !job_follow_has_ended(f))
		run_print_progress(&f->progress, stderr, summary, clock_monotonic_ns());
}

static bool is_settled(const struct job_follow *f)
{
	return clock_monotonic_ns() - f->began_ns > SETTLED_NS && !f->must_hurry;
}

/* What asks takes its time from the cores that the job runs on, so it asks less in the long run. */
static uint64_t period_of(const struct job_follow *f)
{
	return f->must_hurry   ? PROGRESS_PERIOD_NS / 10
	       : is_settled(f) ? PROGRESS_PERIOD_NS
			       : PROGRESS_PERIOD_NS / 5;
}

void job_follow_look(struct job_follow *f)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (now_ns - f->asked_ns < period_of(f))
		return;
	f->asked_ns = now_ns;
	ask_summary(f);
}

void job_follow_pause(const struct job_follow *f)
{
	struct timespec time = {
			.tv_nsec = (is_settled(f) ? LONG_ROUND_MS : ROUND_MS) * 1000000L};

	nanosleep(&time, NULL);
}

int job_follow_report(struct job_follow *f)
{
	double wall_s = (double)(clock_monotonic_ns() - f->began_ns) / 1e9;
	const json_t *failure = json_object_get(f->summary, "failure");

	if (f->summary == NULL)
		return WEIR_EXIT_INTERRUPTED; /* ended before there was anything to tell */
	run_print_break(&f->progress, stderr);
	if (strcmp(state_of(f), "FAILED") == 0 && json_is_string(failure))
		fprintf(stderr, "weir %s: the job failed: %s\n", f->command,
				json_string_value(failure));
	f->has_reported = true;
	bool is_said = run_print_result(stdout, f->summary, wall_s, f->is_json);
	if (json_is_true(json_object_get(f->summary, "refused")))
		return WEIR_EXIT_RESTORE_REFUSED;
	if (!is_said || strcmp(state_of(f), "FAILED") == 0)
		return WEIR_EXIT_FAILURE;
	return strcmp(state_of(f), "FINISHED") == 0 ? WEIR_EXIT_DONE : WEIR_EXIT_INTERRUPTED;
}
