/* Puts the states of the checkpoint restored from into the tasks: each its own, or its share of all
 * those of a vertex that had another parallelism. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/base/crash_point.h"
#include "dataplane/checkpoint/restore.h"
#include "dataplane/task/task_group_internal.h"

enum { PATH_BYTES = 1024 };

static int restore_own(struct task *t, const struct deployment *d,
		const struct deployment_task *from, const char *directory,
		char text[RESTORE_TEXT_BYTES])
{
	struct task_state *state = NULL;
	int status = task_state_decode(&state, from->state, from->state_bytes, text);

	if (status == 0)
		status = restore_states(directory, state, t->states, t->state_count,
				d->ignores_unclaimed_state, text);
	task_state_free(state);
	return status;
}

/* Its share of what a vertex of another parallelism had. */
static int restore_shared(struct task_group *g, struct task *t, const char *directory,
		char text[RESTORE_TEXT_BYTES])
{
	uint32_t parallelism = g->config.deployment->vertices[t->vertex].parallelism;
	struct restore_share share = {t->subtask_index, parallelism, 0, NULL,
			g->config.deployment->ignores_unclaimed_state};
	struct task_state **olds = calloc(g->rescaled_count + 1, sizeof(olds[0]));
	int status = olds == NULL ? -ENOMEM : 0;

	for (uint32_t i = 0; status == 0 && i < g->rescaled_count; i++) {
		if (strcmp(g->rescaled[i]->vertex_uid, task_group_uid(g, t->vertex)) == 0)
			olds[share.old_count++] = g->rescaled[i];
	}
	share.olds = olds;
	if (status == 0)
		status = restore_rescaled(directory, &share, t->states, t->state_count, text);
	free(olds);
	return status;
}

int task_group_restore_task(
		struct task_group *g, uint32_t index, char error[TASKMANAGER_ERROR_BYTES])
{
	const struct deployment *d = g->config.deployment;
	const struct deployment_task *from = &d->tasks[index];
	struct task *t = &g->tasks[index];
	char directory[PATH_BYTES], text[RESTORE_TEXT_BYTES] = "";

	if (from->is_finished || (from->state == NULL && g->rescaled_count == 0))
		return 0;
	if (d->restored_dir != NULL)
		snprintf(directory, sizeof(directory), "%s", d->restored_dir);
	else
		snprintf(directory, sizeof(directory), "%s/chk-%" PRId64, d->checkpoint_dir,
				d->restored_checkpoint_id);
	int status = from->state != NULL ? restore_own(t, d, from, directory, text)
					 : restore_shared(g, t, directory, text);
	crash_point("during-restore");
	if (status != 0)
		snprintf(error, TASKMANAGER_ERROR_BYTES,
				"restore of %s subtask %u from checkpoint %" PRId64
				" refused: %.380s",
				task_group_uid(g, t->vertex), t->subtask_index,
				d->restored_checkpoint_id, text);
	return status;
}

/* They are foreign bytes, too. */
int task_group_decode_rescaled(struct task_group *g, char error[TASKMANAGER_ERROR_BYTES])
{
	const struct deployment *d = g->config.deployment;
	char text[TASK_STATE_TEXT_BYTES] = "";

	g->rescaled = calloc(d->rescaled_count + 1, sizeof(g->rescaled[0]));
	if (g->rescaled == NULL)
		return -ENOMEM;
	for (; g->rescaled_count < d->rescaled_count; g->rescaled_count++) {
		const struct deployment_state *from = &d->rescaled[g->rescaled_count];
		int status = task_state_decode(&g->rescaled[g->rescaled_count], from->bytes,
				from->size, text);

		if (status == 0)
			continue;
		snprintf(error, TASKMANAGER_ERROR_BYTES,
				"restore from checkpoint %" PRId64 " refused: %.380s",
				d->restored_checkpoint_id, text);
		return status;
	}
	return 0;
}

void task_group_free_rescaled(struct task_group *g)
{
	for (uint32_t i = 0; i < g->rescaled_count; i++)
		task_state_free(g->rescaled[i]);
	free(g->rescaled);
	g->rescaled = NULL;
	g->rescaled_count = 0;
}
