/* job_start: finds and checks what a job begins from (RE-1, RE-3), before anything runs. */

#include "control/config/config.h"
#include "control/coordinator/completed_record.h"
#include "control/coordinator/ha_store.h"
#include "control/coordinator/job_master_internal.h"
#include "control/coordinator/job_metadata.h"
#include "control/metadata/checkpoint_verify.h"
#include "control/metadata/metadata.h"
#include "dataplane/base/check.h"
#include "dataplane/base/crash_point.h"
#include "dataplane/base/crc.h"
#include "dataplane/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char configured_path[] = "execution.state-recovery.path";

enum { READ_BYTES = 65536 };

struct start_work {
	struct job_master *jm;
	uint64_t generation;
	Weir__JobRecord *record; /* a copy: the job goes on with its own */
	int status;
	bool is_refused; /* what it should begin from cannot be read */
	char text[JOB_TEXT_BYTES];
	int64_t next_id;
	int64_t *listed; /* ids of the durable list, of all that it held */
	uint32_t listed_count;
	/* What the durable list held, or the one snapshot that was asked for. */
	struct completed_checkpoint **entries;
	uint32_t entry_count;
	struct completed_checkpoint *snapshot;
	/* History of earlier coordinators. */
	uint64_t completed_count, failed_count;
	uint32_t recent_count;
	int32_t recent_ms[JOB_RECENT_MAX];
};

/* ---- the hook's state ---- */

static int sum_file(const char *path, Weir__PluginSum *sum)
{
	uint8_t bytes[READ_BYTES];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	weir__plugin_sum__init(sum);
	sum->path = (char *)(uintptr_t)path;
	while (fd >= 0 && (n = read(fd, bytes, sizeof(bytes))) > 0) {
		sum->crc = crc32c(sum->crc, bytes, (size_t)n);
		sum->size += (uint64_t)n;
	}
	int rc = n < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return rc;
}

static int sum_plugins(const struct job_spec *spec, Weir__PluginSum *sums, uint32_t *count)
{
	for (uint32_t v = 0; v < spec->vertex_count; v++) {
		for (uint32_t i = 0; i < spec->vertices[v].operator_count; i++) {
			const char *plugin = spec->vertices[v].operators[i].plugin;
			int rc = plugin == NULL ? 0 : sum_file(plugin, &sums[*count]);

			if (rc != 0)
				return rc;
			*count += plugin != NULL;
		}
	}
	return 0;
}

int job_make_hook_state(struct job_master *jm, struct config_error *error)
{
	Weir__PluginSum sums[VERTICES_COUNT_MAX * CHAIN_OPERATORS_MAX];
	Weir__PluginSum *pointers[VERTICES_COUNT_MAX * CHAIN_OPERATORS_MAX];
	Weir__JobHookState h = WEIR__JOB_HOOK_STATE__INIT;
	uint32_t count = 0;
	int rc = sum_plugins(jm->spec, sums, &count);

	if (rc != 0) {
		snprintf(error->text, sizeof(error->text), "a plug-in cannot be read: %s",
				strerror(-rc));
		return rc;
	}
	for (uint32_t i = 0; i < count; i++)
		pointers[i] = &sums[i];
	h.file_name = jm->record->file_name;
	h.file_text = jm->record->file_text;
	h.n_overrides = jm->record->n_overrides;
	h.overrides = jm->record->overrides;
	h.n_plugins = count;
	h.plugins = pointers;
	jm->hook_bytes = weir__job_hook_state__get_packed_size(&h);
	jm->hook_state = malloc(jm->hook_bytes + 1);
	if (jm->hook_state == NULL)
		return -ENOMEM;
	weir__job_hook_state__pack(&h, jm->hook_state);
	jm->hook_job = weir__job_hook_state__unpack(NULL, jm->hook_bytes, jm->hook_state);
	return jm->hook_job == NULL ? -ENOMEM : 0;
}

/* ---- on the I/O thread: reading checkpoints ---- */

static void note_problem(void *context, const char *problem)
{
	char *text = context;

	/* The first one is told. */
	if (text[0] == 0)
		snprintf(text, METADATA_TEXT_BYTES, "%s", problem);
}

/* One checkpoint, whole and readable, or why not. */
static int read_checkpoint(
		const char *path, struct completed_checkpoint **out, char text[METADATA_TEXT_BYTES])
{
	char directory[METADATA_PATH_BYTES];
	struct metadata *m;

	text[0] = 0;
	int rc = checkpoint_verify(path, note_problem, text);
	if (rc == 0)
		rc = metadata_read(&m, path, directory, text);
	if (rc != 0) {
		if (text[0] == 0)
			snprintf(text, METADATA_TEXT_BYTES, "%s: %s", path, strerror(-rc));
		return rc;
	}
	rc = completed_from_metadata(m, directory, out, text);
	metadata_free(m);
	return rc;
}

/* One that stands under another's name is what a power cut left of it. */
static int check_id(
		int64_t found, int64_t id, const char *location, char text[METADATA_TEXT_BYTES])
{
	if (found == id)
		return 0;
	snprintf(text, METADATA_TEXT_BYTES, "%.900s: is checkpoint %" PRId64, location, found);
	return -EBADMSG;
}

static void refuse(struct start_work *w, int status, const char *text, bool has_older)
{
	w->status = status;
	w->is_refused = true;
	snprintf(w->text, sizeof(w->text), "%.1200s%s", text,
			has_older && !w->record->allow_rewind
					? "; output after it may be published, so it is not passed "
					  "over: --allow-rewind goes back to the checkpoint before "
					  "it"
					: "");
}

/* The job goes on from there; `why` a newer one was passed over, or NULL. */
static void take_up(struct start_work *w, const char *location, int64_t id, const char *why)
{
	char text[JOB_TEXT_BYTES];

	if (why != NULL)
		log_warn("job_master", "job %s: goes back to checkpoint %" PRId64 ": %s",
				w->jm->spec->name, id, why);
	int rc = job_rewind(w->jm, location, id, why != NULL, text);
	if (rc != 0)
		refuse(w, rc, text, false);
}

/* An earlier life of the job left a checkpoint whose metadata is not there any more: half deleted,
 * which is not the same as never made. */
static bool is_newest_gone(
		struct start_work *w, int64_t newest_id, char text[METADATA_TEXT_BYTES])
{
	int64_t kept_id = w->record->kept_checkpoint;
	char location[STORAGE_PATH_BYTES];

	checkpoint_storage_location(w->jm->job_path, kept_id, location);
	snprintf(text, METADATA_TEXT_BYTES,
			"%.900s/_metadata: missing, though this checkpoint was completed",
			location);
	return kept_id > newest_id;
}

/* Newest first; the first one that has metadata, or 0. */
static int64_t newest_with_metadata(const struct storage_entry *entries, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (entries[i].has_metadata)
			return entries[i].id;
	}
	return 0;
}

/* The newest checkpoint of the job's directory. */
static void find_latest(struct start_work *w)
{
	struct storage_entry *entries;
	uint32_t count;
	char location[STORAGE_PATH_BYTES], text[METADATA_TEXT_BYTES], why[METADATA_TEXT_BYTES] = "";

	w->status = checkpoint_storage_list(w->jm->job_path, &entries, &count);
	if (w->status != 0) {
		snprintf(w->text, sizeof(w->text), "%.1000s: %s", w->jm->job_path,
				strerror(-w->status));
		return;
	}
	if (is_newest_gone(w, newest_with_metadata(entries, count), text)) {
		if (w->record->allow_rewind)
			snprintf(why, sizeof(why), "%s", text);
		else
			refuse(w, -ENOENT, text, true);
	}
	for (uint32_t i = 0; i < count && w->snapshot == NULL && w->status == 0; i++) {
		if (!entries[i].has_metadata)
			continue;
		checkpoint_storage_location(w->jm->job_path, entries[i].id, location);
		int rc = read_checkpoint(location, &w->snapshot, text);
		if (rc == 0)
			rc = check_id(w->snapshot->id, entries[i].id, location, text);
		if (rc != 0) {
			completed_checkpoint_destroy(w->snapshot);
			w->snapshot = NULL;
		}
		if (rc == 0) {
			take_up(w, location, entries[i].id, why[0] == 0 ? NULL : why);
		} else if (!w->record->allow_rewind) {
			refuse(w, rc, text, true);
		} else if (why[0] == 0) {
			snprintf(why, sizeof(why), "%s", text);
		}
	}
	free(entries);
	if (w->status == 0 && w->snapshot == NULL && why[0] != 0)
		refuse(w, -EBADMSG, why, false);
	else if (w->status == 0 && w->snapshot == NULL)
		log_warn("job_master", "job %s: no checkpoint in %s, it starts from the beginning",
				w->jm->spec->name, w->jm->job_path);
}

static bool is_none(const char *restore)
{
	return restore[0] == 0 || strcmp(restore, "none") == 0;
}

static void find_asked_for(struct start_work *w)
{
	const char *restore = w->record->restore;
	char text[METADATA_TEXT_BYTES];

	if (is_none(restore) && config_is_set(w->jm->config, configured_path))
		restore = config_text(w->jm->config, configured_path);
	if (is_none(restore))
		return;
	if (strcmp(restore, "latest") == 0) {
		find_latest(w);
		return;
	}
	int rc = read_checkpoint(restore, &w->snapshot, text);
	if (rc != 0)
		refuse(w, rc, text, false);
	else
		take_up(w, restore, w->snapshot->id, NULL);
}

/* ---- on the I/O thread: what another coordinator left ---- */

static void take_history(struct start_work *w, const Weir__CompletedRecord *newest)
{
	size_t n = newest->n_recent_ms;

	w->completed_count = newest->completed_count;
	w->failed_count = newest->failed_count;
	w->recent_count = n < JOB_RECENT_MAX ? (uint32_t)n : JOB_RECENT_MAX;
	for (uint32_t i = 0; i < w->recent_count; i++)
		w->recent_ms[i] = newest->recent_ms[i];
}

static bool is_leaving(const struct start_work *w)
{
	return w->record->stop_location[0] != 0;
}

static void note_listed(
		struct start_work *w, Weir__CompletedRecord *const *records, uint32_t count)
{
	w->listed = calloc(count + 1, sizeof(*w->listed));
	CHECK(w->listed != NULL);
	for (uint32_t i = 0; i < count; i++)
		w->listed[w->listed_count++] = records[i]->id;
}

/* ST-6, FO-10.  The newest must be readable; its states are checked where they are read. */
static void take_list(struct start_work *w)
{
	struct ha_store *ha = w->jm->services.ha;
	Weir__CompletedRecord **records;
	uint32_t count;
	char directory[METADATA_PATH_BYTES], text[METADATA_TEXT_BYTES];
	struct metadata *m;

	w->status = ha_store_read_completed(ha, w->jm->spec->id, &records, &count, w->text);
	if (w->status != 0) {
		w->is_refused = true;
		return;
	}
	if (count > 0)
		take_history(w, records[count - 1]);
	note_listed(w, records, count);
	uint32_t good = count;
	char why[METADATA_TEXT_BYTES] = "";
	while (good > 0) {
		int rc = metadata_read(&m, records[good - 1]->location, directory, text);

		if (rc == 0) {
			rc = check_id(m->checkpoint_id, records[good - 1]->id,
					records[good - 1]->location, text);
			metadata_free(m);
		}
		if (rc == 0) {
			/* One that only ends goes on from its savepoint, which is committed. */
			if (!is_leaving(w))
				take_up(w, records[good - 1]->location,
						records[good - 1]->id,
						good == count ? NULL : why);
			break;
		}
		if (!w->record->allow_rewind || good == 1) {
			refuse(w, rc, text, good > 1);
			break;
		}
		snprintf(why, sizeof(why), "%s", text);
		(void)ha_store_remove_completed(ha, w->jm->spec->id, records[good - 1]->id);
		good--;
	}
	w->entries = calloc(good + 1, sizeof(*w->entries));
	CHECK(w->entries != NULL);
	for (uint32_t i = 0; w->status == 0 && i < good; i++)
		w->entries[w->entry_count++] = completed_record_read(records[i]);
	ha_store_free_completed(records, count);
}

/* ---- on the I/O thread: the whole ---- */

static void find_next_id(struct start_work *w)
{
	struct storage_entry *entries;
	uint32_t count;

	w->status = ha_store_read_next_id(
			w->jm->services.ha, w->jm->spec->id, &w->next_id, w->text);
	if (w->status != 0)
		return;
	w->status = checkpoint_storage_list(w->jm->job_path, &entries, &count);
	/* An id that stands on disk is never used again, whoever made it. */
	if (w->status == 0 && count > 0 && entries[0].id >= w->next_id)
		w->next_id = entries[0].id + 1;
	free(entries);
}

/* A job that begins anew has no use for what an earlier life of it listed. */
static void clear_list(struct start_work *w)
{
	w->status = ha_store_clear_completed(w->jm->services.ha, w->jm->spec->id);
	if (w->status == 0)
		w->status = ha_store_write_job(w->jm->services.ha, w->jm->spec->id, w->record);
}

/* What a coordinator that died had under way, or had yet to delete. */
static void sweep(struct start_work *w)
{
	uint32_t swept = checkpoint_storage_sweep(w->jm->job_path,
			w->jm->is_recovery ? w->record->first_id : 0, w->listed, w->listed_count);

	if (swept > 0)
		log_info("job_master", "job %s: %u unfinished checkpoints swept away",
				w->jm->spec->name, swept);
}

static void find_start(void *context)
{
	struct start_work *w = context;

	bool is_recovery = w->jm->is_recovery;

	find_next_id(w);
	if (!is_recovery)
		w->record->first_id = w->next_id;
	if (w->status == 0 && is_recovery)
		take_list(w);
	if (w->status == 0)
		sweep(w);
	crash_point("before-begun");
	if (w->status == 0 && w->entry_count == 0 && !is_leaving(w))
		find_asked_for(w);
	if (w->status == 0 && !is_recovery)
		clear_list(w);
	crash_point("after-begun");
	if (w->status != 0 && w->text[0] == 0)
		snprintf(w->text, sizeof(w->text), "the coordinator's store: %s",
				strerror(-w->status));
}

/* ---- on the loop ---- */

static void free_start(struct start_work *w)
{
	for (uint32_t i = 0; i < w->entry_count; i++)
		completed_checkpoint_destroy(w->entries[i]);
	free(w->entries);
	free(w->listed);
	completed_checkpoint_destroy(w->snapshot);
	weir__job_record__free_unpacked(w->record, NULL);
	free(w);
}

static enum claim_mode claim_mode_of(const struct job_master *jm)
{
	static const char key[] = "execution.state-recovery.claim-mode";

	return config_is_choice(jm->config, key, "CLAIM")    ? CLAIM_MODE_CLAIM
	       : config_is_choice(jm->config, key, "LEGACY") ? CLAIM_MODE_LEGACY
							     : CLAIM_MODE_NO_CLAIM;
}

/* Hands the checkpoints to the rules, which own them then. */
static int hand_over(struct start_work *w)
{
	struct job_master *jm = w->jm;
	int rc = 0;

	jm->next_id = jm->reserved_id = w->next_id;
	jm->record->first_id = w->record->first_id;
	jm->completed_before = w->completed_count;
	jm->failed_before = w->failed_count;
	jm->recent_count = w->recent_count;
	memcpy(jm->recent_ms, w->recent_ms, sizeof(jm->recent_ms));
	if (w->entry_count > 0) {
		rc = checkpoint_coordinator_recover(jm->checkpoints, w->entries, w->entry_count);
		if (rc == 0)
			w->entry_count = 0;
	} else if (w->snapshot != NULL) {
		rc = checkpoint_coordinator_restore_snapshot(
				jm->checkpoints, w->snapshot, claim_mode_of(jm), job_now());
		if (rc == 0)
			w->snapshot = NULL;
	}
	job_pump(jm);
	return rc;
}

static void on_found(void *context)
{
	struct start_work *w = context;
	struct job_master *jm = w->jm;

	if (w->generation != jm->generation) {
		free_start(w);
		job_check_ended(jm);
		return;
	}
	if (w->status == 0 && hand_over(w) != 0) {
		w->is_refused = true;
		w->status = -EINVAL;
		snprintf(w->text, sizeof(w->text), "the job's checkpoints do not fit together");
	}
	if (w->status != 0) {
		jm->is_restore_refused = w->is_refused;
		job_fail_for_good(jm, NULL, w->text);
	} else {
		if (jm->is_recovery) {
			jm->record->restarts++;
			job_write_record(jm, NULL);
		}
		job_enter(jm, JOB_STATUS_CREATED);
		job_deploy(jm);
	}
	free_start(w);
}

void job_begin(struct job_master *jm)
{
	struct start_work *w = calloc(1, sizeof(*w));

	CHECK(w != NULL);
	w->jm = jm;
	w->generation = jm->generation;
	w->record = job_copy_record(jm->record);
	CHECK(w->record != NULL);
	job_post(jm, find_start, on_found, w);
}
