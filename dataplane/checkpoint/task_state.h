#pragma once

/*
 * task_state: the snapshot of one subtask, described: what an acknowledgement carries, what
 * `_metadata` keeps and what a restore reads (semantics 20.1, SL-5, SL-6).
 *
 * Place    checkpoint.  Its encoded form is the message TaskState of state.proto.
 * Thread   plain data.
 * Memory   encode allocates while it runs when there are channels; decode makes one object that
 *          owns all it points to.
 * Errors   decode reads foreign bytes: -EBADMSG with one line, -ENOMEM.
 */

#include "dataplane/base/key_group.h"
#include "dataplane/base/limits.h"
#include "dataplane/checkpoint/channel_state_format.h"
#include "dataplane/operator/operator.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Those of the operators, their counters, and a few of the task itself. */
	TASK_STATE_HANDLES_MAX = CHAIN_OPERATORS_MAX * (STATES_PER_OPERATOR_MAX + 1) + 16,
	TASK_STATE_CHANNELS_MAX =
			(GATES_PER_TASK_MAX + OUTPUTS_PER_TASK_MAX) * CHANNELS_PER_GATE_MAX,
	TASK_STATE_NAME_BYTES_MAX = 256, /* of a state or file, with the zero */
	TASK_STATE_TEXT_BYTES = 512,
};

/* Where the bytes of one state are, and what they are. */
struct state_handle {
	const char *uid;
	const char *name;
	enum weir_state_kind kind;
	uint32_t key_bytes, value_bytes, version;
	uint64_t item_count;
	const char *file;     /* in the directory of the checkpoint; NULL: the bytes are here */
	uint64_t offset;      /* in the file */
	const uint8_t *bytes; /* NULL when in the file */
	uint64_t size;
	uint32_t crc;         /* CRC32C of the `size` bytes */
};

struct task_state {
	const char *vertex_uid;
	uint32_t subtask_index, parallelism;
	uint32_t group_count;          /* key groups of the job */
	struct key_group_range groups; /* of this subtask */
	uint32_t handle_count;
	const struct state_handle *handles; /* those of one uid stand together */
	uint32_t channel_count; /* with data in flight: of an unaligned checkpoint */
	const struct channel_state_handle *channels; /* inputs first, then by gate and channel */
};

/* Bytes of all states, and those of them that are in files. */
uint64_t task_state_total_bytes(const struct task_state *t);
uint64_t task_state_file_bytes(const struct task_state *t);

/* Bytes task_state_encode will write. */
size_t task_state_encoded_bytes(const struct task_state *t);

/* Writes them; `room` is at least task_state_encoded_bytes long. */
void task_state_encode(const struct task_state *t, uint8_t *room);

/* Reads and checks foreign bytes: every field in its bounds, file names without a path, inline
 * bytes of the size and checksum they claim. */
int task_state_decode(struct task_state **out, const uint8_t *bytes, size_t size,
		char text[TASK_STATE_TEXT_BYTES]);

/* Frees what decode made; NULL is accepted. */
void task_state_free(struct task_state *t);
