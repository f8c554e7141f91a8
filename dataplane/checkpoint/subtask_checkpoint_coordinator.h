#pragma once

/*
 * subtask_checkpoint_coordinator: one subtask's part in a checkpoint, from the first barrier or
 * trigger to its answer (flink-semantics section 14).
 *
 * Place    checkpoint; below stream_task, above gates, chain and state writer.
 * Thread   the worker of the task.
 * Memory   one allocation in create.
 * Time     callers pass now_ns; the clock is read only to measure the synchronous part.
 * Errors   a failure of the asynchronous part declines the checkpoint (SC-3); nothing here fails
 *          the task but what an operator does in its hook.
 * Life     create, { prepare, checkpoint_state, finish_input, abort_on_barrier, notify_*, step,
 *          release }*, close, step until is_idle, destroy.
 *
 * How the rules are met where futures and threads are missing:
 *
 *   14.1        "when all barriers are received: finish input" - stream_task says so when the
 *               handler has them all and the persister has handed over what they overtook; "when
 *               that fails: abort" - abort_on_barrier ends an older checkpoint whose input is not
 *               known yet, for the same cause (BH-7).
 *   14.2.3, 5   output data is handed over while the barrier is broadcast; the output is finished
 *               when the barrier waits in no queue any more (SP-13 to SP-15).
 *   14.2.4      one timer, a deadline that stream_task runs (deadline_ns, on_time).
 *   SC-1, SC-5  a part is reported, failed or closed once, in step; what comes again is late.
 *   SC-6        a task restored as finished has a chain that does nothing (task/finished_task.h).
 *   14.5        an abort that comes before its checkpoint leaves nothing to clean up later, so the
 *               result of the writer is dropped at once.
 */

#include "dataplane/base/limits.h"
#include "dataplane/checkpoint/checkpoint_metrics.h"
#include "dataplane/wire/event.h"

#include <stddef.h>

struct chain;
struct channel_state_writer;
struct checkpoint_responder;
struct clock;
struct operator_files;
struct output_gate;
struct savepoint_locations;
struct state_writer;
struct subtask_checkpoint_coordinator;

/* Flink's pool has one thread more than there may be checkpoints at a time (1.5). */
enum { ASYNC_PARTS_MAX = CHECKPOINTS_IN_FLIGHT_MAX + 1 };

struct subtask_checkpoint_coordinator_config {
	struct chain *chain;                    /* all borrowed */
	struct output_gate *const *outputs;
	uint32_t output_count;
	/* Each writes one snapshot at a time, and has it until the disk is done with it, also when
	 * it was given up.  With none free, or a keyed state all of whose copies are taken (by
	 * writes that are not back), a checkpoint is declined as TASK_NOT_READY. */
	struct state_writer *const *writers;
	uint32_t writer_count;                  /* 1..ASYNC_PARTS_MAX */
	struct operator_files *files;           /* NULL: the operators have none */
	struct channel_state_writer *channel_state; /* NULL: what needs it is declined */
	struct checkpoint_responder *responder;
	struct clock *clock;
	const char *checkpoint_dir;             /* holds chk-<id>/ */
	const struct savepoint_locations *locations; /* NULL: savepoints stand there too */
	uint32_t max_concurrent;                /* how many aborted ids are remembered */
};

/* How the checkpoint reached this task. */
struct checkpoint_arrival {
	int64_t alignment_duration_ns;
	int64_t start_delay_ns;
	int64_t bytes_processed;
	bool has_timed_out; /* it began aligned, and is unaligned now */
	uint64_t heard_ns; /* the trigger came in; 0: it came as a barrier */
};

int subtask_checkpoint_coordinator_create(struct subtask_checkpoint_coordinator **out,
		const struct subtask_checkpoint_coordinator_config *config);
void subtask_checkpoint_coordinator_destroy(struct subtask_checkpoint_coordinator *c);

/* Step P of 14.1, for options that need channel state.  Of a timeoutable one the input is finished
 * then; of an unaligned one the caller says so. */
void subtask_checkpoint_coordinator_prepare(
		struct subtask_checkpoint_coordinator *c, const struct event *barrier);

/* 14.2.  true when the checkpoint was performed (it passed step 0). */
bool subtask_checkpoint_coordinator_checkpoint_state(struct subtask_checkpoint_coordinator *c,
		const struct event *barrier, const struct checkpoint_arrival *arrival);

/* All input in flight of an unaligned checkpoint has been handed to the writer; `arrival` as it
 * stands now, complete. */
void subtask_checkpoint_coordinator_finish_input(struct subtask_checkpoint_coordinator *c,
		int64_t checkpoint_id, const struct checkpoint_arrival *arrival);

/* The options of the checkpoint performed last, as it was performed (step 1). */
const struct checkpoint_options *subtask_checkpoint_coordinator_performed(
		const struct subtask_checkpoint_coordinator *c);

/* 14.2 step 4: when the timer of the outputs is due (UINT64_MAX: none), and running it. */
uint64_t subtask_checkpoint_coordinator_deadline_ns(
		const struct subtask_checkpoint_coordinator *c);
void subtask_checkpoint_coordinator_on_time(
		struct subtask_checkpoint_coordinator *c, uint64_t now_ns);

/* 14.4. */
void subtask_checkpoint_coordinator_abort_on_barrier(struct subtask_checkpoint_coordinator *c,
		int64_t checkpoint_id, enum decline_reason reason);

/* 14.5. */
void subtask_checkpoint_coordinator_notify_complete(
		struct subtask_checkpoint_coordinator *c, int64_t checkpoint_id);
void subtask_checkpoint_coordinator_notify_aborted(
		struct subtask_checkpoint_coordinator *c, int64_t checkpoint_id);

/* TK-6a of 13.3: the task is not running: only a cancel marker goes out. */
void subtask_checkpoint_coordinator_cancel_downstream(
		struct subtask_checkpoint_coordinator *c, int64_t checkpoint_id);

/* The asynchronous part goes on.  Returns how much it did. */
uint32_t subtask_checkpoint_coordinator_step(
		struct subtask_checkpoint_coordinator *c, uint64_t now_ns);

/* The acknowledgement of that checkpoint has been sent: its state may go. */
void subtask_checkpoint_coordinator_release(
		struct subtask_checkpoint_coordinator *c, int64_t checkpoint_id);

/* Ends the running asynchronous part without a word (TK-16). */
void subtask_checkpoint_coordinator_stop(struct subtask_checkpoint_coordinator *c);
/* The same, and no checkpoint comes any more; step until is_idle. */
void subtask_checkpoint_coordinator_close(struct subtask_checkpoint_coordinator *c);
/* An asynchronous part has not come to its end. */
bool subtask_checkpoint_coordinator_owes_answer(const struct subtask_checkpoint_coordinator *c);
/* No asynchronous part and no write is under way. */
bool subtask_checkpoint_coordinator_is_idle(const struct subtask_checkpoint_coordinator *c);
