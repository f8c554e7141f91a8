#pragma once

/*
 * snapshot_state: what one party - a subtask, an operator coordinator, a master hook - put into a
 * checkpoint: bytes the rules do not look into, and the files they must know of to delete them.
 *
 * Place    control/coordinator, the floor of the rules.
 * Memory   owns what it points to; all zeros is "no state"; texts are copied.
 * Errors   none: see heap.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names of files that belong to one checkpoint alone. */
struct file_list {
	char **names;
	uint32_t count;
};

void file_list_add(struct file_list *l, const char *name);
/* Moves all of `from` to the end of `l`; `from` is empty afterwards. */
void file_list_move(struct file_list *l, struct file_list *from);
void file_list_clear(struct file_list *l);

/* A file that later checkpoints may use too (SR-1). */
struct shared_file {
	char *key;
	char *file;         /* NULL: a placeholder, the registry knows the file */
	bool keeps_creator; /* the checkpoint that made it may not be deleted meanwhile (SR-2) */
};

struct shared_list {
	struct shared_file *items;
	uint32_t count;
};

void shared_list_add(struct shared_list *l, const char *key, const char *file, bool keeps_creator);
void shared_list_move(struct shared_list *l, struct shared_list *from);
void shared_list_clear(struct shared_list *l);

struct snapshot_state {
	void *bytes; /* malloc'ed, NULL when there are none */
	size_t byte_count;
	struct file_list files;
	struct shared_list shared;
};

bool snapshot_state_is_empty(const struct snapshot_state *s);
void snapshot_state_clear(struct snapshot_state *s);
/* Takes all of `from`, which is "no state" afterwards. */
void snapshot_state_move(struct snapshot_state *to, struct snapshot_state *from);
