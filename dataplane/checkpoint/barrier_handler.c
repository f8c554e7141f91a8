#include "dataplane/checkpoint/barrier_handler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/checkpoint/barrier_handler_internal.h"

/* A fact leads at most to the end of one checkpoint and the whole of another one: each channel is
 * resumed twice, converted and blocked once; or to the end of all that is tracked. */
static uint32_t decision_count_max(uint32_t channel_count)
{
	return 4 * channel_count + TRACKED_MAX + 12;
}

static uint32_t seen_words(uint32_t channel_count)
{
	return (channel_count + 63) / 64;
}

/* ---- life ---- */

static int create_tracked(struct barrier_handler *h)
{
	uint32_t words = seen_words(h->config.channel_count);

	if (!h->config.is_at_least_once)
		return 0;
	h->seen = calloc((size_t)TRACKED_MAX * words, sizeof(h->seen[0]));
	if (h->seen == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < TRACKED_MAX; i++)
		h->tracked[i].seen = h->seen + (size_t)i * words;
	return 0;
}

int barrier_handler_create(
		struct barrier_handler **out, const struct barrier_handler_config *config)
{
	uint32_t count = config->channel_count;
	struct barrier_handler *h = calloc(1, sizeof(*h) + count * sizeof(h->channels[0]));

	if (h == NULL)
		return -ENOMEM;
	h->config = *config;
	h->decisions = calloc(decision_count_max(count), sizeof(h->decisions[0]));
	if (h->decisions == NULL || create_tracked(h) != 0) {
		barrier_handler_destroy(h);
		return -ENOMEM;
	}
	h->current = -1;
	h->last_done = -1;
	h->metrics_id = -1;
	h->deadline_ns = DEADLINE_NONE;
	h->open_count = count;
	for (uint32_t i = 0; i < count; i++)
		h->channels[i].is_open = true;
	*out = h;
	return 0;
}

void barrier_handler_destroy(struct barrier_handler *h)
{
	if (h == NULL)
		return;
	free(h->decisions);
	free(h->seen);
	free(h);
}

/* ---- decisions ---- */

struct barrier_decision *barrier_decide(struct barrier_handler *h, enum barrier_decision_kind kind)
{
	CHECK(h->decision_count < decision_count_max(h->config.channel_count));
	struct barrier_decision *d = &h->decisions[h->decision_count++];

	*d = (struct barrier_decision){.kind = kind};
	return d;
}

void barrier_decide_id(struct barrier_handler *h, enum barrier_decision_kind kind, int64_t id)
{
	barrier_decide(h, kind)->checkpoint_id = id;
}

void barrier_decide_abort(struct barrier_handler *h, int64_t id, enum decline_reason reason)
{
	struct barrier_decision *d = barrier_decide(h, BARRIER_ABORT);

	d->checkpoint_id = id;
	d->reason = reason;
}

bool barrier_handler_next(struct barrier_handler *h, struct barrier_decision *out)
{
	if (h->decision_next == h->decision_count) {
		h->decision_next = 0;
		h->decision_count = 0;
		return false;
	}
	*out = h->decisions[h->decision_next++];
	return true;
}

/* ---- 16.4 ---- */

void barrier_metrics_reset(struct barrier_handler *h, int64_t id)
{
	h->is_aligning = false;
	h->metrics_id = id;
	memset(&h->metrics, 0, sizeof(h->metrics));
}

void barrier_metrics_delay(
		struct barrier_handler *h, const struct event *barrier, int64_t wall_ms)
{
	h->metrics.start_delay_ns = event_age_ms(barrier, wall_ms) * 1000000;
}

void barrier_metrics_begin(struct barrier_handler *h, uint64_t now_ns)
{
	h->is_aligning = true;
	h->alignment_began_ns = now_ns;
}

void barrier_metrics_end(struct barrier_handler *h, uint64_t now_ns)
{
	h->is_aligning = false;
	h->metrics.alignment_duration_ns = (int64_t)(now_ns - h->alignment_began_ns);
}

void barrier_handler_add_bytes(struct barrier_handler *h, uint64_t bytes)
{
	if (h->is_aligning)
		h->metrics.bytes_processed += (int64_t)bytes;
}

struct alignment_metrics barrier_handler_metrics(
		const struct barrier_handler *h, int64_t checkpoint_id, uint64_t now_ns)
{
	struct alignment_metrics m = h->metrics;

	if (checkpoint_id != h->metrics_id)
		return (struct alignment_metrics){0};
	if (h->is_aligning)
		m.alignment_duration_ns = (int64_t)(now_ns - h->alignment_began_ns);
	return m;
}

/* ---- facts ---- */

static void check_fact(const struct barrier_handler *h, uint32_t channel)
{
	CHECK(h->decision_count == 0);
	CHECK(channel < h->config.channel_count);
	CHECK(h->channels[channel].is_open);
}

void barrier_handler_on_arrival(struct barrier_handler *h, uint32_t channel, int64_t checkpoint_id)
{
	check_fact(h, channel);
	if (checkpoint_id > h->channels[channel].arrived_id)
		h->channels[channel].arrived_id = checkpoint_id;
}

void barrier_handler_on_announcement(struct barrier_handler *h, uint32_t channel,
		const struct event *barrier, uint64_t now_ns, int64_t wall_ms)
{
	check_fact(h, channel);
	/* What counts takes barriers as they come, and there are none to announce. */
	if (!h->config.is_at_least_once)
		barrier_alignment_on_announcement(h, channel, barrier, now_ns, wall_ms);
}

void barrier_handler_on_barrier(struct barrier_handler *h, uint32_t channel,
		const struct event *barrier, enum barrier_way way, uint64_t now_ns,
		int64_t wall_ms)
{
	check_fact(h, channel);
	if (h->config.is_at_least_once)
		barrier_tracker_on_barrier(h, channel, barrier, now_ns, wall_ms);
	else
		barrier_alignment_on_barrier(h, channel, barrier, way, now_ns, wall_ms);
}

void barrier_handler_on_cancel(struct barrier_handler *h, uint32_t channel, int64_t checkpoint_id)
{
	check_fact(h, channel);
	if (h->config.is_at_least_once)
		barrier_tracker_on_cancel(h, channel, checkpoint_id);
	else
		barrier_alignment_on_cancel(h, checkpoint_id);
}

void barrier_handler_on_end_of_partition(struct barrier_handler *h, uint32_t channel,
		uint64_t now_ns, int64_t wall_ms)
{
	check_fact(h, channel);
	h->channels[channel].is_open = false;
	h->channels[channel].is_blocked = false;
	h->channels[channel].announced_id = 0;
	h->open_count--;
	if (h->config.is_at_least_once)
		barrier_tracker_on_end_of_partition(h, channel, now_ns);
	else
		barrier_alignment_on_end_of_partition(h, channel, now_ns, wall_ms);
}

void barrier_handler_on_time(struct barrier_handler *h, uint64_t now_ns)
{
	CHECK(h->decision_count == 0);
	if (now_ns < h->deadline_ns)
		return;
	h->deadline_ns = DEADLINE_NONE;
	barrier_alignment_on_timeout(h);
}

uint64_t barrier_handler_deadline_ns(const struct barrier_handler *h)
{
	return h->deadline_ns;
}

void barrier_handler_close(struct barrier_handler *h)
{
	h->deadline_ns = DEADLINE_NONE;
}

/* ---- questions ---- */

int64_t barrier_handler_current(const struct barrier_handler *h)
{
	return h->current;
}

uint32_t barrier_handler_pending_count(const struct barrier_handler *h)
{
	uint32_t count = 0;

	if (!h->config.is_at_least_once)
		return h->current >= 0 && h->current != h->last_done;
	for (uint32_t i = 0; i < h->tracked_count; i++)
		count += !h->tracked[i].is_aborted;
	return count;
}

int64_t barrier_handler_pending_at(const struct barrier_handler *h, uint32_t index)
{
	CHECK(index < barrier_handler_pending_count(h));
	if (!h->config.is_at_least_once)
		return h->current;
	for (uint32_t i = 0; i < h->tracked_count; i++) {
		if (!h->tracked[i].is_aborted && index-- == 0)
			return h->tracked[i].barrier.checkpoint_id;
	}
	CHECK(false); /* the index is below the count */
	return 0;
}

bool barrier_handler_is_overtaking(const struct barrier_handler *h)
{
	return h->is_unaligned && h->is_collecting;
}

uint32_t barrier_handler_open_count(const struct barrier_handler *h)
{
	return h->open_count;
}

bool barrier_handler_is_channel_open(const struct barrier_handler *h, uint32_t channel)
{
	return h->channels[channel].is_open;
}
