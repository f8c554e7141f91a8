#include "control/executor/submission.h"

#include "control/config/job_file.h"
#include "control/proto/message.h"
#include "dataplane/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct submission {
	struct config *config; /* of the job */
	struct job_spec *spec;
	struct deployment deployment;
	char *checkpoint_dir, *restored_dir;
	struct deployment_operator *operators;
	struct deployment_vertex *vertices;
	struct deployment_edge *edges;
	struct deployment_task *tasks;
	struct deployment_peer *peers;
	struct deployment_remote *remotes;
	struct deployment_state *rescaled;
};

void submission_destroy(struct submission *s)
{
	if (s == NULL)
		return;
	free(s->checkpoint_dir);
	free(s->restored_dir);
	free(s->operators);
	free(s->vertices);
	free(s->edges);
	free(s->tasks);
	free(s->peers);
	free(s->remotes);
	free(s->rescaled);
	job_spec_destroy(s->spec);
	config_destroy(s->config);
	free(s);
}

const struct deployment *submission_deployment(const struct submission *s)
{
	return &s->deployment;
}

static int read_job(struct submission *s, const Weir__SubmitTasks *m, const struct config *config,
		struct config_error *error)
{
	int rc = config_clone(config, &s->config);

	for (size_t i = 0; rc == 0 && i < m->n_settings; i++)
		rc = config_set_option(s->config, m->settings[i], error);
	if (rc != 0)
		return rc;
	struct job_source source = {
			.name = m->job_file_name,
			.text = m->job_file,
			.text_bytes = strlen(m->job_file),
			.plugin_dir = m->plugin_dir,
			.sets = (const char *const *)m->overrides,
			.set_count = (uint32_t)m->n_overrides,
	};
	rc = job_spec_parse(&s->spec, &source, s->config, error);
	return rc != 0 ? rc : config_check(s->config, error);
}

static int allocate(struct submission *s, const Weir__SubmitTasks *m)
{
	uint32_t operators = 0;

	for (uint32_t v = 0; v < s->spec->vertex_count; v++)
		operators += s->spec->vertices[v].operator_count;
	s->operators = calloc(operators, sizeof(*s->operators));
	s->vertices = calloc(s->spec->vertex_count, sizeof(*s->vertices));
	s->edges = calloc(s->spec->edge_count + 1, sizeof(*s->edges));
	s->tasks = calloc(m->n_tasks, sizeof(*s->tasks));
	s->peers = calloc(m->n_peers + 1, sizeof(*s->peers));
	s->remotes = calloc(m->n_remote_tasks + 1, sizeof(*s->remotes));
	s->rescaled = calloc(m->n_rescaled_states + 1, sizeof(*s->rescaled));
	s->checkpoint_dir = strdup(m->checkpoint_dir);
	s->restored_dir = m->restored_dir[0] == 0 ? NULL : strdup(m->restored_dir);
	if (s->operators == NULL || s->vertices == NULL || s->edges == NULL || s->tasks == NULL ||
			s->peers == NULL || s->remotes == NULL || s->rescaled == NULL ||
			s->checkpoint_dir == NULL ||
			(m->restored_dir[0] != 0 && s->restored_dir == NULL))
		return -ENOMEM;
	return 0;
}

static void fill_graph(struct submission *s)
{
	static const enum deployment_partition partitions[] = {
			[JOB_FORWARD] = PARTITION_FORWARD,
			[JOB_HASH] = PARTITION_HASH,
			[JOB_REBALANCE] = PARTITION_REBALANCE,
			[JOB_BROADCAST] = PARTITION_BROADCAST,
	};
	const struct job_spec *spec = s->spec;
	struct deployment_operator *op = s->operators;

	for (uint32_t v = 0; v < spec->vertex_count; v++) {
		const struct job_vertex *from = &spec->vertices[v];

		s->vertices[v] = (struct deployment_vertex){
				from->uid, from->parallelism, from->operator_count, op};
		for (uint32_t i = 0; i < from->operator_count; i++)
			*op++ = (struct deployment_operator){from->operators[i].uid,
					from->operators[i].table, from->operators[i].values};
	}
	for (uint32_t i = 0; i < spec->edge_count; i++)
		s->edges[i] = (struct deployment_edge){spec->edges[i].from, spec->edges[i].to,
				partitions[spec->edges[i].partition]};
}

/* The message was made from the same job file, but by another process. */
static int fill_tasks(struct submission *s, const Weir__SubmitTasks *m)
{
	for (size_t i = 0; i < m->n_rescaled_states; i++)
		s->rescaled[i] = (struct deployment_state){
				m->rescaled_states[i].data, m->rescaled_states[i].len};
	for (size_t i = 0; i < m->n_tasks; i++) {
		const Weir__SubmitTask *t = m->tasks[i];

		if (t->vertex >= s->spec->vertex_count ||
				t->subtask_index >= s->spec->vertices[t->vertex].parallelism)
			return -EINVAL;
		s->tasks[i] = (struct deployment_task){t->vertex, t->subtask_index,
				{message_id(&t->attempt)},
				t->state.len == 0 ? NULL : t->state.data, t->state.len,
				t->finished};
	}
	return 0;
}

/* Where the region's other tasks are. */
static int fill_remotes(struct submission *s, const Weir__SubmitTasks *m)
{
	for (size_t i = 0; i < m->n_peers; i++) {
		if (net_address_parse(m->peers[i]->address, &s->peers[i].address) != 0)
			return -EINVAL;
		s->peers[i].token = m->peers[i]->token;
	}
	for (size_t i = 0; i < m->n_remote_tasks; i++) {
		const Weir__RemoteTask *t = m->remote_tasks[i];

		if (t->vertex >= s->spec->vertex_count || t->peer >= m->n_peers ||
				t->subtask_index >= s->spec->vertices[t->vertex].parallelism)
			return -EINVAL;
		s->remotes[i] = (struct deployment_remote){t->vertex, t->subtask_index, t->peer};
	}
	return 0;
}

static uint32_t u32_of(const struct config *c, const char *key)
{
	int64_t value = config_int(c, key);

	CHECK(value >= 0 && value <= UINT32_MAX);
	return (uint32_t)value;
}

#define NETWORK "taskmanager.network.memory."

static void fill_deployment(struct submission *s, const Weir__SubmitTasks *m)
{
	const struct config *c = s->config;
	bool is_timed = config_bool(c, "execution.buffer-timeout.enabled");
	bool is_at_least_once =
			config_is_choice(c, "execution.checkpointing.mode", "AT_LEAST_ONCE");

	s->deployment = (struct deployment){
			.job = s->spec->id,
			.job_name = s->spec->name,
			.key_group_count = s->spec->key_groups_count,
			.channel_credit_count = u32_of(c, NETWORK "max-buffers-per-channel"),
			.channel_queue_count = 2 * u32_of(c, NETWORK "buffers-per-channel"),
			.has_plain_channels = !config_bool(c, "weir.network.control-lane"),
			.buffer_timeout_ns = is_timed ? (uint64_t)config_duration_ns(c,
								"execution.buffer-timeout."
								"interval")
						      : UINT64_MAX,
			.checkpointing = true,
			.is_at_least_once = is_at_least_once,
			.unaligned = !is_at_least_once && /* OP-1 */
					config_bool(c, "execution.checkpointing.unaligned.enabled"),
			.subtasks_per_channel_state_file = u32_of(c,
					"execution.checkpointing.unaligned."
					"max-subtasks-per-channel-state-file"),
			.max_concurrent_checkpoints = u32_of(c,
					"execution.checkpointing.max-concurrent-checkpoints"),
			.state_inline_bytes_max = (uint32_t)config_size(c,
					"execution.checkpointing.data-inline-threshold"),
			.checkpoint_dir = s->checkpoint_dir,
			.restored_checkpoint_id = m->restored_checkpoint_id,
			.restored_dir = s->restored_dir,
			.ignores_unclaimed_state = config_bool(c,
					"execution.state-recovery.ignore-unclaimed-state"),
			.is_leaving = m->leaving,
			.rescaled_count = (uint32_t)m->n_rescaled_states,
			.rescaled = s->rescaled,
			.vertex_count = s->spec->vertex_count,
			.edge_count = s->spec->edge_count,
			.task_count = (uint32_t)m->n_tasks,
			.vertices = s->vertices,
			.edges = s->edges,
			.tasks = s->tasks,
			.peer_count = (uint32_t)m->n_peers,
			.remote_count = (uint32_t)m->n_remote_tasks,
			.peers = s->peers,
			.remotes = s->remotes,
	};
}

int submission_create(struct submission **out, const Weir__SubmitTasks *message,
		const struct config *config, char text[SUBMISSION_TEXT_BYTES])
{
	struct submission *s = calloc(1, sizeof(*s));
	struct config_error error = {"out of memory"};

	if (s == NULL)
		return -ENOMEM;
	int rc = read_job(s, message, config, &error);
	if (rc == 0)
		rc = allocate(s, message);
	if (rc == 0 && !id128_is_equal(s->spec->id.id, message_id(&message->job))) {
		snprintf(error.text, sizeof(error.text), "the job file is not that of the job");
		rc = -EINVAL;
	}
	if (rc == 0) {
		fill_graph(s);
		rc = fill_tasks(s, message);
		if (rc == 0)
			rc = fill_remotes(s, message);
		if (rc != 0)
			snprintf(error.text, sizeof(error.text),
					"a task is not one of the job file's");
	}
	if (rc != 0) {
		snprintf(text, SUBMISSION_TEXT_BYTES, "%s", error.text);
		submission_destroy(s);
		return rc;
	}
	fill_deployment(s, message);
	*out = s;
	return 0;
}
