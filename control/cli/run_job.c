#include "control/cli/run_job.h"

#include "control/cli/child.h"
#include "control/cli/cli_error.h"
#include "control/cli/exit_codes.h"
#include "control/cli/interrupts.h"
#include "control/cli/job_follow.h"
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
	START_TIMEOUT_MS = 15000,
	END_TIMEOUT_MS = 5000,
	QUICK_DEATHS_MAX = 5, /* in a row, each within QUICK_DEATH_MS of its start */
	QUICK_DEATH_MS = 3000,
	PATH_BYTES = 4096,
};

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
	struct job_follow follow;
	uint64_t stop_asked_ns;
};

static void pause_round(void)
{
	struct timespec time = {.tv_nsec = ROUND_MS * 1000000};

	nanosleep(&time, NULL);
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
		job_follow_complain(&r->follow, "%s did not start: %s", c->name, strerror(-rc));
	else
		job_follow_say(&r->follow, "%s: pid %d", c->name, (int)c->pid);
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
	own[count++] = r->follow.job_id[0] == '\0' ? "none" : r->follow.job_id;

	/* Started again it must be found where it was. */
	if (r->rpc[0] != '\0') {
		snprintf(rpc_port, sizeof(rpc_port), "jobmanager.rpc.port=%s",
				strrchr(r->rpc, ':') + 1);
		snprintf(rest_port, sizeof(rest_port), "rest.bind-port=%u", r->follow.server.port);
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
		job_follow_say(&r->follow, "%s ended (%s); starting it again", c->name, how);
		return -1;
	}
	child_last_words(c, words, sizeof(words));
	job_follow_complain(&r->follow, "%s ended (%s): %s", c->name, how, words);
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
		if (strncmp(line, "REST ", 5) == 0 &&
				rest_server_parse(line + 5, &r->follow.server) == 0)
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
			job_follow_complain(&r->follow,
					"the coordinator did not listen within %d s",
					START_TIMEOUT_MS / 1000);
			child_show_log(&r->coordinator, 5);
			return WEIR_EXIT_FAILURE;
		}
		if (interrupts_count() > 0)
			return WEIR_EXIT_INTERRUPTED;
		pause_round();
	}
	return -1;
}

/* ---- the job ---- */

/* The coordinator may die while it is asked; then it is asked again. */
static int submit_until_in(struct run *r)
{
	struct job_handover handover = {.source = &r->spec->source,
			.restore = r->options->restore,
			.must_allow_rewind = r->options->must_allow_rewind};
	int silence;

	rest_make_id(handover.id);
	for (;;) {
		int code = job_follow_submit(&r->follow, &handover, &silence);

		if (silence == 0)
			return code;
		code = watch_children(r);
		if (code >= 0)
			return code;
		if (interrupts_count() > 0)
			return WEIR_EXIT_INTERRUPTED;
		pause_round();
	}
}

static void ask_stop(struct run *r)
{
	char error[REST_ERROR_BYTES], target[128];

	snprintf(target, sizeof(target), "/jobs/%s/stop", r->follow.job_id);
	job_follow_say(&r->follow, "stopping with a last checkpoint; once more ends at once");
	r->stop_asked_ns = clock_monotonic_ns();
	interrupts_join();
	if (rest_call(&r->follow.server, "POST", target, NULL, NULL, error) == 0)
		r->follow.must_hurry = true;
	else
		job_follow_say(&r->follow, "%s", error);
}

/* Asked a second time, and not by the same hand: some tools signal a process and its group. */
static bool is_impatient(const struct run *r)
{
	if (clock_monotonic_ns() - r->stop_asked_ns <= AGAIN_NS)
		interrupts_join();
	return interrupts_count() > 1;
}

/* Until the job has ended; -1, or an exit code when it will not. */
static int watch_job(struct run *r)
{
	while (!job_follow_has_ended(&r->follow)) {
		int code = watch_children(r);

		if (code >= 0)
			return code;
		hear_coordinator(r);
		job_follow_look(&r->follow);
		if (interrupts_count() > 0 && !r->follow.must_hurry &&
				clock_monotonic_ns() - r->stop_asked_ns > AGAIN_NS)
			ask_stop(r);
		if (is_impatient(r))
			return job_follow_report(&r->follow);
		job_follow_pause(&r->follow);
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
		job_follow_complain(&r->follow, "cannot make %.1000s: %s", r->log_dir,
				strerror(-rc));
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
		job_follow_complain(&r->follow,
				"weir-coordinator and weir-taskmanager must lie beside weir: %s",
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
		job_follow_say(&r->follow,
				"no hugepages on this host: running without (--no-huge); weir "
				"doctor says how to get them");
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
	job_follow_say(&r->follow, "job %s is %s", r->spec->name, r->follow.job_id);
	code = watch_job(r);
	return code >= 0 ? code : job_follow_report(&r->follow);
}

int run_job(const struct run_options *options, const struct config *config,
		const struct job_spec *spec)
{
	struct run r = {.options = options, .config = config, .spec = spec};

	job_follow_init(&r.follow, "run", options->is_json, options->is_quiet);
	if (make_log_dir(&r) != 0 || init_children(&r) != 0)
		return cli_fail(options->is_json, WEIR_EXIT_CONFIG, r.follow.error);
	interrupts_catch();
	say_pages(&r);
	int code = run_children(&r);
	run_print_break(&r.follow.progress, stderr);
	for (uint32_t i = 0; i < options->taskmanager_count; i++)
		child_end(&r.taskmanagers[i], END_TIMEOUT_MS);
	child_end(&r.coordinator, END_TIMEOUT_MS);
	run_link_sweep(&options->link, (int)getpid());
	job_follow_release(&r.follow);
	if (r.follow.has_reported)
		return code;
	return cli_fail(options->is_json, code,
			r.follow.error[0] != '\0'
					? r.follow.error
					: "stopped by a signal before there was a job");
}
