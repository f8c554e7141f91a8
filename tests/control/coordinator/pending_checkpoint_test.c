#include "control/coordinator/pending_checkpoint.h"

#include "control/coordinator/heap.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

/* src(2) -all-> sum(1); operator coordinators: one of src, one of nobody; one hook. */
struct pending_rig {
	struct execution_graph *graph;
	struct pending_checkpoint *p;
	uint32_t vertices[2];
};

static void open_rig(struct pending_rig *r, bool is_src_finished)
{
	const struct execution_vertex vertices[] = {{"src", 2, false}, {"sum", 1, false}};
	const struct execution_edge edge = {0, 1, EDGE_ALL_TO_ALL};
	struct checkpoint_plan *plan;
	uint32_t culprit;

	cr_assert(eq(int, execution_graph_create(&r->graph, vertices, 2, &edge, 1), 0));
	for (uint32_t i = 0; i < 3; i++)
		execution_graph_set_state(r->graph, i,
				i < 2 && is_src_finished ? EXECUTION_FINISHED : EXECUTION_RUNNING);
	cr_assert(eq(int, checkpoint_plan_calculate(&plan, r->graph, true, &culprit), 0));
	r->vertices[0] = 0;
	r->vertices[1] = UINT32_MAX;
	pending_checkpoint_create(&r->p,
			&(struct pending_config){.id = 7, .timestamp_ms = 1234,
					.properties.kind = KIND_SAVEPOINT, .coordinator_count = 2,
					.hook_count = 1, .coordinator_vertices = r->vertices},
			plan);
	pending_checkpoint_set_location(r->p, "chk-7");
}

static void close_rig(struct pending_rig *r)
{
	pending_checkpoint_release(r->p);
	execution_graph_destroy(r->graph);
}

static struct snapshot_state state_of(const char *text)
{
	return (struct snapshot_state){.bytes = heap_text(text), .byte_count = strlen(text)};
}

static void acknowledge(struct pending_rig *r, uint32_t subtask, const char *shared)
{
	struct acknowledgement a = {.subtask = subtask, .checkpoint_id = 7,
			.metrics = {.state_bytes = 100 + subtask}};

	shared_list_add(&a.state.shared, shared, shared, false);
	cr_assert(eq(int, (int)pending_checkpoint_acknowledge(r->p, &a), ACK_SUCCESS));
}

static void acknowledge_parties(struct pending_rig *r)
{
	struct snapshot_state of_src = state_of("splits");
	struct snapshot_state of_hook = state_of("job");

	cr_assert(eq(int, (int)pending_checkpoint_acknowledge_coordinator(r->p, 0, &of_src),
			ACK_SUCCESS));
	cr_assert(eq(int, (int)pending_checkpoint_acknowledge_coordinator(r->p, 1, NULL),
			ACK_SUCCESS));
	cr_assert(eq(int, (int)pending_checkpoint_acknowledge_hook(r->p, 0, &of_hook),
			ACK_SUCCESS));
}

Test(pending_checkpoint, what_was_handed_in_can_be_read_and_nothing_else)
{
	struct pending_rig r;

	open_rig(&r, false);
	cr_assert(eq(ptr, (void *)pending_checkpoint_coordinator(r.p, 0), NULL));
	cr_assert(eq(ptr, (void *)pending_checkpoint_hook(r.p, 0), NULL));
	cr_assert(eq(ptr, (void *)pending_checkpoint_subtask(r.p, 1), NULL));
	acknowledge_parties(&r);
	acknowledge(&r, 1, "one");
	cr_assert(eq(sz, pending_checkpoint_coordinator(r.p, 0)->byte_count, 6));
	cr_assert(eq(ptr, (void *)pending_checkpoint_coordinator(r.p, 1), NULL));
	cr_assert(eq(sz, pending_checkpoint_hook(r.p, 0)->byte_count, 3));
	cr_assert(eq(i64, pending_checkpoint_subtask(r.p, 1)->metrics.state_bytes, 101));
	close_rig(&r);
}

/* PL-5. */
Test(pending_checkpoint, the_coordinator_of_a_finished_vertex_has_no_state)
{
	struct pending_rig r;

	open_rig(&r, true);
	acknowledge_parties(&r);
	cr_assert(eq(ptr, (void *)pending_checkpoint_coordinator(r.p, 0), NULL));
	close_rig(&r);
}

/* One of no vertex keeps its state, whoever has finished. */
Test(pending_checkpoint, a_coordinator_without_a_vertex_has_state_when_others_have_finished)
{
	struct snapshot_state state = state_of("all");
	struct pending_rig r;

	open_rig(&r, true);
	cr_assert(eq(int, (int)pending_checkpoint_acknowledge_coordinator(r.p, 1, &state),
			ACK_SUCCESS));
	cr_assert(eq(sz, pending_checkpoint_coordinator(r.p, 1)->byte_count, 3));
	close_rig(&r);
}

/* PC-3, PC-5. */
Test(pending_checkpoint, strangers_are_unknown_and_later_all_are_discarded)
{
	struct acknowledgement stranger = {.subtask = 3, .checkpoint_id = 7};
	struct file_list files = {0};
	struct pending_rig r;

	open_rig(&r, false);
	cr_assert(eq(int, (int)pending_checkpoint_acknowledge(r.p, &stranger), ACK_UNKNOWN));
	cr_assert(eq(int, (int)pending_checkpoint_acknowledge_coordinator(r.p, 2, NULL),
			ACK_UNKNOWN));
	cr_assert(eq(int, (int)pending_checkpoint_acknowledge_hook(r.p, 1, NULL), ACK_UNKNOWN));
	cr_assert(not(pending_checkpoint_is_awaited(r.p, 3)));
	cr_assert(not(pending_checkpoint_has_coordinator(r.p, 2)));
	cr_assert(not(pending_checkpoint_has_hook(r.p, 1)));
	pending_checkpoint_abort(r.p, REASON_EXPIRED, &files);
	cr_assert(eq(int, (int)pending_checkpoint_acknowledge(r.p, &stranger), ACK_DISCARDED));
	cr_assert(eq(int, (int)pending_checkpoint_acknowledge_coordinator(r.p, 2, NULL),
			ACK_DISCARDED));
	cr_assert(eq(int, (int)pending_checkpoint_acknowledge_hook(r.p, 1, NULL), ACK_DISCARDED));
	cr_assert(eq(int, (int)pending_checkpoint_acknowledge_hook(r.p, 0, NULL), ACK_DISCARDED));
	close_rig(&r);
}

/* PC-7. */
Test(pending_checkpoint, the_completed_checkpoint_says_when_it_was_and_what_it_holds)
{
	struct completed_checkpoint *c;
	struct pending_rig r;

	open_rig(&r, false);
	acknowledge_parties(&r);
	acknowledge(&r, 0, "zero");
	acknowledge(&r, 1, "one");
	cr_assert(not(pending_checkpoint_is_fully_acknowledged(r.p)));
	acknowledge(&r, 2, "two");
	cr_assert(pending_checkpoint_is_fully_acknowledged(r.p));
	pending_checkpoint_finalise(r.p, 5678, &c);
	cr_assert(eq(i64, c->id, 7));
	cr_assert(eq(str, c->location, "chk-7"));
	cr_assert(eq(i64, c->timestamp_ms, 1234));
	cr_assert(eq(i64, c->completed_ms, 5678));
	cr_assert(eq(int, (int)c->made_as, KIND_SAVEPOINT));
	cr_assert(eq(int, (int)c->properties.kind, KIND_SAVEPOINT));
	cr_assert(eq(i64, c->state_bytes, 303));
	cr_assert(eq(u32, c->shared.count, 3));
	cr_assert(eq(str, c->shared.items[0].key, "zero"));
	cr_assert(eq(str, c->shared.items[2].file, "two"));
	completed_checkpoint_destroy(c);
	close_rig(&r);
}

/* PL-6, of a vertex that had finished in part. */
Test(pending_checkpoint, one_subtask_restored_as_finished_is_finished_and_its_vertex_is_not)
{
	struct acknowledgement a = {.subtask = 1, .checkpoint_id = 7,
			.finish = FINISH_SUBTASK_RESTORED_AS_FINISHED};
	struct pending_rig r;

	open_rig(&r, false);
	cr_assert(eq(int, (int)pending_checkpoint_acknowledge(r.p, &a), ACK_SUCCESS));
	cr_assert(pending_checkpoint_is_subtask_finished(r.p, 1));
	cr_assert(not(pending_checkpoint_is_subtask_finished(r.p, 0)));
	cr_assert(not(pending_checkpoint_is_vertex_finished(r.p, 0)));
	close_rig(&r);
}
