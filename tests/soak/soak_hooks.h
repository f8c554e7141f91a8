#pragma once

/*
 * soak_hooks: what the linker puts in front of some functions of the product (-Wl,--wrap): disks
 * whose answers come as drawn, and mistakes that are made on purpose to see that they are found.
 *
 * Place    tests; linked into barrier-seeds only.
 * Thread   one.
 * Memory   one for the process, for functions are.
 */

#include <stdbool.h>
#include <stdint.h>

struct worker;

enum soak_mistake {
	SOAK_NO_MISTAKE,
	SOAK_DROP_INPUT,   /* a buffer at the cut is not kept by the receiver */
	SOAK_KEEP_TWICE,   /* one is kept twice */
	SOAK_DROP_OUTPUT,  /* one is not kept by the sender */
	SOAK_SWAP,         /* two are put back in the wrong order */
	SOAK_NO_BLOCK,     /* a channel is not blocked while others align */
	SOAK_MISTAKES_COUNT,
};

/* False: there is no such word. */
bool soak_mistake_parse(const char *word, enum soak_mistake *mistake);
const char *soak_mistake_name(enum soak_mistake mistake);

/* Of every third opportunity. */
void soak_hooks_make(enum soak_mistake mistake);

/* Of stores that are opened from now on. */
void soak_hooks_set_disk(uint64_t seed, uint32_t delay_max);

/* The worker of that number among those made so far: its TaskManager is not started, its turns are
 * taken by hand. */
struct worker *soak_hooks_worker(uint32_t index);
