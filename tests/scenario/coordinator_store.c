#include "tests/scenario/coordinator_world.h"

#include "control/coordinator/heap.h"
#include "dataplane/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The simulated store: steps that work, fail or hang. */

/* ---- the store ---- */

static void note_finished(struct world *w, const struct pending_checkpoint *p)
{
	struct seen *seen = world_seen(w, pending_checkpoint_id(p));
	struct scenario_text text = { 0 };

	CHECK(seen != NULL);
	for (uint32_t i = 0; i < w->subtask_count; i++) {
		uint32_t v = execution_graph_vertex_of(w->graph, i);
		bool is_first = execution_graph_index_of(w->graph, i) == 0;

		if (pending_checkpoint_is_vertex_finished(p, v)) {
			if (is_first)
				scenario_text_add(&text, "%s", w->vertices[v].name);
		} else if (pending_checkpoint_is_subtask_finished(p, i)) {
			world_print_subtask(w, i, &text);
		}
	}
	free(seen->finished);
	seen->finished = heap_text(scenario_text_get(&text));
	scenario_text_clear(&text);
}

void world_index_add(struct world *w, const struct completed_checkpoint *from)
{
	struct completed_checkpoint *c;

	completed_checkpoint_create(&c, from->id, from->location);
	c->timestamp_ms = from->timestamp_ms;
	c->completed_ms = from->completed_ms;
	c->properties = from->properties;
	c->made_as = from->made_as;
	c->unclaimed_id_max = from->unclaimed_id_max;
	for (uint32_t i = 0; i < from->files.count; i++)
		file_list_add(&c->files, from->files.names[i]);
	for (uint32_t i = 0; i < from->shared.count; i++)
		shared_list_add(&c->shared, from->shared.items[i].key, from->shared.items[i].file,
				from->shared.items[i].keeps_creator);
	w->index = heap_resize(w->index, w->index_count + 1, sizeof(*w->index));
	w->index[w->index_count++] = c;
}

void world_index_remove(struct world *w, int64_t id)
{
	for (uint32_t i = 0; i < w->index_count; i++) {
		if (w->index[i]->id != id)
			continue;
		completed_checkpoint_destroy(w->index[i]);
		w->index[i] = w->index[--w->index_count];
		return;
	}
}

/* A durable step ends, well or not. */
static void answer(struct world *w, const struct hung *h, int status)
{
	struct checkpoint_coordinator *c = w->coordinator;

	switch (h->where) {
	case WHERE_ID:
		checkpoint_coordinator_on_id_drawn(c, h->token, status,
				status == 0 ? ++w->id_drawn : 0, world_now(w));
		return;
	case WHERE_LOCATION:
		checkpoint_coordinator_on_location_prepared(
				c, h->token, status, h->path, world_now(w));
		return;
	case WHERE_METADATA:
		if (status == 0)
			note_finished(w, h->pending);
		checkpoint_coordinator_on_metadata_written(c, h->token, status, world_now(w));
		return;
	case WHERE_INDEX:
		if (status == 0)
			world_index_add(w, h->completed);
		checkpoint_coordinator_on_index_added(c, h->token, status, world_now(w));
		return;
	case WHERES_COUNT:
		break;
	}
	CHECK(false);
}

void world_step(struct world *w, struct hung *h)
{
	if (w->behaviours[h->where] == BEHAVIOUR_SLOW) {
		w->hung = heap_resize(w->hung, w->hung_count + 1, sizeof(*w->hung));
		w->hung[w->hung_count++] = *h;
		return;
	}
	answer(w, h, w->behaviours[h->where] == BEHAVIOUR_FAIL ? w->statuses[h->where] : 0);
	free(h->path);
}

void world_settle_store(struct world *w, enum where where, int status)
{
	uint32_t i = 0;

	for (uint32_t k = 0; k < WHERES_COUNT; k++) {
		if (where == WHERES_COUNT || where == k)
			w->behaviours[k] = BEHAVIOUR_OK;
	}
	while (i < w->hung_count) {
		struct hung h = w->hung[i];

		if (where != WHERES_COUNT && h.where != where) {
			i++;
			continue;
		}
		w->hung_count--;
		memmove(w->hung + i, w->hung + i + 1, (w->hung_count - i) * sizeof(*w->hung));
		answer(w, &h, status);
		free(h.path);
		world_drain(w);
	}
}

/* ---- deletion ---- */

static void finish_deletion(struct world *w, uint64_t token, const struct deletion *what)
{
	if (what->kind == DELETION_STORED) {
		w->event_discarded = heap_resize(w->event_discarded, w->event_discarded_count + 1,
				sizeof(*w->event_discarded));
		w->event_discarded[w->event_discarded_count++] = what->checkpoint_id;
	}
	for (uint32_t i = 0; i < what->files.count; i++)
		file_list_add(&w->event_deleted, what->files.names[i]);
	checkpoint_coordinator_on_deleted(w->coordinator, token, 0, world_now(w));
}

/* Deletions of checkpoints hang or fail; those of single files do not. */
void world_delete(struct world *w, const struct checkpoint_decision *d)
{
	bool is_checkpoint = d->deletion->kind == DELETION_PENDING ||
			d->deletion->kind == DELETION_STORED;

	if (!is_checkpoint || w->deleting == BEHAVIOUR_OK) {
		finish_deletion(w, d->token, d->deletion);
	} else if (w->deleting == BEHAVIOUR_FAIL) {
		checkpoint_coordinator_on_deleted(w->coordinator, d->token, -EIO, world_now(w));
	} else {
		w->hung_deletions = heap_resize(w->hung_deletions, w->hung_deletion_count + 1,
				sizeof(*w->hung_deletions));
		w->hung_deletions[w->hung_deletion_count++] =
				(struct hung_deletion){ d->token, d->deletion };
	}
}

void world_settle_deletions(struct world *w, uint32_t count)
{
	while (count > 0 && w->hung_deletion_count > 0) {
		struct hung_deletion h = w->hung_deletions[0];

		w->hung_deletion_count--;
		memmove(w->hung_deletions, w->hung_deletions + 1,
				w->hung_deletion_count * sizeof(h));
		finish_deletion(w, h.token, h.what);
		world_drain(w);
		count--;
	}
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int compare_ids(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a;
	int64_t y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

void world_settle(struct world *w)
{
	world_drain(w);
	if (w->event_deleted.count > 0)
		qsort(w->event_deleted.names, w->event_deleted.count, sizeof(char *),
				compare_names);
	if (w->event_discarded_count > 0)
		qsort(w->event_discarded, w->event_discarded_count, sizeof(int64_t), compare_ids);
	for (uint32_t i = 0; i < w->event_deleted.count; i++) {
		journal_add(&w->deleted, "%s", w->event_deleted.names[i]);
		scenario_trace(w->s, "  deleted %s", w->event_deleted.names[i]);
	}
	for (uint32_t i = 0; i < w->event_discarded_count; i++) {
		journal_add(&w->discarded, "%lld", (long long)w->event_discarded[i]);
		scenario_trace(w->s, "  discarded %lld", (long long)w->event_discarded[i]);
	}
	file_list_clear(&w->event_deleted);
	w->event_discarded_count = 0;
}
