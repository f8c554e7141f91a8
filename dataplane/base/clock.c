#include "dataplane/base/clock.h"

#include <time.h>

uint64_t clock_monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int64_t clock_wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static uint64_t real_now_ns(struct clock *c)
{
	(void)c;
	return clock_monotonic_ns();
}

static int64_t real_wall_ms(struct clock *c)
{
	(void)c;
	return clock_wall_ms();
}

struct clock *clock_real(void)
{
	static struct clock real = {real_now_ns, real_wall_ms};

	return &real;
}
