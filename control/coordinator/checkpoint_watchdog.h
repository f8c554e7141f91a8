#pragma once

/*
 * checkpoint_watchdog: how long it is since a checkpoint of a job completed, and when to complain
 * that it is too long.
 *
 * Place    control/coordinator, pure.  It knows nothing of triggers, so it cannot be silent for
 *          the reason that they are.
 * Thread   one owner.
 * Memory   in the struct.
 * Time     the caller's monotonic clock.
 * Errors   none.
 * Life     init, { start, see, is_due, stop }*.
 *
 * The first complaint comes when the limit has passed, the next ones when twice, four times ...
 * that much has passed, so that a day of silence is told in a dozen lines.
 */

#include <stdbool.h>
#include <stdint.h>

struct checkpoint_watchdog {
	uint64_t limit_ns;  /* 0: it never complains */
	bool is_watching;
	uint64_t since_ns;  /* the newest completion, or the start */
	uint64_t due_ns;    /* of the next complaint */
	int64_t newest_id;  /* the newest completed checkpoint; 0: none */
	bool is_overdue;
};

/* Complains after `intervals` intervals, but not before `least_ns`.  Either 0: never. */
void checkpoint_watchdog_init(struct checkpoint_watchdog *w, uint32_t intervals,
		uint64_t interval_ns, uint64_t least_ns);

/* From now on checkpoints are expected; one that watches already goes on as it was. */
void checkpoint_watchdog_start(struct checkpoint_watchdog *w, uint64_t now_ns);
void checkpoint_watchdog_stop(struct checkpoint_watchdog *w);

/* The id of the newest completed checkpoint, 0 for none.  true: it is a new one. */
bool checkpoint_watchdog_see(struct checkpoint_watchdog *w, int64_t newest_id, uint64_t now_ns);
/* Once for each time a complaint is due. */
bool checkpoint_watchdog_is_due(struct checkpoint_watchdog *w, uint64_t now_ns);

/* Since the newest completion, or the start; 0 while it does not watch. */
uint64_t checkpoint_watchdog_age(const struct checkpoint_watchdog *w, uint64_t now_ns);
