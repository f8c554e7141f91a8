#include "dataplane/task/taskmanager_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "dataplane/wire/buf.h"

/* Half a heartbeat.timeout: nobody else is answered meanwhile. */
enum { ENDING_ROUNDS_MAX = 230, ENDING_ROUND_NS = 1000000 };

/* ---- the end of groups ---- */

void taskmanager_free_groups(struct taskmanager *tm)
{
	for (uint32_t i = 0; i < tm->config.worker_count; i++)
		worker_free_mail(tm->workers[i]);
	for (uint32_t i = 0; i < tm->group_count; i++) {
		if (!task_group_is_over(tm->groups[i]))
			continue;
		task_group_destroy(tm->groups[i]);
		tm->groups[i--] = tm->groups[--tm->group_count];
	}
}

static bool is_any_ending(const struct taskmanager *tm)
{
	for (uint32_t i = 0; i < tm->group_count; i++) {
		if (task_group_has_ended(tm->groups[i]))
			return true;
	}
	return false;
}

/* The next attempt of a job may come before the workers have let go of the last one's tasks and
 * links, which takes them some turns: its memory and its operators' files are taken until then.
 * False: nothing has come free, and nothing will within `rounds`. */
static bool await_free(struct taskmanager *tm, uint32_t *rounds)
{
	struct timespec round = {.tv_nsec = ENDING_ROUND_NS};
	uint32_t count = tm->group_count;

	while (*rounds > 0 && is_any_ending(tm)) {
		(*rounds)--;
		taskmanager_free_groups(tm);
		if (tm->group_count < count)
			return true;
		nanosleep(&round, NULL);
	}
	return false;
}

/* ---- memory ---- */

static uint64_t buffers_in_use(const struct taskmanager *tm)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < tm->group_count; i++)
		count += task_group_buffer_count(tm->groups[i]);
	return count;
}

/* The lowest free piece of state memory of that size, or NULL. */
static uint8_t *find_memory(const struct taskmanager *tm, uint64_t need_bytes)
{
	uint8_t *begin = tm->config.state_memory;
	uint8_t *at = begin;
	bool has_moved = true;

	while (has_moved) {
		has_moved = false;
		for (uint32_t i = 0; i < tm->group_count; i++) {
			uint64_t bytes;
			uint8_t *used = task_group_memory(tm->groups[i], &bytes);

			if (at < used + bytes && used < at + need_bytes) {
				at = used + bytes;
				has_moved = true;
			}
		}
	}
	return need_bytes <= tm->config.state_bytes - (size_t)(at - begin) ? at : NULL;
}

static int check_fit(struct taskmanager *tm, const struct task_group_need *need, uint8_t **memory,
		char error[TASKMANAGER_ERROR_BYTES])
{
	uint64_t used = buffers_in_use(tm);

	if (need->buffer_count > tm->config.pool_count - used) {
		snprintf(error, TASKMANAGER_ERROR_BYTES,
				"the job's channels need %llu buffers, this TaskManager has %llu "
				"free of %u; raise taskmanager.memory.network.size or lower "
				"parallelism",
				(unsigned long long)need->buffer_count,
				(unsigned long long)(tm->config.pool_count - used),
				tm->config.pool_count);
		return -ENOMEM;
	}
	*memory = find_memory(tm, need->state_bytes);
	if (*memory == NULL) {
		snprintf(error, TASKMANAGER_ERROR_BYTES,
				"the job's state needs %llu MiB in one piece, this TaskManager has "
				"%llu MiB for all jobs; raise taskmanager.memory.managed.size or "
				"lower the capacities of its operators",
				(unsigned long long)(need->state_bytes >> 20) + 1,
				(unsigned long long)(tm->config.state_bytes >> 20));
		return -ENOMEM;
	}
	return 0;
}

/* ---- deploy ---- */

static int deploy(struct taskmanager *tm, const struct deployment *d,
		char error[TASKMANAGER_ERROR_BYTES])
{
	struct task_group_config config = {
		.deployment = d,
		.workers = tm->workers, .worker_count = tm->config.worker_count,
		.pool = tm->config.pool,
		.clock = tm->config.clock,
		.ports = tm->ports,
		.port_count = tm->port_count,
		.do_ports_join_two = tm->config.does_link_join_two,
		.packet_ports = tm->config.packet_ports,
	};
	struct task_group_need need;
	struct task_group *group;
	uint8_t *memory = NULL;

	if (tm->group_count == GROUPS_COUNT_MAX) {
		snprintf(error, TASKMANAGER_ERROR_BYTES, "%d deployments are here already",
				GROUPS_COUNT_MAX);
		return -EBUSY;
	}
	snprintf(error, TASKMANAGER_ERROR_BYTES, "no memory to plan the tasks");
	int status = task_group_plan(&group, &config, &need, error);
	if (status != 0)
		return status;
	status = check_fit(tm, &need, &memory, error);
	if (status == 0)
		status = task_group_build(group, memory, error);
	if (status != 0) {
		task_group_destroy(group);
		return status;
	}
	tm->groups[tm->group_count++] = group;
	task_group_attach(group);
	for (uint32_t i = 0; i < tm->port_count; i++)
		worker_wake_mt(tm->workers[i]);
	error[0] = '\0';
	return 0;
}

static bool is_for_want(int status)
{
	return status == -ENOMEM || status == -EBUSY;
}

int taskmanager_deploy(struct taskmanager *tm, const struct deployment *d,
		char error[TASKMANAGER_ERROR_BYTES])
{
	uint32_t rounds = ENDING_ROUNDS_MAX;
	int status;

	taskmanager_free_groups(tm);
	do {
		status = deploy(tm, d, error);
	} while (is_for_want(status) && await_free(tm, &rounds));
	if (!is_for_want(status) || !is_any_ending(tm))
		return status;
	size_t at = strlen(error);
	snprintf(error + at, TASKMANAGER_ERROR_BYTES - at,
			"; or wait: tasks that have ended still hold a part");
	return -EAGAIN;
}
