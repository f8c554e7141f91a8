/*
 * Each buffer gets a place of its own in the file, at a multiple of STORE_ALIGN_BYTES, and is
 * written from where it lies: from the block its first wanted byte is in to the end of the block
 * of its last.  Channels take turns, one buffer each.
 */

#include "dataplane/base/check.h"
#include "dataplane/base/crc.h"
#include "dataplane/checkpoint/channel_state_internal.h"
#include "dataplane/wire/buf.h"

#include <errno.h>
#include <string.h>

enum {
	ISSUED_PER_STEP = 16, /* buffers summed up and written in one step */
	COPIED_PER_STEP = 16,
};

/* ---- staging memory -------------------------------------------------------------------------- */

static uint32_t page_count(const struct channel_state_executor *e)
{
	return (uint32_t)(e->config.staging_bytes / STORE_ALIGN_BYTES);
}

uint32_t channel_staging_take(struct channel_state_executor *e, uint32_t bytes, uint32_t *page)
{
	uint32_t wanted = (uint32_t)(channel_state_round_up(bytes) / STORE_ALIGN_BYTES);
	uint32_t best = 0, run = 0;

	for (uint32_t i = 0; i < page_count(e) && best < wanted; i++) {
		run = e->staging_used[i] ? 0 : run + 1;
		if (run > best) {
			best = run;
			*page = i + 1 - run;
		}
	}
	for (uint32_t i = *page; i < *page + best; i++)
		e->staging_used[i] = true;
	return best;
}

static void give_staging(struct channel_state_executor *e, struct held_chunk *c)
{
	for (uint32_t i = c->staged_page; i < c->staged_page + c->staged_count; i++)
		e->staging_used[i] = false;
	c->staged_count = 0;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static void drop_buf(struct channel_state_executor *e, struct held_chunk *c)
{
	if (c->buf == NULL)
		return;
	e->writers[e->writer_of[c->channel]].held_count--;
	buf_release(c->buf);
	c->buf = NULL;
}

/* Nothing reads its bytes any more. */
void channel_chunk_drop_bytes(struct channel_state_executor *e, struct held_chunk *c)
{
	drop_buf(e, c);
	give_staging(e, c);
	c->bytes = NULL;
}

static void activate(struct channel_state_executor *e, struct channel_file *f, uint32_t channel)
{
	f->active[(f->active_head + f->active_count) % e->config.channel_count] = channel;
	f->active_count++;
	f->channels[channel].is_active = true;
}

/* Staged bytes begin at a block. */
static uint64_t lead_of(const struct held_chunk *c)
{
	return c->buf != NULL ? (uint64_t)(c->bytes - c->buf->data) : 0;
}

uint32_t channel_chunk_file_bytes(const struct held_chunk *c)
{
	return (uint32_t)channel_state_round_up(lead_of(c) % STORE_ALIGN_BYTES + c->size);
}

void channel_file_add(struct channel_state_executor *e, struct channel_file *f, uint32_t channel,
		const struct held_chunk *chunk)
{
	struct held_channel *ch = &f->channels[channel];
	uint32_t index = e->free_chunk;

	CHECK(f->phase == CHANNEL_FILE_COLLECTING);
	if (chunk->buf != NULL)
		e->writers[e->writer_of[channel]].held_count++;
	if (index == CHUNK_NONE) {
		struct held_chunk homeless = *chunk;

		homeless.channel = channel;
		channel_chunk_drop_bytes(e, &homeless);
		channel_executor_fail(e, f, -ENOBUFS, "keep the buffers in flight for");
		return;
	}
	struct held_chunk *c = &e->chunks[index];
	e->free_chunk = c->next;
	*c = *chunk;
	c->channel = channel;
	c->next = CHUNK_NONE;
	if (ch->first == CHUNK_NONE)
		ch->first = index;
	else
		e->chunks[ch->last].next = index;
	ch->last = index;
	if (ch->next_waiting == CHUNK_NONE)
		ch->next_waiting = index;
	ch->chunk_count++;
	ch->bytes += c->size;
	f->wanted += channel_chunk_file_bytes(c);
	f->chunk_count++;
	f->waiting_count++;
	if (!ch->is_active)
		activate(e, f, channel);
}

void channel_chunk_free(struct channel_state_executor *e, uint32_t index)
{
	e->chunks[index].next = e->free_chunk;
	e->free_chunk = index;
}

/* Those that the disk has now are freed when they come back. */
void channel_chunks_free(struct channel_state_executor *e, struct channel_file *f)
{
	for (uint32_t i = 0; i < e->channel_count; i++) {
		struct held_channel *ch = &f->channels[i];

		while (ch->first != CHUNK_NONE) {
			uint32_t index = ch->first;
			struct held_chunk *c = &e->chunks[index];

			ch->first = c->next;
			if (c->is_issued)
				continue;
			channel_chunk_drop_bytes(e, c);
			channel_chunk_free(e, index);
		}
	}
}

/* ---- issuing --------------------------------------------------------------------------------- */

static uint32_t issued_max(const struct channel_state_executor *e, uint32_t channel)
{
	const struct channel_state_writer *w = &e->writers[e->writer_of[channel]];

	return channel - w->first_channel < w->input_channel_count ? e->config.issued_in_max
								   : e->config.issued_out_max;
}

/* Can the buffer be written in whole blocks from where it lies? */
static bool is_writable(const struct held_chunk *c)
{
	uint64_t lead = (uint64_t)(c->bytes - c->buf->data);

	return channel_state_round_up(lead + c->size) <= c->buf->capacity_bytes;
}

/* Copies the bytes and lets the buffer go; false: no room. */
static bool stage(struct channel_state_executor *e, struct held_chunk *c)
{
	uint32_t page = 0, wanted = (uint32_t)(channel_state_round_up(c->size) / STORE_ALIGN_BYTES);
	uint32_t got = channel_staging_take(e, c->size, &page);

	c->staged_page = page;
	c->staged_count = got;
	if (got < wanted) {
		give_staging(e, c);
		return false;
	}
	uint8_t *room = e->staging + (size_t)page * STORE_ALIGN_BYTES;
	memcpy(room, c->bytes, c->size);
	drop_buf(e, c);
	c->bytes = room;
	return true;
}

/* What is behind the bytes to the end of their block reaches the file too: zeros it is. */
static void clear_tail(const uint8_t *block, const struct held_chunk *c)
{
	uint8_t *tail = (uint8_t *)(uintptr_t)c->bytes + c->size;

	uint64_t at = (uint64_t)(tail - block);

	memset(tail, 0, channel_state_round_up(at) - at);
}

/* Makes the chunk a write; false: not now. */
static bool issue(struct channel_state_executor *e, struct channel_file *f, uint32_t index)
{
	struct held_chunk *c = &e->chunks[index];
	uint32_t max = issued_max(e, c->channel);

	if (c->buf != NULL && (max == 0 || !is_writable(c)) && !stage(e, c))
		return false;
	if (c->buf != NULL && e->issued[c->channel] >= max)
		return false;

	uint64_t lead = lead_of(c) % STORE_ALIGN_BYTES;
	struct store_request r = {
		.op = STORE_WRITE,
		.flags = e->config.has_direct ? STORE_DIRECT : 0,
		.bytes = c->bytes - lead,
		.size = channel_chunk_file_bytes(c),
		.offset = f->end,
	};

	clear_tail(c->bytes - lead, c);
	if (!channel_file_submit(e, f, &r, index))
		return false;
	c->is_issued = true;
	c->offset = f->end + lead;
	c->crc = crc32c(0, c->bytes, c->size);
	f->end += r.size;
	if (c->buf != NULL)
		e->issued[c->channel]++;
	return true;
}

/* One chunk of each channel in turn.  How many were issued. */
uint32_t channel_chunks_issue(struct channel_state_executor *e, struct channel_file *f)
{
	uint32_t issued = 0, refused = 0;

	while (issued < ISSUED_PER_STEP && f->active_count > refused &&
			f->inflight_count < CHANNEL_STATE_WRITES_MAX) {
		uint32_t channel = f->active[f->active_head];
		struct held_channel *ch = &f->channels[channel];

		if (issue(e, f, ch->next_waiting)) {
			ch->next_waiting = e->chunks[ch->next_waiting].next;
			f->waiting_count--;
			issued++;
			refused = 0;
		} else {
			refused++;
		}
		f->active_head = (f->active_head + 1) % e->config.channel_count;
		f->active_count--;
		ch->is_active = false;
		if (ch->next_waiting != CHUNK_NONE)
			activate(e, f, channel);
	}
	if (issued > 0)
		e->progress_ns = e->now_ns;
	return issued;
}

/* The disk does not answer: buffers that it does not have yet are not left waiting for it. */
uint32_t channel_chunks_copy(struct channel_state_executor *e, struct channel_file *f)
{
	uint32_t copied = 0;

	for (uint32_t i = 0; i < f->active_count; i++) {
		uint32_t channel = f->active[(f->active_head + i) % e->config.channel_count];
		uint32_t index = f->channels[channel].next_waiting;

		for (; index != CHUNK_NONE; index = e->chunks[index].next) {
			if (e->chunks[index].buf == NULL)
				continue;
			if (copied == COPIED_PER_STEP)
				return copied;
			if (!stage(e, &e->chunks[index])) {
				channel_executor_fail(e, f, -ETIMEDOUT, "write");
				return copied;
			}
			copied++;
		}
	}
	return copied;
}
