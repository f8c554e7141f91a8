#include "dataplane/channel/input_channel.h"

#include "dataplane/wire/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BUFS_MASK = CHANNEL_BUFFERS_MAX - 1, EVENTS_MASK = CHANNEL_CONTROL_MAX - 1 };

int input_channel_init(struct input_channel *ch, struct ring_channel *channel,
		const struct record_reader_config *config)
{
	*ch = (struct input_channel){
			.channel = channel,
			.watermark = WEIR_WATERMARK_NONE,
			.is_open = true,
			.is_plain = ring_channel_config(channel)->is_plain,
	};
	return record_reader_create(&ch->reader, config);
}

int input_channel_restore(struct input_channel *ch, struct buf *const *bufs, uint32_t count)
{
	CHECK(ch->recovered == NULL && ch->taken_count == 0);
	if (count == 0)
		return 0;
	ch->recovered = calloc(count, sizeof(ch->recovered[0]));
	if (ch->recovered == NULL)
		return -ENOMEM;
	memcpy(ch->recovered, bufs, count * sizeof(ch->recovered[0]));
	ch->recovered_count = count;
	return 0;
}

/* Gives back what is processed and not being written: nobody else refers to it. */
static void return_processed(struct input_channel *ch)
{
	uint64_t before = ch->returned_count;

	while (ch->returned_count < ch->position) {
		struct buf *b = ch->bufs[ch->returned_count & BUFS_MASK];

		if (!buf_is_ours_alone(b))
			break;
		buf_release(b);
		ch->returned_count++;
	}
	if (ch->returned_count > before)
		ring_channel_grant(ch->channel, ch->returned_count);
}

static uint32_t take_bufs(struct input_channel *ch)
{
	struct buf *taken[BATCH_COUNT_MAX];
	uint32_t count = ring_channel_take(ch->channel, taken, BATCH_COUNT_MAX);

	for (uint32_t i = 0; i < count; i++) {
		CHECK(taken[i]->sequence == ch->taken_count); /* IC-1 */
		ch->bufs[ch->taken_count & BUFS_MASK] = taken[i];
		ch->taken_count++;
	}
	CHECK(ch->taken_count - ch->returned_count <=
			ring_channel_config(ch->channel)->credit_count);
	return count;
}

/* IC-3. */
static enum event_mark mark_of(const struct input_channel *ch, const struct event *e)
{
	if (!event_is_early(e))
		return MARK_IN_LINE;
	if (event_is_barrier_ahead(e))
		return MARK_AHEAD;
	return ch->is_plain ? MARK_IN_LINE : MARK_ANNOUNCE;
}

static void set_mark(struct input_channel *ch, uint32_t at, enum event_mark mark)
{
	bool was_early = ch->marks[at] == MARK_ANNOUNCE || ch->marks[at] == MARK_AHEAD;
	bool is_early = mark == MARK_ANNOUNCE || mark == MARK_AHEAD;

	ch->marks[at] = (uint8_t)mark;
	ch->early_count += is_early;
	ch->early_count -= was_early;
}

/* What came ahead of the line and has been acted on has nothing more to say when its turn comes.
 * A stalled task may be asked for more checkpoints than there is room for events in line. */
static void drop_handled(struct input_channel *ch)
{
	uint32_t kept = ch->event_head;

	for (uint32_t i = ch->event_head; i != ch->event_tail; i++) {
		uint32_t at = i & EVENTS_MASK, to = kept & EVENTS_MASK;
		uint8_t mark = ch->marks[at];

		if (mark == MARK_HANDLED && ch->events[at].announcement != ch->blocked_behind)
			continue;
		ch->events[to] = ch->events[at];
		ch->marks[to] = mark;
		kept++;
	}
	for (uint32_t i = kept; i != ch->event_tail; i++)
		ch->marks[i & EVENTS_MASK] = MARK_IN_LINE;
	ch->event_tail = kept;
	ch->arrival_head = kept;
}

static uint32_t take_events(struct input_channel *ch)
{
	if (input_channel_event_count(ch) == CHANNEL_CONTROL_MAX &&
			ch->arrival_head == ch->event_tail)
		drop_handled(ch);

	uint32_t from = ch->event_tail & EVENTS_MASK;
	uint32_t room = CHANNEL_CONTROL_MAX - input_channel_event_count(ch);

	if (room > CHANNEL_CONTROL_MAX - from)
		room = CHANNEL_CONTROL_MAX - from;

	uint32_t count = ring_channel_take_events(ch->channel, &ch->events[from], room);
	for (uint32_t i = 0; i < count; i++) {
		const struct event *e = &ch->events[from + i];

		CHECK(e->announcement == ch->announced + 1);
		CHECK(e->cut > ch->position || (e->cut == ch->position &&
				(!ch->is_begun || input_channel_recovered_left(ch) > 0)));
		CHECK(e->boundary <= e->cut);
		ch->announced++;
		set_mark(ch, from + i, mark_of(ch, e));
	}
	ch->event_tail += count;
	return count;
}

/* In this order: then every event that a buffer taken here names is in the lane. */
uint32_t input_channel_poll(struct input_channel *ch, uint32_t *events)
{
	if (__builtin_expect(ch->returned_count < ch->position, 0))
		return_processed(ch);
	uint32_t count = take_bufs(ch);

	*events += take_events(ch);
	if ((ch->event_tail & EVENTS_MASK) == 0)
		*events += take_events(ch); /* the rest, from the array's beginning on */
	return count;
}

/* False while the event it names is still in the lane, because there was no room here. */
static bool is_announced(const struct input_channel *ch, const struct buf *b)
{
	return (int32_t)(b->announcement - ch->announced) <= 0;
}

/* Sender and receiver put an event between two records, never into one. */
static int check_whole(const struct input_channel *ch)
{
	uint32_t bytes;

	(void)record_reader_partial(ch->reader, &bytes);
	return bytes == 0 ? 0 : -EPROTO;
}

int input_channel_head(struct input_channel *ch, struct weir_batch *batch)
{
	int rc;

	if (!ch->is_begun) {
		if (input_channel_event_count(ch) > 0 && input_channel_recovered_left(ch) == 0 &&
				input_channel_event(ch, 0)->cut == ch->position) {
			rc = check_whole(ch);
			if (rc != 0)
				return rc;
			return ch->marks[ch->event_head & EVENTS_MASK] == MARK_HANDLED
					? INPUT_HEAD_HANDLED
					: INPUT_HEAD_EVENT;
		}
		if (input_channel_count(ch) == 0 || !is_announced(ch, input_channel_buf(ch, 0)))
			return INPUT_HEAD_NONE;
		rc = record_reader_feed(ch->reader, input_channel_buf(ch, 0));
		if (rc != 0)
			return rc;
		ch->is_begun = true;
	}

	rc = record_reader_peek(ch->reader, RECORDS_COUNT_MAX, batch);
	if (rc < 0)
		return rc;
	return rc == 1 ? INPUT_HEAD_RECORDS : INPUT_HEAD_END;
}

void input_channel_advance(struct input_channel *ch, uint32_t count)
{
	CHECK(ch->is_begun);
	record_reader_advance(ch->reader, count);
}

void input_channel_finish(struct input_channel *ch)
{
	CHECK(ch->is_begun);
	ch->is_begun = false;
	if (__builtin_expect(input_channel_recovered_left(ch) > 0, 0)) {
		buf_release(ch->recovered[ch->recovered_head++]);
		return;
	}
	ch->position++;
	return_processed(ch);
}

void input_channel_pop(struct input_channel *ch)
{
	CHECK(input_channel_event_count(ch) > 0);

	uint32_t at = ch->event_head & EVENTS_MASK;
	set_mark(ch, at, MARK_IN_LINE);
	if (ch->blocked_behind == ch->events[at].announcement)
		ch->blocked_behind = 0;
	ch->event_head++;
}

/* ---- ahead of the line ---- */

/* What comes over a plain ring is heard of when it is due. */
static bool is_heard(const struct input_channel *ch, const struct event *e)
{
	return !ch->is_plain || (e->cut == ch->position && !ch->is_begun &&
					input_channel_recovered_left(ch) == 0);
}

const struct event *input_channel_next_early(struct input_channel *ch, bool *is_barrier)
{
	for (uint32_t i = ch->event_head; i != ch->event_tail && ch->early_count > 0; i++) {
		uint32_t at = i & EVENTS_MASK;

		if ((ch->marks[at] != MARK_ANNOUNCE && ch->marks[at] != MARK_AHEAD) ||
				!is_heard(ch, &ch->events[at]))
			continue;
		*is_barrier = ch->marks[at] == MARK_AHEAD;
		set_mark(ch, at, *is_barrier ? MARK_HANDLED : MARK_IN_LINE);
		return &ch->events[at];
	}
	return NULL;
}

const struct event *input_channel_next_arrival(struct input_channel *ch)
{
	while (!ch->is_plain && ch->arrival_head != ch->event_tail) {
		const struct event *e = &ch->events[ch->arrival_head++ & EVENTS_MASK];

		if (e->kind == EVENT_BARRIER)
			return e;
	}
	return NULL;
}

/* Of a plain ring nothing behind a barrier is known before that is heard of. */
static uint64_t plain_limit(const struct input_channel *ch)
{
	for (uint32_t i = ch->event_head; i != ch->event_tail; i++) {
		uint32_t at = i & EVENTS_MASK;

		if (ch->events[at].kind == EVENT_BARRIER && ch->marks[at] != MARK_HANDLED)
			return ch->events[at].cut;
	}
	return UINT64_MAX;
}

uint64_t input_channel_known_count(const struct input_channel *ch)
{
	uint64_t known = ch->taken_count;
	uint64_t limit = ch->is_plain ? plain_limit(ch) : UINT64_MAX;

	while (known > ch->position && (known > limit ||
			!is_announced(ch, ch->bufs[(known - 1) & BUFS_MASK])))
		known--;
	return known;
}

bool input_channel_is_in_line(const struct input_channel *ch, uint32_t announcement)
{
	for (uint32_t i = ch->event_head; i != ch->event_tail; i++) {
		uint32_t at = i & EVENTS_MASK;

		if (ch->events[at].announcement == announcement)
			return ch->marks[at] != MARK_HANDLED;
	}
	return false;
}

bool input_channel_is_at_end(const struct input_channel *ch)
{
	if (input_channel_recovered_left(ch) > 0)
		return false; /* they come first, and every cut is behind them */
	for (uint32_t i = ch->event_head; i != ch->event_tail; i++) {
		uint32_t at = i & EVENTS_MASK;

		if (ch->events[at].cut != ch->position)
			return false;
		if (ch->marks[at] != MARK_HANDLED)
			return ch->events[at].kind == EVENT_END_OF_PARTITION;
	}
	return false;
}

bool input_channel_convert(struct input_channel *ch, int64_t checkpoint_id)
{
	for (uint32_t i = ch->event_head; i != ch->event_tail; i++) {
		uint32_t at = i & EVENTS_MASK;

		if (ch->events[at].kind != EVENT_BARRIER ||
				ch->events[at].checkpoint_id != checkpoint_id ||
				ch->marks[at] == MARK_HANDLED)
			continue;
		set_mark(ch, at, MARK_AHEAD);
		return true;
	}
	return false;
}

void input_channel_clear(struct input_channel *ch)
{
	for (; ch->returned_count < ch->taken_count; ch->returned_count++)
		buf_release(ch->bufs[ch->returned_count & BUFS_MASK]);
	for (; ch->recovered_head < ch->recovered_count; ch->recovered_head++)
		buf_release(ch->recovered[ch->recovered_head]);
	free(ch->recovered);
	record_reader_destroy(ch->reader);
}
