#include "control/coordinator/pending_checkpoint.h"

#include "control/coordinator/heap.h"
#include "dataplane/base/check.h"

#include <stdlib.h>

struct subtask_slot {
	bool is_acknowledged;
	struct pending_subtask content;
};

struct party_slot { /* an operator coordinator or a master hook */
	bool is_acknowledged;
	struct snapshot_state state;
};

enum life { COLLECTING, FINALISED, ABORTED };

struct pending_checkpoint {
	uint32_t references;
	enum life life;
	struct pending_config config;
	struct checkpoint_plan *plan;
	char *location;
	uint32_t awaited_count, coordinators_out, hooks_out;
	struct subtask_slot *subtasks;
	bool *is_vertex_finished; /* before, or restored as finished */
	struct party_slot *coordinators, *hooks;
};

void pending_checkpoint_create(struct pending_checkpoint **out,
		const struct pending_config *config, struct checkpoint_plan *plan)
{
	struct pending_checkpoint *p = heap_zeroed(1, sizeof(*p));

	CHECK(config->id > 0);
	CHECK(plan->wait_count > 0); /* PC-1 */
	p->references = 1;
	p->config = *config;
	p->plan = plan;
	p->awaited_count = plan->wait_count;
	p->coordinators_out = config->coordinator_count;
	p->hooks_out = config->hook_count;
	p->subtasks = heap_zeroed(plan->subtask_count, sizeof(*p->subtasks));
	p->is_vertex_finished =
			heap_copy(plan->is_vertex_finished, plan->vertex_count, sizeof(bool));
	p->coordinators = heap_zeroed(config->coordinator_count, sizeof(*p->coordinators));
	p->hooks = heap_zeroed(config->hook_count, sizeof(*p->hooks));
	*out = p;
}

static void clear_states(struct pending_checkpoint *p)
{
	for (uint32_t i = 0; i < p->plan->subtask_count; i++)
		snapshot_state_clear(&p->subtasks[i].content.state);
	for (uint32_t i = 0; i < p->config.coordinator_count; i++)
		snapshot_state_clear(&p->coordinators[i].state);
	for (uint32_t i = 0; i < p->config.hook_count; i++)
		snapshot_state_clear(&p->hooks[i].state);
}

void pending_checkpoint_retain(struct pending_checkpoint *p)
{
	p->references++;
}

void pending_checkpoint_release(struct pending_checkpoint *p)
{
	if (p == NULL)
		return;
	CHECK(p->references > 0);
	if (--p->references > 0)
		return;
	clear_states(p);
	free(p->subtasks);
	free(p->is_vertex_finished);
	free(p->coordinators);
	free(p->hooks);
	checkpoint_plan_destroy(p->plan);
	free(p->location);
	free(p);
}

int64_t pending_checkpoint_id(const struct pending_checkpoint *p)
{
	return p->config.id;
}

int64_t pending_checkpoint_timestamp_ms(const struct pending_checkpoint *p)
{
	return p->config.timestamp_ms;
}

const struct checkpoint_properties *pending_checkpoint_properties(
		const struct pending_checkpoint *p)
{
	return &p->config.properties;
}

const struct checkpoint_plan *pending_checkpoint_plan(const struct pending_checkpoint *p)
{
	return p->plan;
}

const char *pending_checkpoint_location(const struct pending_checkpoint *p)
{
	return p->location;
}

const struct pending_subtask *pending_checkpoint_subtask(
		const struct pending_checkpoint *p, uint32_t subtask)
{
	CHECK(subtask < p->plan->subtask_count);
	return p->subtasks[subtask].is_acknowledged ? &p->subtasks[subtask].content : NULL;
}

bool pending_checkpoint_is_subtask_finished(const struct pending_checkpoint *p, uint32_t subtask)
{
	CHECK(subtask < p->plan->subtask_count);
	return p->plan->is_finished[subtask] ||
			p->subtasks[subtask].content.finish ==
					FINISH_SUBTASK_RESTORED_AS_FINISHED ||
			pending_checkpoint_is_vertex_finished(
					p, execution_graph_vertex_of(p->plan->graph, subtask));
}

bool pending_checkpoint_is_vertex_finished(const struct pending_checkpoint *p, uint32_t vertex)
{
	CHECK(vertex < p->plan->vertex_count);
	return p->is_vertex_finished[vertex];
}

static const struct snapshot_state *stored(const struct party_slot *slot)
{
	bool is_stored = slot->is_acknowledged && !snapshot_state_is_empty(&slot->state);

	return is_stored ? &slot->state : NULL;
}

const struct snapshot_state *pending_checkpoint_coordinator(
		const struct pending_checkpoint *p, uint32_t index)
{
	CHECK(index < p->config.coordinator_count);

	uint32_t vertex = p->config.coordinator_vertices[index];

	if (vertex != UINT32_MAX && pending_checkpoint_is_vertex_finished(p, vertex))
		return NULL;
	return stored(&p->coordinators[index]);
}

const struct snapshot_state *pending_checkpoint_hook(
		const struct pending_checkpoint *p, uint32_t index)
{
	CHECK(index < p->config.hook_count);
	return stored(&p->hooks[index]);
}

enum acknowledge_result pending_checkpoint_acknowledge(
		struct pending_checkpoint *p, struct acknowledgement *a)
{
	if (p->life != COLLECTING)
		return ACK_DISCARDED;
	if (a->subtask >= p->plan->subtask_count || !p->plan->is_waited[a->subtask] ||
			!id128_is_equal(p->plan->attempts[a->subtask].id, a->attempt.id))
		return ACK_UNKNOWN;

	struct subtask_slot *slot = &p->subtasks[a->subtask];

	if (slot->is_acknowledged)
		return ACK_DUPLICATE;
	slot->is_acknowledged = true;
	slot->content.metrics = a->metrics;
	slot->content.finish = a->finish;
	if (a->finish == FINISH_RESTORED_AS_FINISHED) /* then all of its vertex were */
		p->is_vertex_finished[execution_graph_vertex_of(p->plan->graph, a->subtask)] = true;
	snapshot_state_move(&slot->content.state, &a->state);
	CHECK(p->awaited_count > 0);
	p->awaited_count--;
	return ACK_SUCCESS;
}

static enum acknowledge_result acknowledge_party(const struct pending_checkpoint *p,
		struct party_slot *slot, uint32_t *out_count, struct snapshot_state *state)
{
	if (p->life != COLLECTING)
		return ACK_DISCARDED;
	if (slot->is_acknowledged)
		return ACK_DUPLICATE;
	slot->is_acknowledged = true;
	if (state != NULL)
		snapshot_state_move(&slot->state, state);
	CHECK(*out_count > 0);
	(*out_count)--;
	return ACK_SUCCESS;
}

enum acknowledge_result pending_checkpoint_acknowledge_coordinator(
		struct pending_checkpoint *p, uint32_t index, struct snapshot_state *state)
{
	if (index >= p->config.coordinator_count)
		return p->life == COLLECTING ? ACK_UNKNOWN : ACK_DISCARDED;
	return acknowledge_party(p, &p->coordinators[index], &p->coordinators_out, state);
}

enum acknowledge_result pending_checkpoint_acknowledge_hook(
		struct pending_checkpoint *p, uint32_t index, struct snapshot_state *state)
{
	if (index >= p->config.hook_count)
		return p->life == COLLECTING ? ACK_UNKNOWN : ACK_DISCARDED;
	return acknowledge_party(p, &p->hooks[index], &p->hooks_out, state);
}

bool pending_checkpoint_is_awaited(const struct pending_checkpoint *p, uint32_t subtask)
{
	return subtask < p->plan->subtask_count && p->plan->is_waited[subtask] &&
			!p->subtasks[subtask].is_acknowledged;
}

uint32_t pending_checkpoint_awaited_count(const struct pending_checkpoint *p)
{
	return p->awaited_count;
}

bool pending_checkpoint_has_coordinator(const struct pending_checkpoint *p, uint32_t index)
{
	return index < p->config.coordinator_count && p->coordinators[index].is_acknowledged;
}

bool pending_checkpoint_has_hook(const struct pending_checkpoint *p, uint32_t index)
{
	return index < p->config.hook_count && p->hooks[index].is_acknowledged;
}

bool pending_checkpoint_is_fully_acknowledged(const struct pending_checkpoint *p)
{
	return p->life == COLLECTING && p->awaited_count == 0 && p->coordinators_out == 0 &&
			p->hooks_out == 0;
}

bool pending_checkpoint_is_disposed(const struct pending_checkpoint *p)
{
	return p->life != COLLECTING;
}

bool pending_checkpoint_is_subsumable(const struct pending_checkpoint *p)
{
	return !checkpoint_properties_is_savepoint(&p->config.properties);
}

void pending_checkpoint_set_location(struct pending_checkpoint *p, const char *location)
{
	CHECK(p->life == COLLECTING);
	CHECK(p->location == NULL);
	p->location = heap_text(location);
}

/* What PL-5 wants to know of one vertex. */
struct finish_counts {
	uint32_t subtasks, finished, operators_finished, with_state;
};

static struct finish_counts count_finished(const struct pending_checkpoint *p, uint32_t vertex)
{
	struct finish_counts n = {
		.subtasks = execution_graph_vertex(p->plan->graph, vertex)->parallelism,
	};
	uint32_t first = execution_graph_subtask(p->plan->graph, vertex, 0);

	for (uint32_t i = first; i < first + n.subtasks; i++) {
		const struct pending_subtask *s = &p->subtasks[i].content;

		n.finished += p->plan->is_finished[i] ||
				s->finish == FINISH_SUBTASK_RESTORED_AS_FINISHED;
		n.operators_finished += s->finish == FINISH_OPERATORS_FINISHED;
		n.with_state += s->finish != FINISH_RESTORED_AS_FINISHED &&
				!snapshot_state_is_empty(&s->state);
	}
	return n;
}

bool pending_checkpoint_is_finishable(
		const struct pending_checkpoint *p, enum checkpoint_failure_reason *reason)
{
	for (uint32_t v = 0; v < p->plan->vertex_count; v++) {
		struct finish_counts n = count_finished(p, v);
		uint32_t done = n.finished + n.operators_finished;

		if (pending_checkpoint_is_vertex_finished(p, v)) {
			*reason = REASON_FINALIZE_CHECKPOINT_FAILURE;
			if (n.with_state > 0)
				return false;
		} else if (execution_graph_vertex(p->plan->graph, v)->has_union_state) {
			*reason = REASON_DECLINED_TASK_CLOSING;
			if (n.finished > 0 || (done > 0 && done < n.subtasks))
				return false;
		}
	}
	return true;
}

/* The private files of party `i`: subtasks, then operator coordinators, then hooks; NULL behind. */
static const struct file_list *files_of(const struct pending_checkpoint *p, uint32_t i)
{
	if (i < p->plan->subtask_count)
		return &p->subtasks[i].content.state.files;
	i -= p->plan->subtask_count;
	if (i < p->config.coordinator_count)
		return &p->coordinators[i].state.files;
	i -= p->config.coordinator_count;
	return i < p->config.hook_count ? &p->hooks[i].state.files : NULL;
}

uint32_t pending_checkpoint_files(const struct pending_checkpoint *p, const char ***names)
{
	const struct file_list *files;
	uint32_t count = 0, at = 0;

	for (uint32_t i = 0; (files = files_of(p, i)) != NULL; i++)
		count += files->count;
	*names = heap_zeroed(count, sizeof(**names));
	for (uint32_t i = 0; (files = files_of(p, i)) != NULL; i++)
		for (uint32_t k = 0; k < files->count; k++)
			(*names)[at++] = files->names[k];
	return count;
}

static void collect_files(const struct pending_checkpoint *p, struct file_list *files)
{
	const char **names;
	uint32_t count = pending_checkpoint_files(p, &names);

	for (uint32_t i = 0; i < count; i++)
		file_list_add(files, names[i]);
	free(names);
}

void pending_checkpoint_finalise(struct pending_checkpoint *p, int64_t wall_ms,
		struct completed_checkpoint **out)
{
	struct completed_checkpoint *c;

	CHECK(pending_checkpoint_is_fully_acknowledged(p));
	completed_checkpoint_create(&c, p->config.id, p->location);
	c->timestamp_ms = p->config.timestamp_ms;
	c->completed_ms = wall_ms;
	c->properties = p->config.properties;
	c->made_as = p->config.properties.kind;
	collect_files(p, &c->files);
	for (uint32_t i = 0; i < p->plan->subtask_count; i++) {
		struct pending_subtask *s = &p->subtasks[i].content;

		c->state_bytes += s->metrics.state_bytes;
		shared_list_move(&c->shared, &s->state.shared);
	}
	clear_states(p);
	p->life = FINALISED;
	*out = c;
}

void pending_checkpoint_abort(struct pending_checkpoint *p,
		enum checkpoint_failure_reason reason, struct file_list *files)
{
	CHECK(p->life == COLLECTING);
	CHECK(reason != REASON_SUBSUMED || pending_checkpoint_is_subsumable(p)); /* PC-6 */
	p->life = ABORTED;
	collect_files(p, files);
}
