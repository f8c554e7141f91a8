/* Any bytes as a channel-state file: refused, or read to the end. */

#include "dataplane/checkpoint/channel_state_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As a handle that fits would have it: what is in the file decides. */
static void verify(const uint8_t *data, size_t size, const char *name, uint64_t offset)
{
	char text[CHANNEL_STATE_READER_TEXT_BYTES];
	struct channel_state_handle h = {.file = name, .offset = offset, .buf_count = 1};
	struct channel_state_owner owner = {1, "v", 0};
	struct channel_state_section s;
	struct channel_state_header header;
	char why[CHANNEL_STATE_FORMAT_TEXT_BYTES];

	if (channel_state_decode_header(&header, data, size, why) == 0)
		owner.checkpoint_id = header.checkpoint_id;
	if (offset <= size && channel_state_decode_section(
			&s, data + offset, size - offset, why) == 0) {
		h.side = s.side;
		h.gate = s.gate;
		h.channel = s.channel;
		h.bytes = s.bytes;
		h.buf_count = s.chunk_count;
		owner.vertex_uid = s.vertex_uid;
		owner.subtask_index = s.subtask_index;
		(void)channel_state_check_section(data + offset, size - offset, &h.crc, why);
	}
	(void)channel_state_verify("/proc/self/fd", &h, &owner, text);
}

/* Gives the sums that random bytes never have, so that what is behind them is reached. */
static void seal(uint8_t *data, size_t size)
{
	struct channel_state_header h = {1, CHANNEL_STATE_HEADER_BYTES,
		CHANNEL_STATE_SECTION_BYTES, 1};
	uint32_t chunks;

	if (size < CHANNEL_STATE_HEADER_BYTES + CHANNEL_STATE_SECTION_BYTES)
		return;
	channel_state_encode_header(data, &h);
	memcpy(&chunks, data + CHANNEL_STATE_HEADER_BYTES + 24, sizeof(chunks));
	if (chunks < 64 && channel_state_section_bytes(chunks) <= size - CHANNEL_STATE_HEADER_BYTES)
		(void)channel_state_seal_section(data + CHANNEL_STATE_HEADER_BYTES, chunks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	char name[16];
	int fd = memfd_create("channel state", MFD_CLOEXEC);

	memcpy(copy, data, size);
	if (size > 0 && data[size - 1] & 1)
		seal(copy, size);
	snprintf(name, sizeof(name), "%d", fd);
	if (fd >= 0 && write(fd, copy, size) == (ssize_t)size) {
		verify(copy, size, name, CHANNEL_STATE_HEADER_BYTES);
		verify(copy, size, name, size / 2);
	}
	close(fd);
	free(copy);
	return 0;
}
