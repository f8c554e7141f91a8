#pragma once

/*
 * task_world: one production StreamTask with its gates, barrier handler, subtask coordinator and
 * state writer, between channels whose other ends are in our hands.
 *
 * Place    tests/scenario, below scenario_task.c.
 * Time     `now_ms`, set by hand; wall clock and monotonic clock are the same.
 * Life     task_world_create, (settings), [task_world_build, events ...], task_world_destroy.
 *
 * task_settings.c    settings
 * task_in_flight.c   the channel-state writer, and what it has been given
 * task_lines.c       what arrives on the input channels, and what is taken when
 * task_outputs.c     the consumers of the output subpartitions
 * task_operator.c    the operator that writes down what it is given
 * task_arrivals.c    what may come in line
 * task_events.c      all other events
 * task_assertions.c  assertions
 */

#include "dataplane/base/clock.h"
#include "dataplane/base/limits.h"
#include "dataplane/channel/output_queue.h"
#include "dataplane/checkpoint/checkpoint_metrics.h"
#include "dataplane/checkpoint/declared_state.h"
#include "dataplane/operator/chain.h"
#include "dataplane/task/stream_task.h"
#include "tests/scenario/scenario.h"
#include "tests/scenario/task_lists.h"
#include "tests/sim/fault_store.h"

struct buf_pool;
struct input_gate;
struct output_gate;
struct channel_state_writer;
struct ring_channel;
struct state_writer;
struct store_share;

enum {
	LINE_QUEUE_COUNT = 2,   /* buffers at the sender of an input channel */
	LINE_CREDIT_COUNT = CHANNEL_BUFFERS_MAX - LINE_QUEUE_COUNT, /* in its ring, at the task */
	WORLD_STATES_MAX = 2,   /* of the one operator: its counters and a value */
	WORLD_LINKS_MAX = GATES_PER_TASK_MAX * CHANNELS_PER_GATE_MAX,
	WORLD_WRITERS = 8, /* snapshots at a time */
	WORLD_STAGING_BYTES = 1 << 20,
};

struct task_settings {
	uint32_t gate_count;
	uint32_t gate_channels[GATES_PER_TASK_MAX];
	uint32_t channel_count; /* of all gates; 0: a source */
	uint32_t link_count;    /* words said about them */
	bool is_local[WORLD_LINKS_MAX];
	uint32_t output_count;
	uint32_t buffer_bytes;
	uint32_t max_concurrent;
	int64_t restored_id, timeout_ms;
	bool has_finished_tasks, is_unaligned, is_at_least_once;
};

/* One thing in line on an input channel. */
struct element {
	uint32_t channel;
	uint32_t label;       /* data: its number, 0 for none */
	uint32_t event_count; /* 0: data */
	struct event events[2];
	bool is_pushed; /* it is in the channel */
	uint32_t announcement; /* number of its last event, once pushed */
	bool is_ahead;  /* an unaligned barrier: handled as it arrives, never taken */
	uint32_t taken_count; /* items of it that were taken */
};

struct input_line {
	struct ring_channel *channel;
	struct output_queue queue;
	bool is_local; /* what waits is still the producer's: here, not in the channel */
	/* what the script has said so far, also while it is only checked */
	bool has_end_of_data, has_ended;
};

struct output_end {
	struct ring_channel *channel;
	bool is_blocked;
	uint64_t key;      /* of records for this subpartition */
	uint64_t position; /* buffers received */
	uint32_t event_count, seen_count; /* the first ones were looked at before */
	struct event events[CHANNEL_CONTROL_MAX]; /* received, not yet at their cut */
	struct words sent;
};

struct emission {
	uint32_t output, label;
};

struct task_world {
	struct scenario *s;
	struct task_settings settings;
	struct clock clock;
	int64_t now_ms;
	struct words labels; /* label i is number i + 1 */
	bool is_exhausted;   /* a source: end of data was said */

	/* ---- what the script may change ---- */
	bool is_held;
	struct input_line *lines;
	uint32_t element_count;
	struct element *elements; /* in the order of their arrival */
	struct output_end *outputs;
	uint32_t emission_count;
	struct emission *emissions; /* not made yet */
	struct store *memory;
	struct fault_store store;

	/* ---- production ---- */
	struct buf_pool *input_pool, *output_pool;
	struct input_gate *input_gates[GATES_PER_TASK_MAX];
	uint32_t first_channel[GATES_PER_TASK_MAX];
	struct output_gate *output_gate; /* NULL: no outputs */
	struct weir_value value;         /* how the operator finds us */
	struct chain *chain;
	void *chain_memory, *writer_memory[WORLD_WRITERS];
	struct declared_state states[WORLD_STATES_MAX];
	struct store_share *share;
	struct store *state_stores[WORLD_WRITERS], *channel_store;
	struct state_writer *writers[WORLD_WRITERS];
	void *channel_memory;
	struct channel_state_writer *channel_state;
	struct task_reporter reporter;
	struct stream_task *task;
	struct ids to_release;

	/* ---- what has happened ---- */
	struct words trig, aborts, delivered, acked, declined, notified;
	struct ids performed, reported;
	struct ids unaligned; /* those of `performed` that were */
	uint32_t in_flight_count;
	struct in_flight *in_flight;
	int64_t acked_id; /* the newest, with its metrics */
	struct checkpoint_metrics acked_metrics;
	bool is_failure_asserted;
};

struct task_world *task_world_create(struct scenario *s);
void task_world_destroy(struct task_world *w);
/* The settings are complete. */
bool task_world_build(struct task_world *w);

/* Everything goes on until nothing more happens by itself. */
void task_world_settle(struct task_world *w);
/* The same, but nothing in line is taken. */
void task_world_serve(struct task_world *w);

uint64_t task_world_now_ns(const struct task_world *w);

/* Adds to a list, and traces it. */
void task_world_add(struct task_world *w, struct words *list, const char *name,
		const char *format, ...)
		__attribute__((format(printf, 4, 5)));

/* "DECLINED_SUBSUMED" and so on (9.1 without its prefix). */
const char *task_world_reason_name(enum decline_reason reason);

/* Gives the label a number; a label belongs to one buffer. */
bool task_world_label(struct task_world *w, const char *word, uint32_t *number);
const char *task_world_label_text(const struct task_world *w, uint32_t number);

/* ---- task_settings.c ---- */

bool task_world_is_setting(const char *word);
bool task_world_set(struct task_world *w, const struct scenario_line *l);

/* ---- task_operator.c ---- */

enum { EMITTED_BYTES = 16 };

extern const struct weir_operator recording_operator;

/* ---- task_words.c, task_arrivals.c, task_events.c ---- */

struct task_verb {
	const char *word;
	bool (*act)(struct task_world *w, const struct scenario_line *l);
};

/* Ended by a NULL word. */
extern const struct task_verb task_arrivals[];

bool task_world_event(struct task_world *w, const struct scenario_line *l);
/* "3" or "1..4", all below `limit`. */
bool task_world_range(struct task_world *w, const char *word, uint32_t limit, uint32_t *first,
		uint32_t *last);

/* ---- task_assertions.c ---- */

bool task_world_assert(struct task_world *w, const struct scenario_line *l);
bool task_world_end(struct task_world *w);
