#include "control/config/job_file.h"

#include "control/config/job_internal.h"
#include "dataplane/base/check.h"
#include "dataplane/base/key_group.h"
#include "dataplane/base/nearest.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All that a spec owns, freed together. */
struct job_block {
	struct job_block *next;
	max_align_t bytes[];
};

struct job_memory {
	struct job_block *blocks;
	struct yaml_tree *tree;
};

static const char *const partition_names[] = {"forward", "hash", "rebalance", "broadcast"};

const char *job_partition_name(enum job_partition partition)
{
	return partition_names[partition];
}

struct job_id job_id_of_name(const char *name)
{
	XXH128_canonical_t canonical;
	struct job_id id;

	XXH128_canonicalFromHash(&canonical, XXH3_128bits(name, strlen(name)));
	memcpy(id.id.bytes, canonical.digest, sizeof(id.id.bytes));
	return id;
}

const struct job_operator *job_vertex_last(const struct job_vertex *vertex)
{
	return &vertex->operators[vertex->operator_count - 1];
}

const struct job_operator *job_spec_find(
		const struct job_spec *spec, const char *uid, const struct job_vertex **vertex)
{
	for (uint32_t v = 0; v < spec->vertex_count; v++) {
		for (uint32_t i = 0; i < spec->vertices[v].operator_count; i++) {
			const struct job_operator *op = &spec->vertices[v].operators[i];

			if (strcmp(op->uid, uid) != 0)
				continue;
			if (vertex != NULL)
				*vertex = &spec->vertices[v];
			return op;
		}
	}
	return NULL;
}

bool job_find_vertex(const struct job_spec *spec, const char *uid, uint32_t *index)
{
	for (*index = 0; *index < spec->vertex_count; (*index)++) {
		if (strcmp(spec->vertices[*index].uid, uid) == 0)
			return true;
	}
	return false;
}

/* ---- memory -------------------------------------------------------------------------------- */

void *job_allocate(struct job_reader *r, size_t bytes)
{
	struct job_block *block = calloc(1, sizeof(*block) + bytes);

	if (block == NULL) {
		snprintf(r->error->text, sizeof(r->error->text), "%s: out of memory",
				r->spec->source.name);
		return NULL;
	}
	block->next = r->spec->memory->blocks;
	r->spec->memory->blocks = block;
	return block->bytes;
}

char *job_print(struct job_reader *r, const char *format, ...)
{
	va_list args, again;

	va_start(args, format);
	va_copy(again, args);
	int size = vsnprintf(NULL, 0, format, args);
	char *text = size < 0 ? NULL : job_allocate(r, (size_t)size + 1);
	if (text != NULL)
		vsnprintf(text, (size_t)size + 1, format, again);
	va_end(again);
	va_end(args);
	return text;
}

void job_spec_destroy(struct job_spec *spec)
{
	if (spec == NULL)
		return;
	yaml_tree_destroy(spec->memory->tree);
	while (spec->memory->blocks != NULL) {
		struct job_block *block = spec->memory->blocks;

		spec->memory->blocks = block->next;
		free(block);
	}
	free(spec->memory);
	free(spec);
}

/* ---- mappings ------------------------------------------------------------------------------ */

static int refuse_key(struct job_reader *r, const struct yaml_node *node, const char *known)
{
	char names[256], *cursor = NULL;
	struct nearest near;

	snprintf(names, sizeof(names), "%s", known);
	nearest_begin(&near, node->key);
	for (char *name = strtok_r(names, "|", &cursor); name != NULL;
			name = strtok_r(NULL, "|", &cursor))
		nearest_offer(&near, name);
	const char *best = nearest_best(&near);
	if (best != NULL)
		return config_refuse(r->error, node->key_place, node->key,
				"unknown key; did you mean %s?", best);
	return config_refuse(r->error, node->key_place, node->key,
			"unknown key; expected one of %s", known);
}

static bool is_known(const char *known, const char *key)
{
	size_t size = strlen(key);

	for (const char *at = known; *at != '\0'; at += *at == '|') {
		size_t length = strcspn(at, "|");

		if (length == size && strncmp(at, key, size) == 0)
			return true;
		at += length;
	}
	return false;
}

int job_check_keys(struct job_reader *r, const struct yaml_node *mapping, const char *known)
{
	if (mapping->kind != YAML_MAPPING)
		return config_refuse(r->error, mapping->place, mapping->key,
				"expected a mapping with %s", known);
	for (const struct yaml_node *n = mapping->first; n != NULL; n = n->next) {
		if (!is_known(known, n->key))
			return refuse_key(r, n, known);
		if (yaml_find(mapping, n->key) != n)
			return config_refuse(r->error, n->key_place, n->key,
					"given twice, first at line %d; expected once",
					yaml_find(mapping, n->key)->key_place.line);
	}
	return 0;
}

int job_read_text(struct job_reader *r, const struct yaml_node *mapping, const char *key,
		const struct yaml_node **out)
{
	*out = yaml_find(mapping, key);
	if (*out != NULL && (*out)->kind != YAML_SCALAR)
		return config_refuse(r->error, (*out)->place, key,
				"a list or mapping; expected one value");
	return 0;
}

/* ---- the file ------------------------------------------------------------------------------ */

static int read_name(struct job_reader *r)
{
	const struct yaml_node *name, *id;
	int rc = job_read_text(r, r->root, "name", &name);

	if (rc == 0)
		rc = job_read_text(r, r->root, "id", &id);
	if (rc != 0)
		return rc;
	if (name == NULL)
		return config_refuse(r->error, r->root->place, "name",
				"missing; expected the name of the job");
	size_t size = strlen(name->text);
	bool is_plain = size > 0 && size < JOB_NAME_BYTES_MAX;
	for (size_t i = 0; i < size; i++)
		is_plain = is_plain && (unsigned char)name->text[i] >= ' ' && name->text[i] != 0x7f;
	if (!is_plain)
		return config_refuse(r->error, name->place, "name",
				"expected 1 to %d bytes of text on one line",
				JOB_NAME_BYTES_MAX - 1);
	r->spec->name = name->text;
	r->spec->id = job_id_of_name(name->text);
	if (id != NULL && !id128_parse(id->text, &r->spec->id.id))
		return config_refuse(r->error, id->place, "id",
				"\"%.80s\" is no job id; expected 32 hex digits", id->text);
	return 0;
}

static int read_config(struct job_reader *r)
{
	const struct yaml_node *config = yaml_find(r->root, "config");
	int rc = config == NULL ? 0
				: config_load_node(r->config, config, CONFIG_JOB_FILE, r->error);

	if (rc == 0)
		rc = config_check(r->config, r->error);
	r->spec->key_groups_count = (uint32_t)config_int(r->config, "pipeline.max-parallelism");
	return rc;
}

static int read_job(struct job_reader *r)
{
	int rc = job_check_keys(r, r->root, "name|id|config|vertices|edges");

	if (rc == 0)
		rc = read_name(r);
	if (rc == 0)
		rc = read_config(r);
	if (rc == 0)
		rc = job_read_sets(r);
	if (rc == 0)
		rc = job_read_vertices(r);
	if (rc == 0)
		rc = job_read_edges(r);
	if (rc == 0)
		rc = job_check_shape(r);
	if (rc == 0)
		rc = job_declare(r);
	return rc;
}

/* The spec's own copy of what it is made from. */
static int copy_source(struct job_reader *r, const struct job_source *from)
{
	struct job_source *to = &r->spec->source;
	const char **sets = job_allocate(r, (from->set_count + 1) * sizeof(*sets));
	char *text = job_allocate(r, from->text_bytes + 1);

	to->name = from->name; /* for the message, should memory run out */
	if (sets == NULL || text == NULL)
		return -ENOMEM;
	memcpy(text, from->text, from->text_bytes);
	for (uint32_t i = 0; i < from->set_count; i++) {
		sets[i] = job_print(r, "%s", from->sets[i]);
		if (sets[i] == NULL)
			return -ENOMEM;
	}
	char *name = job_print(r, "%s", from->name);
	char *plugin_dir = job_print(r, "%s", from->plugin_dir);
	if (name == NULL || plugin_dir == NULL)
		return -ENOMEM;
	*to = (struct job_source){.name = name,
			.text = text,
			.text_bytes = from->text_bytes,
			.plugin_dir = plugin_dir,
			.sets = sets,
			.set_count = from->set_count};
	return 0;
}

int job_spec_parse(struct job_spec **out, const struct job_source *source, struct config *config,
		struct config_error *error)
{
	struct job_spec *spec = calloc(1, sizeof(*spec));
	struct job_memory *memory = calloc(1, sizeof(*memory));
	struct job_reader r = {.spec = spec, .config = config, .error = error};

	CHECK(source->plugin_dir[0] == '/');
	if (spec == NULL || memory == NULL) {
		free(spec);
		free(memory);
		snprintf(error->text, sizeof(error->text), "%s: out of memory", source->name);
		return -ENOMEM;
	}
	spec->memory = memory;
	spec->source.name = source->name;
	int rc = yaml_tree_parse(
			&memory->tree, source->name, source->text, source->text_bytes, error);
	if (rc == 0)
		rc = copy_source(&r, source);
	if (rc == 0) {
		r.root = yaml_tree_root(memory->tree);
		rc = read_job(&r);
	}
	if (rc == 0)
		*out = spec;
	else
		job_spec_destroy(spec);
	return rc;
}

int job_source_load(struct job_source *source, const char *path, struct config_error *error)
{
	char *text, *file = realpath(path, NULL); /* a pipe has none */
	int rc = yaml_read_file(path, &text, &source->text_bytes, error);

	if (rc != 0) {
		free(file);
		return rc;
	}
	source->name = path;
	source->text = text;
	source->plugin_dir = file == NULL ? getcwd(NULL, 0) : strdup(dirname(file));
	if (source->plugin_dir == NULL) {
		rc = -errno;
		config_refuse(error, (struct config_place){.source = path}, NULL, "%s",
				strerror(-rc));
		free(text);
	}
	free(file);
	return rc;
}

void job_source_free(struct job_source *source)
{
	free((char *)(uintptr_t)source->text);
	free((char *)(uintptr_t)source->plugin_dir);
}

int job_spec_load(struct job_spec **out, const char *path, const char *const *sets,
		uint32_t set_count, struct config *config, struct config_error *error)
{
	struct job_source source = {.sets = sets, .set_count = set_count};
	int rc = job_source_load(&source, path, error);

	if (rc != 0)
		return rc;
	rc = job_spec_parse(out, &source, config, error);
	job_source_free(&source);
	return rc;
}
