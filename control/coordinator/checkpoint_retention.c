#include "control/coordinator/checkpoint_coordinator_internal.h"
#include "control/coordinator/heap.h"
#include "dataplane/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is kept and what goes: the store's changes, deletion, restore and the end of the job
 * (flink-semantics 11, 19.1, 21.2). */

void coordinator_delete(struct checkpoint_coordinator *c, const struct deletion *what)
{
	uint64_t token = coordinator_token(c);
	struct checkpoint_decision *d =
			coordinator_decide(c, DECIDE_DELETE, what->checkpoint_id);

	d->token = token;
	d->deletion = checkpoints_cleaner_begin(c->cleaner, token, what);
}

void checkpoint_coordinator_on_deleted(
		struct checkpoint_coordinator *c, uint64_t token, int status, struct moment now)
{
	(void)status; /* CL-1: a failed deletion is the glue's to log */
	if (checkpoints_cleaner_end(c->cleaner, token))
		coordinator_ask(c);
	coordinator_settle(c, now);
}

static void delete_stored(struct checkpoint_coordinator *c, struct completed_checkpoint *s)
{
	struct deletion what = {
		.kind = DELETION_STORED,
		.checkpoint_id = s->id,
		.location = s->location,
	};

	file_list_move(&what.files, &s->files);
	coordinator_delete(c, &what);
	completed_checkpoint_destroy(s);
}

/* SR-2 below `lowest_id`, then ST-4: every subsumed checkpoint that nobody needs. */
static void clean_below(struct checkpoint_coordinator *c, int64_t lowest_id)
{
	struct deletion shared = { .kind = DELETION_SHARED };
	struct id_list in_use = { 0 };
	struct completed_checkpoint *s;

	shared_state_registry_unregister_unused(c->registry, lowest_id, &shared.files, &in_use);
	if (shared.files.count > 0)
		coordinator_delete(c, &shared);
	while ((s = checkpoints_cleaner_take_subsumed(c->cleaner, lowest_id, &in_use)) != NULL) {
		if (s->properties.discard_subsumed)
			delete_stored(c, s);
		else
			completed_checkpoint_destroy(s);
	}
	id_list_clear(&in_use);
}

/* ST-4.  One that is still in the durable list keeps its shared files. */
static void clean(struct checkpoint_coordinator *c)
{
	int64_t lowest_id = completed_checkpoint_store_lowest_id(c->store);

	for (uint32_t i = 0; i < c->removal_count; i++) {
		const struct completed_checkpoint *leaving = c->removals[i].completed;

		if (!checkpoint_properties_is_savepoint(&leaving->properties) &&
				leaving->id < lowest_id)
			lowest_id = leaving->id;
	}
	clean_below(c, lowest_id);
}

/* ---- leaving the durable list ---- */

static void ask_for_removal(struct checkpoint_coordinator *c, struct removal *r)
{
	struct checkpoint_decision *d =
			coordinator_decide(c, DECIDE_INDEX_REMOVE, r->completed->id);

	r->token = coordinator_token(c);
	d->token = r->token;
}

static void start_removal(struct checkpoint_coordinator *c, struct completed_checkpoint *completed,
		bool is_end)
{
	c->removals = heap_resize(c->removals, c->removal_count + 1, sizeof(*c->removals));

	struct removal *r = &c->removals[c->removal_count++];

	*r = (struct removal){ .completed = completed, .is_end = is_end };
	ask_for_removal(c, r);
}

static void retry_removals(struct checkpoint_coordinator *c)
{
	for (uint32_t i = 0; i < c->removal_count; i++) {
		if (c->removals[i].token == 0)
			ask_for_removal(c, &c->removals[i]);
	}
}

static struct completed_checkpoint *end_removal(struct checkpoint_coordinator *c, uint32_t index)
{
	struct completed_checkpoint *completed = c->removals[index].completed;

	c->removal_count--;
	memmove(c->removals + index, c->removals + index + 1,
			(c->removal_count - index) * sizeof(*c->removals));
	return completed;
}

/* ST-5, once every checkpoint is out of the list: what no kept one needs. */
static void finish_closing(struct checkpoint_coordinator *c)
{
	if (c->is_closed && !c->is_suspended && c->removal_count == 0)
		clean_below(c, c->kept_id_min);
}

/* One that was not claimed needs no file of ours, and its own are never deleted (SR-2). */
static void keep_at_end(struct checkpoint_coordinator *c, int64_t id)
{
	if (id > shared_state_registry_unclaimed_id_max(c->registry) && id < c->kept_id_min)
		c->kept_id_min = id;
}

/* ST-5: one checkpoint has left the list of a job that ended. */
static void close_one(
		struct checkpoint_coordinator *c, struct completed_checkpoint *s, bool is_discarded)
{
	if (is_discarded) {
		delete_stored(c, s);
	} else {
		keep_at_end(c, s->id);
		completed_checkpoint_destroy(s);
	}
	finish_closing(c);
}

/* One that was subsumed.  It failed: the add stands (ST-3), and it is tried again. */
static void remove_subsumed(struct checkpoint_coordinator *c, uint32_t index, int status)
{
	if (status == 0) {
		checkpoints_cleaner_add_subsumed(c->cleaner, end_removal(c, index));
		clean(c);
		finish_closing(c);
	} else if (c->is_closed) {
		close_one(c, end_removal(c, index), false);
	} else {
		c->removals[index].token = 0;
	}
}

/* One of a job that has ended.  It failed: the list still names it, so it stays. */
static void remove_at_end(struct checkpoint_coordinator *c, uint32_t index, int status)
{
	struct completed_checkpoint *s = end_removal(c, index);

	close_one(c, s, status == 0 &&
					checkpoint_properties_is_discarded_at(
							&s->properties, c->end));
}

void checkpoint_coordinator_on_index_removed(
		struct checkpoint_coordinator *c, uint64_t token, int status, struct moment now)
{
	for (uint32_t i = 0; i < c->removal_count; i++) {
		if (c->removals[i].token != token)
			continue;
		if (c->removals[i].is_end)
			remove_at_end(c, i, status);
		else
			remove_subsumed(c, i, status);
		break;
	}
	coordinator_settle(c, now);
}

/* ---- entering it ---- */

int64_t coordinator_retain(
		struct checkpoint_coordinator *c, struct completed_checkpoint *completed)
{
	struct completed_checkpoint *out;
	int64_t subsumed_id = 0;
	bool is_told = false;

	if (c->is_closed) { /* the job ended while it was being added: as if it had been there */
		if (c->is_suspended)
			CHECK(completed_checkpoint_store_add(c->store, completed));
		else
			start_removal(c, completed, true);
		return 0;
	}
	CHECK(completed_checkpoint_store_add(c->store, completed));
	retry_removals(c);
	while ((out = completed_checkpoint_store_subsume(c->store)) != NULL) {
		if (out->id > subsumed_id) {
			subsumed_id = out->id;
			is_told = out->properties.discard_subsumed;
		}
		start_removal(c, out, false);
	}
	clean(c);
	return is_told ? subsumed_id : 0;
}

static void restore_indexed(struct checkpoint_coordinator *c, int status)
{
	c->restore_token = 0;
	if (status == 0)
		return;

	struct checkpoint_decision *d = coordinator_decide(c, DECIDE_FAIL_JOB, 0);

	d->reason = REASON_IO_EXCEPTION;
	d->text = heap_print(
			"adding the restored snapshot to the list of completed checkpoints: %s",
			status < 0 ? strerror(-status) : "nobody can say whether it was written");
}

void checkpoint_coordinator_on_index_added(
		struct checkpoint_coordinator *c, uint64_t token, int status, struct moment now)
{
	if (token != 0 && token == c->restore_token) {
		restore_indexed(c, status);
	} else {
		for (uint32_t i = 0; i < c->flight_count; i++) {
			struct flight *f = &c->flights[i];

			if (f->completing == COMPLETING_INDEXING && f->token == token) {
				coordinator_indexed(c, f, status, now);
				break;
			}
		}
	}
	coordinator_settle(c, now);
}

const struct completed_checkpoint *coordinator_find_stored(
		const struct checkpoint_coordinator *c, int64_t id)
{
	for (uint32_t i = 0; i < c->removal_count; i++) {
		if (c->removals[i].completed->id == id)
			return c->removals[i].completed;
	}
	for (uint32_t i = 0; i < c->flight_count; i++) {
		if (c->flights[i].completed != NULL && c->flights[i].completed->id == id)
			return c->flights[i].completed;
	}
	return completed_checkpoint_store_find(c->store, id);
}

/* ---- restore ---- */

static bool are_ids_good(struct completed_checkpoint **entries, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (entries[i]->id <= 0)
			return false;
		for (uint32_t j = 0; j < i; j++) {
			if (entries[j]->id == entries[i]->id)
				return false;
		}
	}
	return true;
}

/* What the store holds, in the order of ids: a file belongs to the first that used it. */
static void register_stored(struct checkpoint_coordinator *c)
{
	const struct completed_checkpoint *s;

	for (uint32_t i = 0; (s = completed_checkpoint_store_at(c->store, i)) != NULL; i++)
		shared_state_registry_register_restored(
				c->registry, (struct completed_checkpoint *)s);
}

int checkpoint_coordinator_recover(struct checkpoint_coordinator *c,
		struct completed_checkpoint **entries, uint32_t count)
{
	CHECK(completed_checkpoint_store_latest(c->store) == NULL);
	if (!are_ids_good(entries, count))
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		entries[i]->is_restored = true;
		CHECK(completed_checkpoint_store_add(c->store, entries[i]));
	}
	register_stored(c);
	return 0;
}

static void note_restored(struct checkpoint_coordinator *c, const struct completed_checkpoint *s,
		struct moment now)
{
	c->is_full_forced = s->properties.is_unclaimed; /* CM-1 */
	checkpoint_stats_on_restored(c->stats, s->id,
			checkpoint_properties_is_savepoint(&s->properties), s->location,
			now.wall_ms);
}

const struct completed_checkpoint *checkpoint_coordinator_restore_latest(
		struct checkpoint_coordinator *c, struct moment now)
{
	const struct completed_checkpoint *latest = completed_checkpoint_store_latest(c->store);

	/* The decider is not asked here: the caller has yet to start the new attempts. */
	coordinator_abort_all(c, REASON_JOB_FAILOVER_REGION, now);
	c->latest = now;
	if (latest != NULL)
		note_restored(c, latest, now);
	return latest;
}

int checkpoint_coordinator_restore_snapshot(struct checkpoint_coordinator *c,
		struct completed_checkpoint *snapshot, enum claim_mode mode, struct moment now)
{
	if (snapshot->id <= 0 || snapshot->id == INT64_MAX ||
			snapshot->id <= completed_checkpoint_store_latest_id(c->store))
		return -EINVAL;
	snapshot->properties = checkpoint_properties_restored(mode, c->config.retention);
	snapshot->is_restored = true;
	snapshot->unclaimed_id_max = mode == CLAIM_MODE_CLAIM ? 0 : snapshot->id;
	CHECK(completed_checkpoint_store_add(c->store, snapshot));
	shared_state_registry_register_restored(c->registry, snapshot);
	coordinator_decide(c, DECIDE_SET_NEXT_ID, snapshot->id + 1);
	c->restore_token = coordinator_token(c);

	struct checkpoint_decision *d = coordinator_decide(c, DECIDE_INDEX_ADD, snapshot->id);

	d->token = c->restore_token;
	d->completed = snapshot;
	note_restored(c, snapshot, now);
	coordinator_settle(c, now);
	return 0;
}

/* ---- the end ---- */

void checkpoint_coordinator_end(
		struct checkpoint_coordinator *c, enum job_end end, struct moment now)
{
	struct completed_checkpoint *s;

	checkpoint_coordinator_shutdown(c, now);
	if (c->is_closed)
		return; /* ID-3: ending twice is harmless */
	c->is_closed = true;
	c->is_suspended = end == JOB_SUSPENDED;
	c->end = end;
	if (c->is_suspended)
		return;
	retry_removals(c);
	while ((s = completed_checkpoint_store_take(c->store)) != NULL)
		start_removal(c, s, true);
	coordinator_decide(c, DECIDE_REMOVE_ID_COUNTER, 0);
	finish_closing(c);
	coordinator_settle(c, now);
}

/* ---- what is ---- */

struct checkpoint_stats *checkpoint_coordinator_stats(struct checkpoint_coordinator *c)
{
	return c->stats;
}

const struct pending_checkpoint *checkpoint_coordinator_pending(
		const struct checkpoint_coordinator *c, uint32_t index)
{
	return index < c->flight_count ? c->flights[index].pending : NULL;
}

const struct completed_checkpoint *checkpoint_coordinator_retained(
		const struct checkpoint_coordinator *c, uint32_t index)
{
	return completed_checkpoint_store_at(c->store, index);
}

uint32_t checkpoint_coordinator_queued_count(const struct checkpoint_coordinator *c)
{
	return checkpoint_request_decider_count(c->decider);
}

uint32_t checkpoint_coordinator_failure_count(const struct checkpoint_coordinator *c)
{
	return c->failures.count;
}

bool checkpoint_coordinator_is_busy(const struct checkpoint_coordinator *c)
{
	return checkpoints_cleaner_open_count(c->cleaner) > 0 || c->orphan_count > 0 ||
			c->removal_count > 0 || c->flight_count > 0;
}

bool checkpoint_coordinator_is_triggering(const struct checkpoint_coordinator *c)
{
	return c->triggering.step != STEP_IDLE;
}

int64_t checkpoint_coordinator_draws_id_since(const struct checkpoint_coordinator *c)
{
	return c->triggering.step == STEP_ID ? c->triggering.timestamp_ms : 0;
}

bool checkpoint_coordinator_is_scheduling(const struct checkpoint_coordinator *c)
{
	return c->is_scheduling;
}

uint64_t checkpoint_coordinator_next_periodic(const struct checkpoint_coordinator *c)
{
	return c->periodic.due_ns;
}

uint64_t checkpoint_coordinator_last_completion(const struct checkpoint_coordinator *c)
{
	return c->last_completion_ns;
}
