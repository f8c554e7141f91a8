#pragma once

/*
 * message: control messages as frames of bytes, and back.
 *
 * Place    proto; over the generated code of weir.proto.
 * Thread   any; no state.
 * Memory   a frame and a decoded message are allocated, and freed with free and message_free.
 *          What a decoded message may take in memory is bounded by MESSAGE_MEMORY_MAX, whatever
 *          the bytes claim.
 * Errors   what is packed is ours, a breach trips CHECK; what is read is foreign, -EBADMSG.
 */

#include "dataplane/base/ids.h"

#include "control/proto/weir.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MESSAGE_PROTOCOL_VERSION = 2, /* one more with whatever the other end must know of */
	MESSAGE_HEAD_BYTES = 8,
	MESSAGE_MEMORY_MAX = 4 * 64 * 1024 * 1024,
	MESSAGE_TEXT_BYTES_MAX = 4096, /* of an error, a name, a path */
};

/* A frame with `envelope` in it.  -EMSGSIZE: larger than MESSAGE_BYTES_MAX, -ENOMEM. */
int message_pack(const Weir__Envelope *envelope, uint8_t **frame, size_t *frame_bytes);

/* The size of the frame that starts with these MESSAGE_HEAD_BYTES, head included; -EBADMSG when
 * it is larger than a message may be. */
int message_frame_bytes(const uint8_t head[MESSAGE_HEAD_BYTES], size_t *frame_bytes);

/* Reads one whole frame and checks every field.  -EBADMSG, -ENOMEM. */
int message_unpack(const uint8_t *frame, size_t frame_bytes, Weir__Envelope **envelope);

/* NULL is accepted. */
void message_free(Weir__Envelope *envelope);

/* The name of the message inside, for the log. */
const char *message_name(const Weir__Envelope *envelope);

/* Ids in messages.  A decoded message has been checked, so that reading cannot fail. */
struct id128 message_id(const ProtobufCBinaryData *bytes);
/* Points into `id`, which must outlive the message. */
ProtobufCBinaryData message_id_bytes(const struct id128 *id);
