/* What may arrive on the input channels of a task; on a source, its end of data. */

#include "tests/scenario/task_parts.h"
#include "tests/scenario/task_words.h"

static void arrive(struct task_world *w, const struct element *e)
{
	if (w->s->is_checking)
		return;
	task_lines_arrive(w, e);
	task_world_settle(w);
}

static bool is_open(struct task_world *w, uint32_t channel)
{
	if (w->lines[channel].has_ended)
		return scenario_malformed(w->s, "channel %u has ended", channel);
	return true;
}

static bool on_data(struct task_world *w, const struct scenario_line *l)
{
	struct element e = {0};

	if (!scenario_count(w->s, l, 2, UINT32_MAX))
		return false;
	uint32_t last;
	if (!task_world_range(w, l->words[1], w->settings.channel_count, &e.channel, &last) ||
			!is_open(w, e.channel))
		return false;
	if (last != e.channel || w->lines[e.channel].has_end_of_data)
		return scenario_malformed(w->s, last != e.channel
						? "data is for one channel"
						: "the data of this channel has ended");
	if (l->word_count == 2)
		arrive(w, &e);
	for (uint32_t i = 2; i < l->word_count; i++) {
		if (!task_world_label(w, l->words[i], &e.label))
			return false;
		if (w->settings.buffer_bytes < 4 && e.label >> 8 * w->settings.buffer_bytes != 0)
			return scenario_malformed(w->s, "too many labels for buffers of %u bytes",
					w->settings.buffer_bytes);
		arrive(w, &e);
	}
	return true;
}

/* A barrier or a marker, made before. */
static bool send_event(struct task_world *w, uint32_t channel, void *context)
{
	struct element e = {.channel = channel, .event_count = 1};

	if (!is_open(w, channel))
		return false;
	e.events[0] = *(const struct event *)context;
	e.is_ahead = event_is_barrier_ahead(&e.events[0]);
	arrive(w, &e);
	return true;
}

static bool send_barrier(struct task_world *w, const struct scenario_line *l, const char *allowed,
		enum snapshot_kind snapshot)
{
	uint32_t end = task_numbers_end(l, 2);
	struct task_options o;
	int64_t id;

	if (!task_read_id(w, l, &id) || !task_read_options(w, l, end, allowed, &o))
		return false;
	if (o.snapshot != SNAPSHOT_CHECKPOINT)
		snapshot = o.snapshot;
	struct event barrier = {
			.kind = EVENT_BARRIER,
			.checkpoint_id = id,
			.timestamp_ms = o.timestamp_ms,
			.watermark = WEIR_WATERMARK_NONE,
			.options = task_world_options(w, snapshot),
	};
	/* It keeps the timeout of what it was (10.3). */
	if (o.is_forced)
		barrier.options.alignment = ALIGNMENT_FORCED_ALIGNED;
	return task_for_each(w, l, 2, w->settings.channel_count, send_event, &barrier);
}

static bool on_barrier(struct task_world *w, const struct scenario_line *l)
{
	return send_barrier(w, l, " forced ts ", SNAPSHOT_CHECKPOINT);
}

static bool on_savepoint_barrier(struct task_world *w, const struct scenario_line *l)
{
	return send_barrier(w, l, " suspend terminate ts ", SNAPSHOT_SAVEPOINT);
}

static bool on_unaligned_barrier(struct task_world *w, const struct scenario_line *l)
{
	struct event barrier = {.kind = EVENT_BARRIER, .watermark = WEIR_WATERMARK_NONE};
	struct task_options o;

	if (!w->settings.is_unaligned)
		return scenario_malformed(w->s, "'u' needs 'unaligned on'");
	if (!task_read_id(w, l, &barrier.checkpoint_id) ||
			!task_read_options(w, l, task_numbers_end(l, 2), " ts ", &o))
		return false;
	barrier.timestamp_ms = o.timestamp_ms;
	barrier.options = (struct checkpoint_options){
			.aligned_timeout_ms = ALIGNED_TIMEOUT_NONE,
			.alignment = ALIGNMENT_UNALIGNED,
	};
	return task_for_each(w, l, 2, w->settings.channel_count, send_event, &barrier);
}

static bool on_marker(struct task_world *w, const struct scenario_line *l)
{
	struct event marker = {.kind = EVENT_CANCEL, .watermark = WEIR_WATERMARK_NONE};
	struct task_options o;

	return task_read_id(w, l, &marker.checkpoint_id) &&
			task_read_options(w, l, task_numbers_end(l, 2), "", &o) &&
			task_for_each(w, l, 2, w->settings.channel_count, send_event, &marker);
}

static struct event end_of_data(bool is_no_drain)
{
	return (struct event){.kind = EVENT_END_OF_DATA,
			.stop_mode = is_no_drain ? STOP_NO_DRAIN : STOP_DRAIN,
			.watermark = WEIR_WATERMARK_NONE};
}

static bool send_end_of_data(struct task_world *w, uint32_t channel, void *context)
{
	struct event event = end_of_data(*(const bool *)context);

	if (w->lines[channel].has_end_of_data)
		return scenario_malformed(w->s, "channel %u has said so already", channel);
	w->lines[channel].has_end_of_data = true;
	return send_event(w, channel, &event);
}

static bool on_end_of_data(struct task_world *w, const struct scenario_line *l)
{
	struct task_options o;

	if (!task_read_options(w, l, task_numbers_end(l, 1), " no-drain ", &o))
		return false;
	if (w->settings.channel_count > 0)
		return task_for_each(w, l, 1, w->settings.channel_count, send_end_of_data,
				&o.is_no_drain);
	if (!scenario_count(w->s, l, 1, 2) || task_numbers_end(l, 1) != 1)
		return scenario_malformed(w->s, "a source has no channels");
	if (o.is_no_drain)
		return scenario_unsupported(w->s, "a source that stops without draining");
	w->is_exhausted = true;
	if (!w->s->is_checking)
		task_world_settle(w);
	return true;
}

static bool send_end_of_partition(struct task_world *w, uint32_t channel, void *context)
{
	struct element e = {.channel = channel};
	struct input_line *line = &w->lines[channel];

	(void)context;
	if (!is_open(w, channel))
		return false;
	if (!line->has_end_of_data)
		e.events[e.event_count++] = end_of_data(false);
	e.events[e.event_count++] = (struct event){
			.kind = EVENT_END_OF_PARTITION, .watermark = WEIR_WATERMARK_NONE};
	line->has_end_of_data = true;
	line->has_ended = true;
	arrive(w, &e);
	return true;
}

static bool on_end_of_partition(struct task_world *w, const struct scenario_line *l)
{
	struct task_options o;

	return task_read_options(w, l, task_numbers_end(l, 1), "", &o) &&
			task_for_each(w, l, 1, w->settings.channel_count, send_end_of_partition,
					NULL);
}

const struct task_verb task_arrivals[] = {
		{"D", on_data},
		{"b", on_barrier},
		{"u", on_unaligned_barrier},
		{"s", on_savepoint_barrier},
		{"X", on_marker},
		{"eod", on_end_of_data},
		{"E", on_end_of_partition},
		{NULL, NULL},
};
