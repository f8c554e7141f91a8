#pragma once

/*
 * restart_strategy: whether a failed job starts again, and when (semantics FO-5).
 *
 * Place    control/coordinator, a rule: facts and time in, a decision out.
 * Thread   one owner.
 * Memory   in the struct.
 * Time     callers pass now_ns.
 *
 * Failures up to the moment of a restart belong to it: they neither count nor delay it more.
 */

#include "dataplane/base/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum restart_kind { RESTART_NONE, RESTART_FIXED_DELAY, RESTART_FAILURE_RATE, RESTART_EXPONENTIAL };

struct restart_config {
	enum restart_kind kind;
	uint64_t delay_ns;     /* of fixed-delay and failure-rate */
	uint32_t attempts_max; /* of fixed-delay, and of exponential-delay where 0 is no limit */
	uint32_t failures_max; /* of failure-rate: more than that in rate_interval_ns end the job */
	uint64_t rate_interval_ns;
	uint64_t initial_ns, max_ns, reset_ns; /* of exponential-delay */
	double multiplier, jitter;	       /* jitter 0.1: plus or minus a tenth */
	bool is_first_at_once; /* the first restart, and the first one after reset_ns of quiet */
};

struct restart_strategy {
	struct restart_config config;
	uint32_t attempts;
	uint64_t restart_at_ns; /* of the newest restart */
	uint64_t backoff_ns;	/* of the next one */
	bool is_restarting;	/* restart_at_ns says something */
	bool is_fresh;		/* no failure yet, or a long quiet since */
	uint64_t failure_count; /* of failure-rate, a ring */
	uint64_t failures_ns[RESTART_FAILURES_MAX + 1];
};

/* `failures_max` is at most RESTART_FAILURES_MAX, `multiplier` more than 1, `jitter` 0 to 1. */
void restart_strategy_init(struct restart_strategy *s, const struct restart_config *config);

/* The job failed.  False: it stays failed.  True: it starts again after `*delay_ns`.  `random` is
 * any 64 bits, for the jitter. */
bool restart_strategy_on_failure(
		struct restart_strategy *s, uint64_t random, uint64_t *delay_ns, uint64_t now_ns);

/* "exponential-delay" and so on. */
const char *restart_kind_name(enum restart_kind kind);
