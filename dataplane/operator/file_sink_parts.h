#pragma once

/*
 * file_sink_parts: the files of an exactly-once file sink in its directory.
 *
 *     .UID-SUBTASK-ATTEMPT-N.inprogress    being written, or waiting for its checkpoint
 *     part-UID-SUBTASK-CHECKPOINT.csv      committed; the checkpoint's id has ten digits or more
 *     part-UID-SUBTASK-final.csv           the only part of a job without checkpoints
 *     .UID-SUBTASK.lock                    see file_sink_lock.h
 *     withdrawn/                           what a restore from an older checkpoint took back
 *
 * Place    operator.
 * Thread   any; no state.  All but the names block, so they are for control threads.
 * Errors   0 or -errno with one line that names the file.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PARTS_NAME_BYTES = 192,
	PARTS_DIRECTORY_BYTES = 3840,
	PARTS_PATH_BYTES = PARTS_DIRECTORY_BYTES + PARTS_NAME_BYTES,
	PARTS_ATTEMPT_BYTES = 33, /* 32 hex digits and a zero */
	PARTS_TEXT_BYTES = 512,
};

/* What has been written and is not committed; part of the sink's state. */
struct part {
	int64_t checkpoint_id; /* that commits it; 0: none, the job has no checkpoints */
	uint64_t number;       /* of its attempt */
	uint64_t size_bytes;
	char attempt[PARTS_ATTEMPT_BYTES];
	char reserved[3];
	uint32_t subtask; /* that wrote it, and whose name it has */
};

/* Whose parts. */
struct part_owner {
	const char *directory; /* shorter than PARTS_DIRECTORY_BYTES */
	const char *uid;       /* shorter than UID_BYTES_MAX, without a slash */
	uint32_t subtask;
	uint32_t parallelism; /* it sees to the parts of subtasks by their number modulo this */
};

/* Writes "PATH: reason" and returns `rc`. */
__attribute__((format(printf, 4, 5))) int parts_refuse(const char *path, int rc,
		char text[PARTS_TEXT_BYTES], const char *format, ...);

/* Full paths; of a part in progress only subtask, attempt and number count. */
void part_hidden_path(const struct part_owner *o, const struct part *p,
		char path[PARTS_PATH_BYTES]);
void part_final_path(const struct part_owner *o, const struct part *p,
		char path[PARTS_PATH_BYTES]);

/* Is `name` a committed part of that uid?  Its subtask and checkpoint; -1 for a final one. */
bool part_name_parse(const char *name, const char *uid, uint32_t *subtask, int64_t *checkpoint_id);

/* Commits what a restored checkpoint lists, durably; what is already visible is left alone. */
int parts_commit(const struct part_owner *o, const struct part *parts, uint32_t count,
		char text[PARTS_TEXT_BYTES]);

/* Removes what earlier attempts of that uid left in progress: the parts of the subtasks it sees to,
 * once those that count are committed. */
int parts_remove_hidden(const struct part_owner *o, char text[PARTS_TEXT_BYTES]);

/* -EEXIST: committed parts of that uid, of any subtask, are there. */
int parts_refuse_old(const struct part_owner *o, char text[PARTS_TEXT_BYTES]);

/* Makes the directory with those above it, and gives its full path. */
int parts_make_directory(const char *path, char directory[PARTS_DIRECTORY_BYTES],
		char text[PARTS_TEXT_BYTES]);
