#pragma once

/*
 * event: what travels on the control lane of a channel, beside the data (DESIGN "The cut";
 * flink-semantics 2.3, 10.3, 13.6).
 *
 * Place    wire; plain values, copied by the lanes.
 * Errors   none: who fills an event from the outside checks it first.
 *
 * An event has a position in line: every buffer numbered below its cut is before it.  It also has
 * a number of its own, 1, 2, 3 ... within its channel, which buffers made behind it name.
 *
 * The boundary says who keeps what an unaligned barrier overtakes: of the buffers before the cut
 * those numbered below the boundary have left the sender, so they are the receiver's to persist,
 * and the rest is the sender's.  Of any other event the boundary is the cut.
 */

#include "dataplane/base/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* 10.2. */
enum snapshot_kind {
	SNAPSHOT_CHECKPOINT,
	SNAPSHOT_FULL_CHECKPOINT,
	SNAPSHOT_SAVEPOINT,
	SNAPSHOT_SAVEPOINT_SUSPEND,
	SNAPSHOT_SAVEPOINT_TERMINATE,
};

/* Flink's ordinals, 10.3. */
enum alignment {
	ALIGNMENT_AT_LEAST_ONCE,
	ALIGNMENT_ALIGNED,
	ALIGNMENT_UNALIGNED,
	ALIGNMENT_FORCED_ALIGNED,
};

#define ALIGNED_TIMEOUT_NONE INT64_MAX

struct checkpoint_options {
	int64_t aligned_timeout_ms; /* ALIGNED_TIMEOUT_NONE: never */
	uint8_t snapshot;           /* enum snapshot_kind */
	uint8_t alignment;          /* enum alignment */
};

/* 21: stop-with-savepoint. */
static inline bool snapshot_kind_is_synchronous(enum snapshot_kind kind)
{
	return kind == SNAPSHOT_SAVEPOINT_SUSPEND || kind == SNAPSHOT_SAVEPOINT_TERMINATE;
}

static inline bool snapshot_kind_is_savepoint(enum snapshot_kind kind)
{
	return kind == SNAPSHOT_SAVEPOINT || snapshot_kind_is_synchronous(kind);
}

static inline bool checkpoint_options_is_timeoutable(const struct checkpoint_options *o)
{
	return o->alignment == ALIGNMENT_ALIGNED && o->aligned_timeout_ms > 0 &&
			o->aligned_timeout_ms < ALIGNED_TIMEOUT_NONE;
}

static inline bool checkpoint_options_is_unaligned(const struct checkpoint_options *o)
{
	return o->alignment == ALIGNMENT_UNALIGNED;
}

static inline bool checkpoint_options_needs_channel_state(const struct checkpoint_options *o)
{
	return checkpoint_options_is_unaligned(o) || checkpoint_options_is_timeoutable(o);
}

/* 10.3: what a task whose outputs can carry unaligned barriers makes of a forced one (14.2). */
static inline struct checkpoint_options checkpoint_options_with_unaligned(
		const struct checkpoint_options *o)
{
	struct checkpoint_options options = *o;

	if (o->alignment == ALIGNMENT_FORCED_ALIGNED)
		options.alignment = o->aligned_timeout_ms == ALIGNED_TIMEOUT_NONE
				? ALIGNMENT_UNALIGNED
				: ALIGNMENT_ALIGNED;
	return options;
}

/* 10.3: for an edge that cannot. */
static inline struct checkpoint_options checkpoint_options_without_unaligned(
		const struct checkpoint_options *o)
{
	struct checkpoint_options options = *o;

	if (checkpoint_options_needs_channel_state(o))
		options.alignment = ALIGNMENT_FORCED_ALIGNED;
	return options;
}

static inline struct checkpoint_options checkpoint_options_as_unaligned(
		const struct checkpoint_options *o)
{
	struct checkpoint_options options = *o;

	options.alignment = ALIGNMENT_UNALIGNED;
	options.aligned_timeout_ms = ALIGNED_TIMEOUT_NONE;
	return options;
}

/* Of a timeoutable checkpoint of that time, until its timeout: 0 when it has passed. */
static inline uint64_t checkpoint_options_timeout_left_ns(
		const struct checkpoint_options *o, int64_t timestamp_ms, int64_t wall_ms)
{
	const int64_t most_ms = INT64_MAX / 4 / 1000000;
	int64_t passed_ms, left_ms;

	if (__builtin_sub_overflow(wall_ms, timestamp_ms, &passed_ms) ||
			__builtin_sub_overflow(o->aligned_timeout_ms, passed_ms, &left_ms) ||
			left_ms > most_ms)
		left_ms = most_ms;
	return left_ms > 0 ? (uint64_t)left_ms * 1000000u : 0;
}

enum event_kind {
	EVENT_BARRIER = 1,
	EVENT_CANCEL,           /* of `checkpoint_id`; in line like any other (OU-4) */
	EVENT_END_OF_DATA,      /* `stop_mode` says how (TK-12) */
	EVENT_END_OF_PARTITION, /* the producer has finished; nothing follows (TK-13a) */
};

enum stop_mode { STOP_DRAIN, STOP_NO_DRAIN };

struct event {
	int64_t checkpoint_id; /* barrier, cancel */
	int64_t timestamp_ms;  /* barrier: wall clock of the trigger */
	struct checkpoint_options options; /* barrier */
	uint64_t cut;          /* buffers below it are before the event */
	uint64_t boundary;     /* buffers below it are the receiver's to persist; at most the cut */
	int64_t watermark;     /* holds at the cut */
	uint32_t announcement; /* its number in its channel */
	uint8_t kind;          /* enum event_kind */
	uint8_t stop_mode;     /* end of data: enum stop_mode */
};

static_assert(sizeof(struct event) <= LINE_BYTES, "one line");
static_assert(sizeof(struct event) % 8 == 0, "the control lane copies words");

/* Since the trigger of a barrier, by the wall clock: 0 when that is ahead of ours; bounded, so that
 * it has nanoseconds whatever a peer says. */
static inline int64_t event_age_ms(const struct event *e, int64_t wall_ms)
{
	const int64_t most_ms = INT64_MAX / 1000000;
	int64_t age_ms;

	if (e->timestamp_ms >= wall_ms)
		return 0;
	if (__builtin_sub_overflow(wall_ms, e->timestamp_ms, &age_ms) || age_ms > most_ms)
		return most_ms;
	return age_ms;
}

/* True for what is handled as soon as it comes, wherever in line it is. */
static inline bool event_is_barrier_ahead(const struct event *e)
{
	return e->kind == EVENT_BARRIER && checkpoint_options_is_unaligned(&e->options);
}

/* True for what the barrier handler must hear of before it is in line (IC-3). */
static inline bool event_is_early(const struct event *e)
{
	return e->kind == EVENT_BARRIER && checkpoint_options_needs_channel_state(&e->options);
}

/* "barrier", "cancel" and so on. */
static inline const char *event_kind_name(uint8_t kind)
{
	switch (kind) {
	case EVENT_BARRIER:
		return "barrier";
	case EVENT_CANCEL:
		return "cancel";
	case EVENT_END_OF_DATA:
		return "end of data";
	case EVENT_END_OF_PARTITION:
		return "end of partition";
	default:
		return "unknown";
	}
}
