#include "control/restore/restore_fit.h"

#include "control/config/job_file.h"
#include "control/metadata/metadata.h"
#include "dataplane/checkpoint/task_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A state that each operator has beside those it declares. */
static const char counters_state[] = "counters";

__attribute__((format(printf, 2, 3))) static int refuse(
		char text[RESTORE_FIT_TEXT_BYTES], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, RESTORE_FIT_TEXT_BYTES, format, args);
	va_end(args);
	return -EINVAL;
}

/* ---- the graph ---- */

static const struct job_vertex *find_vertex(const struct job_spec *spec, const char *uid)
{
	for (uint32_t v = 0; v < spec->vertex_count; v++)
		if (strcmp(spec->vertices[v].uid, uid) == 0)
			return &spec->vertices[v];
	return NULL;
}

static const struct metadata_vertex *find_saved(const struct metadata *m, const char *uid)
{
	for (uint32_t i = 0; i < m->vertex_count; i++)
		if (strcmp(m->vertices[i].uid, uid) == 0)
			return &m->vertices[i];
	return NULL;
}

/* That subtask had finished; UINT32_MAX: all of them. */
static bool is_finished(const struct metadata_vertex *v, uint32_t index)
{
	uint32_t count = 0;

	for (uint32_t i = 0; v != NULL && i < v->subtask_count; i++)
		count += v->subtasks[i].is_finished &&
				(index == UINT32_MAX || v->subtasks[i].index == index);
	return v != NULL &&
			(v->is_finished || count == (index == UINT32_MAX ? v->parallelism : 1));
}

/* RE-9: who had finished has no producer that had not. */
static int check_edge(const struct job_spec *spec, const struct metadata *m,
		const struct job_edge *e, char *text)
{
	const struct metadata_vertex *from = find_saved(m, spec->vertices[e->from].uid);
	const struct metadata_vertex *to = find_saved(m, spec->vertices[e->to].uid);

	for (uint32_t i = 0; to != NULL && i < to->parallelism; i++)
		if (is_finished(to, i) &&
				!is_finished(from, e->partition == JOB_FORWARD ? i : UINT32_MAX))
			return refuse(text, "vertex %s had finished when checkpoint %" PRId64
					    " was taken, but %s, which the job has in front of "
					    "it, had not",
					to->uid, m->checkpoint_id, spec->vertices[e->from].uid);
	return 0;
}

static int check_key_groups(const struct job_spec *spec, const struct metadata *m, char *text)
{
	if (m->key_group_count == spec->key_groups_count)
		return 0;
	return refuse(text, "checkpoint %" PRId64 " has %u key groups, the job has %u "
			    "(pipeline.max-parallelism); they must be the same",
			m->checkpoint_id, m->key_group_count, spec->key_groups_count);
}

static bool is_partly_finished(const struct metadata_vertex *v)
{
	bool is_any = false;

	for (uint32_t i = 0; i < v->subtask_count; i++)
		is_any |= v->subtasks[i].is_finished;
	return is_any && !is_finished(v, UINT32_MAX);
}

/* RE-5: what each subtask has for itself goes to no other one. */
static int check_rescaled(const struct metadata *m, const struct metadata_vertex *from,
		const struct job_vertex *v, char *text)
{
	for (uint32_t i = 0; i < v->operator_count && !from->is_finished; i++) {
		const struct weir_declaration *d = &v->operators[i].declared;

		for (uint32_t k = 0; k < d->state_count; k++) {
			const struct weir_state *s = &d->states[k];

			if (s->kind != WEIR_STATE_VALUE ||
					(s->rescale == WEIR_RESCALE_KEEP &&
							!is_partly_finished(from)))
				continue;
			return refuse(text, "vertex %s ran with parallelism %u when checkpoint "
					    "%" PRId64 " was taken, the job file says %u: operator "
					    "%s, state %s is a value of each subtask%s",
					from->uid, from->parallelism, m->checkpoint_id,
					v->parallelism, v->operators[i].uid, s->name,
					s->rescale == WEIR_RESCALE_KEEP
							? ", and some of them had finished"
							: ", which stands for no other number of "
							  "them");
		}
	}
	return 0;
}

static int check_vertex(const struct job_spec *spec, const struct metadata *m,
		const struct metadata_vertex *from, bool ignores_unclaimed, char *text)
{
	const struct job_vertex *v = find_vertex(spec, from->uid);

	if (v == NULL && ignores_unclaimed)
		return 0;
	if (v == NULL)
		return refuse(text, "checkpoint %" PRId64 " has state of vertex %s, which the job "
				    "does not have",
				m->checkpoint_id, from->uid);
	return v->parallelism == from->parallelism ? 0 : check_rescaled(m, from, v, text);
}

/* ---- data in flight ---- */

static bool is_rescaled(const struct job_spec *spec, const struct metadata *m, uint32_t vertex)
{
	const struct metadata_vertex *from = find_saved(m, spec->vertices[vertex].uid);

	return from != NULL && from->parallelism != spec->vertices[vertex].parallelism;
}

/* The nth edge at that end of a vertex, or NULL. */
static const struct job_edge *find_edge(const struct job_spec *spec, const char *uid,
		const struct channel_state_handle *h)
{
	uint32_t nth = h->gate;

	for (uint32_t i = 0; i < spec->edge_count; i++) {
		const struct job_edge *e = &spec->edges[i];
		uint32_t end = h->side == CHANNEL_STATE_OUTPUT ? e->from : e->to;

		if (strcmp(spec->vertices[end].uid, uid) == 0 && nth-- == 0)
			return e;
	}
	return NULL;
}

/* The nth edge of then at that end, or NULL. */
static const struct metadata_edge *find_saved_edge(const struct metadata *m, const char *uid,
		const struct channel_state_handle *h)
{
	uint32_t nth = h->gate;

	for (uint32_t i = 0; i < m->edge_count; i++) {
		const struct metadata_edge *e = &m->edges[i];

		if (strcmp(h->side == CHANNEL_STATE_OUTPUT ? e->from : e->to, uid) == 0 &&
				nth-- == 0)
			return e;
	}
	return NULL;
}

static bool is_same_edge(const struct job_spec *spec, const struct job_edge *e,
		const struct metadata_edge *then)
{
	return strcmp(spec->vertices[e->from].uid, then->from) == 0 &&
			strcmp(spec->vertices[e->to].uid, then->to) == 0 &&
			strcmp(job_partition_name(e->partition), then->partition) == 0;
}

/* Data in flight goes to the edge of the same place, which has to be the same edge. */
static int check_place(const struct job_spec *spec, const struct metadata *m, const char *uid,
		const struct channel_state_handle *h, char *text)
{
	const struct job_edge *e = find_edge(spec, uid, h);
	const struct metadata_edge *then = find_saved_edge(m, uid, h);

	if (e != NULL && (m->edge_count == 0 || (then != NULL && is_same_edge(spec, e, then))))
		return 0;
	if (then == NULL)
		return refuse(text, "vertex %s: checkpoint %" PRId64 " is unaligned and has data "
				    "in flight on an edge that the job does not have",
				uid, m->checkpoint_id);
	return refuse(text, "edge %s -> %s (%s): checkpoint %" PRId64 " is unaligned and has data "
			    "in flight on it, but that is %s %u of vertex %s no more; keep the "
			    "edges as they were, or restore from an aligned checkpoint or a "
			    "savepoint",
			then->from, then->to, then->partition, m->checkpoint_id,
			h->side == CHANNEL_STATE_OUTPUT ? "output" : "input", h->gate, uid);
}

static int check_channel(const struct job_spec *spec, const struct metadata *m, const char *uid,
		const struct channel_state_handle *h, char *text)
{
	int rc = check_place(spec, m, uid, h, text);

	if (rc != 0)
		return rc;
	const struct job_edge *e = find_edge(spec, uid, h);

	if (!is_rescaled(spec, m, e->from) && !is_rescaled(spec, m, e->to))
		return 0;
	if (e->partition == JOB_HASH || e->partition == JOB_REBALANCE)
		return 0;
	return refuse(text, "edge %s -> %s: checkpoint %" PRId64 " is unaligned and has "
			    "data in flight on it, which has no way on a %s edge one "
			    "of whose ends has another parallelism now; restore with "
			    "the same, or from an aligned checkpoint or a savepoint",
			spec->vertices[e->from].uid, spec->vertices[e->to].uid,
			m->checkpoint_id, job_partition_name(e->partition));
}

/* RE-24.  A state that cannot be read is told of elsewhere. */
static int check_in_flight(const struct job_spec *spec, const struct metadata *m,
		const struct metadata_vertex *from, char *text)
{
	char problem[TASK_STATE_TEXT_BYTES];
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < from->subtask_count; i++) {
		const struct metadata_bytes *b = &from->subtasks[i].state;
		struct task_state *t;

		if (b->size == 0 || task_state_decode(&t, b->data, b->size, problem) != 0)
			continue;
		for (uint32_t c = 0; rc == 0 && c < t->channel_count; c++)
			rc = check_channel(spec, m, from->uid, &t->channels[c], text);
		task_state_free(t);
	}
	return rc;
}

int restore_fit_check(const struct job_spec *spec, const struct metadata *m,
		bool ignores_unclaimed, char text[RESTORE_FIT_TEXT_BYTES])
{
	int rc = check_key_groups(spec, m, text);

	for (uint32_t i = 0; rc == 0 && i < m->vertex_count; i++)
		rc = check_vertex(spec, m, &m->vertices[i], ignores_unclaimed, text);
	for (uint32_t i = 0; rc == 0 && i < m->vertex_count; i++)
		rc = check_in_flight(spec, m, &m->vertices[i], text);
	for (uint32_t i = 0; rc == 0 && i < spec->edge_count; i++)
		rc = check_edge(spec, m, &spec->edges[i], text);
	return rc;
}

/* ---- one state ---- */

static const char *kind_name(enum weir_state_kind kind)
{
	static const char *const names[] = {"a value", "a list", "keyed"};

	return names[kind];
}

static int refuse_number(char *text, const struct state_handle *h, const char *what,
		uint64_t then, uint64_t now)
{
	return refuse(text, "operator %s, state %s: %s %" PRIu64 " in the checkpoint, %" PRIu64
			    " as the operator declares it",
			h->uid, h->name, what, then, now);
}

/* As the task would, before it is deployed. */
static int check_state(const struct state_handle *h, const struct weir_state *s, char *text)
{
	if (s->kind != h->kind)
		return refuse(text, "operator %s, state %s: %s in the checkpoint, %s as the "
				    "operator declares it",
				h->uid, h->name, kind_name(h->kind), kind_name(s->kind));
	if (s->version != h->version)
		return refuse_number(text, h, "version", h->version, s->version);
	if (s->value_bytes != h->value_bytes)
		return refuse_number(
				text, h, "bytes of a value:", h->value_bytes, s->value_bytes);
	if (s->kind == WEIR_STATE_KEYED && s->key_bytes != h->key_bytes)
		return refuse_number(text, h, "bytes of a key:", h->key_bytes, s->key_bytes);
	if (s->kind == WEIR_STATE_LIST && h->item_count > s->capacity)
		return refuse_number(text, h, "items:", h->item_count, s->capacity);
	return 0;
}

static const struct weir_state *find_state(const struct job_operator *op, const char *name)
{
	for (uint32_t i = 0; i < op->declared.state_count; i++)
		if (strcmp(op->declared.states[i].name, name) == 0)
			return &op->declared.states[i];
	return NULL;
}

/* ---- the object ---- */

struct builder {
	struct restore_fit *fit;
	const struct job_spec *spec;
	const struct metadata *metadata;
	bool ignores_unclaimed;
};

/* The same reason once, though each subtask has it. */
static int add_refusal(struct restore_fit *f, const char *text)
{
	for (uint32_t i = 0; i < f->refusal_count; i++)
		if (strcmp(f->refusals[i], text) == 0)
			return 0;
	char **more = realloc(f->refusals, (f->refusal_count + 1) * sizeof(*more));

	if (more == NULL)
		return -ENOMEM;
	f->refusals = more;
	f->refusals[f->refusal_count] = strdup(text);
	return f->refusals[f->refusal_count] == NULL ? -ENOMEM : (f->refusal_count++, 0);
}

/* NULL: out of memory. */
static struct restore_fit_operator *add_operator(
		struct restore_fit *f, const char *vertex_uid, const char *operator_uid)
{
	struct restore_fit_operator *more =
			realloc(f->operators, (f->operator_count + 1) * sizeof(*more));

	if (more == NULL)
		return NULL;
	f->operators = more;
	more += f->operator_count++;
	*more = (struct restore_fit_operator){
			.vertex_uid = vertex_uid, .operator_uid = strdup(operator_uid)};
	if (more->operator_uid == NULL)
		f->operator_count--;
	return more->operator_uid == NULL ? NULL : more;
}

static struct restore_fit_operator *find_operator(
		struct restore_fit *f, const char *vertex_uid, const char *operator_uid)
{
	for (uint32_t i = 0; i < f->operator_count; i++)
		if (strcmp(f->operators[i].operator_uid, operator_uid) == 0 &&
				strcmp(f->operators[i].vertex_uid, vertex_uid) == 0)
			return &f->operators[i];
	return NULL;
}

static uint32_t parallelism_then(const struct metadata *m, const char *vertex_uid)
{
	const struct metadata_vertex *v = find_saved(m, vertex_uid);

	return v == NULL ? 0 : v->parallelism;
}

/* Every operator of the job, new until its state is found. */
static int add_job(struct builder *b)
{
	for (uint32_t place = 0; place < b->spec->vertex_count; place++) {
		const struct job_vertex *v = &b->spec->vertices[b->spec->order[place]];

		for (uint32_t i = 0; i < v->operator_count; i++) {
			struct restore_fit_operator *o =
					add_operator(b->fit, v->uid, v->operators[i].uid);

			if (o == NULL)
				return -ENOMEM;
			o->kind = RESTORE_FIT_NEW;
			o->parallelism_now = v->parallelism;
			o->parallelism_then = parallelism_then(b->metadata, v->uid);
		}
	}
	return 0;
}

/* What the job makes of a state that was saved; 0 or a refusal in `text`. */
static int judge(const struct builder *b, const struct metadata_vertex *from,
		const struct state_handle *h, char *text)
{
	const struct job_vertex *v = NULL;
	const struct job_operator *op = job_spec_find(b->spec, h->uid, &v);

	if (op == NULL && b->ignores_unclaimed)
		return 0;
	if (op == NULL)
		return refuse(text, "operator %s: in the checkpoint with state %s, but the job has "
				    "no operator of that uid",
				h->uid, h->name);
	if (strcmp(v->uid, from->uid) != 0)
		return refuse(text, "operator %s: of vertex %s in the checkpoint, of vertex %s in "
				    "the job",
				h->uid, from->uid, v->uid);
	if (strcmp(h->name, counters_state) == 0)
		return 0;
	const struct weir_state *s = find_state(op, h->name);
	if (s == NULL && b->ignores_unclaimed)
		return 0;
	if (s == NULL)
		return refuse(text, "operator %s, state %s: in the checkpoint, but the operator "
				    "declares no such state",
				h->uid, h->name);
	return check_state(h, s, text);
}

static int add_handle(struct builder *b, const struct metadata_vertex *from,
		const struct state_handle *h)
{
	struct restore_fit_operator *o = find_operator(b->fit, from->uid, h->uid);
	char text[RESTORE_FIT_TEXT_BYTES];

	if (o == NULL) {
		o = add_operator(b->fit, from->uid, h->uid);
		if (o == NULL)
			return -ENOMEM;
		o->kind = RESTORE_FIT_UNMATCHED;
		o->parallelism_then = from->parallelism;
	} else if (o->kind == RESTORE_FIT_NEW) {
		o->kind = RESTORE_FIT_MATCHED;
	}
	o->state_count++;
	o->item_count += h->item_count;
	o->bytes += h->size;
	b->fit->bytes += h->size;
	return judge(b, from, h, text) == 0 ? 0 : add_refusal(b->fit, text);
}

static int add_subtask(struct builder *b, const struct metadata_vertex *from,
		const struct metadata_subtask *subtask)
{
	char problem[TASK_STATE_TEXT_BYTES], text[RESTORE_FIT_TEXT_BYTES];
	struct task_state *t;

	if (subtask->state.size == 0)
		return 0;
	int rc = task_state_decode(&t, subtask->state.data, subtask->state.size, problem);
	if (rc == -ENOMEM)
		return rc;
	if (rc != 0) {
		refuse(text, "vertex %s, subtask %u: its state cannot be read: %.300s", from->uid,
				subtask->index, problem);
		return add_refusal(b->fit, text);
	}
	for (uint32_t i = 0; rc == 0 && i < t->handle_count; i++)
		rc = add_handle(b, from, &t->handles[i]);
	task_state_free(t);
	return rc;
}

static int add_checkpoint(struct builder *b)
{
	char text[RESTORE_FIT_TEXT_BYTES];
	int rc = 0;

	if (check_key_groups(b->spec, b->metadata, text) != 0)
		rc = add_refusal(b->fit, text);
	for (uint32_t i = 0; rc == 0 && i < b->metadata->vertex_count; i++) {
		const struct metadata_vertex *from = &b->metadata->vertices[i];

		if (check_vertex(b->spec, b->metadata, from, b->ignores_unclaimed, text) != 0)
			rc = add_refusal(b->fit, text);
		else if (check_in_flight(b->spec, b->metadata, from, text) != 0)
			rc = add_refusal(b->fit, text);
		for (uint32_t k = 0; rc == 0 && k < from->subtask_count; k++)
			rc = add_subtask(b, from, &from->subtasks[k]);
	}
	for (uint32_t i = 0; rc == 0 && i < b->spec->edge_count; i++)
		if (check_edge(b->spec, b->metadata, &b->spec->edges[i], text) != 0)
			rc = add_refusal(b->fit, text);
	return rc;
}

int restore_fit_create(struct restore_fit **out, const struct job_spec *spec,
		const struct metadata *m, bool ignores_unclaimed)
{
	struct builder b = {calloc(1, sizeof(struct restore_fit)), spec, m, ignores_unclaimed};

	if (b.fit == NULL)
		return -ENOMEM;
	int rc = add_job(&b);
	if (rc == 0)
		rc = add_checkpoint(&b);
	if (rc != 0) {
		restore_fit_destroy(b.fit);
		return rc;
	}
	*out = b.fit;
	return 0;
}

void restore_fit_destroy(struct restore_fit *f)
{
	if (f == NULL)
		return;
	for (uint32_t i = 0; i < f->operator_count; i++)
		free((char *)(uintptr_t)f->operators[i].operator_uid);
	for (uint32_t i = 0; i < f->refusal_count; i++)
		free(f->refusals[i]);
	free(f->operators);
	free(f->refusals);
	free(f);
}
