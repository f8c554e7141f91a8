#pragma once

/*
 * capture_file: one pcap or pcapng file, read from any packet on.
 *
 * Place    operator/packet; pcap by libpcap, pcapng by pcapng.h.
 * Thread   one owner, which may block.
 * Memory   heap.
 * Time     of packets, in nanoseconds; clamped to what 64 bits hold.
 * Errors   -errno with one line that names the file.
 * Life     open, [check, seek], read until the file ends, close.
 */

#include <stdbool.h>
#include <stdint.h>

enum { CAPTURE_TEXT_BYTES = 512 };

struct capture_file;

/* Tells a file from another one under the same name.  It may grow, not shrink or change. */
struct capture_identity {
	uint64_t size_bytes; /* when first opened; 0 and all else 0: not known yet */
	uint32_t head_bytes, head_crc;
};

/* Where a packet begins. */
struct capture_mark {
	uint64_t offset; /* in the file */
	uint64_t packet; /* number, from 0 */
};

struct capture_packet {
	int64_t time_ns;
	const uint8_t *bytes; /* valid within the call */
	uint32_t captured_bytes, original_bytes;
	uint32_t link_type; /* DLT_* of libpcap */
};

enum capture_end {
	CAPTURE_GOES_ON,
	CAPTURE_ENDED,
	CAPTURE_WAS_CUT,    /* the file ends within a packet, or is damaged from here on */
	CAPTURE_UNREADABLE, /* it could not be read */
};

typedef void (*capture_packet_fn)(void *user, const struct capture_packet *packet);

/* -ENOENT ...; -EMEDIUMTYPE: no capture by its first bytes; -ENOTSUP: one that is not read. */
int capture_file_open(
		struct capture_file **out, const char *path, char text[CAPTURE_TEXT_BYTES]);

/* An empty file is a capture without packets, as capture programs leave it behind. */
void capture_file_identify(const struct capture_file *f, struct capture_identity *identity);
int capture_file_check(const struct capture_file *f, const struct capture_identity *expected,
		char text[CAPTURE_TEXT_BYTES]);

struct capture_mark capture_file_mark(const struct capture_file *f);

/* Goes to a mark, before the first packet is read.  -EBADMSG: no packet begins there. */
int capture_file_seek(struct capture_file *f, struct capture_mark mark,
		char text[CAPTURE_TEXT_BYTES]);

/* Passes over `count` packets.  -EBADMSG: there are not so many. */
int capture_file_skip(struct capture_file *f, uint64_t count, char text[CAPTURE_TEXT_BYTES]);

/* Hands up to `count_max` packets to `take`.  Less is no sign of the end, only the return value
 * is; WAS_CUT and UNREADABLE come with a text. */
enum capture_end capture_file_read(struct capture_file *f, uint32_t count_max,
		capture_packet_fn take, void *user, char text[CAPTURE_TEXT_BYTES]);

/* A time as packets have it; far enough from the ends of 64 bits to add a window to it. */
int64_t capture_time_clamp(__int128 ns);

/* NULL is accepted. */
void capture_file_close(struct capture_file *f);
