/* job_metadata: a job's checkpoint as `_metadata` describes it, and the other way round. */

#include "control/coordinator/completed_record.h"
#include "control/coordinator/job_master_internal.h"
#include "control/coordinator/job_metadata.h"
#include "control/metadata/metadata.h"
#include "control/restore/restore_fit.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HOOK_NAME "job"

enum { HOOK_VERSION = 1 };

struct job_metadata {
	struct metadata metadata;
	struct metadata_named hook;
	struct metadata_named *coordinators;
	struct metadata_vertex *vertices;
	struct metadata_subtask *subtasks;
	struct metadata_edge *edges;
	struct metadata_override *overrides;
	char **override_texts;
	struct metadata_plugin *plugins;
	const char **sink_directories;
};

const struct metadata *job_metadata_of(const struct job_metadata *m)
{
	return &m->metadata;
}

void job_metadata_destroy(struct job_metadata *m)
{
	if (m == NULL)
		return;
	for (uint32_t i = 0; i < m->metadata.override_count; i++)
		free(m->override_texts[i]);
	free(m->override_texts);
	free(m->coordinators);
	free(m->vertices);
	free(m->subtasks);
	free(m->edges);
	free(m->overrides);
	free(m->plugins);
	free(m->sink_directories);
	free(m);
}

static void *allocate(size_t count, size_t bytes)
{
	void *memory = calloc(count + 1, bytes);

	CHECK(memory != NULL);
	return memory;
}

/* ---- writing ---- */

static void fill_vertices(struct job_metadata *m, const struct job_master *jm,
		const struct pending_checkpoint *pending)
{
	struct metadata_subtask *next = m->subtasks;

	for (uint32_t place = 0; place < jm->spec->vertex_count; place++) {
		const struct job_vertex *v = job_vertex_at(jm, place);
		struct metadata_vertex *to = &m->vertices[place];

		*to = (struct metadata_vertex){
				.uid = v->uid,
				.parallelism = v->parallelism,
				.max_parallelism = jm->spec->key_groups_count,
				.is_finished = pending_checkpoint_is_vertex_finished(
						pending, place),
				.subtasks = next,
		};
		for (uint32_t i = 0; !to->is_finished && i < v->parallelism; i++) {
			uint32_t s = execution_graph_subtask(jm->graph, place, i);
			const struct pending_subtask *from =
					pending_checkpoint_subtask(pending, s);

			*next = (struct metadata_subtask){.index = i};
			next->is_finished = pending_checkpoint_is_subtask_finished(pending, s);
			if (!next->is_finished && from != NULL)
				next->state = (struct metadata_bytes){
						from->state.bytes, from->state.byte_count};
			next++;
		}
		to->subtask_count = (uint32_t)(next - to->subtasks);
	}
	m->metadata.vertex_count = jm->spec->vertex_count;
	m->metadata.vertices = m->vertices;
}

static void fill_coordinators(struct job_metadata *m, const struct job_master *jm,
		const struct pending_checkpoint *pending)
{
	const struct snapshot_state *hook = pending_checkpoint_hook(pending, jm->hook);

	for (uint32_t i = 0; i < jm->files_count; i++) {
		const struct snapshot_state *from =
				pending_checkpoint_coordinator(pending, jm->files[i].index);

		if (from == NULL)
			continue;
		m->coordinators[m->metadata.coordinator_count++] = (struct metadata_named){
				jm->files[i].uid, 1, {from->bytes, from->byte_count}};
	}
	m->metadata.coordinators = m->coordinators;
	if (hook == NULL)
		return;
	m->hook = (struct metadata_named){
			HOOK_NAME, HOOK_VERSION, {hook->bytes, hook->byte_count}};
	m->metadata.master_count = 1;
	m->metadata.masters = &m->hook;
}

/* "UID.PARAM=VALUE" -> key and value. */
static void fill_overrides(struct job_metadata *m, const struct job_master *jm)
{
	const Weir__JobRecord *r = jm->record;

	m->overrides = allocate(r->n_overrides, sizeof(*m->overrides));
	m->override_texts = allocate(r->n_overrides, sizeof(*m->override_texts));
	for (size_t i = 0; i < r->n_overrides; i++) {
		char *text = strdup(r->overrides[i]);
		CHECK(text != NULL);
		char *equals = strchr(text, '=');

		if (equals != NULL)
			*equals = 0;
		m->override_texts[i] = text;
		m->overrides[i] = (struct metadata_override){
				text, equals == NULL ? "" : equals + 1};
	}
	m->metadata.override_count = (uint32_t)r->n_overrides;
	m->metadata.overrides = m->overrides;
}

static void fill_edges(struct job_metadata *m, const struct job_master *jm)
{
	const struct job_spec *spec = jm->spec;

	m->edges = allocate(spec->edge_count, sizeof(*m->edges));
	for (uint32_t i = 0; i < spec->edge_count; i++)
		m->edges[i] = (struct metadata_edge){spec->vertices[spec->edges[i].from].uid,
				spec->vertices[spec->edges[i].to].uid,
				job_partition_name(spec->edges[i].partition)};
	m->metadata.edge_count = spec->edge_count;
	m->metadata.edges = m->edges;
}

static void fill_plugins(struct job_metadata *m, const struct job_master *jm)
{
	const Weir__JobHookState *h = jm->hook_job;

	m->plugins = allocate(h->n_plugins, sizeof(*m->plugins));
	for (size_t i = 0; i < h->n_plugins; i++)
		m->plugins[i] = (struct metadata_plugin){h->plugins[i]->path,
				h->plugins[i]->size, h->plugins[i]->crc};
	m->metadata.plugin_count = (uint32_t)h->n_plugins;
	m->metadata.plugins = m->plugins;
}

static const char *path_of(const struct job_operator *op)
{
	for (uint32_t i = 0; i < op->table->param_count; i++)
		if (strcmp(op->table->params[i].name, "path") == 0)
			return op->values[i].text;
	return NULL;
}

/* Where sinks put what is committed. */
static void fill_sinks(struct job_metadata *m, const struct job_master *jm)
{
	m->sink_directories = allocate(
			VERTICES_COUNT_MAX * CHAIN_OPERATORS_MAX, sizeof(*m->sink_directories));
	for (uint32_t v = 0; v < jm->spec->vertex_count; v++) {
		for (uint32_t i = 0; i < jm->spec->vertices[v].operator_count; i++) {
			const struct job_operator *op = &jm->spec->vertices[v].operators[i];
			const char *path = path_of(op);

			if (op->table->role == WEIR_SINK && path != NULL)
				m->sink_directories[m->metadata.sink_directory_count++] = path;
		}
	}
	m->metadata.sink_directories = m->sink_directories;
}

struct job_metadata *job_metadata_create(
		const struct job_master *jm, const struct pending_checkpoint *pending)
{
	struct job_metadata *m = allocate(1, sizeof(*m));
	const struct checkpoint_properties *p = pending_checkpoint_properties(pending);

	m->metadata = (struct metadata){
			.checkpoint_id = pending_checkpoint_id(pending),
			.job = jm->spec->id,
			.job_name = jm->spec->name,
			.kind = checkpoint_kind_is_savepoint(p->kind) ? METADATA_SAVEPOINT
								      : METADATA_CHECKPOINT,
			.properties = completed_properties_pack(p),
			.triggered_ms = pending_checkpoint_timestamp_ms(pending),
			.completed_ms = clock_wall_ms(),
			.key_group_count = jm->spec->key_groups_count,
			.weir_version = WEIR_VERSION,
			.job_text = jm->record->file_text,
	};
	m->vertices = allocate(jm->spec->vertex_count, sizeof(*m->vertices));
	m->subtasks = allocate(jm->subtask_count, sizeof(*m->subtasks));
	m->coordinators = allocate(jm->files_count, sizeof(*m->coordinators));
	fill_vertices(m, jm, pending);
	fill_coordinators(m, jm, pending);
	fill_edges(m, jm);
	fill_overrides(m, jm);
	fill_plugins(m, jm);
	fill_sinks(m, jm);
	return m;
}

/* ---- restoring ---- */

int job_metadata_check(const struct job_master *jm, const struct metadata *m,
		char text[JOB_TEXT_BYTES])
{
	return restore_fit_check(jm->spec, m,
			config_bool(jm->config, "execution.state-recovery.ignore-unclaimed-state"),
			text);
}

static bool are_same_overrides(const Weir__JobHookState *a, const Weir__JobHookState *b)
{
	if (a->n_overrides != b->n_overrides)
		return false;
	for (size_t i = 0; i < a->n_overrides; i++)
		if (strcmp(a->overrides[i], b->overrides[i]) != 0)
			return false;
	return true;
}

static void tell_plugins(const struct job_master *jm, const Weir__JobHookState *then)
{
	for (size_t i = 0; i < jm->hook_job->n_plugins; i++) {
		const Weir__PluginSum *now = jm->hook_job->plugins[i];
		bool is_known = false, is_same = false;

		for (size_t k = 0; k < then->n_plugins; k++) {
			if (strcmp(then->plugins[k]->path, now->path) != 0)
				continue;
			is_known = true;
			is_same = then->plugins[k]->crc == now->crc &&
					then->plugins[k]->size == now->size;
		}
		if (!is_same)
			log_warn("job_master", "job %s: plug-in %s %s", jm->spec->name, now->path,
					is_known ? "is not the one of the checkpoint"
						 : "is not in the checkpoint");
	}
}

void job_metadata_tell_changes(const struct job_master *jm, const struct metadata *m)
{
	const struct metadata_bytes *bytes = NULL;

	for (uint32_t i = 0; i < m->master_count; i++)
		if (strcmp(m->masters[i].name, HOOK_NAME) == 0)
			bytes = &m->masters[i].bytes;
	Weir__JobHookState *then = bytes == NULL
			? NULL
			: weir__job_hook_state__unpack(NULL, bytes->size, bytes->data);
	if (then == NULL) {
		log_warn("job_master", "job %s: checkpoint %" PRId64 " does not say of which job "
				"file it is", jm->spec->name, m->checkpoint_id);
		return;
	}
	if (strcmp(then->file_text, jm->hook_job->file_text) != 0)
		log_warn("job_master", "job %s: the job file has changed since checkpoint %" PRId64
				" (weir inspect shows that one)", jm->spec->name, m->checkpoint_id);
	if (!are_same_overrides(then, jm->hook_job))
		log_warn("job_master", "job %s: other parameters are set than for checkpoint %"
				PRId64, jm->spec->name, m->checkpoint_id);
	tell_plugins(jm, then);
	weir__job_hook_state__free_unpacked(then, NULL);
}
