#pragma once

/*
 * worker: one lcore at work: its mail, its tasks, its share of the disk.
 *
 * Place    task; below taskmanager.
 * Thread   create, post, next_report, release_report and destroy on the control thread; worker_run
 *          and worker_turn on the lcore (or by hand in a test).
 * Memory   reports and queues in create; mail is made by who posts it and comes back.
 * Time     the clock is read once a turn.
 * Errors   0 or -errno with a line.
 * Life     create, run until request_stop, destroy with no task attached.
 */

#include "dataplane/task/mail.h"
#include "dataplane/task/report.h"

struct buf_pool;
struct clock;
struct link_port;
struct store_share;
struct worker;

struct worker_config {
	uint32_t index;
	bool must_spin;
	const char *storage; /* "auto", "io_uring", "threads" */
	const struct buf_pool *pool; /* whose buffers it writes; NULL: none */
	uint32_t worker_count;       /* of this process */
	struct clock *clock;
	int report_fd;       /* an eventfd, written when a report is posted */
	struct link_port *port; /* the queue whose frames it passes; NULL: none */
};

int worker_create(struct worker **out, const struct worker_config *config,
		char error[TASKMANAGER_ERROR_BYTES]);
void worker_destroy(struct worker *w);

/* The lcore function; `worker` is a struct worker.  Returns 0 after request_stop. */
int worker_run(void *worker);
void worker_request_stop_mt(struct worker *w);
bool worker_has_stopped_mt(const struct worker *w);

/* One round: take mail, pass frames, run tasks, serve the disk.  Returns how much was done. */
uint32_t worker_turn(struct worker *w);

/* When it is the turn of `t` now: the start of the last turn that has ended, long ago for one that
 * does not come back from an operator's call; else 0.  Any thread. */
uint64_t worker_in_call_since_mt(const struct worker *w, const struct task *t);

/* Which store it uses, and why; one line. */
const char *worker_storage(const struct worker *w);
struct store_share *worker_store_share(struct worker *w);

/* Makes the words of `t`, whose roll is set, reports of this worker; before it is attached. */
void worker_adopt(struct worker *w, struct task *t);

/* There is something new for it that is not mail. */
void worker_wake_mt(struct worker *w);

/* The worker owns `m` until it comes back by itself; false: its mailbox is full. */
bool worker_post(struct worker *w, struct mail *m);
/* Frees mail that has been carried out. */
void worker_free_mail(struct worker *w);

const struct report *worker_next_report(struct worker *w);
/* The task a report is from. */
struct task *worker_report_task(const struct report *report);
bool worker_owns_report(const struct worker *w, const struct report *report);
void worker_release_report(struct worker *w, const struct report *report);
