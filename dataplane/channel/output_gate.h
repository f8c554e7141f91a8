#pragma once

/*
 * output_gate: one output edge of a task: open buffers, partitioning, flush, events in line.
 *
 * Place    channel; the tail of an operator chain.
 * Thread   the producer's worker; create and destroy on the control thread.
 * Memory   all in create; buffers from the pool, never more than queue_count for each channel.
 * Time     callers pass now_ns, monotonic.
 * Errors   counts; -EAGAIN from broadcast.  A pool that is used up is a wrong sum: CHECK.
 * Life     create, { collect, watermark, broadcast, flush*, poll }*, destroy.
 *
 * A broadcast edge copies each record into the buffer of each channel.  Buffers are not shared
 * between channels: the number in a buffer's header, its announcement and its credit are one
 * channel's, and a second reference to a buffer means that it is being written.
 *
 * Ask for room once, then collect a batch without any check of a record.  Records whose size is
 * fixed never span buffers, variable ones may.
 */

#include "dataplane/channel/partitioner.h"
#include "dataplane/channel/ring_channel.h"
#include "dataplane/operator/operator.h"
#include "dataplane/wire/event.h"

struct buf_pool;
struct output_gate;
struct output_queue;

#define OUTPUT_GATE_FLUSH_NEVER UINT64_MAX

struct output_gate_config {
	struct buf_pool *pool;          /* borrowed */
	struct ring_channel **channels; /* channel_count of the partitioner; borrowed */
	struct partitioner_config partitioner;
	uint32_t record_bytes;          /* 0: variable */
	uint32_t record_bytes_max;      /* variable: without the prefix */
	uint64_t flush_ns;              /* execution.buffer-timeout; 0: at every chance */
	bool is_aligned_only; /* it cannot carry unaligned barriers (OU-2) */
};

/* Counters only grow; the owner reads them. */
struct output_gate_counters {
	uint64_t records, bytes, bufs; /* records: once, however many channels one goes to */
	uint64_t events;
	uint64_t backpressured_ns; /* output_gate_room was asked and gave 0 */
};

/* -EINVAL: a record does not fit what one channel may hold, a bad partitioner; -ENOMEM. */
int output_gate_create(struct output_gate **out, const struct output_gate_config *config);

/* Bytes one gate takes, without channels and buffers. */
uint64_t output_gate_memory_bytes(const struct output_gate_config *config);

uint32_t output_gate_channel_count(const struct output_gate *g);

/* Records that will surely be taken now, whatever their keys and sizes; at most
 * RECORDS_COUNT_MAX. */
uint32_t output_gate_room(struct output_gate *g);

/* Takes records from the front; all of them when there are no more than output_gate_room.
 * Variable records beyond the agreed largest are a bug of the operator and are refused: the
 * batch is taken up to there and output_gate_oversized_bytes tells its size. */
uint32_t output_gate_collect(struct output_gate *g, const struct weir_batch *batch);

/* The size of a record that was refused, or 0. */
uint32_t output_gate_oversized_bytes(const struct output_gate *g);

/* The watermark that holds behind all records so far.  Going back is ignored. */
void output_gate_watermark(struct output_gate *g, int64_t watermark);

/* Takes over buffers that waited on that channel when its checkpoint was taken, in order; before
 * anything is collected.  They leave before all that is collected (RE-12).  -ENOSPC: more than the
 * channel may hold; they stay the caller's. */
int output_gate_restore(
		struct output_gate *g, uint32_t channel, struct buf *const *bufs, uint32_t count);

/* Puts an event in line on every channel, behind all records so far: open buffers are finished,
 * cut, boundary, number and watermark are filled in.  A barrier that needs channel state goes over
 * an edge that cannot carry it as FORCED_ALIGNED (OU-3).  -EAGAIN: some channel has too many events
 * waiting; then nothing was done. */
int output_gate_broadcast(struct output_gate *g, const struct event *e);

/* True when a barrier that needs channel state keeps that over this edge. */
bool output_gate_carries_unaligned(const struct output_gate *g);

/* What the unaligned barrier just broadcast has overtaken on that channel: this many, the first
 * ones of its queue. */
uint32_t output_gate_overtaken_count(const struct output_gate *g, uint32_t channel);

/* True while a timeoutable barrier of that checkpoint waits on some channel (SP-13). */
bool output_gate_is_held(const struct output_gate *g, int64_t checkpoint_id);

/* As output_queue_let_go, in each channel. */
void output_gate_let_go(struct output_gate *g, int64_t checkpoint_id);

/* SP-15, as output_queue_time_out; the barrier leaves with the next poll. */
uint32_t output_gate_time_out(struct output_gate *g, uint32_t channel, int64_t checkpoint_id);

/* Finishes open buffers and watermarks not yet sent when flush_ns has passed since the last time.
 * Returns how many buffers that made. */
uint32_t output_gate_flush_aged(struct output_gate *g, uint64_t now_ns);

/* The same at once. */
uint32_t output_gate_flush(struct output_gate *g);

/* Moves events and, by credit, buffers from the queues to the channels.  Returns how many. */
uint32_t output_gate_poll(struct output_gate *g, uint64_t now_ns);

/* True while buffers or events wait in a queue. */
bool output_gate_has_queued(const struct output_gate *g);

/* True when nothing is open, nothing waits, and the last watermark is sent. */
bool output_gate_is_idle(const struct output_gate *g);

/* True when every consumer has processed all records up to the end of data (TK-13). */
bool output_gate_is_all_processed(struct output_gate *g);

const struct output_gate_counters *output_gate_counters(const struct output_gate *g);

/* The queue of one channel, for channel state. */
const struct output_queue *output_gate_queue(const struct output_gate *g, uint32_t channel);

/* Releases open and waiting buffers.  NULL is accepted. */
void output_gate_destroy(struct output_gate *g);
