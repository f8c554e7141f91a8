#pragma once

/*
 * stream_task: one subtask at work: its mail, its gates, its chain, its part in checkpoints
 * (flink-semantics section 13).
 *
 * Place    task; a worker calls its turn, weir-scenario does the same by hand.
 * Thread   the worker, between two batches; create and destroy on the control thread, while no
 *          worker has it.
 * Memory   its own small parts in create; all it works with is given and borrowed.
 * Time     the worker hands now_ns down; the clock port gives the wall clock at a barrier.
 * Errors   a failure is reported once by task_reporter.status(TASK_FAILED) with its text.
 * Life     create, start, { turn | mail }* until is_ended, destroy.
 *
 * At the end of input: last watermark, finish hooks, end of data goes out and is reported, then
 * the task waits for a checkpoint made after that (TK-13), ends its operators' work and sends end
 * of partition (TK-14).  A synchronous savepoint (21) brings a source to its end the same way, and
 * its completion releases the task.
 */

#include "dataplane/checkpoint/checkpoint_metrics.h"
#include "dataplane/task/report.h"
#include "dataplane/task/taskmanager.h"
#include "dataplane/wire/event.h"

struct chain;
struct channel_state_result;
struct channel_state_writer;
struct checkpoint_options;
struct clock;
struct input_gate;
struct journal;
struct operator_files;
struct output_gate;
struct savepoint_locations;
struct state_writer;
struct stream_task;
struct task_state;

/* Where a task's words go: reports of a worker, or a scenario script. */
struct task_reporter {
	void (*status)(struct task_reporter *r, enum task_status status, const char *text);
	void (*end_of_data)(struct task_reporter *r);
	/* `state` and `in_flight` (NULL: it has none) stay valid until
	 * stream_task_release_state. */
	void (*acknowledge)(struct task_reporter *r, int64_t checkpoint_id,
			const struct checkpoint_metrics *metrics, const struct task_state *state,
			const struct channel_state_result *in_flight,
			bool has_finished_operators);
	void (*decline)(struct task_reporter *r, int64_t checkpoint_id,
			enum decline_reason reason, const char *text);
	/* Optional: see checkpoint_responder. */
	void (*collect)(struct task_reporter *r);
};

struct stream_task_config {
	struct chain *chain;             /* all borrowed; opened and restored */
	struct input_gate *const *inputs;
	uint32_t input_count;            /* 0: a source */
	struct output_gate *const *outputs;
	uint32_t output_count;
	struct state_writer *const *writers; /* each for one snapshot at a time */
	uint32_t writer_count;           /* 1..ASYNC_PARTS_MAX */
	struct operator_files *files;    /* NULL: the operators have none */
	struct channel_state_writer *channel_state; /* NULL: what needs it is declined */
	struct task_reporter *reporter;
	struct clock *clock;
	const char *checkpoint_dir;
	const struct savepoint_locations *locations; /* NULL: savepoints stand there too */
	int64_t restored_checkpoint_id;  /* 0: none */
	bool is_leaving; /* it ends when its operators have no work left, without a word */
	uint32_t max_concurrent;
	bool checkpointing;              /* false: the end waits for no checkpoint (TK-15) */
	bool has_finished_tasks;         /* checkpoints-after-tasks-finish */
	bool is_at_least_once;           /* barriers are counted, not aligned */
};

int stream_task_create(struct stream_task **out, const struct stream_task_config *config);
void stream_task_destroy(struct stream_task *t);

/* Borrowed; driven each turn from now on.  NULL: its source has none.  Before start. */
void stream_task_give_journal(struct stream_task *t, struct journal *journal);

/* Reports RUNNING. */
void stream_task_start(struct stream_task *t);

/* Timers, some batches of input, outputs, files, checkpoints: bounded.  Returns how much was
 * done. */
uint32_t stream_task_turn(struct stream_task *t, uint64_t now_ns);

/* ---- by hand, for scenario scripts, which say themselves what is taken when ---- */

/* A turn in which no timer runs, and a task with inputs takes nothing in line. */
uint32_t stream_task_serve(struct stream_task *t, uint64_t now_ns);
/* Runs the timers of alignment that are due, earliest first; a turn does so by itself. */
void stream_task_run_timers(struct stream_task *t, uint64_t now_ns);
/* Takes one item of that channel, numbered through all gates; false: nothing can be taken. */
bool stream_task_take_from(struct stream_task *t, uint32_t channel, uint64_t now_ns);

/* ---- mail ---- */

/* TK-3, TK-4, TK-17. */
void stream_task_trigger_checkpoint(
		struct stream_task *t, const struct checkpoint_request *request, uint64_t now_ns);
/* TK-9. */
void stream_task_notify_complete(struct stream_task *t, int64_t checkpoint_id);
/* TK-10; 0: none is complete. */
void stream_task_notify_aborted(struct stream_task *t, int64_t checkpoint_id,
		int64_t latest_completed_id);
void stream_task_operator_event(struct stream_task *t, uint32_t operator_index, const void *data,
		uint32_t bytes);
/* The acknowledgement of that checkpoint was sent. */
void stream_task_release_state(struct stream_task *t, int64_t checkpoint_id);
/* Makes the task fail once; later calls do nothing. */
void stream_task_fail(struct stream_task *t, const char *text);
/* TK-16. */
void stream_task_cancel(struct stream_task *t);

/* ---- questions ---- */

/* FINISHED, CANCELED or FAILED, and nothing of it is under way any more. */
bool stream_task_is_ended(const struct stream_task *t);
enum task_status stream_task_status(const struct stream_task *t);
/* A failure that another attempt would only repeat. */
bool stream_task_is_failure_final(const struct stream_task *t);
/* It has the barrier of a checkpoint, or some of them, and has not answered. */
bool stream_task_owes_answer(const struct stream_task *t);
/* 0: at any time; else the monotonic time before which a turn would do nothing new. */
uint64_t stream_task_not_before(const struct stream_task *t);
/* It has been asked to take no input before that time, and others may wait behind it. */
bool stream_task_holds_input(const struct stream_task *t);

struct stream_task_times {
	uint64_t busy_ns, idle_ns, backpressured_ns;
};

/* Any thread; each value whole. */
struct stream_task_times stream_task_times(const struct stream_task *t);

struct stream_task_progress {
	enum checkpoint_step step;
	uint64_t since_ns; /* monotonic: when it came there */
};

/* Any thread; each value whole. */
struct stream_task_progress stream_task_progress(const struct stream_task *t);

/* For scenario scripts: what the barrier handler knows (NULL for a source), and how the checkpoint
 * performed last was performed. */
struct barrier_handler *stream_task_barrier_handler(struct stream_task *t);
const struct checkpoint_options *stream_task_performed_options(const struct stream_task *t);
