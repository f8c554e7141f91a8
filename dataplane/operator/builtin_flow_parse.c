/*
 * flow-parse: captured packets -> what each adds to its flow.
 *
 * What is no flow is counted by its reason and goes no further, so packets in the output and
 * unparsed ones together are the packets read.
 */

#include "dataplane/base/check.h"
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

static uint32_t process(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	struct flow_packet out[RECORDS_COUNT_MAX];
	uint64_t reasons[PACKET_REASON_COUNT] = {0}, bytes = 0, late = 0;
	uint32_t count = in->count < RECORDS_COUNT_MAX ? in->count : RECORDS_COUNT_MAX;
	uint32_t out_count = 0;
	const uint8_t *at = in->data;

	(void)self;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t size;
		const uint8_t *record = weir_record_at(at, &size);

		if (size < sizeof(struct captured_packet)) {
			weir_fail(ctx, "a record of %u bytes is no captured packet", size);
			return 0;
		}
		if (parse_record(record, size, reasons, &out[out_count])) {
			bytes += out[out_count].bytes;
			late += out[out_count].is_late;
			out_count++;
		}
		at = record + size;
	}
	if (out_count > 0) {
		struct weir_batch batch = {(const uint8_t *)out, out_count, sizeof(out[0]),
				out_count * (uint32_t)sizeof(out[0])};
		uint32_t taken = weir_collect(ctx, &batch);

		CHECK(taken == out_count);
	}
	*weir_counter(ctx, PARSED) += reasons[PACKET_IS_FLOW];
	*weir_counter(ctx, PARSED_BYTES) += bytes;
	*weir_counter(ctx, LATE) += late;
	for (uint32_t r = PACKET_IS_FLOW + 1; r < PACKET_REASON_COUNT; r++)
		*weir_counter(ctx, UNPARSED_FIRST + r - 1) += reasons[r];
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
