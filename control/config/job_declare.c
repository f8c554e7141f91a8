#include "control/config/job_internal.h"

#include <string.h>

enum { SIZE_WORDS_BYTES = 40 };

static const char *print_size(uint32_t record_bytes, char text[SIZE_WORDS_BYTES])
{
	if (record_bytes == 0)
		snprintf(text, SIZE_WORDS_BYTES, "records of variable size");
	else
		snprintf(text, SIZE_WORDS_BYTES, "records of %u bytes", record_bytes);
	return text;
}

/* What is wrong with a state, or NULL. */
static const char *wrong_state(const struct weir_declaration *d, uint32_t index)
{
	const struct weir_state *state = &d->states[index];

	if (state->name == NULL || state->name[0] == '\0')
		return "a state has no name";
	if ((unsigned int)state->kind > WEIR_STATE_KEYED)
		return "a state has an unknown kind";
	if (state->value_bytes == 0 && state->kind != WEIR_STATE_KEYED)
		return "a state has no size";
	if (state->kind == WEIR_STATE_KEYED &&
			(state->key_bytes == 0 || state->key_bytes > KEY_BYTES_MAX ||
					state->group_bytes > state->key_bytes))
		return "a keyed state has a key of unusable size";
	for (uint32_t i = 0; i < index; i++) {
		if (strcmp(d->states[i].name, state->name) == 0)
			return "two states have one name";
	}
	return NULL;
}

/* What is wrong with a declaration, whoever made it, or NULL. */
static const char *wrong_declaration(
		const struct weir_operator *table, const struct weir_declaration *d)
{
	if (d->state_count > WEIR_STATES_MAX || d->counter_count > WEIR_COUNTERS_MAX)
		return "too many states or counters";
	for (uint32_t i = 0; i < d->state_count; i++) {
		const char *wrong = wrong_state(d, i);

		if (wrong != NULL)
			return wrong;
	}
	for (uint32_t i = 0; i < d->counter_count; i++) {
		if (d->counters[i] == NULL || d->counters[i][0] == '\0')
			return "a counter has no name";
	}
	if (table->role == WEIR_SINK)
		return NULL;
	if (d->out_record_bytes == WEIR_RECORD_ANY)
		return "the size of its records is left open";
	if (d->out_record_bytes == 0 && d->out_record_bytes_max > RECORD_BYTES_MAX)
		return "a record of more than 1 MiB";
	if (d->out_key_bytes > KEY_BYTES_MAX ||
			(d->out_record_bytes > 0 && (uint64_t)d->out_key_offset + d->out_key_bytes >
								    d->out_record_bytes))
		return "its key lies outside of its records";
	return NULL;
}

static int declare(struct job_reader *r, const struct job_vertex *vertex, struct job_operator *op)
{
	struct weir_setting setting = {.uid = op->uid,
			.parallelism = vertex->parallelism,
			.in_record_bytes = op->in_record_bytes,
			.values = op->values};
	char wrong[WEIR_ERROR_BYTES] = "";

	if (op->table->declare(&setting, &op->declared, wrong) != 0) {
		wrong[WEIR_ERROR_BYTES - 1] = '\0';
		return config_refuse(r->error, op->node->place, op->uid, "%s",
				wrong[0] == '\0' ? "refused without a reason" : wrong);
	}
	const char *bad = wrong_declaration(op->table, &op->declared);
	if (bad != NULL)
		return config_refuse(r->error, op->node->place, op->uid,
				"%s declares what cannot be: %s", op->table->name, bad);
	return 0;
}

/* Whether what `from` makes is what `op` takes. */
static int check_fit(struct job_reader *r, const struct job_operator *from,
		const struct job_operator *op, struct config_place place)
{
	uint32_t takes = op->declared.in_record_bytes;
	char in[SIZE_WORDS_BYTES], out[SIZE_WORDS_BYTES];

	if (takes == WEIR_RECORD_ANY || takes == from->declared.out_record_bytes)
		return 0;
	return config_refuse(r->error, place, op->uid, "%s makes %s; expected %s", from->uid,
			print_size(from->declared.out_record_bytes, out), print_size(takes, in));
}

/* All edges into a vertex bring records of one size. */
static int read_inputs(struct job_reader *r, uint32_t index, const struct job_operator **feeder)
{
	const struct job_spec *spec = r->spec;
	char first[SIZE_WORDS_BYTES], other[SIZE_WORDS_BYTES];

	*feeder = NULL;
	for (uint32_t e = 0; e < spec->edge_count; e++) {
		if (spec->edges[e].to != index)
			continue;
		const struct job_operator *from =
				job_vertex_last(&spec->vertices[spec->edges[e].from]);
		if (*feeder == NULL)
			*feeder = from;
		if (from->declared.out_record_bytes == (*feeder)->declared.out_record_bytes)
			continue;
		return config_refuse(r->error, spec->edges[e].node->place, "edges",
				"%s gets %s from %s; expected %s as from %s",
				spec->vertices[index].uid,
				print_size(from->declared.out_record_bytes, other), from->uid,
				print_size((*feeder)->declared.out_record_bytes, first),
				(*feeder)->uid);
	}
	return 0;
}

static int check_hash(struct job_reader *r, const struct job_edge *edge)
{
	const struct job_operator *from = job_vertex_last(&r->spec->vertices[edge->from]);

	if (edge->partition != JOB_HASH || from->declared.out_key_bytes > 0)
		return 0;
	return config_refuse(r->error, edge->node->place, "partition",
			"hash, but %s (%s) declares no key; expected forward or rebalance, or an "
			"operator with a key",
			from->uid, from->table->name);
}

/* With more than one subtask, each key must come to the subtask that owns its key group. */
static int check_keyed(struct job_reader *r, uint32_t index, const struct job_operator *op)
{
	const struct job_vertex *vertex = &r->spec->vertices[index];
	uint32_t group_bytes = 0;

	for (uint32_t i = 0; i < op->declared.state_count; i++) {
		const struct weir_state *state = &op->declared.states[i];

		if (state->kind == WEIR_STATE_KEYED)
			group_bytes = state->group_bytes > 0 ? state->group_bytes
							     : state->key_bytes;
	}
	if (group_bytes == 0 || vertex->parallelism == 1)
		return 0;
	if (vertex->in_count == 0)
		return config_refuse(r->error, op->node->place, op->uid,
				"keyed state beside its source; expected a hash edge in front, or "
				"parallelism 1");
	for (uint32_t e = 0; e < r->spec->edge_count; e++) {
		const struct job_edge *edge = &r->spec->edges[e];
		const struct job_operator *from = job_vertex_last(&r->spec->vertices[edge->from]);

		if (edge->to != index)
			continue;
		if (edge->partition != JOB_HASH || from->declared.out_key_bytes != group_bytes)
			return config_refuse(r->error, edge->node->place, "partition",
					"%s keeps state by a key of %u bytes; expected a hash edge "
					"by that key, or parallelism 1",
					op->uid, group_bytes);
	}
	return 0;
}

static int declare_vertex(struct job_reader *r, uint32_t index)
{
	struct job_vertex *vertex = &r->spec->vertices[index];
	const struct job_operator *before;
	int rc = read_inputs(r, index, &before);

	for (uint32_t i = 0; i < vertex->operator_count && rc == 0; i++) {
		struct job_operator *op = &vertex->operators[i];

		op->in_record_bytes = before == NULL ? 0 : before->declared.out_record_bytes;
		rc = declare(r, vertex, op);
		if (rc == 0 && before != NULL)
			rc = check_fit(r, before, op, op->node->place);
		if (rc == 0)
			rc = check_keyed(r, index, op);
		before = op;
	}
	return rc;
}

int job_declare(struct job_reader *r)
{
	int rc = 0;

	for (uint32_t i = 0; i < r->spec->vertex_count && rc == 0; i++)
		rc = declare_vertex(r, r->spec->order[i]);
	for (uint32_t e = 0; e < r->spec->edge_count && rc == 0; e++)
		rc = check_hash(r, &r->spec->edges[e]);
	return rc;
}
