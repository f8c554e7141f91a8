#include "dataplane/base/check.h"
#include "dataplane/channel/output_gate_internal.h"

#include <errno.h>

/* ---- questions ---- */

uint32_t output_gate_channel_count(const struct output_gate *g)
{
	return g->channel_count;
}

bool output_gate_has_queued(const struct output_gate *g)
{
	for (uint32_t word = 0; word * 64 < g->channel_count; word++) {
		if (g->busy[word] != 0)
			return true;
	}
	return false;
}

bool output_gate_is_idle(const struct output_gate *g)
{
	for (uint32_t c = 0; c < g->channel_count; c++) {
		if (g->outlets[c].buf != NULL || g->outlets[c].sent_watermark != g->watermark)
			return false;
	}
	return !output_gate_has_queued(g);
}

bool output_gate_is_all_processed(struct output_gate *g)
{
	while (g->processed_count < g->channel_count &&
			ring_channel_is_all_processed(g->queues[g->processed_count].channel))
		g->processed_count++;
	return g->processed_count == g->channel_count;
}

const struct output_gate_counters *output_gate_counters(const struct output_gate *g)
{
	return &g->counters;
}

bool output_gate_carries_unaligned(const struct output_gate *g)
{
	return !g->is_aligned_only;
}

uint32_t output_gate_overtaken_count(const struct output_gate *g, uint32_t channel)
{
	const struct output_queue *q = output_gate_queue(g, channel);

	if (g->is_aligned_only || ring_channel_config(q->channel)->is_plain)
		return 0;
	return output_queue_count(q);
}

bool output_gate_is_held(const struct output_gate *g, int64_t checkpoint_id)
{
	for (uint32_t c = 0; c < g->channel_count && !g->is_aligned_only; c++) {
		if (output_queue_is_held(&g->queues[c], checkpoint_id))
			return true;
	}
	return false;
}

void output_gate_let_go(struct output_gate *g, int64_t checkpoint_id)
{
	for (uint32_t c = 0; c < g->channel_count; c++)
		output_queue_let_go(&g->queues[c], checkpoint_id);
}

uint32_t output_gate_time_out(struct output_gate *g, uint32_t channel, int64_t checkpoint_id)
{
	CHECK(channel < g->channel_count);
	return output_queue_time_out(&g->queues[channel], checkpoint_id);
}

const struct output_queue *output_gate_queue(const struct output_gate *g, uint32_t channel)
{
	CHECK(channel < g->channel_count);
	return &g->queues[channel];
}

/* ---- after a restore ---- */

int output_gate_restore(
		struct output_gate *g, uint32_t channel, struct buf *const *bufs, uint32_t count)
{
	CHECK(channel < g->channel_count);
	CHECK(output_gate_held_count(g, channel) == 0);
	if (count > g->queue_count)
		return -ENOSPC;
	for (uint32_t i = 0; i < count; i++)
		output_queue_add(&g->queues[channel], bufs[i]);
	if (count > 0)
		g->busy[channel / 64] |= 1ull << (channel % 64);
	g->free_bytes = 0;
	return 0;
}
