#include "control/config/yaml_tree.h"

#include "dataplane/base/check.h"

#include <errno.h>
#include <libfyaml.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nodes live in a list of blocks, so that pointers to them stay good. */
struct block {
	struct block *next;
	uint32_t count;
	struct yaml_node nodes[256];
};

struct yaml_tree {
	char *source;
	struct block *blocks; /* newest first */
	uint32_t node_count;
	struct yaml_node *root;
};

/* One mapping or sequence that is being read. */
struct level {
	struct yaml_node *node, *last;
	char *key; /* read, its value is still to come */
	struct config_place key_place;
};

struct reader {
	struct yaml_tree *tree;
	struct config_error *error;
	struct level levels[YAML_DEPTH_MAX];
	uint32_t depth;
	uint32_t document_count;
};

const struct yaml_node *yaml_tree_root(const struct yaml_tree *tree)
{
	return tree->root;
}

const struct yaml_node *yaml_find(const struct yaml_node *mapping, const char *key)
{
	for (const struct yaml_node *n = mapping->first; n != NULL; n = n->next) {
		if (n->key != NULL && strcmp(n->key, key) == 0)
			return n;
	}
	return NULL;
}

void yaml_tree_destroy(struct yaml_tree *tree)
{
	if (tree == NULL)
		return;
	while (tree->blocks != NULL) {
		struct block *b = tree->blocks;

		tree->blocks = b->next;
		for (uint32_t i = 0; i < b->count; i++) {
			free(b->nodes[i].key);
			free(b->nodes[i].text);
		}
		free(b);
	}
	free(tree->source);
	free(tree);
}

static struct config_place place_of(const struct reader *r, const struct fy_mark *mark)
{
	struct config_place place = {.source = r->tree->source, .line = 1, .column = 1};

	if (mark != NULL) {
		place.line = mark->line + 1;
		place.column = mark->column + 1;
	}
	return place;
}

static int out_of_memory(struct reader *r)
{
	snprintf(r->error->text, sizeof(r->error->text), "%s: out of memory", r->tree->source);
	return -ENOMEM;
}

static struct yaml_node *new_node(struct yaml_tree *tree)
{
	struct block *b = tree->blocks;

	if (b == NULL || b->count == sizeof(b->nodes) / sizeof(b->nodes[0])) {
		b = calloc(1, sizeof(*b));
		if (b == NULL)
			return NULL;
		b->next = tree->blocks;
		tree->blocks = b;
	}
	tree->node_count++;
	return &b->nodes[b->count++];
}

/* Makes a node and hangs it into the level that is open. */
static int add_node(struct reader *r, enum yaml_kind kind, struct config_place place,
		struct yaml_node **out)
{
	struct yaml_tree *tree = r->tree;
	struct level *level = r->depth > 0 ? &r->levels[r->depth - 1] : NULL;

	if (tree->node_count == YAML_NODES_MAX)
		return config_refuse(r->error, place, NULL, "too long; expected at most %d values",
				YAML_NODES_MAX);
	struct yaml_node *node = new_node(tree);
	if (node == NULL)
		return out_of_memory(r);
	node->kind = kind;
	node->place = place;
	*out = node;
	if (level == NULL) {
		tree->root = node;
		return 0;
	}
	node->key = level->key;
	node->key_place = level->key_place;
	level->key = NULL;
	if (level->last == NULL)
		level->node->first = node;
	else
		level->last->next = node;
	level->last = node;
	level->node->count++;
	return 0;
}

static bool wants_key(const struct reader *r)
{
	const struct level *level = r->depth > 0 ? &r->levels[r->depth - 1] : NULL;

	return level != NULL && level->node->kind == YAML_MAPPING && level->key == NULL;
}

static int open_level(struct reader *r, enum yaml_kind kind, struct config_place place)
{
	struct yaml_node *node = NULL;

	if (wants_key(r))
		return config_refuse(r->error, place, NULL,
				"a key is a mapping or a list; expected one word");
	if (r->depth == YAML_DEPTH_MAX)
		return config_refuse(r->error, place, NULL,
				"nested too deep; expected at most %d levels", YAML_DEPTH_MAX);
	int rc = add_node(r, kind, place, &node);
	if (rc == 0)
		r->levels[r->depth++] = (struct level){.node = node};
	return rc;
}

static int take_scalar(struct reader *r, struct fy_token *token, struct config_place place)
{
	size_t size = 0;
	const char *text = token == NULL ? "" : fy_token_get_text(token, &size);
	struct yaml_node *node = NULL;

	if (text == NULL)
		return out_of_memory(r);
	if (memchr(text, '\0', size) != NULL)
		return config_refuse(r->error, place, NULL, "a zero byte; expected text");
	char *copy = strndup(text, size);
	if (copy == NULL)
		return out_of_memory(r);
	if (wants_key(r)) {
		r->levels[r->depth - 1].key = copy;
		r->levels[r->depth - 1].key_place = place;
		return 0;
	}
	int rc = add_node(r, YAML_SCALAR, place, &node);
	if (rc != 0)
		free(copy);
	else
		node->text = copy;
	return rc;
}

static bool is_quoted(struct fy_token *token)
{
	enum fy_scalar_style style = token == NULL ? FYSS_PLAIN : fy_token_scalar_style(token);

	return style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED;
}

/* A value that was left out has no mark: it is where its key is. */
static struct config_place place_of_nothing(const struct reader *r)
{
	const struct level *level = r->depth > 0 ? &r->levels[r->depth - 1] : NULL;

	if (level == NULL)
		return place_of(r, NULL);
	return level->key != NULL ? level->key_place : level->node->place;
}

static int take_event(struct reader *r, struct fy_event *event)
{
	struct config_place place = place_of(r, fy_event_start_mark(event));

	switch (event->type) {
	case FYET_DOCUMENT_START:
		if (r->document_count++ > 0)
			return config_refuse(r->error, place, NULL,
					"a second document; expected one in a file");
		return 0;
	case FYET_MAPPING_START:
		return open_level(r, YAML_MAPPING, place);
	case FYET_SEQUENCE_START:
		return open_level(r, YAML_SEQUENCE, place);
	case FYET_MAPPING_END:
	case FYET_SEQUENCE_END:
		CHECK(r->depth > 0);
		r->depth--;
		return 0;
	case FYET_SCALAR:
		if (fy_event_start_mark(event) == NULL)
			place = place_of_nothing(r);
		if (is_quoted(event->scalar.value))
			place.column--; /* the mark stands behind the quote */
		return take_scalar(r, event->scalar.value, place);
	case FYET_ALIAS:
		place.column--; /* the mark stands behind the star */
		return config_refuse(r->error, place, NULL,
				"an alias (*name); expected the value itself");
	default:
		return 0;
	}
}

/* What libfyaml says about the first thing it could not read. */
static int syntax_error(struct reader *r, struct fy_diag *diag)
{
	void *cursor = NULL;
	struct fy_diag_error *first = fy_diag_errors_iterate(diag, &cursor);
	struct config_place place = {.source = r->tree->source};

	if (first == NULL || first->msg == NULL)
		return config_refuse(r->error, place, NULL, "this is not YAML");
	place.line = first->line > 0 ? first->line : 1;
	place.column = first->column > 0 ? first->column : 1;
	return config_refuse(r->error, place, NULL, "this is not YAML: %.*s",
			(int)strcspn(first->msg, "\n"), first->msg);
}

static int read_events(struct reader *r, struct fy_parser *parser, struct fy_diag *diag)
{
	struct fy_event *event;
	int rc = 0;

	while (rc == 0 && (event = fy_parser_parse(parser)) != NULL) {
		bool is_end = event->type == FYET_STREAM_END;

		rc = take_event(r, event);
		fy_parser_event_free(parser, event);
		if (is_end)
			return rc;
	}
	return rc != 0 ? rc : syntax_error(r, diag);
}

static int parse(struct reader *r, const char *text, size_t size)
{
	struct fy_diag_cfg diag_config;
	struct yaml_node *root = NULL;

	fy_diag_cfg_default(&diag_config);
	diag_config.fp = NULL;
	struct fy_diag *diag = fy_diag_create(&diag_config);
	if (diag == NULL)
		return out_of_memory(r);
	fy_diag_set_collect_errors(diag, true);

	struct fy_parse_cfg config = {.flags = FYPCF_COLLECT_DIAG | FYPCF_QUIET, .diag = diag};
	struct fy_parser *parser = fy_parser_create(&config);
	int rc = parser == NULL ? out_of_memory(r) : 0;
	if (rc == 0 && fy_parser_set_string(parser, text, size) != 0)
		rc = out_of_memory(r);
	if (rc == 0)
		rc = read_events(r, parser, diag);
	if (rc == 0 && r->tree->root == NULL)
		rc = add_node(r, YAML_MAPPING, place_of(r, NULL), &root);
	for (uint32_t i = 0; i < r->depth; i++)
		free(r->levels[i].key);
	if (parser != NULL)
		fy_parser_destroy(parser);
	fy_diag_destroy(diag);
	return rc;
}

/* How many bytes the character at `at` has; 0: this is not UTF-8. */
static size_t character_bytes(const unsigned char *at, size_t left)
{
	size_t bytes = at[0] < 0x80   ? 1
		       : at[0] < 0xc2 ? 0
		       : at[0] < 0xe0 ? 2
		       : at[0] < 0xf0 ? 3
		       : at[0] < 0xf5 ? 4
				      : 0;

	if (bytes > left)
		return 0;
	for (size_t i = 1; i < bytes; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	}
	bool is_overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
	bool is_beyond = (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf4 && at[1] > 0x8f);
	return is_overlong || is_beyond ? 0 : bytes;
}

/* Lines of blanks only in a row, so far. */
struct gap {
	uint32_t breaks;
};

/* False: too many of them. */
static bool gap_takes(struct gap *gap, const char *text, size_t left)
{
	bool is_break = text[0] == '\n' || (text[0] == '\r' && (left == 1 || text[1] != '\n'));

	if (is_break)
		gap->breaks++;
	else if (text[0] != ' ' && text[0] != '\t' && text[0] != '\r')
		gap->breaks = 0;
	return gap->breaks <= YAML_GAP_MAX + 1;
}

/* Plain text, line by line: libfyaml 0.7 goes round in circles on some bytes that are none, and
 * on some directives (%YAML), which a config never needs.  Of n empty lines in a row within a
 * value it takes n * n steps: a minute and more for those of a file. */
static int check_text(struct reader *r, const char *text, size_t size)
{
	struct config_place place = {.source = r->tree->source, .line = 1, .column = 1};
	struct gap gap = {0};

	for (size_t i = 0; i < size;) {
		unsigned char c = (unsigned char)text[i];
		size_t bytes = character_bytes((const unsigned char *)text + i, size - i);

		if (bytes == 0 || c == 0x7f || (c < ' ' && c != '\t' && c != '\n' && c != '\r'))
			return config_refuse(r->error, place, NULL,
					"the byte 0x%02x is no text; expected UTF-8", c);
		if (c == '%' && place.column == 1)
			return config_refuse(r->error, place, NULL,
					"a directive (%%); expected KEY: VALUE");
		if (!gap_takes(&gap, text + i, size - i))
			return config_refuse(r->error, place, NULL,
					"an empty line; expected at most %d in a row",
					YAML_GAP_MAX);
		place.column++;
		if (c == '\n') {
			place.line++;
			place.column = 1;
		}
		i += bytes;
	}
	return 0;
}

int yaml_tree_parse(struct yaml_tree **out, const char *source, const char *text, size_t size,
		struct config_error *error)
{
	struct yaml_tree *tree = calloc(1, sizeof(*tree));
	struct reader r = {.tree = tree, .error = error};
	struct config_place whole = {.source = source};
	int rc = 0;

	if (tree == NULL || (tree->source = strdup(source)) == NULL) {
		free(tree);
		snprintf(error->text, sizeof(error->text), "%s: out of memory", source);
		return -ENOMEM;
	}
	if (size > YAML_BYTES_MAX)
		rc = config_refuse(error, whole, NULL, "too long; expected at most %d bytes",
				YAML_BYTES_MAX);
	else
		rc = check_text(&r, text, size);
	if (rc == 0)
		rc = parse(&r, text, size);
	if (rc != 0) {
		yaml_tree_destroy(tree);
		return rc;
	}
	*out = tree;
	return 0;
}

int yaml_read_file(const char *path, char **text, size_t *size, struct config_error *error)
{
	struct config_place whole = {.source = path};
	FILE *file = fopen(path, "re");
	char *bytes = file == NULL ? NULL : malloc(YAML_BYTES_MAX + 2);

	if (bytes == NULL) {
		int rc = -errno;

		config_refuse(error, whole, NULL, "%s", strerror(-rc));
		if (file != NULL)
			fclose(file);
		return rc;
	}
	errno = 0;
	*size = fread(bytes, 1, YAML_BYTES_MAX + 1, file);
	int rc = ferror(file) ? -errno : 0;
	fclose(file);
	if (rc != 0)
		config_refuse(error, whole, NULL, "%s", strerror(-rc));
	else if (*size > YAML_BYTES_MAX)
		rc = config_refuse(error, whole, NULL, "too long; expected at most %d bytes",
				YAML_BYTES_MAX);
	if (rc != 0) {
		free(bytes);
		return rc;
	}
	bytes[*size] = '\0';
	*text = bytes;
	return 0;
}
