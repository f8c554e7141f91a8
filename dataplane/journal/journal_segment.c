#include "dataplane/journal/journal_segment.h"

#include "dataplane/base/check.h"

#include <stdlib.h>
#include <string.h>

int journal_segment_init(struct journal_segment *s, struct journal_io *io,
		struct journal_directory *d, uint64_t segment_bytes, uint64_t disk_bytes_max)
{
	*s = (struct journal_segment){
			.io = io,
			.directory = d,
			.segment_bytes = segment_bytes,
			.disk_bytes_max = disk_bytes_max,
			.file = -1,
			.header_block = aligned_alloc(STORE_ALIGN_BYTES, JOURNAL_ALIGN_BYTES),
	};
	return s->header_block == NULL ? -ENOMEM : 0;
}

void journal_segment_free(struct journal_segment *s)
{
	free(s->header_block);
	s->header_block = NULL;
}

void journal_segment_begin(
		struct journal_segment *s, uint64_t id, uint64_t first, uint32_t record_bytes_max)
{
	CHECK(s->phase == JOURNAL_SEGMENT_NONE);
	s->phase = JOURNAL_SEGMENT_OPEN;
	s->used = JOURNAL_ALIGN_BYTES;
	s->header = (struct journal_segment_header){
			.id = id,
			.ordinal = s->directory->next_ordinal,
			.first = first,
			.record_bytes_max = record_bytes_max,
	};
	journal_encode_header(s->header_block, &s->header);
	journal_segment_path(s->directory, s->header.ordinal, s->path, sizeof(s->path));
}

void journal_segment_end(struct journal_segment *s)
{
	if (s->file >= 0)
		s->phase = JOURNAL_SEGMENT_CLOSE;
	else if (!s->is_busy)
		s->phase = JOURNAL_SEGMENT_NONE;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void ask(struct journal_segment *s, enum store_op op)
{
	struct store_request r = {.op = op, .file = s->file};

	switch (op) {
	case STORE_OPEN:
		r.flags = STORE_CREATE | STORE_DIRECT;
		r.path = s->path;
		break;
	case STORE_ALLOCATE:
		r.size = (uint32_t)s->segment_bytes;
		break;
	case STORE_WRITE:
		r.flags = STORE_DIRECT;
		r.bytes = s->header_block;
		r.size = JOURNAL_ALIGN_BYTES;
		break;
	case STORE_SYNC_DIRECTORY:
		r.path = s->directory->path;
		break;
	default:
		break;
	}
	s->is_busy = journal_ask(s->io, JOURNAL_SEGMENT, 0, &r);
}

/* Past the limit that was set it is full before the disk is. */
static void ask_for_file(struct journal_segment *s)
{
	const struct journal_directory *d = s->directory;

	s->is_full = d->count == JOURNAL_SEGMENTS_MAX ||
		     journal_directory_bytes(d) + s->segment_bytes > s->disk_bytes_max;
	if (s->is_full)
		s->retry_ns = s->io->now_ns + JOURNAL_RETRY_NS;
	else
		ask(s, STORE_OPEN);
}

uint32_t journal_segment_step(struct journal_segment *s)
{
	static const enum store_op ops[] = {
			[JOURNAL_SEGMENT_ALLOCATE] = STORE_ALLOCATE,
			[JOURNAL_SEGMENT_HEADER] = STORE_WRITE,
			[JOURNAL_SEGMENT_SYNC] = STORE_SYNC,
			[JOURNAL_SEGMENT_SYNC_DIRECTORY] = STORE_SYNC_DIRECTORY,
			[JOURNAL_SEGMENT_CLOSE] = STORE_CLOSE,
	};

	if (s->is_busy || (s->is_full && s->io->now_ns < s->retry_ns &&
					  s->phase != JOURNAL_SEGMENT_CLOSE))
		return 0;
	if (s->phase == JOURNAL_SEGMENT_NONE || s->phase == JOURNAL_SEGMENT_READY)
		return 0;
	if (s->phase == JOURNAL_SEGMENT_OPEN)
		ask_for_file(s);
	else
		ask(s, ops[s->phase]);
	return s->is_busy;
}

/* ---- completions ----------------------------------------------------------------------------- */

static void become_ready(struct journal_segment *s)
{
	struct journal_directory *d = s->directory;

	d->segments[d->count++] = (struct journal_segment_entry){
			s->header.ordinal, s->header.first, s->segment_bytes};
	d->next_ordinal++;
	s->phase = JOURNAL_SEGMENT_READY;
}

static void go_on(struct journal_segment *s, enum store_op op, int64_t result)
{
	s->is_full = false;
	if (op == STORE_OPEN)
		s->file = (int32_t)result;
	if (op == STORE_SYNC_DIRECTORY)
		become_ready(s);
	else
		s->phase++;
}

void journal_segment_finish(struct journal_segment *s, enum store_op op, int64_t result)
{
	bool is_ending = s->phase == JOURNAL_SEGMENT_CLOSE;

	s->is_busy = false;
	if (op == STORE_CLOSE) {
		s->file = -1;
		s->phase = JOURNAL_SEGMENT_NONE;
	} else if (is_ending) {
		/* its end came meanwhile */
	} else if (op == STORE_ALLOCATE && result == -EOPNOTSUPP) {
		go_on(s, op, result);
	} else if (journal_is_full_error(result)) {
		s->is_full = true;
		s->retry_ns = s->io->now_ns + JOURNAL_RETRY_NS;
	} else if (result < 0) {
		journal_fail(s->io, (int)result, "journal: %s %.300s: %s", store_op_name(op),
				s->path, strerrordesc_np((int)-result));
	} else {
		go_on(s, op, result);
	}
}
