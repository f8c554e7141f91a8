#include "tests/soak/soak_life.h"

#include "dataplane/base/check.h"
#include "dataplane/task/worker.h"
#include "dataplane/wire/buf.h"
#include "tests/soak/soak_hooks.h"
#include "tests/support/hand_clock.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	POOL_COUNT = 65536,
	STATE_BYTES = 1 << 30, /* touched only where it is used */
	LOOK_AT_CLOCK_TURNS = 4096,
	STILL_TURNS = 8, /* so many without work, and time passes faster */
	SETTLE_TURNS_MAX = 200000,
	ABORTED_MAX = 1000, /* then one may complete, however slow the disks are */
};

struct life {
	const struct soak_plan *plan;
	const struct soak_life *life;
	const struct soak_place *at;
	struct soak_outcome *out;
	struct soak_record *record; /* restored from; NULL: none */
	struct soak_coordinator c;
	struct prng prng;
	struct hand_clock clock;
	struct buf_pool *pool;
	void *memory;
	uint32_t still_turns;
	uint32_t aborted_before;
	uint64_t pause_until; /* this turn: disks need their time after an abortion */
	uint64_t begun_ns;

	struct weir_value values[SOAK_VERTICES_MAX][NUMBERED_PARAMS];
	struct deployment_operator operators[SOAK_VERTICES_MAX];
	struct deployment_vertex vertices[SOAK_VERTICES_MAX];
	struct deployment_edge edges[SOAK_EDGES_MAX];
	struct deployment_task tasks[SOAK_TASKS_MAX];
	struct deployment_state rescaled[SOAK_TASKS_MAX];
	uint32_t rescaled_count;
	char restored_dir[SOAK_PATH_BYTES];
};

__attribute__((format(printf, 2, 3))) static void say_wrong(
		struct life *l, const char *format, ...)
{
	va_list args;

	if (l->out->end == SOAK_WRONG)
		return;
	l->out->end = SOAK_WRONG;
	va_start(args, format);
	vsnprintf(l->out->text, sizeof(l->out->text), format, args);
	va_end(args);
}

/* ---- deployment ---- */

static void put_number(struct weir_value *v, uint64_t number)
{
	*v = (struct weir_value){.text = "", .integer = (int64_t)number};
}

/* It is the source, or takes what that makes. */
static bool is_near_source(const struct soak_plan *p, uint32_t vertex)
{
	bool is_near = vertex == 0;

	for (uint32_t e = 0; e < p->edge_count; e++)
		is_near |= p->edges[e].from == 0 && p->edges[e].to == vertex;
	return is_near;
}

static void fill_values(struct life *l, uint32_t vertex)
{
	const struct soak_plan *p = l->plan;
	const struct soak_vertex *v = &p->vertices[vertex];
	struct weir_value *to = l->values[vertex];
	bool can_count = !l->life->is_changed || v->order == NUMBERED_REPEATS;
	bool must_fail = !l->life->is_last && l->life->fault == SOAK_FAIL &&
			l->life->fault_vertex == vertex;

	put_number(&to[NUMBERED_SEED], p->seed);
	put_number(&to[NUMBERED_STREAMS], p->streams);
	put_number(&to[NUMBERED_COUNT], p->count);
	put_number(&to[NUMBERED_LARGEST], p->largest);
	put_number(&to[NUMBERED_TINY], p->is_tiny && is_near_source(p, vertex));
	put_number(&to[NUMBERED_DELAY], v->delay_ns);
	put_number(&to[NUMBERED_ORDER], can_count ? v->order : NUMBERED_IN_ANY_ORDER);
	put_number(&to[NUMBERED_FAIL_AT], must_fail ? l->life->fault_count : 0);
	put_number(&to[NUMBERED_SHARE], v->must_share);
	to[NUMBERED_RESULT] = (struct weir_value){.text = l->at->result};
}

static void fill_graph(struct life *l)
{
	for (uint32_t v = 0; v < l->plan->vertex_count; v++) {
		const struct soak_vertex *from = &l->plan->vertices[v];

		fill_values(l, v);
		l->operators[v] = (struct deployment_operator){
				from->uid, weir_plugin(from->op), l->values[v]};
		l->vertices[v] = (struct deployment_vertex){
				from->uid, l->life->parallelism[v], 1, &l->operators[v]};
	}
	for (uint32_t e = 0; e < l->plan->edge_count; e++)
		l->edges[e] = (struct deployment_edge){l->plan->edges[e].from,
				l->plan->edges[e].to, l->plan->edges[e].partition};
}

static bool is_rescaled(const struct life *l, uint32_t v)
{
	return l->record->parallelism[v] != l->life->parallelism[v];
}

/* It is, or somebody at the other end of an edge is. */
static bool is_concerned(const struct life *l, uint32_t v)
{
	bool concerned = is_rescaled(l, v);

	for (uint32_t e = 0; e < l->plan->edge_count; e++) {
		const struct soak_edge *edge = &l->plan->edges[e];

		concerned |= edge->from == v && is_rescaled(l, edge->to);
		concerned |= edge->to == v && is_rescaled(l, edge->from);
	}
	return concerned;
}

static void fill_rescaled(struct life *l)
{
	for (uint32_t v = 0; v < l->plan->vertex_count; v++) {
		for (uint32_t i = 0; is_concerned(l, v) && i < l->record->parallelism[v]; i++) {
			const struct soak_task_record *t = &l->record->tasks[v][i];

			if (t->bytes > 0)
				l->rescaled[l->rescaled_count++] =
						(struct deployment_state){t->state, t->bytes};
		}
	}
}

static void fill_tasks(struct life *l)
{
	for (uint32_t i = 0; i < l->c.task_count; i++) {
		const struct soak_task *t = &l->c.tasks[i];
		struct deployment_task *to = &l->tasks[i];

		*to = (struct deployment_task){.vertex = t->vertex,
				.subtask_index = t->index,
				.attempt = t->attempt};
		if (l->record == NULL)
			continue;
		to->is_finished = soak_record_is_vertex_finished(l->record, t->vertex);
		if (is_rescaled(l, t->vertex))
			continue;
		const struct soak_task_record *from = &l->record->tasks[t->vertex][t->index];
		to->is_finished = from->is_finished;
		to->state = from->state;
		to->state_bytes = from->bytes;
	}
}

static struct deployment deployment_of(struct life *l)
{
	const struct soak_plan *p = l->plan;

	return (struct deployment){
			.job_name = "soak",
			.key_group_count = p->key_group_count,
			.channel_credit_count = p->credit_count,
			.channel_queue_count = p->queue_count,
			.has_plain_channels = p->has_plain_channels,
			.buffer_timeout_ns = p->flush_ns,
			.checkpointing = true,
			.is_at_least_once = l->life->mode == SOAK_AT_LEAST_ONCE,
			.unaligned = l->life->mode == SOAK_UNALIGNED ||
					l->life->mode == SOAK_TIMEOUT,
			.subtasks_per_channel_state_file = p->subtasks_per_file,
			.max_concurrent_checkpoints = p->concurrent_max,
			.state_inline_bytes_max = p->inline_bytes_max,
			.checkpoint_dir = l->at->directory,
			.restored_checkpoint_id = l->record == NULL ? 0 : l->record->id,
			.restored_dir = l->record == NULL ? NULL : l->restored_dir,
			.vertex_count = p->vertex_count,
			.edge_count = p->edge_count,
			.task_count = l->c.task_count,
			.rescaled_count = l->rescaled_count,
			.rescaled = l->rescaled,
			.vertices = l->vertices,
			.edges = l->edges,
			.tasks = l->tasks,
	};
}

static bool deploy(struct life *l)
{
	char error[TASKMANAGER_ERROR_BYTES];

	fill_graph(l);
	if (l->record != NULL) {
		soak_record_path(l->at->directory, l->record->id, l->record->is_savepoint,
				l->restored_dir);
		fill_rescaled(l);
	}
	fill_tasks(l);
	struct deployment d = deployment_of(l);
	int status = taskmanager_deploy(l->c.tm, &d, error);
	if (status != 0)
		say_wrong(l, "not deployed: %s", error);
	return status == 0;
}

/* ---- turns ---- */

static void pass_time(struct life *l, uint32_t work)
{
	uint64_t ns = prng_below(&l->prng, 20000);

	l->still_turns = work > 0 ? 0 : l->still_turns + 1;
	if (l->still_turns > STILL_TURNS)
		ns += 100000;
	l->clock.now_ns += ns;
	l->clock.wall_ms = (int64_t)(l->clock.now_ns / 1000000);
}

static void turn(struct life *l)
{
	uint32_t worker = (uint32_t)prng_below(&l->prng, l->plan->worker_count);

	l->out->turns++;
	pass_time(l, worker_turn(soak_hooks_worker(worker)));
	soak_coordinator_listen(&l->c);
	l->out->begun_id = l->c.next_id - 1;
	l->out->completed = l->c.completed;
	l->out->aborted = l->c.aborted;
	l->out->declined = l->c.declined;
	memcpy(l->out->declined_text, l->c.declined_text, sizeof(l->out->declined_text));
}

static bool happens(struct life *l, uint32_t per_mille)
{
	return prng_below(&l->prng, 1000) < per_mille;
}

static void have_checkpoints(struct life *l)
{
	bool must = soak_coordinator_have_ended(&l->c) && l->c.pending_count == 0;

	if (l->c.aborted > l->aborted_before)
		l->pause_until = l->out->turns + prng_below(&l->prng,
				16 + 8 * l->plan->worker_count * l->plan->disk_delay);
	l->aborted_before = l->c.aborted;
	if (l->out->turns < l->pause_until)
		return;
	if (must || happens(l, l->life->triggers)) {
		if (soak_coordinator_trigger(&l->c, !must && happens(l, l->life->savepoints),
				    l->clock.wall_ms))
			return;
		if (l->c.pending_count > 0 && l->c.aborted < ABORTED_MAX &&
				happens(l, l->life->aborts))
			soak_coordinator_abort(&l->c,
					(uint32_t)prng_below(&l->prng, l->c.pending_count));
	}
}

/* ---- how it ends ---- */

static bool is_time(const struct life *l)
{
	uint64_t turns = l->at->calm_turns * l->life->fault_turn / 1000;

	return l->out->turns >= turns;
}

/* True when the life is to end now, before it is at its end. */
static bool is_fault_due(struct life *l)
{
	const struct soak_coordinator *c = &l->c;

	if (l->life->is_last)
		return false;
	switch (l->life->fault) {
	case SOAK_KILL:
		if (is_time(l))
			raise(SIGKILL);
		return false;
	case SOAK_KILL_AT_ACK:
		if (c->acknowledged >= l->life->fault_count)
			raise(SIGKILL);
		return false;
	case SOAK_CANCEL:
		return is_time(l);
	case SOAK_STOP:
		return c->completed >= l->life->fault_count;
	default:
		return false;
	}
}

/* Those that are not over; "waited for": the oldest checkpoint does. */
static void print_tasks(const struct life *l, char *text, size_t size)
{
	text[0] = '\0';
	for (uint32_t i = 0; i < l->c.task_count; i++) {
		const struct soak_task *t = &l->c.tasks[i];
		bool is_awaited = l->c.pending_count > 0 && l->c.pending[0].is_waited[i];
		size_t at = strlen(text);

		if (t->status == TASK_FINISHED && !is_awaited)
			continue;
		snprintf(text + at, size - at, " %s %u %s%s%s,", l->plan->vertices[t->vertex].uid,
				t->index, task_status_name(t->status),
				t->has_ended ? ", input ended" : "",
				is_awaited ? ", waited for" : "");
	}
}

static void say_stuck(struct life *l)
{
	char tasks[SOAK_TEXT_BYTES / 2];

	print_tasks(l, tasks, sizeof(tasks));
	say_wrong(l, "no end after %" PRIu64 " turns:%s; %u checkpoints pending, the first %" PRId64
			"; last declined: %.300s",
			l->out->turns, tasks, l->c.pending_count,
			l->c.pending_count > 0 ? l->c.pending[0].record.id : 0,
			l->c.declined_text);
}

static bool is_late(struct life *l)
{
	return l->out->turns % LOOK_AT_CLOCK_TURNS == 0 &&
			(double)(clock_monotonic_ns() - l->begun_ns) / 1e9 > l->at->seconds_max;
}

/* Cancels what is left; all memory must come back. */
static void settle(struct life *l)
{
	taskmanager_cancel_all(l->c.tm);
	for (uint32_t i = 0; i < SETTLE_TURNS_MAX; i++) {
		if (!taskmanager_has_deployed(l->c.tm, l->c.tasks[0].attempt)) {
			uint32_t used = buf_pool_used_count(l->pool);

			if (used > 0)
				say_wrong(l, "%u buffers did not come back", used);
			return;
		}
		turn(l);
	}
	say_wrong(l, "tasks do not end after they were cancelled");
}

static void run(struct life *l)
{
	while (!soak_coordinator_is_over(&l->c)) {
		if (l->c.has_failed || is_fault_due(l)) {
			l->out->end = SOAK_OVER;
			return;
		}
		if (is_late(l)) {
			say_stuck(l);
			return;
		}
		have_checkpoints(l);
		turn(l);
	}
	l->out->end = SOAK_FINISHED;
}

/* ---- life ---- */

static void create(struct life *l)
{
	static const uint32_t lcores[SOAK_WORKERS_MAX] = {0};
	char error[TASKMANAGER_ERROR_BYTES] = "";

	CHECK(buf_pool_from_heap(&l->pool, l->plan->buf_bytes, POOL_COUNT) == 0);
	l->memory = mmap(NULL, STATE_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(l->memory != MAP_FAILED);
	struct taskmanager_config config = {
			.worker_count = l->plan->worker_count,
			.worker_lcores = lcores,
			.pool = l->pool,
			.pool_count = POOL_COUNT,
			.state_memory = l->memory,
			.state_bytes = STATE_BYTES,
			.storage = l->plan->storage,
			.clock = &l->clock.clock,
	};
	soak_hooks_set_disk(l->plan->seed * 100 + l->life->number, l->plan->disk_delay);
	if (taskmanager_create(&l->c.tm, &config, error) != 0) {
		fprintf(stderr, "%s\n", error);
		abort();
	}
}

static void destroy(struct life *l)
{
	taskmanager_destroy(l->c.tm);
	buf_pool_destroy(l->pool);
	munmap(l->memory, STATE_BYTES);
	soak_coordinator_clear(&l->c);
	soak_record_free(l->record);
}

static void begin(struct life *l)
{
	soak_coordinator_init(&l->c, l->plan, l->life, l->at->directory);
	l->c.must_die_completing =
			!l->life->is_last && l->life->fault == SOAK_KILL_COMPLETE;
	soak_coordinator_add_tasks(&l->c);
	l->record = soak_record_read_newest(l->at->directory);
	l->c.completed_id = l->record == NULL ? 0 : l->record->id;
	l->out->restored_id = l->c.completed_id;
	prng_seed(&l->prng, l->plan->seed * 7919 + l->life->number);
	l->clock = hand_clock_make(UINT64_C(1000000000) * (1 + l->life->number), 0);
	l->begun_ns = clock_monotonic_ns();
	create(l);
}

/* An operator that was told to fail has; anything else is a mistake. */
static void judge(struct life *l)
{
	bool may_fail = !l->life->is_last && l->life->fault == SOAK_FAIL;

	if (l->c.has_failed && !(may_fail && !l->c.is_failure_final))
		say_wrong(l, "%s", l->c.failure);
}

void soak_life_run(const struct soak_plan *p, const struct soak_life *life,
		const struct soak_place *at, struct soak_outcome *out)
{
	struct life *l = calloc(1, sizeof(*l));

	CHECK(l != NULL);
	l->plan = p;
	l->life = life;
	l->at = at;
	l->out = out;
	begin(l);
	if (deploy(l)) {
		run(l);
		judge(l);
		if (out->end != SOAK_WRONG)
			settle(l);
	}
	if (out->end != SOAK_WRONG)
		destroy(l);
	free(l);
}
