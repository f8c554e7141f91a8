#include "control/proto/message.h"
#include "dataplane/base/crc.h"
#include "dataplane/base/limits.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct id128 attempt = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};

static size_t pack_decline(uint8_t **frame, size_t attempt_bytes)
{
	Weir__DeclineCheckpoint decline = WEIR__DECLINE_CHECKPOINT__INIT;
	Weir__Envelope e = WEIR__ENVELOPE__INIT;
	size_t bytes;

	decline.attempt = message_id_bytes(&attempt);
	decline.attempt.len = attempt_bytes;
	decline.checkpoint_id = 7;
	decline.reason = 2;
	decline.text = (char *)"no";
	e.body_case = WEIR__ENVELOPE__BODY_DECLINE_CHECKPOINT;
	e.decline_checkpoint = &decline;
	cr_assert_eq(message_pack(&e, frame, &bytes), 0);
	return bytes;
}

Test(message, comes_back_as_it_was_packed)
{
	uint8_t *frame;
	size_t bytes = pack_decline(&frame, 16), told;
	Weir__Envelope *e = NULL;

	cr_assert_eq(message_frame_bytes(frame, &told), 0);
	cr_assert_eq(told, bytes);
	cr_assert_eq(message_unpack(frame, bytes, &e), 0);
	cr_assert_str_eq(message_name(e), "decline_checkpoint");
	cr_assert(id128_is_equal(message_id(&e->decline_checkpoint->attempt), attempt));
	cr_assert_eq(e->decline_checkpoint->checkpoint_id, 7);
	cr_assert_str_eq(e->decline_checkpoint->text, "no");
	message_free(e);
	free(frame);
}

Test(message, with_any_flipped_bit_is_refused)
{
	uint8_t *frame;
	size_t bytes = pack_decline(&frame, 16);

	for (size_t bit = 0; bit < 8 * bytes; bit++) {
		Weir__Envelope *e = NULL;

		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_assert_eq(message_unpack(frame, bytes, &e), -EBADMSG, "bit %zu", bit);
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	free(frame);
}

Test(message, cut_short_anywhere_is_refused)
{
	uint8_t *frame;
	size_t bytes = pack_decline(&frame, 16);
	Weir__Envelope *e = NULL;

	for (size_t have = 0; have < bytes; have++)
		cr_assert_eq(message_unpack(frame, have, &e), -EBADMSG, "%zu bytes", have);
	free(frame);
}

Test(message, with_an_attempt_id_of_another_size_is_refused)
{
	uint8_t *frame;
	size_t bytes = pack_decline(&frame, 15);
	Weir__Envelope *e = NULL;

	cr_assert_eq(message_unpack(frame, bytes, &e), -EBADMSG);
	free(frame);
}

Test(message, larger_than_the_limit_is_refused_by_its_head)
{
	uint32_t bytes = MESSAGE_BYTES_MAX + 1;
	uint8_t head[MESSAGE_HEAD_BYTES] = {(uint8_t)bytes, (uint8_t)(bytes >> 8),
			(uint8_t)(bytes >> 16), (uint8_t)(bytes >> 24)};
	size_t told;

	cr_assert_eq(message_frame_bytes(head, &told), -EBADMSG);
	memset(head, 0, sizeof(head));
	cr_assert_eq(message_frame_bytes(head, &told), -EBADMSG, "an empty frame too");
}

/* A heartbeat of empty rows: two bytes on the wire each, many more in memory. */
Test(message, that_would_take_too_much_memory_is_refused)
{
	enum { ROWS = 3 * 1024 * 1024 };
	size_t body = 2 * ROWS;
	uint8_t *frame = malloc(MESSAGE_HEAD_BYTES + body + 16);
	uint8_t *at = frame + MESSAGE_HEAD_BYTES;
	Weir__Envelope *e = NULL;

	*at++ = 2 << 3 | 2; /* task_heartbeat */
	for (size_t left = body; left > 0; left >>= 7)
		*at++ = (uint8_t)((left & 127) | (left > 127 ? 128 : 0));
	for (size_t i = 0; i < ROWS; i++) {
		*at++ = 1 << 3 | 2; /* tasks */
		*at++ = 0;
	}
	size_t size = (size_t)(at - frame) - MESSAGE_HEAD_BYTES;
	uint32_t crc = crc32c(0, frame + MESSAGE_HEAD_BYTES, size);
	for (int i = 0; i < 4; i++) {
		frame[i] = (uint8_t)(size >> 8 * i);
		frame[4 + i] = (uint8_t)(crc >> 8 * i);
	}
	cr_assert_eq(message_unpack(frame, (size_t)(at - frame), &e), -EBADMSG);
	free(frame);
}
