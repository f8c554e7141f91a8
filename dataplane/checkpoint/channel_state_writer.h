#pragma once

/*
 * channel_state_writer: one subtask's door to the files of in-flight buffers (CS-1 to CS-6; DESIGN
 * "Channel state").  Several subtasks of a worker share one file: channel_state_executor.h.
 *
 * Place    checkpoint; driven by subtask_checkpoint_coordinator, writes through store.h.
 * Thread   one owner, the worker of the task.
 * Memory   all of it in the memory of its executor.  A buffer that is added gets one reference
 *          more, given back once: when it is written, copied, or not wanted any more.  Until then
 *          its bytes do not change, and its channel does not get its credit back.
 * Time     callers pass now_ns to step; a step is bounded, and copies no payload unless it must.
 * Errors   none but for misuse: what goes wrong with the disk becomes the outcome of the
 *          checkpoint, with a reason and one line, and what is added afterwards is dropped (CS-18).
 * Life     from channel_state_executor_add; { start, add_*, finish_input, finish_output, step until
 *          is_done, outcome, result, remove }*, close, step until is_idle.
 *
 * How Flink's rules are met: requests are carried out at once and in order on the worker, so
 * nothing is "unready" (CS-8): the caller of a timeoutable barrier adds output data when it knows
 * it, and finishes the output then.  A checkpoint that all its subtasks have finished when a newer
 * one begins is past: it is written to its end.  An abort needs no place at front and end (CS-4).
 */

#include "dataplane/checkpoint/channel_state_format.h"
#include "dataplane/checkpoint/checkpoint_metrics.h"
#include "dataplane/wire/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct channel_state_writer;

enum {
	CHANNEL_STATE_RESULTS_MAX = 4, /* begun and not yet removed (CS-1) */
	CHANNEL_STATE_TEXT_BYTES = 1280,
};

/* A channel of an input gate, or of an output gate: partition and subpartition. */
struct channel_info {
	uint32_t gate, channel;
};

/* What a checkpoint has become. */
struct channel_state_result {
	const char *file; /* in the directory of the checkpoint; NULL: nothing was in flight */
	uint32_t handle_count;
	const struct channel_state_handle *handles; /* of channels that had data, inputs first */
	uint64_t bytes;      /* of records */
	uint32_t buf_count;
};

/* CS-2.  Only for options that need channel state.  -EEXIST: begun already; -EBUSY:
 * CHANNEL_STATE_RESULTS_MAX results were not removed.  A disk that does not answer makes an
 * outcome, not an error. */
int channel_state_writer_start(struct channel_state_writer *w, int64_t checkpoint_id,
		const struct checkpoint_options *options);

/* CS-3, in stream order for each channel.  `offset` of the first buffer has been processed
 * already: what is behind it is kept. */
void channel_state_writer_add_input_data(struct channel_state_writer *w, int64_t checkpoint_id,
		struct channel_info at, struct buf *const *bufs, uint32_t count, uint32_t offset);
/* The bytes of a record begun in buffers already processed (14.1), ahead of all other data of the
 * channel; copied. */
void channel_state_writer_add_input_partial(struct channel_state_writer *w, int64_t checkpoint_id,
		struct channel_info at, const uint8_t *bytes, uint32_t size);
void channel_state_writer_add_output_data(struct channel_state_writer *w, int64_t checkpoint_id,
		struct channel_info at, struct buf *const *bufs, uint32_t count);

void channel_state_writer_finish_input(struct channel_state_writer *w, int64_t checkpoint_id);
void channel_state_writer_finish_output(struct channel_state_writer *w, int64_t checkpoint_id);

/* CS-4, CS-15: also ends what the other subtasks of the file wrote for it.  `is_cleanup` drops the
 * result at once; otherwise it stays, failed, to be removed.  An id not begun here is aborted for
 * the future. */
void channel_state_writer_abort(struct channel_state_writer *w, int64_t checkpoint_id,
		enum decline_reason reason, const char *text, bool is_cleanup);

/* Queues writes, reaps; for all subtasks of the file.  Returns how much it did. */
uint32_t channel_state_writer_step(struct channel_state_writer *w, uint64_t now_ns);

/* True between start and remove. */
bool channel_state_writer_has(const struct channel_state_writer *w, int64_t checkpoint_id);
/* Durable, or failed. */
bool channel_state_writer_is_done(const struct channel_state_writer *w, int64_t checkpoint_id);
/* Of a done one: 0, or -errno with the reason to decline with and a line that names file and
 * errno's meaning. */
int channel_state_writer_outcome(const struct channel_state_writer *w, int64_t checkpoint_id,
		enum decline_reason *reason, const char **text);
/* Of a done one with outcome 0; stays valid until it is removed. */
const struct channel_state_result *channel_state_writer_result(
		const struct channel_state_writer *w, int64_t checkpoint_id);
/* CS-5.  Nothing to do for an id not begun or dropped. */
void channel_state_writer_remove(struct channel_state_writer *w, int64_t checkpoint_id);

/* True while data that was handed in, by any subtask of the file, is not durable yet. */
bool channel_state_writer_is_writing(const struct channel_state_writer *w);

/* Buffers and bytes of records handed in for a checkpoint, this far; 0 when it is not here. */
uint64_t channel_state_writer_bytes(const struct channel_state_writer *w, int64_t checkpoint_id);

/* What was added for one channel, in order: `visit` gets the records' bytes of each buffer while
 * they are in memory (NULL afterwards), and where they are in the file. */
void channel_state_writer_visit(const struct channel_state_writer *w, int64_t checkpoint_id,
		enum channel_state_side side, struct channel_info at,
		void (*visit)(void *context, const uint8_t *bytes, uint64_t offset, uint32_t size),
		void *context);

/* CS-6: the task ends; a file that waited for it alone is completed (CS-16). */
void channel_state_writer_close(struct channel_state_writer *w);
/* Of a closed one: no buffer of it is under way, and the last one out has nothing under way. */
bool channel_state_writer_is_idle(const struct channel_state_writer *w);
