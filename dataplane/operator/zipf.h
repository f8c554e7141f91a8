#pragma once

/*
 * zipf: ranks 1..n, the k-th with a probability that falls as k^-exponent.
 *
 * Rejection-inversion (Hoermann and Derflinger 1996): no table, so n may be anything, and a little
 * more than one try a sample.
 *
 * Thread   read-only after zipf_init.
 */

#include <stdint.h>

struct zipf {
	double exponent, count;
	double area_from, area_to; /* under the hat, from rank 1 to rank n */
	double shortcut;           /* so near to the rank that no test is needed */
};

/* count >= 1, exponent > 0. */
void zipf_init(struct zipf *z, uint64_t count, double exponent);

/* One try: the rank for `unit` in [0, 1), or 0: draw again. */
uint64_t zipf_try(const struct zipf *z, double unit);
