#include "dataplane/checkpoint/channel_state_writer.h"

#include "dataplane/base/check.h"
#include "dataplane/checkpoint/channel_state_internal.h"
#include "dataplane/wire/buf.h"

#include <errno.h>
#include <string.h>

struct writer_result *channel_writer_result(
		const struct channel_state_writer *w, int64_t checkpoint_id)
{
	for (uint32_t i = 0; i < CHANNEL_STATE_RESULTS_MAX; i++) {
		if (w->results[i].checkpoint_id == checkpoint_id)
			return (struct writer_result *)(uintptr_t)&w->results[i];
	}
	return NULL;
}

/* One that is begun and not over, or NULL: then what comes for it is dropped (CS-18). */
static struct writer_result *open_result(
		const struct channel_state_writer *w, int64_t checkpoint_id)
{
	struct writer_result *r = channel_writer_result(w, checkpoint_id);

	return r != NULL && !r->is_done ? r : NULL;
}

int channel_state_writer_start(struct channel_state_writer *w, int64_t checkpoint_id,
		const struct checkpoint_options *options)
{
	struct writer_result *r = channel_writer_result(w, 0);

	CHECK(!w->is_closed);
	CHECK(checkpoint_id > 0);
	CHECK(checkpoint_options_needs_channel_state(options));
	if (channel_writer_result(w, checkpoint_id) != NULL)
		return -EEXIST;
	if (r == NULL)
		return -EBUSY;
	*r = (struct writer_result){.checkpoint_id = checkpoint_id, .handles = r->handles};
	channel_executor_start(w, r, checkpoint_id);
	return 0;
}

/* ---- CS-3 ------------------------------------------------------------------------------------ */

static uint32_t number_of(const struct channel_state_writer *w, enum channel_state_side side,
		struct channel_info at)
{
	const struct channel_state_subtask *s = &w->subtask;
	uint32_t number = w->first_channel;

	if (side == CHANNEL_STATE_INPUT) {
		CHECK(at.gate < s->input_count && at.channel < s->input_channels[at.gate]);
		for (uint32_t i = 0; i < at.gate; i++)
			number += s->input_channels[i];
	} else {
		CHECK(at.gate < s->output_count && at.channel < s->output_channels[at.gate]);
		number += w->input_channel_count;
		for (uint32_t i = 0; i < at.gate; i++)
			number += s->output_channels[i];
	}
	return number + at.channel;
}

static void count(struct writer_result *r, uint32_t bytes)
{
	r->result.bytes += bytes;
	r->result.buf_count++;
}

/* Empty buffers are not kept: what they say is said again after a restore. */
static void add_buf(struct channel_state_writer *w, struct writer_result *r, uint32_t channel,
		struct buf *b, uint32_t offset)
{
	CHECK(offset <= b->size_bytes);
	if (offset == b->size_bytes)
		return;

	struct held_chunk chunk = {
		.buf = b,
		.bytes = b->data + offset,
		.watermark = b->watermark,
		.size = b->size_bytes - offset,
		/* Between two records: what comes next begins one. */
		.first_record = offset > 0 ? 0 : b->first_record,
	};
	buf_retain(b);
	count(r, chunk.size);
	channel_file_add(w->executor, w->executor->ongoing, channel, &chunk);
}

static void add_bufs(struct channel_state_writer *w, struct writer_result *r, uint32_t channel,
		struct buf *const *bufs, uint32_t count)
{
	for (uint32_t i = 0; i < count && !r->is_done; i++)
		add_buf(w, r, channel, bufs[i], 0);
}

void channel_state_writer_add_input_data(struct channel_state_writer *w, int64_t checkpoint_id,
		struct channel_info at, struct buf *const *bufs, uint32_t count, uint32_t offset)
{
	struct writer_result *r = open_result(w, checkpoint_id);
	uint32_t channel = number_of(w, CHANNEL_STATE_INPUT, at);

	if (r == NULL || count == 0)
		return;
	CHECK(!r->is_input_finished);
	add_buf(w, r, channel, bufs[0], offset);
	add_bufs(w, r, channel, bufs + 1, count - 1);
}

void channel_state_writer_add_input_partial(struct channel_state_writer *w, int64_t checkpoint_id,
		struct channel_info at, const uint8_t *bytes, uint32_t size)
{
	struct channel_state_executor *e = w->executor;
	struct writer_result *r = open_result(w, checkpoint_id);
	uint32_t channel = number_of(w, CHANNEL_STATE_INPUT, at);

	if (r == NULL)
		return;
	CHECK(!r->is_input_finished);
	for (uint32_t done = 0; done < size && !r->is_done;) {
		uint32_t page = 0, pages = channel_staging_take(e, size - done, &page);
		uint32_t room = pages * STORE_ALIGN_BYTES, left = size - done;
		struct held_chunk chunk = {
			.bytes = e->staging + (size_t)page * STORE_ALIGN_BYTES,
			.watermark = INT64_MIN,
			.size = left < room ? left : room,
			.first_record = done == 0 ? 0 : BUF_NO_RECORD,
			.staged_page = page,
			.staged_count = pages,
		};

		if (pages == 0) {
			channel_executor_fail(e, e->ongoing, -ENOBUFS, "keep a partial record for");
			return;
		}
		memcpy(e->staging + (size_t)page * STORE_ALIGN_BYTES, bytes + done, chunk.size);
		done += chunk.size;
		count(r, chunk.size);
		channel_file_add(e, e->ongoing, channel, &chunk);
	}
}

void channel_state_writer_add_output_data(struct channel_state_writer *w, int64_t checkpoint_id,
		struct channel_info at, struct buf *const *bufs, uint32_t count)
{
	struct writer_result *r = open_result(w, checkpoint_id);
	uint32_t channel = number_of(w, CHANNEL_STATE_OUTPUT, at);

	if (r == NULL)
		return;
	CHECK(!r->is_output_finished);
	add_bufs(w, r, channel, bufs, count);
}

void channel_state_writer_finish_input(struct channel_state_writer *w, int64_t checkpoint_id)
{
	struct writer_result *r = open_result(w, checkpoint_id);

	if (r != NULL)
		r->is_input_finished = true;
}

void channel_state_writer_finish_output(struct channel_state_writer *w, int64_t checkpoint_id)
{
	struct writer_result *r = open_result(w, checkpoint_id);

	if (r != NULL)
		r->is_output_finished = true;
}

/* ---- CS-4 to CS-6 ---------------------------------------------------------------------------- */

void channel_state_writer_abort(struct channel_state_writer *w, int64_t checkpoint_id,
		enum decline_reason reason, const char *text, bool is_cleanup)
{
	channel_executor_abort(w, checkpoint_id, reason, text);
	if (is_cleanup)
		channel_state_writer_remove(w, checkpoint_id);
}

void channel_state_writer_remove(struct channel_state_writer *w, int64_t checkpoint_id)
{
	struct writer_result *r = channel_writer_result(w, checkpoint_id);

	if (r == NULL || checkpoint_id == 0)
		return;
	CHECK(r->is_done);
	r->checkpoint_id = 0;
}

void channel_state_writer_close(struct channel_state_writer *w)
{
	if (w->is_closed)
		return;
	channel_executor_release(w);
	for (uint32_t i = 0; i < CHANNEL_STATE_RESULTS_MAX; i++)
		w->results[i].checkpoint_id = 0;
}

bool channel_state_writer_is_idle(const struct channel_state_writer *w)
{
	const struct channel_state_executor *e = w->executor;

	if (w->held_count > 0)
		return false;
	for (uint32_t i = 0; i < e->writer_count; i++) {
		if (!e->writers[i].is_closed)
			return true;
	}
	return channel_files_are_free(e);
}

uint32_t channel_state_writer_step(struct channel_state_writer *w, uint64_t now_ns)
{
	struct channel_state_executor *e = w->executor;

	e->now_ns = now_ns;
	return channel_files_are_free(e) ? 0 : channel_files_step(e);
}

/* ---- questions ------------------------------------------------------------------------------- */

bool channel_state_writer_is_writing(const struct channel_state_writer *w)
{
	return channel_files_are_writing(w->executor);
}

bool channel_state_writer_has(const struct channel_state_writer *w, int64_t checkpoint_id)
{
	return checkpoint_id > 0 && channel_writer_result(w, checkpoint_id) != NULL;
}

static const struct writer_result *known_result(
		const struct channel_state_writer *w, int64_t checkpoint_id)
{
	CHECK(channel_state_writer_has(w, checkpoint_id));
	return channel_writer_result(w, checkpoint_id);
}

bool channel_state_writer_is_done(const struct channel_state_writer *w, int64_t checkpoint_id)
{
	return known_result(w, checkpoint_id)->is_done;
}

int channel_state_writer_outcome(const struct channel_state_writer *w, int64_t checkpoint_id,
		enum decline_reason *reason, const char **text)
{
	const struct writer_result *r = known_result(w, checkpoint_id);

	CHECK(r->is_done);
	*reason = r->reason;
	*text = r->text;
	return r->status;
}

const struct channel_state_result *channel_state_writer_result(
		const struct channel_state_writer *w, int64_t checkpoint_id)
{
	const struct writer_result *r = known_result(w, checkpoint_id);

	CHECK(r->is_done && r->status == 0);
	return &r->result;
}

uint64_t channel_state_writer_bytes(const struct channel_state_writer *w, int64_t checkpoint_id)
{
	const struct writer_result *r = channel_writer_result(w, checkpoint_id);

	return r != NULL && checkpoint_id > 0 ? r->result.bytes : 0;
}

void channel_state_writer_visit(const struct channel_state_writer *w, int64_t checkpoint_id,
		enum channel_state_side side, struct channel_info at,
		void (*visit)(void *context, const uint8_t *bytes, uint64_t offset, uint32_t size),
		void *context)
{
	const struct channel_state_executor *e = w->executor;
	const struct channel_file *f = channel_executor_file(e, checkpoint_id);

	if (f == NULL)
		return;

	uint32_t i = f->channels[number_of(w, side, at)].first;
	for (; i != CHUNK_NONE; i = e->chunks[i].next) {
		const struct held_chunk *c = &e->chunks[i];

		visit(context, c->bytes, c->offset, c->size);
	}
}
