/*
 * nic-source: a source of the packets that a port receives, in the records of pcap-source.
 *
 * A NIC cannot be asked again.  Without a journal, what was taken and is not covered by a completed
 * checkpoint is lost with a failure, at most once for that window.  With `journal: DIR` a packet
 * goes on only once it is durable there, so after any failure the result is that of what is in the
 * journal, each packet exactly once; what was taken and not durable yet is lost.  The counter
 * `unsafe` says how much a failure would lose now, either way.
 *
 * The ledger adds up: packets sent to the port = frames + journal_pending + rolled_back + missed +
 * no_buffer + errors + ring_full, as long as the process lives and of all subtasks together: of
 * several that share a port, one counts what the port lost.  `journalled` is what the journal ever
 * got.  While old packets are read again, and while the journal has no room (a slow or full disk,
 * or journal-size), none is taken from the port, which then misses some and counts them.
 *
 * The position in a checkpoint is a sequence of the journal.  It is of one subtask: a restore with
 * fewer subtasks is refused.  One that the journal cannot serve is refused, too, unless
 * `journal-gap: accept` says that what is between is given up.
 *
 * Event time is the wall clock when a packet is taken, and never goes back, also over a restore; so
 * no packet is late, and the watermark goes on when none comes.
 */

#include "dataplane/base/clock.h"
#include "dataplane/base/check.h"
#include "dataplane/operator/builtins.h"
#include "dataplane/operator/packet/flow_record.h"
#include "dataplane/operator/packet_port.h"
#include "dataplane/operator/record_journal.h"

#include <errno.h>
#include <stdio.h>

enum {
	PORT,
	FRAMES_MAX,
	SNAP,
	JOURNAL,
	JOURNAL_LAG,
	JOURNAL_SEGMENT,
	JOURNAL_SIZE,
	JOURNAL_GAP,
	PARAM_COUNT
};
enum { POSITION, JOURNAL_POSITION };
enum {
	FRAMES,
	BYTES,
	MISSED,
	NO_BUFFER,
	ERRORS,
	RING_FULL,
	ROLLED_BACK,
	UNSAFE,
	HANDED, /* came in at a queue of another subtask */
	QUEUES, /* of the port, that this one has now */
	/* Of the journal, as it is now; packets but for the two of bytes. */
	JOURNALLED,
	PENDING, /* taken from the port, not gone on yet */
	LAG_BYTES,
	DISK_BYTES,
	REPLAYED,
	TRIMMED,
	GAP,
	FULL, /* 1: the disk is, or journal-size is reached */
	COUNTER_COUNT
};
enum {
	BURST = 64,
	MARKS_MAX = 16, /* checkpoints under way */
	DLT_ETHERNET = 1,
	LOOK_INTERVAL_NS = 100000000,	  /* at the losses */
	WATERMARK_INTERVAL_NS = 10000000, /* without packets */
	PAGE_BYTES = 4096,
	PATH_BYTES = 1024,
};

static const struct weir_param params[PARAM_COUNT] = {
		[PORT] = {"port", WEIR_TEXT, NULL, 0, 0, NULL, "one of weir.nic.ports"},
		[FRAMES_MAX] = {"frames", WEIR_INTEGER, "0", 0, INT64_MAX, NULL,
				"the input of a subtask ends after so many; 0 is endless"},
		[SNAP] = {"snap", WEIR_SIZE, "256", 64, 8192, NULL,
				"bytes of each packet that are looked at"},
		[JOURNAL] = {"journal", WEIR_TEXT, "", 0, 0, NULL,
				"directory where packets are kept until a checkpoint covers them; "
				"without it a failure loses those"},
		[JOURNAL_LAG] = {"journal-lag", WEIR_SIZE, "4 mb", 512 * 1024, 1 << 30, NULL,
				"most that is taken and not on disk yet; beyond it the port is not "
				"read"},
		[JOURNAL_SEGMENT] = {"journal-segment", WEIR_SIZE, "64 mb", 1 << 20, 1 << 30, NULL,
				"bytes of a file of the journal"},
		[JOURNAL_SIZE] = {"journal-size", WEIR_SIZE, "16 gb", 2 << 20, INT64_MAX, NULL,
				"bytes of all its files; beyond it the port is not read"},
		[JOURNAL_GAP] = {"journal-gap", WEIR_CHOICE, "refuse", 0, 0, "refuse|accept",
				"when the journal has not what the checkpoint asks for"},
};

/* State: how far event time and the ledger had come.  `instance` is that of the port: another one
 * has counted nothing of ours. */
struct position {
	int64_t highest_ns;
	uint64_t instance, received;
	struct weir_port_losses losses; /* of the port, already in the counters */
};

/* State: how far the journal had been read, and written.  id 0: there was none. */
struct journal_position {
	uint64_t id, taken, appended;
	uint32_t parallelism, reserved;
};

/* Where the packets of a checkpoint end. */
struct mark {
	int64_t checkpoint_id;
	uint64_t frames, sequence;
};

struct nic_source {
	struct weir_packet_port *port;
	struct position *position;
	struct weir_journal *journal; /* NULL: there is none */
	struct journal_position *journal_position;
	bool is_settled;     /* with the journal, once its end is known */
	int64_t appended_ns; /* event time of the newest packet in it */
	uint64_t replayed_before;
	uint64_t *counters[COUNTER_COUNT];
	int64_t wall_before_ns; /* the wall clock when the monotonic one was 0 */
	uint64_t looked_ns, watermark_sent_ns, safe_frames;
	uint64_t handed_seen; /* of the port's, already counted */
	uint64_t frames_max;
	uint32_t snap, mark_count;
	struct mark marks[MARKS_MAX];
	uint8_t records[]; /* a burst */
};

static uint32_t record_bytes_max(int64_t snap)
{
	return (uint32_t)sizeof(uint32_t) + (uint32_t)sizeof(struct captured_packet) +
	       (uint32_t)snap;
}

static uint32_t lag_bytes(const struct weir_value *values)
{
	return (uint32_t)values[JOURNAL_LAG].integer / WEIR_JOURNAL_BLOCK_BYTES *
	       WEIR_JOURNAL_BLOCK_BYTES;
}

static bool has_journal(const struct weir_value *values)
{
	return values[JOURNAL].text[0] != '\0';
}

static int declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	static const char *const names[COUNTER_COUNT] = {"frames", "bytes", "missed", "no_buffer",
			"errors", "ring_full", "rolled_back", "unsafe", "handed", "queues",
			"journalled", "journal_pending", "journal_lag", "journal_bytes",
			"replayed", "trimmed", "journal_gap", "journal_full"};
	const struct weir_value *values = setting->values;
	int64_t snap = values[SNAP].integer;

	if (values[JOURNAL_SIZE].integer < 2 * values[JOURNAL_SEGMENT].integer) {
		snprintf(error, WEIR_ERROR_BYTES,
				"journal-size: %s is less than two of journal-segment (%s)",
				values[JOURNAL_SIZE].text, values[JOURNAL_SEGMENT].text);
		return -EINVAL;
	}
	d->self_bytes = (uint32_t)sizeof(struct nic_source) + BURST * record_bytes_max(snap);
	if (has_journal(values))
		d->self_bytes += PAGE_BYTES + lag_bytes(values);
	d->out_record_bytes_max = record_bytes_max(snap) - (uint32_t)sizeof(uint32_t);
	d->state_count = 2;
	d->states[POSITION] = (struct weir_state){.name = "position",
			.kind = WEIR_STATE_VALUE,
			.value_bytes = sizeof(struct position),
			.version = 2,
			.rescale = WEIR_RESCALE_KEEP};
	d->states[JOURNAL_POSITION] = (struct weir_state){.name = "journal",
			.kind = WEIR_STATE_VALUE,
			.value_bytes = sizeof(struct journal_position),
			.version = 1,
			.rescale = WEIR_RESCALE_KEEP};
	d->counter_count = COUNTER_COUNT;
	memcpy(d->counters, names, sizeof(names));
	return 0;
}

/* Packets that the port gave to an attempt which did not live to cover them. */
static void settle(struct nic_source *s, uint64_t kept)
{
	struct position *p = s->position;
	uint64_t given = s->port->received - p->received;

	if (p->instance == s->port->instance && s->port->received > p->received && given > kept)
		*s->counters[ROLLED_BACK] += given - kept;
	if (p->instance != s->port->instance)
		p->losses = (struct weir_port_losses){0};
	p->instance = s->port->instance;
	p->received = s->port->received;
	*s->counters[UNSAFE] = 0;
	s->safe_frames = *s->counters[FRAMES];
}

/* ---- the journal ---- */

static int open_journal(struct nic_source *s, struct weir_context *ctx)
{
	const struct weir_info *info = weir_info(ctx);
	const struct weir_value *values = info->values;
	struct journal_position *p = s->journal_position;
	char directory[PATH_BYTES], error[WEIR_ERROR_BYTES];
	uintptr_t memory = (uintptr_t)s->records + BURST * record_bytes_max(s->snap);
	bool is_final;

	if (p->parallelism > info->parallelism) {
		weir_fail_for_good(ctx,
				"journal: the checkpoint has journals of %u subtasks, and now "
				"there "
				"are %u; restore with as many",
				p->parallelism, info->parallelism);
		return -EINVAL;
	}
	snprintf(directory, sizeof(directory), "%s/subtask-%u", values[JOURNAL].text,
			info->subtask_index);
	memory = (memory + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
	const struct weir_journal_config config = {
			.directory = directory,
			.memory = (void *)memory,
			.memory_bytes = lag_bytes(values),
			.record_bytes_max = record_bytes_max(s->snap) - (uint32_t)sizeof(uint32_t),
			.segment_bytes = (uint64_t)values[JOURNAL_SEGMENT].integer &
					 ~(uint64_t)(PAGE_BYTES - 1),
			.disk_bytes_max = (uint64_t)values[JOURNAL_SIZE].integer,
			.id = p->id,
			.sequence = p->taken,
			.accepts_gap = values[JOURNAL_GAP].integer == 1,
	};
	s->journal = weir_services_of(ctx)->journal_open(ctx, &config, &is_final, error);
	if (s->journal == NULL && is_final)
		weir_fail_for_good(ctx, "%s", error);
	else if (s->journal == NULL)
		weir_fail(ctx, "%s", error);
	if (s->journal == NULL)
		return -EIO;
	p->parallelism = info->parallelism;
	p->id = s->journal->status.id;
	p->taken = s->journal->status.taken;
	*s->counters[GAP] += s->journal->status.gap;
	s->replayed_before = *s->counters[REPLAYED];
	return 0;
}

/* As soon as the end of the journal is known: what is in it is not lost. */
static void settle_journal(struct nic_source *s)
{
	const struct weir_journal_status *status = &s->journal->status;

	settle(s, status->appended - s->journal_position->appended);
	s->is_settled = true;
}

static void show_journal(struct nic_source *s)
{
	const struct weir_journal_status *status = &s->journal->status;

	*s->counters[REPLAYED] = s->replayed_before + status->replayed;
	*s->counters[TRIMMED] = status->first;
	*s->counters[DISK_BYTES] = status->disk_bytes;
	if (status->is_replaying)
		return;
	s->journal_position->appended = status->appended;
	*s->counters[JOURNALLED] = status->durable;
	*s->counters[PENDING] = status->appended - status->taken;
	*s->counters[UNSAFE] = status->appended - status->durable;
	*s->counters[LAG_BYTES] = status->lag_bytes;
	*s->counters[FULL] = status->is_full;
}

static int open(void *self, struct weir_context *ctx)
{
	const struct weir_value *values = weir_info(ctx)->values;
	struct nic_source *s = self;
	char error[WEIR_ERROR_BYTES];

	s->port = weir_services_of(ctx)->port_acquire(
			ctx, values[PORT].text, WEIR_PORT_RECEIVE, error);
	if (s->port == NULL) {
		weir_fail_for_good(ctx, "port: %s", error);
		return -ENODEV;
	}
	s->handed_seen = s->port->handed;
	s->frames_max = (uint64_t)values[FRAMES_MAX].integer;
	s->snap = (uint32_t)values[SNAP].integer;
	s->position = weir_value(ctx, POSITION);
	s->journal_position = weir_value(ctx, JOURNAL_POSITION);
	for (uint32_t i = 0; i < COUNTER_COUNT; i++)
		s->counters[i] = weir_counter(ctx, i);
	s->wall_before_ns = clock_wall_ms() * 1000000 - (int64_t)clock_monotonic_ns();
	if (has_journal(values))
		return open_journal(s, ctx);
	*s->journal_position = (struct journal_position){0};
	settle(s, 0);
	return 0;
}

/* Differences, so that the counters go on from what was restored.  What was taken for missed on its
 * way may come yet, so that one may shrink. */
static void look_at_losses(struct nic_source *s, uint64_t now_ns)
{
	struct weir_port_losses *before = &s->position->losses, now;

	if (now_ns - s->looked_ns < LOOK_INTERVAL_NS)
		return;
	s->looked_ns = now_ns;
	s->port->losses(s->port, &now);
	*s->counters[MISSED] += now.missed - before->missed;
	*s->counters[NO_BUFFER] += now.no_buffer - before->no_buffer;
	*s->counters[ERRORS] += now.errors - before->errors;
	*s->counters[RING_FULL] += now.ring_full - before->ring_full;
	*before = now;
}

static void emit_watermark(struct nic_source *s, struct weir_context *ctx, uint64_t now_ns)
{
	if (now_ns - s->watermark_sent_ns < WATERMARK_INTERVAL_NS)
		return;
	s->watermark_sent_ns = now_ns;
	weir_emit_watermark(ctx, s->position->highest_ns - 1);
}

/* Builds the records of a burst; returns their bytes. */
static uint32_t build(const struct nic_source *s, uint8_t *begin, int64_t time_ns,
		const struct weir_packet *packets, uint32_t count)
{
	uint8_t *at = begin;

	for (uint32_t i = 0; i < count; i++) {
		const struct weir_packet *p = &packets[i];
		uint32_t kept = p->size < s->snap ? p->size : s->snap;
		const struct captured_packet header = {
				.time_ns = time_ns,
				.original_bytes = p->size,
				.link_type = DLT_ETHERNET,
		};

		at += captured_packet_put(at, &header, p->bytes, kept);
	}
	return (uint32_t)(at - begin);
}

/* What went on; false: a record is no packet, as only a journal of somebody else's has them. */
static bool count_packets(struct nic_source *s, const struct weir_batch *batch)
{
	const uint8_t *at = batch->data;

	for (uint32_t i = 0; i < batch->count; i++) {
		struct captured_packet header;
		uint32_t size;

		at = weir_record_at(at, &size);
		if (size < sizeof(header) || size - sizeof(header) > s->snap)
			return false;
		memcpy(&header, at, sizeof(header));
		if (header.time_ns > s->position->highest_ns)
			s->position->highest_ns = header.time_ns;
		*s->counters[BYTES] += header.original_bytes;
		at += size;
	}
	*s->counters[FRAMES] += batch->count;
	return true;
}

static uint32_t wanted(const struct nic_source *s, uint32_t records_max)
{
	uint64_t taken = *s->counters[FRAMES];
	if (s->journal != NULL)
		taken += s->journal->status.appended - s->journal->status.taken;
	uint64_t left = s->frames_max == 0 ? BURST : s->frames_max - taken;
	uint32_t most = records_max < BURST ? records_max : BURST;

	return left < most ? (uint32_t)left : most;
}

/* Takes a burst of the port as records at `at`; their bytes through `bytes`. */
static uint32_t take_burst(struct nic_source *s, uint8_t *at, uint32_t count_max, int64_t time_ns,
		uint64_t now_ns, uint32_t *bytes)
{
	struct weir_packet packets[BURST];
	uint32_t count = s->port->receive(s->port, packets, count_max, now_ns);

	*s->counters[HANDED] += s->port->handed - s->handed_seen;
	s->handed_seen = s->port->handed;
	*s->counters[QUEUES] = s->port->queue_count;
	*bytes = 0;
	if (count == 0)
		return 0;
	*bytes = build(s, at, time_ns, packets, count);
	s->port->release(s->port, packets, count);
	s->position->received += count;
	return count;
}

static void collect(struct nic_source *s, struct weir_context *ctx, const struct weir_batch *batch)
{
	if (!count_packets(s, batch)) {
		weir_fail_for_good(
				ctx, "journal: a record is no packet of at most %u bytes", s->snap);
		return;
	}
	uint32_t taken = weir_collect(ctx, batch);
	CHECK(taken == batch->count); /* poll asks for what there is room for */
}

/* Packets go on at once. */
static uint32_t pass(struct nic_source *s, struct weir_context *ctx, uint32_t records_max,
		int64_t time_ns)
{
	struct weir_batch batch = {.data = s->records};

	if (time_ns > s->position->highest_ns)
		s->position->highest_ns = time_ns;
	batch.count = take_burst(s, s->records, wanted(s, records_max), s->position->highest_ns,
			weir_now_ns(ctx), &batch.data_bytes);
	if (batch.count > 0)
		collect(s, ctx, &batch);
	*s->counters[UNSAFE] = *s->counters[FRAMES] - s->safe_frames;
	return batch.count;
}

/* What is durable goes on. */
static uint32_t pass_durable(struct nic_source *s, struct weir_context *ctx, uint32_t records_max)
{
	struct weir_batch batch;
	uint32_t passed = 0;

	while (passed < records_max && s->journal->next(s->journal, records_max - passed, &batch)) {
		collect(s, ctx, &batch);
		s->journal->take(s->journal, &batch);
		passed += batch.count;
	}
	s->journal_position->taken = s->journal->status.taken;
	return passed;
}

/* Packets of the port go into the journal; event time waits for those that are in it. */
static uint32_t put_down(struct nic_source *s, struct weir_context *ctx, int64_t time_ns)
{
	const struct weir_journal_status *status = &s->journal->status;
	int64_t *highest_ns = &s->position->highest_ns;
	uint32_t record_bytes = record_bytes_max(s->snap), bytes;
	uint8_t *at;

	if (status->appended == status->taken && time_ns > *highest_ns)
		*highest_ns = time_ns;
	uint32_t room = s->journal->place(s->journal, record_bytes, &at);
	if (room == 0)
		return 0;
	if (time_ns > s->appended_ns)
		s->appended_ns = time_ns;
	if (*highest_ns > s->appended_ns)
		s->appended_ns = *highest_ns;
	uint32_t count = take_burst(s, at, wanted(s, room / record_bytes), s->appended_ns,
			weir_now_ns(ctx), &bytes);
	if (count > 0)
		s->journal->append(s->journal, count, bytes);
	return count;
}

static uint32_t pass_through_journal(struct nic_source *s, struct weir_context *ctx,
		uint32_t records_max, int64_t time_ns)
{
	uint32_t work = pass_durable(s, ctx, records_max);

	if (!s->journal->status.is_replaying) {
		if (!s->is_settled)
			settle_journal(s);
		work += put_down(s, ctx, time_ns);
	}
	show_journal(s);
	return work;
}

static enum weir_poll poll(void *self, struct weir_context *ctx, uint32_t records_max)
{
	struct nic_source *s = self;
	uint64_t now_ns = weir_now_ns(ctx);
	int64_t time_ns = s->wall_before_ns + (int64_t)now_ns;

	look_at_losses(s, now_ns);
	if (s->frames_max > 0 && *s->counters[FRAMES] >= s->frames_max)
		return WEIR_POLL_END;
	uint32_t work = s->journal != NULL ? pass_through_journal(s, ctx, records_max, time_ns)
					   : pass(s, ctx, records_max, time_ns);
	emit_watermark(s, ctx, now_ns);
	return work > 0 ? WEIR_POLL_MORE : WEIR_POLL_IDLE;
}

/* ---- what a completed checkpoint covers ---- */

static void before_barrier(void *self, struct weir_context *ctx, int64_t checkpoint_id)
{
	struct nic_source *s = self;

	(void)ctx;
	if (s->mark_count == MARKS_MAX) {
		memmove(s->marks, s->marks + 1, sizeof(s->marks) - sizeof(s->marks[0]));
		s->mark_count--;
	}
	s->marks[s->mark_count++] = (struct mark){
			checkpoint_id, *s->counters[FRAMES], s->journal_position->taken};
}

static void cover(struct nic_source *s, const struct mark *mark)
{
	s->safe_frames = mark->frames;
	if (s->journal != NULL)
		s->journal->trim(s->journal, mark->sequence);
	else
		*s->counters[UNSAFE] = *s->counters[FRAMES] - s->safe_frames;
}

static void notify_complete(void *self, struct weir_context *ctx, int64_t checkpoint_id)
{
	struct nic_source *s = self;
	uint32_t gone = 0;

	(void)ctx;
	while (gone < s->mark_count && s->marks[gone].checkpoint_id <= checkpoint_id) {
		if (s->marks[gone].checkpoint_id == checkpoint_id)
			cover(s, &s->marks[gone]);
		gone++;
	}
	s->mark_count -= gone;
	memmove(s->marks, s->marks + gone, s->mark_count * sizeof(s->marks[0]));
}

static void close(void *self, struct weir_context *ctx)
{
	struct nic_source *s = self;

	if (s->journal != NULL)
		weir_services_of(ctx)->journal_close(ctx, s->journal);
	s->journal = NULL;
	if (s->port != NULL)
		weir_services_of(ctx)->port_release(ctx, s->port, WEIR_PORT_RECEIVE);
	s->port = NULL;
}

const struct weir_operator builtin_nic_source = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "nic-source",
		.help = "source of the packets that a port receives",
		.role = WEIR_SOURCE,
		.params = params,
		.param_count = PARAM_COUNT,
		.declare = declare,
		.open = open,
		.poll = poll,
		.before_barrier = before_barrier,
		.notify_complete = notify_complete,
		.close = close,
};
