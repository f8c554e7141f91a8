#include "control/coordinator/checkpoint_decision.h"

#include "control/coordinator/checkpoint_coordinator_internal.h"
#include "control/coordinator/heap.h"
#include "dataplane/base/check.h"

#include <stdlib.h>

const char *checkpoint_decision_name(enum checkpoint_decision_kind kind)
{
	static const char *const names[] = {
		[DECIDE_DRAW_ID] = "draw id",
		[DECIDE_SET_NEXT_ID] = "set next id",
		[DECIDE_REMOVE_ID_COUNTER] = "remove id counter",
		[DECIDE_PREPARE_LOCATION] = "prepare location",
		[DECIDE_SNAPSHOT_COORDINATOR] = "snapshot operator coordinator",
		[DECIDE_SNAPSHOT_HOOK] = "snapshot master hook",
		[DECIDE_ABORT_TRIGGERING] = "abort triggering",
		[DECIDE_TRIGGER_TASKS] = "trigger tasks",
		[DECIDE_WRITE_METADATA] = "write metadata",
		[DECIDE_INDEX_ADD] = "index add",
		[DECIDE_INDEX_REMOVE] = "index remove",
		[DECIDE_NOTIFY_COMPLETE] = "notify complete",
		[DECIDE_NOTIFY_ABORTED] = "notify aborted",
		[DECIDE_DELETE] = "delete",
		[DECIDE_FAIL_JOB] = "fail job",
		[DECIDE_REQUEST_DONE] = "request done",
	};

	CHECK((size_t)kind < sizeof(names) / sizeof(names[0]));
	return names[kind];
}

struct checkpoint_decision *coordinator_decide(struct checkpoint_coordinator *c,
		enum checkpoint_decision_kind kind, int64_t checkpoint_id)
{
	if (c->decision_head == c->decision_count) {
		c->decision_head = 0;
		c->decision_count = 0;
	}
	if (c->decision_count == c->decision_room) {
		c->decision_room = c->decision_room > 0 ? 2 * c->decision_room : 16;
		c->decisions = heap_resize(
				c->decisions, c->decision_room, sizeof(*c->decisions));
	}

	struct checkpoint_decision *d = &c->decisions[c->decision_count++];

	*d = (struct checkpoint_decision){
		.kind = kind,
		.checkpoint_id = checkpoint_id,
		.subtask = UINT32_MAX,
	};
	return d;
}

void coordinator_request_failed(struct checkpoint_coordinator *c,
		const struct request_name *request, int64_t id,
		enum checkpoint_failure_reason reason, const char *text)
{
	struct checkpoint_decision *d = coordinator_decide(c, DECIDE_REQUEST_DONE, id);

	d->request = request->handle;
	d->is_periodic = request->is_periodic;
	d->reason = reason;
	d->text = heap_text(text != NULL ? text : checkpoint_failure_reason_text(reason));
}

static void decision_clear(struct checkpoint_decision *d)
{
	free(d->subtasks);
	free(d->attempts);
	free(d->path);
	free(d->text);
	*d = (struct checkpoint_decision){ 0 };
}

bool checkpoint_coordinator_next_decision(
		struct checkpoint_coordinator *c, struct checkpoint_decision *d)
{
	decision_clear(&c->taken);
	coordinator_settle(c, c->latest);
	if (c->decision_head == c->decision_count)
		return false;
	c->taken = c->decisions[c->decision_head++];
	*d = c->taken;
	return true;
}

void coordinator_drop_decisions(struct checkpoint_coordinator *c)
{
	decision_clear(&c->taken);
	while (c->decision_head < c->decision_count)
		decision_clear(&c->decisions[c->decision_head++]);
	free(c->decisions);
}

uint64_t coordinator_token(struct checkpoint_coordinator *c)
{
	return ++c->token;
}
