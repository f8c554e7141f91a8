#pragma once

/*
 * task_fixture: one stream_task with probe operators (chain_fixture.h) between edges, on a store
 * in memory; its words are written down.
 *
 * Place    tests only.
 */

#include "dataplane/checkpoint/declared_state.h"
#include "dataplane/task/stream_task.h"
#include "tests/sim/fault_store.h"
#include "tests/support/chain_fixture.h"
#include "tests/support/hand_clock.h"

struct state_writer;

enum { FIXTURE_GATES_MAX = 2, FIXTURE_STATES_MAX = 3 * PROBES_MAX };

struct task_fixture {
	struct chain_fixture chain;
	uint32_t gate_count;
	struct edge inputs[FIXTURE_GATES_MAX];
	struct input_gate *gates[FIXTURE_GATES_MAX];
	struct hand_clock clock;
	struct store *memory;
	struct fault_store store;
	struct declared_state states[FIXTURE_STATES_MAX];
	void *writer_memory;
	struct state_writer *writer;
	struct task_reporter reporter;
	struct stream_task *task;
	bool keeps_state; /* acknowledged states are not released by the fixture */
	bool has_state;
	int64_t acked_id;
	struct checkpoint_metrics metrics; /* of the last acknowledgement */
	uint32_t handle_count;
	char reports[JOURNAL_BYTES];
};

/* 16-byte records, four to a buffer; eight buffers wait, eight are credited. */
extern const struct edge_config TASK_EDGE;

/* Probes as chain_fixture_init makes them; set them, then open. */
void task_fixture_init(struct task_fixture *f, uint32_t operator_count);

/* `gates` edges in front of the task, each like `input`, and one behind it unless `output` is
 * NULL.  The config's chain, gates, store and reporter are filled in; NULL: checkpointing, with
 * finished tasks. */
void task_fixture_open(struct task_fixture *f, uint32_t gates, const struct edge_config *input,
		const struct edge_config *output, const struct stream_task_config *config);

/* Cancels the task if it has not ended, lets the store settle. */
void task_fixture_close(struct task_fixture *f);

/* Turns until nothing more happens by itself. */
void task_fixture_run(struct task_fixture *f);

void task_fixture_trigger(struct task_fixture *f, int64_t checkpoint_id);

/* What was reported since the last call: "RUNNING", "end-of-data", "ack1", "ack1+finished",
 * "decline1:7", "FAILED(text)". */
const char *task_fixture_reports(struct task_fixture *f, char text[JOURNAL_BYTES]);

/* Starts the task; what it reported until now is forgotten. */
void task_fixture_begin(struct task_fixture *f);
/* Init, open and begin for one operator, which is a source, in front of TASK_EDGE. */
void task_fixture_begin_source(struct task_fixture *f, const struct stream_task_config *config);

/* Puts an event in line at a producer of a gate. */
void task_fixture_send(
		struct task_fixture *f, uint32_t gate, uint32_t from, const struct event *e);

/* What comes next at the consumer of the output; it is consumed. */
void task_fixture_expect_event(struct task_fixture *f, enum event_kind kind, int64_t id);
void task_fixture_expect_values(struct task_fixture *f, uint64_t from, uint32_t count);
void task_fixture_expect_watermark(struct task_fixture *f, int64_t watermark);
void task_fixture_expect_nothing(struct task_fixture *f);

#define EXPECT_REPORTS(f, expected)                                                                \
	do {                                                                                       \
		char text_[JOURNAL_BYTES];                                                         \
		cr_expect_str_eq(task_fixture_reports(f, text_), expected, "%s", text_);           \
	} while (0)

#define EXPECT_JOURNAL(f, expected)                                                                \
	do {                                                                                       \
		char text_[JOURNAL_BYTES];                                                         \
		cr_expect_str_eq(chain_fixture_journal(&(f)->chain, text_), expected, "%s",        \
				text_);                                                            \
	} while (0)
