#pragma once

/*
 * edge: an edge of a dataflow for tests: producers, channels, consumers and a pool that holds
 * exactly the sum of what the channels may hold.
 */

#include "dataplane/channel/input_gate.h"
#include "dataplane/channel/output_gate.h"
#include "dataplane/wire/buf.h"

enum { EDGE_SUBTASKS_MAX = 8 };

struct edge_config {
	uint32_t producers, consumers;
	enum partitioner_kind kind; /* forward to several consumers stands for hash, on the first 8
				     * bytes */
	uint32_t capacity_bytes;
	struct channel_config channel;
	uint32_t record_bytes, record_bytes_max;
	uint64_t flush_ns;
	bool is_aligned_only;
};

struct edge {
	struct edge_config config;
	struct buf_pool *pool;
	struct ring_channel *channels[EDGE_SUBTASKS_MAX][EDGE_SUBTASKS_MAX]; /* [from][to] */
	struct output_gate *out[EDGE_SUBTASKS_MAX];
	struct input_gate *in[EDGE_SUBTASKS_MAX];
};

enum { EDGE_KEY_GROUPS = 32 };

/* 16-byte records, four to a buffer, two producers and one consumer; nothing is flushed by time. */
extern const struct edge_config EDGE_JOIN;

void edge_open(struct edge *e, const struct edge_config *config);

/* Every buffer must have come back. */
void edge_close(struct edge *e);

/* One 16-byte record: true when it was taken. */
bool edge_send(struct edge *e, uint32_t from, uint64_t key, uint64_t value);

/* `count` of them with values from `value` on: all must be taken. */
void edge_send_run(struct edge *e, uint32_t from, uint64_t value, uint32_t count);

/* Puts an event in line: there must be room. */
void edge_announce(struct edge *e, uint32_t from, struct event event);

/* Flushes and pushes what may leave. */
void edge_push(struct edge *e, uint32_t from);

/* Polls, and asks for the next item. */
bool edge_next(struct edge *e, uint32_t to, struct input_item *item);

/* The next items must be `count` records with values from, from + 1 ...; all are consumed. */
void edge_expect_values(struct edge *e, uint32_t to, uint64_t from, uint32_t count);

/* The next item must be an event of that kind and id; it is left to consume. */
void edge_expect_event(struct edge *e, uint32_t to, uint32_t channel, enum event_kind kind,
		int64_t checkpoint_id);

struct event edge_barrier(int64_t checkpoint_id);
struct event edge_event(enum event_kind kind);
