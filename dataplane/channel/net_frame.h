#pragma once

/*
 * net_frame: what a link says, as bytes behind UDP.
 *
 * Place    channel; pure encoding; scripts/wireshark/weir.lua reads the same layout.
 * Thread   any.
 * Memory   none; a decoded frame points into the bytes it came from.
 * Errors   -EBADMSG: damaged, of another version, or not as long as it says; -EILSEQ: the checksum.
 *
 * Little endian.  Every frame starts with 24 bytes:
 *
 *      0  magic 0x7277   2  version   3  kind, and 0x80: bare
 *      4  CRC32C of all but itself; of a bare one 0
 *      8  token, of the pair of attempts that the link joins
 *     16  number, of this transmission: what is sent again gets a new one
 *     20  age: number - age is the oldest the sender still waits to hear of
 *     22  channel, counted by its producer's side; of DATA: how many pieces
 *
 * DATA is numbered: 24 nothing, 26 pieces of buffers, of any channels, one behind the other.  Each:
 *      0  sequence, low half   4  offset   6  size of the buffer   8  announcement it must wait for
 *     12  first record, 0xffff: none   14  bytes in here   16  watermark   24  channel
 *     26  nothing   28  the bytes
 *     A bare one has one piece: both ends are memory of one host, where nothing is summed.
 *     Behind Ethernet, IPv4 and UDP the bytes of the first begin at 96: copies want 16 and more.
 * EVENT is numbered: one event of the control lane.   24  checkpoint id   32  time stamp
 *     40  aligned timeout   48  cut   56  watermark   64  announcement   68  snapshot kind
 *     69  alignment   70  event kind   71  stop mode   72  boundary
 * CREDIT is numbered: 24 count, 26 nothing, then rows of 16 bytes: channel, flags (1: all
 *     processed), the last announcement there is room for, buffers processed.
 * ACK is not numbered: 24 base, below which nothing is waited for, 28 count of words, 30 nothing,
 *     then 64-bit words: bit i of word k says whether base + 64k + i has arrived.
 * PING and BYE are numbered and say no more.  BYE: this end is done; nothing follows.
 */

#include "dataplane/channel/net_path.h"
#include "dataplane/wire/event.h"

struct buf;
struct frame_out;

enum {
	NET_FRAME_BYTES = 24,
	NET_FRAME_PIECES_AT = 26,
	NET_FRAME_PIECE_BYTES = 28, /* in front of its bytes */
	NET_FRAME_DATA_BYTES = NET_FRAME_PIECES_AT + NET_FRAME_PIECE_BYTES,
	NET_FRAME_EVENT_BYTES = 80,
	NET_FRAME_CREDITS_MAX = 24,
	NET_FRAME_SPAN = 2048, /* numbers a sender may wait to hear of; bits of an ACK */
	NET_FRAME_WORDS_MAX = NET_FRAME_SPAN / 64,
	NET_FRAME_VERSION = 3,
};

enum net_frame_kind {
	NET_FRAME_DATA = 1,
	NET_FRAME_EVENT,
	NET_FRAME_CREDIT,
	NET_FRAME_ACK,
	NET_FRAME_PING,
	NET_FRAME_BYE,
};

struct net_credit {
	uint16_t channel;
	bool is_all_processed;
	uint32_t event_limit; /* events numbered up to it have room */
	uint64_t processed;   /* buffers */
};

/* A piece of a buffer, to be sent. */
struct net_piece {
	struct buf *buf;
	uint32_t announcement; /* that it is to wait for */
	uint32_t offset, bytes;
	uint16_t index, channel;
};

/* One that has arrived. */
struct net_frame_piece {
	uint32_t sequence, announcement, first_record;
	uint32_t offset, buf_bytes, payload_bytes;
	int64_t watermark;
	const uint8_t *payload;
	struct buf *buf; /* in whose memory the frame lies, or NULL: who keeps it, sets that */
	uint16_t channel;
};

struct net_frame {
	uint64_t token;
	uint32_t number;
	uint16_t age, channel;
	uint8_t kind;
	bool is_bare; /* it was not summed */
	/* data */
	const uint8_t *pieces, *pieces_end;
	struct buf *buf; /* of its one piece; decode knows none */
	/* event */
	struct event event;
	/* credit */
	uint32_t credit_count;
	const uint8_t *credits;
	/* ack */
	uint32_t base, word_count;
	const uint8_t *words;
};

/* What every frame of a link says of itself. */
struct net_frame_start {
	uint64_t token;
	uint32_t number;
	uint16_t age, channel;
	uint8_t kind;
};

/* Bytes of a buffer that fit one frame of the path, alone. */
uint32_t net_frame_payload_max(const struct net_path *p);

/* ---- encode: begin, one of the parts (PING and BYE have none), end ---- */

void net_frame_begin(struct frame_out *f, const struct net_path *p,
		const struct net_frame_start *start);
/* The only piece of the frame.  The reference that goes along with it is the caller's to take. */
void net_frame_put_data(struct frame_out *f, const struct net_piece *piece);
/* All of a frame with one bare piece, by one of the same buffer as long as it: only what differs is
 * written.  False: nothing was, they differ in more. */
bool net_frame_repeat(struct frame_out *f, const struct frame_out *like, const struct net_path *p,
		const struct net_frame_start *start, const struct net_piece *piece);
/* One of several, copied into the frame's scratch memory.  net_frame_share_room: the bytes that one
 * more may have; -1: there is no room for any. */
int32_t net_frame_share_room(const struct frame_out *f, const struct net_path *p);
/* What that is of a frame without any. */
int32_t net_frame_share_max(const struct net_path *p, uint32_t scratch_bytes);
void net_frame_share_data(struct frame_out *f, const struct net_piece *piece);
void net_frame_put_event(struct frame_out *f, const struct event *e);
/* At most NET_FRAME_CREDITS_MAX. */
void net_frame_put_credits(struct frame_out *f, const struct net_credit *credits, uint32_t count);
void net_frame_put_ack(
		struct frame_out *f, uint32_t base, const uint64_t *words, uint32_t word_count);
void net_frame_end(struct frame_out *f, const struct net_path *p);

/* ---- decode ---- */

/* `bytes` is the UDP payload.  Everything is checked that can be without knowing the link. */
int net_frame_decode(struct net_frame *f, const uint8_t *bytes, uint32_t size);
/* The next of its pieces; `*at` is f->pieces at first.  False: that was the last. */
bool net_frame_next_piece(
		const struct net_frame *f, const uint8_t **at, struct net_frame_piece *piece);
struct net_credit net_frame_credit_at(const struct net_frame *f, uint32_t index);
uint64_t net_frame_word_at(const struct net_frame *f, uint32_t index);
