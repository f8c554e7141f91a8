/* The edges of a task_group: channels and the gates at their ends. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/base/check.h"
#include "dataplane/task/task_group_internal.h"
#include "dataplane/wire/buf.h"
#include "dataplane/wire/record.h"

/* The largest variable record fits into the sender's queue beside one open buffer: it is taken
 * whole, however slowly its parts leave. */
static struct channel_config channel_config_of(
		const struct task_group *g, const struct edge_channels *e)
{
	const struct deployment *d = g->config.deployment;
	uint32_t capacity = g->config.pool->capacity_bytes;
	uint32_t needed = (e->record_bytes_max + RECORD_PREFIX_BYTES + capacity - 1) / capacity + 1;
	struct channel_config config = {
		.queue_count = d->channel_queue_count,
		.credit_count = d->channel_credit_count,
		.is_plain = d->has_plain_channels,
	};

	if (e->record_bytes == 0 && needed > config.queue_count)
		config.queue_count = needed;
	return config;
}

static int check_channel(const struct task_group *g, const struct edge_channels *e,
		char error[TASKMANAGER_ERROR_BYTES])
{
	const struct deployment *d = g->config.deployment;

	if (channel_buffers_max(&e->channel) <= CHANNEL_BUFFERS_MAX ||
			e->channel.queue_count == d->channel_queue_count)
		return 0;
	snprintf(error, TASKMANAGER_ERROR_BYTES,
			"edge %s -> %s: a record of %u bytes needs %u buffers of %u bytes, and a "
			"channel has at most %d, its credit of %u included; "
			"taskmanager.memory.segment-size is too small for it",
			d->vertices[e->from].uid, d->vertices[e->to].uid, e->record_bytes_max,
			e->channel.queue_count, g->config.pool->capacity_bytes, CHANNEL_BUFFERS_MAX,
			e->channel.credit_count);
	return -EINVAL;
}

/* Forward: only subtask i to subtask i.  A channel between two others is not ours. */
static bool is_joined(const struct edge_channels *e, uint32_t producer, uint32_t consumer)
{
	int32_t from = e->producer_places[producer], to = e->consumer_places[consumer];

	return (e->partition != PARTITION_FORWARD || producer == consumer) &&
			(from == PLACE_HERE || to == PLACE_HERE) && from != PLACE_NOWHERE &&
			to != PLACE_NOWHERE;
}

/* Where the subtasks of a vertex run; NULL: no memory. */
static int32_t *find_places(const struct deployment *d, uint32_t vertex)
{
	uint32_t count = d->vertices[vertex].parallelism;
	int32_t *places = calloc(count, sizeof(places[0]));

	if (places == NULL)
		return NULL;
	for (uint32_t i = 0; i < count; i++)
		places[i] = PLACE_NOWHERE;
	for (uint32_t i = 0; i < d->task_count; i++) {
		if (d->tasks[i].vertex == vertex)
			places[d->tasks[i].subtask_index] = PLACE_HERE;
	}
	for (uint32_t i = 0; i < d->remote_count; i++) {
		if (d->remotes[i].vertex == vertex)
			places[d->remotes[i].subtask_index] = (int32_t)d->remotes[i].peer;
	}
	return places;
}

/* The buffers at our ends of the edge's channels.  Other regions' tasks are nowhere; who is here
 * must have all its neighbours: -EINVAL. */
static int64_t count_buffers(const struct edge_channels *e)
{
	uint32_t all = e->producer_count * e->consumer_count;
	int64_t count = 0;

	for (uint32_t k = 0; k < all; k++) {
		uint32_t producer = k / e->consumer_count, consumer = k % e->consumer_count;
		int32_t from = e->producer_places[producer], to = e->consumer_places[consumer];

		if (e->partition == PARTITION_FORWARD && producer != consumer)
			continue;
		if ((from == PLACE_NOWHERE && to == PLACE_HERE) ||
				(from == PLACE_HERE && to == PLACE_NOWHERE))
			return -EINVAL;
		if (from == PLACE_HERE)
			count += channel_buffers_max(&e->channel);
		else if (is_joined(e, producer, consumer))
			count += e->channel.credit_count;
	}
	return count;
}

static int plan_edge(struct task_group *g, uint32_t index, char error[TASKMANAGER_ERROR_BYTES])
{
	const struct deployment *d = g->config.deployment;
	const struct deployment_edge *edge = &d->edges[index];
	const struct deployment_vertex *from = &d->vertices[edge->from];
	const struct deployment_vertex *to = &d->vertices[edge->to];
	const struct weir_declaration *tail = &g->tails[edge->from];
	struct edge_channels *e = &g->edges[index];

	*e = (struct edge_channels){
		.from = edge->from,
		.to = edge->to,
		.partition = edge->partition,
		.producer_count = from->parallelism,
		.consumer_count = to->parallelism,
		.record_bytes = tail->out_record_bytes,
		.record_bytes_max = tail->out_record_bytes_max == 0 ? RECORD_BYTES_DEFAULT
								    : tail->out_record_bytes_max,
	};
	e->channel = channel_config_of(g, e);
	if (edge->partition == PARTITION_FORWARD && from->parallelism != to->parallelism) {
		snprintf(error, TASKMANAGER_ERROR_BYTES,
				"edge %s -> %s: forward joins equal parallelism, not %u to %u",
				from->uid, to->uid, from->parallelism, to->parallelism);
		return -EINVAL;
	}
	if (edge->partition == PARTITION_HASH && tail->out_key_bytes == 0) {
		snprintf(error, TASKMANAGER_ERROR_BYTES,
				"edge %s -> %s: hash needs a key, and the records of %s have none",
				from->uid, to->uid, from->uid);
		return -EINVAL;
	}
	e->at = calloc((size_t)e->producer_count * e->consumer_count, sizeof(e->at[0]));
	e->producer_places = find_places(d, edge->from);
	e->consumer_places = find_places(d, edge->to);
	if (e->at == NULL || e->producer_places == NULL || e->consumer_places == NULL)
		return -ENOMEM;
	int64_t count = count_buffers(e);
	if (count < 0) {
		snprintf(error, TASKMANAGER_ERROR_BYTES,
				"edge %s -> %s: the deployment has tasks at one end only",
				from->uid, to->uid);
		return (int)count;
	}
	g->buffer_count += (uint64_t)count;
	return check_channel(g, e, error);
}

int task_group_plan_channels(struct task_group *g, char error[TASKMANAGER_ERROR_BYTES])
{
	const struct deployment *d = g->config.deployment;

	g->edges = calloc(d->edge_count + 1, sizeof(g->edges[0]));
	if (g->edges == NULL)
		return -ENOMEM;
	g->edge_count = d->edge_count;
	for (uint32_t i = 0; i < d->edge_count; i++) {
		int status = plan_edge(g, i, error);

		if (status != 0)
			return status;
	}
	return 0;
}

int task_group_build_channels(struct task_group *g, char error[TASKMANAGER_ERROR_BYTES])
{
	for (uint32_t i = 0; i < g->edge_count; i++) {
		struct edge_channels *e = &g->edges[i];

		for (uint32_t k = 0; k < e->producer_count * e->consumer_count; k++) {
			if (!is_joined(e, k / e->consumer_count, k % e->consumer_count))
				continue;
			int status = ring_channel_create(&e->at[k], &e->channel);
			if (status != 0) {
				snprintf(error, TASKMANAGER_ERROR_BYTES,
						"a channel was not made: %s (a channel has 2 or "
						"more "
						"buffers to send, 1 or more of credit, %d in all)",
						strerror(-status), CHANNEL_BUFFERS_MAX);
				return status;
			}
		}
	}
	return 0;
}

/* The channels of one row (a producer's) or column (a consumer's) of an edge. */
static uint32_t collect_channels(const struct edge_channels *e, bool is_producer, uint32_t subtask,
		struct ring_channel **out)
{
	uint32_t count = is_producer ? e->consumer_count : e->producer_count, found = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct ring_channel *c = is_producer ? e->at[subtask * e->consumer_count + i]
						     : e->at[i * e->consumer_count + subtask];

		if (c != NULL)
			out[found++] = c;
	}
	return found;
}

static bool is_pointwise_or_broadcast(const struct edge_channels *e)
{
	return e->partition == PARTITION_FORWARD || e->partition == PARTITION_BROADCAST;
}

/* OU-2: one such edge holds up all the others that its consumer has. */
static bool is_aligned_only(const struct task_group *g, const struct edge_channels *e)
{
	for (uint32_t i = 0; i < g->edge_count; i++) {
		if (g->edges[i].to == e->to && is_pointwise_or_broadcast(&g->edges[i]))
			return true;
	}
	return false;
}

/* Anywhere, for another attempt elsewhere. */
static uint32_t first_turn(const struct task *t)
{
	uint32_t turn;

	memcpy(&turn, t->attempt.id.bytes, sizeof(turn));
	return turn;
}

static int build_output(struct task_group *g, struct task *t, const struct edge_channels *e)
{
	static const enum partitioner_kind kinds[] = {
		[PARTITION_FORWARD] = PARTITIONER_FORWARD,
		[PARTITION_HASH] = PARTITIONER_HASH,
		[PARTITION_REBALANCE] = PARTITIONER_REBALANCE,
		[PARTITION_BROADCAST] = PARTITIONER_BROADCAST,
	};
	const struct deployment *d = g->config.deployment;
	const struct weir_declaration *tail = &g->tails[t->vertex];
	struct ring_channel *channels[CHANNELS_PER_GATE_MAX];
	uint32_t count = collect_channels(e, true, t->subtask_index, channels);
	struct output_gate_config config = {
		.pool = g->config.pool,
		.channels = channels,
		.partitioner = {
			.kind = kinds[e->partition],
			.channel_count = count,
			.key_group_count = d->key_group_count,
			.key_offset = tail->out_key_offset,
			.key_bytes = tail->out_key_bytes,
			.first_turn = first_turn(t),
		},
		.record_bytes = e->record_bytes,
		.record_bytes_max = e->record_bytes_max,
		.flush_ns = d->buffer_timeout_ns,
		.is_aligned_only = is_aligned_only(g, e),
	};

	if (t->output_count == OUTPUTS_PER_TASK_MAX)
		return -E2BIG;
	int status = output_gate_create(&t->outputs[t->output_count], &config);
	if (status == 0)
		t->output_count++;
	return status;
}

static int build_input(struct task *t, const struct edge_channels *e)
{
	struct ring_channel *channels[CHANNELS_PER_GATE_MAX];
	uint32_t count = collect_channels(e, false, t->subtask_index, channels);
	struct input_gate_config config = {
		.channels = channels,
		.channel_count = count,
		.record_bytes = e->record_bytes,
		.record_bytes_max = e->record_bytes_max,
	};

	if (t->input_count == GATES_PER_TASK_MAX)
		return -E2BIG;
	int status = input_gate_create(&t->inputs[t->input_count], &config);
	if (status == 0)
		t->input_count++;
	return status;
}

int task_group_build_gates(
		struct task_group *g, struct task *t, char error[TASKMANAGER_ERROR_BYTES])
{
	for (uint32_t i = 0; i < g->edge_count; i++) {
		const struct edge_channels *e = &g->edges[i];
		int status = 0;

		if (e->from == t->vertex)
			status = build_output(g, t, e);
		if (status == 0 && e->to == t->vertex)
			status = build_input(t, e);
		if (status != 0) {
			snprintf(error, TASKMANAGER_ERROR_BYTES,
					"edge %s -> %s: its gates were not made: %s (records must "
					"fit "
					"the buffers, taskmanager.memory.segment-size)",
					task_group_uid(g, e->from),
					task_group_uid(g, e->to),
					strerror(-status));
			return status;
		}
	}
	return 0;
}

void task_group_destroy_channels(struct task_group *g)
{
	for (uint32_t i = 0; i < g->edge_count && g->edges != NULL; i++) {
		struct edge_channels *e = &g->edges[i];

		for (uint32_t k = 0; e->at != NULL && k < e->producer_count * e->consumer_count;
				k++)
			ring_channel_destroy(e->at[k]);
		free(e->at);
		free(e->producer_places);
		free(e->consumer_places);
	}
	free(g->edges);
}
