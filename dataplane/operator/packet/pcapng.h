#pragma once

/*
 * pcapng: packets of a pcapng stream, each with the link type and the clock of its interface.
 *
 * libpcap reads pcapng as well, but gives up at an interface whose link type or snap length
 * differs from the first one's, and at a section in the other byte order; merged captures are
 * full of both.
 *
 * Place    operator/packet; behind capture_file.
 * Thread   one owner, which may block.
 * Memory   heap, one block of at most PCAPNG_BLOCK_BYTES_MAX and the interfaces of a section.
 * Errors   every length is foreign and checked; what is wrong is a line of text.
 */

#include "dataplane/operator/packet/capture_file.h"

#include <stdio.h>

enum { PCAPNG_BLOCK_BYTES_MAX = 16 * 1024 * 1024, PCAPNG_INTERFACES_MAX = 65536 };

struct pcapng;

/* `stream` stands at its beginning; borrowed.  -ENOMEM. */
int pcapng_create(struct pcapng **out, FILE *stream);
/* NULL is accepted. */
void pcapng_destroy(struct pcapng *p);

/* As capture_file_read; `text` is the reason alone, without the name of the file.  The number of
 * packets handed over is added to `*count`. */
enum capture_end pcapng_read(struct pcapng *p, uint32_t count_max, capture_packet_fn take,
		void *user, uint64_t *count, char text[CAPTURE_TEXT_BYTES]);
