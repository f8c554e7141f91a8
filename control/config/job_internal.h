#pragma once

/* job_internal: what the files of job_file.h share. */

#include "control/config/job_file.h"
#include "control/config/yaml_tree.h"
#include "dataplane/base/limits.h"

/* One --set, taken apart. */
struct job_set {
	char uid[UID_BYTES_MAX];
	const char *param; /* in the memory of the spec */
	const char *text;
};

struct job_reader {
	struct job_spec *spec;
	const struct yaml_node *root;
	struct config *config;
	struct config_error *error;
	struct job_set *sets; /* spec->source.set_count */
};

/* Zeroed memory that lives as long as the spec; NULL after an error that is in `r`. */
void *job_allocate(struct job_reader *r, size_t bytes);
char *job_print(struct job_reader *r, const char *format, ...)
		__attribute__((format(printf, 2, 3)));

/* The texts of "UID.PARAM=VALUE" (job_sets.c). */
int job_read_sets(struct job_reader *r);
/* Each --set has an operator or a vertex it is for. */
int job_check_sets(struct job_reader *r);
/* The text of --set UID.PARAM, or NULL. */
const char *job_find_set(const struct job_reader *r, const char *uid, const char *param);

/* Vertices, their operators and parameters (job_vertices.c). */
int job_read_vertices(struct job_reader *r);

/* Edges, and the shape of the graph (job_edges.c). */
int job_read_edges(struct job_reader *r);
int job_check_shape(struct job_reader *r);

/* What each operator declares, and whether neighbours fit (job_declare.c). */
int job_declare(struct job_reader *r);

/* Only known keys, each once: `known` is "a|b". */
int job_check_keys(struct job_reader *r, const struct yaml_node *mapping, const char *known);
/* A scalar of a mapping; NULL with no error when it is not there. */
int job_read_text(struct job_reader *r, const struct yaml_node *mapping, const char *key,
		const struct yaml_node **out);
/* The vertex of that uid; false: there is none. */
bool job_find_vertex(const struct job_spec *spec, const char *uid, uint32_t *index);

struct config_place job_set_place(void);
