/*
 * Exactly-once: 16.2, 16.3, 16.5 and 16.6.
 *
 * The four states are two bits: is_unaligned (the timeout has passed, or an unaligned barrier has
 * come) and is_collecting (aligned: a barrier is in; unaligned: the checkpoint is triggered).
 */

#include "dataplane/checkpoint/barrier_handler_internal.h"

static bool is_pending(const struct barrier_handler *h)
{
	return h->current >= 0 && h->current != h->last_done;
}

static bool is_all_received(const struct barrier_handler *h)
{
	return h->aligned_count == h->target_count;
}

static struct event as_unaligned(const struct event *barrier)
{
	struct event e = *barrier;

	e.options = checkpoint_options_as_unaligned(&barrier->options);
	return e;
}

/* ---- channels ---- */

static void block(struct barrier_handler *h, uint32_t channel, const struct event *barrier,
		enum barrier_way way)
{
	if (way == BARRIER_BY_RPC || checkpoint_options_is_unaligned(&barrier->options) ||
			h->channels[channel].is_blocked)
		return;
	h->channels[channel].is_blocked = true;

	struct barrier_decision *d = barrier_decide(h, BARRIER_BLOCK);
	d->channel = channel;
	d->is_ahead = way == BARRIER_AHEAD;
	d->barrier = *barrier;
}

/* Also forgets announcements: what is still in line then is stale. */
static void reset_channels(struct barrier_handler *h)
{
	for (uint32_t i = 0; i < h->config.channel_count; i++) {
		h->channels[i].announced_id = 0;
		if (!h->channels[i].is_blocked)
			continue;
		h->channels[i].is_blocked = false;
		barrier_decide(h, BARRIER_RESUME)->channel = i;
	}
	h->is_unaligned = false;
	h->is_collecting = false;
}

static void forget_aligned(struct barrier_handler *h)
{
	for (uint32_t i = 0; i < h->config.channel_count; i++)
		h->channels[i].is_aligned = false;
	h->aligned_count = 0;
}

static void convert(struct barrier_handler *h, uint32_t channel)
{
	struct barrier_decision *d = barrier_decide(h, BARRIER_CONVERT);

	d->channel = channel;
	d->checkpoint_id = h->channels[channel].announced_id;
}

static void convert_announced(struct barrier_handler *h)
{
	for (uint32_t i = 0; i < h->config.channel_count; i++) {
		if (h->channels[i].announced_id != 0)
			convert(h, i);
	}
}

/* ---- start and end ---- */

/* BH-7: channels go on first, then the task is told. */
static void abort_checkpoint(struct barrier_handler *h, int64_t id, enum decline_reason reason)
{
	int64_t aborted = h->current;

	CHECK(id >= h->current);
	h->current = id;
	h->last_done = id;
	h->deadline_ns = DEADLINE_NONE;
	if (h->is_unaligned && h->is_collecting)
		barrier_decide_id(h, BARRIER_STOP, aborted);
	reset_channels(h);
	barrier_metrics_reset(h, id);
	barrier_decide_abort(h, id, reason);
}

/* BH-2. */
static void start(struct barrier_handler *h, const struct event *barrier, uint64_t now_ns,
		int64_t wall_ms)
{
	const struct checkpoint_options *o = &barrier->options;

	if (is_pending(h))
		abort_checkpoint(h, h->current, DECLINE_SUBSUMED);
	h->current = barrier->checkpoint_id;
	h->pending_barrier = *barrier;
	forget_aligned(h);
	h->target_count = h->open_count;
	barrier_metrics_reset(h, h->current);
	if (checkpoint_options_is_timeoutable(o))
		h->deadline_ns = now_ns + checkpoint_options_timeout_left_ns(
				o, barrier->timestamp_ms, wall_ms);
}

static bool is_stale(const struct barrier_handler *h, int64_t id)
{
	return h->current > id || (h->current == id && !is_pending(h));
}

static void complete(struct barrier_handler *h)
{
	h->last_done = h->current;
	h->deadline_ns = DEADLINE_NONE;
	barrier_decide_id(h, BARRIER_ALL_RECEIVED, h->current);
}

/* ---- 16.6 ---- */

static void prepare_and_trigger(struct barrier_handler *h, const struct event *barrier)
{
	if (checkpoint_options_needs_channel_state(&barrier->options))
		barrier_decide(h, BARRIER_PREPARE)->barrier = *barrier;
	if (h->is_unaligned)
		barrier_decide_id(h, BARRIER_START, barrier->checkpoint_id);
	barrier_decide(h, BARRIER_TRIGGER)->barrier = *barrier;
}

/* IC-8: a channel that has seen a newer barrier cannot take part any more. */
static bool is_startable(const struct barrier_handler *h)
{
	for (uint32_t i = 0; i < h->config.channel_count; i++) {
		if (h->channels[i].is_open && h->channels[i].arrived_id > h->current)
			return false;
	}
	return true;
}

/* The unaligned form is triggered; false: it was aborted instead. */
static bool trigger_unaligned(struct barrier_handler *h, const struct event *barrier)
{
	struct event unaligned = as_unaligned(barrier);

	if (!is_startable(h)) {
		abort_checkpoint(h, h->current, DECLINE_CHECKPOINT_SUBSUMED);
		return false;
	}
	h->is_collecting = true;
	prepare_and_trigger(h, &unaligned);
	return true;
}

/* false: the checkpoint was aborted. */
static bool time_out(struct barrier_handler *h, const struct event *barrier)
{
	bool was_collecting = h->is_collecting;

	if (h->is_unaligned)
		return true;
	convert_announced(h);
	h->is_unaligned = true;
	h->metrics.has_timed_out = checkpoint_options_is_timeoutable(&barrier->options);
	h->is_collecting = false;
	return !was_collecting || trigger_unaligned(h, barrier);
}

/* Strictly later than the timeout, by the wall clock: the passive test. */
static bool is_timed_out(
		const struct barrier_handler *h, const struct event *barrier, int64_t wall_ms)
{
	return checkpoint_options_is_timeoutable(&barrier->options) &&
			barrier->checkpoint_id <= h->current &&
			barrier->options.aligned_timeout_ms < event_age_ms(barrier, wall_ms);
}

static void finish_unaligned(struct barrier_handler *h)
{
	barrier_decide_id(h, BARRIER_STOP, h->current);
	reset_channels(h);
}

/* UW, UC. */
static void take_unaligned(struct barrier_handler *h, uint32_t channel,
		const struct event *barrier, enum barrier_way way)
{
	block(h, channel, barrier, way);
	if (!h->is_collecting && !trigger_unaligned(h, barrier))
		return;
	if (is_all_received(h))
		finish_unaligned(h);
}

/* AW, AC; an aligned barrier. */
static void take_aligned(struct barrier_handler *h, uint32_t channel,
		const struct event *barrier, enum barrier_way way, int64_t wall_ms)
{
	h->channels[channel].announced_id = 0;
	block(h, channel, barrier, way);
	if (is_all_received(h)) {
		prepare_and_trigger(h, barrier);
		reset_channels(h);
	} else if (is_timed_out(h, barrier, wall_ms)) {
		struct event unaligned = as_unaligned(barrier);

		if (time_out(h, barrier))
			take_unaligned(h, channel, &unaligned, way);
	} else {
		h->is_collecting = true;
	}
}

static void take_barrier(struct barrier_handler *h, uint32_t channel,
		const struct event *barrier, enum barrier_way way, int64_t wall_ms)
{
	if (h->is_unaligned) {
		take_unaligned(h, channel, barrier, way);
	} else if (checkpoint_options_is_unaligned(&barrier->options)) {
		if (time_out(h, barrier))
			take_unaligned(h, channel, barrier, way);
	} else {
		take_aligned(h, channel, barrier, way, wall_ms);
	}
}

/* The end of a channel while a checkpoint is pending. */
static void take_end(struct barrier_handler *h, int64_t wall_ms)
{
	bool is_all = is_all_received(h);

	if (h->is_unaligned) {
		if (h->is_collecting && is_all)
			finish_unaligned(h);
	} else if (h->is_collecting && is_all) {
		prepare_and_trigger(h, &h->pending_barrier);
		reset_channels(h);
	} else if (h->is_collecting && is_timed_out(h, &h->pending_barrier, wall_ms)) {
		(void)time_out(h, &h->pending_barrier);
	}
}

/* ---- 16.3 ---- */

/* BH-4.  A channel counts once, however often it is reported. */
static void mark_aligned(
		struct barrier_handler *h, uint32_t channel, uint64_t now_ns, int64_t wall_ms)
{
	struct channel_state *c = &h->channels[channel];

	if (c->is_aligned)
		return;
	c->is_aligned = true;
	h->aligned_count++;
	if (h->aligned_count == 1) { /* not at the announcement */
		barrier_metrics_delay(h, &h->pending_barrier, wall_ms);
		barrier_metrics_begin(h, now_ns);
	}
	if (h->aligned_count == h->target_count)
		barrier_metrics_end(h, now_ns);
}

void barrier_alignment_on_barrier(struct barrier_handler *h, uint32_t channel,
		const struct event *barrier, enum barrier_way way, uint64_t now_ns,
		int64_t wall_ms)
{
	/* BH-1, stale: the channel was not blocked by it, so there is nothing to resume. */
	if (is_stale(h, barrier->checkpoint_id))
		return;
	if (barrier->checkpoint_id > h->current)
		start(h, barrier, now_ns, wall_ms);
	mark_aligned(h, channel, now_ns, wall_ms);
	take_barrier(h, channel, barrier, way, wall_ms);
	if (is_pending(h) && is_all_received(h))
		complete(h);
}

/* BH-5. */
void barrier_alignment_on_announcement(struct barrier_handler *h, uint32_t channel,
		const struct event *barrier, uint64_t now_ns, int64_t wall_ms)
{
	if (is_stale(h, barrier->checkpoint_id))
		return;
	if (barrier->checkpoint_id > h->current)
		start(h, barrier, now_ns, wall_ms);
	h->channels[channel].announced_id = barrier->checkpoint_id;
	if (h->is_unaligned)
		convert(h, channel);
}

/* BH-6: older ones, and one for a checkpoint that is over, are ignored. */
void barrier_alignment_on_cancel(struct barrier_handler *h, int64_t checkpoint_id)
{
	if (checkpoint_id > h->current || (checkpoint_id == h->current && is_pending(h)))
		abort_checkpoint(h, checkpoint_id, DECLINE_ON_CANCELLATION_BARRIER);
}

/* BH-8. */
void barrier_alignment_on_end_of_partition(
		struct barrier_handler *h, uint32_t channel, uint64_t now_ns, int64_t wall_ms)
{
	if (!is_pending(h))
		return;
	if (!h->config.has_finished_tasks) {
		abort_checkpoint(h, h->current, DECLINE_INPUT_END_OF_STREAM);
		return;
	}
	mark_aligned(h, channel, now_ns, wall_ms);
	take_end(h, wall_ms);
	if (is_pending(h) && is_all_received(h))
		complete(h);
}

/* The active test: the timer is there only while its checkpoint is pending. */
void barrier_alignment_on_timeout(struct barrier_handler *h)
{
	CHECK(is_pending(h));
	(void)time_out(h, &h->pending_barrier);
}
