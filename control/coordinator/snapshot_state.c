#include "control/coordinator/snapshot_state.h"

#include "control/coordinator/heap.h"

#include <stdlib.h>
#include <string.h>

/* Lists have room for the next power of two, so that growing one by one stays linear. */
static uint32_t room(uint32_t count)
{
	uint32_t r = 1;

	while (r < count)
		r *= 2;
	return r;
}

static bool is_full(uint32_t count)
{
	return (count & (count - 1)) == 0;
}

void file_list_add(struct file_list *l, const char *name)
{
	if (is_full(l->count))
		l->names = heap_resize(l->names, room(l->count + 1), sizeof(*l->names));
	l->names[l->count++] = heap_text(name);
}

void file_list_move(struct file_list *l, struct file_list *from)
{
	uint32_t count = l->count + from->count;

	if (from->count > 0) {
		l->names = heap_resize(l->names, room(count), sizeof(*l->names));
		memcpy(l->names + l->count, from->names, from->count * sizeof(*l->names));
		l->count = count;
	}
	free(from->names);
	*from = (struct file_list){ 0 };
}

void file_list_clear(struct file_list *l)
{
	for (uint32_t i = 0; i < l->count; i++)
		free(l->names[i]);
	free(l->names);
	*l = (struct file_list){ 0 };
}

void shared_list_add(struct shared_list *l, const char *key, const char *file, bool keeps_creator)
{
	if (is_full(l->count))
		l->items = heap_resize(l->items, room(l->count + 1), sizeof(*l->items));
	l->items[l->count++] = (struct shared_file){
		.key = heap_text(key),
		.file = heap_text(file),
		.keeps_creator = keeps_creator,
	};
}

void shared_list_move(struct shared_list *l, struct shared_list *from)
{
	uint32_t count = l->count + from->count;

	if (from->count > 0) {
		l->items = heap_resize(l->items, room(count), sizeof(*l->items));
		memcpy(l->items + l->count, from->items, from->count * sizeof(*l->items));
		l->count = count;
	}
	free(from->items);
	*from = (struct shared_list){ 0 };
}

void shared_list_clear(struct shared_list *l)
{
	for (uint32_t i = 0; i < l->count; i++) {
		free(l->items[i].key);
		free(l->items[i].file);
	}
	free(l->items);
	*l = (struct shared_list){ 0 };
}

bool snapshot_state_is_empty(const struct snapshot_state *s)
{
	return s->bytes == NULL && s->files.count == 0 && s->shared.count == 0;
}

void snapshot_state_clear(struct snapshot_state *s)
{
	free(s->bytes);
	s->bytes = NULL;
	s->byte_count = 0;
	file_list_clear(&s->files);
	shared_list_clear(&s->shared);
}

void snapshot_state_move(struct snapshot_state *to, struct snapshot_state *from)
{
	*to = *from;
	*from = (struct snapshot_state){ 0 };
}
