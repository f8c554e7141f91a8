#include "control/coordinator/acknowledgement_message.h"

#include "control/coordinator/execution.h"
#include "control/proto/message.h"
#include "dataplane/base/check.h"

#include <stdlib.h>
#include <string.h>

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

static int read_state(struct snapshot_state *state, const Weir__Acknowledge *m,
		char text[COMPLETED_TEXT_BYTES])
{
	if (m->state.len == 0)
		return 0;
	int rc = completed_add_files(&state->files, m->state.data, m->state.len, text);
	if (rc != 0) {
		snapshot_state_clear(state);
		return rc;
	}
	state->bytes = malloc(m->state.len);
	CHECK(state->bytes != NULL);
	memcpy(state->bytes, m->state.data, m->state.len);
	state->byte_count = m->state.len;
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
	return read_state(&a->state, m, text);
}
