#include "control/coordinator/job_checkpoint_io.h"

#include "control/coordinator/completed_record.h"
#include "control/coordinator/ha_store.h"
#include "control/coordinator/job_master_internal.h"
#include "control/coordinator/job_metadata.h"
#include "control/coordinator/job_savepoints.h"
#include "control/metadata/metadata.h"
#include "dataplane/base/check.h"
#include "dataplane/base/crash_point.h"
#include "dataplane/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static_assert((int)HA_MAYBE == (int)INDEX_MAYBE, "statuses are handed through");

/* What all of them carry. */
struct work {
	struct job_master *jm;
	uint64_t token;
	int64_t id;
	int64_t ids_end; /* of those to be reserved: the first behind them */
	int status;
	char directory[STORAGE_PATH_BYTES]; /* of savepoints; "": it is a checkpoint */
	uint64_t numbers[SAVEPOINT_NAMES_COUNT];
	Weir__JobRecord *announcement; /* of a savepoint; NULL: nobody waits for it */
	bool is_stop;
	struct id128 request;
	char location[STORAGE_PATH_BYTES];
	struct job_metadata *metadata;
	uint64_t bytes;
	const struct deletion *deletion; /* the rules', until the answer */
	struct storage_successor ahead; /* its directory is made of what was deleted */
	bool is_prepared; /* it is there */
	const char **files; /* all that a checkpoint holds; the names are the pending one's */
	uint32_t file_count;
	Weir__CompletedRecord record;
	int32_t recent_ms[JOB_RECENT_MAX];
};

static struct work *work_of(struct job_master *jm, const struct checkpoint_decision *d)
{
	struct work *w = calloc(1, sizeof(*w));

	CHECK(w != NULL);
	w->jm = jm;
	w->token = d->token;
	w->id = d->checkpoint_id;
	return w;
}

static void tell(const struct work *w, const char *what)
{
	if (w->status != 0)
		log_error("job_master", "job %s, checkpoint %" PRId64 ": %s: %s",
				w->jm->spec->name, w->id, what,
				w->status == HA_MAYBE ? "nobody can say whether it was"
						      : strerror(-w->status));
}

/* ---- ids ---- */

static void reserve(void *context)
{
	struct work *w = context;

	crash_point("before-id");
	w->status = ha_store_write_next_id(w->jm->services.ha, w->jm->spec->id, w->ids_end);
	crash_point("after-id");
}

static void note_reserved(const struct work *w)
{
	if (w->status != 0)
		return;
	w->jm->reserve_status = 0;
	if (w->ids_end > w->jm->reserved_id)
		w->jm->reserved_id = w->ids_end;
}

static void on_reserved_ahead(void *context)
{
	struct work *w = context;

	/* It is tried again at each trigger. */
	if (w->jm->reserve_status == 0)
		tell(w, "ids cannot be reserved ahead");
	w->jm->reserve_status = w->status;
	w->jm->is_reserving = false;
	note_reserved(w);
	free(w);
}

/* The next block is durable before it is needed: no trigger waits for it. */
static void reserve_ahead(struct job_master *jm)
{
	const struct checkpoint_decision first = {.checkpoint_id = jm->reserved_id};

	if (jm->is_reserving || jm->reserved_id - jm->next_id > HA_ID_BLOCK_COUNT / 2)
		return;
	jm->is_reserving = true;
	struct work *w = work_of(jm, &first);
	w->ids_end = w->id + HA_ID_BLOCK_COUNT;
	job_post_quiet(jm, reserve, on_reserved_ahead, w);
}

static void give_id(struct job_master *jm, uint64_t token)
{
	int64_t id = jm->next_id++;

	checkpoint_coordinator_on_id_drawn(jm->checkpoints, token, 0, id, job_now());
	job_pump(jm);
	reserve_ahead(jm);
}

static void on_reserved(void *context)
{
	struct work *w = context;
	struct job_master *jm = w->jm;

	note_reserved(w);
	if (w->status == 0) {
		give_id(jm, w->token);
	} else {
		checkpoint_coordinator_on_id_drawn(
				jm->checkpoints, w->token, w->status, 0, job_now());
		job_pump(jm);
	}
	free(w);
}

void job_io_draw_id(struct job_master *jm, const struct checkpoint_decision *d)
{
	if (jm->next_id < jm->reserved_id) {
		give_id(jm, d->token);
		return;
	}
	struct work *w = work_of(jm, d);
	w->id = jm->next_id;
	w->ids_end = w->id + HA_ID_BLOCK_COUNT;
	job_post(jm, reserve, on_reserved, w);
}

/* ---- the directory ---- */

static void announce(const struct work *w, Weir__JobRecord *record)
{
	if (w->is_stop)
		job_stop_announce(record, w->location, w->request);
	else
		job_note_savepoint(record, w->location, w->request);
}

static void prepare(void *context)
{
	struct work *w = context;

	crash_point("before-location");
	if (w->directory[0] == 0)
		w->status = checkpoint_storage_prepare(w->jm->job_path, w->id, w->location);
	else
		w->status = checkpoint_storage_prepare_savepoint(
				w->directory, w->jm->spec->id, w->numbers, w->location);
	crash_point("after-location");
	if (w->status != 0 || w->announcement == NULL)
		return;
	announce(w, w->announcement);
	w->status = ha_store_write_job(w->jm->services.ha, w->jm->spec->id, w->announcement);
	if (w->status != 0)
		(void)rmdir(w->location);
}

static void on_prepared(void *context)
{
	struct work *w = context;

	if (w->announcement != NULL && w->status == 0 &&
			(!w->is_stop || w->jm->stop.step == STOP_SAVING))
		announce(w, w->jm->record);
	if (w->announcement != NULL)
		weir__job_record__free_unpacked(w->announcement, NULL);
	if (w->status == 0 && w->directory[0] != 0 && w->jm->places.count > 1)
		job_tell_location(w->jm, w->token, w->id, w->location);
	else
		checkpoint_coordinator_on_location_prepared(w->jm->checkpoints, w->token,
				w->status, w->location, job_now());
	job_pump(w->jm);
	free(w);
}

static void remove_ahead(void *context)
{
	struct work *w = context;

	checkpoint_storage_location(w->jm->job_path, w->id, w->location);
	w->status = checkpoint_storage_delete(&(struct deletion){
			.kind = DELETION_LOCATION, .location = w->location});
}

static void on_ahead_removed(void *context)
{
	tell(context, "its directory, which it did not need, cannot be removed");
	free(context);
}

/* Those up to `id` will not be needed. */
static void forget_ahead(struct job_master *jm, int64_t id)
{
	struct checkpoint_decision unused = {0};

	while ((unused.checkpoint_id = directories_ahead_drop(&jm->ahead, id)) != 0)
		job_post_quiet(jm, remove_ahead, on_ahead_removed, work_of(jm, &unused));
}

/* True: the directory of a checkpoint is there already, and the rules know. */
static bool take_ahead(struct job_master *jm, const struct checkpoint_decision *d)
{
	char location[STORAGE_PATH_BYTES];
	bool is_there = d->path == NULL && directories_ahead_take(&jm->ahead, d->checkpoint_id);

	forget_ahead(jm, d->checkpoint_id);
	if (!is_there)
		return false;
	checkpoint_storage_location(jm->job_path, d->checkpoint_id, location);
	checkpoint_coordinator_on_location_prepared(
			jm->checkpoints, d->token, 0, location, job_now());
	job_pump(jm);
	return true;
}

void job_io_end(struct job_master *jm)
{
	forget_ahead(jm, INT64_MAX);
}

void job_io_prepare(struct job_master *jm, const struct checkpoint_decision *d)
{
	if (take_ahead(jm, d))
		return;
	struct work *w = work_of(jm, d);

	if (d->path != NULL) {
		snprintf(w->directory, sizeof(w->directory), "%s", d->path);
		for (uint32_t i = 0; i < SAVEPOINT_NAMES_COUNT; i++)
			w->numbers[i] = prng_next(&jm->prng);
	}
	w->is_stop = checkpoint_properties_is_synchronous(&d->properties);
	const struct job_request *r = job_request_of(jm, d->request);
	if (w->is_stop || (d->path != NULL && r != NULL)) {
		w->announcement = job_copy_record(jm->record);
		CHECK(w->announcement != NULL);
		w->request = w->is_stop ? jm->stop.request : r->id;
	}
	job_post(jm, prepare, on_prepared, w);
}

/* ---- metadata ---- */

static void write_metadata(void *context)
{
	struct work *w = context;

	crash_point("before-metadata");
	if (w->files != NULL &&
			checkpoint_storage_tidy(w->location, w->files, w->file_count) != 0)
		log_warn("job_master", "%s: files of an earlier checkpoint cannot be removed",
				w->location);
	w->status = metadata_write(w->location, job_metadata_of(w->metadata), &w->bytes);
	crash_point("metadata-written");
}

static void on_metadata_written(void *context)
{
	struct work *w = context;

	checkpoint_coordinator_on_metadata_written(
			w->jm->checkpoints, w->token, w->status, job_now());
	job_metadata_destroy(w->metadata);
	free(w->files);
	job_pump(w->jm);
	free(w);
}

void job_io_write_metadata(struct job_master *jm, const struct checkpoint_decision *d)
{
	struct work *w = work_of(jm, d);

	snprintf(w->location, sizeof(w->location), "%s", pending_checkpoint_location(d->pending));
	w->metadata = job_metadata_create(jm, d->pending);
	if (!checkpoint_properties_is_savepoint(pending_checkpoint_properties(d->pending)))
		w->file_count = pending_checkpoint_files(d->pending, &w->files);
	job_post(jm, write_metadata, on_metadata_written, w);
}

/* ---- the durable list ---- */

/* The newest durations go with it, for a coordinator that takes over. */
static void fill_history(struct job_master *jm, struct work *w)
{
	struct checkpoint_counts k = checkpoint_stats_counts(
			checkpoint_coordinator_stats(jm->checkpoints));
	uint32_t n = jm->recent_count < JOB_RECENT_MAX ? jm->recent_count : JOB_RECENT_MAX;

	for (uint32_t i = 0; i < n; i++)
		w->recent_ms[i] = jm->recent_ms[(jm->recent_count - n + i) % JOB_RECENT_MAX];
	w->record.n_recent_ms = n;
	w->record.recent_ms = w->recent_ms;
	w->record.completed_count = jm->completed_before + k.completed + 1;
	w->record.failed_count = jm->failed_before + k.failed;
}

static void add_to_index(void *context)
{
	struct work *w = context;

	crash_point("before-listed");
	w->status = ha_store_add_completed(w->jm->services.ha, w->jm->spec->id, &w->record);
	crash_point("after-listed");
}

static void on_index_added(void *context)
{
	struct work *w = context;

	tell(w, "it cannot be added to the list of completed checkpoints");
	checkpoint_coordinator_on_index_added(
			w->jm->checkpoints, w->token, w->status, job_now());
	job_pump(w->jm);
	free(w);
}

void job_io_index_add(struct job_master *jm, const struct checkpoint_decision *d)
{
	struct work *w = work_of(jm, d);
	const struct completed_checkpoint *c = d->completed;

	completed_record_fill(&w->record, c);
	if (!c->is_restored) {
		int64_t ms = c->completed_ms - c->timestamp_ms;

		jm->recent_ms[jm->recent_count++ % JOB_RECENT_MAX] =
				ms < 0 ? 0 : ms > INT32_MAX ? INT32_MAX : (int32_t)ms;
	}
	fill_history(jm, w);
	job_post(jm, add_to_index, on_index_added, w);
}

static void remove_from_index(void *context)
{
	struct work *w = context;

	crash_point("before-unlisted");
	w->status = ha_store_remove_completed(w->jm->services.ha, w->jm->spec->id, w->id);
	crash_point("after-unlisted");
}

static void on_index_removed(void *context)
{
	struct work *w = context;

	tell(w, "it cannot be taken off the list of completed checkpoints");
	checkpoint_coordinator_on_index_removed(
			w->jm->checkpoints, w->token, w->status, job_now());
	job_pump(w->jm);
	free(w);
}

static void forget(void *context)
{
	struct work *w = context;

	crash_point("before-unlisted");
	w->status = ha_store_forget_completed(w->jm->services.ha, w->jm->spec->id, w->id);
	crash_point("after-unlisted");
}

static void on_forgotten(void *context)
{
	tell(context, "it cannot be taken off the list of completed checkpoints");
	free(context);
}

void job_io_index_remove(struct job_master *jm, const struct checkpoint_decision *d)
{
	struct work *w = work_of(jm, d);

	if (!job_is_going_on(jm)) {
		job_post(jm, remove_from_index, on_index_removed, w);
		return;
	}
	/* A newer one has subsumed it: it leaves with what is listed next, and its files may go
	 * before, for one that stands again is subsumed again. */
	job_post_quiet(jm, forget, on_forgotten, w);
	checkpoint_coordinator_on_index_removed(jm->checkpoints, d->token, 0, job_now());
	job_pump(jm);
}

/* ---- deleting ---- */

static void delete_files(void *context)
{
	struct work *w = context;

	crash_point("before-delete");
	w->status = checkpoint_storage_delete(w->deletion);
	crash_point("after-delete");
}

static void on_deleted(void *context)
{
	struct work *w = context;

	/* CL-1: a failure is logged only. */
	tell(w, "not all of it could be deleted");
	checkpoint_coordinator_on_deleted(w->jm->checkpoints, w->token, w->status, job_now());
	job_pump(w->jm);
	free(w);
}

static void delete_and_prepare(void *context)
{
	struct work *w = context;

	crash_point("before-delete");
	crash_point("before-location");
	w->status = checkpoint_storage_replace(
			w->deletion, w->jm->job_path, &w->ahead, &w->is_prepared);
	crash_point("after-location");
	crash_point("after-delete");
}

static void on_deleted_and_prepared(void *context)
{
	struct work *w = context;

	directories_ahead_made(&w->jm->ahead, w->ahead.id, w->is_prepared);
	on_deleted(w);
}

/* Up to twice what the newest checkpoint takes: what its files do not need any more goes. */
static void keep_for_reuse(const struct job_master *jm, struct storage_successor *s)
{
	const struct completed_checkpoint *c, *newest = NULL;

	for (uint32_t i = 0; (c = checkpoint_coordinator_retained(jm->checkpoints, i)) != NULL; i++)
		newest = c;
	if (newest == NULL || newest->state_bytes <= 0)
		return;
	s->newest_id = newest->id;
	s->kept_bytes_max = 2 * (uint64_t)newest->state_bytes;
}

void job_io_delete(struct job_master *jm, const struct checkpoint_decision *d)
{
	struct work *w = work_of(jm, d);

	w->deletion = d->deletion;
	w->id = d->deletion->checkpoint_id;
	int64_t id = directories_ahead_next(&jm->ahead, jm->next_id);
	if (d->deletion->kind != DELETION_STORED || !job_is_going_on(jm) || id == 0 ||
			id >= jm->reserved_id) {
		job_post_quiet(jm, delete_files, on_deleted, w);
		return;
	}
	w->ahead.id = id;
	directories_ahead_add(&jm->ahead, id);
	keep_for_reuse(jm, &w->ahead);
	job_post_quiet(jm, delete_and_prepare, on_deleted_and_prepared, w);
}
