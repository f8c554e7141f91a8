#pragma once

/*
 * job_options: the options that every command with a config or a job file takes.
 *
 * Place    control/cli, above control/config.
 * Thread   one.
 * Memory   borrows the texts of argv.
 * Errors   an exit code; the one message is then on standard error.
 * Life     zero-initialised, job_options_take for each option, job_options_config, then
 *          job_options_job.
 */

#include "control/config/job_file.h"

#include <getopt.h>

enum { JOB_OPTIONS_MAX = 256, JOB_OPTIONS_ERROR_BYTES = 1536 };

struct job_options {
	const char *config_path;
	uint32_t define_count, set_count;
	const char *defines[JOB_OPTIONS_MAX]; /* -D */
	const char *sets[JOB_OPTIONS_MAX];    /* --set */
	const char *restore;                  /* NULL: none */
	bool must_allow_rewind;
	char error[JOB_OPTIONS_ERROR_BYTES];  /* the one message, again */
};

/* For getopt_long: what take understands, beside -D with its argument. */
enum {
	JOB_OPTION_CONFIG = 0x1000,
	JOB_OPTION_SET,
	JOB_OPTION_RESTORE,
	JOB_OPTION_ALLOW_REWIND,
};
#define JOB_OPTION_SET_LONG {"set", required_argument, NULL, JOB_OPTION_SET}
#define JOB_OPTIONS_LONG                                                                           \
	{"config", required_argument, NULL, JOB_OPTION_CONFIG}, JOB_OPTION_SET_LONG

/* For commands that restore: -n stands for `-D JOB_OPTION_NON_RESTORED`, as with Flink. */
#define JOB_OPTION_NON_RESTORED "execution.state-recovery.ignore-unclaimed-state=true"
#define JOB_OPTION_NON_RESTORED_LONG {"allow-non-restored-state", no_argument, NULL, 'n'}
#define JOB_OPTION_NON_RESTORED_HELP                                                               \
	"  -n, --allow-non-restored-state\n"                                                       \
	"                          leave state of operators that are no more behind\n"

/* For commands that start a job, -n among them. */
#define JOB_START_LONG                                                                             \
	JOB_OPTION_NON_RESTORED_LONG, {"restore", required_argument, NULL, JOB_OPTION_RESTORE},    \
	{                                                                                          \
		"allow-rewind", no_argument, NULL, JOB_OPTION_ALLOW_REWIND                         \
	}
#define JOB_START_HELP                                                                             \
	"  --restore none|latest|PATH\n"                                                           \
	"                          begin anew, or from a checkpoint (none)\n"                      \
	"  --allow-rewind          when the newest checkpoint is damaged take an older\n"          \
	"                          one, and withdraw the output committed above it\n"              \
	JOB_OPTION_NON_RESTORED_HELP
#define JOB_RESTORE_EXPECTED "--restore: expected none, latest, or the path of a checkpoint"

/* Lines for --help. */
#define JOB_OPTION_SET_HELP                                                                        \
	"  --set UID.PARAM=VALUE   set a parameter of the operator with that uid\n"
#define JOB_OPTIONS_HELP                                                                           \
	"  --config FILE           read this config file\n"                                        \
	"  -D KEY=VALUE            set a config key (weir config lists them)\n"                    \
	JOB_OPTION_SET_HELP

/* false: not one of these, or too many of them (said on standard error). */
bool job_options_take(struct job_options *o, int option, const char *argument);

/* --restore has something that may be a value. */
bool job_options_has_good_restore(const struct job_options *o);

/* Presets, the config file, -D; checked.  0, or an exit code. */
int job_options_config(struct job_options *o, struct config **config);

/* The same, and a job file with its `config:` block and --set.  0, or an exit code. */
int job_options_job(struct job_options *o, const char *path, struct config **config,
		struct job_spec **spec);
