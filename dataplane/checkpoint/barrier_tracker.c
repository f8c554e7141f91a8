/*
 * At-least-once: 16.7.  Nothing is blocked; checkpoints are counted side by side.
 *
 * `current` is the newest id that was entered; a barrier of a task's only open channel is not.
 */

#include "dataplane/checkpoint/barrier_handler_internal.h"

#include <string.h>

/* ---- entries ---- */

static void remove_first(struct barrier_handler *h, uint32_t count)
{
	struct tracked removed[TRACKED_MAX];

	CHECK(count <= h->tracked_count);
	memcpy(removed, h->tracked, count * sizeof(removed[0]));
	memmove(h->tracked, h->tracked + count,
			(TRACKED_MAX - count) * sizeof(h->tracked[0]));
	/* The bits of a removed entry serve the next one. */
	memcpy(h->tracked + TRACKED_MAX - count, removed, count * sizeof(removed[0]));
	h->tracked_count -= count;
}

/* TRACKED_MAX: there is none. */
static uint32_t find(const struct barrier_handler *h, int64_t id)
{
	for (uint32_t i = 0; i < h->tracked_count; i++) {
		if (h->tracked[i].barrier.checkpoint_id == id)
			return i;
	}
	return TRACKED_MAX;
}

/* A channel counts once; true when all have. */
static bool count_channel(struct tracked *t, uint32_t channel)
{
	uint64_t bit = 1ull << (channel % 64);

	if ((t->seen[channel / 64] & bit) == 0) {
		t->seen[channel / 64] |= bit;
		t->count++;
	}
	return t->count == t->target_count;
}

/* BT-1: one too many drops the oldest. */
static struct tracked *append(
		struct barrier_handler *h, const struct event *barrier, uint32_t channel)
{
	if (h->tracked_count == TRACKED_MAX)
		remove_first(h, 1);

	struct tracked *t = &h->tracked[h->tracked_count++];
	t->barrier = *barrier;
	t->count = 0;
	t->target_count = h->open_count;
	t->is_aborted = false;
	memset(t->seen, 0, (h->config.channel_count + 63) / 64 * sizeof(t->seen[0]));
	(void)count_channel(t, channel);
	h->current = barrier->checkpoint_id;
	return t;
}

static void trigger(struct barrier_handler *h, const struct event *barrier)
{
	barrier_decide(h, BARRIER_TRIGGER)->barrier = *barrier;
}

/* BT-3: earlier ones vanish without a word. */
static void finish(struct barrier_handler *h, uint32_t index, uint64_t now_ns)
{
	struct tracked t = h->tracked[index];

	remove_first(h, index + 1);
	if (t.is_aborted)
		return;
	if (t.barrier.checkpoint_id == h->current && h->is_aligning)
		barrier_metrics_end(h, now_ns);
	trigger(h, &t.barrier);
}

static void abort_tracked(struct barrier_handler *h, struct tracked *t, enum decline_reason reason)
{
	if (t->is_aborted)
		return;
	t->is_aborted = true;
	if (t->barrier.checkpoint_id == h->metrics_id)
		barrier_metrics_reset(h, h->metrics_id);
	barrier_decide_abort(h, t->barrier.checkpoint_id, reason);
}

/* ---- facts ---- */

void barrier_tracker_on_barrier(struct barrier_handler *h, uint32_t channel,
		const struct event *barrier, uint64_t now_ns, int64_t wall_ms)
{
	int64_t id = barrier->checkpoint_id;
	uint32_t index = find(h, id);

	if (id > h->current && h->open_count == 1) { /* BT-2 */
		barrier_metrics_reset(h, id);
		barrier_metrics_delay(h, barrier, wall_ms);
		trigger(h, barrier);
	} else if (index != TRACKED_MAX) { /* BT-3 */
		if (count_channel(&h->tracked[index], channel))
			finish(h, index, now_ns);
	} else if (id > h->current) { /* BT-4 */
		barrier_metrics_reset(h, id);
		barrier_metrics_delay(h, barrier, wall_ms);
		barrier_metrics_begin(h, now_ns);
		(void)append(h, barrier, channel);
	}
}

/* BT-5, of checkpoints older than the marker's. */
static void abort_older(struct barrier_handler *h, int64_t id)
{
	while (h->tracked_count > 0 && h->tracked[0].barrier.checkpoint_id < id) {
		abort_tracked(h, &h->tracked[0], DECLINE_ON_CANCELLATION_BARRIER);
		remove_first(h, 1);
	}
}

void barrier_tracker_on_cancel(struct barrier_handler *h, uint32_t channel, int64_t checkpoint_id)
{
	if (checkpoint_id > h->current && h->open_count == 1) {
		barrier_metrics_reset(h, checkpoint_id);
		barrier_decide_abort(h, checkpoint_id, DECLINE_ON_CANCELLATION_BARRIER);
		return;
	}
	abort_older(h, checkpoint_id);
	if (h->tracked_count > 0 && h->tracked[0].barrier.checkpoint_id == checkpoint_id) {
		abort_tracked(h, &h->tracked[0], DECLINE_ON_CANCELLATION_BARRIER);
		if (count_channel(&h->tracked[0], channel))
			remove_first(h, 1);
	} else if (checkpoint_id > h->current) {
		/* The barriers that still come are swallowed by it. */
		struct event marked = {.kind = EVENT_BARRIER, .checkpoint_id = checkpoint_id};

		barrier_metrics_reset(h, checkpoint_id);
		abort_tracked(h, append(h, &marked, channel), DECLINE_ON_CANCELLATION_BARRIER);
	}
}

/* BT-6, the feature being on: the newest one that is complete now. */
static void count_end(struct barrier_handler *h, uint32_t channel, uint64_t now_ns)
{
	for (uint32_t i = h->tracked_count; i > 0; i--) {
		if (count_channel(&h->tracked[i - 1], channel)) {
			finish(h, i - 1, now_ns);
			return;
		}
	}
}

void barrier_tracker_on_end_of_partition(
		struct barrier_handler *h, uint32_t channel, uint64_t now_ns)
{
	if (h->config.has_finished_tasks) {
		count_end(h, channel, now_ns);
		return;
	}
	for (uint32_t i = 0; i < h->tracked_count; i++)
		abort_tracked(h, &h->tracked[i], DECLINE_INPUT_END_OF_STREAM);
	remove_first(h, h->tracked_count);
}
