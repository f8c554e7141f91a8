#pragma once

/* taskmanager_internal: what taskmanager.c (life, calls, reports) and taskmanager_deploy.c (where
 * groups of tasks come and go) share. */

#include "dataplane/task/link_port.h"
#include "dataplane/task/task_group.h"
#include "dataplane/task/taskmanager.h"
#include "dataplane/task/worker.h"

enum { GROUPS_COUNT_MAX = 64 };

/* A report made on the control thread itself. */
struct local_report {
	struct report report;
	struct local_report *next;
};

struct taskmanager {
	struct taskmanager_config config;
	int report_fd;
	bool is_started;
	struct worker *workers[WORKERS_COUNT_MAX];
	struct link_port *ports[WORKERS_COUNT_MAX]; /* to other TaskManagers, of the first ones */
	uint32_t port_count;
	_Atomic uint32_t open_link_count;
	uint32_t next_worker; /* whose reports are read next */
	uint32_t group_count;
	struct task_group *groups[GROUPS_COUNT_MAX];
	struct local_report *local_first, *local_last;
};

/* Those of which nothing is left. */
void taskmanager_free_groups(struct taskmanager *tm);
