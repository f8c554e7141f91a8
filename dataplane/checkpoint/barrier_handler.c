#include "dataplane/checkpoint/barrier_handler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/base/check.h"

struct channel_state {
	bool is_open, is_aligned, is_blocked;
};

struct barrier_handler {
	struct barrier_handler_config config;
	int64_t current;   /* newest id known */
	int64_t last_done; /* largest id completed or cancelled */
	struct event pending_barrier;
	uint32_t open_count, aligned_count, target_count;

	/* 16.4; of metrics_id */
	int64_t metrics_id;
	bool is_aligning;
	uint64_t alignment_began_ns;
	struct alignment_metrics metrics;

	/* A fact leads to one abort and one trigger, and two steps a channel, at most. */
	uint32_t decision_count, decision_next;
	struct barrier_decision *decisions;
	struct channel_state channels[];
};

static uint32_t decision_count_max(uint32_t channel_count)
{
	return 2 * channel_count + 4;
}

int barrier_handler_create(
		struct barrier_handler **out, const struct barrier_handler_config *config)
{
	uint32_t count = config->channel_count;
	struct barrier_handler *h = calloc(1, sizeof(*h) + count * sizeof(h->channels[0]));

	if (h == NULL)
		return -ENOMEM;
	h->decisions = calloc(decision_count_max(count), sizeof(h->decisions[0]));
	if (h->decisions == NULL) {
		free(h);
		return -ENOMEM;
	}
	h->config = *config;
	h->current = -1;
	h->last_done = -1;
	h->metrics_id = -1;
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
	free(h);
}

static struct barrier_decision *decide(struct barrier_handler *h, enum barrier_decision_kind kind)
{
	CHECK(h->decision_count < decision_count_max(h->config.channel_count));
	struct barrier_decision *d = &h->decisions[h->decision_count++];

	memset(d, 0, sizeof(*d));
	d->kind = kind;
	return d;
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

static bool is_pending(const struct barrier_handler *h)
{
	return h->current >= 0 && h->current != h->last_done;
}

static void resume_all(struct barrier_handler *h)
{
	for (uint32_t i = 0; i < h->config.channel_count; i++) {
		if (!h->channels[i].is_blocked)
			continue;
		h->channels[i].is_blocked = false;
		decide(h, BARRIER_RESUME)->channel = i;
	}
}

static void forget_aligned(struct barrier_handler *h)
{
	for (uint32_t i = 0; i < h->config.channel_count; i++)
		h->channels[i].is_aligned = false;
	h->aligned_count = 0;
}

/* BH-7: channels go on first, then the task is told. */
static void abort_checkpoint(struct barrier_handler *h, int64_t id, enum decline_reason reason)
{
	if (id > h->current)
		h->current = id;
	if (id > h->last_done)
		h->last_done = id;
	forget_aligned(h);
	h->target_count = 0;
	resume_all(h);
	h->is_aligning = false;
	if (id == h->current) {
		h->metrics_id = id;
		memset(&h->metrics, 0, sizeof(h->metrics));
	}
	struct barrier_decision *d = decide(h, BARRIER_ABORT);
	d->checkpoint_id = id;
	d->reason = reason;
}

/* BH-2. */
static void start(struct barrier_handler *h, const struct event *barrier, int64_t wall_ms)
{
	if (is_pending(h))
		abort_checkpoint(h, h->current, DECLINE_SUBSUMED);
	h->current = barrier->checkpoint_id;
	h->pending_barrier = *barrier;
	forget_aligned(h);
	h->target_count = h->open_count;
	int64_t delay_ms = wall_ms - barrier->timestamp_ms;
	h->metrics_id = barrier->checkpoint_id;
	memset(&h->metrics, 0, sizeof(h->metrics));
	h->metrics.start_delay_ns = delay_ms > 0 ? delay_ms * 1000000 : 0;
}

/* Trigger before the channels go on (16.5). */
static void trigger(struct barrier_handler *h)
{
	decide(h, BARRIER_TRIGGER)->barrier = h->pending_barrier;
	resume_all(h);
}

/* BH-4 and 16.5.  A channel counts once, however often it is reported. */
static void mark_aligned(struct barrier_handler *h, uint32_t channel, uint64_t now_ns)
{
	struct channel_state *c = &h->channels[channel];

	if (!c->is_aligned) {
		c->is_aligned = true;
		h->aligned_count++;
		if (h->aligned_count == 1) {
			h->is_aligning = h->target_count > 1;
			h->alignment_began_ns = now_ns;
		} else if (h->aligned_count == h->target_count) {
			h->is_aligning = false;
			h->metrics.alignment_duration_ns =
					(int64_t)(now_ns - h->alignment_began_ns);
		}
	}
	if (h->aligned_count != h->target_count)
		return;
	trigger(h);
	forget_aligned(h);
	h->last_done = h->current;
}

void barrier_handler_on_barrier(struct barrier_handler *h, uint32_t channel,
		const struct event *barrier, bool is_rpc, uint64_t now_ns, int64_t wall_ms)
{
	int64_t id = barrier->checkpoint_id;

	CHECK(h->decision_count == 0);
	CHECK(channel < h->config.channel_count);
	CHECK(h->channels[channel].is_open);
	/* BH-1, stale: the channel was not blocked by it, so there is nothing to resume. */
	if (h->current > id || (h->current == id && !is_pending(h)))
		return;
	if (id > h->current)
		start(h, barrier, wall_ms);
	if (!is_rpc && !h->channels[channel].is_blocked) {
		h->channels[channel].is_blocked = true;
		decide(h, BARRIER_BLOCK)->channel = channel;
	}
	mark_aligned(h, channel, now_ns);
}

/* BH-6: older ones, and one for a checkpoint that no channel has a barrier of, are ignored. */
void barrier_handler_on_cancel(struct barrier_handler *h, uint32_t channel, int64_t checkpoint_id)
{
	CHECK(h->decision_count == 0);
	CHECK(channel < h->config.channel_count);
	if (checkpoint_id > h->current ||
			(checkpoint_id == h->current && h->aligned_count > 0))
		abort_checkpoint(h, checkpoint_id, DECLINE_ON_CANCELLATION_BARRIER);
}

/* BH-8. */
void barrier_handler_on_end_of_partition(
		struct barrier_handler *h, uint32_t channel, uint64_t now_ns)
{
	CHECK(h->decision_count == 0);
	CHECK(channel < h->config.channel_count);
	CHECK(h->channels[channel].is_open);
	h->channels[channel].is_open = false;
	h->channels[channel].is_blocked = false;
	h->open_count--;
	if (!is_pending(h))
		return;
	if (h->config.has_finished_tasks)
		mark_aligned(h, channel, now_ns);
	else
		abort_checkpoint(h, h->current, DECLINE_INPUT_END_OF_STREAM);
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

int64_t barrier_handler_current(const struct barrier_handler *h)
{
	return h->current;
}

int64_t barrier_handler_pending(const struct barrier_handler *h)
{
	return is_pending(h) ? h->current : 0;
}

uint32_t barrier_handler_open_count(const struct barrier_handler *h)
{
	return h->open_count;
}

bool barrier_handler_is_channel_open(const struct barrier_handler *h, uint32_t channel)
{
	return h->channels[channel].is_open;
}
