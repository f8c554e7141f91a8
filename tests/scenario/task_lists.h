#pragma once

/* task_lists: what has happened, in order, until a script asserts it. */

#include <stdbool.h>
#include <stdint.h>

struct words {
	char **at; /* each malloc'ed */
	uint32_t count;
};

struct ids {
	int64_t *at;
	uint32_t count;
};

/* One buffer given to the channel-state writer. */
struct in_flight {
	int64_t id;
	bool is_output;
	uint32_t channel, index; /* `index` counts in its channel */
	uint32_t label;
};

/* Takes over `word`. */
void task_words_add(struct words *list, char *word);
void task_words_clear(struct words *list);

void task_ids_add(struct ids *list, int64_t id);
bool task_ids_has(const struct ids *list, int64_t id);
void task_ids_clear(struct ids *list);
