#include "control/config/config.h"

#include "control/config/config_internal.h"
#include "control/config/yaml_tree.h"
#include "dataplane/base/check.h"
#include "dataplane/operator/params.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES_MAX = 256, SHOWN_BYTES_MAX = 80 };

/* Reading of one file: which keys it has already had, and where. */
struct load {
	struct config *config;
	enum config_origin origin;
	struct config_place *seen; /* one for each key; line 0: not yet */
	struct config_error *error;
};

int config_create(struct config **out)
{
	struct config *c = calloc(1, sizeof(*c) + config_keys_count() * sizeof(c->entries[0]));

	if (c == NULL)
		return -ENOMEM;
	c->count = config_keys_count();
	for (uint32_t i = 0; i < c->count; i++) {
		const struct config_key *key = config_key_at(i);
		char wrong[WEIR_ERROR_BYTES] = "";

		if (key->param.preset == NULL)
			continue;
		CHECK(param_parse(&key->param, key->param.preset, &c->entries[i].value, wrong) ==
				0);
		CHECK(key->form == NULL || key->form(key->param.preset) == NULL);
	}
	*out = c;
	return 0;
}

void config_destroy(struct config *c)
{
	if (c == NULL)
		return;
	for (uint32_t i = 0; i < c->count; i++) {
		free(c->entries[i].text);
		free(c->entries[i].source);
	}
	free(c);
}

int config_clone(const struct config *c, struct config **out)
{
	struct config *copy;
	int rc = config_create(&copy);

	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < c->count && rc == 0; i++) {
		const struct config_entry *from = &c->entries[i];
		struct config_entry *to = &copy->entries[i];

		if (from->text == NULL)
			continue;
		*to = *from;
		to->text = strdup(from->text);
		to->source = strdup(from->source);
		to->value.text = to->text;
		to->place.source = to->source;
		if (to->text == NULL || to->source == NULL)
			rc = -ENOMEM;
	}
	if (rc != 0)
		config_destroy(copy);
	else
		*out = copy;
	return rc;
}

struct config_place config_place_of(const struct config *c, uint32_t index)
{
	const struct config_entry *entry = &c->entries[index];

	return entry->text == NULL ? (struct config_place){.source = "preset"} : entry->place;
}

/* Whether `value` is the one that `key` may have in this version. */
static bool is_supported(const struct config_key *key, const struct weir_value *value)
{
	struct weir_value only;
	char wrong[WEIR_ERROR_BYTES];

	if (key->supported == NULL)
		return true;
	if (key->param.type == WEIR_TEXT || key->supported[0] == '\0')
		return strcmp(value->text, key->supported) == 0;
	CHECK(param_parse(&key->param, key->supported, &only, wrong) == 0);
	return only.integer == value->integer && only.real == value->real;
}

static int refuse_unsupported(const struct config_key *key, const char *text,
		struct config_place place, struct config_error *error)
{
	bool is_unset = key->supported[0] == '\0';

	return config_refuse(error, place, key->param.name,
			"\"%.*s\" is not supported yet; expected %s%s%s", SHOWN_BYTES_MAX, text,
			is_unset ? "it not to be set" : "\"", key->supported, is_unset ? "" : "\"");
}

static int check_value(const struct config_key *key, const char *text, struct config_place place,
		struct weir_value *value, struct config_error *error)
{
	char wrong[WEIR_ERROR_BYTES];

	if (param_parse(&key->param, text, value, wrong) != 0)
		return config_refuse(error, place, NULL, "%s", wrong);
	const char *expected = key->form == NULL ? NULL : key->form(text);
	if (expected != NULL)
		return config_refuse(error, place, key->param.name,
				"\"%.*s\" does not fit; expected %s", SHOWN_BYTES_MAX, text,
				expected);
	if (key->separator != 0 && strlen(text) >= CONFIG_LIST_BYTES)
		return config_refuse(error, place, key->param.name, "too long; expected %d bytes",
				CONFIG_LIST_BYTES - 1);
	if (!is_supported(key, value))
		return refuse_unsupported(key, text, place, error);
	return 0;
}

/* Checks a value and, when nothing of higher rank holds already, keeps it. */
static int keep(struct config *c, uint32_t index, const char *text, struct config_place place,
		enum config_origin origin, struct config_error *error)
{
	struct config_entry *entry = &c->entries[index];
	struct weir_value value;
	int rc = check_value(config_key_at(index), text, place, &value, error);

	if (rc != 0 || origin < entry->origin)
		return rc;
	char *text_copy = strdup(text);
	char *source_copy = strdup(place.source);
	if (text_copy == NULL || source_copy == NULL) {
		free(text_copy);
		free(source_copy);
		config_refuse(error, place, NULL, "out of memory");
		return -ENOMEM;
	}
	free(entry->text);
	free(entry->source);
	entry->text = text_copy;
	entry->source = source_copy;
	entry->value = value;
	entry->value.text = text_copy;
	entry->place = place;
	entry->place.source = source_copy;
	entry->origin = origin;
	return 0;
}

static int find(const char *name, struct config_place place, uint32_t *index,
		struct config_error *error)
{
	if (config_key_find(name, index))
		return 0;
	const char *near = config_key_nearest(name);
	if (near != NULL)
		return config_refuse(error, place, name, "unknown key; did you mean %s?", near);
	return config_refuse(error, place, name,
			"unknown key; expected one of those that weir config lists");
}

/* What a process reads before it knows of any job would be passed over in silence. */
static int expect_key_of_job(uint32_t index, struct config_place place, struct config_error *error)
{
	if (config_key_is_of_job(index))
		return 0;
	return config_refuse(error, place, config_key_at(index)->param.name,
			"no key of a job; it belongs into the config of the coordinator "
			"or of its TaskManagers");
}

/* `is_job`: only what a job may bring along. */
static int set_option(struct config *c, const char *assignment, bool is_job,
		struct config_error *error)
{
	struct config_place place = {.source = "-D option"};
	const char *equals = strchr(assignment, '=');
	char name[NAME_BYTES_MAX];
	uint32_t index = 0;

	if (equals == NULL || equals == assignment || equals - assignment >= NAME_BYTES_MAX)
		return config_refuse(error, place, NULL, "\"%.*s\"; expected KEY=VALUE",
				SHOWN_BYTES_MAX, assignment);
	memcpy(name, assignment, (size_t)(equals - assignment));
	name[equals - assignment] = '\0';
	int rc = find(name, place, &index, error);
	if (rc == 0 && is_job)
		rc = expect_key_of_job(index, place, error);
	return rc != 0 ? rc : keep(c, index, equals + 1, place, CONFIG_OPTION, error);
}

int config_set_option(struct config *c, const char *assignment, struct config_error *error)
{
	return set_option(c, assignment, false, error);
}

int config_set_job_option(struct config *c, const char *assignment, struct config_error *error)
{
	return set_option(c, assignment, true, error);
}

/* A list may be written as a YAML sequence; its items are joined. */
static int join_items(const struct config_key *key, const struct yaml_node *node, char *text,
		struct config_error *error)
{
	size_t used = 0;

	if (key->separator == 0)
		return config_refuse(
				error, node->place, key->param.name, "a list; expected one value");
	text[0] = '\0';
	for (const struct yaml_node *n = node->first; n != NULL; n = n->next) {
		if (n->kind != YAML_SCALAR)
			return config_refuse(error, n->place, key->param.name,
					"a list in a list; expected words");
		used += (size_t)snprintf(text + used, CONFIG_LIST_BYTES - used, "%.*s%s",
				used == 0 ? 0 : 1, &key->separator, n->text);
		if (used >= CONFIG_LIST_BYTES)
			return config_refuse(error, n->place, key->param.name,
					"too long; expected %d bytes", CONFIG_LIST_BYTES - 1);
	}
	return 0;
}

static int load_leaf(struct load *load, const struct yaml_node *node, const char *name)
{
	char joined[CONFIG_LIST_BYTES];
	uint32_t index = 0;
	int rc = find(name, node->key_place, &index, load->error);

	if (rc == 0 && load->origin == CONFIG_JOB_FILE)
		rc = expect_key_of_job(index, node->key_place, load->error);
	if (rc != 0)
		return rc;
	const struct config_key *key = config_key_at(index);
	struct config_place *seen = &load->seen[index];
	if (seen->line > 0)
		return config_refuse(load->error, node->key_place, name,
				"given twice, first at line %d; expected once", seen->line);
	*seen = node->key_place;
	if (node->kind == YAML_SCALAR)
		return keep(load->config, index, node->text, node->place, load->origin,
				load->error);
	rc = join_items(key, node, joined, load->error);
	return rc != 0 ? rc
		       : keep(load->config, index, joined, node->place, load->origin, load->error);
}

/* Walks nested mappings in the order of the file; `name` grows and shrinks on the way. */
static int load_mapping(struct load *load, const struct yaml_node *mapping)
{
	struct {
		const struct yaml_node *next;
		size_t name_size;
	} levels[YAML_DEPTH_MAX + 1];
	char name[NAME_BYTES_MAX];
	uint32_t depth = 1;
	int rc = 0;

	levels[0].next = mapping->first;
	levels[0].name_size = 0;
	while (depth > 0 && rc == 0) {
		const struct yaml_node *node = levels[depth - 1].next;
		size_t at = levels[depth - 1].name_size;

		if (node == NULL) {
			depth--;
			continue;
		}
		levels[depth - 1].next = node->next;
		int size = snprintf(name + at, sizeof(name) - at, "%s%s", at == 0 ? "" : ".",
				node->key);
		if ((size_t)size >= sizeof(name) - at)
			return config_refuse(load->error, node->key_place, NULL,
					"the key is too long; expected at most %d bytes",
					NAME_BYTES_MAX - 1);
		if (node->kind != YAML_MAPPING) {
			rc = load_leaf(load, node, name);
			continue;
		}
		CHECK(depth <= YAML_DEPTH_MAX);
		levels[depth].next = node->first;
		levels[depth].name_size = at + (size_t)size;
		depth++;
	}
	return rc;
}

int config_load_node(struct config *c, const struct yaml_node *mapping, enum config_origin origin,
		struct config_error *error)
{
	struct load load = {.config = c, .origin = origin, .error = error};

	if (mapping->kind == YAML_SCALAR && mapping->text[0] == '\0')
		return 0; /* `config:` with nothing behind it */
	if (mapping->kind != YAML_MAPPING)
		return config_refuse(error, mapping->place, NULL, "expected KEY: VALUE lines");
	load.seen = calloc(c->count, sizeof(*load.seen));
	if (load.seen == NULL) {
		config_refuse(error, mapping->place, NULL, "out of memory");
		return -ENOMEM;
	}
	int rc = load_mapping(&load, mapping);
	free(load.seen);
	return rc;
}

int config_load_text(struct config *c, const char *name, const char *text, size_t size,
		struct config_error *error)
{
	struct yaml_tree *tree;
	int rc = yaml_tree_parse(&tree, name, text, size, error);

	if (rc != 0)
		return rc;
	rc = config_load_node(c, yaml_tree_root(tree), CONFIG_FILE, error);
	yaml_tree_destroy(tree);
	return rc;
}

int config_load_file(struct config *c, const char *path, struct config_error *error)
{
	char *text;
	size_t size;
	int rc = yaml_read_file(path, &text, &size, error);

	if (rc != 0)
		return rc;
	rc = config_load_text(c, path, text, size, error);
	free(text);
	return rc;
}
