#include "control/coordinator/acknowledgement_message.h"

#include "control/coordinator/execution.h"
#include "control/coordinator/heap.h"
#include "control/proto/message.h"
#include "dataplane/checkpoint/task_state.h"

static enum alignment_end read_mode(Weir__CheckpointMode mode)
{
	switch (mode) {
	case WEIR__CHECKPOINT_MODE__CHECKPOINT_UNALIGNED:
		return ENDED_UNALIGNED;
	case WEIR__CHECKPOINT_MODE__CHECKPOINT_TIMED_OUT:
		return ENDED_TIMED_OUT;
	default: /* foreign numbers too */
		return ENDED_ALIGNED;
	}
}

static void read_metrics(struct subtask_metrics *to, const Weir__CheckpointMetrics *m)
{
	*to = (struct subtask_metrics){
			.alignment_ns = m->alignment_duration,
			.start_delay_ns = m->start_delay,
			.processed_bytes = m->bytes_processed_during_alignment,
			.persisted_bytes = m->bytes_persisted_during_alignment,
			.sync_ns = m->sync_duration,
			.async_ns = m->async_duration,
			.checkpointed_bytes = m->bytes_persisted,
			.state_bytes = m->total_bytes,
			.is_unaligned = m->unaligned,
			.ended = read_mode(m->mode),
			.channel_count = m->channels,
			.buf_count = m->buffers,
			.file_count = m->files,
			.heard_ns = m->heard_at,
			.began_ns = m->began_at,
			.ended_ns = m->ended_at,
			.sent_ns = m->sent_at,
	};
}

static void read_channels(struct acknowledgement *a, const struct task_state *t)
{
	if (t->channel_count == 0)
		return;
	a->kept_count = t->channel_count;
	a->kept = heap_zeroed(t->channel_count, sizeof(*a->kept));
	for (uint32_t i = 0; i < t->channel_count; i++) {
		const struct channel_state_handle *h = &t->channels[i];

		a->kept[i] = (struct channel_metrics){
				.is_output = h->side == CHANNEL_STATE_OUTPUT,
				.gate = h->gate,
				.channel = h->channel,
				.buf_count = h->buf_count,
				.bytes = h->bytes,
		};
	}
}

static int read_state(struct acknowledgement *a, const Weir__Acknowledge *m,
		char text[COMPLETED_TEXT_BYTES])
{
	struct task_state *t;

	if (m->state.len == 0)
		return 0;
	int rc = task_state_decode(&t, m->state.data, m->state.len, text);
	if (rc != 0)
		return rc;
	completed_add_state_files(&a->state.files, t);
	read_channels(a, t);
	task_state_free(t);
	a->state.bytes = heap_copy(m->state.data, m->state.len, 1);
	a->state.byte_count = m->state.len;
	return 0;
}

int acknowledgement_read(struct acknowledgement *a, const Weir__Acknowledge *m,
		char text[COMPLETED_TEXT_BYTES])
{
	struct attempt_id attempt = {message_id(&m->attempt)};

	*a = (struct acknowledgement){
			.subtask = execution_subtask_of(attempt),
			.attempt = attempt,
			.checkpoint_id = m->checkpoint_id,
			.finish = m->finished_on_restore  ? FINISH_RESTORED_AS_FINISHED
				: m->finished_operators ? FINISH_OPERATORS_FINISHED
							: FINISH_NONE,
	};
	read_metrics(&a->metrics, m->metrics);
	return read_state(a, m, text);
}
