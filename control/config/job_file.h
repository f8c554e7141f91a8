#pragma once

/*
 * job_file: a job as its file describes it, checked as far as it can be without running it.
 *
 * Place    control/config; `weir`, the coordinator and each TaskManager read the same text.
 * Thread   control thread; plug-ins are opened and `declare` of each operator is called.
 * Memory   the spec owns all it points to, except operator tables, which live for ever.
 * Errors   0, -EINVAL (one mistake: file, line, column, key, what was expected), -errno of the
 *          file, -ENOMEM.
 * Life     job_spec_load or job_spec_parse, read, job_spec_destroy.
 *
 * A spec keeps its text, overrides and the folder where relative plug-in paths start, so that
 * another process can build the same spec from them.  Other relative paths (of sources and sinks)
 * are those of the working directory and stay as they were written.
 */

#include "control/config/config.h"
#include "dataplane/base/ids.h"

enum { JOB_NAME_BYTES_MAX = 128 };

/* To subtask i from subtask i; by the key; to each in turn; to all of them. */
enum job_partition { JOB_FORWARD, JOB_HASH, JOB_REBALANCE, JOB_BROADCAST };

struct job_operator {
	const char *uid; /* UID_BYTES_MAX with its zero; unique among the operators of the job */
	const struct weir_operator *table;
	const char *plugin;		  /* absolute path; NULL: built in */
	struct weir_value *values;	  /* table->param_count, in the order of the table */
	uint32_t in_record_bytes;	  /* what comes in; 0: variable, or a source */
	struct weir_declaration declared; /* of subtask 0 */
	const struct yaml_node *node;	  /* where it stands */
};

struct job_vertex {
	const char *uid; /* unique among the vertices */
	uint32_t parallelism;
	uint32_t operator_count; /* 1..CHAIN_OPERATORS_MAX, in the order of the chain */
	struct job_operator *operators;
	uint32_t in_count, out_count; /* edges */
	const struct yaml_node *node;
};

struct job_edge {
	uint32_t from, to; /* indexes of vertices */
	enum job_partition partition;
	const struct yaml_node *node;
};

/* What a spec is made from. */
struct job_source {
	const char *name; /* of the file, for messages */
	const char *text;
	size_t text_bytes;
	const char *plugin_dir;	 /* where relative plug-in paths start; absolute */
	const char *const *sets; /* "UID.PARAM=VALUE"; of two for one parameter the last holds */
	uint32_t set_count;
};

struct job_memory;

struct job_spec {
	const char *name;
	struct job_id id; /* of the name, unless given */
	uint32_t key_groups_count;
	uint32_t vertex_count, edge_count;
	struct job_vertex *vertices;
	struct job_edge *edges;
	uint32_t *order; /* vertices, each behind all that feed it */
	struct job_source source;
	struct job_memory *memory;
};

/* `config:` of the file is added to `config` with the rank of a job file; parallelism.default and
 * pipeline.max-parallelism are then read from it. */
int job_spec_parse(struct job_spec **out, const struct job_source *source, struct config *config,
		struct config_error *error);

/* Reads the file: `text` and `plugin_dir`, its folder (of a pipe: this one), are then allocated.
 * `path` is borrowed; what else the source holds stays. */
int job_source_load(struct job_source *source, const char *path, struct config_error *error);
void job_source_free(struct job_source *source);

/* The same, and the spec made from it. */
int job_spec_load(struct job_spec **out, const char *path, const char *const *sets,
		uint32_t set_count, struct config *config, struct config_error *error);

/* NULL is accepted. */
void job_spec_destroy(struct job_spec *spec);

/* The operator with that uid, and its vertex through `vertex` unless NULL; NULL: there is none. */
const struct job_operator *job_spec_find(
		const struct job_spec *spec, const char *uid, const struct job_vertex **vertex);

/* The operator that makes what leaves a vertex. */
const struct job_operator *job_vertex_last(const struct job_vertex *vertex);

/* The identity that a job has by its name. */
struct job_id job_id_of_name(const char *name);

const char *job_partition_name(enum job_partition partition);
