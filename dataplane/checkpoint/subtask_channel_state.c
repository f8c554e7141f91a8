/* What was in flight, as part of a subtask's checkpoints: step P of 14.1, steps 3 to 5 of 14.2. */

#include <errno.h>

#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/channel/output_gate.h"
#include "dataplane/channel/output_queue.h"
#include "dataplane/checkpoint/channel_state_writer.h"
#include "dataplane/checkpoint/subtask_checkpoint_coordinator_internal.h"

void subtask_channel_state_abort(struct subtask_checkpoint_coordinator *c, int64_t id,
		enum decline_reason reason, const char *text)
{
	struct channel_state_writer *w = c->config.channel_state;

	if (c->input_pending_id == id)
		c->input_pending_id = 0;
	if (w != NULL && !c->is_closed)
		channel_state_writer_abort(w, id, reason, text, true);
}

void subtask_channel_state_drop(struct subtask_checkpoint_coordinator *c, int64_t id,
		enum decline_reason reason, const char *text)
{
	struct channel_state_writer *w = c->config.channel_state;

	if (w != NULL && channel_state_writer_has(w, id))
		subtask_channel_state_abort(c, id, reason, text);
}

/* SP-12, CS-8: a barrier that waits for its timeout stays in line when a younger one is about to go
 * past it.  Then nothing that waits here is part of it, and it is done with before the younger one
 * begins. */
static void end_waiting_output(struct subtask_checkpoint_coordinator *c)
{
	for (uint32_t g = 0; g < c->config.output_count; g++)
		output_gate_let_go(c->config.outputs[g], c->output_pending_id);
	(void)subtask_channel_state_finish_output(c);
}

void subtask_checkpoint_coordinator_prepare(
		struct subtask_checkpoint_coordinator *c, const struct event *barrier)
{
	struct channel_state_writer *w = c->config.channel_state;
	int64_t id = barrier->checkpoint_id;

	/* What has begun is let alone: who asks again for it is late (step 0). */
	if (!checkpoint_options_needs_channel_state(&barrier->options) ||
			subtask_async_part(c, id) != NULL)
		return;
	if (checkpoint_options_is_unaligned(&barrier->options) && id > c->output_pending_id)
		end_waiting_output(c);
	c->prepared_id = id;
	c->prepared_status = w == NULL ? -EOPNOTSUPP
				       : channel_state_writer_start(w, id, &barrier->options);
	if (c->prepared_status != 0)
		return;
	if (checkpoint_options_is_unaligned(&barrier->options))
		c->input_pending_id = id;
	else
		channel_state_writer_finish_input(w, id);
}

static bool is_prepared(const struct subtask_checkpoint_coordinator *c, int64_t id)
{
	return c->prepared_id == id && c->prepared_status == 0;
}

void subtask_checkpoint_coordinator_finish_input(struct subtask_checkpoint_coordinator *c,
		int64_t checkpoint_id, const struct checkpoint_arrival *arrival)
{
	if (c->input_pending_id != checkpoint_id)
		return;
	c->input_pending_id = 0;
	channel_state_writer_finish_input(c->config.channel_state, checkpoint_id);
	struct async_part *part = subtask_async_part(c, checkpoint_id);
	if (part == NULL)
		return;
	part->metrics.alignment_duration_ns = arrival->alignment_duration_ns;
	part->metrics.bytes_processed_during_alignment = arrival->bytes_processed;
}

/* The first buffers of the queue are the sender's to persist. */
static void persist_output(struct subtask_checkpoint_coordinator *c, int64_t id,
		struct channel_info at, uint32_t count)
{
	const struct output_queue *q =
			output_gate_queue(c->config.outputs[at.gate], at.channel);
	struct buf *bufs[CHANNEL_BUFFERS_MAX];

	if (count == 0 || !is_prepared(c, id))
		return;
	CHECK(count <= CHANNEL_BUFFERS_MAX);
	for (uint32_t i = 0; i < count; i++)
		bufs[i] = output_queue_at(q, i);
	channel_state_writer_add_output_data(c->config.channel_state, id, at, bufs, count);
}

/* SP-12: what the barrier just broadcast has overtaken. */
static void persist_overtaken(struct subtask_checkpoint_coordinator *c, int64_t id)
{
	for (uint32_t g = 0; g < c->config.output_count; g++) {
		const struct output_gate *gate = c->config.outputs[g];

		for (uint32_t i = 0; i < output_gate_channel_count(gate); i++)
			persist_output(c, id, (struct channel_info){g, i},
					output_gate_overtaken_count(gate, i));
	}
}

/* Step 5, once no barrier waits in a queue any more. */
uint32_t subtask_channel_state_finish_output(struct subtask_checkpoint_coordinator *c)
{
	int64_t id = c->output_pending_id;

	if (id == 0)
		return 0;
	for (uint32_t g = 0; g < c->config.output_count; g++) {
		if (output_gate_is_held(c->config.outputs[g], id))
			return 0;
	}
	c->output_pending_id = 0;
	if (is_prepared(c, id))
		channel_state_writer_finish_output(c->config.channel_state, id);
	return 1;
}

/* Step 4. */
static void set_timer(struct subtask_checkpoint_coordinator *c, const struct event *barrier,
		uint64_t now_ns)
{
	struct clock *clock = c->config.clock;

	c->timer_id = barrier->checkpoint_id;
	c->timer_ns = UINT64_MAX;
	if (checkpoint_options_is_timeoutable(&barrier->options))
		c->timer_ns = now_ns + checkpoint_options_timeout_left_ns(&barrier->options,
				barrier->timestamp_ms, clock->wall_ms(clock));
}

void subtask_channel_state_sent(struct subtask_checkpoint_coordinator *c,
		const struct event *barrier, uint64_t now_ns)
{
	if (checkpoint_options_is_unaligned(&barrier->options))
		persist_overtaken(c, barrier->checkpoint_id);
	set_timer(c, barrier, now_ns);
	if (checkpoint_options_needs_channel_state(&barrier->options))
		c->output_pending_id = barrier->checkpoint_id;
}

uint64_t subtask_checkpoint_coordinator_deadline_ns(
		const struct subtask_checkpoint_coordinator *c)
{
	return c->timer_ns;
}

/* SP-15. */
void subtask_checkpoint_coordinator_on_time(
		struct subtask_checkpoint_coordinator *c, uint64_t now_ns)
{
	struct async_part *part = subtask_async_part(c, c->timer_id);

	if (now_ns < c->timer_ns)
		return;
	c->timer_ns = UINT64_MAX;
	for (uint32_t g = 0; g < c->config.output_count && part != NULL; g++) {
		if (output_gate_is_held(c->config.outputs[g], c->timer_id))
			part->metrics.mode = CHECKPOINT_TIMED_OUT;
	}
	for (uint32_t g = 0; g < c->config.output_count; g++) {
		struct output_gate *gate = c->config.outputs[g];

		for (uint32_t i = 0; i < output_gate_channel_count(gate); i++)
			persist_output(c, c->timer_id, (struct channel_info){g, i},
					output_gate_time_out(gate, i, c->timer_id));
	}
	(void)subtask_channel_state_finish_output(c);
}
