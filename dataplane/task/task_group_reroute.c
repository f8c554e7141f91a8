/*
 * In-flight data of edges one of whose ends has another parallelism than in the checkpoint (19.3).
 *
 * The streams between old producers and old consumers are read one after the other, each whole:
 * what the consumer had, then what the producer had, so that a record may begin in the one and end
 * in the other (RE-25).  Every record goes to the new consumer that the edge's partitioner names
 * (RE-20), behind what the same old producer sent there before; and there into the channel of the
 * producer of that number modulo the parallelism.  So there is nothing to filter, and no channel
 * within a channel, while the task runs.  The watermarks of several old channels say nothing of one
 * new one (RE-21): those that the producers send next hold.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/base/check.h"
#include "dataplane/channel/partitioner.h"
#include "dataplane/checkpoint/channel_state_reader.h"
#include "dataplane/checkpoint/store.h"
#include "dataplane/checkpoint/task_state.h"
#include "dataplane/task/task_group_in_flight.h"
#include "dataplane/task/task_group_internal.h"
#include "dataplane/wire/record.h"

enum { PATH_BYTES = 1024 };

/* Records on their way to one new channel. */
struct records {
	uint8_t *bytes;
	size_t size, room;
};

struct rerouting {
	struct task_group *group;
	char directory[PATH_BYTES];
	uint32_t edge;
	struct partitioner *partitioner; /* of the edge */
	struct record_reader *reader;    /* of the stream */
	uint32_t channel;                /* new one, of the stream */
	struct records **records;        /* of each edge: consumer x producers + producer */
	char *error;
};

static const struct edge_channels *edge_of(const struct rerouting *r)
{
	return &r->group->edges[r->edge];
}

/* ---- which edges --------------------------------------------------------------------------- */

/* What one old subtask had; `subtask` UINT32_MAX: of any one of the vertex. */
static const struct task_state *find_state(
		const struct task_group *g, uint32_t vertex, uint32_t subtask)
{
	for (uint32_t i = 0; i < g->rescaled_count; i++) {
		const struct task_state *t = g->rescaled[i];

		if (strcmp(t->vertex_uid, task_group_uid(g, vertex)) == 0 &&
				(subtask == UINT32_MAX || t->subtask_index == subtask))
			return t;
	}
	return NULL;
}

static bool is_vertex_rescaled(const struct task_group *g, uint32_t vertex)
{
	const struct task_state *t = find_state(g, vertex, UINT32_MAX);

	return t != NULL && t->parallelism != g->config.deployment->vertices[vertex].parallelism;
}

bool task_group_is_rerouted(const struct task_group *g, uint32_t edge)
{
	return is_vertex_rescaled(g, g->edges[edge].from) ||
			is_vertex_rescaled(g, g->edges[edge].to);
}

/* The number of an edge among those at that end of its vertex. */
static uint32_t place_of(const struct task_group *g, uint32_t edge, bool is_output)
{
	const struct edge_channels *e = &g->edges[edge];
	uint32_t place = 0;

	for (uint32_t i = 0; i < edge; i++)
		place += is_output ? g->edges[i].from == e->from : g->edges[i].to == e->to;
	return place;
}

/* ---- one record after the other -------------------------------------------------------------- */

static int append(struct records *to, const uint8_t *bytes, size_t size)
{
	if (to->size + size > to->room) {
		size_t room = 2 * (to->size + size);
		uint8_t *more = realloc(to->bytes, room);

		if (more == NULL)
			return -ENOMEM;
		to->bytes = more;
		to->room = room;
	}
	memcpy(to->bytes + to->size, bytes, size);
	to->size += size;
	return 0;
}

static int route(struct rerouting *r, const struct weir_batch *batch)
{
	const struct edge_channels *e = edge_of(r);
	uint16_t targets[RECORDS_COUNT_MAX];
	const uint8_t *at = batch->data;
	int rc = 0;

	partitioner_targets(r->partitioner, batch, targets);
	for (uint32_t i = 0; rc == 0 && i < batch->count; i++) {
		uint32_t bytes = batch->record_bytes;

		if (bytes == 0) {
			(void)weir_record_at(at, &bytes);
			bytes += RECORD_PREFIX_BYTES;
		}
		if (e->consumer_places[targets[i]] == PLACE_HERE)
			rc = append(&r->records[r->edge][targets[i] * e->producer_count +
						    r->channel],
					at, bytes);
		at += bytes;
	}
	return rc;
}

static int route_buf(struct rerouting *r, const struct buf *b)
{
	struct weir_batch batch;
	int rc = record_reader_feed(r->reader, b);

	while (rc == 0 && (rc = record_reader_peek(r->reader, RECORDS_COUNT_MAX, &batch)) == 1) {
		rc = route(r, &batch);
		record_reader_advance(r->reader, batch.count);
	}
	if (rc == -EPROTO)
		return in_flight_refuse_edge(r->group, r->edge, r->error,
				"a buffer does not hold the records that %s makes",
				task_group_uid(r->group, edge_of(r)->from));
	return rc;
}

static int route_chunk(struct rerouting *r, const struct channel_state_reader *from,
		uint32_t index)
{
	const struct channel_state_chunk *c = channel_state_chunk(from, index);
	char text[CHANNEL_STATE_READER_TEXT_BYTES];
	struct buf b = {
		.data = malloc(c->size + 1),
		.capacity_bytes = c->size,
		.size_bytes = c->size,
		.first_record = c->first_record,
	};
	int rc = b.data == NULL ? -ENOMEM : channel_state_read_chunk(from, index, b.data, text);

	if (rc != 0 && rc != -ENOMEM)
		in_flight_refuse(r->error, "%.400s", text);
	if (rc == 0)
		rc = route_buf(r, &b);
	free(b.data);
	return rc;
}

/* ---- one stream ------------------------------------------------------------------------------ */

/* One side of it; nothing to do when that had none. */
static int route_side(struct rerouting *r, const struct task_state *t,
		enum channel_state_side side, uint32_t gate, uint32_t channel)
{
	char text[CHANNEL_STATE_READER_TEXT_BYTES];
	struct channel_state_reader *reader;

	for (uint32_t i = 0; t != NULL && i < t->channel_count; i++) {
		const struct channel_state_handle *h = &t->channels[i];
		struct channel_state_owner owner = {
			r->group->config.deployment->restored_checkpoint_id, t->vertex_uid,
			t->subtask_index,
		};

		if (h->side != side || h->gate != gate || h->channel != channel)
			continue;
		int rc = channel_state_open(&reader, r->directory, h, &owner, text);
		if (rc != 0) {
			in_flight_refuse(r->error, "%.400s", text);
			return rc;
		}
		for (uint32_t k = 0; rc == 0 && k < channel_state_chunk_count(reader); k++)
			rc = route_chunk(r, reader, k);
		channel_state_close(reader);
		return rc;
	}
	return 0;
}

static int route_stream(struct rerouting *r, uint32_t producer, uint32_t consumer)
{
	const struct edge_channels *e = edge_of(r);
	struct record_reader_config config = {e->record_bytes, e->record_bytes_max};
	uint32_t left;
	int rc = record_reader_create(&r->reader, &config);

	if (rc != 0)
		return rc;
	r->channel = producer % e->producer_count;
	rc = route_side(r, find_state(r->group, e->to, consumer), CHANNEL_STATE_INPUT,
			place_of(r->group, r->edge, false), producer);
	if (rc == 0)
		rc = route_side(r, find_state(r->group, e->from, producer), CHANNEL_STATE_OUTPUT,
				place_of(r->group, r->edge, true), consumer);
	(void)record_reader_partial(r->reader, &left);
	if (rc == 0 && left > 0) /* RE-23 */
		rc = in_flight_refuse_edge(r->group, r->edge, r->error,
				"the last record of channel %u to %u is not whole", producer,
				consumer);
	record_reader_destroy(r->reader);
	return rc;
}

static uint32_t old_parallelism(const struct task_group *g, uint32_t vertex)
{
	const struct task_state *t = find_state(g, vertex, UINT32_MAX);

	return t == NULL ? 0 : t->parallelism;
}

static int route_edge(struct rerouting *r)
{
	const struct edge_channels *e = edge_of(r);
	const struct weir_declaration *tail = &r->group->tails[e->from];
	struct partitioner_config config = {
		.kind = e->partition == PARTITION_HASH ? PARTITIONER_HASH : PARTITIONER_REBALANCE,
		.channel_count = e->consumer_count,
		.key_group_count = r->group->config.deployment->key_group_count,
		.key_offset = tail->out_key_offset,
		.key_bytes = tail->out_key_bytes,
	};
	uint32_t producers = old_parallelism(r->group, e->from);
	uint32_t consumers = old_parallelism(r->group, e->to);
	int rc = partitioner_init(r->partitioner, &config);

	r->records[r->edge] = calloc((size_t)e->consumer_count * e->producer_count,
			sizeof(struct records));
	if (r->records[r->edge] == NULL)
		return -ENOMEM;
	for (uint32_t p = 0; rc == 0 && p < producers; p++)
		for (uint32_t c = 0; rc == 0 && c < consumers; c++)
			rc = route_stream(r, p, c);
	return rc;
}

/* ---- into the gates -------------------------------------------------------------------------- */

/* Buffers that hold those records; at least as many as will be needed. */
static uint32_t bufs_max(const struct task_group *g, const struct edge_channels *e,
		const struct records *from)
{
	uint32_t capacity = g->config.pool->capacity_bytes;
	uint32_t usable = e->record_bytes == 0
			? capacity
			: record_count_per_buf(capacity, e->record_bytes) * e->record_bytes;

	return (uint32_t)((from->size + usable - 1) / usable);
}

static void fill_fixed(struct buf *b, const struct edge_channels *e, const struct records *from,
		size_t *at)
{
	size_t bytes = (size_t)record_count_per_buf(b->capacity_bytes, e->record_bytes) *
			e->record_bytes;

	bytes = bytes < from->size - *at ? bytes : from->size - *at;
	memcpy(b->data, from->bytes + *at, bytes);
	b->size_bytes = (uint32_t)bytes;
	b->first_record = 0;
	*at += bytes;
}

/* `*done` bytes of the record at `*at` are in buffers before. */
static void fill_variable(struct buf *b, const struct records *from, size_t *at, uint32_t *done)
{
	while (*at < from->size && b->size_bytes < b->capacity_bytes) {
		uint32_t bytes;

		(void)weir_record_at(from->bytes + *at, &bytes);
		bytes += RECORD_PREFIX_BYTES;
		if (!record_write(b, from->bytes + *at, bytes, done))
			return;
		*at += bytes;
		*done = 0;
	}
}

static int fill_channel(struct task *t, const struct edge_channels *e, uint32_t gate,
		uint32_t channel, const struct records *from)
{
	uint32_t max = bufs_max(t->group, e, from), count = 0, done = 0;
	struct buf **bufs = calloc(max + 1, sizeof(bufs[0]));
	int rc = bufs == NULL ? -ENOMEM : 0;

	for (size_t at = 0; rc == 0 && at < from->size;) {
		struct buf *b = buf_alloc(t->rerouted);

		if (b == NULL) {
			rc = -ENOMEM;
			break;
		}
		CHECK(count < max);
		bufs[count++] = b;
		if (e->record_bytes == 0)
			fill_variable(b, from, &at, &done);
		else
			fill_fixed(b, e, from, &at);
	}
	if (rc == 0)
		rc = input_gate_restore(t->inputs[gate], channel, bufs, count);
	for (uint32_t i = 0; rc != 0 && i < count; i++)
		buf_release(bufs[i]);
	free(bufs);
	return rc;
}

/* The records for one channel of a task, or NULL. */
static const struct records *records_for(const struct rerouting *r, const struct task *t,
		uint32_t edge, uint32_t channel)
{
	const struct edge_channels *e = &r->group->edges[edge];

	if (r->records[edge] == NULL || e->to != t->vertex)
		return NULL;
	const struct records *from =
			&r->records[edge][t->subtask_index * e->producer_count + channel];
	return from->size > 0 ? from : NULL;
}

static int fill_task(struct rerouting *r, struct task *t)
{
	struct task_group *g = r->group;
	uint32_t count = 0;
	int rc = 0;

	for (uint32_t i = 0; i < g->edge_count; i++) {
		for (uint32_t c = 0; c < g->edges[i].producer_count; c++) {
			const struct records *from = records_for(r, t, i, c);

			count += from == NULL ? 0 : bufs_max(g, &g->edges[i], from);
		}
	}
	if (count > 0)
		rc = buf_pool_from_heap(&t->rerouted, g->config.pool->capacity_bytes, count);
	for (uint32_t i = 0; rc == 0 && count > 0 && i < g->edge_count; i++) {
		for (uint32_t c = 0; rc == 0 && c < g->edges[i].producer_count; c++) {
			const struct records *from = records_for(r, t, i, c);

			if (from != NULL)
				rc = fill_channel(t, &g->edges[i], place_of(g, i, false), c, from);
		}
	}
	return rc;
}

static void free_records(struct rerouting *r)
{
	for (uint32_t i = 0; r->records != NULL && i < r->group->edge_count; i++) {
		const struct edge_channels *e = &r->group->edges[i];

		for (uint32_t k = 0; r->records[i] != NULL &&
				k < e->consumer_count * e->producer_count; k++)
			free(r->records[i][k].bytes);
		free(r->records[i]);
	}
	free(r->records);
}

int task_group_reroute_in_flight(
		struct task_group *g, const char *directory, char error[TASKMANAGER_ERROR_BYTES])
{
	struct rerouting r = {
		.group = g,
		.records = calloc(g->edge_count + 1, sizeof(r.records[0])),
		.partitioner = calloc(1, sizeof(*r.partitioner)),
		.error = error,
	};
	int rc = r.records == NULL || r.partitioner == NULL ? -ENOMEM : 0;

	snprintf(r.directory, sizeof(r.directory), "%s", directory);
	for (; rc == 0 && r.edge < g->edge_count; r.edge++) {
		const struct edge_channels *e = edge_of(&r);

		/* The others never have data in flight (OU-2). */
		if (task_group_is_rerouted(g, r.edge) && (e->partition == PARTITION_HASH ||
				e->partition == PARTITION_REBALANCE))
			rc = route_edge(&r);
	}
	for (uint32_t i = 0; rc == 0 && i < g->task_count; i++)
		rc = fill_task(&r, &g->tasks[i]);
	free_records(&r);
	free(r.partitioner);
	return rc;
}
