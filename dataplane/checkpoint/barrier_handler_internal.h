#pragma once

/* barrier_handler_internal: what barrier_handler.c (common rules), barrier_alignment.c
 * (exactly-once) and barrier_tracker.c (at-least-once) share. */

#include "dataplane/checkpoint/barrier_handler.h"

#include "dataplane/base/check.h"

enum { TRACKED_MAX = 50 }; /* BT-1 */

#define DEADLINE_NONE UINT64_MAX

struct channel_state {
	bool is_open, is_aligned, is_blocked;
	int64_t arrived_id;   /* of the newest barrier that has come; 0: none */
	int64_t announced_id; /* announced for the current one, not processed yet; 0: none */
};

/* One checkpoint that the tracker counts. */
struct tracked {
	struct event barrier;
	uint32_t count, target_count;
	bool is_aborted;
	uint64_t *seen; /* a bit for each channel */
};

struct barrier_handler {
	struct barrier_handler_config config;
	int64_t current;   /* newest id known */
	int64_t last_done; /* largest id completed or cancelled */
	struct event pending_barrier;
	uint32_t open_count, aligned_count, target_count;

	/* 16.6: AW, AC, UW, UC */
	bool is_unaligned, is_collecting;
	uint64_t deadline_ns;

	/* 16.7, oldest first; `seen` of them all is one allocation */
	uint32_t tracked_count;
	struct tracked tracked[TRACKED_MAX];
	uint64_t *seen;

	/* 16.4; of metrics_id */
	int64_t metrics_id;
	bool is_aligning;
	uint64_t alignment_began_ns;
	struct alignment_metrics metrics;

	uint32_t decision_count, decision_next;
	struct barrier_decision *decisions;
	struct channel_state channels[];
};

struct barrier_decision *barrier_decide(
		struct barrier_handler *h, enum barrier_decision_kind kind);
void barrier_decide_id(struct barrier_handler *h, enum barrier_decision_kind kind, int64_t id);
void barrier_decide_abort(struct barrier_handler *h, int64_t id, enum decline_reason reason);

/* 16.4: of a checkpoint that begins; at its first barrier or end; while channels align. */
void barrier_metrics_reset(struct barrier_handler *h, int64_t id);
void barrier_metrics_delay(
		struct barrier_handler *h, const struct event *barrier, int64_t wall_ms);
void barrier_metrics_begin(struct barrier_handler *h, uint64_t now_ns);
void barrier_metrics_end(struct barrier_handler *h, uint64_t now_ns);

/* ---- barrier_alignment.c ---- */

void barrier_alignment_on_announcement(struct barrier_handler *h, uint32_t channel,
		const struct event *barrier, uint64_t now_ns, int64_t wall_ms);
void barrier_alignment_on_barrier(struct barrier_handler *h, uint32_t channel,
		const struct event *barrier, enum barrier_way way, uint64_t now_ns,
		int64_t wall_ms);
void barrier_alignment_on_cancel(struct barrier_handler *h, int64_t checkpoint_id);
/* The channel is closed already. */
void barrier_alignment_on_end_of_partition(
		struct barrier_handler *h, uint32_t channel, uint64_t now_ns, int64_t wall_ms);
void barrier_alignment_on_timeout(struct barrier_handler *h);

/* ---- barrier_tracker.c ---- */

void barrier_tracker_on_barrier(struct barrier_handler *h, uint32_t channel,
		const struct event *barrier, uint64_t now_ns, int64_t wall_ms);
void barrier_tracker_on_cancel(struct barrier_handler *h, uint32_t channel, int64_t checkpoint_id);
void barrier_tracker_on_end_of_partition(
		struct barrier_handler *h, uint32_t channel, uint64_t now_ns);
