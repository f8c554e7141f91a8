#pragma once

/*
 * metadata: the file `_metadata`, written last; a checkpoint without it does not exist (semantics
 * 20.1, 20.2, SL-7, SL-8).
 *
 * Place    control/metadata; the coordinator writes, restore and `weir inspect` read.
 * Thread   plain data; read and write block, so the coordinator calls them on its I/O thread.
 * Memory   a struct to be written borrows everything; one that was read owns it.
 * Errors   0 or -errno; reading foreign bytes -EBADMSG with file, offset and reason in `text`.
 */

#include "dataplane/base/ids.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	METADATA_TEXT_BYTES = 1024,
	METADATA_PATH_BYTES = 1024,
	METADATA_VERSION = 1,
	METADATA_BYTES_MAX = 256 * 1024 * 1024,
};

#define METADATA_FILE "_metadata"
/* That of a checkpoint that is no more, in the directory of one to come: its room on the disk. */
#define METADATA_SPARE_FILE "_metadata.spare"

struct metadata_bytes {
	const uint8_t *data;
	size_t size;
};

/* A master hook's state, or that of an operator's coordinator (`name` is its uid). */
struct metadata_named {
	const char *name;
	uint32_t version;
	struct metadata_bytes bytes;
};

struct metadata_subtask {
	uint32_t index;
	bool is_finished;            /* was finished when the checkpoint was taken */
	struct metadata_bytes state; /* an encoded task_state; empty: it had none */
};

struct metadata_vertex {
	const char *uid;
	uint32_t parallelism, max_parallelism;
	bool is_finished; /* all subtasks were; no entry follows */
	uint32_t subtask_count;
	const struct metadata_subtask *subtasks;
};

/* In the order of the job file, by which data in flight finds its channel; of a checkpoint that
 * knows none nothing can be said. */
struct metadata_edge {
	const char *from, *to, *partition;
};

/* `--set UID.PARAM=VALUE` or `-D key=value`, as given. */
struct metadata_override {
	const char *key, *value;
};

struct metadata_plugin {
	const char *path;
	uint64_t size;
	uint32_t crc; /* CRC32C of the file */
};

enum metadata_kind { METADATA_CHECKPOINT, METADATA_SAVEPOINT };

struct metadata {
	int64_t checkpoint_id;
	struct job_id job;
	const char *job_name;
	enum metadata_kind kind;
	uint32_t properties;     /* the bits of the coordinator (semantics 10.1) */
	int64_t triggered_ms;    /* wall clock */
	int64_t completed_ms;
	uint32_t key_group_count;
	const char *weir_version;
	const char *job_text;    /* the job file, as it was read */
	uint32_t master_count, coordinator_count, vertex_count;
	uint32_t override_count, plugin_count, sink_directory_count, edge_count;
	const struct metadata_named *masters, *coordinators;
	const struct metadata_vertex *vertices;
	const struct metadata_edge *edges;
	const struct metadata_override *overrides;
	const struct metadata_plugin *plugins;
	const char *const *sink_directories; /* where committed output is */
};

/* Writes <directory>/_metadata: a file aside, or over the spare one; fdatasync, rename, fsync of
 * the directory and of the one above.  -EEXIST: there is one already; it is never overwritten.
 * On failure nothing is left behind.  `*size` is that of the file. */
int metadata_write(const char *directory, const struct metadata *m, uint64_t *size);

/* `path` is the directory of a checkpoint or its `_metadata`.  `directory` receives the directory,
 * which the files of the states are relative to. */
int metadata_read(struct metadata **out, const char *path, char directory[METADATA_PATH_BYTES],
		char text[METADATA_TEXT_BYTES]);

/* The same from bytes; `name` stands in the texts. */
int metadata_decode(struct metadata **out, const uint8_t *bytes, size_t size, const char *name,
		char text[METADATA_TEXT_BYTES]);

/* Frees what read made; NULL is accepted. */
void metadata_free(struct metadata *m);
