/*
 * Edges with the same parallelism as in the checkpoint: a channel gets back what was in flight on
 * it, first what its consumer had taken, then what its producer still had.  One record may begin in
 * the one and end in the other (RE-25).  Both are handed to the consumer; when that runs elsewhere,
 * the producer's waits in its output queue, as it did.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/base/check.h"
#include "dataplane/checkpoint/channel_state_reader.h"
#include "dataplane/checkpoint/store.h"
#include "dataplane/checkpoint/task_state.h"
#include "dataplane/task/task_group_in_flight.h"
#include "dataplane/task/task_group_internal.h"

enum { PATH_BYTES = 1024 };

/* What one side of one channel had. */
struct found {
	uint32_t task;          /* who gets it: the consumer, when it is here */
	bool is_producers;      /* its consumer is not: it waits at the producer again */
	uint32_t gate, channel; /* of the task */
	uint32_t edge;
	uint32_t from;          /* whose state it was in: index of a task */
	const struct channel_state_handle *handle;
};

struct recovery {
	struct task_group *group;
	char directory[PATH_BYTES];
	struct task_state **states; /* of each task, NULL: none */
	struct found *found;
	uint32_t found_count;
	char *error;
};

/* ---- where it belongs ------------------------------------------------------------------------ */

/* The nth edge at that end of a vertex, or edge_count. */
static uint32_t find_edge(const struct task_group *g, uint32_t vertex, bool is_output, uint32_t nth)
{
	for (uint32_t i = 0; i < g->edge_count; i++) {
		if ((is_output ? g->edges[i].from : g->edges[i].to) != vertex)
			continue;
		if (nth-- == 0)
			return i;
	}
	return g->edge_count;
}

/* The number of an edge among the inputs of its consumer. */
static uint32_t gate_of(const struct task_group *g, uint32_t edge)
{
	uint32_t gate = 0;

	for (uint32_t i = 0; i < edge; i++)
		gate += g->edges[i].to == g->edges[edge].to;
	return gate;
}

static uint32_t find_task(const struct task_group *g, uint32_t vertex, uint32_t subtask)
{
	for (uint32_t i = 0; i < g->task_count; i++) {
		if (g->tasks[i].vertex == vertex && g->tasks[i].subtask_index == subtask)
			return i;
	}
	return g->task_count;
}

static int place(struct recovery *r, uint32_t from, const struct channel_state_handle *h)
{
	struct task_group *g = r->group;
	const struct task *t = &g->tasks[from];
	bool is_output = h->side == CHANNEL_STATE_OUTPUT;
	uint32_t edge = find_edge(g, t->vertex, is_output, h->gate);
	struct found *f = &r->found[r->found_count];
	uint32_t count, consumer = t->subtask_index;

	if (edge == g->edge_count)
		return in_flight_refuse(r->error,
				"vertex %s had %s %u, and has it no more (the checkpoint is "
				"unaligned: its graph must stay the same)",
				task_group_uid(g, t->vertex), is_output ? "output" : "input",
				h->gate);
	if (task_group_is_rerouted(g, edge))
		return 0;
	const struct edge_channels *e = &g->edges[edge];
	*f = (struct found){.gate = gate_of(g, edge), .edge = edge, .from = from, .handle = h};
	count = is_output ? e->consumer_count : e->producer_count;
	if (e->partition == PARTITION_FORWARD) {
		count = 1;
	} else if (is_output) {
		consumer = h->channel;
		f->channel = t->subtask_index;
	} else {
		f->channel = h->channel;
	}
	if (h->channel >= count)
		return in_flight_refuse_edge(g, edge, r->error,
				"channel %u of subtask %u is there no more (the "
				"checkpoint is unaligned: its graph must stay the same)",
				h->channel, t->subtask_index);
	f->task = find_task(g, e->to, consumer);
	if (f->task == g->task_count) {
		CHECK(is_output);
		*f = (struct found){from, true, h->gate, h->channel, edge, from, h};
	}
	r->found_count++;
	return 0;
}

static int by_channel(const void *left, const void *right)
{
	const struct found *a = left, *b = right;

	if (a->task != b->task)
		return a->task < b->task ? -1 : 1;
	if (a->is_producers != b->is_producers)
		return a->is_producers ? 1 : -1;
	if (a->gate != b->gate)
		return a->gate < b->gate ? -1 : 1;
	if (a->channel != b->channel)
		return a->channel < b->channel ? -1 : 1;
	return (int)a->handle->side - (int)b->handle->side;
}

/* All that was in flight, with its place, in the order of the channels. */
static int find_all(struct recovery *r)
{
	const struct deployment *d = r->group->config.deployment;
	char text[TASK_STATE_TEXT_BYTES];
	uint32_t count = 0;

	for (uint32_t i = 0; i < d->task_count; i++) {
		const struct deployment_task *t = &d->tasks[i];

		if (t->state == NULL)
			continue;
		if (task_state_decode(&r->states[i], t->state, t->state_bytes, text) != 0)
			return in_flight_refuse(r->error, "%s", text);
		count += r->states[i]->channel_count;
	}
	r->found = calloc(count + 1, sizeof(r->found[0]));
	if (r->found == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->task_count; i++) {
		uint32_t channels = r->states[i] != NULL ? r->states[i]->channel_count : 0;

		for (uint32_t k = 0; k < channels; k++) {
			int rc = place(r, i, &r->states[i]->channels[k]);

			if (rc != 0)
				return rc;
		}
	}
	qsort(r->found, r->found_count, sizeof(r->found[0]), by_channel);
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int open_found(struct recovery *r, const struct found *f,
		struct channel_state_reader **reader)
{
	const struct task_group *g = r->group;
	struct channel_state_owner owner = {
		.checkpoint_id = g->config.deployment->restored_checkpoint_id,
		.vertex_uid = task_group_uid(g, g->tasks[f->from].vertex),
		.subtask_index = g->tasks[f->from].subtask_index,
	};
	char text[CHANNEL_STATE_READER_TEXT_BYTES];
	int rc = channel_state_open(reader, r->directory, f->handle, &owner, text);

	if (rc != 0) {
		in_flight_refuse(r->error, "%.400s", text);
		return rc;
	}
	uint32_t record = g->tails[g->edges[f->edge].from].out_record_bytes;
	for (uint32_t i = 0; record != 0 && i < channel_state_chunk_count(*reader); i++) {
		uint32_t size = channel_state_chunk(*reader, i)->size;

		if (size % record == 0)
			continue;
		channel_state_close(*reader);
		return in_flight_refuse_edge(g, f->edge, r->error,
				"%u bytes are no records of %u bytes, as %s declares them now",
				size, record, task_group_uid(g, g->edges[f->edge].from));
	}
	return 0;
}

/* A pool for what the task of `found` gets: as many buffers, as large as the largest. */
static int make_pool(struct recovery *r, const struct found *found, uint32_t count)
{
	uint32_t bufs = 0, bytes = 1;

	for (uint32_t i = 0; i < count; i++) {
		struct channel_state_reader *reader;
		int rc = open_found(r, &found[i], &reader);

		if (rc != 0)
			return rc;
		for (uint32_t k = 0; k < channel_state_chunk_count(reader); k++) {
			uint32_t size = channel_state_chunk(reader, k)->size;

			bytes = size > bytes ? size : bytes;
		}
		bufs += channel_state_chunk_count(reader);
		channel_state_close(reader);
	}
	if (bytes > INT32_MAX)
		return in_flight_refuse(r->error, "a buffer of %u bytes", bytes);
	/* Whole blocks, so that the next checkpoint can write them as they lie. */
	bytes = (bytes + STORE_ALIGN_BYTES - 1) / STORE_ALIGN_BYTES * STORE_ALIGN_BYTES;
	return buf_pool_from_heap(&r->group->tasks[found->task].recovered, bytes, bufs);
}

/* Appends the buffers of one side to `bufs`; those read stay in it when it fails. */
static int read_found(struct recovery *r, const struct found *f, struct buf **bufs,
		uint32_t *count)
{
	char text[CHANNEL_STATE_READER_TEXT_BYTES];
	struct channel_state_reader *reader;
	int rc = open_found(r, f, &reader);

	if (rc != 0)
		return rc;
	for (uint32_t i = 0; rc == 0 && i < channel_state_chunk_count(reader); i++) {
		const struct channel_state_chunk *c = channel_state_chunk(reader, i);
		struct buf *b = buf_alloc(r->group->tasks[f->task].recovered);

		if (b == NULL) {
			rc = -ENOMEM;
			break;
		}
		bufs[(*count)++] = b;
		b->size_bytes = c->size;
		b->first_record = c->first_record;
		b->watermark = c->watermark;
		rc = channel_state_read_chunk(reader, i, b->data, text);
		if (rc != 0)
			in_flight_refuse(r->error, "%.400s", text);
	}
	channel_state_close(reader);
	return rc;
}

static int hand_over(struct recovery *r, const struct found *f, struct buf *const *bufs,
		uint32_t count)
{
	struct task *t = &r->group->tasks[f->task];

	if (!f->is_producers)
		return input_gate_restore(t->inputs[f->gate], f->channel, bufs, count);
	for (uint32_t i = 0; i < count; i++) {
		if (bufs[i]->size_bytes > r->group->config.pool->capacity_bytes)
			return in_flight_refuse_edge(r->group, f->edge, r->error,
					"a buffer of %u bytes does not fit "
					"taskmanager.memory.segment-size", bufs[i]->size_bytes);
	}
	int rc = output_gate_restore(t->outputs[f->gate], f->channel, bufs, count);
	if (rc == -ENOSPC)
		in_flight_refuse_edge(r->group, f->edge, r->error,
				"%u buffers waited on one channel; raise "
				"taskmanager.network.memory.buffers-per-channel", count);
	return rc;
}

/* Both sides of one channel. */
static int fill_channel(struct recovery *r, const struct found *found, uint32_t count)
{
	uint32_t max = 0, have = 0;
	int rc = 0;

	for (uint32_t i = 0; i < count; i++)
		max += found[i].handle->buf_count;
	struct buf **bufs = calloc(max + 1, sizeof(bufs[0]));
	if (bufs == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; rc == 0 && i < count; i++)
		rc = read_found(r, &found[i], bufs, &have);
	if (rc == 0)
		rc = hand_over(r, found, bufs, have);
	for (uint32_t i = 0; rc != 0 && i < have; i++)
		buf_release(bufs[i]);
	free(bufs);
	return rc;
}

/* How many of `found` belong together with the first. */
static uint32_t run_length(const struct found *found, uint32_t count, bool is_channel)
{
	uint32_t n = 1;

	while (n < count && found[n].task == found[0].task &&
			(!is_channel || (found[n].is_producers == found[0].is_producers &&
						found[n].gate == found[0].gate &&
						found[n].channel == found[0].channel)))
		n++;
	return n;
}

static int fill_task(struct recovery *r, const struct found *found, uint32_t count)
{
	int rc = make_pool(r, found, count);

	for (uint32_t at = 0; rc == 0 && at < count;) {
		uint32_t n = run_length(found + at, count - at, true);

		rc = fill_channel(r, found + at, n);
		at += n;
	}
	return rc;
}

static int recover(struct recovery *r)
{
	int rc = find_all(r);

	for (uint32_t at = 0; rc == 0 && at < r->found_count;) {
		uint32_t n = run_length(r->found + at, r->found_count - at, false);

		rc = fill_task(r, r->found + at, n);
		at += n;
	}
	return rc;
}

int task_group_restore_in_flight(struct task_group *g, char error[TASKMANAGER_ERROR_BYTES])
{
	const struct deployment *d = g->config.deployment;
	struct recovery r = {.group = g, .error = error};

	if (d->restored_checkpoint_id == 0 || d->must_drop_in_flight)
		return 0;
	if (d->restored_dir != NULL)
		snprintf(r.directory, sizeof(r.directory), "%s", d->restored_dir);
	else
		snprintf(r.directory, sizeof(r.directory), "%s/chk-%" PRId64, d->checkpoint_dir,
				d->restored_checkpoint_id);
	r.states = calloc(d->task_count, sizeof(r.states[0]));
	if (r.states == NULL)
		return -ENOMEM;
	int rc = recover(&r);
	if (rc == 0 && g->rescaled_count > 0)
		rc = task_group_reroute_in_flight(g, r.directory, error);
	for (uint32_t i = 0; i < d->task_count; i++)
		task_state_free(r.states[i]);
	free(r.states);
	free(r.found);
	return rc;
}
