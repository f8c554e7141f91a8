#include "tests/soak/soak_plan.h"

#include "dataplane/base/check.h"
#include "dataplane/base/prng.h"

#include <string.h>

enum {
	KIB = 1024,
	MIB = 1024 * KIB,
	MICROSECOND_NS = 1000,
	BYTES_MAX = 24 * MIB, /* of all records of a seed, about */
};

const char *soak_mode_name(enum soak_mode mode)
{
	static const char *const names[] = {"aligned", "unaligned", "timeout", "at-least-once"};

	return names[mode];
}

const char *soak_fault_name(enum soak_fault fault)
{
	static const char *const names[SOAK_FAULTS_COUNT] = {"kill", "kill at an acknowledgement",
			"kill at a completion", "cancel", "operator fails", "stop"};

	return names[fault];
}

static uint32_t below(struct prng *p, uint32_t bound)
{
	return (uint32_t)prng_below(p, bound);
}

static bool happens(struct prng *p, uint32_t percent)
{
	return below(p, 100) < percent;
}

static uint32_t draw_parallelism(struct prng *r)
{
	static const uint32_t counts[] = {1, 1, 2, 2, 2, 3, 3, 4, 7, 8};

	return counts[below(r, sizeof(counts) / sizeof(counts[0]))];
}

/* ---- the dataflow ---- */

/* Who feeds whom: a line of two, a line of three, two sinks, two ways to one sink's vertex. */
static void draw_shape(struct soak_plan *p, struct prng *r)
{
	static const struct {
		uint32_t vertices, edges;
		uint32_t ends[SOAK_EDGES_MAX][2];
	} shapes[] = {
			{2, 1, {{0, 1}}},
			{3, 2, {{0, 1}, {1, 2}}},
			{3, 2, {{0, 1}, {1, 2}}},
			{4, 3, {{0, 1}, {1, 2}, {2, 3}}},
			{3, 2, {{0, 1}, {0, 2}}},
			{4, 3, {{0, 1}, {1, 2}, {1, 3}}},
	};
	uint32_t i = below(r, sizeof(shapes) / sizeof(shapes[0]));

	p->vertex_count = shapes[i].vertices;
	p->edge_count = shapes[i].edges;
	for (uint32_t e = 0; e < p->edge_count; e++) {
		p->edges[e].from = shapes[i].ends[e][0];
		p->edges[e].to = shapes[i].ends[e][1];
		/* Half of them by key. */
		p->edges[e].partition = happens(r, 40) ? PARTITION_HASH
						       : (enum deployment_partition)below(r, 4);
	}
}

static bool is_end(const struct soak_plan *p, uint32_t vertex)
{
	for (uint32_t e = 0; e < p->edge_count; e++) {
		if (p->edges[e].from == vertex)
			return false;
	}
	return true;
}

/* What the operator behind an edge can count on. */
static enum numbered_order order_of(const struct soak_plan *p, const struct soak_edge *e)
{
	const struct soak_vertex *from = &p->vertices[e->from];
	bool is_straight = e->from == 0;

	if (p->is_at_least_once)
		return NUMBERED_REPEATS;
	if (e->partition == PARTITION_HASH &&
			(is_straight || from->order == NUMBERED_KEY_ORDER ||
					(from->order == NUMBERED_STREAM_ORDER &&
							!from->must_share)))
		return NUMBERED_KEY_ORDER;
	if ((e->partition == PARTITION_FORWARD || e->partition == PARTITION_BROADCAST) &&
			(is_straight || (from->order == NUMBERED_STREAM_ORDER &&
							!from->must_share)))
		return NUMBERED_STREAM_ORDER;
	return NUMBERED_IN_ANY_ORDER;
}

static void fill_vertex(struct soak_plan *p, const struct soak_edge *e, struct prng *r)
{
	struct soak_vertex *v = &p->vertices[e->to];
	bool is_by_key = e->partition == PARTITION_HASH, is_sink = is_end(p, e->to);

	snprintf(v->uid, sizeof(v->uid), "%s%u", is_sink ? "sink" : "pass", e->to);
	v->op = is_by_key ? (is_sink ? NUMBERED_SINK : NUMBERED_PASS)
			  : (is_sink ? NUMBERED_SINK_ANY : NUMBERED_PASS_ANY);
	v->parallelism = e->partition == PARTITION_FORWARD ? p->vertices[e->from].parallelism
							   : draw_parallelism(r);
	v->must_share = e->partition == PARTITION_BROADCAST;
	v->order = order_of(p, e);
	v->delay_ns = happens(r, 60) ? below(r, 200) * MICROSECOND_NS : 0;
}

static void draw_vertices(struct soak_plan *p, struct prng *r)
{
	p->vertices[0] = (struct soak_vertex){.uid = "source",
			.op = NUMBERED_SOURCE,
			.parallelism = 1 + below(r, 4),
			.delay_ns = happens(r, 50) ? below(r, 60) * MICROSECOND_NS : 0};
	p->can_rescale = true;
	for (uint32_t e = 0; e < p->edge_count; e++) {
		fill_vertex(p, &p->edges[e], r);
		p->can_rescale = p->can_rescale && p->edges[e].partition != PARTITION_FORWARD &&
				p->edges[e].partition != PARTITION_BROADCAST;
	}
}

/* ---- records and settings ---- */

static void draw_records(struct soak_plan *p, struct prng *r)
{
	static const uint32_t buf_bytes[] = {256, 512, 2048, 4096, 32768, 32768};
	uint32_t copies = 1;

	p->buf_bytes = buf_bytes[below(r, sizeof(buf_bytes) / sizeof(buf_bytes[0]))];
	p->streams = 1 + below(r, NUMBERED_STREAMS_MAX);
	p->credit_count = 1 + below(r, happens(r, 50) ? 4 : 24);
	p->queue_count = 2 + below(r, 6);
	/* The largest fits into what a channel may hold beside its credit. */
	uint32_t most = (62 - p->credit_count - 1) * p->buf_bytes - 4;
	p->largest = happens(r, 30) ? 16 + below(r, 600) : 16 + below(r, most);
	if (happens(r, 15))
		p->largest = most;
	if (p->largest > MIB)
		p->largest = MIB;
	for (uint32_t e = 0; e < p->edge_count; e++) {
		if (p->edges[e].partition == PARTITION_BROADCAST)
			copies += p->vertices[p->edges[e].to].parallelism - 1;
		copies++;
	}
	/* Four of 64 are large, half as large on average; one is the largest. */
	uint32_t mean = 170 + p->largest / 64 + p->largest * 3 / 128;
	uint32_t count = BYTES_MAX / copies / mean / p->streams;

	p->count = 16 + below(r, 400);
	if (p->count > count)
		p->count = count < 8 ? 8 : count;
	p->is_tiny = p->edges[0].partition == PARTITION_FORWARD &&
			(p->edge_count == 1 || p->edges[1].from != 0 ||
					p->edges[1].partition == PARTITION_FORWARD) &&
			!p->is_at_least_once && happens(r, 70);
}

static void draw_settings(struct soak_plan *p, struct prng *r)
{
	static const uint32_t groups[] = {8, 32, 128};

	p->key_group_count = groups[below(r, 3)];
	p->worker_count = 1 + below(r, SOAK_WORKERS_MAX);
	p->flush_ns = below(r, 4) * 100 * MICROSECOND_NS;
	p->has_plain_channels = happens(r, 15);
	p->concurrent_max = happens(r, 60) ? 1 : 1 + below(r, 3);
	p->subtasks_per_file = 1 + below(r, 5);
	p->inline_bytes_max = happens(r, 50) ? 0 : below(r, 100000);
	p->storage = happens(r, 75) ? "auto" : "threads";
	p->is_on_disk = happens(r, 6);
	p->disk_delay = happens(r, 50) ? below(r, 8) : below(r, 200);
	p->fault_count = 1 + below(r, SOAK_FAULTS_MAX);
}

void soak_plan_draw(struct soak_plan *p, uint64_t seed)
{
	struct prng r;

	*p = (struct soak_plan){.seed = seed};
	prng_seed(&r, seed);
	p->is_at_least_once = happens(&r, 8);
	draw_shape(p, &r);
	draw_vertices(p, &r);
	draw_records(p, &r);
	draw_settings(p, &r);
}

/* ---- lives ---- */

struct soak_life soak_life_calm(const struct soak_plan *p)
{
	struct soak_life l = {.mode = SOAK_ALIGNED, .is_last = true, .triggers = 20};

	for (uint32_t v = 0; v < p->vertex_count; v++)
		l.parallelism[v] = p->vertices[v].parallelism;
	return l;
}

/* Before or after a life that could change it the parallelism is another one, now and then. */
static void draw_counts(const struct soak_plan *p, struct prng *r, struct soak_life *l)
{
	if (!p->can_rescale || !happens(r, 50))
		return;
	for (uint32_t v = 0; v < p->vertex_count; v++) {
		if (happens(r, 60))
			l->parallelism[v] = v == 0 ? 1 + below(r, 4) : draw_parallelism(r);
		l->is_changed |= l->parallelism[v] != p->vertices[v].parallelism;
	}
}

struct soak_life soak_life_draw(
		const struct soak_plan *p, uint32_t number, const struct soak_life *before)
{
	struct soak_life l = {.number = number, .is_changed = before->is_changed};
	struct prng r;

	prng_seed(&r, p->seed * 1000 + number);
	l.mode = p->is_at_least_once ? SOAK_AT_LEAST_ONCE
				     : (enum soak_mode)below(&r, SOAK_AT_LEAST_ONCE);
	if (l.mode == SOAK_ALIGNED && happens(&r, 60))
		l.mode = SOAK_UNALIGNED;
	l.timeout_ms = 1 + below(&r, 20);
	memcpy(l.parallelism, before->parallelism, sizeof(l.parallelism));
	if (number > 1)
		draw_counts(p, &r, &l);
	l.is_last = number > p->fault_count;
	l.fault = (enum soak_fault)below(&r, SOAK_FAULTS_COUNT);
	l.fault_turn = below(&r, 1000);
	l.fault_count = 1 + below(&r, l.fault == SOAK_FAIL ? p->count * p->streams / 2 + 1 : 8);
	l.fault_vertex = 1 + below(&r, p->vertex_count - 1);
	l.triggers = 5 + below(&r, 60);
	l.aborts = happens(&r, 50) ? below(&r, 400) : 0;
	l.savepoints = below(&r, 150);
	return l;
}

/* ---- for people ---- */

void soak_plan_print(const struct soak_plan *p, FILE *to)
{
	static const char *const partitions[] = {"forward", "hash", "rebalance", "broadcast"};

	for (uint32_t e = 0; e < p->edge_count; e++) {
		const struct soak_vertex *from = &p->vertices[p->edges[e].from];
		const struct soak_vertex *at = &p->vertices[p->edges[e].to];

		fprintf(to, "%s%s(%u) -%s-> %s(%u)", e > 0 ? ", " : "", from->uid,
				from->parallelism, partitions[p->edges[e].partition], at->uid,
				at->parallelism);
	}
	fprintf(to, "; %u streams of %u records, up to %u bytes%s; buffers of %u bytes, %u+%u;"
		" %u workers, %s%s%s\n",
			p->streams, p->count, p->largest, p->is_tiny ? ", some tiny" : "",
			p->buf_bytes, p->queue_count, p->credit_count, p->worker_count, p->storage,
			p->has_plain_channels ? ", plain channels" : "",
			p->is_at_least_once ? ", at least once" : "");
}
