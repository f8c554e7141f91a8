#pragma once

/*
 * taskmanager: the door to the data plane of this process: workers, memory, tasks.
 *
 * Place    top of dataplane/; used by control/executor and by taskmanager_main.c.
 * Thread   every call on the control thread; it reaches workers by mail and hears from them by
 *          report, never otherwise.
 * Memory   buffer pool and state memory are reserved in create and never grow; a deployment that
 *          does not fit is refused with need and room.
 * Time     none is read here but by the workers, once a turn.  deploy waits for a quarter of a
 *          second at most, for the room of groups whose tasks have ended.
 * Errors   0 or -errno with one line in `error`.
 * Life     create, start, { deploy, post_*, reports, forget }*, stop, destroy.
 */

#include "dataplane/task/deployment.h"
#include "dataplane/task/report.h"
#include "dataplane/wire/event.h"

struct buf_pool;
struct clock;
struct link_numbers;
struct port_directory;
struct transport;
struct taskmanager;

enum { TASKMANAGER_ERROR_BYTES = 512 };

struct taskmanager_config {
	uint32_t worker_count;         /* 1..WORKERS_COUNT_MAX */
	const uint32_t *worker_lcores; /* lcore ids the EAL knows, `worker_count` of them */
	bool must_spin;                /* weir.idle: spin; else back off when idle */
	struct buf_pool *pool;         /* borrowed */
	uint32_t pool_count;           /* buffers in it */
	void *state_memory;            /* borrowed, 4096-byte aligned */
	size_t state_bytes;
	const char *storage;           /* "auto", "io_uring", "threads" */
	struct clock *clock;           /* borrowed */
	struct transport *const *transports; /* to other TaskManagers, borrowed: queue i is worker
						i's */
	struct net_address link_address; /* ours; as many queues as transports, 0: none */
	bool is_link_spread;           /* frames come in at any of them */
	bool does_link_join_two;       /* and no more */
	const uint8_t *link_gateway;   /* MAC of the next hop, NULL: the peers are next */
	const char *link_port;         /* its name, for people; borrowed */
	uint64_t link_connect_timeout_ns, link_peer_timeout_ns;
	struct port_directory *packet_ports; /* of raw packets, borrowed; NULL: none */
};

int taskmanager_create(struct taskmanager **out, const struct taskmanager_config *config,
		char error[TASKMANAGER_ERROR_BYTES]);
/* Starts the turn of every worker. */
int taskmanager_start(struct taskmanager *tm, char error[TASKMANAGER_ERROR_BYTES]);
/* Cancels all tasks, ends all workers; blocks until they have ended (bounded, about a second). */
void taskmanager_stop(struct taskmanager *tm);
void taskmanager_destroy(struct taskmanager *tm);

/* Builds all tasks of `d`, restores their state, opens their operators (blocking reads) and
 * attaches them to workers.  All or nothing: -ENOMEM (does not fit), -EAGAIN (not yet: what has
 * ended is not all gone), -EINVAL, -EBADMSG (state refused), -EIO ..., with one line.  Tasks report
 * RUNNING when their worker has taken them. */
int taskmanager_deploy(struct taskmanager *tm, const struct deployment *d,
		char error[TASKMANAGER_ERROR_BYTES]);

/* ---- calls to one attempt.  -ENOENT: no such attempt here (TE-1) ---- */

struct checkpoint_request {
	int64_t checkpoint_id;
	int64_t timestamp_ms;      /* wall clock at the coordinator */
	enum snapshot_kind kind;
	enum alignment alignment;  /* Flink's ordinals, semantics 10.3 */
	int64_t aligned_timeout_ms;
	const char *location;      /* savepoint directory; NULL: chk-<id> of the job */
	uint64_t heard_ns;         /* monotonic: when the call came in here */
};

/* 12.2, 12.3: looks the task up, checks it and posts the mail, or makes a decline report. */
int taskmanager_trigger_checkpoint(struct taskmanager *tm, struct attempt_id attempt,
		const struct checkpoint_request *request);
/* Where a savepoint goes whose barriers may come before its trigger does: from another TaskManager.
 * -ENOENT: no such task; -ENAMETOOLONG. */
int taskmanager_locate_savepoint(struct taskmanager *tm, struct attempt_id attempt,
		int64_t checkpoint_id, const char *location);
/* TE-3. */
int taskmanager_confirm_checkpoint(struct taskmanager *tm, struct attempt_id attempt,
		int64_t checkpoint_id, int64_t last_subsumed_id);
int taskmanager_abort_checkpoint(struct taskmanager *tm, struct attempt_id attempt,
		int64_t checkpoint_id, int64_t latest_completed_id);
/* Copies `data`; at most REPORT_EVENT_BYTES_MAX. */
int taskmanager_operator_event(struct taskmanager *tm, struct attempt_id attempt,
		uint32_t operator_index, const void *data, uint32_t bytes);
/* The task reports CANCELED (or how else it ended) later. */
int taskmanager_cancel(struct taskmanager *tm, struct attempt_id attempt);
/* Cancels every task of every job. */
void taskmanager_cancel_all(struct taskmanager *tm);

/* True until all attempts that were deployed together with that one have ended.  When false all
 * their memory has been given back, and what their deployment pointed to may be freed. */
bool taskmanager_has_deployed(struct taskmanager *tm, struct attempt_id attempt);

/* ---- reports ---- */

/* Readable when reports may wait; for an event loop. */
int taskmanager_report_fd(struct taskmanager *tm);
/* The next report or NULL.  Release each one. */
const struct report *taskmanager_next_report(struct taskmanager *tm);
void taskmanager_release_report(struct taskmanager *tm, const struct report *report);

/* ---- numbers for heartbeats and people ---- */

struct task_numbers {
	struct attempt_id attempt;
	uint64_t records_in, records_out, bytes_in, bytes_out, buffers_in, buffers_out;
	uint64_t busy_ns, idle_ns, backpressured_ns;
	int64_t watermark;
	enum checkpoint_step step; /* what it is at with a checkpoint */
	uint64_t step_ns;          /* for so long */
	uint64_t stuck_ns;         /* its worker has been in this turn of it for so long; or 0 */
};

/* Fills up to `count_max` rows, one a task; returns how many.  Values are read while workers
 * write them: each is whole, together they are of about one moment. */
uint32_t taskmanager_numbers(struct taskmanager *tm, struct task_numbers *out, uint32_t count_max);

/* False: there is no port to other TaskManagers. */
bool taskmanager_link_numbers(const struct taskmanager *tm, struct link_numbers *out);

/* Operator counters of a task (names of the declaration): calls `visit` for each. */
void taskmanager_visit_counters(struct taskmanager *tm, struct attempt_id attempt,
		void (*visit)(void *context, const char *uid, const char *name, uint64_t value),
		void *context);

/* The start-up sum as text, one row a line ("buffers  ... MiB"). */
void taskmanager_print_memory(struct taskmanager *tm, char *text, size_t size);
