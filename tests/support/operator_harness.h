#pragma once

/*
 * operator_harness: runs one operator without the data plane, single-threaded and step by step.
 *
 * Place    tests only.  Implements the services of operator.h on the heap and on real files, and
 *          holds operators to the contract: what it hands them is freed or changed after each
 *          call, and a hook that takes too much or comes too early trips CHECK.
 * Thread   the test's; an operator may have a thread of its own behind the queues.
 * Memory   the heap, so that sanitizers see what operators do to it.
 * Time     `now_ns` stands still until a test moves it.
 * Life     create, [restore], open, hooks ..., destroy.  destroy calls close, and is what a crash
 *          looks like when it comes without finish.
 */

#include "dataplane/operator/operator.h"
#include "dataplane/operator/params.h"

struct harness;
struct harness_snapshot;
struct journal_port;

struct harness_config {
	const struct weir_operator *op;
	const char *uid;                 /* "op" when NULL */
	const struct param_text *params; /* ended by a NULL name; may be NULL */
	uint32_t subtask_index, parallelism; /* parallelism 0 counts as 1 */
	uint32_t in_record_bytes;        /* what the operator in front makes */
	uint64_t attempt;                /* makes the attempt id */
	bool without_checkpoints;
	struct weir_packet_port *port; /* what port_acquire gives; may be NULL */
	struct journal_port *journals; /* behind journal_open; may be NULL */
};

/* Declares and lays out state.  A refused parameter or declaration is the text of
 * harness_error. */
struct harness *harness_create(const struct harness_config *config);
void harness_destroy(struct harness *h);

/* All declared state and counters, as at a barrier. */
struct harness_snapshot *harness_save(struct harness *h, int64_t checkpoint_id);
void harness_restore(struct harness *h, const struct harness_snapshot *snapshot);
void harness_snapshot_free(struct harness_snapshot *snapshot);

/* The hooks.  `records_max` is cut to the room there is. */
int harness_open(struct harness *h);
enum weir_poll harness_poll(struct harness *h, uint32_t records_max);
uint32_t harness_process(struct harness *h, const void *records, uint32_t count);
/* Variable records: as they stand one after the other. */
uint32_t harness_process_bytes(
		struct harness *h, const void *records, uint32_t count, uint32_t data_bytes);
bool harness_watermark(struct harness *h, int64_t watermark);
void harness_before_barrier(struct harness *h, int64_t checkpoint_id);
void harness_notify_complete(struct harness *h, int64_t checkpoint_id);
void harness_event(struct harness *h, const char *text);
bool harness_finish(struct harness *h);
bool harness_is_busy(struct harness *h);

/* Calls until done, lifting the limit of room as often as needed. */
void harness_process_all(struct harness *h, const void *records, uint32_t count);
void harness_watermark_all(struct harness *h, int64_t watermark);
void harness_finish_all(struct harness *h);

/* What the test sets. */
void harness_set_room(struct harness *h, uint32_t records); /* 512 at first; used up by collect */
void harness_set_now(struct harness *h, uint64_t now_ns);
void harness_set_disk(struct harness *h, uint64_t bytes); /* taken before writes say false */
void harness_set_publishes(struct harness *h, uint32_t count); /* until publish says false */
void harness_fail_publishes(struct harness *h, int status);

/* Carries out up to `count` of the publishes asked for and reports them; how many there were. */
uint32_t harness_run_publishes(struct harness *h, uint32_t count);

/* What the test sees. */
uint32_t harness_port_use(const struct harness *h); /* of WEIR_PORT_* */
const char *harness_error(const struct harness *h); /* NULL: not failed */
const uint8_t *harness_output(const struct harness *h, uint32_t *count, size_t *bytes);
void harness_clear_output(struct harness *h);
int64_t harness_out_watermark(const struct harness *h);
uint64_t harness_not_before(const struct harness *h); /* 0: did not ask */
const char *harness_last_event(const struct harness *h); /* sent by the operator; NULL: none */
uint32_t harness_event_count(const struct harness *h);
uint64_t harness_counter(const struct harness *h, const char *name);
const struct weir_declaration *harness_declaration(const struct harness *h);
uint32_t harness_list_count(const struct harness *h, uint32_t state);
uint64_t harness_keyed_count(const struct harness *h, uint32_t state);
void *harness_value(struct harness *h, uint32_t state);
