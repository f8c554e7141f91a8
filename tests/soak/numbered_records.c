#include "tests/soak/numbered_records.h"

#include <errno.h>
#include <stdio.h>

enum {
	KEYS_OF_STREAM = 8,
	SUBTASKS_MAX = 8, /* of a vertex: what they have seen may be one's after a restore */
	TINY_RUN = 8, /* every eighth record is whole, those between may be tiny */
	PREFIX_BYTES = 4,
	LARGEST_MAX = 1 << 20,
};

/* The front of a record. */
struct identity {
	uint32_t key, stream, number, producer;
};

struct settings {
	uint64_t seed;
	uint32_t streams, count, largest;
	bool is_tiny, must_share;
	uint64_t delay_ns, fail_at;
	enum numbered_order order;
	const char *result;
};

static const struct weir_param params[NUMBERED_PARAMS] = {
		[NUMBERED_SEED] = {"seed", WEIR_INTEGER, "1", 0, 0, NULL, "of sizes and keys"},
		[NUMBERED_STREAMS] = {"streams", WEIR_INTEGER, "4", 1, NUMBERED_STREAMS_MAX, NULL,
				"how many"},
		[NUMBERED_COUNT] = {"count", WEIR_INTEGER, "256", 1, NUMBERED_COUNT_MAX, NULL,
				"records of a stream"},
		[NUMBERED_LARGEST] = {"largest", WEIR_INTEGER, "1024", 16, LARGEST_MAX, NULL,
				"bytes of a record"},
		[NUMBERED_TINY] = {"tiny", WEIR_BOOLEAN, "false", 0, 1, NULL,
				"some are a few bytes"},
		[NUMBERED_DELAY] = {"delay", WEIR_DURATION, "0 s", 0, 0, NULL, "between records"},
		[NUMBERED_ORDER] = {"order", WEIR_CHOICE, "any", 0, 0, "any|stream|key|repeats",
				"in which they come"},
		[NUMBERED_FAIL_AT] = {"fail-at", WEIR_INTEGER, "0", 0, 1000000, NULL, "records"},
		[NUMBERED_SHARE] = {"share", WEIR_BOOLEAN, "false", 0, 1, NULL,
				"hand on what is the subtask's"},
		[NUMBERED_RESULT] = {"result", WEIR_TEXT, "", 0, 0, NULL, "directory"},
};

static struct settings settings_of(const struct weir_value *v)
{
	return (struct settings){
			.seed = (uint64_t)v[NUMBERED_SEED].integer,
			.streams = (uint32_t)v[NUMBERED_STREAMS].integer,
			.count = (uint32_t)v[NUMBERED_COUNT].integer,
			.largest = (uint32_t)v[NUMBERED_LARGEST].integer,
			.is_tiny = v[NUMBERED_TINY].integer != 0,
			.delay_ns = (uint64_t)v[NUMBERED_DELAY].integer,
			.order = (enum numbered_order)v[NUMBERED_ORDER].integer,
			.fail_at = (uint64_t)v[NUMBERED_FAIL_AT].integer,
			.must_share = v[NUMBERED_SHARE].integer != 0,
			.result = v[NUMBERED_RESULT].text,
	};
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

uint64_t numbered_digest(uint64_t seed, uint32_t stream, uint32_t number)
{
	return mix(mix(seed + 1) ^ ((uint64_t)stream << 32 | (number + 1)));
}

static uint32_t key_of(const struct settings *s, uint32_t stream, uint32_t number)
{
	return stream * KEYS_OF_STREAM +
			(uint32_t)(numbered_digest(s->seed, stream, number) >> 40) %
					KEYS_OF_STREAM;
}

/* Most are small, some are a part of the largest, a few are the largest. */
static uint32_t size_of(const struct settings *s, uint32_t stream, uint32_t number)
{
	uint64_t random = numbered_digest(s->seed, stream, number) >> 8;
	uint32_t least = sizeof(struct identity), room = s->largest - least + 1;

	switch (random % 64) {
	case 0:
		return s->largest;
	case 1:
	case 2:
	case 3:
		return least + (uint32_t)(random >> 8) % room;
	default:
		return least + (uint32_t)(random >> 8) % (room < 300 ? room : 300);
	}
}

/* 0: it is whole. */
static uint32_t tiny_size_of(const struct settings *s, uint32_t stream, uint32_t number)
{
	uint64_t random = numbered_digest(s->seed, stream, number) >> 16;

	if (!s->is_tiny || number % TINY_RUN == 0 || random % 3 == 0)
		return 0;
	return 1 + (uint32_t)(random >> 8) % ((uint32_t)sizeof(struct identity) - 1);
}

static uint8_t byte_of(struct identity id, uint32_t i)
{
	return (uint8_t)(id.stream * 31 + id.number + i * 7);
}

/* The size in front, and the record. */
static uint32_t write_record(const struct settings *s, struct identity id, bool may_be_tiny,
		uint8_t *at)
{
	uint32_t tiny = may_be_tiny ? tiny_size_of(s, id.stream, id.number) : 0;
	uint32_t size = tiny != 0 ? tiny : size_of(s, id.stream, id.number);
	uint8_t *record = at + PREFIX_BYTES;

	memcpy(at, &size, sizeof(size));
	for (uint32_t i = 0; i < size; i++)
		record[i] = byte_of(id, i);
	if (tiny == 0)
		memcpy(record, &id, sizeof(id));
	return size + PREFIX_BYTES;
}

/* ---- the source ---- */

/* A stream that is a subtask's. */
struct stream_item {
	uint32_t stream, next;
};

enum { SOURCE_STREAMS, SOURCE_STATES };

struct source {
	struct settings s;
	uint64_t next_ns, polls;
	uint8_t record[PREFIX_BYTES + LARGEST_MAX];
};

static int declare_source(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	struct settings s = settings_of(setting->values);

	(void)error;
	d->self_bytes = (uint32_t)offsetof(struct source, record) + PREFIX_BYTES + s.largest;
	d->out_record_bytes_max = s.largest;
	d->out_key_bytes = sizeof(uint32_t);
	d->state_count = SOURCE_STATES;
	d->states[SOURCE_STREAMS] = (struct weir_state){.name = "streams",
			.kind = WEIR_STATE_LIST,
			.value_bytes = sizeof(struct stream_item),
			.version = 1,
			.capacity = NUMBERED_STREAMS_MAX};
	return 0;
}

static int open_source(void *self, struct weir_context *ctx)
{
	const struct weir_info *info = weir_info(ctx);
	struct source *source = self;

	source->s = settings_of(info->values);
	if (info->restored_checkpoint_id != 0)
		return 0;
	for (uint32_t i = info->subtask_index; i < source->s.streams; i += info->parallelism) {
		struct stream_item item = {i, 0};

		if (!weir_list_add(ctx, SOURCE_STREAMS, &item))
			return -ENOMEM;
	}
	return 0;
}

/* In runs that begin with a whole record, of the stream that is least far; NULL: all are at their
 * end. */
static struct stream_item *choose_stream(const struct source *source, struct weir_context *ctx)
{
	struct stream_item *chosen = NULL;

	for (uint32_t i = 0; i < weir_list_count(ctx, SOURCE_STREAMS); i++) {
		struct stream_item *item = weir_list_at(ctx, SOURCE_STREAMS, i);

		if (item->next == source->s.count)
			continue;
		if (item->next % TINY_RUN != 0)
			return item;
		if (chosen == NULL || item->next < chosen->next)
			chosen = item;
	}
	return chosen;
}

static enum weir_poll poll_source(void *self, struct weir_context *ctx, uint32_t records_max)
{
	struct source *source = self;
	const struct settings *s = &source->s;
	uint64_t now_ns = weir_now_ns(ctx);
	struct stream_item *item = choose_stream(source, ctx);

	if (item == NULL)
		return WEIR_POLL_END;
	if (records_max == 0)
		return WEIR_POLL_IDLE;
	if (now_ns < source->next_ns) {
		weir_not_before(ctx, source->next_ns);
		return WEIR_POLL_IDLE;
	}
	struct identity id = {key_of(s, item->stream, item->next), item->stream, item->next,
			weir_info(ctx)->subtask_index};
	struct weir_batch batch = {source->record, 1, 0, 0};

	batch.data_bytes = write_record(s, id, true, source->record);
	if (weir_collect(ctx, &batch) == 1)
		item->next++;
	source->next_ns = now_ns + s->delay_ns * (mix(++source->polls) % 4);
	return WEIR_POLL_MORE;
}

/* ---- what a consumer has seen ---- */

struct seen_item {
	uint32_t stream, number;
};

struct key_seen {
	uint32_t after_last, count;
	uint64_t bits[NUMBERED_WORDS];
};

enum { CONSUMER_SEEN, CONSUMER_LAST, CONSUMER_STATES };
enum { COUNTER_RECORDS, COUNTER_DIGEST, CONSUMER_COUNTERS };

struct consumer {
	struct settings s;
	bool is_keyed;
	uint64_t next_ns, taken;
	uint32_t after_last[NUMBERED_STREAMS_MAX];
	struct numbered_result result; /* of one with a list: also what it is asked for */
	uint8_t record[PREFIX_BYTES + LARGEST_MAX];
};

static int declare_consumer(const struct weir_setting *setting, struct weir_declaration *d,
		bool is_keyed)
{
	struct settings s = settings_of(setting->values);

	d->self_bytes = (uint32_t)offsetof(struct consumer, record) + PREFIX_BYTES + s.largest;
	d->in_record_bytes = 0;
	d->out_record_bytes_max = s.largest;
	d->out_key_bytes = sizeof(uint32_t);
	d->counter_count = CONSUMER_COUNTERS;
	d->counters[COUNTER_RECORDS] = "records";
	d->counters[COUNTER_DIGEST] = "digest_sum";
	d->state_count = is_keyed ? CONSUMER_LAST : CONSUMER_STATES;
	d->states[CONSUMER_SEEN] = (struct weir_state){.name = "seen",
			.kind = is_keyed ? WEIR_STATE_KEYED : WEIR_STATE_LIST,
			.key_bytes = is_keyed ? sizeof(uint32_t) : 0,
			.value_bytes = is_keyed ? sizeof(struct key_seen)
						: sizeof(struct seen_item),
			.version = 1,
			.capacity = is_keyed ? NUMBERED_STREAMS_MAX * KEYS_OF_STREAM
					     : (uint64_t)s.streams * s.count * SUBTASKS_MAX};
	/* What a tiny record follows. */
	d->states[CONSUMER_LAST] = (struct weir_state){.name = "last",
			.kind = WEIR_STATE_VALUE,
			.value_bytes = sizeof(struct seen_item),
			.version = 1,
			.rescale = WEIR_RESCALE_KEEP};
	return 0;
}

static int declare_by_key(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)error;
	return declare_consumer(setting, d, true);
}

static int declare_any(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)error;
	return declare_consumer(setting, d, false);
}

static bool has_bit(const uint64_t *bits, uint32_t i)
{
	return (bits[i / 64] >> i % 64 & 1) != 0;
}

static void set_bit(uint64_t *bits, uint32_t i)
{
	bits[i / 64] |= UINT64_C(1) << i % 64;
}

/* At least once, two subtasks of before may have seen the same. */
static int open_consumer(void *self, struct weir_context *ctx, bool is_keyed)
{
	struct consumer *c = self;

	c->s = settings_of(weir_info(ctx)->values);
	c->is_keyed = is_keyed;
	for (uint32_t i = is_keyed ? 0 : weir_list_count(ctx, CONSUMER_SEEN); i-- > 0;) {
		const struct seen_item *item = weir_list_at(ctx, CONSUMER_SEEN, i);

		if (item->number >= c->after_last[item->stream])
			c->after_last[item->stream] = item->number + 1;
		if (has_bit(c->result.seen[item->stream], item->number))
			weir_list_remove(ctx, CONSUMER_SEEN, i);
		else
			set_bit(c->result.seen[item->stream], item->number);
	}
	return 0;
}

static int open_by_key(void *self, struct weir_context *ctx)
{
	return open_consumer(self, ctx, true);
}

static int open_any(void *self, struct weir_context *ctx)
{
	return open_consumer(self, ctx, false);
}

/* The next number from `from` on that has the key. */
static uint32_t next_of_key(const struct settings *s, uint32_t stream, uint32_t from, uint32_t key)
{
	while (from < s->count && key_of(s, stream, from) != key)
		from++;
	return from;
}

static void name_mistake(struct weir_context *ctx, struct identity id, const char *what,
		uint32_t due)
{
	const struct weir_info *info = weir_info(ctx);

	weir_fail_for_good(ctx,
			"channel %u -> %s %u: stream %u number %u %s (%u was due), restored from "
			"checkpoint %lld",
			id.producer, info->uid, info->subtask_index, id.stream, id.number, what,
			due, (long long)info->restored_checkpoint_id);
}

/* False: it has failed.  `*is_new`: it has not been here before. */
static bool judge(struct consumer *c, struct weir_context *ctx, struct identity id, bool has_it,
		uint32_t due, bool *is_new)
{
	enum numbered_order order = c->s.order;

	*is_new = !has_it;
	if (has_it && order != NUMBERED_REPEATS) {
		name_mistake(ctx, id, "came again", due);
		return false;
	}
	if ((order == NUMBERED_STREAM_ORDER || order == NUMBERED_KEY_ORDER) && id.number != due) {
		name_mistake(ctx, id, "came too early, something before it is lost or behind it",
				due);
		return false;
	}
	return true;
}

static bool note_by_key(struct consumer *c, struct weir_context *ctx, struct identity id,
		bool *is_new)
{
	void *value;

	if (!weir_keyed_put(ctx, CONSUMER_SEEN, &id.key, sizeof(id.key), 1, &value))
		return false;
	struct key_seen *seen = value;
	uint32_t due = next_of_key(&c->s, id.stream, seen->after_last, id.key);

	if (!judge(c, ctx, id, has_bit(seen->bits, id.number), due, is_new))
		return false;
	set_bit(seen->bits, id.number);
	seen->count += *is_new;
	seen->after_last = id.number + 1;
	return true;
}

static bool note_in_list(struct consumer *c, struct weir_context *ctx, struct identity id,
		bool *is_new)
{
	struct seen_item item = {id.stream, id.number};
	struct seen_item *last = weir_value(ctx, CONSUMER_LAST);

	if (!judge(c, ctx, id, has_bit(c->result.seen[id.stream], id.number),
			    c->after_last[id.stream], is_new))
		return false;
	set_bit(c->result.seen[id.stream], id.number);
	if (*is_new && !weir_list_add(ctx, CONSUMER_SEEN, &item)) {
		weir_fail_for_good(ctx, "there is no room for what was seen");
		return false;
	}
	c->after_last[id.stream] = id.number + 1;
	*last = item;
	return true;
}

/* Which record that is: it says so itself, or it follows the last one. */
static struct identity identify(struct consumer *c, struct weir_context *ctx,
		const uint8_t *record, uint32_t bytes)
{
	struct identity id = {0};

	if (bytes >= sizeof(id)) {
		memcpy(&id, record, sizeof(id));
	} else if (!c->is_keyed) {
		const struct seen_item *last = weir_value(ctx, CONSUMER_LAST);

		id = (struct identity){0, last->stream, last->number + 1,
				weir_info(ctx)->subtask_index};
	}
	return id;
}

static bool is_whole(const struct consumer *c, struct identity id, const uint8_t *record,
		uint32_t bytes)
{
	const struct settings *s = &c->s;
	bool is_tiny = bytes < sizeof(id);

	if (id.stream >= s->streams || id.number >= s->count)
		return false;
	if (bytes != (is_tiny ? tiny_size_of(s, id.stream, id.number)
			      : size_of(s, id.stream, id.number)))
		return false;
	if (!is_tiny && id.key != key_of(s, id.stream, id.number))
		return false;
	for (uint32_t i = is_tiny ? 0 : sizeof(id); i < bytes; i++) {
		if (record[i] != byte_of(id, i))
			return false;
	}
	return true;
}

/* false: the task has failed. */
static bool accept(struct consumer *c, struct weir_context *ctx, const uint8_t *record,
		uint32_t bytes, struct identity *id)
{
	bool is_new;

	*id = identify(c, ctx, record, bytes);
	if (!is_whole(c, *id, record, bytes)) {
		name_mistake(ctx, *id, "is not as it was sent", 0);
		return false;
	}
	id->key = key_of(&c->s, id->stream, id->number);
	if (!(c->is_keyed ? note_by_key : note_in_list)(c, ctx, *id, &is_new))
		return false;
	if (is_new) {
		++*weir_counter(ctx, COUNTER_RECORDS);
		*weir_counter(ctx, COUNTER_DIGEST) +=
				numbered_digest(c->s.seed, id->stream, id->number);
	}
	c->taken++;
	if (c->taken == c->s.fail_at) {
		weir_fail(ctx, "as it was told to");
		return false;
	}
	return true;
}

/* ---- pass and sink ---- */

static void hand_on(struct consumer *c, struct weir_context *ctx, struct identity id)
{
	const struct weir_info *info = weir_info(ctx);
	struct weir_batch batch = {c->record, 1, 0, 0};

	if (c->s.must_share && id.number % info->parallelism != info->subtask_index)
		return;
	id.producer = info->subtask_index;
	batch.data_bytes = write_record(&c->s, id, false, c->record);
	(void)weir_collect(ctx, &batch); /* there is room for as many as come */
}

static uint32_t process(struct consumer *c, struct weir_context *ctx, const struct weir_batch *in,
		bool has_output)
{
	const uint8_t *at = in->data;
	uint32_t done = 0;

	while (done < in->count) {
		struct identity id;
		uint32_t bytes;
		const uint8_t *record = weir_record_at(at, &bytes);

		if (weir_now_ns(ctx) < c->next_ns) {
			weir_not_before(ctx, c->next_ns);
			return done;
		}
		if (!accept(c, ctx, record, bytes, &id))
			return done;
		if (has_output)
			hand_on(c, ctx, id);
		c->next_ns = weir_now_ns(ctx) + c->s.delay_ns * (mix(c->taken) % 4);
		at = record + bytes;
		done++;
	}
	return done;
}

static uint32_t process_pass(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	return process(self, ctx, in, true);
}

static uint32_t process_sink(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	return process(self, ctx, in, false);
}

static void collect_by_key(struct consumer *c, struct weir_context *ctx)
{
	const void *key, *value;
	uint64_t cursor = 0;

	memset(c->result.seen, 0, sizeof(c->result.seen));
	while (weir_services_of(ctx)->keyed_next(ctx, CONSUMER_SEEN, &cursor, &key, &value)) {
		const struct key_seen *seen = value;
		uint32_t number;

		memcpy(&number, key, sizeof(number));
		for (uint32_t i = 0; i < NUMBERED_WORDS; i++)
			c->result.seen[number / KEYS_OF_STREAM][i] |= seen->bits[i];
	}
}

/* All input is in: writes down what there was.  A later attempt overwrites it. */
static bool finish(void *self, struct weir_context *ctx)
{
	const struct weir_info *info = weir_info(ctx);
	struct consumer *c = self;
	char path[512];

	if (c->s.result == NULL || c->s.result[0] == '\0')
		return true;
	if (c->is_keyed)
		collect_by_key(c, ctx);
	c->result.records = *weir_counter(ctx, COUNTER_RECORDS);
	c->result.digest = *weir_counter(ctx, COUNTER_DIGEST);
	snprintf(path, sizeof(path), "%s/%s-%u-of-%u", c->s.result, info->uid,
			info->subtask_index, info->parallelism);
	FILE *file = fopen(path, "wb");
	bool is_written = file != NULL && fwrite(&c->result, sizeof(c->result), 1, file) == 1;

	if (file != NULL)
		is_written = fclose(file) == 0 && is_written;
	if (!is_written)
		weir_fail_for_good(ctx, "%s cannot be written", path);
	return true;
}

#define CONSUMER(name_, help_, role_, suffix, process_, finish_)                                   \
	{                                                                                          \
		.abi_version = WEIR_ABI_VERSION, .size = sizeof(struct weir_operator),             \
		.name = name_, .help = help_, .role = role_, .params = params,                     \
		.param_count = NUMBERED_PARAMS, .declare = declare_##suffix,                       \
		.open = open_##suffix, .process = process_, .finish = finish_,                     \
	}

static const struct weir_operator operators[] = {
		[NUMBERED_SOURCE] = {
				.abi_version = WEIR_ABI_VERSION,
				.size = sizeof(struct weir_operator),
				.name = "numbered-source",
				.help = "numbered records of several streams",
				.role = WEIR_SOURCE,
				.params = params,
				.param_count = NUMBERED_PARAMS,
				.declare = declare_source,
				.open = open_source,
				.poll = poll_source,
		},
		[NUMBERED_PASS] = CONSUMER("numbered-pass", "checks records by key", WEIR_TRANSFORM,
				by_key, process_pass, finish),
		[NUMBERED_SINK] = CONSUMER("numbered-sink", "checks records by key", WEIR_SINK,
				by_key, process_sink, finish),
		[NUMBERED_PASS_ANY] = CONSUMER("numbered-pass-any", "checks records",
				WEIR_TRANSFORM, any, process_pass, finish),
		[NUMBERED_SINK_ANY] = CONSUMER("numbered-sink-any", "checks records", WEIR_SINK,
				any, process_sink, finish),
};

__attribute__((visibility("default"))) const struct weir_operator *weir_plugin(uint32_t index)
{
	return index < sizeof(operators) / sizeof(operators[0]) ? &operators[index] : NULL;
}
