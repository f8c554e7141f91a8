#include "dataplane/task/task_group_internal.h"

#include "dataplane/base/check.h"
#include "dataplane/checkpoint/store.h"
#include "dataplane/journal/journal.h"
#include "dataplane/task/task.h"
#include "dataplane/task/worker.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

static struct task *task_of(struct journal_port *port)
{
	return (struct task *)((char *)port - offsetof(struct task, journal_port));
}

static void close_journal(struct journal_port *port, struct weir_journal *journal)
{
	struct task *t = task_of(port);

	CHECK(journal == NULL || journal == journal_face(t->journal));
	journal_destroy(t->journal);
	t->journal = NULL;
	store_destroy(t->journal_store);
	t->journal_store = NULL;
}

/* In use: by an attempt that has not ended yet, here or elsewhere; another one may find it free. */
static struct weir_journal *open_journal(struct journal_port *port,
		const struct weir_journal_config *config, bool *is_final,
		char error[WEIR_ERROR_BYTES])
{
	struct task *t = task_of(port);

	CHECK(t->journal == NULL);
	*is_final = false;
	t->journal_store = store_share_attach(worker_store_share(t->worker));
	if (t->journal_store == NULL) {
		snprintf(error, WEIR_ERROR_BYTES, "too many tasks use the store of one worker");
		return NULL;
	}
	int rc = journal_create(&t->journal, t->journal_store, config, error);
	if (rc == 0)
		return journal_face(t->journal);
	*is_final = rc == -EBADMSG || rc == -ESTALE || rc == -EMSGSIZE;
	close_journal(port, NULL);
	return NULL;
}

struct journal_port task_group_journal_port(void)
{
	return (struct journal_port){open_journal, close_journal};
}
