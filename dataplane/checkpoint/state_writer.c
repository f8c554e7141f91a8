/*
 * A snapshot has one part for each state.  Parts are finished in order, because the offset of one
 * in the file follows from the size of the one before; keyed states whose turn has not come are
 * kept as they were by their own copies before each change.
 *
 * The file has a state machine of its own, so that a failure or an abort at any moment ends in the
 * same place: nothing under way, file closed and gone.
 */

#include "dataplane/checkpoint/state_writer.h"

#include "dataplane/base/check.h"
#include "dataplane/base/crc.h"
#include "dataplane/checkpoint/store.h"
#include "dataplane/operator/keyed_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	WRITES_IN_FLIGHT_MAX = 16,
	PARTS_PER_STEP = 16,
	PIECE_BYTES = KEYED_STATE_PIECE_BYTES, /* one write */
	SUM_BYTES_PER_STEP = 256 << 10,
};

static_assert((int)KEYED_STATE_ALIGN_BYTES == (int)STORE_ALIGN_BYTES,
		"pieces can be written direct");

enum phase {
	PHASE_IDLE,
	PHASE_WRITING,
	PHASE_DONE,
	PHASE_CLEANING, /* failed or given up */
};

enum file_phase {
	FILE_NONE,
	FILE_OPENING,
	FILE_OPEN,
	FILE_SYNCING,
	FILE_SYNCED,
	FILE_CLOSING,
	FILE_CLOSED,
	FILE_UNLINKING,
};

enum place { PLACE_UNKNOWN, PLACE_INLINE, PLACE_FILE };

/* What one state has become. */
struct part {
	uint8_t *staged;      /* values and lists: room of our own */
	struct keyed_snapshot *keyed; /* the others: theirs */
	const uint8_t *bytes; /* the snapshot of the state */
	uint64_t size;        /* so far; final when is_copied */
	uint64_t item_count;
	uint64_t offset;      /* in the file */
	uint64_t summed;      /* bytes that are in `crc` */
	uint64_t submitted;
	enum place place;
	bool is_copied;
	uint32_t crc;
};

struct state_writer {
	struct state_writer_config config;
	enum phase phase;
	enum file_phase file_phase;
	bool has_snapshot; /* begun, neither ended nor aborted */
	bool is_reusing;   /* there was a file to write over, the last time */
	bool is_second_try; /* to open one: it was not as the last time */
	int status;        /* first failure, or 0 */
	int32_t file;
	uint32_t inflight_count;
	uint32_t current;      /* the part whose turn it is */
	uint64_t file_bytes;   /* end of the last part in the file */
	const uint8_t *piece; /* taken from the current part and not yet submitted, or NULL */
	uint32_t piece_size;
	struct task_state result;
	struct state_handle handles[TASK_STATE_HANDLES_MAX];
	struct part parts[TASK_STATE_HANDLES_MAX];
	char file_name[TASK_STATE_NAME_BYTES_MAX];
	char path[STATE_WRITER_PATH_BYTES];
	char text[STATE_WRITER_TEXT_BYTES];
};

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static bool is_valid(const struct state_writer_config *c)
{
	size_t uid_bytes = strlen(c->vertex_uid);

	if (uid_bytes == 0 || uid_bytes >= UID_BYTES_MAX || strchr(c->vertex_uid, '/') != NULL)
		return false;
	if (c->state_count > TASK_STATE_HANDLES_MAX ||
			c->inline_bytes_max > STATE_INLINE_BYTES_MAX)
		return false;
	return c->parallelism <= c->group_count && c->subtask_index < c->parallelism;
}

/* Room for a value or a list; keyed states keep their own copies. */
static uint64_t staged_bytes(const struct declared_state *s)
{
	uint64_t count = s->kind == WEIR_STATE_LIST ? s->capacity : 1;

	return s->kind == WEIR_STATE_KEYED ? 0 : round_up(count * s->value_bytes,
			STORE_ALIGN_BYTES);
}

uint64_t state_writer_memory_bytes(const struct state_writer_config *config)
{
	uint64_t bytes = round_up(sizeof(struct state_writer), STORE_ALIGN_BYTES);

	if (!is_valid(config))
		return 0;
	for (uint32_t i = 0; i < config->state_count; i++)
		bytes += staged_bytes(&config->states[i]);
	return bytes;
}

struct state_writer *state_writer_create_at(
		void *memory, const struct state_writer_config *config)
{
	struct state_writer *w = memory;
	uint8_t *room = (uint8_t *)memory + round_up(sizeof(*w), STORE_ALIGN_BYTES);
	char attempt[ID128_TEXT_BYTES];

	CHECK(is_valid(config));
	CHECK((uintptr_t)memory % STORE_ALIGN_BYTES == 0);
	memset(memory, 0, state_writer_memory_bytes(config));
	w->config = *config;
	for (uint32_t i = 0; i < config->state_count; i++) {
		w->parts[i].staged = room;
		room += staged_bytes(&config->states[i]);
	}
	id128_print(config->attempt.id, attempt);
	snprintf(w->file_name, sizeof(w->file_name), "%s-%u-%.8s", config->vertex_uid,
			config->subtask_index, attempt);
	return w;
}

/* ---- failing --------------------------------------------------------------------------------- */

static bool is_keyed(const struct state_writer *w, uint32_t part)
{
	return w->config.states[part].kind == WEIR_STATE_KEYED;
}

static void drop_keyed(struct state_writer *w)
{
	if (w->piece != NULL && is_keyed(w, w->current))
		keyed_snapshot_release(w->parts[w->current].keyed);
	w->piece = NULL;
	for (uint32_t i = 0; i < w->config.state_count; i++) {
		if (is_keyed(w, i))
			keyed_snapshot_abort(w->parts[i].keyed);
	}
}

static void fail(struct state_writer *w, int status, const char *what)
{
	CHECK(status < 0);
	if (w->phase != PHASE_WRITING)
		return; /* while cleaning up nothing more can be lost */
	w->status = status;
	snprintf(w->text, sizeof(w->text), "%s %s: %s", what, w->path, strerrordesc_np(-status));
	w->phase = PHASE_CLEANING;
	drop_keyed(w);
}

/* ---- the synchronous part ------------------------------------------------------------------- */

static enum place place_of(const struct state_writer *w, uint64_t size)
{
	return size <= w->config.inline_bytes_max ? PLACE_INLINE : PLACE_FILE;
}

/* Copies a value or a list; behind it zeros, for a write that is aligned. */
static void stage(struct state_writer *w, const struct declared_state *s, struct part *p)
{
	CHECK(s->kind == WEIR_STATE_VALUE || *s->list_count <= s->capacity);
	p->item_count = s->kind == WEIR_STATE_VALUE ? 1 : *s->list_count;
	p->size = p->item_count * s->value_bytes;
	memcpy(p->staged, s->memory, p->size);
	memset(p->staged + p->size, 0, round_up(p->size, STORE_ALIGN_BYTES) - p->size);
	p->bytes = p->staged;
	p->place = place_of(w, p->size);
	p->is_copied = true;
}

static void freeze(struct state_writer *w, const struct declared_state *s, struct part *p)
{
	p->keyed = keyed_state_snapshot_begin(s->keyed);
	CHECK(p->keyed != NULL);
	p->bytes = keyed_snapshot_bytes(p->keyed);
	p->item_count = keyed_snapshot_entry_count(p->keyed);
	if (place_of(w, keyed_snapshot_bytes_max(p->keyed)) == PLACE_INLINE)
		p->place = PLACE_INLINE;
	else if (place_of(w, p->item_count * (s->key_bytes + (uint64_t)s->value_bytes)) ==
			PLACE_FILE)
		p->place = PLACE_FILE;
}

/* A keyed state is copied for so many snapshots at a time, whoever writes them. */
static bool can_freeze(const struct state_writer *w)
{
	for (uint32_t i = 0; i < w->config.state_count; i++) {
		if (is_keyed(w, i) && !keyed_state_can_snapshot(w->config.states[i].keyed))
			return false;
	}
	return true;
}

int state_writer_begin(struct state_writer *w, int64_t checkpoint_id, const char *directory)
{
	int bytes;

	CHECK(!w->has_snapshot);
	CHECK(checkpoint_id > 0);
	if (!state_writer_is_idle(w))
		return -EBUSY;
	if (!can_freeze(w))
		return -ENOBUFS;
	bytes = snprintf(w->path, sizeof(w->path), "%s/%s", directory, w->file_name);
	if (bytes < 0 || (size_t)bytes >= sizeof(w->path))
		return -ENAMETOOLONG;
	w->phase = PHASE_WRITING;
	w->has_snapshot = true;
	w->status = 0;
	w->current = 0;
	w->file_bytes = 0;
	w->is_second_try = false;
	for (uint32_t i = 0; i < w->config.state_count; i++) {
		const struct declared_state *s = &w->config.states[i];
		struct part *p = &w->parts[i];

		*p = (struct part){.staged = p->staged};
		if (s->kind == WEIR_STATE_KEYED)
			freeze(w, s, p);
		else
			stage(w, s, p);
	}
	return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* A tag is (part, request).  Requests that are not writes have no part. */
static uint64_t tag_of(enum store_op op, uint32_t part)
{
	return (uint64_t)part << 8 | op;
}

static bool submit(struct state_writer *w, struct store_request *r, uint32_t part)
{
	r->tag = tag_of(r->op, part);
	r->file = w->file;
	r->path = w->path;
	if (store_submit(w->config.store, r) != 0)
		return false; /* the queue is full: at the next step */
	w->inflight_count++;
	return true;
}

/* One request about the file as a whole; `next` is the phase while it is under way. */
static void ask(struct state_writer *w, enum store_op op, enum file_phase next)
{
	struct store_request r = {
		.op = op,
		.flags = STORE_DIRECT | (w->is_reusing ? STORE_OVERWRITE : STORE_CREATE),
	};

	if (submit(w, &r, 0))
		w->file_phase = next;
}

/* The directory of a checkpoint may hold the file of one that is no more (SL-2), whose room on the
 * disk is ours: we try first what was right the last time. */
static bool must_open_otherwise(struct state_writer *w, int64_t result)
{
	if (w->is_second_try || w->phase != PHASE_WRITING ||
			result != (w->is_reusing ? -ENOENT : -EEXIST))
		return false;
	w->is_reusing = !w->is_reusing;
	w->is_second_try = true;
	return true;
}

static void finish_file(struct state_writer *w, enum store_op op, int64_t result)
{
	switch (op) {
	case STORE_OPEN:
		w->file = result < 0 ? -1 : (int32_t)result;
		w->file_phase = result < 0 ? FILE_NONE : FILE_OPEN;
		if (must_open_otherwise(w, result))
			return;
		break;
	case STORE_SYNC:
		w->file_phase = FILE_SYNCED;
		break;
	case STORE_CLOSE:
		w->file_phase = FILE_CLOSED;
		break;
	default:
		CHECK(op == STORE_UNLINK);
		w->file_phase = FILE_NONE;
		return; /* whoever removed it before us has done the work */
	}
	if (result < 0)
		fail(w, (int)result, store_op_name(op));
}

static void finish_write(struct state_writer *w, uint32_t part, int64_t result)
{
	CHECK(part < w->config.state_count);
	if (is_keyed(w, part))
		keyed_snapshot_release(w->parts[part].keyed);
	if (result < 0)
		fail(w, (int)result, "write");
}

static uint32_t reap(struct state_writer *w)
{
	struct store_done done[WRITES_IN_FLIGHT_MAX];
	uint32_t count;

	if (w->inflight_count == 0)
		return 0;
	count = store_reap(w->config.store, done, WRITES_IN_FLIGHT_MAX);
	CHECK(count <= w->inflight_count);
	for (uint32_t i = 0; i < count; i++) {
		enum store_op op = (enum store_op)(done[i].tag & 0xff);

		w->inflight_count--;
		if (op == STORE_WRITE)
			finish_write(w, (uint32_t)(done[i].tag >> 8), done[i].result);
		else
			finish_file(w, op, done[i].result);
	}
	return count;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Takes the next piece of the current part; false: none is ready. */
static bool take_piece(struct state_writer *w)
{
	const struct part *p = &w->parts[w->current];
	uint64_t left = p->size - p->submitted;
	bool is_summed = p->is_copied && p->summed == p->size;

	if (w->piece != NULL)
		return true;
	if (left == 0 || (!is_summed && p->summed - p->submitted < PIECE_BYTES))
		return false;
	if (is_keyed(w, w->current))
		return keyed_snapshot_take(p->keyed, &w->piece, &w->piece_size);
	w->piece = p->bytes + p->submitted;
	w->piece_size = (uint32_t)(left < PIECE_BYTES ? left : PIECE_BYTES);
	return true;
}

/* Queues what is ready and checksummed of the current part.  Returns how many writes. */
static uint32_t write_pieces(struct state_writer *w)
{
	struct part *p = &w->parts[w->current];
	uint32_t count = 0;

	while (w->inflight_count < WRITES_IN_FLIGHT_MAX && take_piece(w)) {
		struct store_request r = {
			.op = STORE_WRITE,
			.flags = STORE_DIRECT,
			.bytes = w->piece,
			.size = (uint32_t)round_up(w->piece_size, STORE_ALIGN_BYTES),
			.offset = p->offset + p->submitted,
		};

		if (!submit(w, &r, w->current))
			break;
		p->submitted += w->piece_size;
		w->piece = NULL;
		count++;
	}
	return count;
}

/* Copies a bounded amount of a keyed state, which sums it itself.  Whether it did anything. */
static bool copy_keyed(struct state_writer *w, struct part *p, uint32_t block_budget)
{
	if (p->is_copied)
		return false;
	p->is_copied = keyed_snapshot_step(p->keyed, block_budget);
	p->size = p->summed = keyed_snapshot_filled(p->keyed);
	if (!p->is_copied)
		return true;
	p->crc = keyed_snapshot_crc(p->keyed);
	if (p->place == PLACE_UNKNOWN)
		p->place = place_of(w, p->size);
	return true;
}

/* Copies and checksums a bounded amount of the current part.  Returns whether it did anything. */
static bool prepare_part(struct state_writer *w, uint32_t block_budget)
{
	struct part *p = &w->parts[w->current];
	uint64_t bytes;

	if (is_keyed(w, w->current))
		return copy_keyed(w, p, block_budget);
	bytes = p->size - p->summed;
	if (bytes > SUM_BYTES_PER_STEP)
		bytes = SUM_BYTES_PER_STEP;
	p->crc = crc32c(p->crc, p->bytes + p->summed, bytes);
	p->summed += bytes;
	return bytes > 0;
}

static bool is_part_over(const struct part *p)
{
	if (!p->is_copied || p->summed < p->size)
		return false;
	return p->place == PLACE_INLINE || p->submitted == p->size;
}

/* Goes on with the part whose turn it is.  True when it is over. */
static bool write_part(struct state_writer *w, uint32_t block_budget, uint32_t *work)
{
	struct part *p = &w->parts[w->current];

	*work += prepare_part(w, block_budget);
	if (p->place == PLACE_FILE) {
		p->offset = w->file_bytes;
		if (w->file_phase == FILE_NONE)
			ask(w, STORE_OPEN, FILE_OPENING);
		if (w->file_phase == FILE_OPEN)
			*work += write_pieces(w);
	}
	if (!is_part_over(p))
		return false;
	if (p->place == PLACE_FILE)
		w->file_bytes = round_up(p->offset + p->size, STORE_ALIGN_BYTES);
	w->current++;
	*work += 1;
	return true;
}

/* Small parts are often over at once, so a step may look at several. */
static uint32_t write_parts(struct state_writer *w, uint32_t block_budget)
{
	uint32_t work = 0;

	for (uint32_t i = 0; i < PARTS_PER_STEP && w->current < w->config.state_count; i++) {
		if (!write_part(w, block_budget, &work))
			break;
	}
	return work;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void describe(struct state_writer *w)
{
	const struct state_writer_config *c = &w->config;

	for (uint32_t i = 0; i < c->state_count; i++) {
		const struct declared_state *s = &c->states[i];
		const struct part *p = &w->parts[i];
		bool is_file = p->place == PLACE_FILE;

		w->handles[i] = (struct state_handle){
			.uid = s->uid,
			.name = s->name,
			.kind = s->kind,
			.key_bytes = s->kind == WEIR_STATE_KEYED ? s->key_bytes : 0,
			.value_bytes = s->value_bytes,
			.version = s->version,
			.item_count = p->item_count,
			.file = is_file ? w->file_name : NULL,
			.offset = is_file ? p->offset : 0,
			.bytes = is_file ? NULL : p->bytes,
			.size = p->size,
			.crc = p->crc,
		};
	}
	w->result = (struct task_state){
		.vertex_uid = c->vertex_uid,
		.subtask_index = c->subtask_index,
		.parallelism = c->parallelism,
		.group_count = c->group_count,
		.groups = key_group_range_of(c->subtask_index, c->parallelism, c->group_count),
		.handle_count = c->state_count,
		.handles = w->handles,
	};
}

static void finish_snapshot(struct state_writer *w)
{
	if (w->inflight_count > 0)
		return;
	if (w->file_phase == FILE_OPEN)
		ask(w, STORE_SYNC, FILE_SYNCING);
	else if (w->file_phase == FILE_SYNCED)
		ask(w, STORE_CLOSE, FILE_CLOSING);
	if (w->file_phase == FILE_NONE || w->file_phase == FILE_CLOSED) {
		describe(w);
		w->phase = PHASE_DONE;
	}
}

static void clean_up(struct state_writer *w)
{
	if (w->inflight_count > 0)
		return;
	if (w->file_phase == FILE_OPEN || w->file_phase == FILE_SYNCED)
		ask(w, STORE_CLOSE, FILE_CLOSING);
	else if (w->file_phase == FILE_CLOSED)
		ask(w, STORE_UNLINK, FILE_UNLINKING);
	else if (w->file_phase == FILE_NONE)
		w->phase = PHASE_IDLE;
}

uint32_t state_writer_step(struct state_writer *w, uint32_t block_budget)
{
	uint32_t work = reap(w);

	if (w->phase == PHASE_WRITING)
		work += write_parts(w, block_budget);
	if (w->phase == PHASE_WRITING && w->current == w->config.state_count)
		finish_snapshot(w);
	if (w->phase == PHASE_CLEANING)
		clean_up(w);
	return work;
}

bool state_writer_is_done(const struct state_writer *w)
{
	return w->has_snapshot && (w->phase == PHASE_DONE || w->status != 0);
}

int state_writer_outcome(const struct state_writer *w, const char **text)
{
	CHECK(state_writer_is_done(w));
	*text = w->status != 0 ? w->text : "";
	return w->status;
}

const struct task_state *state_writer_result(const struct state_writer *w)
{
	CHECK(w->phase == PHASE_DONE);
	CHECK(w->has_snapshot);
	return &w->result;
}

static void end_keyed(struct state_writer *w)
{
	for (uint32_t i = 0; i < w->config.state_count; i++) {
		if (is_keyed(w, i))
			keyed_snapshot_end(w->parts[i].keyed);
	}
}

void state_writer_end(struct state_writer *w)
{
	CHECK(state_writer_is_done(w));
	w->has_snapshot = false;
	if (w->phase != PHASE_DONE)
		return;
	end_keyed(w);
	w->file_phase = FILE_NONE;
	w->phase = PHASE_IDLE;
}

void state_writer_abort(struct state_writer *w)
{
	if (!w->has_snapshot)
		return;
	w->has_snapshot = false;
	if (w->phase == PHASE_DONE)
		end_keyed(w);
	else if (w->phase == PHASE_WRITING)
		drop_keyed(w);
	w->phase = PHASE_CLEANING;
	clean_up(w);
}

bool state_writer_is_idle(const struct state_writer *w)
{
	return w->phase == PHASE_IDLE;
}
