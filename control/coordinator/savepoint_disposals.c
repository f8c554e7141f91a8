#include "control/coordinator/savepoint_disposals.h"

#include "control/coordinator/checkpoint_storage.h"
#include "control/coordinator/io_thread.h"
#include "control/metadata/metadata.h"
#include "dataplane/base/log.h"
#include "dataplane/base/prng.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A snapshot that a job may go back to. */
struct use {
	struct use *next;
	char job[64];
	char location[STORAGE_PATH_BYTES];
};

struct disposal {
	struct id128 id;
	bool is_used, is_done, is_success;
	char path[STORAGE_PATH_BYTES];
	struct use *uses;
	char text[JOB_TEXT_BYTES]; /* why it failed; of the I/O thread until it is done */
};

struct savepoint_disposals {
	struct io_thread *io;
	uint32_t next;
	struct disposal disposals[DISPOSALS_MAX];
};

int savepoint_disposals_create(struct savepoint_disposals **out, struct io_thread *io)
{
	struct savepoint_disposals *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return -ENOMEM;
	d->io = io;
	*out = d;
	return 0;
}

static void free_uses(struct disposal *w)
{
	for (struct use *u = w->uses, *next; u != NULL; u = next) {
		next = u->next;
		free(u);
	}
	w->uses = NULL;
}

void savepoint_disposals_destroy(struct savepoint_disposals *d)
{
	for (uint32_t i = 0; d != NULL && i < DISPOSALS_MAX; i++)
		free_uses(&d->disposals[i]);
	free(d);
}

/* ---- on the I/O thread ---- */

static bool is_same_place(const char *a, const char *b)
{
	char x[PATH_MAX], y[PATH_MAX];

	return realpath(a, x) != NULL && realpath(b, y) != NULL && strcmp(x, y) == 0;
}

/* True: it may go.  Else .text says why not. */
static bool may_go(struct disposal *w, const struct metadata *m, const char *directory)
{
	if (m->kind != METADATA_SAVEPOINT) {
		snprintf(w->text, sizeof(w->text),
				"%.1000s is no savepoint but checkpoint %" PRId64
				" of job %.100s, which goes as its job's retention says",
				directory, m->checkpoint_id, m->job_name);
		return false;
	}
	for (const struct use *u = w->uses; u != NULL; u = u->next) {
		if (!is_same_place(u->location, directory))
			continue;
		snprintf(w->text, sizeof(w->text), "%.1000s is in use: job %s would go back to it",
				directory, u->job);
		return false;
	}
	return true;
}

static void dispose(void *context)
{
	struct disposal *w = context;
	char directory[METADATA_PATH_BYTES], text[METADATA_TEXT_BYTES];
	struct metadata *m;

	if (metadata_read(&m, w->path, directory, text) != 0) {
		snprintf(w->text, sizeof(w->text), "%s", text);
		return;
	}
	bool is_free = may_go(w, m, directory);
	struct deletion deletion = {.kind = DELETION_STORED,
			.checkpoint_id = m->checkpoint_id,
			.location = directory};
	metadata_free(m);
	if (!is_free)
		return;
	int rc = checkpoint_storage_delete(&deletion);
	w->is_success = rc == 0;
	if (rc != 0)
		snprintf(w->text, sizeof(w->text), "not all of %.1000s could be deleted: %s",
				directory, strerror(-rc));
}

static void on_disposed(void *context)
{
	struct disposal *w = context;

	w->is_done = true;
	free_uses(w);
	if (w->is_success)
		log_info("savepoint", "%s was disposed of", w->path);
	else
		log_warn("savepoint", "%s was not disposed of: %s", w->path, w->text);
}

/* ---- on the loop's ---- */

struct noting {
	struct disposal *w;
	const char *job;
	int status;
};

static void note_use(void *context, const char *location)
{
	struct noting *n = context;
	struct use *u = calloc(1, sizeof(*u));

	if (u == NULL) {
		n->status = -ENOMEM;
		return;
	}
	u->next = n->w->uses;
	snprintf(u->job, sizeof(u->job), "%s", n->job);
	snprintf(u->location, sizeof(u->location), "%s", location);
	n->w->uses = u;
}

static const struct disposal *find(const struct savepoint_disposals *d, struct id128 id)
{
	for (uint32_t i = 0; i < DISPOSALS_MAX; i++)
		if (d->disposals[i].is_used && id128_is_equal(d->disposals[i].id, id))
			return &d->disposals[i];
	return NULL;
}

static int note_uses(struct disposal *w, struct job_master *const *jobs, uint32_t job_count)
{
	struct noting n = {.w = w};

	for (uint32_t i = 0; i < job_count; i++) {
		n.job = job_master_name(jobs[i]);
		job_master_visit_snapshots(jobs[i], note_use, &n);
	}
	return n.status;
}

int savepoint_disposals_begin(struct savepoint_disposals *d, const char *path,
		struct job_master *const *jobs, uint32_t job_count, struct id128 *id)
{
	struct disposal *w = &d->disposals[d->next % DISPOSALS_MAX];

	while (id128_is_equal(*id, (struct id128){{0}}))
		for (int i = 0; i < 16; i += 8)
			memcpy(id->bytes + i, &(uint64_t){prng_seed_from_os()}, 8);
	if (find(d, *id) != NULL)
		return 0;
	if (w->is_used && !w->is_done)
		return -EAGAIN;
	*w = (struct disposal){.id = *id};
	snprintf(w->path, sizeof(w->path), "%s", path);
	int rc = note_uses(w, jobs, job_count);
	if (rc != 0) {
		free_uses(w);
		return rc;
	}
	w->is_used = true;
	d->next++;
	io_thread_post(d->io, dispose, on_disposed, w);
	return 0;
}

bool savepoint_disposals_answer(const struct savepoint_disposals *d, struct id128 id,
		struct checkpoint_answer *answer)
{
	const struct disposal *w = find(d, id);

	if (w == NULL)
		return false;
	*answer = (struct checkpoint_answer){.is_done = w->is_done,
			.is_success = w->is_success,
			.is_savepoint = true,
			.location = w->path,
			.text = w->text};
	return true;
}
