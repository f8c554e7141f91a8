#include "tests/support/coordinator_rig.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rig_open(struct rig *r, const struct checkpoint_coordinator_config *config)
{
	static const struct execution_vertex vertices[] = {
		{ "src", 2, false },
		{ "sum", 1, false },
	};
	static const struct execution_edge edge = { 0, 1, EDGE_ALL_TO_ALL };
	struct checkpoint_coordinator_config normal = *config;

	memset(r, 0, sizeof(*r));
	cr_assert(eq(int, execution_graph_create(&r->graph, vertices, 2, &edge, 1), 0));
	for (uint32_t i = 0; i < 3; i++)
		execution_graph_set_state(r->graph, i, EXECUTION_RUNNING);
	cr_assert(eq(ptr, (void *)checkpoint_coordinator_config_normalise(&normal), NULL));
	checkpoint_coordinator_create(&r->c, &normal, r->graph);
	memset(r->is_auto, true, sizeof(r->is_auto));
	r->now = (struct moment){ 1000 * NS_PER_MS, 1000 };
}

void rig_close(struct rig *r)
{
	checkpoint_coordinator_destroy(r->c);
	execution_graph_destroy(r->graph);
}

static void answer(struct rig *r, const struct checkpoint_decision *d)
{
	switch (d->kind) {
	case DECIDE_DRAW_ID:
		checkpoint_coordinator_on_id_drawn(r->c, d->token, 0, ++r->id, r->now);
		return;
	case DECIDE_PREPARE_LOCATION:
		checkpoint_coordinator_on_location_prepared(r->c, d->token, 0, "there", r->now);
		return;
	case DECIDE_WRITE_METADATA:
		checkpoint_coordinator_on_metadata_written(r->c, d->token, 0, r->now);
		return;
	case DECIDE_INDEX_ADD:
		checkpoint_coordinator_on_index_added(r->c, d->token, 0, r->now);
		return;
	case DECIDE_INDEX_REMOVE:
		checkpoint_coordinator_on_index_removed(r->c, d->token, 0, r->now);
		return;
	case DECIDE_DELETE:
		checkpoint_coordinator_on_deleted(r->c, d->token, 0, r->now);
		return;
	default:
		return;
	}
}

void rig_drain(struct rig *r)
{
	struct checkpoint_decision d;

	while (checkpoint_coordinator_next_decision(r->c, &d)) {
		struct rig_decision *l = &r->log[r->count];

		cr_assert(lt(u32, r->count, RIG_LOG_MAX));
		*l = (struct rig_decision){
			.kind = d.kind,
			.token = d.token,
			.id = d.checkpoint_id,
			.is_all_ended = d.is_all_ended,
			.is_success = d.is_success,
			.is_periodic = d.is_periodic,
			.request = d.request,
			.timestamp_ms = d.timestamp_ms,
			.other_id = d.other_id,
			.subtask_count = d.subtask_count,
			.subtask = d.subtask,
			.index = d.index,
			.properties = d.properties,
			.reason = d.reason,
		};
		if (d.kind == DECIDE_DELETE) {
			l->deletion = d.deletion->kind;
			for (uint32_t i = 0; i < d.deletion->files.count; i++)
				snprintf(l->files + strlen(l->files),
						sizeof(l->files) - strlen(l->files), "%s ",
						d.deletion->files.names[i]);
		}
		if (d.text != NULL)
			snprintf(l->text, sizeof(l->text), "%s", d.text);
		if (d.path != NULL)
			snprintf(l->path, sizeof(l->path), "%s", d.path);
		r->count++;
		if (r->is_auto[d.kind])
			answer(r, &d);
	}
}

struct rig_decision *rig_find(struct rig *r, enum checkpoint_decision_kind kind)
{
	for (uint32_t i = r->count; i > 0; i--) {
		if (r->log[i - 1].kind == kind)
			return &r->log[i - 1];
	}
	cr_assert(false, "no decision %s", checkpoint_decision_name(kind));
	return NULL;
}

uint32_t rig_count(const struct rig *r, enum checkpoint_decision_kind kind)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < r->count; i++)
		count += r->log[i].kind == kind;
	return count;
}

uint64_t rig_request(struct rig *r, enum request_kind kind)
{
	uint64_t handle;

	cr_assert(eq(int,
			checkpoint_coordinator_request(r->c,
					&(struct trigger_request){
							.kind = kind, .directory = "/sp" },
					r->now, &handle),
			0));
	rig_drain(r);
	return handle;
}

void rig_acknowledge(struct rig *r, int64_t id, uint32_t subtask, const char *shared)
{
	struct acknowledgement a = {
		.subtask = subtask,
		.attempt = execution_graph_attempt(r->graph, subtask),
		.checkpoint_id = id,
		.metrics = { .state_bytes = 100, .checkpointed_bytes = 10, .sync_ns = 3 },
	};

	a.state.bytes = strdup("state");
	a.state.byte_count = 5;
	if (shared != NULL)
		shared_list_add(&a.state.shared, shared, shared, false);
	checkpoint_coordinator_on_acknowledge(r->c, &a, r->now);
	rig_drain(r);
}

void rig_acknowledge_all(struct rig *r, int64_t id, const char *shared)
{
	for (uint32_t i = 0; i < 3; i++)
		rig_acknowledge(r, id, i, shared);
}

uint32_t rig_count_deletions(const struct rig *r, enum deletion_kind kind, int64_t id)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < r->count; i++)
		count += r->log[i].kind == DECIDE_DELETE && r->log[i].deletion == kind &&
				r->log[i].id == id;
	return count;
}

void rig_complete(struct rig *r, int64_t id, const char *shared)
{
	rig_request(r, REQUEST_CHECKPOINT);
	rig_acknowledge_all(r, id, shared);
}

void rig_answer_removal(struct rig *r, int64_t id, int status)
{
	for (uint32_t i = r->count; i > 0; i--) {
		const struct rig_decision *l = &r->log[i - 1];

		if (l->kind != DECIDE_INDEX_REMOVE || l->id != id)
			continue;
		checkpoint_coordinator_on_index_removed(r->c, l->token, status, r->now);
		rig_drain(r);
		return;
	}
	cr_assert(false, "%lld was not to be removed", (long long)id);
}

void rig_pass(struct rig *r, int64_t ms)
{
	r->now.now_ns += (uint64_t)ms * NS_PER_MS;
	r->now.wall_ms += ms;
	while (checkpoint_coordinator_on_timer(r->c, r->now))
		rig_drain(r);
	rig_drain(r);
}

struct checkpoint_coordinator_config rig_tolerant(void)
{
	struct checkpoint_coordinator_config config = checkpoint_coordinator_config_default();

	config.tolerable_failures = INT32_MAX;
	config.timeout_ms = 500;
	return config;
}
