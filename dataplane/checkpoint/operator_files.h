#pragma once

/*
 * operator_files: files that operators of one subtask write and publish, as the file services of
 * operator.h promise.
 *
 * Place    checkpoint; called by the service table, driven by the task each turn.
 * Thread   one owner, the worker of the task.
 * Memory   two buffers of OPERATOR_FILES_BUFFER_BYTES for each open file, paths and the queue of
 *          publishes, all in the memory given to create_at.
 * Time     callers pass now_ns; no clock is read here.
 * Errors   what may pass (no space, an I/O error of a write) keeps the bytes, fails the barrier
 *          and is tried again; what has lost bytes or cannot pass is fatal to the task.
 * Life     create_at, { open, write, close, publish, barrier, step }*, stop, step until is_idle.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct operator_files;
struct store;

enum {
	OPERATOR_FILES_OPEN_MAX = 16,
	OPERATOR_FILES_PUBLISH_MAX = 128,
	OPERATOR_FILES_BUFFER_BYTES = 65536,
	OPERATOR_FILES_PATH_BYTES = 1024, /* longest path, with the zero */
	OPERATOR_FILES_TEXT_BYTES = 1280,
};

/* Who asked for a publish, given back when it ends. */
struct operator_files_done {
	uint32_t operator_index;
	uint64_t tag;
	int status; /* 0 or -errno */
};

uint64_t operator_files_memory_bytes(void);

/* `memory` is STORE_ALIGN_BYTES aligned; the store is borrowed and nobody else reaps it. */
struct operator_files *operator_files_create_at(void *memory, struct store *store);

/* A new file; it must not exist.  Only queues the work.  false: too many open, or the path is
 * too long. */
bool operator_files_open(struct operator_files *f, const char *path, uint32_t *file);

/* Takes all of up to OPERATOR_FILES_BUFFER_BYTES, or nothing and says false: the disk is behind. */
bool operator_files_write(struct operator_files *f, uint32_t file, const void *data, size_t size);

/* No more writes.  The number may be given out again once all is durable. */
void operator_files_close(struct operator_files *f, uint32_t file);

/* Renames durably within one directory, in the order asked, never before a file of that name
 * closed earlier is durable.  false: too many waiting, or a path is too long. */
bool operator_files_publish(struct operator_files *f, uint32_t operator_index, const char *from,
		const char *to, uint64_t tag);

/* The next publish that ended; false: none now. */
bool operator_files_next_done(struct operator_files *f, struct operator_files_done *done);

/* A checkpoint needs every file closed up to now durable: its bytes, and its name in its
 * directory.  One at a time; a new call replaces the one before. */
void operator_files_barrier(struct operator_files *f, int64_t checkpoint_id);

/* True when the question is settled; `*status` 0 or -errno with a text. */
bool operator_files_barrier_is_done(const struct operator_files *f, int *status,
		const char **text);

/* 0, or -errno once bytes have been lost or a file cannot be made: the task must fail. */
int operator_files_failure(const struct operator_files *f, const char **text);

/* Queues writes, reaps, tries again what failed.  Returns how much it did. */
uint32_t operator_files_step(struct operator_files *f, uint64_t now_ns);

/* True while a publish is waiting or under way. */
bool operator_files_is_publishing(const struct operator_files *f);

/* Takes nothing any more and drops what was not handed to the store yet; open files are closed as
 * they are.  Publishes asked for are still carried out. */
void operator_files_stop(struct operator_files *f);

/* Nothing under way: the memory may be given back. */
bool operator_files_is_idle(const struct operator_files *f);
