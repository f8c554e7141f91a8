#pragma once

/*
 * capture_writer: small capture files, packet by packet.
 *
 * Memory   a file on disk; closed by capture_writer_close.
 */

#include "tests/support/frame_builder.h"

#include <stdint.h>
#include <stdio.h>

enum capture_format {
	CAPTURE_PCAP,
	CAPTURE_PCAP_NS,
	CAPTURE_PCAP_SWAPPED,
	CAPTURE_PCAPNG,
	CAPTURE_PCAPNG_SWAPPED,
};

struct capture_writer {
	FILE *file;
	enum capture_format format;
};

void capture_writer_open(struct capture_writer *w, const char *path, enum capture_format format,
		uint32_t link_type);
/* pcapng only: packets name an interface; 0 is the one of capture_writer_open. */
void capture_writer_add_interface(
		struct capture_writer *w, uint32_t link_type, uint32_t snap, uint8_t resolution);
void capture_writer_add(struct capture_writer *w, int64_t time_ns, const void *bytes,
		uint32_t captured_bytes, uint32_t original_bytes);
/* Of an interface whose clock ticks as its resolution says. */
void capture_writer_add_on(struct capture_writer *w, uint32_t interface, uint64_t ticks,
		const void *bytes, uint32_t size);
/* pcapng only: another section, in that byte order, without interfaces. */
void capture_writer_add_section(struct capture_writer *w, enum capture_format format);
/* A body of bytes that have no order. */
void capture_writer_add_block(
		struct capture_writer *w, uint32_t type, const void *bytes, uint32_t size);
void capture_writer_close(struct capture_writer *w);

/* A directory of this test's own, and its removal with all that is in it. */
void make_test_directory(char path[256]);
void remove_test_directory(const char *path);

/* `count` UDP packets, number i at start + i * step from port i % flows. */
void write_udp_capture(const char *path, enum capture_format format, uint32_t count,
		uint32_t flows, int64_t start_ns, int64_t step_ns);
