#pragma once

/*
 * inspect_report: a checkpoint as `weir inspect` shows it: what its metadata says, and for each
 * state what reading its bytes found.
 *
 * Place    control/cli; reads files only.
 * Thread   one; blocks while it reads every byte of the checkpoint.
 * Memory   one report owns everything.
 * Errors   0 or -errno with the reason in `text`; damage behind the metadata is in the report.
 */

#include "control/metadata/metadata.h"
#include "dataplane/checkpoint/channel_state_reader.h"
#include "dataplane/checkpoint/restore.h"
#include "dataplane/checkpoint/task_state.h"

#include <stdbool.h>
#include <stdint.h>

struct inspect_state {
	const struct state_handle *handle;
	char *problem; /* NULL: its checksum is right */
};

struct inspect_channel {
	const struct channel_state_handle *handle;
	char *problem; /* NULL: all its checksums are right */
};

struct inspect_subtask {
	const struct metadata_subtask *entry;
	struct task_state *state; /* NULL: none, or it cannot be read */
	char *problem;            /* NULL: none */
	struct inspect_state *states; /* one for each handle */
	struct inspect_channel *channels; /* the same for data in flight */
};

struct inspect_vertex {
	const struct metadata_vertex *entry;
	struct inspect_subtask *subtasks;
};

struct inspect_report {
	struct metadata *metadata;
	char directory[METADATA_PATH_BYTES];
	struct inspect_vertex *vertices;
	uint32_t problem_count;
	uint64_t total_bytes, file_bytes;
};

int inspect_report_create(struct inspect_report **out, const char *path,
		char text[METADATA_TEXT_BYTES]);
/* NULL is accepted. */
void inspect_report_destroy(struct inspect_report *r);
