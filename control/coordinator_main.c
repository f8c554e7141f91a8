/*
 * weir-coordinator: the JobManager: jobs, checkpoints, REST.
 *
 * When it listens it prints "REST http://HOST:PORT" and "RPC HOST:PORT", one line each, to
 * standard output.
 */

#include "control/cli/exit_codes.h"
#include "control/cli/job_options.h"
#include "control/cli/program_steps.h"
#include "control/config/config.h"
#include "control/coordinator/coordinator.h"
#include "control/coordinator/durable_file.h"
#include "control/net/http_server.h"
#include "control/net/loop.h"
#include "control/rest/rest.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/control_thread.h"
#include "dataplane/base/crash_point.h"
#include "dataplane/base/log.h"
#include "dataplane/base/parent.h"
#include "dataplane/base/process.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { END_TIMEOUT_S = 20 };

/* How long who asked for a stop has to come for its answer, and how often we look. */
#define NEWS_PATIENCE_NS UINT64_C(2000000000)
#define NEWS_PERIOD_NS UINT64_C(10000000)

struct program {
	struct job_options options;
	const char *recover; /* "all", "none", or a job id */
	int parent;          /* 0: none */
	struct config *config;
	struct loop *loop;
	struct loop_signal *on_term, *on_int;
	struct loop_timer *on_news;
	uint64_t told_ns; /* when it was told to end; 0: not yet */
	struct coordinator *coordinator;
	struct http_server *rest;
	char error[PROGRAM_ERROR_BYTES];
};

static const char usage[] =
		"Usage: weir-coordinator [OPTION]...\n"
		"Runs jobs on the TaskManagers that register with it.\n"
		"\n"
		"  --config FILE       read this config file\n"
		"  -D KEY=VALUE        set a config key (weir config lists them)\n"
		"  --recover all|none|JOBID\n"
		"                      which unfinished jobs of high-availability.storageDir\n"
		"                      go on (default: all)\n"
		"  --parent PID        end when that process, which started this one, ends\n"
		"  --help, --version\n"
		"\n"
		"Examples:\n"
		"  weir-coordinator --config /etc/weir/host.yaml\n"
		"  weir-coordinator -D high-availability.storageDir=/var/lib/weir/ha -D "
		"rest.bind-port=8081\n";

/* ---- the steps ---- */

static void end_without_news(void *context)
{
	struct program *p = context;

	if (coordinator_has_news(p->coordinator) &&
			clock_monotonic_ns() - p->told_ns < NEWS_PATIENCE_NS)
		loop_timer_set(p->on_news, NEWS_PERIOD_NS);
	else
		loop_stop_mt(p->loop);
}

static void on_signal(void *context)
{
	struct program *p = context;

	if (p->told_ns != 0)
		return;
	p->told_ns = clock_monotonic_ns();
	log_info("coordinator", "ends: told by a signal; unfinished jobs go on with the next one");
	alarm(END_TIMEOUT_S);
	coordinator_suspend(p->coordinator);
	end_without_news(p);
}

static int make_loop(struct program *p)
{
	return loop_create(&p->loop);
}

static void destroy_loop(struct program *p)
{
	loop_destroy(p->loop);
}

/* Checkpoints that can never be written are known now, not when the first one fails. */
static int make_checkpoint_directory(struct program *p)
{
	const char *path = config_text(p->config, "execution.checkpointing.dir");
	int rc = durable_make_directory(path);

	if (rc == 0 && access(path, W_OK) != 0)
		rc = -errno;
	if (rc != 0)
		snprintf(p->error, sizeof(p->error),
				"execution.checkpointing.dir: %s cannot be made or written: %s; "
				"give another one",
				path, strerror(-rc));
	return rc;
}

static int make_coordinator(struct program *p)
{
	return coordinator_create(&p->coordinator, p->loop, p->config, p->error);
}

static void destroy_coordinator(struct program *p)
{
	coordinator_destroy(p->coordinator);
}

static int catch_signals(struct program *p)
{
	int rc = loop_timer_create(&p->on_news, p->loop, end_without_news, p);

	if (rc == 0)
		rc = loop_signal_create(&p->on_term, p->loop, SIGTERM, on_signal, p);
	return rc != 0 ? rc : loop_signal_create(&p->on_int, p->loop, SIGINT, on_signal, p);
}

static void release_signals(struct program *p)
{
	loop_signal_destroy(p->on_int);
	loop_signal_destroy(p->on_term);
	loop_timer_destroy(p->on_news);
}

static int make_rest(struct program *p)
{
	const char *host = config_text(p->config, "rest.bind-address");
	uint16_t ports[2];

	config_ports(p->config, "rest.bind-port", &ports[0], &ports[1]);
	int rc = http_server_create(
			&p->rest, p->loop, host, ports, rest_handle, p->coordinator);
	if (rc != 0)
		snprintf(p->error, sizeof(p->error),
				"cannot answer REST on %s:%u-%u (rest.bind-address, "
				"rest.bind-port): %s",
				host, ports[0], ports[1], strerror(-rc));
	return rc;
}

static void destroy_rest(struct program *p)
{
	http_server_destroy(p->rest);
}

static int announce(struct program *p)
{
	printf("REST http://%s:%u\nRPC %s:%u\n", config_text(p->config, "rest.bind-address"),
			http_server_port(p->rest), config_text(p->config, "jobmanager.bind-host"),
			coordinator_port(p->coordinator));
	fflush(stdout);
	log_info("coordinator", "answers REST on port %u, TaskManagers on port %u",
			http_server_port(p->rest), coordinator_port(p->coordinator));
	return 0;
}

static int schedule_control(struct program *p)
{
	return control_thread_schedule("coordinator",
			config_is_choice(p->config, "weir.control.scheduling", "prompt"),
			config_text(p->config, "weir.control.cores"), p->error);
}

static void release_control(struct program *p)
{
	(void)p;
	(void)control_thread_yield();
}

static int recover(struct program *p)
{
	if (strcmp(p->recover, "none") != 0)
		coordinator_recover(p->coordinator, p->recover);
	return 0;
}

static const struct program_step steps[] = {
		{"loop", make_loop, destroy_loop},
		{"checkpoint directory", make_checkpoint_directory, NULL},
		{"coordinator", make_coordinator, destroy_coordinator},
		{"signals", catch_signals, release_signals},
		{"REST", make_rest, destroy_rest},
		{"scheduling", schedule_control, release_control},
		{"recovery", recover, NULL},
		{"announcement", announce, NULL},
};

enum { STEPS_COUNT = sizeof(steps) / sizeof(steps[0]) };

static int run(struct program *p)
{
	const struct program_start start = {
			.name = "weir-coordinator",
			.module = "coordinator",
			.config = p->config,
			.steps = steps,
			.step_count = STEPS_COUNT,
			.error = p->error,
	};
	int code = program_begin(&start, p);

	if (code != WEIR_EXIT_DONE)
		return code;
	loop_run(p->loop);
	program_end(&start, p);
	return WEIR_EXIT_DONE;
}

/* ---- the command line ---- */

enum { OPTION_RECOVER = 1, OPTION_PARENT, OPTION_HELP, OPTION_VERSION };

static const struct option long_options[] = {
		{"recover", required_argument, NULL, OPTION_RECOVER},
		{"parent", required_argument, NULL, OPTION_PARENT},
		{"help", no_argument, NULL, OPTION_HELP},
		{"version", no_argument, NULL, OPTION_VERSION},
		{"config", required_argument, NULL, JOB_OPTION_CONFIG},
		{NULL, 0, NULL, 0},
};

static bool is_recover(const char *text)
{
	struct id128 id;

	return strcmp(text, "all") == 0 || strcmp(text, "none") == 0 || id128_parse(text, &id);
}

/* False: the program ends with `*exit_code`. */
static bool take_options(struct program *p, int argc, char **argv, int *exit_code)
{
	int c;

	*exit_code = WEIR_EXIT_USAGE;
	while ((c = getopt_long(argc, argv, "D:", long_options, NULL)) != -1) {
		switch (c) {
		case OPTION_RECOVER:
			p->recover = optarg;
			break;
		case OPTION_PARENT:
			if (parent_parse(optarg, &p->parent))
				break;
			fputs("weir-coordinator: --parent: expected the number of a process\n",
					stderr);
			return false;
		case OPTION_HELP:
			fputs(usage, stdout);
			*exit_code = WEIR_EXIT_DONE;
			return false;
		case OPTION_VERSION:
			puts("weir-coordinator " WEIR_VERSION);
			*exit_code = WEIR_EXIT_DONE;
			return false;
		default:
			if (!job_options_take(&p->options, c, optarg))
				return false;
		}
	}
	if (optind < argc || !is_recover(p->recover)) {
		fprintf(stderr, "weir-coordinator: %s: %s; see --help\n",
				optind < argc ? argv[optind] : "--recover",
				optind < argc ? "no such argument"
					      : "expected all, none or a job id");
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct program *p = calloc(1, sizeof(*p));
	int exit_code;

	if (p == NULL)
		return WEIR_EXIT_FAILURE;
	process_prepare();
	p->recover = "all";
	crash_point_arm();
	if (take_options(p, argc, argv, &exit_code)) {
		if (p->parent != 0 && !parent_bind(p->parent)) {
			exit_code = WEIR_EXIT_FAILURE;
		} else {
			exit_code = job_options_config(&p->options, &p->config);
			if (exit_code == WEIR_EXIT_DONE)
				exit_code = run(p);
			config_destroy(p->config);
		}
	}
	free(p);
	return exit_code;
}
