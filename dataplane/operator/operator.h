#pragma once

/*
 * operator: what an operator is, to us and to a user's shared object.  Installed as
 * <weir/operator.h>; built-in operators use this same table and nothing else.
 *
 * Place    no DPDK type, no weir type beyond this file, so that a plug-in links nothing.
 * Thread   `declare`, `open` and `close` run on the control thread of the TaskManager, before and
 *          after the task runs, and may block (read a directory, join a thread).  `declare` also
 *          runs in `weir` and in the coordinator, to check a job file.  All other hooks run on
 *          the worker that owns the task and must neither block nor allocate.
 * Memory   the framework zeroes and owns `self` (`self_bytes` of the declaration); state memory is
 *          reserved when the task is deployed and never grows.
 * Time     weir_now_ns: monotonic, read once a turn of the worker.  Event time is in records.
 * Errors   weir_fail(ctx, ...) fails the task, once, with that text; hooks then return.
 * Life     declare, (framework restores state), open, { poll | process | watermark |
 *          before_barrier | notify_* | event | file_done }*, finish, close.  After a failure or a
 *          cancellation only close is called.
 *
 * State is declared, never snapshot by hand: what `declare` names is saved with every checkpoint
 * at the barrier, and is back in place before `open`.  A restore with another size or version is
 * refused by name.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WEIR_ABI_VERSION 1u

/* The name of the symbol a plug-in exports: const struct weir_operator *weir_plugin(uint32_t i);
 * it returns NULL after the last one. */
#define WEIR_PLUGIN_SYMBOL "weir_plugin"

#define WEIR_WATERMARK_NONE INT64_MIN /* nothing known yet */
#define WEIR_WATERMARK_END INT64_MAX  /* end of input: all windows close */

struct weir_context; /* one operator of one subtask, as the framework sees it */
struct weir_queue;   /* one foreign thread -> this operator */
struct weir_packet_port; /* see packet_port.h */
struct weir_journal;	 /* see record_journal.h */
struct weir_journal_config;

/* ---- records ---------------------------------------------------------------------------- */

/* Records one after the other.  With record_bytes > 0 a packed array of `count` records of that
 * size.  With record_bytes == 0 each record is a 32-bit size in host order and that many bytes,
 * the next one following without a gap. */
struct weir_batch {
	const uint8_t *data;
	uint32_t count;
	uint32_t record_bytes;
	uint32_t data_bytes; /* of all `count` records, sizes in front included */
};

/* The variable record at `at`: its bytes, and their number through `bytes`. */
static inline const uint8_t *weir_record_at(const uint8_t *at, uint32_t *bytes)
{
	memcpy(bytes, at, sizeof(*bytes));
	return at + sizeof(*bytes);
}

/* ---- parameters ------------------------------------------------------------------------- */

enum weir_param_type {
	WEIR_TEXT,     /* .text */
	WEIR_INTEGER,  /* .integer */
	WEIR_REAL,     /* .real */
	WEIR_BOOLEAN,  /* .integer 0 or 1 */
	WEIR_DURATION, /* .integer nanoseconds; written "10 s", "250 ms" */
	WEIR_SIZE,     /* .integer bytes; written "32 kb", "1 mb" */
	WEIR_CHOICE,   /* .integer index into choices */
};

struct weir_param {
	const char *name;   /* the key in the job file */
	enum weir_param_type type;
	const char *preset; /* as written in a job file; NULL: must be given */
	int64_t min, max;   /* of integers, durations, sizes; both 0: any */
	const char *choices; /* "uniform|zipf" for WEIR_CHOICE, else NULL */
	const char *help;
};

struct weir_value {
	const char *text; /* always what was written */
	int64_t integer;
	double real;
};

/* ---- declaration ------------------------------------------------------------------------ */

enum {
	WEIR_STATES_MAX = 8,
	WEIR_COUNTERS_MAX = 32,
	WEIR_ERROR_BYTES = 512,
	WEIR_RECORD_ANY = UINT32_MAX, /* takes whatever record size comes */
};

enum weir_state_kind {
	WEIR_STATE_VALUE, /* value_bytes of memory, one for each subtask */
	WEIR_STATE_LIST,  /* up to `capacity` items of value_bytes */
	WEIR_STATE_KEYED, /* up to `capacity` entries of key_bytes + value_bytes, by key group */
};

/* What becomes of a state when it is restored with another parallelism.  Keyed entries go by key
 * group, whatever is said here. */
enum weir_rescale {
	WEIR_RESCALE_DEFAULT, /* the items of lists are dealt out; a value is refused */
	WEIR_RESCALE_UNION,   /* a list: each subtask gets the items of all */
	WEIR_RESCALE_KEEP,    /* a value: subtask i gets that of subtask i, others are dropped */
};

struct weir_state {
	const char *name;
	enum weir_state_kind kind;
	uint32_t key_bytes; /* keyed only */
	uint32_t value_bytes;
	uint32_t version;   /* raise it when the meaning of the bytes changes */
	uint64_t capacity;  /* list items or keyed entries of this subtask */
	/* Keyed only: how many bytes at the front of the key decide the key group, those that the
	 * hash edge in front sent it by; 0: all.  What is behind them (a window) makes entries
	 * distinct and moves none to another subtask. */
	uint32_t group_bytes;
	uint32_t rescale; /* enum weir_rescale */
};

/* What an operator needs and makes, under given parameters. */
struct weir_declaration {
	uint32_t self_bytes;       /* memory of one instance, zeroed, 64-byte aligned */
	uint32_t in_record_bytes;  /* 0 variable, WEIR_RECORD_ANY */
	uint32_t out_record_bytes; /* 0 variable; ignored for a sink */
	uint32_t out_key_offset;   /* where a hash edge behind it finds the key */
	uint32_t out_key_bytes;    /* 0: no key, a hash edge is refused */
	uint32_t state_count;
	struct weir_state states[WEIR_STATES_MAX];
	uint32_t counter_count;
	const char *counters[WEIR_COUNTERS_MAX]; /* names; counters are part of the state */
	uint32_t out_record_bytes_max; /* variable: at most 1 MiB without its size; 0: 64 KiB */
};

/* What `declare` may know. */
struct weir_setting {
	const char *uid;
	uint32_t subtask_index, parallelism;
	uint32_t in_record_bytes;         /* what the operator in front makes; 0 for a source */
	const struct weir_value *values;  /* in the order of the parameter table */
};

struct weir_info {
	const char *uid;
	const char *job_id;     /* 32 hex digits */
	const char *attempt_id; /* 32 hex digits, new at each restart */
	uint32_t subtask_index, parallelism;
	uint32_t in_record_bytes, out_record_bytes;
	int64_t restored_checkpoint_id; /* 0: from none */
	bool checkpointing; /* false: none is ever taken, so finish is the last chance to commit */
	const struct weir_value *values;
};

/* ---- services: what the framework does for an operator -------------------------------------- */

typedef uint32_t weir_file;
enum weir_port_use { WEIR_PORT_RECEIVE = 1, WEIR_PORT_SEND = 2 };

enum { WEIR_FILE_WRITE_MAX = 65536 };

struct weir_services {
	uint32_t abi_version;
	uint32_t size;

	const struct weir_info *(*info)(struct weir_context *ctx);
	uint64_t (*now_ns)(struct weir_context *ctx);

	/* Fails the task; the first text counts. */
	void (*fail)(struct weir_context *ctx, const char *format, va_list args);

	/* Asks not to be called before that monotonic time.  Follows a return of "took nothing". */
	void (*not_before)(struct weir_context *ctx, uint64_t time_ns);

	/* How many records collect will surely take now; at most WEIR batch size (512). */
	uint32_t (*room)(struct weir_context *ctx);
	/* Hands records to what comes next; returns how many were taken, from the front.  Taking
	 * all is certain for a count up to room(). */
	uint32_t (*collect)(struct weir_context *ctx, const struct weir_batch *batch);
	/* Sources: the watermark that holds behind what was collected so far.  Never goes back. */
	void (*emit_watermark)(struct weir_context *ctx, int64_t watermark);

	/* Values and lists; `state` is the index in the declaration. */
	void *(*value)(struct weir_context *ctx, uint32_t state);
	uint32_t (*list_count)(struct weir_context *ctx, uint32_t state);
	void *(*list_at)(struct weir_context *ctx, uint32_t state, uint32_t index);
	bool (*list_add)(struct weir_context *ctx, uint32_t state,
			const void *item); /* false: full */
	void (*list_remove)(
			struct weir_context *ctx, uint32_t state, uint32_t index); /* keeps order */

	/* Keyed state.  put: finds or makes (zeroed) the entries of `count` (<= 512) keys that
	 * stand `stride` bytes apart, and returns pointers to values that may be changed until the
	 * next call.  false: the table is full, the task has been failed.  get: NULL for what is
	 * not there; values must not be changed. */
	bool (*keyed_put)(struct weir_context *ctx, uint32_t state, const void *keys,
			uint32_t stride, uint32_t count, void **values);
	void (*keyed_get)(struct weir_context *ctx, uint32_t state, const void *keys,
			uint32_t stride, uint32_t count, const void **values);
	/* Walks all entries in table order: *cursor 0 begins, false ends.  An entry may be removed
	 * while it is the current one, then the walk goes on behind it. */
	bool (*keyed_next)(struct weir_context *ctx, uint32_t state, uint64_t *cursor,
			const void **key, const void **value);
	void (*keyed_remove)(struct weir_context *ctx, uint32_t state, uint64_t *cursor);
	uint64_t (*keyed_count)(struct weir_context *ctx, uint32_t state);

	/* The counter of that index in the declaration; exact after any restore. */
	uint64_t *(*counter)(struct weir_context *ctx, uint32_t index);

	/* Files, written behind the operator's back.  open: a new file (it must not exist); only
	 * queues the work; false: too many open (16).  write: takes all of up to
	 * WEIR_FILE_WRITE_MAX bytes, or none and says false when the disk is behind; so a file
	 * never ends within a record.  close: no more writes; the next checkpoint of this task is
	 * acknowledged only when all bytes are durable.  publish: renames durably within one
	 * directory, after the closes and in the order asked; false: too many under way; ends with
	 * file_done(tag).  When there is no space, bytes are kept and tried again and checkpoints
	 * of the task fail meanwhile; any other error of a write fails the task.  A failed publish
	 * is the operator's to judge. */
	bool (*file_open)(struct weir_context *ctx, const char *path, weir_file *file);
	bool (*file_write)(
			struct weir_context *ctx, weir_file file, const void *data, size_t bytes);
	void (*file_close)(struct weir_context *ctx, weir_file file);
	bool (*file_publish)(
			struct weir_context *ctx, const char *from, const char *to, uint64_t tag);

	/* A bounded queue of pointers from one thread of the operator's own to the operator. create
	 * in open, destroy in close after the thread ended.  push false: full; pop NULL: empty. */
	struct weir_queue *(*queue_create)(struct weir_context *ctx, uint32_t slots);
	void (*queue_destroy)(struct weir_queue *queue);
	bool (*queue_push)(struct weir_queue *queue, void *item);
	void *(*queue_pop)(struct weir_queue *queue);

	/* To the operator's coordinator (see weir_operator.coordinator).  At most 4096 bytes. */
	void (*send_event)(struct weir_context *ctx, const void *data, uint32_t bytes);

	/* Like fail, when another attempt would only repeat it (an input that is no capture): the
	 * job fails once, for good, instead of being started again. */
	void (*fail_for_good)(struct weir_context *ctx, const char *format, va_list args);

	/* A port of weir.nic.ports.  acquire in open: NULL with a text when there is none of that
	 * name, or another task has it for the same use; release in close. */
	struct weir_packet_port *(*port_acquire)(struct weir_context *ctx, const char *name,
			enum weir_port_use use, char error[WEIR_ERROR_BYTES]);
	void (*port_release)(struct weir_context *ctx, struct weir_packet_port *port,
			enum weir_port_use use);

	/* A journal of a source's records; one for each task.  open in open: NULL with a text, and
	 * `*is_final` when another attempt would only repeat it; close in close. */
	struct weir_journal *(*journal_open)(struct weir_context *ctx,
			const struct weir_journal_config *config, bool *is_final,
			char error[WEIR_ERROR_BYTES]);
	void (*journal_close)(struct weir_context *ctx, struct weir_journal *journal);
};

/* ---- the operator table --------------------------------------------------------------------- */

enum weir_role { WEIR_SOURCE, WEIR_TRANSFORM, WEIR_SINK };

enum weir_poll {
	WEIR_POLL_MORE, /* there was something, there may be more */
	WEIR_POLL_IDLE, /* nothing just now, or "not before" */
	WEIR_POLL_END,  /* exhausted; poll is not called again */
};

struct weir_operator {
	uint32_t abi_version; /* WEIR_ABI_VERSION */
	uint32_t size;        /* sizeof(struct weir_operator) */
	const char *name;     /* `type:` in a job file */
	const char *help;     /* one line */
	enum weir_role role;
	const struct weir_param *params; /* `param_count` rows */
	uint32_t param_count;
	const char *coordinator; /* NULL, or "files": hands out the files of the parameter "path" */

	/* Fills `d` (zeroed).  0, or -EINVAL with a text in `error` that names the parameter. */
	int (*declare)(const struct weir_setting *setting, struct weir_declaration *d,
			char error[WEIR_ERROR_BYTES]);

	/* 0 or -errno after weir_fail. */
	int (*open)(void *self, struct weir_context *ctx);

	/* Sources: collects up to `records_max` records (what the output has room for). */
	enum weir_poll (*poll)(void *self, struct weir_context *ctx, uint32_t records_max);

	/* Others: takes records from the front, returns how many.  The caller made sure of room for
	 * as many outputs as there are inputs; who makes more asks weir_room.  Fewer: no room, or
	 * not_before. */
	uint32_t (*process)(void *self, struct weir_context *ctx, const struct weir_batch *in);

	/* Optional: how many records process takes now, at most.  Without it process must take all
	 * it is given when it stands behind another operator of a chain, which relies on
	 * weir_room. */
	uint32_t (*room)(void *self, struct weir_context *ctx);

	/* Optional: event time has reached `watermark`.  false: not done (no room), call again with
	 * the same value before anything else. */
	bool (*watermark)(void *self, struct weir_context *ctx, int64_t watermark);

	/* Optional: a little work before the barrier of that checkpoint leaves; what it collects
	 * belongs before the barrier.  Must be done within the room there is. */
	void (*before_barrier)(void *self, struct weir_context *ctx, int64_t checkpoint_id);

	/* Optional; ids grow, each at most once for an attempt. */
	void (*notify_complete)(void *self, struct weir_context *ctx, int64_t checkpoint_id);
	void (*notify_aborted)(void *self, struct weir_context *ctx, int64_t checkpoint_id);

	/* Optional: from the operator's coordinator. */
	void (*event)(void *self, struct weir_context *ctx, const void *data, uint32_t bytes);

	/* Optional: a publish ended; status 0 or -errno. */
	void (*file_done)(void *self, struct weir_context *ctx, uint64_t tag, int status);

	/* Optional: end of input, after the last watermark.  false: not done, call again.  Once it
	 * has said true it is not called again, also not after a restore. */
	bool (*finish)(void *self, struct weir_context *ctx);

	/* Optional: true while work of the operator's own is under way that the end of the task
	 * must wait for (a publish). */
	bool (*is_busy)(void *self, struct weir_context *ctx);

	/* Optional: frees what open took.  Must end threads of its own. */
	void (*close)(void *self, struct weir_context *ctx);
};

/* Where a plug-in finds the services: the first word of every context. */
struct weir_context_head {
	const struct weir_services *services;
};

static inline const struct weir_services *weir_services_of(struct weir_context *ctx)
{
	return ((struct weir_context_head *)(void *)ctx)->services;
}

/* ---- the services, as calls --------------------------------------------------------------- */

static inline const struct weir_info *weir_info(struct weir_context *ctx)
{
	return weir_services_of(ctx)->info(ctx);
}

static inline uint64_t weir_now_ns(struct weir_context *ctx)
{
	return weir_services_of(ctx)->now_ns(ctx);
}

__attribute__((format(printf, 2, 3))) static inline void weir_fail(
		struct weir_context *ctx, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	weir_services_of(ctx)->fail(ctx, format, args);
	va_end(args);
}

__attribute__((format(printf, 2, 3))) static inline void weir_fail_for_good(
		struct weir_context *ctx, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	weir_services_of(ctx)->fail_for_good(ctx, format, args);
	va_end(args);
}

static inline void weir_not_before(struct weir_context *ctx, uint64_t time_ns)
{
	weir_services_of(ctx)->not_before(ctx, time_ns);
}

static inline uint32_t weir_room(struct weir_context *ctx)
{
	return weir_services_of(ctx)->room(ctx);
}

static inline uint32_t weir_collect(struct weir_context *ctx, const struct weir_batch *batch)
{
	return weir_services_of(ctx)->collect(ctx, batch);
}

static inline void weir_emit_watermark(struct weir_context *ctx, int64_t watermark)
{
	weir_services_of(ctx)->emit_watermark(ctx, watermark);
}

static inline void *weir_value(struct weir_context *ctx, uint32_t state)
{
	return weir_services_of(ctx)->value(ctx, state);
}

static inline bool weir_keyed_put(struct weir_context *ctx, uint32_t state, const void *keys,
		uint32_t stride, uint32_t count, void **values)
{
	return weir_services_of(ctx)->keyed_put(ctx, state, keys, stride, count, values);
}

static inline void weir_keyed_get(struct weir_context *ctx, uint32_t state, const void *keys,
		uint32_t stride, uint32_t count, const void **values)
{
	weir_services_of(ctx)->keyed_get(ctx, state, keys, stride, count, values);
}

static inline bool weir_keyed_next(struct weir_context *ctx, uint32_t state, uint64_t *cursor,
		const void **key, const void **value)
{
	return weir_services_of(ctx)->keyed_next(ctx, state, cursor, key, value);
}

static inline void weir_keyed_remove(struct weir_context *ctx, uint32_t state, uint64_t *cursor)
{
	weir_services_of(ctx)->keyed_remove(ctx, state, cursor);
}

static inline uint64_t *weir_counter(struct weir_context *ctx, uint32_t index)
{
	return weir_services_of(ctx)->counter(ctx, index);
}

static inline uint64_t weir_keyed_count(struct weir_context *ctx, uint32_t state)
{
	return weir_services_of(ctx)->keyed_count(ctx, state);
}

static inline uint32_t weir_list_count(struct weir_context *ctx, uint32_t state)
{
	return weir_services_of(ctx)->list_count(ctx, state);
}

static inline void *weir_list_at(struct weir_context *ctx, uint32_t state, uint32_t index)
{
	return weir_services_of(ctx)->list_at(ctx, state, index);
}

static inline bool weir_list_add(struct weir_context *ctx, uint32_t state, const void *item)
{
	return weir_services_of(ctx)->list_add(ctx, state, item);
}

static inline void weir_list_remove(struct weir_context *ctx, uint32_t state, uint32_t index)
{
	weir_services_of(ctx)->list_remove(ctx, state, index);
}

static inline bool weir_file_open(struct weir_context *ctx, const char *path, weir_file *file)
{
	return weir_services_of(ctx)->file_open(ctx, path, file);
}

static inline bool weir_file_write(
		struct weir_context *ctx, weir_file file, const void *data, size_t bytes)
{
	return weir_services_of(ctx)->file_write(ctx, file, data, bytes);
}

static inline void weir_file_close(struct weir_context *ctx, weir_file file)
{
	weir_services_of(ctx)->file_close(ctx, file);
}

static inline bool weir_file_publish(
		struct weir_context *ctx, const char *from, const char *to, uint64_t tag)
{
	return weir_services_of(ctx)->file_publish(ctx, from, to, tag);
}

static inline void weir_send_event(struct weir_context *ctx, const void *data, uint32_t bytes)
{
	weir_services_of(ctx)->send_event(ctx, data, bytes);
}
