#include "control/coordinator/completed_checkpoint.h"

#include "control/coordinator/heap.h"

#include <stdlib.h>

void completed_checkpoint_create(
		struct completed_checkpoint **out, int64_t id, const char *location)
{
	struct completed_checkpoint *c = heap_zeroed(1, sizeof(*c));

	c->id = id;
	c->location = heap_text(location);
	*out = c;
}

void completed_checkpoint_destroy(struct completed_checkpoint *c)
{
	if (c == NULL)
		return;
	file_list_clear(&c->files);
	shared_list_clear(&c->shared);
	free(c->location);
	free(c);
}
