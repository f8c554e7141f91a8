#pragma once

/*
 * barrier_handler: the pure rules of what a task does when a barrier, a cancel marker or the end of
 * a channel has come (flink-semantics 16.2 - 16.5; this is the aligned state machine).
 *
 * Place    checkpoint; facts in, decisions out.  It touches no gate, clock or message.
 * Thread   one owner.
 * Memory   two allocations in create: a few flags a channel, and the decisions of one fact.
 * Time     callers pass now_ns (monotonic) and wall_ms.
 * Errors   none: stale and late facts are part of the rules.
 * Life     create, { on_*, next until false, add_bytes }*, destroy.
 *
 * Channels are numbered through all gates of the task.  Decisions are to be carried out in the
 * order given.
 */

#include "dataplane/checkpoint/checkpoint_metrics.h"
#include "dataplane/wire/event.h"

struct barrier_handler;

enum barrier_decision_kind {
	BARRIER_BLOCK,   /* .channel takes nothing more */
	BARRIER_RESUME,  /* .channel goes on */
	BARRIER_TRIGGER, /* perform the checkpoint of .barrier (TK-7) */
	BARRIER_ABORT,   /* tell the task that .checkpoint_id is aborted, .reason (TK-8) */
};

struct barrier_decision {
	enum barrier_decision_kind kind;
	uint32_t channel;
	int64_t checkpoint_id;
	enum decline_reason reason;
	struct event barrier;
};

/* 16.4, as they stand for one checkpoint. */
struct alignment_metrics {
	int64_t alignment_duration_ns;
	int64_t start_delay_ns;
	int64_t bytes_processed;
};

struct barrier_handler_config {
	uint32_t channel_count;
	bool has_finished_tasks; /* checkpoints-after-tasks-finish (BH-8) */
};

/* 0 or -ENOMEM. */
int barrier_handler_create(
		struct barrier_handler **out, const struct barrier_handler_config *config);
void barrier_handler_destroy(struct barrier_handler *h);

/* A barrier is in line on `channel`.  `is_rpc`: asked for by the coordinator instead (TK-4), so
 * the channel is neither blocked nor resumed by it. */
void barrier_handler_on_barrier(struct barrier_handler *h, uint32_t channel,
		const struct event *barrier, bool is_rpc, uint64_t now_ns, int64_t wall_ms);
void barrier_handler_on_cancel(struct barrier_handler *h, uint32_t channel, int64_t checkpoint_id);
void barrier_handler_on_end_of_partition(
		struct barrier_handler *h, uint32_t channel, uint64_t now_ns);

/* The next decision the last fact led to; false: none left.  All must be taken before the next
 * fact. */
bool barrier_handler_next(struct barrier_handler *h, struct barrier_decision *out);

/* IG-4: bytes of a data buffer were taken. */
void barrier_handler_add_bytes(struct barrier_handler *h, uint64_t bytes);

/* The metrics of checkpoint `id` (16.4: zero when it is not the one aligned last). */
struct alignment_metrics barrier_handler_metrics(
		const struct barrier_handler *h, int64_t checkpoint_id, uint64_t now_ns);

/* The newest id known, -1 at first; the one being collected, or 0. */
int64_t barrier_handler_current(const struct barrier_handler *h);
int64_t barrier_handler_pending(const struct barrier_handler *h);
uint32_t barrier_handler_open_count(const struct barrier_handler *h);
bool barrier_handler_is_channel_open(const struct barrier_handler *h, uint32_t channel);
