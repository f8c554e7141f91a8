#pragma once

/*
 * task_executor: the coordinator's hand on a TaskManager: messages become calls to the data plane,
 * reports become messages (semantics 12.2).
 *
 * Place    control/executor; the only folder that knows both vocabularies.
 * Thread   the loop's, which is the TaskManager's control thread.
 * Memory   job files of deployed jobs, until their tasks are gone.
 * Time     heartbeats both ways; reconnects back off from 50 ms to 1 s.
 * Errors   0 or -errno from create; afterwards all is logged and answered.
 * Life     create, the loop runs, taskmanager_stop, destroy, taskmanager_destroy.
 *
 * When the coordinator is gone - closed connection, or silence - all tasks are cancelled, and when
 * they have ended this process registers again (DESIGN: processes stay up, FO-8 and FO-10 differ).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;
struct loop;
struct task_executor;
struct taskmanager;

struct task_executor_config {
	struct loop *loop;               /* borrowed, as all of these */
	struct taskmanager *taskmanager;
	const struct config *config;     /* of this TaskManager */
	const char *host;                /* of the coordinator */
	uint16_t port;
	const char *id;                  /* of this TaskManager; unique */
	const uint32_t *cores;           /* CPUs of the workers */
	uint32_t worker_count;
	uint64_t pool_bytes, state_bytes;
	const char *pages;               /* "2 MiB hugepages", "no hugepages" */
	const char *link_address; /* to other TaskManagers; empty: none */
	const char *link_port;    /* what port that is, for people */
	const char *packet_ports; /* the same of those of raw packets; NULL: none */
	/* The coordinator will not have this one: what it said. */
	void (*refused)(void *context, const char *text);
	void *context;
};

int task_executor_create(struct task_executor **out, const struct task_executor_config *config);
void task_executor_destroy(struct task_executor *e);
