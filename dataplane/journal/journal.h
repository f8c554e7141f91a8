#pragma once

/*
 * journal: records of a source on disk until a completed checkpoint covers them: what
 * operator/record_journal.h promises.
 *
 * After open it is read from the restored position to its durable end; then a new segment begins
 * and takes new records.  Segments wholly below the newest completed checkpoint are deleted.
 *
 * Place    journal; made by task_group for the source of a task, driven by the task each turn.
 * Thread   create and destroy on the control thread, which they may block; all else on the worker.
 * Memory   blocks are the caller's; small tables in create.
 * Time     callers pass now_ns.
 * Errors   create: 0 or -errno with one line: in use (-EBUSY), damaged (-EBADMSG), or not the
 *          journal that the restored position is of (-ESTALE).  Later journal_failure.
 * Life     create, { face | step }*, stop, step until is_idle, destroy.
 */

#include "dataplane/operator/record_journal.h"

struct journal;
struct store;

enum { JOURNAL_ERROR_BYTES = WEIR_ERROR_BYTES };

/* The store is borrowed, and nobody else reaps it. */
int journal_create(struct journal **out, struct store *store,
		const struct weir_journal_config *config, char error[JOURNAL_ERROR_BYTES]);

struct weir_journal *journal_face(struct journal *j);

/* Reads, writes, deletes a little; returns how much it did. */
uint32_t journal_step(struct journal *j, uint64_t now_ns);

/* 0, or -errno: the task must fail. */
int journal_failure(const struct journal *j, const char **text);

/* Takes nothing any more; what was taken is still written. */
void journal_stop(struct journal *j);
/* Nothing under way: it may be destroyed. */
bool journal_is_idle(const struct journal *j);

/* NULL is accepted.  Idle, or never stepped. */
void journal_destroy(struct journal *j);
