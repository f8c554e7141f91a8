#pragma once

/* hand_clock: a clock that stands still until a test moves it. */

#include "dataplane/base/clock.h"

struct hand_clock {
	struct clock clock;
	uint64_t now_ns;
	int64_t wall_ms;
};

static inline uint64_t hand_clock_now_ns(struct clock *c)
{
	return ((struct hand_clock *)c)->now_ns;
}

static inline int64_t hand_clock_wall_ms(struct clock *c)
{
	return ((struct hand_clock *)c)->wall_ms;
}

static inline struct hand_clock hand_clock_make(uint64_t now_ns, int64_t wall_ms)
{
	return (struct hand_clock){{hand_clock_now_ns, hand_clock_wall_ms}, now_ns, wall_ms};
}
