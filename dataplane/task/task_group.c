#include "dataplane/task/task_group.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/base/check.h"
#include "dataplane/checkpoint/state_writer.h"
#include "dataplane/checkpoint/store.h"
#include "dataplane/checkpoint/task_state.h"
#include "dataplane/task/finished_task.h"
#include "dataplane/task/task_group_in_flight.h"
#include "dataplane/task/task_group_internal.h"
#include "dataplane/task/worker.h"

enum { STATE_ALIGN_BYTES = 4096 };

/* ---- plan ---- */

static const struct deployment_vertex *vertex_of(const struct task_group *g, const struct task *t)
{
	return &g->config.deployment->vertices[t->vertex];
}

/* What the operator at the head of a vertex is handed; 0 for a source. */
static uint32_t in_record_bytes(const struct task_group *g, uint32_t vertex)
{
	const struct deployment *d = g->config.deployment;

	for (uint32_t i = 0; i < d->edge_count; i++) {
		if (d->edges[i].to == vertex)
			return g->tails[d->edges[i].from].out_record_bytes;
	}
	return 0;
}

/* Fills `operators` for one subtask; the declaration of its tail is kept for its edges. */
static int declare_subtask(struct task_group *g, uint32_t vertex, uint32_t subtask_index,
		struct chain_operator_config operators[CHAIN_OPERATORS_MAX],
		char error[TASKMANAGER_ERROR_BYTES])
{
	const struct deployment_vertex *v = &g->config.deployment->vertices[vertex];

	CHECK(v->operator_count >= 1 && v->operator_count <= CHAIN_OPERATORS_MAX);
	for (uint32_t i = 0; i < v->operator_count; i++)
		operators[i] = (struct chain_operator_config){
			.op = v->operators[i].op,
			.uid = v->operators[i].uid,
			.values = v->operators[i].values,
		};
	int status = chain_declare(operators, v->operator_count, subtask_index, v->parallelism,
			in_record_bytes(g, vertex), error);
	if (status == 0)
		g->tails[vertex] = operators[v->operator_count - 1].declaration;
	return status;
}

static bool is_source(const struct task_group *g, uint32_t vertex)
{
	const struct deployment *d = g->config.deployment;

	for (uint32_t i = 0; i < d->edge_count; i++) {
		if (d->edges[i].to == vertex)
			return false;
	}
	return true;
}

/* What one task runs: the operators of its vertex, or what stands in for finished ones. */
static int declare_task(struct task_group *g, const struct task *t,
		struct chain_operator_config operators[CHAIN_OPERATORS_MAX],
		char error[TASKMANAGER_ERROR_BYTES])
{
	const struct deployment_vertex *v = vertex_of(g, t);

	if (!t->is_finished_on_restore)
		return declare_subtask(g, t->vertex, t->subtask_index, operators, error);
	operators[0] = (struct chain_operator_config){
		.op = finished_task_operator(is_source(g, t->vertex)),
		.uid = v->operators[0].uid,
	};
	/* Its edges are those of the operators it stands in for. */
	return chain_declare(operators, 1, t->subtask_index, v->parallelism,
			g->tails[t->vertex].out_record_bytes, error);
}

/* Records are known from the sources on; the graph has no cycles, so as many rounds as there are
 * vertices reach the last one. */
static int declare_vertices(struct task_group *g, char error[TASKMANAGER_ERROR_BYTES])
{
	const struct deployment *d = g->config.deployment;
	struct chain_operator_config operators[CHAIN_OPERATORS_MAX];

	for (uint32_t round = 0; round < d->vertex_count; round++) {
		for (uint32_t v = 0; v < d->vertex_count; v++) {
			int status = declare_subtask(g, v, 0, operators, error);

			if (status != 0 && round + 1 == d->vertex_count)
				return status;
		}
	}
	return 0;
}

/* One more than the checkpoints that there may be: an aligned savepoint is forced, and waits for
 * none of them (RD-4, TR-3). */
static uint32_t snapshots_max(const struct deployment *d)
{
	uint32_t count = d->max_concurrent_checkpoints + (d->unaligned ? 0 : 1);

	return count < CHECKPOINTS_IN_FLIGHT_MAX ? count : CHECKPOINTS_IN_FLIGHT_MAX;
}

static struct chain_config chain_config_of(struct task_group *g, struct task *t,
		const struct chain_operator_config *operators)
{
	const struct deployment *d = g->config.deployment;
	const struct deployment_vertex *v = vertex_of(g, t);

	return (struct chain_config){
		.operators = operators,
		.operator_count = t->operator_count,
		.outputs = t->outputs,
		.output_count = t->output_count,
		.job_id = g->job_text,
		.attempt_id = t->attempt_text,
		.subtask_index = t->subtask_index,
		.parallelism = v->parallelism,
		.group_count = d->key_group_count,
		.groups = key_group_range_of(t->subtask_index, v->parallelism, d->key_group_count),
		.snapshots_max = snapshots_max(d),
		.restored_checkpoint_id = d->restored_checkpoint_id,
		.checkpointing = d->checkpointing,
		.files = &t->file_port,
		.events = &t->events,
		.journals = &t->journal_port,
		.ports = g->config.packet_ports,
	};
}

static bool has_files(const struct task_group *g, const struct task *t)
{
	const struct deployment_vertex *v = vertex_of(g, t);

	return !t->is_finished_on_restore &&
			v->operators[v->operator_count - 1].op->role == WEIR_SINK;
}

/* One more than checkpoints at a time, as Flink has threads for them: one that was given up keeps
 * its writer until its requests have come back from the disk. */
static uint32_t writer_count_of(const struct task_group *g)
{
	return g->config.deployment->max_concurrent_checkpoints + 1;
}

static struct state_writer_config writer_config_of(
		struct task_group *g, struct task *t, uint32_t index)
{
	const struct deployment *d = g->config.deployment;
	const struct deployment_vertex *v = vertex_of(g, t);

	return (struct state_writer_config){
		.store = t->writer_stores[index],
		.vertex_uid = v->uid,
		.subtask_index = t->subtask_index,
		.parallelism = v->parallelism,
		.attempt = t->attempt,
		.group_count = d->key_group_count,
		.inline_bytes_max = d->state_inline_bytes_max,
		.state_count = t->state_count,
		.states = t->states,
	};
}

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + STATE_ALIGN_BYTES - 1) & ~(uint64_t)(STATE_ALIGN_BYTES - 1);
}

static struct declared_state declared_of(const struct chain_state *s)
{
	return (struct declared_state){
		.uid = s->uid,
		.name = s->name,
		.kind = s->kind,
		.key_bytes = s->key_bytes,
		.value_bytes = s->value_bytes,
		.version = s->version,
		.capacity = s->capacity,
		.memory = s->memory,
		.list_count = s->list_count,
		.keyed = s->keyed,
		.rescale = s->rescale,
		.is_counters = s->is_counters,
		.xor_counters = s->xor_counters,
		.own_counters = s->own_counters,
	};
}

/* What the states will look like, before their memory is there: enough for the writer to say how
 * much it needs. */
static int declare_states(struct task *t, const struct chain_operator_config *operators,
		uint32_t count)
{
	t->states = calloc(TASK_STATE_HANDLES_MAX, sizeof(t->states[0]));
	if (t->states == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		const struct weir_declaration *d = &operators[i].declaration;
		struct chain_state counters = chain_counters_state(operators[i].uid);

		t->states[t->state_count++] = declared_of(&counters);
		for (uint32_t k = 0; k < d->state_count; k++) {
			const struct weir_state *s = &d->states[k];
			struct chain_state state = {
				.uid = operators[i].uid,
				.name = s->name,
				.kind = s->kind,
				.key_bytes = s->key_bytes,
				.value_bytes = s->value_bytes,
				.version = s->version,
				.capacity = s->capacity,
			};

			t->states[t->state_count++] = declared_of(&state);
		}
	}
	return 0;
}

static int plan_task(struct task_group *g, uint32_t index, uint64_t *bytes,
		char error[TASKMANAGER_ERROR_BYTES])
{
	struct chain_operator_config operators[CHAIN_OPERATORS_MAX];
	struct task *t = &g->tasks[index];
	uint32_t count = t->is_finished_on_restore ? 1 : vertex_of(g, t)->operator_count;

	t->operator_count = count;
	int status = declare_task(g, t, operators, error);
	if (status != 0)
		return status;
	struct chain_config chain = chain_config_of(g, t, operators);
	uint64_t chain_bytes = chain_memory_bytes(&chain, error);
	if (chain_bytes == UINT64_MAX)
		return -ENOMEM;
	status = declare_states(t, operators, count);
	if (status != 0)
		return status;
	struct state_writer_config writer = writer_config_of(g, t, 0);
	uint64_t writer_bytes = state_writer_memory_bytes(&writer);
	t->writer_count = writer_count_of(g);
	if (writer_bytes == 0) {
		snprintf(error, TASKMANAGER_ERROR_BYTES,
				"vertex %s: its states cannot be written: too many, or names too "
				"long",
				vertex_of(g, t)->uid);
		return -EINVAL;
	}
	g->plans[index] = (struct task_plan){
		.chain_bytes = chain_bytes,
		.writer_bytes = t->writer_count * round_up(writer_bytes),
		.files_bytes = has_files(g, t) ? round_up(operator_files_memory_bytes()) : 0,
	};
	*bytes += g->plans[index].chain_bytes + g->plans[index].writer_bytes +
			g->plans[index].files_bytes;
	return 0;
}

static void init_task(struct task_group *g, uint32_t index)
{
	const struct deployment_task *d = &g->config.deployment->tasks[index];
	struct task *t = &g->tasks[index];

	t->attempt = d->attempt;
	id128_print(t->attempt.id, t->attempt_text);
	t->vertex = d->vertex;
	t->subtask_index = d->subtask_index;
	t->is_finished_on_restore = d->is_finished;
	t->status = TASK_DEPLOYING;
	t->group = g;
	t->roll = &g->roll;
	/* Subtask i of every vertex shares a worker: a forward edge stays on its core. */
	worker_adopt(g->config.workers[d->subtask_index % g->config.worker_count], t);
	atomic_init(&t->is_detached, true);
}

int task_group_plan(struct task_group **out, const struct task_group_config *config,
		struct task_group_need *need, char error[TASKMANAGER_ERROR_BYTES])
{
	const struct deployment *d = config->deployment;
	struct task_group *g = calloc(1, sizeof(*g) + d->task_count * sizeof(g->tasks[0]));

	if (g == NULL)
		return -ENOMEM;
	g->config = *config;
	id128_print(d->job.id, g->job_text);
	g->task_count = d->task_count;
	snprintf(g->checkpoint_dir, sizeof(g->checkpoint_dir), "%s", d->checkpoint_dir);
	g->plans = calloc(d->task_count, sizeof(g->plans[0]));
	g->tails = calloc(d->vertex_count, sizeof(g->tails[0]));
	for (uint32_t i = 0; i < d->task_count; i++)
		init_task(g, i);
	int status = g->plans == NULL || g->tails == NULL ? -ENOMEM
							  : savepoint_locations_create(
									    &g->locations);
	if (status == 0)
		status = declare_vertices(g, error);
	for (uint32_t i = 0; status == 0 && i < d->task_count; i++)
		status = plan_task(g, i, &g->memory_bytes, error);
	if (status == 0)
		status = task_group_plan_channels(g, error);
	if (status == 0)
		status = task_group_plan_in_flight(g, &g->memory_bytes);
	if (status != 0) {
		task_group_destroy(g);
		return status;
	}
	need->state_bytes = g->memory_bytes;
	need->buffer_count = g->buffer_count;
	*out = g;
	return 0;
}

/* ---- build ---- */

/* The states as they lie in the chain now. */
static void place_states(struct task *t)
{
	CHECK(t->state_count == chain_state_count(t->chain));
	for (uint32_t i = 0; i < t->state_count; i++) {
		struct chain_state s = chain_state_at(t->chain, i);

		t->states[i] = declared_of(&s);
	}
}

static bool file_open(struct file_port *port, const char *path, weir_file *file)
{
	return operator_files_open(task_of_files(port)->files, path, file);
}

static bool file_write(struct file_port *port, weir_file file, const void *data, size_t bytes)
{
	return operator_files_write(task_of_files(port)->files, file, data, bytes);
}

static void file_close(struct file_port *port, weir_file file)
{
	operator_files_close(task_of_files(port)->files, file);
}

static bool file_publish(struct file_port *port, uint32_t operator_index, const char *from,
		const char *to, uint64_t tag)
{
	return operator_files_publish(
			task_of_files(port)->files, operator_index, from, to, tag);
}

static int build_stream(struct task_group *g, struct task *t)
{
	const struct deployment *d = g->config.deployment;
	struct stream_task_config config = {
		.chain = t->chain,
		.inputs = t->inputs,
		.input_count = t->input_count,
		.outputs = t->outputs,
		.output_count = t->output_count,
		.writers = t->writers,
		.writer_count = t->writer_count,
		.files = t->files,
		.channel_state = t->channel_state,
		.reporter = &t->reporter,
		.clock = g->config.clock,
		.checkpoint_dir = g->checkpoint_dir,
		.locations = g->locations,
		.restored_checkpoint_id = d->restored_checkpoint_id,
		.is_leaving = d->is_leaving,
		.max_concurrent = d->max_concurrent_checkpoints,
		.checkpointing = d->checkpointing,
		.has_finished_tasks = true,
		.is_at_least_once = d->is_at_least_once,
	};

	return stream_task_create(&t->stream, &config);
}

static int attach_stores(struct task *t, bool has_files)
{
	struct store_share *share = worker_store_share(t->worker);

	for (uint32_t i = 0; i < t->writer_count; i++) {
		t->writer_stores[i] = store_share_attach(share);
		if (t->writer_stores[i] == NULL)
			return -EMFILE;
	}
	if (has_files)
		t->files_store = store_share_attach(share);
	return has_files && t->files_store == NULL ? -EMFILE : 0;
}

static void build_writers(struct task_group *g, struct task *t, const struct task_plan *plan,
		uint8_t *memory)
{
	for (uint32_t i = 0; i < t->writer_count; i++) {
		struct state_writer_config config = writer_config_of(g, t, i);

		t->writers[i] = state_writer_create_at(
				memory + i * (plan->writer_bytes / t->writer_count), &config);
	}
}

static int build_task(struct task_group *g, uint32_t index, uint8_t *memory,
		char error[TASKMANAGER_ERROR_BYTES])
{
	struct chain_operator_config operators[CHAIN_OPERATORS_MAX];
	const struct task_plan *plan = &g->plans[index];
	struct task *t = &g->tasks[index];

	t->file_port = (struct file_port){file_open, file_write, file_close, file_publish};
	t->journal_port = task_group_journal_port();
	int status = attach_stores(t, plan->files_bytes > 0);
	if (status == 0)
		status = declare_task(g, t, operators, error);
	if (status == 0)
		status = task_group_build_gates(g, t, error);
	if (status != 0)
		return status;
	struct chain_config chain = chain_config_of(g, t, operators);
	status = chain_create_at(&t->chain, memory, &chain);
	if (status != 0)
		return status;
	place_states(t);
	build_writers(g, t, plan, memory + plan->chain_bytes);
	if (plan->files_bytes > 0)
		t->files = operator_files_create_at(
				memory + plan->chain_bytes + plan->writer_bytes, t->files_store);
	status = task_group_restore_task(g, index, error);
	return status != 0 ? status : build_stream(g, t);
}

static int open_task(struct task *t, char error[TASKMANAGER_ERROR_BYTES])
{
	int status = chain_open(t->chain);

	if (status != 0)
		snprintf(error, TASKMANAGER_ERROR_BYTES, "%s", chain_failure(t->chain));
	else
		stream_task_give_journal(t->stream, t->journal);
	return status;
}

int task_group_build(struct task_group *g, void *memory, char error[TASKMANAGER_ERROR_BYTES])
{
	uint8_t *at = memory;
	int status;

	error[0] = '\0';
	status = task_group_build_channels(g, error);
	if (status == 0)
		status = task_group_decode_rescaled(g, error);

	for (uint32_t i = 0; i < g->task_count; i++)
		at += g->plans[i].chain_bytes + g->plans[i].writer_bytes + g->plans[i].files_bytes;
	if (status == 0)
		status = task_group_build_in_flight(g, at, error);
	at = memory;
	g->memory = memory;
	for (uint32_t i = 0; status == 0 && i < g->task_count; i++) {
		status = build_task(g, i, at, error);
		at += g->plans[i].chain_bytes + g->plans[i].writer_bytes + g->plans[i].files_bytes;
	}
	if (status == 0)
		status = task_group_restore_in_flight(g, error);
	if (status == 0)
		status = task_group_build_links(g, error);
	for (uint32_t i = 0; status == 0 && i < g->task_count; i++)
		status = open_task(&g->tasks[i], error);
	if (status != 0 && error[0] == '\0')
		snprintf(error, TASKMANAGER_ERROR_BYTES, "the tasks were not built: %s",
				strerror(-status));
	task_group_free_rescaled(g);
	/* The deployment was borrowed until here. */
	g->config.deployment = NULL;
	return status;
}

void task_group_attach(struct task_group *g)
{
	task_group_start_links(g);
	for (uint32_t i = 0; i < g->task_count; i++) {
		struct task *t = &g->tasks[i];
		struct mail *m = calloc(1, sizeof(*m));

		CHECK(m != NULL);
		m->kind = MAIL_ATTACH;
		m->task = t;
		atomic_store(&t->is_detached, false);
		t->status = TASK_INITIALIZING;
		CHECK(worker_post(t->worker, m));
	}
}

/* ---- questions, end ---- */

uint32_t task_group_task_count(const struct task_group *g)
{
	return g->task_count;
}

struct task *task_group_task(struct task_group *g, uint32_t index)
{
	CHECK(index < g->task_count);
	return &g->tasks[index];
}

int task_group_locate_savepoint(struct task_group *g, int64_t savepoint_id, const char *path)
{
	return savepoint_locations_put(g->locations, savepoint_id, path);
}

void *task_group_memory(const struct task_group *g, uint64_t *bytes)
{
	*bytes = g->memory_bytes;
	return g->memory;
}

uint64_t task_group_buffer_count(const struct task_group *g)
{
	return g->buffer_count;
}

bool task_group_has_ended(const struct task_group *g)
{
	for (uint32_t i = 0; i < g->task_count; i++) {
		if (task_is_alive(&g->tasks[i]))
			return false;
	}
	return true;
}

bool task_group_is_over(struct task_group *g)
{
	for (uint32_t i = 0; i < g->task_count; i++) {
		const struct task *t = &g->tasks[i];

		if (task_is_alive(t) || t->mail_count > 0 ||
				!atomic_load_explicit(&t->is_detached, memory_order_acquire))
			return false;
	}
	return task_group_end_links(g);
}

static void destroy_task(struct task *t)
{
	if (t->chain != NULL)
		chain_close(t->chain);
	stream_task_destroy(t->stream);
	chain_destroy(t->chain);
	for (uint32_t i = 0; i < t->input_count; i++)
		input_gate_destroy(t->inputs[i]);
	for (uint32_t i = 0; i < t->output_count; i++)
		output_gate_destroy(t->outputs[i]);
	for (uint32_t i = 0; i < t->writer_count; i++)
		store_destroy(t->writer_stores[i]);
	store_destroy(t->files_store);
	free(t->states);
}

void task_group_destroy(struct task_group *g)
{
	if (g == NULL)
		return;
	for (uint32_t i = 0; i < g->task_count; i++)
		destroy_task(&g->tasks[i]);
	task_group_destroy_in_flight(g);
	task_group_destroy_links(g);
	task_group_destroy_channels(g);
	free(g->plans);
	free(g->tails);
	savepoint_locations_destroy(g->locations);
	free(g);
}
