/*
 * flow-window: packets, bytes, first and last time and TCP flags of each flow in tumbling windows
 * of event time.
 *
 * A window is given out when the watermark reaches its end; an entry leaves the state with its
 * row, so a checkpoint in between holds exactly what is still to come.  The source says which
 * packets are late: each gets a row of its own, in its own window, at once.
 */

#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"
#include "dataplane/operator/builtins.h"
#include "dataplane/operator/operator.h"
#include "dataplane/operator/packet/flow_record.h"

#include <errno.h>

enum { SIZE, FLOWS_MAX, PARAM_COUNT };
enum { WINDOWS, WATERMARK, STATE_COUNT };
enum { PACKETS, BYTES, ROWS, LATE_RECORDS, COUNTER_COUNT };

static const struct weir_param params[PARAM_COUNT] = {
		[SIZE] = {"size", WEIR_DURATION, "60 s", 1000, INT64_MAX / 4, NULL,
				"length of a window; windows begin at multiples of it since 1970"},
		[FLOWS_MAX] = {"max-flows", WEIR_INTEGER, "131072", 1, INT64_C(1) << 40, NULL,
				"flows in open windows a subtask has room for"},
};

/* The exchange in front sends by the flow alone. */
struct window_key {
	struct flow_key flow;
	int64_t start_ns;
};
_Static_assert(sizeof(struct window_key) == 48, "state layout");

struct window_value {
	uint64_t packets, bytes; /* packets 0: new */
	int64_t first_ns, last_ns;
	uint16_t tcp_flags;
	uint16_t reserved[3];
};
_Static_assert(sizeof(struct window_value) == 40, "state layout");

struct flow_window {
	int64_t size_ns;
	int64_t next_end_ns; /* no window in the state ends before; INT64_MIN: unknown */
	int64_t *watermark_ns;
	uint64_t *counters[COUNTER_COUNT];
	uint64_t cursor;    /* of a walk that ran out of room */
	int64_t walk_end_ns; /* the first end that the walk has left open */
	struct flow_row rows[RECORDS_COUNT_MAX];
	struct window_key keys[RECORDS_COUNT_MAX];
	uint32_t inputs[RECORDS_COUNT_MAX]; /* of the keys */
	void *values[RECORDS_COUNT_MAX];
};

static int declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	static const char *const names[COUNTER_COUNT] = {
			"packets", "bytes", "rows", "late_records"};

	(void)error;
	d->self_bytes = sizeof(struct flow_window);
	d->in_record_bytes = sizeof(struct flow_packet);
	d->out_record_bytes = sizeof(struct flow_row);
	d->out_key_bytes = sizeof(struct flow_key);
	d->state_count = STATE_COUNT;
	d->states[WINDOWS] = (struct weir_state){.name = "windows",
			.kind = WEIR_STATE_KEYED,
			.key_bytes = sizeof(struct window_key),
			.value_bytes = sizeof(struct window_value),
			.version = 1,
			.capacity = (uint64_t)setting->values[FLOWS_MAX].integer,
			.group_bytes = sizeof(struct flow_key)};
	d->states[WATERMARK] = (struct weir_state){.name = "watermark",
			.kind = WEIR_STATE_LIST,
			.value_bytes = sizeof(int64_t),
			.version = 2,
			.capacity = PARALLELISM_MAX,
			.rescale = WEIR_RESCALE_UNION};
	d->counter_count = COUNTER_COUNT;
	memcpy(d->counters, names, sizeof(names));
	return 0;
}

/* The lowest of those that the windows here come from: to what one of them has given out no record
 * comes but late ones. */
static int64_t *open_watermark(struct weir_context *ctx)
{
	int64_t lowest = INT64_MAX;

	while (weir_list_count(ctx, WATERMARK) > 0) {
		int64_t one = *(int64_t *)weir_list_at(ctx, WATERMARK, 0);

		lowest = one < lowest ? one : lowest;
		weir_list_remove(ctx, WATERMARK, 0);
	}
	if (lowest == INT64_MAX)
		lowest = WEIR_WATERMARK_NONE;
	bool fits = weir_list_add(ctx, WATERMARK, &lowest);
	CHECK(fits);
	return weir_list_at(ctx, WATERMARK, 0);
}

static int open(void *self, struct weir_context *ctx)
{
	struct flow_window *w = self;

	w->size_ns = weir_info(ctx)->values[SIZE].integer;
	w->next_end_ns = INT64_MIN;
	w->walk_end_ns = INT64_MAX;
	w->watermark_ns = open_watermark(ctx);
	for (uint32_t i = 0; i < COUNTER_COUNT; i++)
		w->counters[i] = weir_counter(ctx, i);
	return 0;
}

/* The beginning of the window that holds `time_ns`; times are far enough from the ends of 64
 * bits, see capture_file.h. */
static int64_t window_start(int64_t time_ns, int64_t size_ns)
{
	int64_t rest = time_ns % size_ns;

	return time_ns - (rest < 0 ? rest + size_ns : rest);
}

/* Saturates instead of wrapping around. */
static int64_t window_end(int64_t start_ns, int64_t size_ns)
{
	int64_t end_ns;

	return __builtin_add_overflow(start_ns, size_ns, &end_ns) ? INT64_MAX : end_ns;
}

static void collect(struct flow_window *w, struct weir_context *ctx, uint32_t count)
{
	struct weir_batch batch = {(const uint8_t *)w->rows, count, sizeof(w->rows[0]),
			count * (uint32_t)sizeof(w->rows[0])};

	if (count == 0)
		return;
	uint32_t taken = weir_collect(ctx, &batch);
	CHECK(taken == count);
	*w->counters[ROWS] += count;
}

static struct flow_row late_row(const struct flow_window *w, const struct flow_packet *p)
{
	int64_t start_ns = window_start(p->time_ns, w->size_ns);

	return (struct flow_row){
			.key = p->key,
			.window_start_ns = start_ns,
			.window_end_ns = window_end(start_ns, w->size_ns),
			.packets = 1,
			.bytes = p->bytes,
			.first_ns = p->time_ns,
			.last_ns = p->time_ns,
			.tcp_flags = p->tcp_flags,
			.is_late = 1,
	};
}

static inline void add(struct window_value *v, const struct flow_packet *p)
{
	if (v->packets == 0) {
		v->first_ns = p->time_ns;
		v->last_ns = p->time_ns;
	}
	v->packets++;
	v->bytes += p->bytes;
	v->first_ns = p->time_ns < v->first_ns ? p->time_ns : v->first_ns;
	v->last_ns = p->time_ns > v->last_ns ? p->time_ns : v->last_ns;
	v->tcp_flags |= p->tcp_flags;
}

/* Records stand in buffers at any address. */
static inline struct flow_packet packet_at(const struct weir_batch *in, uint32_t index)
{
	struct flow_packet p;

	memcpy(&p, in->data + (size_t)index * sizeof(p), sizeof(p));
	return p;
}

/* Decides where each record goes: `keys` and `inputs`, or a row of its own.  Returns how many
 * have a row of their own; one behind our own watermark has, marked or not, for its window has
 * been given out. */
static uint32_t sort_out(struct flow_window *w, const struct weir_batch *in, uint32_t count,
		uint32_t *key_count, uint64_t *bytes)
{
	int64_t start_ns = 0, end_ns = 0; /* of the window of the record before */
	uint32_t late_count = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct flow_packet p = packet_at(in, i);

		*bytes += p.bytes;
		if (p.time_ns < start_ns || p.time_ns >= end_ns) {
			start_ns = window_start(p.time_ns, w->size_ns);
			end_ns = window_end(start_ns, w->size_ns);
		}
		if (p.is_late || end_ns <= *w->watermark_ns) {
			w->rows[late_count++] = late_row(w, &p);
			continue;
		}
		if (end_ns < w->next_end_ns)
			w->next_end_ns = end_ns;
		w->inputs[*key_count] = i;
		w->keys[(*key_count)++] = (struct window_key){p.key, start_ns};
	}
	return late_count;
}

static uint32_t process(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	struct flow_window *w = self;
	uint32_t count = in->count < RECORDS_COUNT_MAX ? in->count : RECORDS_COUNT_MAX;
	uint32_t key_count = 0;
	uint64_t bytes = 0;
	uint32_t late_count = sort_out(w, in, count, &key_count, &bytes);

	if (key_count > 0 && !weir_keyed_put(ctx, WINDOWS, w->keys, sizeof(w->keys[0]), key_count,
					     w->values))
		return 0;
	for (uint32_t i = 0; i < key_count; i++) {
		struct flow_packet p = packet_at(in, w->inputs[i]);

		add(w->values[i], &p);
	}
	collect(w, ctx, late_count);
	*w->counters[PACKETS] += count;
	*w->counters[BYTES] += bytes;
	*w->counters[LATE_RECORDS] += late_count;
	return count;
}

static struct flow_row row_of(
		const struct window_key *key, const struct window_value *value, int64_t end_ns)
{
	return (struct flow_row){
			.key = key->flow,
			.window_start_ns = key->start_ns,
			.window_end_ns = end_ns,
			.packets = value->packets,
			.bytes = value->bytes,
			.first_ns = value->first_ns,
			.last_ns = value->last_ns,
			.tcp_flags = value->tcp_flags,
	};
}

/* Walks on until the table ends (true) or there is no room (false). */
static bool walk(struct flow_window *w, struct weir_context *ctx, int64_t watermark)
{
	uint32_t room = weir_room(ctx), count = 0;
	const void *key_at, *value_at;
	bool more = true;

	if (room > RECORDS_COUNT_MAX)
		room = RECORDS_COUNT_MAX;
	while (count < room &&
			(more = weir_keyed_next(ctx, WINDOWS, &w->cursor, &key_at, &value_at))) {
		struct window_key key;
		struct window_value value;

		memcpy(&key, key_at, sizeof(key));
		memcpy(&value, value_at, sizeof(value));
		int64_t end_ns = window_end(key.start_ns, w->size_ns);
		if (end_ns > watermark) {
			w->walk_end_ns = end_ns < w->walk_end_ns ? end_ns : w->walk_end_ns;
			continue;
		}
		w->rows[count++] = row_of(&key, &value, end_ns);
		weir_keyed_remove(ctx, WINDOWS, &w->cursor);
	}
	collect(w, ctx, count);
	return !more;
}

static bool watermark(void *self, struct weir_context *ctx, int64_t watermark_ns)
{
	struct flow_window *w = self;

	if (watermark_ns >= w->next_end_ns && watermark_ns != WEIR_WATERMARK_NONE) {
		if (!walk(w, ctx, watermark_ns))
			return false;
		w->next_end_ns = w->walk_end_ns;
		w->walk_end_ns = INT64_MAX;
		w->cursor = 0;
	}
	*w->watermark_ns = watermark_ns;
	return true;
}

const struct weir_operator builtin_flow_window = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "flow-window",
		.help = "packets, bytes, first, last and TCP flags of each flow and window",
		.role = WEIR_TRANSFORM,
		.params = params,
		.param_count = PARAM_COUNT,
		.declare = declare,
		.open = open,
		.process = process,
		.watermark = watermark,
};
