#include "dataplane/channel/input_gate.h"

#include "dataplane/base/check.h"
#include "dataplane/base/lines.h"
#include "dataplane/channel/input_channel.h"
#include "dataplane/wire/record.h"

#include <errno.h>

enum { GIVEN_NONE = -1 };

struct input_gate {
	struct input_channel *channels;
	uint32_t channel_count, open_count;
	uint32_t current;    /* the channel whose turn it is */
	uint32_t buf_count;  /* here, not yet processed */
	int64_t watermark;   /* the last one consumed */
	int64_t least;       /* of the open channels; ahead of `watermark` while a step is due */
	int given;           /* kind of the item given last, or GIVEN_NONE once it is consumed */
	uint32_t given_from; /* its channel */
	bool has_news;       /* events have come, or one is to be early, that were not looked at */
	struct input_gate_counters counters;
};

/* ---- life ---- */

uint64_t input_gate_memory_bytes(const struct input_gate_config *config)
{
	uint64_t each = sizeof(struct input_channel);

	if (config->record_bytes == 0)
		each += RECORD_PREFIX_BYTES + (uint64_t)config->record_bytes_max;
	return sizeof(struct input_gate) + config->channel_count * each;
}

int input_gate_create(struct input_gate **out, const struct input_gate_config *config)
{
	struct record_reader_config records = {config->record_bytes, config->record_bytes_max};

	if (config->channel_count == 0 || config->channel_count > CHANNELS_PER_GATE_MAX)
		return -EINVAL;

	struct input_gate *g = lines_alloc(sizeof(*g));
	if (g == NULL)
		return -ENOMEM;
	g->channels = lines_alloc(config->channel_count * sizeof(*g->channels));
	if (g->channels == NULL) {
		free(g);
		return -ENOMEM;
	}
	for (; g->channel_count < config->channel_count; g->channel_count++) {
		uint32_t c = g->channel_count;
		int rc = input_channel_init(&g->channels[c], config->channels[c], &records);

		if (rc != 0) {
			input_gate_destroy(g);
			return rc;
		}
	}
	g->open_count = g->channel_count;
	g->watermark = WEIR_WATERMARK_NONE;
	g->least = WEIR_WATERMARK_NONE;
	g->given = GIVEN_NONE;
	*out = g;
	return 0;
}

void input_gate_destroy(struct input_gate *g)
{
	if (g == NULL)
		return;
	for (uint32_t c = 0; c < g->channel_count; c++)
		input_channel_clear(&g->channels[c]);
	free(g->channels);
	free(g);
}

static struct input_channel *channel_at(const struct input_gate *g, uint32_t channel)
{
	CHECK(channel < g->channel_count);
	return &g->channels[channel];
}

/* ---- receive ---- */

uint32_t input_gate_poll(struct input_gate *g)
{
	uint32_t bufs = 0, events = 0;

	for (uint32_t c = 0; c < g->channel_count; c++) {
		if (g->channels[c].is_open)
			bufs += input_channel_poll(&g->channels[c], &events);
	}
	g->buf_count += bufs;
	g->has_news |= events > 0;
	return bufs + events;
}

/* ---- watermarks ---- */

/* A step is due when every open channel has gone beyond what the consumer knows.  When the last
 * channel has ended there is no time any more: what was not said to be the end is not. */
static bool has_step(const struct input_gate *g)
{
	return g->least > g->watermark && g->open_count > 0;
}

static void measure_least(struct input_gate *g)
{
	int64_t least = WEIR_WATERMARK_END;

	for (uint32_t c = 0; c < g->channel_count; c++) {
		if (g->channels[c].is_open && g->channels[c].watermark < least)
			least = g->channels[c].watermark;
	}
	g->least = least;
}

static void raise_watermark(struct input_gate *g, struct input_channel *ch, int64_t watermark)
{
	int64_t before = ch->watermark;

	if (watermark <= before)
		return;
	ch->watermark = watermark;
	if (before == g->least)
		measure_least(g);
}

/* ---- next ---- */

static int give(struct input_gate *g, struct input_item *item, enum input_item_kind kind,
		uint32_t channel)
{
	item->kind = kind;
	item->channel = channel;
	g->given = (int)kind;
	g->given_from = channel;
	return 1;
}

static int give_step(struct input_gate *g, struct input_item *item, uint32_t channel)
{
	item->watermark = g->least;
	return give(g, item, INPUT_WATERMARK, channel);
}

static void finish_buf(struct input_gate *g, struct input_channel *ch)
{
	input_channel_finish(ch);
	g->buf_count--;
}

static void pass_event(struct input_gate *g, struct input_channel *ch)
{
	input_channel_pop(ch);
	g->counters.events++;
}

/* The next item of one channel: as input_gate_next.  Goes round once for each buffer that holds
 * nothing more to give. */
static int next_of(struct input_gate *g, uint32_t channel, struct input_item *item)
{
	struct input_channel *ch = &g->channels[channel];

	if (!ch->is_open)
		return 0;
	while (!input_channel_is_stopped(ch)) {
		bool was_begun = ch->is_begun;
		int head = input_channel_head(ch, &item->batch);

		if (head < 0 || head == INPUT_HEAD_NONE)
			return head;
		if (head == INPUT_HEAD_EVENT || head == INPUT_HEAD_HANDLED) {
			item->event = input_channel_event(ch, 0);
			raise_watermark(g, ch, item->event->watermark);
			if (has_step(g))
				return give_step(g, item, channel);
			if (head == INPUT_HEAD_EVENT)
				return give(g, item, INPUT_EVENT, channel);
			pass_event(g, ch);
			continue;
		}
		if (!was_begun) {
			g->counters.bufs++;
			g->counters.bytes += input_channel_buf(ch, 0)->size_bytes;
		}
		if (head == INPUT_HEAD_RECORDS)
			return give(g, item, INPUT_RECORDS, channel);
		raise_watermark(g, ch, input_channel_buf(ch, 0)->watermark);
		if (has_step(g))
			return give_step(g, item, channel);
		finish_buf(g, ch);
	}
	return 0;
}

static void turn(struct input_gate *g)
{
	g->current = g->current + 1 < g->channel_count ? g->current + 1 : 0;
}

int input_gate_next_of(struct input_gate *g, uint32_t channel, struct input_item *item)
{
	CHECK(channel < g->channel_count);
	g->given = GIVEN_NONE;
	if (has_step(g))
		return give_step(g, item, channel);
	return next_of(g, channel, item);
}

int input_gate_next(struct input_gate *g, struct input_item *item)
{
	g->given = GIVEN_NONE;
	if (has_step(g))
		return give_step(g, item, g->current);
	for (uint32_t i = 0; i < g->channel_count; i++) {
		int rc = next_of(g, g->current, item);
		if (rc != 0)
			return rc;
		turn(g);
	}
	return 0;
}

bool input_gate_next_end(struct input_gate *g, struct input_item *item)
{
	g->given = GIVEN_NONE;
	if (has_step(g))
		return false;
	for (uint32_t c = 0; c < g->channel_count; c++) {
		if (!input_channel_is_stopped(&g->channels[c]) &&
				input_channel_is_at_end(&g->channels[c]))
			return next_of(g, c, item) == 1 && item->kind == INPUT_EVENT;
	}
	return false;
}

/* ---- consume ---- */

/* Ends the buffer begun when there is nothing left to do for it, and lets the next channel have its
 * turn. */
static void settle(struct input_gate *g, uint32_t channel)
{
	struct input_channel *ch = &g->channels[channel];
	struct weir_batch batch;

	if (!ch->is_begun || input_channel_head(ch, &batch) != INPUT_HEAD_END)
		return;
	raise_watermark(g, ch, input_channel_buf(ch, 0)->watermark);
	if (has_step(g))
		return;
	finish_buf(g, ch);
	turn(g);
}

static void consume_event(struct input_gate *g, uint32_t channel)
{
	struct input_channel *ch = &g->channels[channel];
	bool is_last = input_channel_event(ch, 0)->kind == EVENT_END_OF_PARTITION;

	pass_event(g, ch);
	if (is_last) {
		ch->is_open = false;
		g->open_count--;
		measure_least(g);
	}
	turn(g);
}

void input_gate_consume(struct input_gate *g, uint32_t count)
{
	int given = g->given;
	uint32_t channel = g->given_from;

	CHECK(given != GIVEN_NONE);
	g->given = GIVEN_NONE;
	if (count == 0)
		return;
	if (given == INPUT_RECORDS) {
		input_channel_advance(&g->channels[channel], count);
		g->counters.records += count;
		settle(g, channel);
		return;
	}
	CHECK(count == 1);
	if (given == INPUT_EVENT) {
		consume_event(g, channel);
		return;
	}
	g->watermark = g->least;
	settle(g, channel);
}

/* ---- block and resume ---- */

void input_gate_block(struct input_gate *g, uint32_t channel)
{
	struct input_channel *ch = channel_at(g, channel);

	CHECK(!ch->is_blocked && ch->is_open);
	ch->is_blocked = true;
	ch->blocked_behind = 0;
}

void input_gate_block_behind(struct input_gate *g, uint32_t channel, const struct event *e)
{
	input_gate_block(g, channel);
	channel_at(g, channel)->blocked_behind = e->announcement;
}

void input_gate_resume(struct input_gate *g, uint32_t channel)
{
	struct input_channel *ch = channel_at(g, channel);

	CHECK(ch->is_blocked);
	ch->is_blocked = false;
}

bool input_gate_is_blocked(const struct input_gate *g, uint32_t channel)
{
	return channel_at(g, channel)->is_blocked;
}

bool input_gate_is_stopped(const struct input_gate *g, uint32_t channel)
{
	return input_channel_is_stopped(channel_at(g, channel));
}

void input_gate_all_processed(struct input_gate *g, uint32_t channel)
{
	ring_channel_all_processed(channel_at(g, channel)->channel);
}

/* ---- questions ---- */

uint32_t input_gate_channel_count(const struct input_gate *g)
{
	return g->channel_count;
}

uint32_t input_gate_open_count(const struct input_gate *g)
{
	return g->open_count;
}

bool input_gate_is_open(const struct input_gate *g, uint32_t channel)
{
	return channel_at(g, channel)->is_open;
}

int64_t input_gate_watermark(const struct input_gate *g)
{
	return g->watermark;
}

uint32_t input_gate_queued_count(const struct input_gate *g)
{
	return g->buf_count;
}

const struct input_gate_counters *input_gate_counters(const struct input_gate *g)
{
	return &g->counters;
}

/* ---- ahead of the line ---- */

bool input_gate_next_early(struct input_gate *g, struct input_early *early)
{
	uint32_t left = 0;

	for (uint32_t c = 0; g->has_news && c < g->channel_count; c++) {
		if (g->channels[c].early_count == 0)
			continue;
		early->event = input_channel_next_early(&g->channels[c], &early->is_barrier);
		early->channel = c;
		if (early->event != NULL)
			return true;
		left += g->channels[c].early_count;
	}
	g->has_news = left > 0;
	return false;
}

bool input_gate_convert(struct input_gate *g, uint32_t channel, int64_t checkpoint_id)
{
	g->has_news = true;
	return input_channel_convert(channel_at(g, channel), checkpoint_id);
}

bool input_gate_is_in_line(const struct input_gate *g, uint32_t channel, uint32_t announcement)
{
	return input_channel_is_in_line(channel_at(g, channel), announcement);
}

bool input_gate_next_arrival(
		struct input_gate *g, uint32_t *channel, const struct event **barrier)
{
	for (uint32_t c = 0; g->has_news && c < g->channel_count; c++) {
		*barrier = input_channel_next_arrival(&g->channels[c]);
		*channel = c;
		if (*barrier != NULL)
			return true;
	}
	return false;
}

uint64_t input_gate_position(const struct input_gate *g, uint32_t channel)
{
	return channel_at(g, channel)->position;
}

uint64_t input_gate_known_count(const struct input_gate *g, uint32_t channel)
{
	return input_channel_known_count(channel_at(g, channel));
}

uint32_t input_gate_recovered_count(const struct input_gate *g, uint32_t channel)
{
	return input_channel_recovered_left(channel_at(g, channel));
}

uint32_t input_gate_inflight_count(const struct input_gate *g, uint32_t channel)
{
	return input_channel_count(channel_at(g, channel));
}

struct buf *input_gate_inflight_at(
		const struct input_gate *g, uint32_t channel, uint32_t index, uint32_t *offset)
{
	const struct input_channel *ch = channel_at(g, channel);

	CHECK(index < input_channel_count(ch));
	*offset = index == 0 && ch->is_begun ? record_reader_offset(ch->reader) : 0;
	return input_channel_buf(ch, index);
}

int input_gate_restore(
		struct input_gate *g, uint32_t channel, struct buf *const *bufs, uint32_t count)
{
	int rc = input_channel_restore(channel_at(g, channel), bufs, count);

	if (rc == 0)
		g->buf_count += count;
	return rc;
}

uint32_t input_gate_recovered_left(const struct input_gate *g)
{
	uint32_t left = 0;

	for (uint32_t c = 0; c < g->channel_count; c++)
		left += input_channel_recovered_left(&g->channels[c]);
	return left;
}

const uint8_t *input_gate_partial(const struct input_gate *g, uint32_t channel, uint32_t *bytes)
{
	return record_reader_partial(channel_at(g, channel)->reader, bytes);
}
