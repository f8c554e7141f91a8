#include "tests/scenario/task_lists.h"

#include "dataplane/base/check.h"

#include <stdlib.h>

void task_words_add(struct words *list, char *word)
{
	CHECK(word != NULL);
	list->at = reallocarray(list->at, list->count + 1, sizeof(list->at[0]));
	CHECK(list->at != NULL);
	list->at[list->count++] = word;
}

void task_words_clear(struct words *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		free(list->at[i]);
	free(list->at);
	*list = (struct words){0};
}

void task_ids_add(struct ids *list, int64_t id)
{
	list->at = reallocarray(list->at, list->count + 1, sizeof(list->at[0]));
	CHECK(list->at != NULL);
	list->at[list->count++] = id;
}

bool task_ids_has(const struct ids *list, int64_t id)
{
	for (uint32_t i = 0; i < list->count; i++) {
		if (list->at[i] == id)
			return true;
	}
	return false;
}

void task_ids_clear(struct ids *list)
{
	free(list->at);
	*list = (struct ids){0};
}
