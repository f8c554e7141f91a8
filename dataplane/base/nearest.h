#pragma once

/*
 * nearest: which known word a mistyped one was meant to be.
 *
 * Place    base; used wherever an unknown key, parameter or name is refused.
 * Thread   any; no state outside the struct.
 * Memory   borrows the words.
 * Life     nearest_begin, nearest_offer for each known word, nearest_best.
 */

#include <stdint.h>

struct nearest {
	const char *word;
	const char *best; /* NULL before the first offer */
	uint32_t distance;
};

void nearest_begin(struct nearest *n, const char *word);
void nearest_offer(struct nearest *n, const char *candidate);
/* The closest candidate when it is close enough to be a slip of the keyboard, else NULL. */
const char *nearest_best(const struct nearest *n);
