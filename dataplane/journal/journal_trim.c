#include "dataplane/journal/journal_trim.h"

#include <stdio.h>
#include <string.h>

void journal_trim_init(struct journal_trim *t, struct journal_io *io, struct journal_directory *d)
{
	*t = (struct journal_trim){
			.io = io,
			.directory = d,
			.mark = d->is_covered ? JOURNAL_MARK_DONE : JOURNAL_MARK_OPEN,
			.file = -1,
	};
}

void journal_trim_to(struct journal_trim *t, uint64_t sequence)
{
	if (sequence > t->sequence)
		t->sequence = sequence;
	t->is_wanted = true;
}

static void ask(struct journal_trim *t, enum store_op op)
{
	const struct journal_directory *d = t->directory;
	struct store_request r = {.op = op, .file = t->file, .path = t->path};

	if (op == STORE_OPEN) {
		r.flags = STORE_CREATE;
		snprintf(t->path, sizeof(t->path), "%s/%s", d->path, JOURNAL_COVERED_NAME);
	} else if (op == STORE_SYNC_DIRECTORY) {
		r.path = d->path;
	} else if (op == STORE_UNLINK) {
		journal_segment_path(d, d->segments[0].ordinal, t->path, sizeof(t->path));
	}
	t->is_busy = journal_ask(t->io, JOURNAL_TRIM, 0, &r);
}

/* The newest one stays: it takes blocks, and names the journal. */
static bool is_oldest_covered(const struct journal_trim *t)
{
	const struct journal_directory *d = t->directory;

	return d->count > 1 && d->segments[1].first <= t->sequence;
}

uint32_t journal_trim_step(struct journal_trim *t)
{
	static const enum store_op marking[] = {
			[JOURNAL_MARK_OPEN] = STORE_OPEN,
			[JOURNAL_MARK_CLOSE] = STORE_CLOSE,
			[JOURNAL_MARK_SYNC_DIRECTORY] = STORE_SYNC_DIRECTORY,
	};

	if (!t->is_wanted || t->is_busy || t->io->now_ns < t->retry_ns)
		return 0;
	if (t->mark != JOURNAL_MARK_DONE)
		ask(t, marking[t->mark]);
	else if (is_oldest_covered(t))
		ask(t, STORE_UNLINK);
	else
		t->is_wanted = false;
	return t->is_busy;
}

static void finish_mark(struct journal_trim *t, enum store_op op, int64_t result)
{
	if (op == STORE_OPEN && result >= 0)
		t->file = (int32_t)result;
	t->mark = result == -EEXIST ? JOURNAL_MARK_DONE : t->mark + 1;
}

void journal_trim_finish(struct journal_trim *t, enum store_op op, int64_t result)
{
	t->is_busy = false;
	if (journal_is_full_error(result)) {
		/* A full disk gets room by deleting, so that goes first. */
		t->mark = JOURNAL_MARK_DONE;
	} else if (op != STORE_UNLINK && (result >= 0 || result == -EEXIST)) {
		finish_mark(t, op, result);
	} else if (result < 0 && result != -ENOENT) {
		journal_fail(t->io, (int)result, "journal: %s %.300s: %s", store_op_name(op),
				t->path, strerrordesc_np((int)-result));
	} else {
		journal_directory_forget_oldest(t->directory);
	}
}
