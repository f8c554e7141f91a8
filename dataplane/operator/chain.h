#pragma once

/*
 * chain: the chained operators of one subtask; they call one another, no queue between them.
 *
 * Place    operator; its tail is the output gates of the task, its head is fed by stream_task.
 * Thread   the worker of the task; memory, create, open and close on the control thread.
 * Memory   operators, their states and counters lie in the memory given to create_at.
 * Time     callers pass now_ns; operators see it as weir_now_ns.
 * Errors   an operator that fails leaves a text in chain_failure; nothing is called after that but
 *          close.
 * Life     memory_bytes, create_at, (states restored), open, { advance, poll | process | watermark
 *          | ... }*, finish, close.
 *
 * Order inside a chain (OU-1): before_barrier and finish from head to tail, open, notifications
 * and close from tail to head.
 */

#include "dataplane/base/key_group.h"
#include "dataplane/base/limits.h"
#include "dataplane/operator/operator.h"

struct chain;
struct keyed_state;
struct output_gate;
struct port_directory;
struct weir_journal;
struct weir_journal_config;

/* The file services, implemented above this layer. */
struct file_port {
	bool (*open)(struct file_port *port, const char *path, weir_file *file);
	bool (*write)(struct file_port *port, weir_file file, const void *data, size_t bytes);
	void (*close)(struct file_port *port, weir_file file);
	bool (*publish)(struct file_port *port, uint32_t operator_index, const char *from,
			const char *to, uint64_t tag);
};

/* The journal of a task, implemented above this layer. */
struct journal_port {
	struct weir_journal *(*open)(struct journal_port *port,
			const struct weir_journal_config *config, bool *is_final,
			char error[WEIR_ERROR_BYTES]);
	void (*close)(struct journal_port *port, struct weir_journal *journal);
};

/* Where events for operators' coordinators go. */
struct event_port {
	void (*send)(struct event_port *port, uint32_t operator_index, const void *data,
			uint32_t bytes);
};

struct chain_operator_config {
	const struct weir_operator *op;
	const char *uid;
	const struct weir_value *values;
	struct weir_declaration declaration; /* as `declare` filled it */
};

struct chain_config {
	const struct chain_operator_config *operators; /* borrowed during create_at */
	uint32_t operator_count;
	struct output_gate *const *outputs; /* borrowed; room, collect and watermark go there */
	uint32_t output_count;
	const char *job_id, *attempt_id; /* as text; borrowed */
	uint32_t subtask_index, parallelism;
	uint32_t group_count;
	struct key_group_range groups;
	uint32_t snapshots_max;            /* of a keyed state that are under way at a time */
	int64_t restored_checkpoint_id;
	bool checkpointing;
	struct file_port *files;   /* borrowed */
	struct event_port *events; /* borrowed */
	struct journal_port *journals; /* borrowed; NULL: there are none */
	struct port_directory *ports; /* borrowed; NULL: this process has no packet ports */
};

/* A declared state and where it lives.  The framework's own counters of an operator are one of
 * them: a value named "counters". */
struct chain_state {
	const char *uid, *name;
	enum weir_state_kind kind;
	uint32_t key_bytes, value_bytes, version;
	uint64_t capacity;
	void *memory;          /* values and lists */
	uint32_t *list_count;  /* lists */
	struct keyed_state *keyed;
	enum weir_rescale rescale;
	bool is_counters;
	uint64_t xor_counters; /* a bit for each that is combined by xor, not by adding */
	uint64_t own_counters; /* and for each that is no other subtask's */
};

/* The counters of an operator, without their memory. */
struct chain_state chain_counters_state(const char *uid);

/* Runs `declare` along the chain: fills the declarations from the tables and values.  -EINVAL with
 * the operator's text. */
int chain_declare(struct chain_operator_config *operators, uint32_t count, uint32_t subtask_index,
		uint32_t parallelism, uint32_t in_record_bytes, char error[WEIR_ERROR_BYTES]);

/* Memory of operators and states, a multiple of 4096; UINT64_MAX when a declared state cannot be
 * had at any size, with its operator and name in `error`. */
uint64_t chain_memory_bytes(const struct chain_config *config, char error[WEIR_ERROR_BYTES]);

/* `memory` is 4096-byte aligned.  0 or -ENOMEM (its own small parts). */
int chain_create_at(struct chain **out, void *memory, const struct chain_config *config);
void chain_destroy(struct chain *c);

uint32_t chain_state_count(const struct chain *c);
struct chain_state chain_state_at(const struct chain *c, uint32_t index);

/* Tail to head.  0, or -errno with chain_failure; then those that were opened are closed. */
int chain_open(struct chain *c);
/* Only those that were opened; once. */
void chain_close(struct chain *c);

/* The text of the failure, or NULL. */
const char *chain_failure(const struct chain *c);
/* Whether another attempt would only repeat it. */
bool chain_is_failure_final(const struct chain *c);
void chain_fail(struct chain *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- the turn ---- */

void chain_set_now(struct chain *c, uint64_t now_ns);
/* Earliest time an operator asked to be called again; 0: any time.  Reading clears it. */
uint64_t chain_take_not_before(struct chain *c);

/* Records the head may be given now. */
uint32_t chain_room(struct chain *c);
bool chain_has_source(const struct chain *c);
enum weir_poll chain_poll(struct chain *c, uint32_t records_max);
uint32_t chain_process(struct chain *c, const struct weir_batch *batch);

/* Event time has reached `watermark` at the head. */
void chain_watermark(struct chain *c, int64_t watermark);
/* Goes on with watermarks that are under way; true when none is. */
bool chain_advance(struct chain *c);

void chain_before_barrier(struct chain *c, int64_t checkpoint_id);
void chain_notify_complete(struct chain *c, int64_t checkpoint_id);
void chain_notify_aborted(struct chain *c, int64_t checkpoint_id);
void chain_event(struct chain *c, uint32_t operator_index, const void *data, uint32_t bytes);
void chain_file_done(struct chain *c, uint32_t operator_index, uint64_t tag, int status);
/* End of input, after the last watermark; false: call again. */
bool chain_finish(struct chain *c);
bool chain_is_busy(struct chain *c);

/* ---- numbers; any thread, each value whole ---- */

void chain_visit_counters(struct chain *c,
		void (*visit)(void *context, const char *uid, const char *name, uint64_t value),
		void *context);
int64_t chain_current_watermark(const struct chain *c);
