#pragma once

/*
 * yaml_tree: a YAML document as plain nodes that know their line and column.
 *
 * Place    control/config; yaml_tree.c is the only file that knows libfyaml.
 * Thread   any; no state outside the tree.
 * Memory   the tree owns its nodes and texts; a document is bounded in bytes, nodes and depth.
 * Time     a tenth of a second or so for the longest; empty lines in a row are bounded for it.
 * Errors   0, or -EINVAL (no such YAML: place and reason in the error), -ENOMEM.
 * Life     yaml_tree_parse, read, yaml_tree_destroy.
 *
 * Duplicate keys are kept: the reader knows best what to say about them.  Anchors are read over;
 * an alias is refused, for a small file could otherwise stand for a huge one.
 */

#include "control/config/config_error.h"

#include <stdint.h>

enum { YAML_BYTES_MAX = 1 << 20, YAML_NODES_MAX = 1 << 16, YAML_DEPTH_MAX = 16 };
enum { YAML_GAP_MAX = 100 }; /* empty lines in a row */

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml_node {
	enum yaml_kind kind;
	struct config_place place;     /* of the value */
	struct config_place key_place; /* in a mapping: of the key */
	char *key;		       /* in a mapping */
	char *text;		       /* of a scalar */
	struct yaml_node *first;       /* child of a sequence or mapping */
	struct yaml_node *next;	       /* behind this one, same parent */
	uint32_t count;		       /* of children */
};

struct yaml_tree;

/* `source` is the file name for places; it is copied.  An empty text gives an empty mapping. */
int yaml_tree_parse(struct yaml_tree **out, const char *source, const char *text, size_t size,
		struct config_error *error);

const struct yaml_node *yaml_tree_root(const struct yaml_tree *tree);

/* The first child of a mapping with that key, or NULL. */
const struct yaml_node *yaml_find(const struct yaml_node *mapping, const char *key);

/* NULL is accepted. */
void yaml_tree_destroy(struct yaml_tree *tree);

/* Reads a whole file of at most YAML_BYTES_MAX bytes into memory that the caller frees; a zero
 * follows the last byte.  -errno with a text. */
int yaml_read_file(const char *path, char **text, size_t *size, struct config_error *error);
