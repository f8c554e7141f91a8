#include "tests/scenario/coordinator_script.h"

#include "control/coordinator/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Every event is parsed in both passes; what it does is behind is_dry. */
static bool is_dry(const struct world *w)
{
	return w->s->is_checking;
}

static struct snapshot_state default_state(void)
{
	return (struct snapshot_state){ .bytes = heap_text("state"), .byte_count = 5 };
}

/* ---- the scheduler and the end ---- */

static bool on_start(struct world *w, const struct scenario_line *l)
{
	if (!scenario_count(w->s, l, 1, 1))
		return false;
	if (w->config.interval_ms == 0)
		return scenario_malformed(w->s, "without an interval there is no start");
	if (!is_dry(w) && checkpoint_coordinator_start(w->coordinator, world_now(w)) != 0)
		scenario_trace(w->s, "  not started: the coordinator has shut down");
	return true;
}

static bool on_stop(struct world *w, const struct scenario_line *l)
{
	if (!scenario_count(w->s, l, 1, 1))
		return false;
	if (!is_dry(w))
		checkpoint_coordinator_stop(w->coordinator, world_now(w));
	return true;
}

static bool on_shutdown(struct world *w, const struct scenario_line *l)
{
	if (!scenario_count(w->s, l, 1, 1))
		return false;
	if (!is_dry(w))
		checkpoint_coordinator_shutdown(w->coordinator, world_now(w));
	return true;
}

static bool on_end(struct world *w, const struct scenario_line *l)
{
	static const char *const names[] = { "FINISHED", "CANCELED", "FAILED", "SUSPENDED" };

	if (!scenario_count(w->s, l, 2, 2))
		return false;
	for (int i = 0; i < 4; i++) {
		if (strcmp(l->words[1], names[i]) != 0)
			continue;
		if (!is_dry(w))
			checkpoint_coordinator_end(
					w->coordinator, (enum job_end)i, world_now(w));
		return true;
	}
	return scenario_malformed(w->s, "'%s' is no end of a job", l->words[1]);
}

static bool on_clock(struct world *w, const struct scenario_line *l)
{
	int64_t ms;

	if (!scenario_count(w->s, l, 2, 2) || !scenario_step(w->s, l->words[1], &ms))
		return false;
	if (!is_dry(w))
		world_advance(w, ms);
	return true;
}

/* ---- requests ---- */

static bool parse_checkpoint(
		struct world *w, const struct scenario_line *l, struct trigger_request *r)
{
	const char *kind = l->word_count > 2 ? l->words[2] : "";

	r->kind = REQUEST_CHECKPOINT;
	if (!scenario_count(w->s, l, 2, 3))
		return false;
	if (strcmp(kind, "full") == 0)
		r->kind = REQUEST_FULL;
	else if (strcmp(kind, "incremental") == 0)
		r->kind = REQUEST_INCREMENTAL;
	else if (l->word_count > 2)
		return scenario_malformed(w->s, "'%s' is no kind of checkpoint", kind);
	return true;
}

static bool parse_request(
		struct world *w, const struct scenario_line *l, struct trigger_request *r)
{
	const char *what = l->word_count > 1 ? l->words[1] : "";
	bool is_stop = strcmp(what, "stop") == 0;

	if (strcmp(what, "checkpoint") == 0)
		return parse_checkpoint(w, l, r);
	if (!is_stop && strcmp(what, "savepoint") != 0)
		return scenario_malformed(w->s, "'%s' cannot be requested", what);
	if (!scenario_count(w->s, l, 3, is_stop ? 4 : 3))
		return false;
	r->directory = l->words[2];
	r->kind = is_stop ? REQUEST_STOP : REQUEST_SAVEPOINT;
	if (l->word_count == 4) {
		r->kind = REQUEST_STOP_DRAIN;
		if (strcmp(l->words[3], "drain") != 0)
			return scenario_malformed(w->s, "'%s' is not 'drain'", l->words[3]);
	}
	return true;
}

static bool on_request(struct world *w, const struct scenario_line *l)
{
	struct trigger_request r = { .format = FORMAT_CANONICAL };
	uint64_t handle;

	if (!parse_request(w, l, &r))
		return false;
	if (!is_dry(w))
		checkpoint_coordinator_request(w->coordinator, &r, world_now(w), &handle);
	return true;
}

/* ---- what tasks say ---- */

static bool parse_part(struct world *w, const char *word, struct acknowledgement *a)
{
	const char *files = scenario_value(word, "file");
	const char *shared = scenario_value(word, "shared");

	if (files != NULL)
		return script_files(w, files, &a->state.files);
	if (shared != NULL)
		return script_shared(w, shared, &a->state.shared);
	if (strcmp(word, "empty") == 0) {
		if (a->state.bytes == NULL)
			return scenario_malformed(w->s, "'%s' is too much", word);
		free(a->state.bytes);
		a->state.bytes = NULL;
		a->state.byte_count = 0;
		return true;
	}
	if (a->finish != FINISH_NONE)
		return scenario_malformed(w->s, "'%s' is too much", word);
	if (strcmp(word, "finished") == 0)
		a->finish = FINISH_OPERATORS_FINISHED;
	else if (strcmp(word, "restored-finished") == 0)
		a->finish = FINISH_RESTORED_AS_FINISHED;
	else
		return scenario_malformed(w->s, "'%s' is unknown", word);
	return true;
}

static void acknowledge(struct world *w, struct acknowledgement *a)
{
	struct seen *seen = world_seen(w, a->checkpoint_id);

	if (seen != NULL && id128_is_equal(seen->attempts[a->subtask].id, a->attempt.id))
		seen->has_acknowledged[a->subtask] = true;
	checkpoint_coordinator_on_acknowledge(w->coordinator, a, world_now(w));
	world_drain(w);
}

static bool on_ack(struct world *w, const struct scenario_line *l)
{
	struct acknowledgement a = { .state = default_state() };
	bool is_good = scenario_count(w->s, l, 3, 7) &&
			script_subtask(w, l->words[1], &a.subtask, &a.attempt) &&
			script_id(w, l->words[2], &a.checkpoint_id);

	for (uint32_t i = 3; is_good && i < l->word_count; i++)
		is_good = parse_part(w, l->words[i], &a);
	if (is_good && !is_dry(w))
		acknowledge(w, &a);
	else
		snapshot_state_clear(&a.state);
	return is_good;
}

static bool on_ack_all(struct world *w, const struct scenario_line *l)
{
	int64_t id;

	if (!scenario_count(w->s, l, 2, 2) || !script_id(w, l->words[1], &id))
		return false;
	if (is_dry(w) || world_seen(w, id) == NULL)
		return true;
	for (uint32_t i = 0; i < w->subtask_count; i++) {
		/* Looked up each time: an acknowledgement may make a new checkpoint pending. */
		const struct seen *seen = world_seen(w, id);

		if (!seen->is_waited[i] || seen->has_acknowledged[i])
			continue;

		struct acknowledgement a = {
			.subtask = i,
			.attempt = seen->attempts[i],
			.checkpoint_id = id,
			.state = default_state(),
		};

		acknowledge(w, &a);
	}
	return true;
}

static bool on_decline(struct world *w, const struct scenario_line *l)
{
	struct task_failure f = { 0 };

	if (!scenario_count(w->s, l, 4, 4) ||
			!script_subtask(w, l->words[1], &f.subtask, &f.attempt) ||
			!script_id(w, l->words[2], &f.checkpoint_id))
		return false;
	if (!script_reason(l->words[3], &f.reason))
		return scenario_malformed(w->s, "'%s' is not a reason", l->words[3]);
	if (!is_dry(w))
		checkpoint_coordinator_on_decline(w->coordinator, &f, world_now(w));
	return true;
}

/* ---- operator coordinators and master hooks ---- */

struct party {
	uint32_t index;
	int64_t id;
	struct snapshot_state state;
};

static bool parse_party(struct world *w, const struct scenario_line *l, bool is_hook,
		struct party *p)
{
	const struct named *list = is_hook ? w->hooks : w->coordinators;
	uint32_t count = is_hook ? w->hook_count : w->coordinator_count;

	if (!scenario_count(w->s, l, 3, is_hook ? 5 : 4) ||
			!script_find(w, list, count, l->words[1], &p->index) ||
			!script_id(w, l->words[2], &p->id))
		return false;
	for (uint32_t i = 3; i < l->word_count; i++) {
		const char *files = scenario_value(l->words[i], "file");

		if (files != NULL) {
			if (!script_files(w, files, &p->state.files))
				return false;
		} else if (is_hook && strcmp(l->words[i], "empty") == 0) {
			free(p->state.bytes);
			p->state.bytes = NULL;
			p->state.byte_count = 0;
		} else {
			return scenario_malformed(w->s, "'%s' is unknown", l->words[i]);
		}
	}
	return true;
}

static void report_party(struct world *w, bool is_hook, int status, struct party *p)
{
	if (is_hook)
		checkpoint_coordinator_on_hook_snapshot(
				w->coordinator, p->index, p->id, status, &p->state, world_now(w));
	else
		checkpoint_coordinator_on_coordinator_snapshot(
				w->coordinator, p->index, p->id, status, &p->state, world_now(w));
}

static bool ack_party(struct world *w, const struct scenario_line *l, bool is_hook)
{
	struct party p = { .state = default_state() };
	bool is_good = parse_party(w, l, is_hook, &p);

	if (is_good && !is_dry(w))
		report_party(w, is_hook, 0, &p);
	snapshot_state_clear(&p.state);
	return is_good;
}

static bool fail_party(struct world *w, const struct scenario_line *l, bool is_hook)
{
	struct party p = { 0 };

	if (!scenario_count(w->s, l, 3, 3) || !parse_party(w, l, is_hook, &p))
		return false;
	if (!is_dry(w))
		report_party(w, is_hook, -ECANCELED, &p);
	return true;
}

static bool on_ack_opcoord(struct world *w, const struct scenario_line *l)
{
	return ack_party(w, l, false);
}

static bool on_ack_master(struct world *w, const struct scenario_line *l)
{
	return ack_party(w, l, true);
}

static bool on_fail_opcoord(struct world *w, const struct scenario_line *l)
{
	return fail_party(w, l, false);
}

static bool on_fail_master(struct world *w, const struct scenario_line *l)
{
	return fail_party(w, l, true);
}

/* ---- executions ---- */

/* The subtasks in words 1..behind-1; freed by the caller. */
static bool parse_set(
		struct world *w, const struct scenario_line *l, uint32_t behind, bool **set)
{
	*set = heap_zeroed(w->subtask_count, sizeof(bool));
	for (uint32_t i = 1; i < behind; i++) {
		if (!script_subtasks(w, l->words[i], *set)) {
			free(*set);
			return false;
		}
	}
	return true;
}

static bool on_state(struct world *w, const struct scenario_line *l)
{
	enum execution_state state;
	bool *set;

	if (!scenario_count(w->s, l, 3, UINT32_MAX))
		return false;
	if (!execution_state_parse(l->words[l->word_count - 1], &state))
		return scenario_malformed(w->s, "'%s' is no state of an execution",
				l->words[l->word_count - 1]);
	if (!parse_set(w, l, l->word_count - 1, &set))
		return false;
	for (uint32_t i = 0; i < w->subtask_count; i++) {
		if (set[i] && !is_dry(w))
			execution_graph_set_state(w->graph, i, state);
	}
	free(set);
	return true;
}

static bool on_lost(struct world *w, const struct scenario_line *l)
{
	bool *set;

	if (!scenario_count(w->s, l, 2, UINT32_MAX) || !parse_set(w, l, l->word_count, &set))
		return false;
	for (uint32_t i = 0; i < w->subtask_count; i++)
		w->is_lost[i] = w->is_lost[i] || (set[i] && !is_dry(w));
	free(set);
	return true;
}

/* ---- the store ---- */

static enum where where_named(const char *word)
{
	static const char *const names[WHERES_COUNT] = { "id", "location", "metadata", "index" };

	for (int i = 0; i < WHERES_COUNT; i++) {
		if (strcmp(word, names[i]) == 0)
			return (enum where)i;
	}
	return WHERES_COUNT;
}

struct store_change {
	const char *verb;
	enum where where; /* WHERES_COUNT: all */
	int status;
};

static bool parse_store_word(struct world *w, const char *word, struct store_change *change)
{
	int error;

	if (where_named(word) != WHERES_COUNT) {
		if (change->where != WHERES_COUNT)
			return scenario_malformed(w->s, "'%s' is too much", word);
		change->where = where_named(word);
		return true;
	}
	if (change->status != 0 || change->where != WHERES_COUNT)
		return scenario_malformed(w->s, "'%s' is unknown", word);
	if (strcmp(word, "MAYBE") == 0) {
		change->status = INDEX_MAYBE;
		return true;
	}
	if (!scenario_errno(w->s, word, &error))
		return false;
	change->status = -error;
	return true;
}

static bool parse_store(
		struct world *w, const struct scenario_line *l, struct store_change *change)
{
	if (!scenario_count(w->s, l, 2, 4))
		return false;
	*change = (struct store_change){ .verb = l->words[1], .where = WHERES_COUNT };
	for (uint32_t i = 2; i < l->word_count; i++) {
		if (!parse_store_word(w, l->words[i], change))
			return false;
	}

	bool is_fail = strcmp(change->verb, "fail") == 0;
	bool is_settle = strcmp(change->verb, "settle") == 0;

	if (!is_fail && !is_settle && strcmp(change->verb, "slow") != 0 &&
			strcmp(change->verb, "ok") != 0)
		return scenario_malformed(w->s, "a store cannot '%s'", change->verb);
	if ((is_fail && change->status == 0) || (!is_fail && !is_settle && change->status != 0))
		return scenario_malformed(w->s, "'%s' and its error do not fit", change->verb);
	if (change->status == INDEX_MAYBE && change->where != WHERE_INDEX)
		return scenario_malformed(w->s, "MAYBE is for the index alone");
	return true;
}

static bool on_store(struct world *w, const struct scenario_line *l)
{
	struct store_change change;
	enum behaviour behaviour = BEHAVIOUR_OK;

	if (!parse_store(w, l, &change))
		return false;
	if (is_dry(w))
		return true;
	if (strcmp(change.verb, "settle") == 0) {
		world_settle_store(w, change.where, change.status);
		return true;
	}
	if (strcmp(change.verb, "fail") == 0)
		behaviour = BEHAVIOUR_FAIL;
	else if (strcmp(change.verb, "slow") == 0)
		behaviour = BEHAVIOUR_SLOW;
	for (uint32_t i = 0; i < WHERES_COUNT; i++) {
		if (change.where != WHERES_COUNT && change.where != i)
			continue;
		w->behaviours[i] = behaviour;
		w->statuses[i] = change.status;
	}
	return true;
}

static bool settle_deletions(struct world *w, const struct scenario_line *l)
{
	int64_t count = UINT32_MAX;

	if (!scenario_count(w->s, l, 2, 3) ||
			(l->word_count == 3 &&
					!scenario_number(w->s, l->words[2], 1, INT32_MAX, &count)))
		return false;
	if (is_dry(w))
		return true;
	if (l->word_count == 2)
		w->deleting = BEHAVIOUR_OK;
	world_settle_deletions(w, (uint32_t)count);
	return true;
}

static bool on_delete(struct world *w, const struct scenario_line *l)
{
	enum behaviour behaviour;
	int error;

	if (!scenario_count(w->s, l, 2, 3))
		return false;
	if (strcmp(l->words[1], "settle") == 0)
		return settle_deletions(w, l);
	if (strcmp(l->words[1], "fail") == 0) {
		behaviour = BEHAVIOUR_FAIL;
		if (!scenario_count(w->s, l, 3, 3) || !scenario_errno(w->s, l->words[2], &error))
			return false;
	} else {
		behaviour = strcmp(l->words[1], "slow") == 0 ? BEHAVIOUR_SLOW : BEHAVIOUR_OK;
		if (behaviour == BEHAVIOUR_OK && strcmp(l->words[1], "ok") != 0)
			return scenario_malformed(
					w->s, "deletion cannot '%s'", l->words[1]);
		if (!scenario_count(w->s, l, 2, 2))
			return false;
	}
	if (!is_dry(w))
		w->deleting = behaviour;
	return true;
}

/* ---- restore ---- */

static void restore_snapshot(struct world *w, const struct snapshot *from, enum claim_mode mode)
{
	struct completed_checkpoint *c;

	completed_checkpoint_create(&c, from->id, from->path);
	c->made_as = from->is_savepoint ? KIND_SAVEPOINT : KIND_CHECKPOINT;
	for (uint32_t i = 0; i < from->files.count; i++)
		file_list_add(&c->files, from->files.names[i]);
	for (uint32_t i = 0; i < from->shared.count; i++)
		shared_list_add(&c->shared, from->shared.items[i].key, from->shared.items[i].file,
				false);
	if (checkpoint_coordinator_restore_snapshot(w->coordinator, c, mode, world_now(w)) != 0)
		completed_checkpoint_destroy(c);
	else
		w->restored_id = from->id;
}

static bool on_restore(struct world *w, const struct scenario_line *l)
{
	bool is_claim = l->word_count > 1 && strcmp(l->words[1], "claim") == 0;

	if (!scenario_count(w->s, l, 2, 3))
		return false;
	if (strcmp(l->words[1], "latest") == 0) {
		if (!scenario_count(w->s, l, 2, 2))
			return false;
		if (!is_dry(w))
			world_restore_latest(w);
		return true;
	}
	if (!is_claim && strcmp(l->words[1], "no-claim") != 0)
		return scenario_malformed(w->s, "'%s' cannot be restored", l->words[1]);
	if (!scenario_count(w->s, l, 3, 3))
		return false;
	if (w->event_count > 1)
		return scenario_malformed(w->s, "a job begins from a snapshot at its first event");
	for (uint32_t i = 0; i < w->snapshot_count; i++) {
		if (strcmp(w->snapshots[i].path, l->words[2]) != 0)
			continue;
		if (!is_dry(w))
			restore_snapshot(w, &w->snapshots[i],
					is_claim ? CLAIM_MODE_CLAIM : CLAIM_MODE_NO_CLAIM);
		return true;
	}
	return scenario_malformed(w->s, "there is no snapshot '%s'", l->words[2]);
}

static bool on_failover(struct world *w, const struct scenario_line *l)
{
	if (!scenario_count(w->s, l, 1, 1))
		return false;
	if (!is_dry(w))
		world_failover(w);
	return true;
}

struct event {
	const char *name;
	bool (*on)(struct world *w, const struct scenario_line *l);
};

static const struct event events[] = {
	{ "start", on_start },
	{ "stop", on_stop },
	{ "shutdown", on_shutdown },
	{ "end", on_end },
	{ "clock", on_clock },
	{ "request", on_request },
	{ "ack", on_ack },
	{ "ack-all", on_ack_all },
	{ "decline", on_decline },
	{ "ack-opcoord", on_ack_opcoord },
	{ "ack-master", on_ack_master },
	{ "fail-opcoord", on_fail_opcoord },
	{ "fail-master", on_fail_master },
	{ "state", on_state },
	{ "lost", on_lost },
	{ "store", on_store },
	{ "delete", on_delete },
	{ "restore", on_restore },
	{ "failover", on_failover },
};

bool coordinator_event(void *world, const struct scenario_line *l)
{
	struct world *w = world;

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		if (strcmp(events[i].name, l->words[0]) != 0)
			continue;
		w->event_count++;
		if (!events[i].on(w, l))
			return false;
		if (!is_dry(w))
			world_settle(w);
		return true;
	}
	return scenario_malformed(w->s, "'%s' is unknown", l->words[0]);
}
