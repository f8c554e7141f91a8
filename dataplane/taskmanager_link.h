#pragma once

/*
 * taskmanager_link: the port of a weir-taskmanager to others as its config has it: queues, capture
 * and faults of each, the address that the coordinator tells others.
 *
 * Place    beside taskmanager_main.c, which opens it.
 * Thread   the control thread; its transports are then the workers'.
 * Memory   in open.
 * Errors   0 or -errno with one line.
 * Life     memory_bytes before the EAL starts; open, { fill }, close after the workers.
 */

#include "dataplane/task/taskmanager.h"

struct config;
struct rte_mempool;
struct taskmanager_link;

enum { TASKMANAGER_LINK_ERROR_BYTES = 4096 };

/* What it will take of the EAL; 0: there is to be no link. */
size_t taskmanager_link_memory_bytes(const struct config *config, uint32_t worker_count);

/* Buffers that it takes from their pool, to receive into. */
uint32_t taskmanager_link_receive_bufs(const struct config *config, uint32_t worker_count);

/* *out is NULL when there is to be none.  `bufs`: the pool of buffers, borrowed. */
int taskmanager_link_open(struct taskmanager_link **out, const struct config *config,
		uint32_t worker_count, struct rte_mempool *bufs,
		char error[TASKMANAGER_LINK_ERROR_BYTES]);
/* For people and the registration; empty without a link. */
const char *taskmanager_link_text(const struct taskmanager_link *l);
const char *taskmanager_link_port(const struct taskmanager_link *l);
/* Puts into a config what it is about links. */
void taskmanager_link_fill(const struct taskmanager_link *l, struct taskmanager_config *config);
/* NULL is accepted. */
void taskmanager_link_close(struct taskmanager_link *l);
