#pragma once

/* output_gate_internal: what output_gate.c (from records to channels) and output_gate_state.c (what
 * is asked of it, and put back into it) share. */

#include "dataplane/channel/output_gate.h"
#include "dataplane/channel/output_queue.h"

enum { BUSY_WORDS = CHANNELS_PER_GATE_MAX / 64 };

/* Where the next record of a channel goes; both NULL while no buffer is open. */
struct open {
	uint8_t *at, *end;
};

/* The rest of a channel. */
struct outlet {
	struct buf *buf;        /* the open one, or NULL */
	int64_t sent_watermark; /* of the last buffer or event made */
};

struct output_gate {
	struct open *open;
	struct outlet *outlets;
	struct output_queue *queues;
	struct buf_pool *pool;
	uint32_t channel_count, queue_count;
	uint32_t record_bytes;     /* 0: variable */
	uint32_t record_bytes_max; /* prefix included when variable */
	uint32_t usable_bytes;     /* of a buffer */
	uint32_t free_bytes;       /* every channel has at least that much; measured when low */
	uint32_t oversized_bytes;
	int64_t watermark;
	uint64_t flush_ns, next_flush_ns;
	bool is_aligned_only, is_starved;
	uint64_t starved_since_ns; /* 0: not seen yet */
	uint32_t processed_count;  /* channels, from 0 on, known to have processed all */
	struct output_gate_counters counters;
	uint64_t busy[BUSY_WORDS]; /* channels whose queue is not empty */
	uint16_t targets[RECORDS_COUNT_MAX];
	struct partitioner partitioner;
};

/* Buffers of that channel here, the open one too. */
static inline uint32_t output_gate_held_count(const struct output_gate *g, uint32_t c)
{
	return output_queue_count(&g->queues[c]) + (g->outlets[c].buf != NULL);
}
