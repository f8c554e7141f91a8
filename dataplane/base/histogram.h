#pragma once

/*
 * histogram: the exact quantiles of the last HISTOGRAM_COUNT_MAX samples, with min, max and mean.
 *
 * Thread   one owner.
 * Memory   inside the struct, zero-initialised is empty.
 */

#include <stdint.h>

enum { HISTOGRAM_COUNT_MAX = 4096 };

struct histogram {
	uint64_t count; /* of all samples ever */
	double sum;
	int64_t min, max;
	int64_t samples[HISTOGRAM_COUNT_MAX]; /* a ring */
};

void histogram_add(struct histogram *h, int64_t sample);
/* Nearest-rank quantile, 0 <= q <= 1; 0 when empty. */
int64_t histogram_quantile(const struct histogram *h, double q);
double histogram_mean(const struct histogram *h);
