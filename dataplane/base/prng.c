#include "dataplane/base/prng.h"

#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"

#include <sys/random.h>

static uint64_t rotate_left(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

/* splitmix64 spreads a seed over the state. */
void prng_seed(struct prng *p, uint64_t seed)
{
	for (int i = 0; i < 4; i++) {
		uint64_t z = (seed += 0x9e3779b97f4a7c15u);

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
		z = (z ^ z >> 27) * 0x94d049bb133111ebu;
		p->s[i] = z ^ z >> 31;
	}
}

uint64_t prng_next(struct prng *p)
{
	uint64_t *s = p->s;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

uint64_t prng_below(struct prng *p, uint64_t bound)
{
	CHECK(bound > 0);
	return (uint64_t)(((unsigned __int128)prng_next(p) * bound) >> 64);
}

double prng_unit(struct prng *p)
{
	return (double)(prng_next(p) >> 11) * 0x1.0p-53;
}

uint64_t prng_seed_from_os(void)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		seed = clock_monotonic_ns();
	return seed;
}
