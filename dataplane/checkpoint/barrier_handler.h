#pragma once

/*
 * barrier_handler: the pure rules of what a task does when a barrier, an announcement, a cancel
 * marker, the end of a channel or a timeout has come (flink-semantics section 16).
 *
 * Place    checkpoint; facts in, decisions out.  It touches no gate, clock or message.
 * Thread   one owner.
 * Memory   all in create: a few flags a channel, the decisions of one fact, and for counting one
 *          bit a channel for each checkpoint that may be counted.
 * Time     callers pass now_ns (monotonic) and wall_ms.
 * Errors   none: stale and late facts are part of the rules.
 * Life     create, { on_*, next until false, add_bytes }*, destroy.
 *
 * Channels are numbered through all gates of the task.  Decisions are to be carried out in the
 * order given.
 *
 * Two machines (16.1).  Exactly-once is the alternating one (16.6), of which the aligned one (16.5)
 * is what remains when no barrier is announced; at-least-once is the tracker (16.7).  On DESIGN's
 * cut some inner rules look different, and their effect is kept so:
 *
 *   16.1, 17.2  "block" stopped the sender; BARRIER_BLOCK stops the receiver, behind the barrier.
 *               Nobody has to be told when a stale barrier is dropped (BH-1): it blocked nothing.
 *   BH-6        an announced checkpoint is ended by a marker too (DESIGN, deliberate).
 *   IC-9        the number of a barrier in line is the event's own number in its channel: CONVERT
 *               names the checkpoint, and the barrier comes back as one that is AHEAD.
 *   IC-8, PS-1  whether a channel has seen a newer barrier is a fact of its own (on_arrival), so
 *               that the start is refused here and not half-way through.
 *   16.3        the "all barriers received" future is the decision BARRIER_ALL_RECEIVED; a failed
 *               one is the BARRIER_ABORT that precedes nothing else.
 */

#include "dataplane/checkpoint/checkpoint_metrics.h"
#include "dataplane/wire/event.h"

struct barrier_handler;

enum barrier_decision_kind {
	BARRIER_BLOCK,   /* .channel takes nothing more behind .barrier (at once, or AHEAD) */
	BARRIER_RESUME,  /* .channel goes on */
	BARRIER_CONVERT, /* the barrier of .checkpoint_id on .channel comes ahead of its line */
	BARRIER_PREPARE, /* step P (14.1) for .barrier */
	BARRIER_START,   /* persist what every channel holds before its barrier of .checkpoint_id */
	BARRIER_TRIGGER, /* perform the checkpoint of .barrier (TK-7) */
	BARRIER_STOP,    /* .checkpoint_id: nothing more that arrives is persisted */
	BARRIER_ALL_RECEIVED, /* of .checkpoint_id: its input is known */
	BARRIER_ABORT,   /* tell the task that .checkpoint_id is aborted, .reason (TK-8) */
};

struct barrier_decision {
	enum barrier_decision_kind kind;
	uint32_t channel;
	int64_t checkpoint_id;
	enum decline_reason reason;
	bool is_ahead; /* BLOCK: the barrier has not been reached in line yet */
	struct event barrier;
};

/* How a barrier has come. */
enum barrier_way {
	BARRIER_IN_LINE,
	BARRIER_AHEAD,  /* of the data before it: unaligned, or converted (IC-9) */
	BARRIER_BY_RPC, /* the coordinator asks instead (TK-4): the channel is not blocked by it */
};

/* 16.4, as they stand for one checkpoint. */
struct alignment_metrics {
	int64_t alignment_duration_ns;
	int64_t start_delay_ns;
	int64_t bytes_processed;
	bool has_timed_out; /* it began aligned and is unaligned now */
};

struct barrier_handler_config {
	uint32_t channel_count;
	bool has_finished_tasks; /* checkpoints-after-tasks-finish (BH-8) */
	bool is_at_least_once;
};

/* 0 or -ENOMEM. */
int barrier_handler_create(
		struct barrier_handler **out, const struct barrier_handler_config *config);
void barrier_handler_destroy(struct barrier_handler *h);

/* ---- facts ---- */

/* A barrier has come into `channel`, wherever in line it is (IC-4). */
void barrier_handler_on_arrival(struct barrier_handler *h, uint32_t channel, int64_t checkpoint_id);
/* A timeoutable one is announced (BH-5). */
void barrier_handler_on_announcement(struct barrier_handler *h, uint32_t channel,
		const struct event *barrier, uint64_t now_ns, int64_t wall_ms);
void barrier_handler_on_barrier(struct barrier_handler *h, uint32_t channel,
		const struct event *barrier, enum barrier_way way, uint64_t now_ns,
		int64_t wall_ms);
void barrier_handler_on_cancel(struct barrier_handler *h, uint32_t channel, int64_t checkpoint_id);
void barrier_handler_on_end_of_partition(struct barrier_handler *h, uint32_t channel,
		uint64_t now_ns, int64_t wall_ms);
/* Runs the alignment timer if it is due. */
void barrier_handler_on_time(struct barrier_handler *h, uint64_t now_ns);

/* When the alignment timer is due; UINT64_MAX: none is set. */
uint64_t barrier_handler_deadline_ns(const struct barrier_handler *h);

/* The next decision the last fact led to; false: none left.  All must be taken before the next
 * fact. */
bool barrier_handler_next(struct barrier_handler *h, struct barrier_decision *out);

/* IG-4: bytes of a data buffer were taken. */
void barrier_handler_add_bytes(struct barrier_handler *h, uint64_t bytes);

/* BH-10: nothing more will be asked for. */
void barrier_handler_close(struct barrier_handler *h);

/* ---- questions ---- */

/* The metrics of checkpoint `id` (16.4: zero when it is not the one aligned last). */
struct alignment_metrics barrier_handler_metrics(
		const struct barrier_handler *h, int64_t checkpoint_id, uint64_t now_ns);

/* The newest id known, -1 at first. */
int64_t barrier_handler_current(const struct barrier_handler *h);
/* Checkpoints being collected, oldest first; only counting has more than one. */
uint32_t barrier_handler_pending_count(const struct barrier_handler *h);
int64_t barrier_handler_pending_at(const struct barrier_handler *h, uint32_t index);
/* An unaligned checkpoint is triggered, and waits for the other channels' barriers or ends. */
bool barrier_handler_is_overtaking(const struct barrier_handler *h);
uint32_t barrier_handler_open_count(const struct barrier_handler *h);
bool barrier_handler_is_channel_open(const struct barrier_handler *h, uint32_t channel);
