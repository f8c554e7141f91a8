#include "control/cli/run_job.h"

#include "control/cli/child.h"
#include "control/cli/cli_error.h"
#include "control/cli/exit_codes.h"
#include "control/cli/rest_call.h"
#include "control/cli/run_print.h"
#include "dataplane/base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	TASKMANAGERS_MAX = 64,
	ROUND_MS = 20,
	LONG_ROUND_MS = 100, /* once the job has been running for a while */
	START_TIMEOUT_MS = 15000,
	END_TIMEOUT_MS = 5000,
	QUICK_DEATHS_MAX = 5, /* in a row, each within QUICK_DEATH_MS of its start */
	QUICK_DEATH_MS = 3000,
	PATH_BYTES = 4096,
};

#define PROGRESS_PERIOD_NS UINT64_C(500000000)
#define SETTLED_NS UINT64_C(10000000000)
#define AGAIN_NS UINT64_C(500000000)

struct run {
	const struct run_options *options;
	const struct config *config;
	const struct job_spec *spec;
	char log_dir[PATH_BYTES];
	struct child coordinator;
	struct child taskmanagers[TASKMANAGERS_MAX];
	uint32_t quick_deaths;
	char rpc[CHILD_LINE_BYTES];  /* where TaskManagers register */
	char rest[CHILD_LINE_BYTES]; /* "http://HOST:PORT" */
	struct rest_server server;
	char job_id[64];
	json_t *summary; /* the last one */
	char failure[1024]; /* the last one told */
	struct run_progress progress;
	uint64_t began_ns, asked_ns, stop_asked_ns;
	bool has_asked_stop;
	bool has_reported;           /* the result is on standard output */
	char error[CLI_ERROR_BYTES]; /* what was complained of last */
};

/* Signals only count; the loop looks. */
static volatile sig_atomic_t interrupts;

static void on_interrupt(int number)
{
	(void)number;
	interrupts++;
}

/* A child that ends ends a pause, too. */
static void on_child(int number)
{
	(void)number;
}

static void pause_for(long ms)
{
	struct timespec time = {.tv_nsec = ms * 1000000};

	nanosleep(&time, NULL);
}

static void pause_round(void)
{
	pause_for(ROUND_MS);
}

__attribute__((format(printf, 2, 3))) static void say(struct run *r, const char *format, ...)
{
	va_list args;

	if (r->options->is_quiet)
		return;
	run_print_break(&r->progress, stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* In the way of going on: for people, and for the object of --json. */
__attribute__((format(printf, 2, 3))) static void complain(struct run *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->error, sizeof(r->error), format, args);
	va_end(args);
	run_print_break(&r->progress, stderr);
	fprintf(stderr, "weir run: %s\n", r->error);
}

/* ---- children ---- */

/* What every child is given: the config as this command was given it, then `own`. */
static void collect_args(const struct run *r, const char *const *own, const char **args)
{
	uint32_t count = 0;

	if (r->options->config_path != NULL) {
		args[count++] = "--config";
		args[count++] = r->options->config_path;
	}
	for (uint32_t i = 0; i < r->options->define_count; i++) {
		args[count++] = "-D";
		args[count++] = r->options->defines[i];
	}
	for (; *own != NULL; own++)
		args[count++] = *own;
	args[count] = NULL;
}

static int start_child(struct run *r, struct child *c, const char *const *own)
{
	const char *args[CHILD_ARGS_MAX];

	collect_args(r, own, args);
	int rc = child_start(c, args);
	if (rc != 0)
		complain(r, "%s did not start: %s", c->name, strerror(-rc));
	else
		say(r, "%s: pid %d", c->name, (int)c->pid);
	return rc;
}

static int start_coordinator(struct run *r)
{
	char rpc_port[64] = "jobmanager.rpc.port=0", rest_port[64] = "", spread[64];
	const char *own[9] = {NULL};
	uint32_t count = 0;

	if (r->options->link.kind != RUN_LINK_NONE) {
		snprintf(spread, sizeof(spread), "weir.job.taskmanagers=%u",
				r->options->taskmanager_count);
		own[count++] = "-D";
		own[count++] = spread;
	}

	/* What an earlier run left is not this one's; started again, it goes on with this job. */
	own[count++] = "--recover";
	own[count++] = r->job_id[0] == '\0' ? "none" : r->job_id;

	/* Started again it must be found where it was. */
	if (r->rpc[0] != '\0') {
		snprintf(rpc_port, sizeof(rpc_port), "jobmanager.rpc.port=%s",
				strrchr(r->rpc, ':') + 1);
		snprintf(rest_port, sizeof(rest_port), "rest.bind-port=%u", r->server.port);
	}
	if (r->rpc[0] != '\0' || config_origin_of(r->config, "jobmanager.rpc.port") ==
					CONFIG_PRESET) {
		own[count++] = "-D";
		own[count++] = rpc_port;
	}
	if (rest_port[0] != '\0') {
		own[count++] = "-D";
		own[count++] = rest_port;
	}
	return start_child(r, &r->coordinator, own);
}

/* What the config says of frames goes before what would be fast. */
static struct run_link_frames link_frames(const struct run *r)
{
	if (config_origin_of(r->config, "weir.link.mtu") == CONFIG_PRESET &&
			config_origin_of(r->config, "weir.link.descriptors") == CONFIG_PRESET)
		return run_link_frames(&r->options->link, (uint32_t)config_size(r->config,
				"taskmanager.memory.segment-size"));
	return (struct run_link_frames){
			.mtu = (uint32_t)config_int(r->config, "weir.link.mtu")};
}

static int start_taskmanager(struct run *r, uint32_t index)
{
	struct run_link_words link;
	const char *const words[] = {link.port, link.eal, link.mtu, link.descriptors};
	const char *own[11] = {"--coordinator", r->rpc};
	uint32_t count = 2;

	if (index == 0)
		run_link_sweep(&r->options->link, (int)getpid());
	if (r->options->link.kind == RUN_LINK_NONE)
		return start_child(r, &r->taskmanagers[index], own);
	run_link_words(&r->options->link, index, (int)getpid(), link_frames(r), &link);
	for (uint32_t i = 0; i < 4; i++) {
		if (words[i][0] == '\0')
			continue;
		own[count++] = "-D";
		own[count++] = words[i];
	}
	return start_child(r, &r->taskmanagers[index], own);
}

/* An end that another start would not change. */
static bool is_final(int status)
{
	return WIFEXITED(status) && (WEXITSTATUS(status) == WEIR_EXIT_CONFIG ||
			WEXITSTATUS(status) == WEIR_EXIT_USAGE ||
			WEXITSTATUS(status) == WEIR_EXIT_BUSY || WEXITSTATUS(status) == 127);
}

/* -1: to be started again; else the exit code of this command. */
static int judge_end(struct run *r, const struct child *c, int status)
{
	uint64_t lived_ms = (clock_monotonic_ns() - c->started_ns) / 1000000;
	char how[128], words[CLI_ERROR_BYTES / 2];

	child_print_status(status, how, sizeof(how));
	/* Whom somebody killed did not die of itself. */
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		r->quick_deaths = lived_ms < QUICK_DEATH_MS ? r->quick_deaths + 1 : 1;
	if (!is_final(status) && r->quick_deaths <= QUICK_DEATHS_MAX) {
		say(r, "%s ended (%s); starting it again", c->name, how);
		return -1;
	}
	child_last_words(c, words, sizeof(words));
	complain(r, "%s ended (%s): %s", c->name, how, words);
	child_show_log(c, 5);
	return is_final(status) ? WEXITSTATUS(status) : WEIR_EXIT_FAILURE;
}

static int watch_children(struct run *r)
{
	int status, code;

	if (child_has_ended(&r->coordinator, &status)) {
		code = judge_end(r, &r->coordinator, status);
		if (code >= 0)
			return code;
		if (start_coordinator(r) != 0)
			return WEIR_EXIT_FAILURE;
	}
	for (uint32_t i = 0; i < r->options->taskmanager_count; i++) {
		if (!child_has_ended(&r->taskmanagers[i], &status))
			continue;
		code = judge_end(r, &r->taskmanagers[i], status);
		if (code >= 0)
			return code;
		if (start_taskmanager(r, i) != 0)
			return WEIR_EXIT_FAILURE;
	}
	return -1;
}

/* Reads "REST http://HOST:PORT" and "RPC HOST:PORT". */
static void hear_coordinator(struct run *r)
{
	const char *line;

	while ((line = child_next_line(&r->coordinator)) != NULL) {
		if (strncmp(line, "REST ", 5) == 0 && rest_server_parse(line + 5, &r->server) == 0)
			snprintf(r->rest, sizeof(r->rest), "%s", line + 5);
		else if (strncmp(line, "RPC ", 4) == 0 && strrchr(line, ':') != NULL)
			snprintf(r->rpc, sizeof(r->rpc), "%s", line + 4);
	}
}

static int await_coordinator(struct run *r)
{
	uint64_t until_ns = clock_monotonic_ns() + (uint64_t)START_TIMEOUT_MS * 1000000;
	int status;

	while (r->rest[0] == '\0' || r->rpc[0] == '\0') {
		hear_coordinator(r);
		if (child_has_ended(&r->coordinator, &status)) {
			int code = judge_end(r, &r->coordinator, status);

			if (code >= 0)
				return code;
			if (start_coordinator(r) != 0)
				return WEIR_EXIT_FAILURE;
		}
		if (clock_monotonic_ns() > until_ns) {
			complain(r, "the coordinator did not listen within %d s",
					START_TIMEOUT_MS / 1000);
			child_show_log(&r->coordinator, 5);
			return WEIR_EXIT_FAILURE;
		}
		if (interrupts > 0)
			return WEIR_EXIT_INTERRUPTED;
		pause_round();
	}
	return -1;
}

/* ---- the job ---- */

static json_t *submission(const struct run *r)
{
	const struct job_source *source = &r->spec->source;
	json_t *sets = json_array();

	for (uint32_t i = 0; i < r->options->set_count; i++)
		json_array_append_new(sets, json_string(r->options->sets[i]));
	return json_pack("{s:s, s:s%, s:s, s:o, s:s, s:b}", "file", source->name, "job",
			source->text, source->text_bytes, "plugin_dir", source->plugin_dir, "sets",
			sets, "restore", r->options->restore, "allow_rewind",
			r->options->must_allow_rewind);
}

/* -1: the job is in; -EAGAIN in *rc: nobody answered. */
static int submit(struct run *r, int *rc)
{
	char error[REST_ERROR_BYTES];
	json_t *answer = NULL, *body = submission(r);

	*rc = body == NULL ? -ENOMEM
			   : rest_call(&r->server, "POST", "/jobs", body, &answer, error);
	json_decref(body);
	int code = -1;
	if (*rc == -ECONNREFUSED || *rc == -ETIMEDOUT) {
		*rc = -EAGAIN;
	} else if (*rc != 0) {
		complain(r, "%.1400s", *rc == -ENOMEM ? "out of memory" : error);
		code = json_is_true(json_object_get(answer, "refused"))
				? WEIR_EXIT_RESTORE_REFUSED
				: WEIR_EXIT_CONFIG;
	} else {
		snprintf(r->job_id, sizeof(r->job_id), "%s",
				json_string_value(json_object_get(answer, "jobid")));
	}
	json_decref(answer);
	return code;
}

/* The coordinator may die while it is asked; then it is asked again: the same job is not started
 * twice. */
static int submit_until_in(struct run *r)
{
	for (;;) {
		int rc, code = submit(r, &rc);

		if (rc != -EAGAIN)
			return code;
		code = watch_children(r);
		if (code >= 0)
			return code;
		if (interrupts > 0)
			return WEIR_EXIT_INTERRUPTED;
		pause_round();
	}
}

static const char *state_of(const struct run *r)
{
	const char *state = json_string_value(json_object_get(r->summary, "state"));

	return state != NULL ? state : "";
}

static bool has_ended(const struct run *r)
{
	const char *state = state_of(r);

	return strcmp(state, "FINISHED") == 0 || strcmp(state, "FAILED") == 0 ||
			strcmp(state, "CANCELED") == 0;
}

/* Why the job restarts, once for each reason.  One that fails for good is told at its end. */
static void tell_failure(struct run *r)
{
	const char *text = json_string_value(json_object_get(r->summary, "failure"));
	bool is_over = has_ended(r) || strcmp(state_of(r), "FAILING") == 0;

	if (text == NULL || is_over || strncmp(text, r->failure, sizeof(r->failure) - 1) == 0)
		return;
	snprintf(r->failure, sizeof(r->failure), "%s", text);
	run_print_break(&r->progress, stderr);
	fprintf(stderr, "the job failed and is started again: %s\n", text);
}

static void ask_summary(struct run *r)
{
	char error[REST_ERROR_BYTES], target[128];
	json_t *summary;

	snprintf(target, sizeof(target), "/jobs/%s/summary", r->job_id);
	if (rest_call(&r->server, "GET", target, NULL, &summary, error) == 0) {
		json_decref(r->summary);
		r->summary = summary;
	} else {
		json_decref(summary);
		summary = NULL;
	}
	tell_failure(r);
	if (summary != NULL && !has_ended(r))
		run_print_troubles(&r->progress, stderr, summary, clock_monotonic_ns());
	if (!r->options->is_quiet && !has_ended(r))
		run_print_progress(&r->progress, stderr, summary, clock_monotonic_ns());
}

static void ask_stop(struct run *r)
{
	char error[REST_ERROR_BYTES], target[128];

	snprintf(target, sizeof(target), "/jobs/%s/stop", r->job_id);
	say(r, "stopping with a last checkpoint; once more ends at once");
	r->stop_asked_ns = clock_monotonic_ns();
	interrupts = 1;
	if (rest_call(&r->server, "POST", target, NULL, NULL, error) == 0)
		r->has_asked_stop = true;
	else
		say(r, "%s", error);
}

static int report(struct run *r)
{
	double wall_s = (double)(clock_monotonic_ns() - r->began_ns) / 1e9;
	const json_t *failure = json_object_get(r->summary, "failure");

	if (r->summary == NULL)
		return WEIR_EXIT_INTERRUPTED; /* ended before there was anything to tell */
	run_print_break(&r->progress, stderr);
	if (strcmp(state_of(r), "FAILED") == 0 && json_is_string(failure))
		fprintf(stderr, "weir run: the job failed: %s\n", json_string_value(failure));
	r->has_reported = true;
	bool is_said = run_print_result(stdout, r->summary, wall_s, r->options->is_json);
	if (json_is_true(json_object_get(r->summary, "refused")))
		return WEIR_EXIT_RESTORE_REFUSED;
	if (!is_said || strcmp(state_of(r), "FAILED") == 0)
		return WEIR_EXIT_FAILURE;
	return strcmp(state_of(r), "FINISHED") == 0 ? WEIR_EXIT_DONE : WEIR_EXIT_INTERRUPTED;
}

/* Asked a second time, and not by the same hand: some tools signal a process and its group. */
static bool is_impatient(const struct run *r)
{
	bool is_again = clock_monotonic_ns() - r->stop_asked_ns > AGAIN_NS;

	if (interrupts > 1 && !is_again)
		interrupts = 1;
	return interrupts > 1;
}

/* What asks takes its time from the cores that the job runs on, so it asks less in the long run. */
static uint64_t period_of(const struct run *r, bool is_settled)
{
	return r->has_asked_stop ? PROGRESS_PERIOD_NS / 10
	       : is_settled      ? PROGRESS_PERIOD_NS
				 : PROGRESS_PERIOD_NS / 5;
}

/* Until the job has ended; -1, or an exit code when it will not. */
static int watch_job(struct run *r)
{
	while (!has_ended(r)) {
		uint64_t now_ns = clock_monotonic_ns();
		bool is_settled = now_ns - r->began_ns > SETTLED_NS && !r->has_asked_stop;
		int code = watch_children(r);

		if (code >= 0)
			return code;
		hear_coordinator(r);
		if (now_ns - r->asked_ns >= period_of(r, is_settled)) {
			r->asked_ns = now_ns;
			ask_summary(r);
		}
		if (interrupts > 0 && !r->has_asked_stop && now_ns - r->stop_asked_ns > AGAIN_NS)
			ask_stop(r);
		if (is_impatient(r))
			return report(r);
		pause_for(is_settled ? LONG_ROUND_MS : ROUND_MS);
	}
	return -1;
}

/* ---- start and end ---- */

static int make_directories(char *path)
{
	for (char *at = path + 1; *at != '\0'; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		int rc = mkdir(path, 0777);
		*at = '/';
		if (rc != 0 && errno != EEXIST)
			return -errno;
	}
	return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : -errno;
}

/* Logs stand beside the coordinator's own directory. */
static int make_log_dir(struct run *r)
{
	const char *ha = config_text(r->config, "high-availability.storageDir");
	const char *slash = strrchr(ha, '/');
	int length = slash != NULL ? (int)(slash - ha) : 1;

	snprintf(r->log_dir, sizeof(r->log_dir), "%.*s/logs", length, slash != NULL ? ha : ".");
	int rc = make_directories(r->log_dir);
	if (rc != 0)
		complain(r, "cannot make %.1000s: %s", r->log_dir, strerror(-rc));
	return rc;
}

static int init_children(struct run *r)
{
	char name[32];
	int rc = child_init(&r->coordinator, "coordinator", "weir-coordinator", r->log_dir);

	r->coordinator.crash_at = getenv("WEIR_CRASH_COORDINATOR");
	for (uint32_t i = 0; rc == 0 && i < r->options->taskmanager_count; i++) {
		snprintf(name, sizeof(name), "taskmanager %u", i);
		rc = child_init(&r->taskmanagers[i], name, "weir-taskmanager", r->log_dir);
		r->taskmanagers[i].crash_at = getenv("WEIR_CRASH_TASKMANAGER");
	}
	if (rc != 0)
		complain(r, "weir-coordinator and weir-taskmanager must lie beside weir: %s",
				strerror(-rc));
	return rc;
}

static void say_pages(struct run *r)
{
	FILE *info = fopen("/proc/meminfo", "r");
	char line[256];
	unsigned long count = 0;

	while (info != NULL && fgets(line, sizeof(line), info) != NULL) {
		if (sscanf(line, "HugePages_Free: %lu", &count) == 1)
			break;
	}
	if (info != NULL)
		fclose(info);
	if (count == 0 && config_is_choice(r->config, "weir.hugepages", "auto"))
		say(r, "no hugepages on this host: running without (--no-huge); weir doctor says "
		       "how to get them");
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_interrupt};
	struct sigaction child = {.sa_handler = on_child, .sa_flags = SA_RESTART};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGCHLD, &child, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int run_children(struct run *r)
{
	if (start_coordinator(r) != 0)
		return WEIR_EXIT_FAILURE;
	int code = await_coordinator(r);
	if (code >= 0)
		return code;
	fprintf(stderr, "REST at %s\n", r->rest); /* the way to ask a quiet one */
	for (uint32_t i = 0; i < r->options->taskmanager_count; i++) {
		if (start_taskmanager(r, i) != 0)
			return WEIR_EXIT_FAILURE;
	}
	code = submit_until_in(r);
	if (code >= 0)
		return code;
	say(r, "job %s is %s", r->spec->name, r->job_id);
	code = watch_job(r);
	return code >= 0 ? code : report(r);
}

int run_job(const struct run_options *options, const struct config *config,
		const struct job_spec *spec)
{
	struct run r = {.options = options, .config = config, .spec = spec,
		.began_ns = clock_monotonic_ns(), .progress = {.is_tty = isatty(STDERR_FILENO)}};

	if (make_log_dir(&r) != 0 || init_children(&r) != 0)
		return cli_fail(options->is_json, WEIR_EXIT_CONFIG, r.error);
	catch_signals();
	say_pages(&r);
	int code = run_children(&r);
	run_print_break(&r.progress, stderr);
	for (uint32_t i = 0; i < options->taskmanager_count; i++)
		child_end(&r.taskmanagers[i], END_TIMEOUT_MS);
	child_end(&r.coordinator, END_TIMEOUT_MS);
	run_link_sweep(&options->link, (int)getpid());
	json_decref(r.summary);
	if (r.has_reported)
		return code;
	return cli_fail(options->is_json, code,
			r.error[0] != '\0' ? r.error
					    : "stopped by a signal before there was a job");
}
