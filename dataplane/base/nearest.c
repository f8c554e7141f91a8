#include "dataplane/base/nearest.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

enum { WORD_BYTES_MAX = 96, FAR = UINT32_MAX };

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Changes, insertions, deletions and swaps of neighbours that lead from `a` to `b`, whatever the
 * case of the letters; three rows of the table are enough. */
static uint32_t distance_of(const char *a, size_t a_size, const char *b, size_t b_size)
{
	uint32_t rows[3][WORD_BYTES_MAX + 1];
	uint32_t *before = rows[0], *last = rows[1], *row = rows[2];

	for (size_t j = 0; j <= b_size; j++)
		last[j] = (uint32_t)j;
	for (size_t i = 1; i <= a_size; i++) {
		row[0] = (uint32_t)i;
		for (size_t j = 1; j <= b_size; j++) {
			int x = tolower((unsigned char)a[i - 1]);
			int y = tolower((unsigned char)b[j - 1]);

			row[j] = smaller(last[j - 1] + (x != y), smaller(last[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
					y == tolower((unsigned char)a[i - 2]))
				row[j] = smaller(row[j], before[j - 2] + 1);
		}
		uint32_t *free_row = before;
		before = last;
		last = row;
		row = free_row;
	}
	return last[b_size];
}

void nearest_begin(struct nearest *n, const char *word)
{
	n->word = word;
	n->best = NULL;
	n->distance = FAR;
}

void nearest_offer(struct nearest *n, const char *candidate)
{
	size_t word_size = strlen(n->word), size = strlen(candidate);

	if (word_size > WORD_BYTES_MAX || size > WORD_BYTES_MAX)
		return;
	uint32_t distance = distance_of(n->word, word_size, candidate, size);
	if (distance < n->distance) {
		n->distance = distance;
		n->best = candidate;
	}
}

const char *nearest_best(const struct nearest *n)
{
	if (n->best == NULL)
		return NULL;
	return n->distance <= 1 + strlen(n->word) / 4 && n->distance < strlen(n->best) ? n->best
										       : NULL;
}
