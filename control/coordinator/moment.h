#pragma once

/* moment: one point in time on both clocks, as rules are given it. */

#include <stdint.h>

#define NS_PER_MS UINT64_C(1000000)

struct moment {
	uint64_t now_ns; /* monotonic: delays, timeouts, pauses */
	int64_t wall_ms; /* wall clock: what people read, and checkpoint time stamps */
};
