#include "dataplane/journal/journal.h"

#include "dataplane/base/check.h"
#include "dataplane/base/prng.h"
#include "dataplane/journal/journal_reader.h"
#include "dataplane/journal/journal_trim.h"
#include "dataplane/journal/journal_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REAP_COUNT = 32, READ_BYTES_MAX = 1024 * 1024 };

struct journal {
	struct weir_journal face; /* first: what operators see */
	struct journal_io io;
	struct weir_journal_config config;
	bool is_replaying;
	struct journal_reader reader;
	struct journal_segment segment;
	struct journal_writer writer;
	struct journal_trim trim;
	struct journal_directory directory;
};

static struct journal *of(struct weir_journal *face)
{
	return (struct journal *)face;
}

/* ---- what operators see ---------------------------------------------------------------------- */

static void tell(struct journal *j)
{
	struct weir_journal_status *s = &j->face.status;
	const struct journal_writer *w = &j->writer;
	const struct journal_directory *d = &j->directory;

	s->is_replaying = j->is_replaying;
	if (!j->is_replaying) {
		s->taken = w->taken_sequence;
		s->durable = w->durable_sequence;
		s->appended = w->appended_sequence;
	}
	s->first = d->count > 0 ? d->segments[0].first : s->taken;
	s->lag_bytes = w->appended_bytes - w->durable_bytes;
	s->disk_bytes = journal_directory_bytes(d);
	s->is_full = j->segment.is_full || w->is_full;
}

static uint32_t face_place(struct weir_journal *face, uint32_t bytes, uint8_t **at)
{
	struct journal *j = of(face);

	return j->is_replaying ? 0 : journal_writer_place(&j->writer, bytes, at);
}

static void face_append(struct weir_journal *face, uint32_t count, uint32_t bytes)
{
	struct journal *j = of(face);

	journal_writer_append(&j->writer, count, bytes);
	face->status.appended = j->writer.appended_sequence;
}

static bool face_next(struct weir_journal *face, uint32_t count_max, struct weir_batch *batch)
{
	struct journal *j = of(face);

	if (j->is_replaying)
		return journal_reader_next(&j->reader, count_max, batch);
	return journal_writer_next(&j->writer, count_max, batch);
}

static void face_take(struct weir_journal *face, const struct weir_batch *batch)
{
	struct journal *j = of(face);

	if (j->is_replaying) {
		journal_reader_take(&j->reader, batch);
		face->status.replayed += batch->count;
	} else {
		journal_writer_take(&j->writer, batch);
	}
	face->status.taken += batch->count;
}

static void face_trim(struct weir_journal *face, uint64_t sequence)
{
	journal_trim_to(&of(face)->trim, sequence);
}

struct weir_journal *journal_face(struct journal *j)
{
	return &j->face;
}

/* ---- where to go on -------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static int stale(char *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, JOURNAL_ERROR_BYTES, format, args);
	va_end(args);
	return -ESTALE;
}

/* Without a position all that is there is read, unless a checkpoint covered some of it. */
static int begin_without_position(struct journal *j, char *error)
{
	const struct journal_directory *d = &j->directory;

	if (d->is_covered && !j->config.accepts_gap)
		return stale(error,
				"the journal %.200s is of a run whose checkpoints cover some of "
				"it: restore from one (--restore latest), or name another "
				"directory",
				d->path);
	j->face.status.taken = d->count > 0 ? d->segments[0].first : 0;
	return 0;
}

static int begin_at_position(struct journal *j, char *error)
{
	const struct journal_directory *d = &j->directory;
	const struct weir_journal_config *c = &j->config;
	unsigned long long wanted = c->sequence;
	bool is_same = d->id == c->id;
	bool is_there = is_same && d->segments[0].first <= c->sequence;
	bool is_of_the_beginning = d->id == 0 && c->sequence == 0; /* nothing was durable yet */

	j->face.status.taken = c->sequence;
	if (is_there || is_of_the_beginning)
		return 0;
	if (!c->accepts_gap && d->id == 0)
		return stale(error,
				"the journal %.200s is empty, and the checkpoint goes on at record "
				"%llu of one: give it the directory it had, or accept the gap",
				d->path, wanted);
	if (!c->accepts_gap && !is_same)
		return stale(error, "the journal %.200s is another one than that of the checkpoint",
				d->path);
	if (!c->accepts_gap)
		return stale(error,
				"the journal %.200s begins at record %llu and the checkpoint goes "
				"on at %llu: a newer checkpoint has covered what is between",
				d->path, (unsigned long long)d->segments[0].first, wanted);
	if (d->id != 0)
		j->face.status.taken = d->segments[0].first;
	if (is_same)
		j->face.status.gap = d->segments[0].first - c->sequence;
	return 0;
}

static int check_directory(struct journal *j, char *error)
{
	const struct journal_directory *d = &j->directory;

	if (d->record_bytes_max > j->config.record_bytes_max) {
		snprintf(error, JOURNAL_ERROR_BYTES,
				"the journal %.200s holds records of up to %u bytes, and the "
				"source "
				"makes at most %u: give it the snap it had",
				d->path, d->record_bytes_max, j->config.record_bytes_max);
		return -EMSGSIZE;
	}
	return j->config.id == 0 ? begin_without_position(j, error) : begin_at_position(j, error);
}

static void begin_reading(struct journal *j)
{
	uint64_t bytes = j->config.memory_bytes;

	j->is_replaying = true;
	journal_reader_begin(&j->reader, &j->io, &j->directory, j->config.memory,
			(uint32_t)(bytes < READ_BYTES_MAX ? bytes : READ_BYTES_MAX),
			j->face.status.taken);
}

/* A record that a checkpoint has seen was durable. */
static void begin_writing(struct journal *j)
{
	struct weir_journal_status *s = &j->face.status;
	uint64_t end = j->reader.sequence;

	if (end < s->taken && !j->config.accepts_gap) {
		journal_fail(&j->io, -EBADMSG,
				"the journal %.200s ends at record %llu, and the checkpoint goes "
				"on "
				"at %llu: what is between was durable and is not there",
				j->directory.path, (unsigned long long)end,
				(unsigned long long)s->taken);
		return;
	}
	j->is_replaying = false;
	journal_writer_begin(&j->writer, s->id, end < s->taken ? s->taken : end,
			j->config.record_bytes_max);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int init_parts(struct journal *j)
{
	int rc = journal_segment_init(&j->segment, &j->io, &j->directory, j->config.segment_bytes,
			j->config.disk_bytes_max);

	journal_trim_init(&j->trim, &j->io, &j->directory);
	return rc != 0 ? rc
		       : journal_writer_init(&j->writer, &j->io, &j->segment, j->config.memory,
					 j->config.memory_bytes);
}

int journal_create(struct journal **out, struct store *store,
		const struct weir_journal_config *config, char error[JOURNAL_ERROR_BYTES])
{
	struct journal *j = calloc(1, sizeof(*j));

	CHECK(config->memory_bytes >= 4 * (uint64_t)JOURNAL_BLOCK_BYTES_MAX);
	CHECK((uintptr_t)config->memory % JOURNAL_ALIGN_BYTES == 0);
	CHECK(config->segment_bytes >= 2 * (uint64_t)JOURNAL_BLOCK_BYTES_MAX);
	CHECK(config->segment_bytes % JOURNAL_ALIGN_BYTES == 0);
	snprintf(error, JOURNAL_ERROR_BYTES, "no memory for a journal");
	if (j == NULL)
		return -ENOMEM;
	j->io.store = store;
	j->config = *config;
	j->face = (struct weir_journal){.place = face_place,
			.append = face_append,
			.next = face_next,
			.take = face_take,
			.trim = face_trim};
	int rc = journal_directory_open(&j->directory, config->directory, error);
	if (rc == 0)
		rc = check_directory(j, error);
	if (rc == 0)
		rc = init_parts(j);
	if (rc != 0) {
		journal_destroy(j);
		return rc;
	}
	j->face.status.id = j->directory.id;
	if (j->face.status.id == 0)
		j->face.status.id = config->id != 0 ? config->id : prng_seed_from_os() | 1;
	j->config.directory = NULL; /* the caller's */
	begin_reading(j);
	tell(j);
	*out = j;
	return 0;
}

void journal_destroy(struct journal *j)
{
	if (j == NULL)
		return;
	journal_writer_free(&j->writer);
	journal_segment_free(&j->segment);
	journal_directory_close(&j->directory);
	free(j);
}

static void finish(struct journal *j, const struct store_done *done)
{
	enum store_op op = journal_op_of(done->tag);

	j->io.inflight_count--;
	switch (journal_part_of(done->tag)) {
	case JOURNAL_READER:
		journal_reader_finish(&j->reader, op, done->result);
		break;
	case JOURNAL_SEGMENT:
		journal_segment_finish(&j->segment, op, done->result);
		break;
	case JOURNAL_BLOCKS:
		journal_writer_finish(&j->writer, op, journal_index_of(done->tag), done->result);
		break;
	case JOURNAL_TRIM:
		journal_trim_finish(&j->trim, op, done->result);
		break;
	}
}

static uint32_t reap(struct journal *j)
{
	struct store_done done[REAP_COUNT];

	if (j->io.inflight_count == 0)
		return 0;
	uint32_t count = store_reap(j->io.store, done, REAP_COUNT);
	CHECK(count <= j->io.inflight_count);
	for (uint32_t i = 0; i < count; i++)
		finish(j, &done[i]);
	return count;
}

/* The reader counts on the segments it found, so none is deleted before it is over. */
static uint32_t serve(struct journal *j)
{
	if (!j->is_replaying)
		return journal_writer_step(&j->writer) + journal_trim_step(&j->trim);
	uint32_t work = journal_reader_step(&j->reader);
	if (journal_reader_is_over(&j->reader) && !j->reader.is_stopped && j->io.failure == 0)
		begin_writing(j);
	return work;
}

uint32_t journal_step(struct journal *j, uint64_t now_ns)
{
	j->io.now_ns = now_ns;
	uint32_t work = reap(j);
	work += serve(j);
	tell(j);
	return work;
}

int journal_failure(const struct journal *j, const char **text)
{
	*text = j->io.text;
	return j->io.failure;
}

void journal_stop(struct journal *j)
{
	journal_reader_stop(&j->reader);
	journal_writer_stop(&j->writer);
}

bool journal_is_idle(const struct journal *j)
{
	if (j->io.inflight_count > 0)
		return false;
	if (j->is_replaying)
		return journal_reader_is_idle(&j->reader);
	return journal_writer_is_idle(&j->writer) && journal_trim_is_idle(&j->trim);
}
