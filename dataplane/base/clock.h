#pragma once

/*
 * clock: the clock port and the real clocks behind it.
 *
 * Place    base; rule modules never include it, time reaches them as an argument.
 * Thread   any.
 * Time     monotonic nanoseconds for delays, wall-clock milliseconds for what people read and for
 *          checkpoint time stamps.
 */

#include <stdint.h>

/* The port: a hand-set clock in tests, CLOCK_MONOTONIC and CLOCK_REALTIME in a program. */
struct clock {
	uint64_t (*now_ns)(struct clock *c);
	int64_t (*wall_ms)(struct clock *c);
};

/* The real one; never freed. */
struct clock *clock_real(void);

uint64_t clock_monotonic_ns(void);
int64_t clock_wall_ms(void);
