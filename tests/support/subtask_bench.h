#pragma once

/*
 * subtask_bench: the coordinator of a subtask with one input of two channels and two outputs, of
 * two channels and of one; what it reports is written down.
 *
 * Every record goes to each channel.  The consumers are behind: nothing leaves until they take
 * some.  Each writer of states has a disk of its own; channel state and files have others.
 *
 * Place    tests only.
 */

#include "dataplane/checkpoint/channel_state_writer.h"
#include "dataplane/checkpoint/checkpoint_responder.h"
#include "dataplane/checkpoint/declared_state.h"
#include "dataplane/checkpoint/subtask_checkpoint_coordinator.h"
#include "tests/sim/fault_store.h"
#include "tests/support/chain_fixture.h"
#include "tests/support/hand_clock.h"

struct state_writer;

enum { BENCH_WRITERS = 2, BENCH_STATE_BYTES = 100, BENCH_TEXT_BYTES = 1024 };

struct bench_config {
	uint32_t max_concurrent;
	bool collects;          /* releases can be asked for */
	bool has_channel_state;
	bool has_files;         /* its operators write files */
};

struct subtask_bench {
	struct chain_fixture chain;
	struct edge second;
	struct output_gate *outputs[2];
	struct hand_clock clock;
	uint8_t value[BENCH_STATE_BYTES];
	struct declared_state state;
	struct store *memory[BENCH_WRITERS + 1];
	struct fault_store disks[BENCH_WRITERS + 1]; /* of channel state the last one */
	void *writer_memory[BENCH_WRITERS], *executor_memory;
	struct state_writer **writers;
	struct channel_state_writer *channel_state;
	struct store *files_memory;
	struct fault_store files_disk;
	void *files_room;
	struct operator_files *files; /* NULL without */
	struct buf_pool *pool;
	struct checkpoint_responder responder;
	struct subtask_checkpoint_coordinator *coordinator;
	struct checkpoint_metrics metrics; /* of the last acknowledgement */
	uint32_t in_flight_handles;
	uint32_t collected;          /* times that releases were asked for */
	int64_t to_collect_id;       /* released then; 0: none */
	char said[BENCH_TEXT_BYTES]; /* "ack1 decline2:6" */
	char text[BENCH_TEXT_BYTES]; /* of the last decline */
};

void bench_open(struct subtask_bench *b, const struct bench_config *c);
/* Disks answer again; all must come to rest. */
void bench_close(struct subtask_bench *b);
/* Steps; how much the last one did. */
uint32_t bench_turn(struct subtask_bench *b, uint32_t count);

/* `count` buffers wait on each channel of an output. */
void bench_fill(struct subtask_bench *b, uint32_t output, uint32_t count);
/* The consumers of an output take all there is; or all credit of it is used up again. */
void bench_drain(struct subtask_bench *b, uint32_t output);
void bench_stop_consumers(struct subtask_bench *b, uint32_t output);

struct event bench_barrier(const struct subtask_bench *b, int64_t id, enum alignment alignment,
		int64_t timeout_ms);
/* Prepares and performs; what checkpoint_state said.  Timeoutable ones have 5 ms. */
bool bench_perform(struct subtask_bench *b, struct event e);
bool bench_perform_aligned(struct subtask_bench *b, int64_t id);
bool bench_perform_timeoutable(struct subtask_bench *b, int64_t id);
bool bench_perform_unaligned(struct subtask_bench *b, int64_t id);
void bench_finish_input(struct subtask_bench *b, int64_t id);
void bench_release(struct subtask_bench *b, int64_t id);

/* What was reported since the last time. */
#define EXPECT_SAID(b, expected)                                                                   \
	do {                                                                                       \
		cr_expect_str_eq((b)->said, expected, "%s", (b)->said);                            \
		(b)->said[0] = '\0';                                                               \
	} while (0)
