#include "control/config/job_internal.h"
#include "dataplane/base/nearest.h"
#include "dataplane/operator/params.h"
#include "dataplane/operator/registry.h"

#include <errno.h>
#include <string.h>

enum { PARAMS_GIVEN_MAX = 256, KNOWN_BYTES = 512 };

/* Keys of an operator that are no parameters. */
static const char *const own_keys[] = {"uid", "type", "plugin"};

static bool is_own_key(const char *key)
{
	for (size_t i = 0; i < sizeof(own_keys) / sizeof(own_keys[0]); i++) {
		if (strcmp(own_keys[i], key) == 0)
			return true;
	}
	return false;
}

/* ---- uids ---------------------------------------------------------------------------------- */

/* Uids name folders, metrics and --set; a dot would make the last ambiguous. */
static int read_uid(struct job_reader *r, const struct yaml_node *mapping, const char **uid)
{
	static const char letters[] =
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	const struct yaml_node *node;
	int rc = job_read_text(r, mapping, "uid", &node);

	if (rc != 0)
		return rc;
	if (node == NULL)
		return config_refuse(r->error, mapping->place, "uid",
				"missing; expected a name that stays the same from run to run");
	size_t size = strlen(node->text);
	if (size == 0 || size >= UID_BYTES_MAX || strspn(node->text, letters) != size)
		return config_refuse(r->error, node->place, "uid",
				"\"%.80s\"; expected 1 to %d letters, digits, _ and -", node->text,
				UID_BYTES_MAX - 1);
	*uid = node->text;
	return 0;
}

static int refuse_duplicate(struct job_reader *r, const struct yaml_node *mapping, const char *uid,
		const char *what, const struct yaml_node *first)
{
	return config_refuse(r->error, yaml_find(mapping, "uid")->place, "uid",
			"\"%s\" is the uid of another %s, at line %d; expected a different one",
			uid, what, yaml_find(first, "uid")->place.line);
}

/* ---- operators ----------------------------------------------------------------------------- */

static void print_known(const char *word, char known[KNOWN_BYTES], const char **best)
{
	const struct weir_operator *op;
	struct nearest near;
	size_t used = 0;

	known[0] = '\0';
	nearest_begin(&near, word);
	for (uint32_t i = 0; (op = registry_at(i)) != NULL; i++) {
		nearest_offer(&near, op->name);
		if (used < KNOWN_BYTES)
			used += (size_t)snprintf(known + used, KNOWN_BYTES - used, "%s%s",
					i == 0 ? "" : ", ", op->name);
	}
	*best = nearest_best(&near);
}

static int find_builtin(struct job_reader *r, const struct yaml_node *mapping,
		const struct yaml_node *type, struct job_operator *op)
{
	char known[KNOWN_BYTES], guess[128] = "";
	const char *best;

	print_known(type == NULL ? "" : type->text, known, &best);
	if (type == NULL)
		return config_refuse(r->error, mapping->place, op->uid,
				"type is missing; expected plugin: FILE.so, or one of %s", known);
	op->table = registry_find(type->text);
	if (op->table != NULL)
		return 0;
	if (best != NULL)
		snprintf(guess, sizeof(guess), " (did you mean %s?)", best);
	return config_refuse(r->error, type->place, op->uid,
			"type \"%.80s\" is unknown%s; expected one of %s", type->text, guess,
			known);
}

static int find_in_plugin(struct job_reader *r, const struct yaml_node *type,
		const struct yaml_node *plugin, struct job_operator *op)
{
	char wrong[WEIR_ERROR_BYTES];
	bool is_absolute = plugin->text[0] == '/';

	if (plugin->text[0] == '\0')
		return config_refuse(r->error, plugin->place, op->uid,
				"plugin is empty; expected the path of a shared object");
	op->plugin = job_print(r, "%s%s%s", is_absolute ? "" : r->spec->source.plugin_dir,
			is_absolute ? "" : "/", plugin->text);
	if (op->plugin == NULL)
		return -ENOMEM;
	if (registry_load(op->plugin, type == NULL ? NULL : type->text, &op->table, wrong) != 0)
		return config_refuse(r->error, plugin->place, op->uid, "%s", wrong);
	return 0;
}

/* The uid and the operator table; parameters come when all uids are known. */
static int read_operator(
		struct job_reader *r, const struct yaml_node *mapping, struct job_operator *op)
{
	const struct yaml_node *type, *plugin;
	int rc = 0;

	if (mapping->kind != YAML_MAPPING)
		return config_refuse(r->error, mapping->place, "operators",
				"expected a mapping with uid, type and parameters");
	for (const struct yaml_node *n = mapping->first; n != NULL; n = n->next) {
		if (is_own_key(n->key) && yaml_find(mapping, n->key) != n)
			return config_refuse(r->error, n->key_place, n->key,
					"given twice, first at line %d; expected once",
					yaml_find(mapping, n->key)->key_place.line);
	}
	op->node = mapping;
	rc = read_uid(r, mapping, &op->uid);
	if (rc == 0)
		rc = job_read_text(r, mapping, "type", &type);
	if (rc == 0)
		rc = job_read_text(r, mapping, "plugin", &plugin);
	if (rc != 0)
		return rc;
	return plugin == NULL ? find_builtin(r, mapping, type, op)
			      : find_in_plugin(r, type, plugin, op);
}

/* ---- parameters ---------------------------------------------------------------------------- */

/* Texts of one operator, and where each stands; NULL: an option. */
struct given {
	struct param_text texts[PARAMS_GIVEN_MAX];
	const struct yaml_node *nodes[PARAMS_GIVEN_MAX];
	uint32_t count;
};

static int add_given(struct job_reader *r, struct given *given, const char *name, const char *text,
		const struct yaml_node *node)
{
	if (given->count == PARAMS_GIVEN_MAX)
		return config_refuse(r->error, node == NULL ? job_set_place() : node->place, name,
				"too many parameters; expected at most %d", PARAMS_GIVEN_MAX);
	given->texts[given->count] = (struct param_text){name, text};
	given->nodes[given->count++] = node;
	return 0;
}

static int collect_given(struct job_reader *r, const struct job_operator *op, struct given *given)
{
	int rc = 0;

	given->count = 0;
	for (const struct yaml_node *n = op->node->first; n != NULL && rc == 0; n = n->next) {
		if (is_own_key(n->key))
			continue;
		if (n->kind != YAML_SCALAR)
			return config_refuse(r->error, n->place, NULL,
					"%s.%.80s: a list or mapping; expected one value", op->uid,
					n->key);
		rc = add_given(r, given, n->key, n->text, n);
	}
	return rc;
}

/* --set replaces what the file says, or adds to it. */
static int apply_sets(struct job_reader *r, const struct job_operator *op, struct given *given)
{
	for (uint32_t i = 0; i < r->spec->source.set_count; i++) {
		const struct job_set *set = &r->sets[i];
		uint32_t at = 0;

		if (strcmp(set->uid, op->uid) != 0)
			continue;
		while (at < given->count && strcmp(given->texts[at].name, set->param) != 0)
			at++;
		if (at < given->count) {
			given->texts[at].text = set->text;
			given->nodes[at] = NULL;
			continue;
		}
		int rc = add_given(r, given, set->param, set->text, NULL);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static bool has_param(const struct weir_operator *table, const char *name)
{
	for (uint32_t i = 0; i < table->param_count; i++) {
		if (strcmp(table->params[i].name, name) == 0)
			return true;
	}
	return false;
}

/* A wrong value is wrong where it stands, a wrong name where the name is. */
static struct config_place place_of(
		const struct job_operator *op, const struct given *given, uint32_t culprit)
{
	if (culprit >= given->count)
		return op->node->place;
	const struct yaml_node *node = given->nodes[culprit];
	if (node == NULL)
		return job_set_place();
	return has_param(op->table, node->key) ? node->place : node->key_place;
}

static int resolve(struct job_reader *r, struct job_operator *op)
{
	struct given given;
	char wrong[WEIR_ERROR_BYTES];
	uint32_t culprit = UINT32_MAX;
	int rc = collect_given(r, op, &given);

	if (rc == 0)
		rc = apply_sets(r, op, &given);
	if (rc != 0)
		return rc;
	op->values = job_allocate(r, (op->table->param_count + 1) * sizeof(*op->values));
	if (op->values == NULL)
		return -ENOMEM;
	if (params_resolve(op->table, given.texts, given.count, op->values, &culprit, wrong) != 0)
		return config_refuse(r->error, place_of(op, &given, culprit), NULL, "%s.%s",
				op->uid, wrong);
	return 0;
}

/* ---- vertices ------------------------------------------------------------------------------ */

static int read_parallelism(
		struct job_reader *r, const struct yaml_node *mapping, struct job_vertex *vertex)
{
	static const struct weir_param param = {.name = "parallelism",
			.type = WEIR_INTEGER,
			.min = 1,
			.max = PARALLELISM_MAX};
	const struct yaml_node *node;
	const char *text = job_find_set(r, vertex->uid, param.name);
	struct config_place place = job_set_place();
	struct weir_value value = {.integer = config_int(r->config, "parallelism.default")};
	char wrong[WEIR_ERROR_BYTES];
	int rc = job_read_text(r, mapping, param.name, &node);

	if (rc != 0)
		return rc;
	if (text == NULL) {
		text = node == NULL ? NULL : node->text;
		place = node == NULL ? mapping->place : node->place;
	}
	if (text != NULL && param_parse(&param, text, &value, wrong) != 0)
		return config_refuse(r->error, place, NULL, "%s.%s", vertex->uid, wrong);
	if (value.integer > r->spec->key_groups_count)
		return config_refuse(r->error, place, NULL,
				"%s.parallelism: %d is more than the key groups of "
				"pipeline.max-parallelism; expected 1 to %u",
				vertex->uid, (int)value.integer, r->spec->key_groups_count);
	vertex->parallelism = (uint32_t)value.integer;
	return 0;
}

static int read_operators(
		struct job_reader *r, const struct yaml_node *mapping, struct job_vertex *vertex)
{
	const struct yaml_node *list = yaml_find(mapping, "operators");

	if (list == NULL || list->kind != YAML_SEQUENCE || list->count == 0 ||
			list->count > CHAIN_OPERATORS_MAX)
		return config_refuse(r->error, list == NULL ? mapping->place : list->place, NULL,
				"%s.operators: expected a list of 1 to %d operators", vertex->uid,
				CHAIN_OPERATORS_MAX);
	vertex->operators = job_allocate(r, list->count * sizeof(*vertex->operators));
	if (vertex->operators == NULL)
		return -ENOMEM;
	for (const struct yaml_node *n = list->first; n != NULL; n = n->next) {
		struct job_operator *op = &vertex->operators[vertex->operator_count];
		int rc = read_operator(r, n, op);

		if (rc != 0)
			return rc;
		const struct job_operator *same = job_spec_find(r->spec, op->uid, NULL);
		if (same != NULL)
			return refuse_duplicate(r, n, op->uid, "operator", same->node);
		vertex->operator_count++;
	}
	return 0;
}

static int read_vertex(struct job_reader *r, const struct yaml_node *mapping)
{
	struct job_vertex *vertex = &r->spec->vertices[r->spec->vertex_count];
	uint32_t same;
	int rc = job_check_keys(r, mapping, "uid|parallelism|operators");

	vertex->node = mapping;
	if (rc == 0)
		rc = read_uid(r, mapping, &vertex->uid);
	if (rc != 0)
		return rc;
	if (job_find_vertex(r->spec, vertex->uid, &same))
		return refuse_duplicate(
				r, mapping, vertex->uid, "vertex", r->spec->vertices[same].node);
	r->spec->vertex_count++;
	rc = read_parallelism(r, mapping, vertex);
	return rc != 0 ? rc : read_operators(r, mapping, vertex);
}

int job_read_vertices(struct job_reader *r)
{
	const struct yaml_node *list = yaml_find(r->root, "vertices");
	int rc = 0;

	if (list == NULL || list->kind != YAML_SEQUENCE || list->count == 0 ||
			list->count > VERTICES_COUNT_MAX)
		return config_refuse(r->error, list == NULL ? r->root->place : list->place,
				"vertices", "expected a list of 1 to %d vertices",
				VERTICES_COUNT_MAX);
	r->spec->vertices = job_allocate(r, list->count * sizeof(*r->spec->vertices));
	if (r->spec->vertices == NULL)
		return -ENOMEM;
	for (const struct yaml_node *n = list->first; n != NULL && rc == 0; n = n->next)
		rc = read_vertex(r, n);
	if (rc == 0)
		rc = job_check_sets(r);
	for (uint32_t v = 0; v < r->spec->vertex_count && rc == 0; v++) {
		struct job_vertex *vertex = &r->spec->vertices[v];

		for (uint32_t i = 0; i < vertex->operator_count && rc == 0; i++)
			rc = resolve(r, &vertex->operators[i]);
	}
	return rc;
}
