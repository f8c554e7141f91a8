/*
 * flow-parse: captured packets -> what each adds to its flow.
 *
 * What is no flow is counted by its reason and goes no further, so packets in the output and
 * unparsed ones together are the packets read.
 */

#include "dataplane/base/limits.h"
#include "dataplane/operator/builtins.h"
#include "dataplane/operator/operator.h"
#include "dataplane/operator/packet/packet_parse.h"

#include <errno.h>
#include <stdio.h>

enum { PARSED, PARSED_BYTES, LATE, UNPARSED_FIRST };

static const char *const counter_names[] = {
		"parsed",
		"parsed_bytes",
		"late",
#define X(name, text) "unparsed." text,
		PACKET_REASONS(X)
#undef X
};

enum { COUNTER_COUNT = sizeof(counter_names) / sizeof(counter_names[0]) };
_Static_assert(COUNTER_COUNT == UNPARSED_FIRST + PACKET_REASON_COUNT - 1, "one for each reason");
_Static_assert((int)COUNTER_COUNT <= (int)WEIR_COUNTERS_MAX, "they fit");

static int declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	(void)setting;
	(void)error;
	d->out_record_bytes = sizeof(struct flow_packet);
	d->out_key_bytes = sizeof(struct flow_key);
	d->counter_count = COUNTER_COUNT;
	memcpy(d->counters, counter_names, sizeof(counter_names));
	return 0;
}

/* Parses the record at `record`; false: it is no flow and was counted. */
static bool parse_record(const uint8_t *record, uint32_t size, uint64_t *reasons,
		struct flow_packet *out)
{
	struct captured_packet header;
	struct packet packet;

	memcpy(&header, record, sizeof(header));
	enum packet_reason reason = packet_parse(header.link_type, record + sizeof(header),
			size - (uint32_t)sizeof(header), &packet);
	reasons[reason]++;
	if (reason != PACKET_IS_FLOW)
		return false;
	*out = (struct flow_packet){
			.key = packet.key,
			.time_ns = header.time_ns,
			.bytes = header.original_bytes,
			.tcp_flags = packet.tcp_flags,
			.is_late = header.is_late,
	};
	return true;
}

/* What a batch becomes, and what is counted with it. */
struct parsed {
	uint32_t count;
	uint64_t bytes, late, reasons[PACKET_REASON_COUNT];
	uint32_t inputs[RECORDS_COUNT_MAX]; /* which record became a packet */
	struct flow_packet packets[RECORDS_COUNT_MAX];
};

/* The first `count` records; false: the task has failed. */
static bool parse_batch(struct weir_context *ctx, const struct weir_batch *in, uint32_t count,
		struct parsed *p)
{
	const uint8_t *at = in->data;

	p->count = 0;
	p->bytes = p->late = 0;
	memset(p->reasons, 0, sizeof(p->reasons));
	for (uint32_t i = 0; i < count; i++) {
		struct flow_packet *out = &p->packets[p->count];
		uint32_t size;
		const uint8_t *record = weir_record_at(at, &size);

		if (size < sizeof(struct captured_packet)) {
			weir_fail(ctx, "a record of %u bytes is no captured packet", size);
			return false;
		}
		if (parse_record(record, size, p->reasons, out)) {
			p->bytes += out->bytes;
			p->late += out->is_late;
			p->inputs[p->count++] = i;
		}
		at = record + size;
	}
	return true;
}

static void count_parsed(struct weir_context *ctx, const struct parsed *p)
{
	*weir_counter(ctx, PARSED) += p->reasons[PACKET_IS_FLOW];
	*weir_counter(ctx, PARSED_BYTES) += p->bytes;
	*weir_counter(ctx, LATE) += p->late;
	for (uint32_t r = PACKET_IS_FLOW + 1; r < PACKET_REASON_COUNT; r++)
		*weir_counter(ctx, UNPARSED_FIRST + r - 1) += p->reasons[r];
}

static uint32_t process(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	struct parsed p;
	uint32_t count = in->count < RECORDS_COUNT_MAX ? in->count : RECORDS_COUNT_MAX;

	(void)self;
	if (!parse_batch(ctx, in, count, &p))
		return 0;
	if (p.count > 0) {
		struct weir_batch batch = {(const uint8_t *)p.packets, p.count,
				sizeof(p.packets[0]), p.count * (uint32_t)sizeof(p.packets[0])};
		uint32_t taken = weir_collect(ctx, &batch);

		if (taken < p.count) { /* held up: what follows counts when it comes again */
			count = p.inputs[taken];
			parse_batch(ctx, in, count, &p);
		}
	}
	count_parsed(ctx, &p);
	return count;
}

const struct weir_operator builtin_flow_parse = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "flow-parse",
		.help = "captured packets -> flow, bytes and TCP flags of each",
		.role = WEIR_TRANSFORM,
		.declare = declare,
		.process = process,
};
