#pragma once

/*
 * task_group: all tasks of one deployment, with the channels between them and the memory they
 * share; built together, given back together.
 *
 * Place    task; made by taskmanager.
 * Thread   the control thread.
 * Memory   operator state lies in the piece given to create; the rest is allocated here, once.
 * Errors   0 or -errno with one line that names operator or edge, what it needs and what there is.
 * Life     plan (what it needs), create, attach, { until is_over }, destroy.
 */

#include "dataplane/task/deployment.h"
#include "dataplane/task/task.h"
#include "dataplane/task/taskmanager.h"

struct buf_pool;
struct clock;
struct link_port;
struct port_directory;
struct task_group;

/* What a deployment will take. */
struct task_group_need {
	uint64_t state_bytes;  /* a multiple of 4096 */
	uint64_t buffer_count;
};

struct task_group_config {
	const struct deployment *deployment; /* borrowed during plan and create */
	struct worker *const *workers;
	uint32_t worker_count;
	struct buf_pool *pool;
	struct clock *clock;
	struct link_port *const *ports; /* one for each queue */
	uint32_t port_count;            /* 0: none */
	bool do_ports_join_two;         /* and no more */
	struct port_directory *packet_ports; /* of raw packets; NULL: none */
};

/* Declares all operators and adds up.  -EINVAL, -ENOMEM. */
int task_group_plan(struct task_group **out, const struct task_group_config *config,
		struct task_group_need *need, char error[TASKMANAGER_ERROR_BYTES]);

/* Builds everything in `memory` (need.state_bytes), restores states, opens operators.  On failure
 * the group is still to be destroyed. */
int task_group_build(struct task_group *g, void *memory, char error[TASKMANAGER_ERROR_BYTES]);

/* Hands the tasks to their workers. */
void task_group_attach(struct task_group *g);

uint32_t task_group_task_count(const struct task_group *g);
struct task *task_group_task(struct task_group *g, uint32_t index);
/* Where that savepoint goes; before its trigger is posted.  -ENAMETOOLONG. */
int task_group_locate_savepoint(struct task_group *g, int64_t savepoint_id, const char *path);
/* The piece of state memory it has. */
void *task_group_memory(const struct task_group *g, uint64_t *bytes);
uint64_t task_group_buffer_count(const struct task_group *g);

/* True when every worker has let go of every task and of every link, and every report has been
 * seen. */
bool task_group_is_over(struct task_group *g);
/* Its tasks have ended; what is left of it goes by itself. */
bool task_group_has_ended(const struct task_group *g);

/* Why tasks of it cannot go on, once for each link that fails; else NULL. */
const char *task_group_take_link_failure(struct task_group *g);

/* Closes operators, frees all.  Not while a worker has a task of it.  NULL is accepted. */
void task_group_destroy(struct task_group *g);
