/*
 * nic-source: a source of the packets that a port receives, in the records of pcap-source.
 *
 * A NIC cannot be asked again: what was taken and is not covered by a completed checkpoint is lost
 * with a failure, at most once for that window; the counter `unsafe` says how much that is now.
 * The ledger adds up: packets sent to the port = frames + rolled_back + missed + no_buffer +
 * errors.
 *
 * Event time is the wall clock when a packet is taken, and never goes back, also over a restore; so
 * no packet is late, and the watermark goes on when none comes.
 */

#include "dataplane/base/clock.h"
#include "dataplane/base/check.h"
#include "dataplane/operator/builtins.h"
#include "dataplane/operator/packet/flow_record.h"
#include "dataplane/operator/packet_port.h"

#include <errno.h>

enum { PORT, FRAMES_MAX, SNAP, PARAM_COUNT };
enum { POSITION };
enum { FRAMES, BYTES, MISSED, NO_BUFFER, ERRORS, ROLLED_BACK, UNSAFE, COUNTER_COUNT };
enum {
	BURST = 64,
	MARKS_MAX = 16, /* checkpoints under way */
	DLT_ETHERNET = 1,
	LOOK_INTERVAL_NS = 100000000,	  /* at the losses */
	WATERMARK_INTERVAL_NS = 10000000, /* without packets */
};

static const struct weir_param params[PARAM_COUNT] = {
		[PORT] = {"port", WEIR_TEXT, NULL, 0, 0, NULL, "one of weir.nic.ports"},
		[FRAMES_MAX] = {"frames", WEIR_INTEGER, "0", 0, INT64_MAX, NULL,
				"the input ends after so many; 0 is endless"},
		[SNAP] = {"snap", WEIR_SIZE, "256", 64, 8192, NULL,
				"bytes of each packet that are looked at"},
};

/* State: how far event time and the ledger had come.  `instance` is that of the port: another one
 * has counted nothing of ours. */
struct position {
	int64_t highest_ns;
	uint64_t instance, received;
	struct weir_port_losses losses; /* of the port, already in the counters */
};

/* Where the packets of a checkpoint end. */
struct mark {
	int64_t checkpoint_id;
	uint64_t frames;
};

struct nic_source {
	struct weir_packet_port *port;
	struct position *position;
	uint64_t *counters[COUNTER_COUNT];
	int64_t wall_before_ns; /* the wall clock when the monotonic one was 0 */
	uint64_t looked_ns, watermark_sent_ns, safe_frames;
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

static int declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	static const char *const names[COUNTER_COUNT] = {"frames", "bytes", "missed", "no_buffer",
			"errors", "rolled_back", "unsafe"};
	int64_t snap = setting->values[SNAP].integer;

	(void)error;
	d->self_bytes = (uint32_t)sizeof(struct nic_source) + BURST * record_bytes_max(snap);
	d->out_record_bytes_max = record_bytes_max(snap) - (uint32_t)sizeof(uint32_t);
	d->state_count = 1;
	d->states[POSITION] = (struct weir_state){.name = "position",
			.kind = WEIR_STATE_VALUE,
			.value_bytes = sizeof(struct position),
			.version = 1,
			.rescale = WEIR_RESCALE_KEEP};
	d->counter_count = COUNTER_COUNT;
	memcpy(d->counters, names, sizeof(names));
	return 0;
}

/* Packets that the port gave to an attempt which did not live to cover them. */
static void settle(struct nic_source *s)
{
	struct position *p = s->position;

	if (p->instance == s->port->instance && s->port->received > p->received)
		*s->counters[ROLLED_BACK] += s->port->received - p->received;
	if (p->instance != s->port->instance)
		p->losses = (struct weir_port_losses){0};
	p->instance = s->port->instance;
	p->received = s->port->received;
	*s->counters[UNSAFE] = 0;
	s->safe_frames = *s->counters[FRAMES];
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
	s->frames_max = (uint64_t)values[FRAMES_MAX].integer;
	s->snap = (uint32_t)values[SNAP].integer;
	s->position = weir_value(ctx, POSITION);
	for (uint32_t i = 0; i < COUNTER_COUNT; i++)
		s->counters[i] = weir_counter(ctx, i);
	s->wall_before_ns = clock_wall_ms() * 1000000 - (int64_t)clock_monotonic_ns();
	settle(s);
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
static uint32_t take(struct nic_source *s, const struct weir_packet *packets, uint32_t count)
{
	uint8_t *at = s->records;

	for (uint32_t i = 0; i < count; i++) {
		const struct weir_packet *p = &packets[i];
		uint32_t kept = p->size < s->snap ? p->size : s->snap;
		const struct captured_packet header = {
				.time_ns = s->position->highest_ns,
				.original_bytes = p->size,
				.link_type = DLT_ETHERNET,
		};

		at += captured_packet_put(at, &header, p->bytes, kept);
		*s->counters[BYTES] += p->size;
	}
	return (uint32_t)(at - s->records);
}

static uint32_t wanted(const struct nic_source *s, uint32_t records_max)
{
	uint64_t left = s->frames_max == 0 ? BURST : s->frames_max - *s->counters[FRAMES];
	uint32_t most = records_max < BURST ? records_max : BURST;

	return left < most ? (uint32_t)left : most;
}

static enum weir_poll poll(void *self, struct weir_context *ctx, uint32_t records_max)
{
	struct nic_source *s = self;
	struct weir_packet packets[BURST];
	uint64_t now_ns = weir_now_ns(ctx);
	int64_t time_ns = s->wall_before_ns + (int64_t)now_ns;

	look_at_losses(s, now_ns);
	if (time_ns > s->position->highest_ns)
		s->position->highest_ns = time_ns;
	if (s->frames_max > 0 && *s->counters[FRAMES] >= s->frames_max)
		return WEIR_POLL_END;
	uint32_t count = s->port->receive(s->port, packets, wanted(s, records_max), now_ns);
	if (count > 0) {
		struct weir_batch batch = {s->records, count, 0, take(s, packets, count)};

		s->port->release(s->port, packets, count);
		uint32_t taken = weir_collect(ctx, &batch);
		CHECK(taken == count); /* poll asks for what there is room for */
		*s->counters[FRAMES] += count;
		*s->counters[UNSAFE] = *s->counters[FRAMES] - s->safe_frames;
		s->position->received += count;
	}
	emit_watermark(s, ctx, now_ns);
	return count > 0 ? WEIR_POLL_MORE : WEIR_POLL_IDLE;
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
	s->marks[s->mark_count++] = (struct mark){checkpoint_id, *s->counters[FRAMES]};
}

static void notify_complete(void *self, struct weir_context *ctx, int64_t checkpoint_id)
{
	struct nic_source *s = self;
	uint32_t gone = 0;

	(void)ctx;
	while (gone < s->mark_count && s->marks[gone].checkpoint_id <= checkpoint_id) {
		if (s->marks[gone].checkpoint_id == checkpoint_id)
			s->safe_frames = s->marks[gone].frames;
		gone++;
	}
	s->mark_count -= gone;
	memmove(s->marks, s->marks + gone, s->mark_count * sizeof(s->marks[0]));
	*s->counters[UNSAFE] = *s->counters[FRAMES] - s->safe_frames;
}

static void close(void *self, struct weir_context *ctx)
{
	struct nic_source *s = self;

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
