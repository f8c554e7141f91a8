#include "control/config/job_internal.h"

#include "dataplane/base/nearest.h"

#include <errno.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------------------------- */

static int read_end(struct job_reader *r, const struct yaml_node *mapping, const char *key,
		uint32_t *index)
{
	const struct yaml_node *node;
	struct nearest near;
	int rc = job_read_text(r, mapping, key, &node);

	if (rc != 0)
		return rc;
	if (node == NULL)
		return config_refuse(r->error, mapping->place, key,
				"missing; expected the uid of a vertex");
	if (job_find_vertex(r->spec, node->text, index))
		return 0;
	nearest_begin(&near, node->text);
	for (uint32_t v = 0; v < r->spec->vertex_count; v++)
		nearest_offer(&near, r->spec->vertices[v].uid);
	const char *best = nearest_best(&near);
	return config_refuse(r->error, node->place, key, "no vertex has the uid \"%.80s\"; %s%s%s",
			node->text, best == NULL ? "expected one of the job file" : "did you mean ",
			best == NULL ? "" : best, best == NULL ? "" : "?");
}

static int read_partition(
		struct job_reader *r, const struct yaml_node *mapping, struct job_edge *edge)
{
	const struct yaml_node *node;
	struct nearest near;
	int rc = job_read_text(r, mapping, "partition", &node);

	edge->partition = JOB_FORWARD;
	if (rc != 0 || node == NULL)
		return rc;
	nearest_begin(&near, node->text);
	for (int i = JOB_FORWARD; i <= JOB_BROADCAST; i++) {
		edge->partition = (enum job_partition)i;
		if (strcmp(node->text, job_partition_name(edge->partition)) == 0)
			return 0;
		nearest_offer(&near, job_partition_name(edge->partition));
	}
	const char *best = nearest_best(&near);
	return config_refuse(r->error, node->place, "partition",
			"\"%.80s\" is unknown; expected forward, hash, rebalance or "
			"broadcast%s%s%s",
			node->text, best == NULL ? "" : "; did you mean ",
			best == NULL ? "" : best, best == NULL ? "" : "?");
}

static int read_edge(struct job_reader *r, const struct yaml_node *mapping)
{
	struct job_spec *spec = r->spec;
	struct job_edge *edge = &spec->edges[spec->edge_count];
	int rc = job_check_keys(r, mapping, "from|to|partition");

	edge->node = mapping;
	if (rc == 0)
		rc = read_end(r, mapping, "from", &edge->from);
	if (rc == 0)
		rc = read_end(r, mapping, "to", &edge->to);
	if (rc == 0)
		rc = read_partition(r, mapping, edge);
	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < spec->edge_count; i++) {
		if (spec->edges[i].from == edge->from && spec->edges[i].to == edge->to)
			return config_refuse(r->error, mapping->place, "edges",
					"a second edge from %s to %s, the first at line %d; "
					"expected one",
					spec->vertices[edge->from].uid,
					spec->vertices[edge->to].uid,
					spec->edges[i].node->place.line);
	}
	spec->edge_count++;
	spec->vertices[edge->from].out_count++;
	spec->vertices[edge->to].in_count++;
	return 0;
}

int job_read_edges(struct job_reader *r)
{
	const struct yaml_node *list = yaml_find(r->root, "edges");
	bool is_empty = list == NULL || (list->kind == YAML_SCALAR && list->text[0] == '\0');
	int rc = 0;

	if (is_empty)
		return 0;
	if (list->kind != YAML_SEQUENCE || list->count > EDGES_COUNT_MAX)
		return config_refuse(r->error, list->place, "edges",
				"expected a list of at most %d edges", EDGES_COUNT_MAX);
	r->spec->edges = job_allocate(r, (list->count + 1) * sizeof(*r->spec->edges));
	if (r->spec->edges == NULL)
		return -ENOMEM;
	for (const struct yaml_node *n = list->first; n != NULL && rc == 0; n = n->next)
		rc = read_edge(r, n);
	return rc;
}

/* ---- shape --------------------------------------------------------------------------------- */

static int check_chain(struct job_reader *r, const struct job_vertex *vertex)
{
	for (uint32_t i = 0; i < vertex->operator_count; i++) {
		const struct job_operator *op = &vertex->operators[i];

		if (op->table->role == WEIR_SOURCE && i > 0)
			return config_refuse(r->error, op->node->place, op->uid,
					"a source behind other operators; expected it first in its "
					"vertex");
		if (op->table->role == WEIR_SINK && i + 1 < vertex->operator_count)
			return config_refuse(r->error, op->node->place, op->uid,
					"a sink before other operators; expected it last in its "
					"vertex");
	}
	return 0;
}

static int check_ends(struct job_reader *r, const struct job_vertex *vertex)
{
	bool has_source = vertex->operators[0].table->role == WEIR_SOURCE;
	bool has_sink = job_vertex_last(vertex)->table->role == WEIR_SINK;

	if (!has_source && vertex->in_count == 0)
		return config_refuse(r->error, vertex->node->place, vertex->uid,
				"nothing comes in; expected an edge to it, or a source as its "
				"first "
				"operator");
	if (!has_sink && vertex->out_count == 0)
		return config_refuse(r->error, vertex->node->place, vertex->uid,
				"what comes out goes nowhere; expected an edge from it, or a sink "
				"as "
				"its last operator");
	if (vertex->in_count > GATES_PER_TASK_MAX || vertex->out_count > OUTPUTS_PER_TASK_MAX)
		return config_refuse(r->error, vertex->node->place, vertex->uid,
				"too many edges; expected at most %d to it and %d from it",
				GATES_PER_TASK_MAX, OUTPUTS_PER_TASK_MAX);
	return 0;
}

static int check_edge(struct job_reader *r, const struct job_edge *edge)
{
	const struct job_vertex *from = &r->spec->vertices[edge->from];
	const struct job_vertex *to = &r->spec->vertices[edge->to];

	if (job_vertex_last(from)->table->role == WEIR_SINK)
		return config_refuse(r->error, edge->node->place, "from",
				"%s ends in a sink; expected no edge from it", from->uid);
	if (to->operators[0].table->role == WEIR_SOURCE)
		return config_refuse(r->error, edge->node->place, "to",
				"%s begins with a source; expected no edge to it", to->uid);
	if (edge->partition == JOB_FORWARD && from->parallelism != to->parallelism)
		return config_refuse(r->error, edge->node->place, "partition",
				"forward from %s (parallelism %u) to %s (parallelism %u); expected "
				"them to be equal, or hash, rebalance or broadcast",
				from->uid, from->parallelism, to->uid, to->parallelism);
	return 0;
}

/* Puts a vertex behind all that feed it; what is left over lies on a cycle. */
static int sort_vertices(struct job_reader *r)
{
	struct job_spec *spec = r->spec;
	uint32_t missing[VERTICES_COUNT_MAX], count = 0;

	spec->order = job_allocate(r, spec->vertex_count * sizeof(*spec->order));
	if (spec->order == NULL)
		return -ENOMEM;
	for (uint32_t v = 0; v < spec->vertex_count; v++) {
		missing[v] = spec->vertices[v].in_count;
		if (missing[v] == 0)
			spec->order[count++] = v;
	}
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t e = 0; e < spec->edge_count; e++) {
			if (spec->edges[e].from == spec->order[i] &&
					--missing[spec->edges[e].to] == 0)
				spec->order[count++] = spec->edges[e].to;
		}
	}
	for (uint32_t e = 0; e < spec->edge_count; e++) {
		if (missing[spec->edges[e].to] > 0 && missing[spec->edges[e].from] > 0)
			return config_refuse(r->error, spec->edges[e].node->place, "edges",
					"from %s to %s lies on or behind a cycle; expected none",
					spec->vertices[spec->edges[e].from].uid,
					spec->vertices[spec->edges[e].to].uid);
	}
	return 0;
}

int job_check_shape(struct job_reader *r)
{
	struct job_spec *spec = r->spec;
	int rc = 0;

	for (uint32_t v = 0; v < spec->vertex_count && rc == 0; v++)
		rc = check_chain(r, &spec->vertices[v]);
	for (uint32_t e = 0; e < spec->edge_count && rc == 0; e++)
		rc = check_edge(r, &spec->edges[e]);
	for (uint32_t v = 0; v < spec->vertex_count && rc == 0; v++)
		rc = check_ends(r, &spec->vertices[v]);
	return rc != 0 ? rc : sort_vertices(r);
}
