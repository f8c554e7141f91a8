/*
 * Requests are not queued: what Flink's thread does later happens here at once, so "the request
 * comes too late" (CS-12) can only be said to a start; data for a checkpoint that has ended since
 * finds its result done and is dropped.  Only the disk takes its time: a file that has all it waits
 * for when a newer one begins is past (CS-8: what came before the start is done before it) and goes
 * on to its end beside the new one.
 */

#include "dataplane/checkpoint/channel_state_executor.h"

#include "dataplane/base/check.h"
#include "dataplane/checkpoint/channel_state_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- memory ---------------------------------------------------------------------------------- */

/* Of one file: buffers, what is left of one and of a record for each channel. */
static uint32_t chunk_count_of_file(const struct channel_state_executor_config *c)
{
	return c->buf_count + 2 * c->channel_count;
}

static uint32_t chunk_count(const struct channel_state_executor_config *c)
{
	return CHANNEL_STATE_FILES_MAX * chunk_count_of_file(c);
}

static uint64_t table_bytes(const struct channel_state_executor_config *c)
{
	return channel_state_round_up((uint64_t)c->channel_count * CHANNEL_STATE_SECTION_BYTES +
			(uint64_t)chunk_count(c) * CHANNEL_STATE_CHUNK_BYTES);
}

/* Gives out pieces of one memory, or only counts them when it is NULL. */
struct pieces {
	uint8_t *memory;
	uint64_t used;
};

static void *piece(struct pieces *p, uint64_t bytes, uint64_t align)
{
	uint64_t at = (p->used + align - 1) / align * align;

	p->used = at + bytes;
	return p->memory == NULL ? NULL : p->memory + at;
}

static void lay_out_writers(struct pieces *p, struct channel_state_executor *e,
		const struct channel_state_executor_config *c)
{
	struct channel_state_writer *writers =
			piece(p, c->subtask_count * sizeof(*writers), sizeof(uint64_t));

	/* Each writer has a share of the channels; the handles are cut up in add. */
	struct channel_state_handle *handles = piece(p, (uint64_t)CHANNEL_STATE_RESULTS_MAX *
			c->channel_count * sizeof(*handles), sizeof(uint64_t));
	if (e == NULL)
		return;
	e->writers = writers;
	e->handles = handles;
}

static void lay_out(struct pieces *p, struct channel_state_executor *e,
		const struct channel_state_executor_config *c)
{
	struct channel_state_executor counted;
	uint64_t pages = c->staging_bytes / STORE_ALIGN_BYTES;

	(void)piece(p, sizeof(*e), sizeof(uint64_t));
	lay_out_writers(p, e, c);
	if (e == NULL)
		e = &counted;
	for (uint32_t i = 0; i < CHANNEL_STATE_FILES_MAX; i++) {
		struct channel_file *f = &e->files[i];

		f->channels = piece(p, c->channel_count * sizeof(*f->channels), sizeof(uint64_t));
		f->active = piece(p, c->channel_count * sizeof(*f->active), sizeof(uint64_t));
	}
	e->chunks = piece(p, chunk_count(c) * sizeof(*e->chunks), sizeof(uint64_t));
	e->issued = piece(p, c->channel_count * sizeof(*e->issued), sizeof(uint64_t));
	e->writer_of = piece(p, c->channel_count * sizeof(*e->writer_of), sizeof(uint64_t));
	e->staging_used = piece(p, channel_state_round_up(pages), STORE_ALIGN_BYTES);
	e->header = piece(p, STORE_ALIGN_BYTES, STORE_ALIGN_BYTES);
	e->staging = piece(p, c->staging_bytes, STORE_ALIGN_BYTES);
	e->table = piece(p, table_bytes(c), STORE_ALIGN_BYTES);
}

uint64_t channel_state_executor_memory_bytes(const struct channel_state_executor_config *config)
{
	struct pieces p = {.memory = NULL};

	lay_out(&p, NULL, config);
	return channel_state_round_up(p.used);
}

struct channel_state_executor *channel_state_executor_create_at(
		void *memory, const struct channel_state_executor_config *config)
{
	struct channel_state_executor *e = memory;
	struct pieces p = {.memory = memory};

	CHECK((uintptr_t)memory % STORE_ALIGN_BYTES == 0);
	CHECK(config->staging_bytes > 0);
	CHECK(config->staging_bytes % STORE_ALIGN_BYTES == 0);
	CHECK(config->subtask_count <= CHANNEL_STATE_SUBTASKS_MAX);
	memset(memory, 0, channel_state_executor_memory_bytes(config));
	e->config = *config;
	e->ongoing_id = -1;
	e->aborted_id = -1;
	lay_out(&p, e, config);
	for (uint32_t i = 0; i < chunk_count(config); i++)
		e->chunks[i].next = i + 1 < chunk_count(config) ? i + 1 : CHUNK_NONE;
	return e;
}

struct channel_state_writer *channel_state_executor_add(
		struct channel_state_executor *e, const struct channel_state_subtask *subtask)
{
	CHECK(e->writer_count < e->config.subtask_count);

	struct channel_state_writer *w = &e->writers[e->writer_count];
	*w = (struct channel_state_writer){
		.executor = e,
		.subtask = *subtask,
		.index = e->writer_count++,
		.first_channel = e->channel_count,
	};
	for (uint32_t i = 0; i < subtask->input_count; i++)
		w->channel_count += subtask->input_channels[i];
	w->input_channel_count = w->channel_count;
	for (uint32_t i = 0; i < subtask->output_count; i++)
		w->channel_count += subtask->output_channels[i];
	CHECK(w->channel_count <= e->config.channel_count - e->channel_count);
	for (uint32_t i = 0; i < w->channel_count; i++)
		e->writer_of[e->channel_count++] = (uint16_t)w->index;
	for (uint32_t i = 0; i < CHANNEL_STATE_RESULTS_MAX; i++)
		w->results[i].handles = e->handles +
				(size_t)CHANNEL_STATE_RESULTS_MAX * w->first_channel +
				(size_t)i * w->channel_count;
	return w;
}

/* ---- outcomes -------------------------------------------------------------------------------- */

static void fail_result(struct writer_result *r, int status, enum decline_reason reason,
		const char *text)
{
	r->is_done = true;
	r->status = status;
	r->reason = reason;
	snprintf(r->text, sizeof(r->text), "%s", text);
}

/* CS-15, CS-20: the one that aborted fails with its own cause, the others because they share. */
static void fail_by_abort(const struct channel_state_writer *by, enum decline_reason reason,
		const char *text, const struct channel_state_writer *w, struct writer_result *r)
{
	if (w == by) {
		fail_result(r, -ECANCELED, reason, text);
		return;
	}
	r->is_done = true;
	r->status = -ECANCELED;
	r->reason = DECLINE_SHARED_STREAM;
	snprintf(r->text, sizeof(r->text),
			"%s subtask %u shares its channel-state file and gave up: %.1024s",
			by->subtask.vertex_uid, by->subtask.subtask_index, text);
}

static struct writer_result *open_result(
		const struct channel_state_writer *w, int64_t checkpoint_id)
{
	struct writer_result *r = channel_writer_result(w, checkpoint_id);

	return r != NULL && !r->is_done ? r : NULL;
}

static void end_ongoing(struct channel_state_executor *e, struct channel_file *f)
{
	if (e->ongoing == f)
		e->ongoing = NULL;
}

void channel_executor_fail(struct channel_state_executor *e, struct channel_file *f, int status,
		const char *what)
{
	char text[CHANNEL_STATE_TEXT_BYTES];

	CHECK(status < 0);
	if (f->phase == CHANNEL_FILE_CLEANING)
		return; /* nothing more can be lost */
	snprintf(text, sizeof(text), "%s %s: %s", what, f->path,
			status == -ETIMEDOUT ? "the disk has not answered; in-flight data does "
					       "not wait for it"
					     : strerrordesc_np(-status));
	for (uint32_t i = 0; i < e->writer_count; i++) {
		struct writer_result *r = open_result(&e->writers[i], f->checkpoint_id);

		if (r != NULL)
			fail_result(r, status, DECLINE_ASYNC_EXCEPTION, text);
	}
	if (e->ongoing == f) { /* also for those who have yet to start it */
		e->ongoing_status = status;
		memcpy(e->ongoing_text, text, sizeof(text));
	}
	end_ongoing(e, f);
	channel_file_give_up(e, f);
}

bool channel_executor_is_complete(
		const struct channel_state_executor *e, const struct channel_file *f)
{
	for (uint32_t i = 0; i < e->writer_count; i++) {
		const struct writer_result *r =
				channel_writer_result(&e->writers[i], f->checkpoint_id);

		if (!f->is_participant[i])
			continue;
		if (r == NULL || !r->is_input_finished || !r->is_output_finished)
			return false;
	}
	return true;
}

void channel_executor_complete(struct channel_state_executor *e, struct channel_file *f)
{
	for (uint32_t i = 0; i < e->writer_count; i++) {
		struct writer_result *r = open_result(&e->writers[i], f->checkpoint_id);

		if (r == NULL)
			continue;
		r->is_done = true;
		memcpy(r->file, f->name, sizeof(r->file));
		r->result.handles = r->handles;
		if (r->result.handle_count > 0)
			r->result.file = r->file;
		for (uint32_t k = 0; k < r->result.handle_count; k++)
			r->handles[k].file = r->file;
	}
	end_ongoing(e, f);
}

/* ---- CS-13 ----------------------------------------------------------------------------------- */

static struct channel_file *find_free(struct channel_state_executor *e)
{
	for (uint32_t i = 0; i < CHANNEL_STATE_FILES_MAX; i++) {
		if (e->files[i].phase == CHANNEL_FILE_FREE)
			return &e->files[i];
	}
	return NULL;
}

struct channel_file *channel_executor_file(
		const struct channel_state_executor *e, int64_t checkpoint_id)
{
	for (uint32_t i = 0; i < CHANNEL_STATE_FILES_MAX; i++) {
		const struct channel_file *f = &e->files[i];

		if (f->checkpoint_id == checkpoint_id && channel_file_is_live(f))
			return (struct channel_file *)(uintptr_t)f;
	}
	return NULL;
}

static void subsume(struct channel_state_executor *e)
{
	struct channel_file *f = e->ongoing;

	if (f == NULL)
		return;
	if (channel_executor_is_complete(e, f)) {
		end_ongoing(e, f); /* CS-8 */
		return;
	}
	for (uint32_t i = 0; i < e->writer_count; i++) {
		struct writer_result *r = open_result(&e->writers[i], f->checkpoint_id);

		if (r != NULL)
			fail_result(r, -ECANCELED, DECLINE_SUBSUMED,
					"a newer checkpoint has begun");
	}
	end_ongoing(e, f);
	channel_file_give_up(e, f);
}

/* The first start of a checkpoint. */
static void begin_file(struct channel_state_executor *e, int64_t checkpoint_id)
{
	struct channel_file *f = find_free(e);

	e->ongoing_id = checkpoint_id;
	e->ongoing_status = 0;
	if (f == NULL) {
		e->ongoing_status = -EBUSY;
		snprintf(e->ongoing_text, sizeof(e->ongoing_text), "channel state cannot be "
				"written: the disk has not answered writes of earlier "
				"checkpoints");
		return;
	}
	e->is_fresh = channel_files_are_free(e);
	e->ongoing = f;
	channel_file_begin(e, f, checkpoint_id);
}

void channel_executor_start(
		struct channel_state_writer *w, struct writer_result *r, int64_t checkpoint_id)
{
	struct channel_state_executor *e = w->executor;

	if (checkpoint_id == e->aborted_id) {
		fail_by_abort(&e->writers[e->aborted_by], e->aborted_reason, e->aborted_text, w, r);
		return;
	}
	if (checkpoint_id < e->ongoing_id || checkpoint_id < e->aborted_id) {
		fail_result(r, -ECANCELED, DECLINE_SUBSUMED, "a newer checkpoint has begun");
		return;
	}
	if (checkpoint_id > e->ongoing_id) {
		subsume(e);
		begin_file(e, checkpoint_id);
	}
	if (r->is_done)
		return; /* its file could not even begin */
	if (e->ongoing == NULL)
		fail_result(r, e->ongoing_status != 0 ? e->ongoing_status : -EALREADY,
				e->ongoing_status == -EBUSY ? DECLINE_TASK_NOT_READY
							    : DECLINE_ASYNC_EXCEPTION,
				e->ongoing_status != 0 ? e->ongoing_text
						       : "its channel-state file is closed");
}

/* ---- CS-15, CS-16 ---------------------------------------------------------------------------- */

static void abort_file(struct channel_state_executor *e, struct channel_file *f,
		const struct channel_state_writer *by, enum decline_reason reason, const char *text)
{
	for (uint32_t i = 0; i < e->writer_count; i++) {
		struct writer_result *r = open_result(&e->writers[i], f->checkpoint_id);

		if (r != NULL)
			fail_by_abort(by, reason, text, &e->writers[i], r);
	}
	end_ongoing(e, f);
	channel_file_give_up(e, f);
}

void channel_executor_abort(struct channel_state_writer *w, int64_t checkpoint_id,
		enum decline_reason reason, const char *text)
{
	struct channel_state_executor *e = w->executor;
	struct channel_file *f = channel_executor_file(e, checkpoint_id);

	if (f != NULL)
		abort_file(e, f, w, reason, text);
	if (checkpoint_id <= e->aborted_id)
		return;
	e->aborted_id = checkpoint_id;
	e->aborted_by = w->index;
	e->aborted_reason = reason;
	snprintf(e->aborted_text, sizeof(e->aborted_text), "%s", text);
	if (checkpoint_id > e->ongoing_id)
		subsume(e);
}

void channel_executor_release(struct channel_state_writer *w)
{
	struct channel_state_executor *e = w->executor;

	w->is_closed = true;
	for (uint32_t i = 0; i < CHANNEL_STATE_FILES_MAX; i++) {
		struct channel_file *f = &e->files[i];
		const struct writer_result *r = channel_writer_result(w, f->checkpoint_id);

		if (!channel_file_is_live(f) || !f->is_participant[w->index])
			continue;
		if (r != NULL && (!r->is_input_finished || !r->is_output_finished))
			channel_executor_abort(w, f->checkpoint_id, DECLINE_TASK_CLOSING,
					"the task has ended");
		else
			f->is_participant[w->index] = false;
	}
}
