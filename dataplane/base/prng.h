#pragma once

/* prng: seedable generator (xoshiro256**, Blackman and Vigna 2018) for jitter, faults and load. */

#include <stdint.h>

struct prng {
	uint64_t s[4];
};

/* Any seed will do, 0 included. */
void prng_seed(struct prng *p, uint64_t seed);
uint64_t prng_next(struct prng *p);
/* 0..bound-1; bound is 1 or more. */
uint64_t prng_below(struct prng *p, uint64_t bound);
/* 0 <= x < 1. */
double prng_unit(struct prng *p);
/* A seed nobody can foresee, from the kernel. */
uint64_t prng_seed_from_os(void);
