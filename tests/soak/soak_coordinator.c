#include "tests/soak/soak_coordinator.h"

#include "dataplane/base/check.h"
#include "dataplane/checkpoint/channel_state_writer.h"
#include "dataplane/checkpoint/task_state.h"
#include "dataplane/task/worker.h"
#include "tests/soak/soak_hooks.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void soak_coordinator_init(struct soak_coordinator *c, const struct soak_plan *p,
		const struct soak_life *l, const char *directory)
{
	*c = (struct soak_coordinator){
			.plan = p,
			.life = l,
			.directory = directory,
			.next_id = soak_record_next_id(directory),
	};
}

static struct attempt_id attempt_of(const struct soak_life *l, uint32_t vertex, uint32_t index)
{
	struct attempt_id attempt = {{{0}}};

	attempt.id.bytes[0] = (uint8_t)(index * 3 + l->number); /* where rebalance begins */
	attempt.id.bytes[13] = (uint8_t)l->number;
	attempt.id.bytes[14] = (uint8_t)vertex;
	attempt.id.bytes[15] = (uint8_t)index;
	return attempt;
}

void soak_coordinator_add_tasks(struct soak_coordinator *c)
{
	for (uint32_t v = 0; v < c->plan->vertex_count; v++) {
		for (uint32_t i = 0; i < c->life->parallelism[v]; i++)
			c->tasks[c->task_count++] = (struct soak_task){
					.vertex = v,
					.index = i,
					.attempt = attempt_of(c->life, v, i),
					.status = TASK_DEPLOYING,
			};
	}
}

static struct soak_task *find_task(struct soak_coordinator *c, struct attempt_id attempt)
{
	for (uint32_t i = 0; i < c->task_count; i++) {
		if (id128_is_equal(c->tasks[i].attempt.id, attempt.id))
			return &c->tasks[i];
	}
	CHECK(false);
}

/* ---- the end of a checkpoint ---- */

static void free_states(struct soak_pending *p)
{
	for (uint32_t v = 0; v < SOAK_VERTICES_MAX; v++) {
		for (uint32_t i = 0; i < SOAK_PARALLELISM_MAX; i++)
			free(p->record.tasks[v][i].state);
	}
}

static void drop(struct soak_coordinator *c, uint32_t place)
{
	free_states(&c->pending[place]);
	c->pending_count--;
	memmove(&c->pending[place], &c->pending[place + 1],
			(c->pending_count - place) * sizeof(c->pending[0]));
}

void soak_coordinator_abort(struct soak_coordinator *c, uint32_t place)
{
	int64_t id = c->pending[place].record.id;

	drop(c, place);
	c->aborted++;
	for (uint32_t i = 0; i < c->task_count; i++)
		(void)taskmanager_abort_checkpoint(
				c->tm, c->tasks[i].attempt, id, c->completed_id);
}

/* Older ones are not wanted any more. */
static void subsume(struct soak_coordinator *c, int64_t id)
{
	for (uint32_t i = 0; i < c->pending_count;) {
		if (c->pending[i].record.id < id && !c->pending[i].record.is_savepoint)
			soak_coordinator_abort(c, i);
		else
			i++;
	}
}

static void complete(struct soak_coordinator *c, uint32_t place)
{
	struct soak_record *r = &c->pending[place].record;
	int64_t id = r->id;
	bool must_die = c->must_die_completing && c->completed + 1 >= c->life->fault_count;

	soak_record_write(r, c->directory);
	if (must_die && id % 2 == 0)
		raise(SIGKILL);
	drop(c, place);
	c->completed++;
	c->completed_id = id;
	for (uint32_t i = 0; i < c->task_count; i++) {
		(void)taskmanager_confirm_checkpoint(c->tm, c->tasks[i].attempt, id, 0);
		if (must_die && i == c->task_count / 2)
			worker_turn(soak_hooks_worker(0));
	}
	subsume(c, id);
	if (must_die)
		raise(SIGKILL);
}

/* ---- what tasks say ---- */

static int32_t find_pending(const struct soak_coordinator *c, int64_t id)
{
	for (uint32_t i = 0; i < c->pending_count; i++) {
		if (c->pending[i].record.id == id)
			return (int32_t)i;
	}
	return -1;
}

/* What the task was, and what was in flight, are one description. */
static void keep_state(struct soak_task_record *to, const struct report *r)
{
	if (r->state == NULL || r->is_finished_on_restore) {
		to->is_finished = r->is_finished_on_restore;
		return;
	}
	struct task_state whole = *r->state;
	if (r->in_flight != NULL) {
		whole.channel_count = r->in_flight->handle_count;
		whole.channels = r->in_flight->handles;
	}
	to->bytes = (uint32_t)task_state_encoded_bytes(&whole);
	to->state = malloc(to->bytes);
	CHECK(to->state != NULL);
	task_state_encode(&whole, to->state);
}

static void on_acknowledge(struct soak_coordinator *c, const struct report *r)
{
	const struct soak_task *t = find_task(c, r->attempt);
	int32_t place = find_pending(c, r->checkpoint_id);

	c->acknowledged++;
	if (place < 0)
		return;
	struct soak_pending *p = &c->pending[place];
	if (!p->is_waited[t - c->tasks])
		return;
	p->is_waited[t - c->tasks] = false;
	p->missing--;
	keep_state(&p->record.tasks[t->vertex][t->index], r);
	if (p->missing == 0)
		complete(c, (uint32_t)place);
}

static void on_decline(struct soak_coordinator *c, const struct report *r)
{
	int32_t place = find_pending(c, r->checkpoint_id);

	if (place < 0)
		return;
	c->declined++;
	const struct soak_task *t = find_task(c, r->attempt);
	snprintf(c->declined_text, sizeof(c->declined_text), "%s %u: %d, %.400s",
			c->plan->vertices[t->vertex].uid, t->index, (int)r->reason, r->text);
	soak_coordinator_abort(c, (uint32_t)place);
}

static void on_status(struct soak_coordinator *c, const struct report *r)
{
	struct soak_task *t = find_task(c, r->attempt);

	t->status = r->status;
	if (r->status != TASK_FAILED || c->has_failed)
		return;
	c->has_failed = true;
	c->is_failure_final = r->is_final;
	snprintf(c->failure, sizeof(c->failure), "%s %u: %s", c->plan->vertices[t->vertex].uid,
			t->index, r->text);
}

void soak_coordinator_listen(struct soak_coordinator *c)
{
	const struct report *r;

	while ((r = taskmanager_next_report(c->tm)) != NULL) {
		if (r->kind == REPORT_STATUS)
			on_status(c, r);
		else if (r->kind == REPORT_END_OF_DATA)
			find_task(c, r->attempt)->has_ended = true;
		else if (r->kind == REPORT_ACKNOWLEDGE)
			on_acknowledge(c, r);
		else if (r->kind == REPORT_DECLINE)
			on_decline(c, r);
		taskmanager_release_report(c->tm, r);
	}
}

/* ---- triggering ---- */

static bool feeds(const struct soak_coordinator *c, const struct soak_task *from,
		const struct soak_task *to)
{
	for (uint32_t e = 0; e < c->plan->edge_count; e++) {
		const struct soak_edge *edge = &c->plan->edges[e];

		if (edge->from == from->vertex && edge->to == to->vertex &&
				(edge->partition != PARTITION_FORWARD ||
						from->index == to->index))
			return true;
	}
	return false;
}

/* PL-2: all its producers have finished, or it has none. */
static bool is_first(const struct soak_coordinator *c, const struct soak_task *t)
{
	for (uint32_t i = 0; i < c->task_count; i++) {
		if (c->tasks[i].status != TASK_FINISHED && feeds(c, &c->tasks[i], t))
			return false;
	}
	return true;
}

static struct checkpoint_request request_of(const struct soak_life *l, int64_t id,
		bool is_savepoint, int64_t wall_ms)
{
	struct checkpoint_request q = {
			.checkpoint_id = id,
			.timestamp_ms = wall_ms,
			.kind = is_savepoint ? SNAPSHOT_SAVEPOINT : SNAPSHOT_CHECKPOINT,
			.alignment = ALIGNMENT_ALIGNED,
			.aligned_timeout_ms = ALIGNED_TIMEOUT_NONE,
	};

	if (l->mode == SOAK_AT_LEAST_ONCE)
		q.alignment = ALIGNMENT_AT_LEAST_ONCE;
	else if (!is_savepoint && l->mode == SOAK_UNALIGNED)
		q.alignment = ALIGNMENT_UNALIGNED;
	else if (!is_savepoint && l->mode == SOAK_TIMEOUT)
		q.aligned_timeout_ms = l->timeout_ms;
	return q;
}

static bool can_trigger(const struct soak_coordinator *c)
{
	bool is_running = false;

	for (uint32_t i = 0; i < c->task_count; i++) {
		enum task_status status = c->tasks[i].status;

		if (status != TASK_RUNNING && status != TASK_FINISHED)
			return false;
		is_running |= status == TASK_RUNNING;
	}
	return is_running && c->pending_count < c->plan->concurrent_max;
}

static void begin(struct soak_coordinator *c, struct soak_pending *p, bool is_savepoint)
{
	*p = (struct soak_pending){
			.record = {.id = c->next_id++, .is_savepoint = is_savepoint}};
	memcpy(p->record.parallelism, c->life->parallelism, sizeof(p->record.parallelism));
	for (uint32_t i = 0; i < c->task_count; i++) {
		const struct soak_task *t = &c->tasks[i];

		p->is_waited[i] = t->status == TASK_RUNNING;
		p->missing += p->is_waited[i];
		p->record.tasks[t->vertex][t->index].is_finished = !p->is_waited[i];
	}
}

bool soak_coordinator_trigger(struct soak_coordinator *c, bool is_savepoint, int64_t wall_ms)
{
	char path[SOAK_PATH_BYTES];

	if (!can_trigger(c))
		return false;
	struct soak_pending *p = &c->pending[c->pending_count++];
	begin(c, p, is_savepoint);
	int64_t id = p->record.id;
	soak_record_path(c->directory, id, is_savepoint, path);
	CHECK(mkdir(path, 0755) == 0);
	struct checkpoint_request q = request_of(c->life, id, is_savepoint, wall_ms);
	q.location = is_savepoint ? path : NULL;
	for (uint32_t i = 0; i < c->task_count; i++) {
		if (c->tasks[i].status == TASK_RUNNING && is_first(c, &c->tasks[i]))
			(void)taskmanager_trigger_checkpoint(c->tm, c->tasks[i].attempt, &q);
	}
	return true;
}

/* ---- questions ---- */

bool soak_coordinator_is_over(const struct soak_coordinator *c)
{
	for (uint32_t i = 0; i < c->task_count; i++) {
		if (c->tasks[i].status != TASK_FINISHED)
			return false;
	}
	return true;
}

bool soak_coordinator_have_ended(const struct soak_coordinator *c)
{
	for (uint32_t i = 0; i < c->task_count; i++) {
		if (c->tasks[i].status != TASK_FINISHED && !c->tasks[i].has_ended)
			return false;
	}
	return true;
}

void soak_coordinator_clear(struct soak_coordinator *c)
{
	while (c->pending_count > 0)
		drop(c, 0);
}
