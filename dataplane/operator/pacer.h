#pragma once

/*
 * pacer: how many records a source with a rate may make now.
 *
 * Place    operator; used by sources.
 * Thread   the owner of the struct.
 * Time     an argument, monotonic nanoseconds; nothing here sleeps.
 *
 * A source that was held up makes up for at most PACER_DEBT_NS, so that a stall is not followed by
 * a flood.
 */

#include <stdint.h>

enum { PACER_DEBT_NS = 100000000 };

struct pacer {
	uint64_t rate;   /* records a second; 0: no limit */
	uint64_t since_ns; /* records are counted from here; 0 before the first call */
	uint64_t count;  /* made since then */
};

/* At most `count_max` of what is due.  0: nothing is, before `*next_ns`. */
uint32_t pacer_allow(struct pacer *p, uint32_t count_max, uint64_t now_ns, uint64_t *next_ns);

/* Records that were in fact made. */
void pacer_made(struct pacer *p, uint32_t count);
