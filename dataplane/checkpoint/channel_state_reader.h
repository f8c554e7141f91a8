#pragma once

/*
 * channel_state_reader: the in-flight buffers of one channel, read from the file of a checkpoint
 * (RE-16).
 *
 * Place    checkpoint; for restore and for whoever asks whether a checkpoint is whole.
 * Thread   one; blocks while it reads.
 * Memory   the section, until it is closed.
 * Errors   reading foreign bytes: -EBADMSG with file, offset and reason; -errno of the read.
 * Life     open, { chunk, read }*, close.
 */

#include "dataplane/checkpoint/channel_state_format.h"

enum { CHANNEL_STATE_READER_TEXT_BYTES = 1024 };

struct channel_state_reader;

/* Whose data it has to be. */
struct channel_state_owner {
	int64_t checkpoint_id;
	const char *vertex_uid;
	uint32_t subtask_index;
};

/* Reads section and chunks of a handle and checks them against file, handle and owner. */
int channel_state_open(struct channel_state_reader **out, const char *directory,
		const struct channel_state_handle *handle, const struct channel_state_owner *owner,
		char text[CHANNEL_STATE_READER_TEXT_BYTES]);

uint32_t channel_state_chunk_count(const struct channel_state_reader *r);
const struct channel_state_chunk *channel_state_chunk(
		const struct channel_state_reader *r, uint32_t index);

/* Reads the bytes of a chunk into `room`, which is at least its size, and checks their sum. */
int channel_state_read_chunk(const struct channel_state_reader *r, uint32_t index, uint8_t *room,
		char text[CHANNEL_STATE_READER_TEXT_BYTES]);

/* NULL is accepted. */
void channel_state_close(struct channel_state_reader *r);

/* Is all of it there and undamaged? */
int channel_state_verify(const char *directory, const struct channel_state_handle *handle,
		const struct channel_state_owner *owner,
		char text[CHANNEL_STATE_READER_TEXT_BYTES]);
