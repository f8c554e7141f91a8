/* job_rewind: output that was committed after the checkpoint a job goes back to (DESIGN, ST-6):
 * taken back when that was asked for, else the restore is refused. */

#include "control/coordinator/job_master_internal.h"
#include "control/metadata/metadata.h"
#include "control/restore/newer_output.h"
#include "dataplane/base/log.h"
#include "dataplane/operator/file_sink_parts.h"
#include "dataplane/operator/file_sink_withdraw.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char file_sink[] = "file-sink";

static const char *path_of(const struct job_operator *op)
{
	for (uint32_t i = 0; i < op->table->param_count; i++)
		if (strcmp(op->table->params[i].name, "path") == 0)
			return op->values[i].text;
	return NULL;
}

/* True, with its path, when a part of that uid above `id` is in the directory. */
static bool has_newer(const char *directory, const char *uid, int64_t id, char text[JOB_TEXT_BYTES])
{
	char name[NEWER_OUTPUT_NAME_BYTES];

	if (!newer_output_find(directory, uid, id, name))
		return false;
	snprintf(text, JOB_TEXT_BYTES,
			"%.700s/%s was committed after checkpoint %" PRId64 ": going on from there "
			"would write its records again; --allow-rewind takes it back first",
			directory, name, id);
	return true;
}

static void tell_withdrawn(void *user, const char *from, const char *to)
{
	const struct job_master *jm = user;

	log_warn("job_master", "job %s: %s is taken back to %s", jm->spec->name, from, to);
}

static int rewind_directory(struct job_master *jm, const char *directory, const char *uid,
		int64_t id, char text[JOB_TEXT_BYTES])
{
	char reason[PARTS_TEXT_BYTES];

	if (!has_newer(directory, uid, id, text))
		return 0;
	if (!jm->record->allow_rewind)
		return -EEXIST;
	int rc = file_sink_withdraw(directory, uid, id, tell_withdrawn, jm, reason);
	if (rc != 0)
		snprintf(text, JOB_TEXT_BYTES, "output cannot be taken back: %s", reason);
	return rc;
}

/* Where the sinks write now, and where they did when the checkpoint was taken. */
static int rewind_sink(struct job_master *jm, const struct job_operator *op,
		const struct metadata *m, int64_t id, char text[JOB_TEXT_BYTES])
{
	const char *path = path_of(op);
	int rc = path == NULL ? 0 : rewind_directory(jm, path, op->uid, id, text);

	for (uint32_t i = 0; rc == 0 && m != NULL && i < m->sink_directory_count; i++)
		rc = rewind_directory(jm, m->sink_directories[i], op->uid, id, text);
	return rc;
}

int job_rewind(struct job_master *jm, const char *location, int64_t id, bool is_older,
		char text[JOB_TEXT_BYTES])
{
	char directory[METADATA_PATH_BYTES], ignored[METADATA_TEXT_BYTES];
	struct metadata *m = NULL;
	int rc = 0;

	if (metadata_read(&m, location, directory, ignored) != 0)
		m = NULL;
	for (uint32_t v = 0; rc == 0 && v < jm->spec->vertex_count; v++) {
		const struct job_vertex *vertex = &jm->spec->vertices[v];

		for (uint32_t i = 0; rc == 0 && i < vertex->operator_count; i++) {
			const struct job_operator *op = &vertex->operators[i];

			if (op->table->role != WEIR_SINK)
				continue;
			if (strcmp(op->table->name, file_sink) == 0)
				rc = rewind_sink(jm, op, m, id, text);
			else if (is_older)
				log_warn("job_master",
						"job %s: what %s (%s) has put out after checkpoint "
						"%" PRId64 " cannot be taken back, if it keeps any",
						jm->spec->name, op->uid, op->table->name, id);
		}
	}
	metadata_free(m);
	return rc;
}
