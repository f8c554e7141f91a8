/*
 * pcap-source: a source of captured packets from pcap and pcapng files.
 *
 * The coordinator of kind "files" hands the files out: the source sends "REQUEST" and gets
 * "FILE <path>" or "NO-MORE".  A file that was handed out is in this state from that moment on.
 * The position is that of what was collected; what the reader thread has read ahead is read again
 * after a restore.  A watermark follows the records: the highest time collected minus a bound.
 */

#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"
#include "dataplane/operator/builtins.h"
#include "dataplane/operator/operator.h"
#include "dataplane/operator/pacer.h"
#include "dataplane/operator/packet/capture_reader.h"
#include "dataplane/operator/packet/flow_record.h"

#include <errno.h>

enum { PATH, RATE, OUT_OF_ORDERNESS, SNAP, PARAM_COUNT };
enum { POSITIONS };
enum { POSITIONS_MAX = 64 }; /* files begun, after a restore with a smaller parallelism */
enum { PREFETCH_BYTES = 1024 }; /* the reader wrote on another core */
enum { FRAMES, BYTES, LATE, FILES, FILES_CUT, FILES_SKIPPED, COUNTER_COUNT };

static const struct weir_param params[PARAM_COUNT] = {
		[PATH] = {"path", WEIR_TEXT, NULL, 0, 0, NULL,
				"a capture file, a directory of them, or a pattern such as *.pcap"},
		[RATE] = {"rate", WEIR_INTEGER, "0", 0, 1000000000000, NULL,
				"packets a second of each subtask; 0 is as fast as they are taken"},
		[OUT_OF_ORDERNESS] = {"max-out-of-orderness", WEIR_DURATION, "1 s", 0,
				INT64_MAX / 2, NULL,
				"a packet further behind the newest one seen is late"},
		[SNAP] = {"snap", WEIR_SIZE, "256", 64, 8192, NULL,
				"bytes of each packet that are looked at"},
};

/* State: an item for each file begun, the first one being read; at least one. */
struct position {
	char path[CAPTURE_PATH_BYTES]; /* empty: no file */
	struct capture_identity identity;
	struct capture_mark mark; /* of a packet, and how many behind it are collected */
	uint32_t skip_count;
	uint32_t has_seen_time;
	int64_t highest_ns; /* of all packets collected, when has_seen_time */
};

struct pcap_source {
	struct position *position;
	uint64_t *counters[COUNTER_COUNT];
	int64_t out_of_orderness_ns, watermark_ns;
	struct pacer pacer;
	struct capture_reader *reader;
	const struct capture_chunk *chunk; /* being collected */
	uint32_t chunk_at, chunk_taken;    /* bytes and records of it that were */
	bool is_asking, is_over;
};

static int declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	static const char *const names[COUNTER_COUNT] = {"frames", "bytes", "late", "files",
			"files_cut", "files_skipped"};

	(void)error;
	d->self_bytes = sizeof(struct pcap_source);
	d->out_record_bytes_max = (uint32_t)sizeof(struct captured_packet) +
			(uint32_t)setting->values[SNAP].integer;
	d->state_count = 1;
	d->states[POSITIONS] = (struct weir_state){.name = "positions",
			.kind = WEIR_STATE_LIST,
			.value_bytes = sizeof(struct position),
			.version = 1,
			.capacity = POSITIONS_MAX};
	d->counter_count = COUNTER_COUNT;
	memcpy(d->counters, names, sizeof(names));
	return 0;
}

/* A file that stands in the directory which was asked for, and was not asked for itself. */
static bool is_one_of_many(const char *path, const char *asked)
{
	size_t size = strlen(asked);

	while (size > 1 && asked[size - 1] == '/')
		size--;
	return strncmp(path, asked, size) == 0 && (path[size] == '/' || path[size - 1] == '/') &&
	       path[size] != '\0';
}

static void order_file(struct pcap_source *s, struct weir_context *ctx)
{
	const struct position *p = s->position;
	struct capture_order order = {
			.identity = p->identity,
			.mark = p->mark,
			.skip_count = p->skip_count,
			.highest_ns = p->has_seen_time ? p->highest_ns : WEIR_WATERMARK_NONE,
			.is_one_of_many = is_one_of_many(
					p->path, weir_info(ctx)->values[PATH].text),
	};

	memcpy(order.path, p->path, sizeof(order.path));
	capture_reader_order(s->reader, &order);
}

static struct position *position_at(struct weir_context *ctx, uint32_t index)
{
	return weir_list_at(ctx, POSITIONS, index);
}

/* One that has no file only says how far its subtask had come: not needed beside others. */
static void open_positions(struct pcap_source *s, struct weir_context *ctx)
{
	static const struct position none;

	if (weir_list_count(ctx, POSITIONS) == 0) {
		bool fits = weir_list_add(ctx, POSITIONS, &none);
		CHECK(fits);
	}
	for (uint32_t i = weir_list_count(ctx, POSITIONS); i-- > 0;) {
		struct position *p = position_at(ctx, i);

		p->path[CAPTURE_PATH_BYTES - 1] = '\0';
		if (p->path[0] == '\0' && weir_list_count(ctx, POSITIONS) > 1)
			weir_list_remove(ctx, POSITIONS, i);
	}
	s->position = position_at(ctx, 0);
}

static int open(void *self, struct weir_context *ctx)
{
	struct pcap_source *s = self;
	const struct weir_value *values = weir_info(ctx)->values;

	s->out_of_orderness_ns = values[OUT_OF_ORDERNESS].integer;
	s->watermark_ns = WEIR_WATERMARK_NONE;
	s->pacer.rate = (uint64_t)values[RATE].integer;
	for (uint32_t i = 0; i < COUNTER_COUNT; i++)
		s->counters[i] = weir_counter(ctx, i);
	open_positions(s, ctx);
	struct capture_reader_config config = {
			(uint32_t)values[SNAP].integer, s->out_of_orderness_ns};
	int rc = capture_reader_create(&s->reader, ctx, &config);
	if (rc != 0) {
		weir_fail(ctx, "no reader thread for captures: %s", strerror(-rc));
		return rc;
	}
	if (s->position->path[0] != '\0')
		order_file(s, ctx);
	return 0;
}

/* After a restore the coordinator knows nothing of an older request. */
static void ask_for_file(struct pcap_source *s, struct weir_context *ctx)
{
	static const char request[] = "REQUEST";

	if (s->is_asking)
		return;
	s->is_asking = true;
	weir_send_event(ctx, request, sizeof(request) - 1);
}

static void event(void *self, struct weir_context *ctx, const void *data, uint32_t bytes)
{
	static const char file[] = "FILE ", no_more[] = "NO-MORE";
	const uint32_t file_bytes = sizeof(file) - 1;
	struct pcap_source *s = self;
	struct position *p = s->position;

	if (bytes == sizeof(no_more) - 1 && memcmp(data, no_more, bytes) == 0) {
		s->is_over = true;
		return;
	}
	if (bytes <= file_bytes || memcmp(data, file, file_bytes) != 0 ||
			bytes - file_bytes >= CAPTURE_PATH_BYTES || p->path[0] != '\0' ||
			memchr(data, '\0', bytes) != NULL) {
		weir_fail(ctx, "an event of the coordinator is neither FILE nor NO-MORE, or comes "
			       "while a file is open");
		return;
	}
	memset(p->path, 0, sizeof(p->path));
	memcpy(p->path, (const char *)data + file_bytes, bytes - file_bytes);
	p->identity = (struct capture_identity){0};
	p->mark = (struct capture_mark){0};
	p->skip_count = 0;
	s->is_asking = false;
	order_file(s, ctx);
}

static void begin_chunk(struct pcap_source *s, const struct capture_chunk *chunk)
{
	s->chunk = chunk;
	s->chunk_at = 0;
	s->chunk_taken = 0;
	if (chunk->end == CAPTURE_UNREADABLE && chunk->record_count == 0)
		return; /* what the position was stays true */
	s->position->identity = chunk->identity;
	s->position->mark = chunk->mark;
	s->position->skip_count = 0;
}

/* The next one begun, or none. */
static void end_file(struct pcap_source *s, struct weir_context *ctx)
{
	if (weir_list_count(ctx, POSITIONS) > 1) {
		weir_list_remove(ctx, POSITIONS, 0);
		s->position = position_at(ctx, 0);
		order_file(s, ctx);
		return;
	}
	memset(s->position->path, 0, sizeof(s->position->path));
	s->position->skip_count = 0;
}

/* All records of the chunk are collected; goes back to the reader. */
static void end_chunk(struct pcap_source *s, struct weir_context *ctx)
{
	const struct capture_chunk *c = s->chunk;

	if (c->end == CAPTURE_UNREADABLE) {
		weir_fail_for_good(ctx, "%s", c->text);
	} else if (c->end != CAPTURE_GOES_ON) {
		++*s->counters[c->is_no_capture ? FILES_SKIPPED : FILES];
		*s->counters[FILES_CUT] += c->end == CAPTURE_WAS_CUT;
	}
	bool is_over = c->end != CAPTURE_GOES_ON && c->end != CAPTURE_UNREADABLE;
	capture_reader_give_back(s->reader, s->chunk);
	s->chunk = NULL;
	if (is_over)
		end_file(s, ctx);
}

/* What a run of records adds. */
struct tally {
	uint32_t record_bytes;
	uint64_t packet_bytes, late_count;
	int64_t highest_ns;
};

static struct tally tally_records(const uint8_t *records, uint32_t count)
{
	struct tally t = {.highest_ns = INT64_MIN};
	const uint8_t *at = records;

	for (uint32_t i = 0; i < count; i++) {
		struct captured_packet header;
		uint32_t size;

		__builtin_prefetch(at + PREFETCH_BYTES);
		at = weir_record_at(at, &size);
		memcpy(&header, at, sizeof(header));
		at += size;
		t.packet_bytes += header.original_bytes;
		t.late_count += header.is_late;
		if (header.time_ns > t.highest_ns)
			t.highest_ns = header.time_ns;
	}
	t.record_bytes = (uint32_t)(at - records);
	return t;
}

static void collect(struct pcap_source *s, struct weir_context *ctx, uint32_t count)
{
	const uint8_t *records = s->chunk->records + s->chunk_at;
	struct tally t = tally_records(records, count);
	struct weir_batch batch = {records, count, 0, t.record_bytes};
	struct position *p = s->position;
	uint32_t taken = weir_collect(ctx, &batch);

	CHECK(taken == count); /* poll asks for what there is room for */
	s->chunk_at += t.record_bytes;
	s->chunk_taken += count;
	p->skip_count += count;
	if (!p->has_seen_time || t.highest_ns > p->highest_ns)
		p->highest_ns = t.highest_ns;
	p->has_seen_time = 1;
	*s->counters[FRAMES] += count;
	*s->counters[BYTES] += t.packet_bytes;
	*s->counters[LATE] += t.late_count;
	pacer_made(&s->pacer, count);
}

static int64_t watermark_of(const struct pcap_source *s, const struct position *p)
{
	return p->has_seen_time ? capture_watermark(p->highest_ns, s->out_of_orderness_ns)
				: WEIR_WATERMARK_NONE;
}

/* The lowest of all files begun: the others are still to be read. */
static void emit_watermark(struct pcap_source *s, struct weir_context *ctx)
{
	int64_t watermark = watermark_of(s, s->position);

	for (uint32_t i = 1; i < weir_list_count(ctx, POSITIONS); i++) {
		int64_t other = watermark_of(s, position_at(ctx, i));

		watermark = other < watermark ? other : watermark;
	}
	if (watermark > s->watermark_ns) {
		s->watermark_ns = watermark;
		weir_emit_watermark(ctx, watermark);
	}
}

/* Collects from the chunk as much as may be now. */
static enum weir_poll poll_chunk(
		struct pcap_source *s, struct weir_context *ctx, uint32_t records_max)
{
	uint32_t count = s->chunk->record_count - s->chunk_taken;
	uint64_t next_ns;

	if (count > records_max)
		count = records_max;
	if (count > 0) {
		count = pacer_allow(&s->pacer, count, weir_now_ns(ctx), &next_ns);
		if (count == 0) {
			weir_not_before(ctx, next_ns);
			return WEIR_POLL_IDLE;
		}
		collect(s, ctx, count);
		emit_watermark(s, ctx);
	}
	if (s->chunk_taken == s->chunk->record_count)
		end_chunk(s, ctx);
	return count > 0 || s->chunk == NULL ? WEIR_POLL_MORE : WEIR_POLL_IDLE;
}

static enum weir_poll poll(void *self, struct weir_context *ctx, uint32_t records_max)
{
	struct pcap_source *s = self;

	emit_watermark(s, ctx); /* of a restored position */
	if (s->chunk == NULL && s->position->path[0] != '\0') {
		const struct capture_chunk *chunk = capture_reader_take(s->reader);

		if (chunk == NULL)
			return WEIR_POLL_IDLE;
		begin_chunk(s, chunk);
	}
	if (s->chunk != NULL)
		return poll_chunk(s, ctx, records_max);
	if (s->is_over)
		return WEIR_POLL_END;
	ask_for_file(s, ctx);
	return WEIR_POLL_IDLE;
}

static void close(void *self, struct weir_context *ctx)
{
	struct pcap_source *s = self;

	(void)ctx;
	capture_reader_destroy(s->reader);
	s->reader = NULL;
}

const struct weir_operator builtin_pcap_source = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "pcap-source",
		.help = "source of captured packets from pcap and pcapng files",
		.role = WEIR_SOURCE,
		.params = params,
		.param_count = PARAM_COUNT,
		.coordinator = "files",
		.declare = declare,
		.open = open,
		.poll = poll,
		.event = event,
		.close = close,
};
