#include "dataplane/task/task_group_in_flight.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/base/check.h"
#include "dataplane/base/log.h"
#include "dataplane/checkpoint/channel_state_executor.h"
#include "dataplane/checkpoint/channel_state_probe.h"
#include "dataplane/checkpoint/channel_state_writer.h"
#include "dataplane/checkpoint/store.h"
#include "dataplane/task/task_group_internal.h"
#include "dataplane/task/worker.h"
#include "dataplane/wire/record.h"

enum { STAGING_BYTES_MIN = 1 << 20, STAGING_BYTES_MAX = 4 << 20, STAGED_BUFS_PER_CHANNEL = 4 };

/* ---- plan ------------------------------------------------------------------------------------ */

/* Channels of one subtask at its end of an edge. */
static uint32_t channel_count(const struct edge_channels *e, bool is_producer)
{
	if (e->partition == PARTITION_FORWARD)
		return 1;
	return is_producer ? e->consumer_count : e->producer_count;
}

static struct channel_state_subtask subtask_of(const struct task_group *g, const struct task *t)
{
	struct channel_state_subtask s = {
		.vertex_uid = g->vertex_uids[t->vertex],
		.subtask_index = t->subtask_index,
	};

	for (uint32_t i = 0; i < g->edge_count; i++) {
		const struct edge_channels *e = &g->edges[i];

		if (e->from == t->vertex && s.output_count < OUTPUTS_PER_TASK_MAX)
			s.output_channels[s.output_count++] = channel_count(e, true);
		if (e->to == t->vertex && s.input_count < GATES_PER_TASK_MAX)
			s.input_channels[s.input_count++] = channel_count(e, false);
	}
	return s;
}

/* A record in pages of its own. */
static uint64_t partial_bytes(const struct edge_channels *e)
{
	uint64_t pages = (e->record_bytes_max + RECORD_PREFIX_BYTES + STORE_ALIGN_BYTES - 1) /
			STORE_ALIGN_BYTES;

	return e->record_bytes == 0 ? pages * STORE_ALIGN_BYTES : 0;
}

/* Adds what one task has at its ends of edges. */
static void add_channels(
		const struct task_group *g, const struct task *t, struct channel_state_share *share)
{
	for (uint32_t i = 0; i < g->edge_count; i++) {
		const struct edge_channels *e = &g->edges[i];
		uint32_t out = e->from == t->vertex ? channel_count(e, true) : 0;
		uint32_t in = e->to == t->vertex ? channel_count(e, false) : 0;

		share->channel_count += out + in;
		share->buf_count += (out + in) * channel_buffers_max(&e->channel);
		share->partial_bytes += in * partial_bytes(e);
	}
}

static struct channel_state_executor_config config_of(
		const struct task_group *g, const struct channel_state_share *share)
{
	const struct deployment *d = g->config.deployment;
	uint64_t staging = (uint64_t)share->channel_count * STAGED_BUFS_PER_CHANNEL *
			g->config.pool->capacity_bytes;

	if (staging < STAGING_BYTES_MIN)
		staging = STAGING_BYTES_MIN;
	if (staging > STAGING_BYTES_MAX)
		staging = STAGING_BYTES_MAX;
	staging = staging / STORE_ALIGN_BYTES * STORE_ALIGN_BYTES + share->partial_bytes;
	return (struct channel_state_executor_config){
		.store = share->store,
		.checkpoint_dir = g->checkpoint_dir,
		.subtask_count = share->task_count,
		.channel_count = share->channel_count,
		.buf_count = share->buf_count,
		.issued_in_max = channel_state_issued_in_max(d->channel_credit_count),
		.issued_out_max = channel_state_issued_out_max(d->channel_credit_count),
		.staging_bytes = staging,
		.patience_ns = CHANNEL_STATE_PATIENCE_NS,
	};
}

/* The share of that worker that has room, or a new one. */
static uint32_t share_for(struct task_group *g, const struct task *t)
{
	uint32_t max = g->config.deployment->subtasks_per_channel_state_file;

	if (max > CHANNEL_STATE_SUBTASKS_MAX)
		max = CHANNEL_STATE_SUBTASKS_MAX;
	for (uint32_t i = 0; i < g->share_count; i++) {
		if (g->shares[i].worker == t->worker && g->shares[i].task_count < max)
			return i;
	}
	g->shares[g->share_count].worker = t->worker;
	return g->share_count++;
}

static int copy_uids(struct task_group *g)
{
	const struct deployment *d = g->config.deployment;

	g->vertex_uids = calloc(d->vertex_count, sizeof(g->vertex_uids[0]));
	if (g->vertex_uids == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->vertex_count; i++)
		snprintf(g->vertex_uids[i], UID_BYTES_MAX, "%s", d->vertices[i].uid);
	return 0;
}

int task_group_plan_in_flight(struct task_group *g, uint64_t *bytes)
{
	if (!g->config.deployment->unaligned)
		return 0;
	g->shares = calloc(g->task_count, sizeof(g->shares[0]));
	if (g->shares == NULL || copy_uids(g) != 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->task_count; i++) {
		struct task *t = &g->tasks[i];

		t->share = share_for(g, t);
		g->shares[t->share].task_count++;
		add_channels(g, t, &g->shares[t->share]);
	}
	for (uint32_t i = 0; i < g->share_count; i++) {
		struct channel_state_executor_config config = config_of(g, &g->shares[i]);

		g->shares[i].memory_bytes = channel_state_executor_memory_bytes(&config);
		*bytes += g->shares[i].memory_bytes;
	}
	return 0;
}

/* ---- build ----------------------------------------------------------------------------------- */

int task_group_build_in_flight(
		struct task_group *g, uint8_t *memory, char error[TASKMANAGER_ERROR_BYTES])
{
	char text[CHANNEL_STATE_PROBE_TEXT_BYTES];
	bool has_direct;

	if (g->share_count == 0)
		return 0;
	has_direct = channel_state_probe(g->checkpoint_dir, text);
	log_info("task", "channel state: %s", text);
	for (uint32_t i = 0; i < g->share_count; i++) {
		struct channel_state_share *share = &g->shares[i];

		share->store = store_share_attach(worker_store_share(share->worker));
		if (share->store == NULL) {
			snprintf(error, TASKMANAGER_ERROR_BYTES,
					"too many tasks write to the disk of one worker");
			return -EMFILE;
		}
	}
	for (uint32_t i = 0; i < g->task_count; i++) {
		struct task *t = &g->tasks[i];
		struct channel_state_share *share = &g->shares[t->share];
		struct channel_state_subtask s = subtask_of(g, t);

		if (share->executor == NULL) {
			struct channel_state_executor_config config = config_of(g, share);

			config.attempt = t->attempt;
			config.has_direct = has_direct;
			share->executor = channel_state_executor_create_at(memory, &config);
			memory += share->memory_bytes;
		}
		t->channel_state = channel_state_executor_add(share->executor, &s);
	}
	return 0;
}

int in_flight_refuse(char error[TASKMANAGER_ERROR_BYTES], const char *format, ...)
{
	char text[TASKMANAGER_ERROR_BYTES - 64];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(error, TASKMANAGER_ERROR_BYTES, "restore of data in flight refused: %s", text);
	return -EINVAL;
}

int in_flight_refuse_edge(const struct task_group *g, uint32_t edge,
		char error[TASKMANAGER_ERROR_BYTES], const char *format, ...)
{
	char text[TASKMANAGER_ERROR_BYTES / 2];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return in_flight_refuse(error, "edge %s -> %s: %s", task_group_uid(g, g->edges[edge].from),
			task_group_uid(g, g->edges[edge].to), text);
}

void task_group_destroy_in_flight(struct task_group *g)
{
	for (uint32_t i = 0; i < g->share_count; i++)
		store_destroy(g->shares[i].store);
	for (uint32_t i = 0; i < g->task_count; i++)
		buf_pool_destroy(g->tasks[i].recovered);
	for (uint32_t i = 0; i < g->task_count; i++)
		buf_pool_destroy(g->tasks[i].rerouted);
	free(g->shares);
	free(g->vertex_uids);
}
