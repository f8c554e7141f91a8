#include "control/coordinator/job_savepoints.h"

#include "control/coordinator/job_master_internal.h"
#include "control/metadata/metadata.h"
#include "dataplane/base/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void drop(Weir__JobRecord *record, size_t index)
{
	weir__savepoint_note__free_unpacked(record->savepoints[index], NULL);
	record->n_savepoints--;
	memmove(&record->savepoints[index], &record->savepoints[index + 1],
			(record->n_savepoints - index) * sizeof(*record->savepoints));
}

void job_note_savepoint(Weir__JobRecord *record, const char *location, struct id128 request)
{
	Weir__SavepointNote *note = malloc(sizeof(*note));
	Weir__SavepointNote **notes;

	while (record->n_savepoints >= SAVEPOINT_NOTES_MAX)
		drop(record, 0);
	notes = realloc(record->savepoints, (record->n_savepoints + 1) * sizeof(*notes));
	CHECK(note != NULL && notes != NULL);
	weir__savepoint_note__init(note);
	note->location = strdup(location);
	note->request.data = malloc(sizeof(request.bytes));
	CHECK(note->location != NULL && note->request.data != NULL);
	memcpy(note->request.data, request.bytes, sizeof(request.bytes));
	note->request.len = sizeof(request.bytes);
	record->savepoints = notes;
	record->savepoints[record->n_savepoints++] = note;
}

static bool is_complete(const char *location)
{
	char path[STORAGE_PATH_BYTES + 16];

	snprintf(path, sizeof(path), "%s/" METADATA_FILE, location);
	return access(path, F_OK) == 0;
}

static void answer(struct job_master *jm, const Weir__SavepointNote *note)
{
	struct id128 id;

	memcpy(id.bytes, note->request.data, sizeof(id.bytes));
	struct job_request *r = job_add_request(jm, id);
	r->is_savepoint = r->is_done = r->is_success = true;
	snprintf(r->location, sizeof(r->location), "%s", note->location);
}

void job_recover_savepoints(struct job_master *jm)
{
	Weir__JobRecord *record = jm->record;
	struct id128 id;

	for (size_t i = 0; i < record->n_savepoints;) {
		const Weir__SavepointNote *note = record->savepoints[i];

		if (note->request.len == sizeof(id.bytes) && is_complete(note->location)) {
			answer(jm, note);
			i++;
			continue;
		}
		(void)checkpoint_storage_delete(&(struct deletion){
				.kind = DELETION_LOCATION, .location = note->location});
		drop(record, i);
	}
}
