/*
 * Like in state_writer.c the file has a state machine of its own, so that a failure or an abort at
 * any moment ends in the same place: nothing under way, file closed and gone.
 */

#include "dataplane/base/check.h"
#include "dataplane/checkpoint/channel_state_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	PIECE_BYTES = 256 * 1024, /* one write of the table */
	GROWTH_BYTES = 256 * 1024,
	TAG_FILE_SHIFT = 48,
	TAG_CHUNK_SHIFT = 8,
	TAG_CHUNK_MASK = 0xffffffff,
};

void channel_file_begin(
		struct channel_state_executor *e, struct channel_file *f, int64_t checkpoint_id)
{
	CHECK(f->phase == CHANNEL_FILE_FREE);
	*f = (struct channel_file){
		.checkpoint_id = checkpoint_id,
		.phase = CHANNEL_FILE_COLLECTING,
		.fd = -1,
		.end = STORE_ALIGN_BYTES,
		.channels = f->channels,
		.active = f->active,
	};
	for (uint32_t i = 0; i < e->channel_count; i++)
		f->channels[i] = (struct held_channel){
			.first = CHUNK_NONE, .last = CHUNK_NONE, .next_waiting = CHUNK_NONE};
	for (uint32_t i = 0; i < e->writer_count; i++)
		f->is_participant[i] = !e->writers[i].is_closed;
	char attempt[ID128_TEXT_BYTES];
	id128_print(e->config.attempt.id, attempt);
	snprintf(f->name, sizeof(f->name), CHANNEL_STATE_PREFIX "%s-%u-%.8s",
			e->writers[0].subtask.vertex_uid, e->writers[0].subtask.subtask_index,
			attempt);
	int bytes = snprintf(f->path, sizeof(f->path), "%s/chk-%lld/%s", e->config.checkpoint_dir,
			(long long)checkpoint_id, f->name);
	if ((size_t)bytes >= sizeof(f->path))
		channel_executor_fail(e, f, -ENAMETOOLONG, "name");
}

/* ---- requests -------------------------------------------------------------------------------- */

bool channel_file_submit(struct channel_state_executor *e, struct channel_file *f,
		struct store_request *r, uint32_t chunk)
{
	r->tag = (uint64_t)(f - e->files) << TAG_FILE_SHIFT | (uint64_t)chunk << TAG_CHUNK_SHIFT |
			r->op;
	r->file = f->fd;
	r->path = f->path;
	if (store_submit(e->config.store, r) != 0)
		return false; /* the queue is full: at the next step */
	f->inflight_count++;
	return true;
}

static bool ask(struct channel_state_executor *e, struct channel_file *f, enum store_op op,
		enum channel_disk_phase next)
{
	if (op == STORE_OPEN && !f->is_second_try)
		f->is_reusing = e->is_reusing;
	struct store_request r = {
		.op = op,
		.flags = f->is_reusing ? STORE_OVERWRITE : STORE_CREATE,
	};

	if (e->config.has_direct)
		r.flags |= STORE_DIRECT;
	if (!channel_file_submit(e, f, &r, CHUNK_NONE))
		return false;
	f->disk_phase = next;
	return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct channel_state_handle *handle_of(
		const struct channel_file *f, const struct channel_state_writer *w)
{
	struct writer_result *r = channel_writer_result(w, f->checkpoint_id);

	/* Its subtask has ended since, or does not want it any more. */
	if (r == NULL || r->is_done)
		return NULL;
	return &r->handles[r->result.handle_count++];
}

/* From the number of a channel to what the subtask calls it. */
static void name_channel(const struct channel_state_writer *w, uint32_t channel,
		struct channel_state_section *s)
{
	uint32_t own = channel - w->first_channel;

	s->side = CHANNEL_STATE_INPUT;
	for (s->gate = 0; s->gate < w->subtask.input_count; s->gate++) {
		if (own < w->subtask.input_channels[s->gate])
			break;
		own -= w->subtask.input_channels[s->gate];
	}
	if (s->gate == w->subtask.input_count) {
		s->side = CHANNEL_STATE_OUTPUT;
		for (s->gate = 0; own >= w->subtask.output_channels[s->gate]; s->gate++)
			own -= w->subtask.output_channels[s->gate];
	}
	s->channel = own;
}

static uint32_t put_section(struct channel_state_executor *e, struct channel_file *f,
		uint32_t channel, uint8_t *at)
{
	const struct held_channel *ch = &f->channels[channel];
	const struct channel_state_writer *w = &e->writers[e->writer_of[channel]];
	struct channel_state_section s = {
		.checkpoint_id = f->checkpoint_id,
		.subtask_index = w->subtask.subtask_index,
		.bytes = ch->bytes,
		.chunk_count = ch->chunk_count,
	};
	uint8_t *room = at + CHANNEL_STATE_SECTION_BYTES;

	snprintf(s.vertex_uid, sizeof(s.vertex_uid), "%s", w->subtask.vertex_uid);
	name_channel(w, channel, &s);
	channel_state_encode_section(at, &s);
	for (uint32_t i = ch->first; i != CHUNK_NONE; i = e->chunks[i].next) {
		const struct held_chunk *c = &e->chunks[i];
		struct channel_state_chunk chunk = {
			c->offset, c->size, c->first_record, c->watermark, c->crc};

		channel_state_encode_chunk(room, &chunk);
		room += CHANNEL_STATE_CHUNK_BYTES;
	}
	uint32_t crc = channel_state_seal_section(at, ch->chunk_count);
	struct channel_state_handle *h = handle_of(f, w);
	if (h != NULL)
		*h = (struct channel_state_handle){s.side, s.gate, s.channel, NULL,
				f->end + (uint64_t)(at - e->table), ch->bytes, ch->chunk_count,
				crc};
	return (uint32_t)(room - at);
}

static void make_table(struct channel_state_executor *e, struct channel_file *f)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < e->channel_count; i++) {
		if (f->channels[i].chunk_count == 0)
			continue;
		at += put_section(e, f, i, e->table + at);
		f->section_count++;
	}
	memset(e->table + at, 0, channel_state_round_up(at) - at);
	struct channel_state_header h = {f->checkpoint_id, f->end, at, f->section_count};
	memset(e->header, 0, STORE_ALIGN_BYTES);
	channel_state_encode_header(e->header, &h);
	f->table_bytes = channel_state_round_up(at);
	f->phase = CHANNEL_FILE_TABLE;
	e->table_of = f;
}

static uint32_t write_table(struct channel_state_executor *e, struct channel_file *f)
{
	struct store_request r = {
		.op = STORE_WRITE,
		.flags = e->config.has_direct ? STORE_DIRECT : 0,
	};
	uint32_t count = 0;

	while (f->table_written < f->table_bytes) {
		uint64_t left = f->table_bytes - f->table_written;

		r.bytes = e->table + f->table_written;
		r.size = (uint32_t)(left < PIECE_BYTES ? left : PIECE_BYTES);
		r.offset = f->end + f->table_written;
		if (f->inflight_count == CHANNEL_STATE_WRITES_MAX ||
				!channel_file_submit(e, f, &r, CHUNK_NONE))
			return count;
		f->table_written += r.size;
		count++;
	}
	r.bytes = e->header;
	r.size = STORE_ALIGN_BYTES;
	r.offset = 0;
	f->is_header_issued = channel_file_submit(e, f, &r, CHUNK_NONE);
	return count + f->is_header_issued;
}

/* ---- completions ----------------------------------------------------------------------------- */

/* The directory of a checkpoint may hold the file of one that is no more (SL-2), whose room on the
 * disk is ours: what was right the last time is tried first. */
static bool must_open_otherwise(
		struct channel_state_executor *e, struct channel_file *f, int64_t result)
{
	if (f->is_second_try || !channel_file_is_live(f) ||
			result != (f->is_reusing ? -ENOENT : -EEXIST))
		return false;
	f->is_reusing = !f->is_reusing;
	f->is_second_try = true;
	e->is_reusing = f->is_reusing;
	return true;
}

static void finish_disk(struct channel_state_executor *e, struct channel_file *f,
		enum store_op op, int64_t result)
{
	switch (op) {
	case STORE_OPEN:
		f->fd = result < 0 ? -1 : (int32_t)result;
		f->disk_phase = result < 0 ? DISK_NONE : DISK_OPEN;
		if (must_open_otherwise(e, f, result))
			return;
		break;
	case STORE_ALLOCATE:
		f->disk_phase = DISK_OPEN;
		f->allocated = result < 0 ? UINT64_MAX : f->allocating;
		if (result == -EOPNOTSUPP)
			return; /* then the file grows write by write */
		break;
	case STORE_SYNC:
		f->disk_phase = DISK_SYNCED;
		break;
	case STORE_CLOSE:
		f->disk_phase = DISK_CLOSED;
		break;
	case STORE_UNLINK:
		f->disk_phase = DISK_NONE;
		return; /* whoever removed it before us has done the work */
	default:
		CHECK(op == STORE_WRITE); /* of the table */
	}
	if (result < 0)
		channel_executor_fail(e, f, (int)result, store_op_name(op));
}

static void finish_chunk(struct channel_state_executor *e, struct channel_file *f, uint32_t index,
		int64_t result)
{
	struct held_chunk *c = &e->chunks[index];

	CHECK(c->is_issued);
	if (c->buf != NULL)
		e->issued[c->channel]--;
	c->is_issued = false;
	channel_chunk_drop_bytes(e, c);
	if (f->phase == CHANNEL_FILE_CLEANING)
		channel_chunk_free(e, index); /* it is in no list any more */
	else if (result < 0)
		channel_executor_fail(e, f, (int)result, store_op_name(STORE_WRITE));
}

static uint32_t inflight_count(const struct channel_state_executor *e)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < CHANNEL_STATE_FILES_MAX; i++)
		count += e->files[i].inflight_count;
	return count;
}

static uint32_t reap(struct channel_state_executor *e)
{
	struct store_done done[CHANNEL_STATE_WRITES_MAX];
	uint32_t count;

	if (inflight_count(e) == 0)
		return 0;
	count = store_reap(e->config.store, done, CHANNEL_STATE_WRITES_MAX);
	for (uint32_t i = 0; i < count; i++) {
		uint64_t tag = done[i].tag;
		struct channel_file *f = &e->files[tag >> TAG_FILE_SHIFT];
		uint32_t chunk = (uint32_t)(tag >> TAG_CHUNK_SHIFT & TAG_CHUNK_MASK);

		CHECK(f->inflight_count > 0);
		f->inflight_count--;
		if (chunk != CHUNK_NONE)
			finish_chunk(e, f, chunk, done[i].result);
		else
			finish_disk(e, f, (enum store_op)(tag & 0xff), done[i].result);
	}
	if (count > 0)
		e->progress_ns = e->now_ns;
	return count;
}

/* ---- one file -------------------------------------------------------------------------------- */

static void free_table(struct channel_state_executor *e, const struct channel_file *f)
{
	if (e->table_of == f)
		e->table_of = NULL;
}

static void free_file(struct channel_state_executor *e, struct channel_file *f)
{
	channel_chunks_free(e, f);
	free_table(e, f);
	f->phase = CHANNEL_FILE_FREE;
}

void channel_file_give_up(struct channel_state_executor *e, struct channel_file *f)
{
	f->phase = CHANNEL_FILE_CLEANING;
	f->waiting_count = 0;
	f->active_count = 0;
	channel_chunks_free(e, f);
}

static uint32_t clean_up(struct channel_state_executor *e, struct channel_file *f)
{
	if (f->inflight_count > 0)
		return 0;
	switch (f->disk_phase) {
	case DISK_OPEN:
	case DISK_SYNCED:
		return ask(e, f, STORE_CLOSE, DISK_CLOSING);
	case DISK_CLOSED:
		return ask(e, f, STORE_UNLINK, DISK_UNLINKING);
	default:
		CHECK(f->disk_phase == DISK_NONE);
		free_file(e, f);
		return 1;
	}
}

/* Nothing was in flight: there is no file (CS-19). */
static uint32_t end_empty(struct channel_state_executor *e, struct channel_file *f)
{
	channel_executor_complete(e, f);
	free_file(e, f);
	return 1;
}

/* Direct writes behind the end of a file wait for each other; those inside it do not.  So it gets
 * what it needs for all chunks so far, their rows of the table included. */
static bool allocate(struct channel_state_executor *e, struct channel_file *f)
{
	uint64_t table = (uint64_t)f->chunk_count *
			(CHANNEL_STATE_SECTION_BYTES + CHANNEL_STATE_CHUNK_BYTES);
	uint64_t needed = STORE_ALIGN_BYTES + f->wanted + channel_state_round_up(table);
	uint64_t least = f->allocated == 0 ? 0 : f->allocated + GROWTH_BYTES;
	struct store_request r = {.op = STORE_ALLOCATE, .offset = f->allocated};

	if (!e->config.has_direct || f->waiting_count == 0 || f->allocated >= needed)
		return false;
	f->allocating = needed > least ? needed : least;
	r.size = (uint32_t)(f->allocating - f->allocated);
	if (!channel_file_submit(e, f, &r, CHUNK_NONE))
		return false;
	f->disk_phase = DISK_ALLOCATING;
	return true;
}

static uint32_t collect(struct channel_state_executor *e, struct channel_file *f)
{
	uint32_t work = 0;

	if (f->disk_phase == DISK_NONE && f->chunk_count > 0)
		work += ask(e, f, STORE_OPEN, DISK_OPENING);
	if (f->disk_phase == DISK_OPEN)
		work += allocate(e, f);
	if (f->disk_phase == DISK_OPEN)
		work += channel_chunks_issue(e, f);
	if (e->now_ns - e->progress_ns > e->config.patience_ns)
		work += channel_chunks_copy(e, f);
	if (f->phase != CHANNEL_FILE_COLLECTING || f->waiting_count > 0 ||
			!channel_executor_is_complete(e, f))
		return work;
	if (f->chunk_count == 0)
		return end_empty(e, f);
	if (f->inflight_count == 0 && e->table_of == NULL) {
		make_table(e, f);
		work++;
	}
	return work;
}

/* Table and header, then durable, then closed. */
static uint32_t conclude(struct channel_state_executor *e, struct channel_file *f)
{
	if (!f->is_header_issued)
		return write_table(e, f);
	if (f->inflight_count > 0)
		return 0;
	switch (f->disk_phase) {
	case DISK_OPEN:
		free_table(e, f); /* written: a sync that hangs keeps no other file from it */
		return ask(e, f, STORE_SYNC, DISK_SYNCING);
	case DISK_SYNCED:
		return ask(e, f, STORE_CLOSE, DISK_CLOSING);
	default:
		CHECK(f->disk_phase == DISK_CLOSED);
		channel_executor_complete(e, f);
		free_file(e, f);
		return 1;
	}
}

static uint32_t step_file(struct channel_state_executor *e, struct channel_file *f)
{
	switch (f->phase) {
	case CHANNEL_FILE_COLLECTING:
		return collect(e, f);
	case CHANNEL_FILE_TABLE:
		return conclude(e, f);
	case CHANNEL_FILE_CLEANING:
		return clean_up(e, f);
	case CHANNEL_FILE_FREE:
		break;
	}
	return 0;
}

bool channel_files_are_free(const struct channel_state_executor *e)
{
	for (uint32_t i = 0; i < CHANNEL_STATE_FILES_MAX; i++) {
		if (e->files[i].phase != CHANNEL_FILE_FREE)
			return false;
	}
	return true;
}

bool channel_files_are_writing(const struct channel_state_executor *e)
{
	for (uint32_t i = 0; i < CHANNEL_STATE_FILES_MAX; i++) {
		const struct channel_file *f = &e->files[i];

		if (f->chunk_count > 0 && channel_file_is_live(f))
			return true;
	}
	return false;
}

uint32_t channel_files_step(struct channel_state_executor *e)
{
	uint32_t work = reap(e), waiting = inflight_count(e);

	if (e->is_fresh)
		e->progress_ns = e->now_ns;
	e->is_fresh = false;

	for (uint32_t i = 0; i < CHANNEL_STATE_FILES_MAX; i++) {
		work += step_file(e, &e->files[i]);
		waiting += e->files[i].waiting_count;
	}
	if (waiting == 0)
		e->progress_ns = e->now_ns; /* the disk owes us nothing */
	return work;
}
