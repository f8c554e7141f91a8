/*
 * nic-sink: sends packets, or records as UDP datagrams, out of a port.
 *
 * What left a port cannot be taken back: after a failure what came behind the checkpoint is sent
 * again, so each at least once.  What the port does not take waits in a queue of fixed size, which
 * is state; its room is this operator's: a slow wire becomes backpressure, nothing is dropped.
 */

#include "dataplane/base/check.h"
#include "dataplane/base/internet.h"
#include "dataplane/operator/builtins.h"
#include "dataplane/operator/packet/flow_record.h"
#include "dataplane/operator/packet_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

enum { PORT, AS, FROM, TO, MAC, FRAME_BYTES, PARAM_COUNT };
enum { AS_PACKET, AS_UDP };
enum { QUEUE };
enum { FRAMES, BYTES, CUT, COUNTER_COUNT };
enum {
	SLOTS = 64, /* a power of two */
	BURST = 32,
	ETHERNET_BYTES = 14,
	IP_BYTES = 20,
	UDP_BYTES = 8,
	HEAD_BYTES = ETHERNET_BYTES + IP_BYTES + UDP_BYTES,
	TTL = 64,
	UDP_PROTOCOL = 17,
};

static const struct weir_param params[PARAM_COUNT] = {
		[PORT] = {"port", WEIR_TEXT, NULL, 0, 0, NULL, "one of weir.nic.ports"},
		[AS] = {"as", WEIR_CHOICE, "packet", 0, 0, "packet|udp",
				"packet: records of pcap-source or nic-source, sent as they are; "
				"udp: "
				"each record in a datagram"},
		[FROM] = {"from", WEIR_TEXT, "169.254.0.1:6126", 0, 0, NULL,
				"udp: IPv4 address and port to send from"},
		[TO] = {"to", WEIR_TEXT, "169.254.0.2:6126", 0, 0, NULL,
				"udp: IPv4 address and port to send to"},
		[MAC] = {"to-mac", WEIR_TEXT, "ff:ff:ff:ff:ff:ff", 0, 0, NULL,
				"udp: MAC of the receiver or of the gateway"},
		[FRAME_BYTES] = {"frame-bytes", WEIR_SIZE, "1514", 64, 9218, NULL,
				"largest frame, without its check sequence"},
};

struct endpoint {
	struct in_addr address;
	uint16_t port; /* network order */
};

/* State: frames that the port has not taken yet. */
struct queue {
	uint32_t head, tail; /* counted on */
	uint32_t sizes[SLOTS];
	uint8_t frames[]; /* SLOTS times frame_bytes */
};

struct nic_sink {
	struct weir_packet_port *port;
	struct queue *queue;
	uint64_t *counters[COUNTER_COUNT];
	bool is_udp;
	uint32_t frame_bytes, record_bytes;
	uint16_t ip_id;
	uint8_t template[HEAD_BYTES];
};

static bool parse_endpoint(const char *text, struct endpoint *out)
{
	char address[INET_ADDRSTRLEN];
	const char *colon = strrchr(text, ':');
	unsigned int port;
	char behind;

	if (colon == NULL || (size_t)(colon - text) >= sizeof(address))
		return false;
	memcpy(address, text, (size_t)(colon - text));
	address[colon - text] = '\0';
	if (inet_pton(AF_INET, address, &out->address) != 1 ||
			sscanf(colon + 1, "%5u%c", &port, &behind) != 1 || port == 0 ||
			port > UINT16_MAX)
		return false;
	out->port = htons((uint16_t)port);
	return true;
}

static int check(const struct weir_setting *setting, char error[WEIR_ERROR_BYTES])
{
	const struct weir_value *values = setting->values;
	struct endpoint endpoint;
	uint8_t mac[6];

	for (int i = FROM; i <= TO; i++) {
		if (!parse_endpoint(values[i].text, &endpoint)) {
			snprintf(error, WEIR_ERROR_BYTES,
					"%s: \"%.100s\" is no IPv4 address with a port; expected "
					"such as 10.0.0.2:6126",
					params[i].name, values[i].text);
			return -EINVAL;
		}
	}
	if (!mac_parse(values[MAC].text, mac)) {
		snprintf(error, WEIR_ERROR_BYTES,
				"to-mac: \"%.100s\" is no MAC; expected such as 02:00:00:00:00:01",
				values[MAC].text);
		return -EINVAL;
	}
	if (values[AS].integer == AS_UDP &&
			setting->in_record_bytes + HEAD_BYTES > values[FRAME_BYTES].integer) {
		snprintf(error, WEIR_ERROR_BYTES,
				"frame-bytes: records of %u bytes and %d of headers do not fit in "
				"%.20s",
				setting->in_record_bytes, HEAD_BYTES, values[FRAME_BYTES].text);
		return -EINVAL;
	}
	if (values[AS].integer == AS_PACKET && setting->in_record_bytes != 0) {
		snprintf(error, WEIR_ERROR_BYTES,
				"as: packet takes packets as pcap-source and nic-source make them; "
				"records of %u bytes go out with as: udp",
				setting->in_record_bytes);
		return -EINVAL;
	}
	return 0;
}

static int declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	static const char *const names[COUNTER_COUNT] = {"frames", "bytes", "cut"};

	if (check(setting, error) != 0)
		return -EINVAL;
	d->self_bytes = sizeof(struct nic_sink);
	d->in_record_bytes = WEIR_RECORD_ANY;
	d->state_count = 1;
	d->states[QUEUE] = (struct weir_state){.name = "queue",
			.kind = WEIR_STATE_VALUE,
			.value_bytes = (uint32_t)sizeof(struct queue) +
				       SLOTS * (uint32_t)setting->values[FRAME_BYTES].integer,
			.version = 1};
	d->counter_count = COUNTER_COUNT;
	memcpy(d->counters, names, sizeof(names));
	return 0;
}

/* Everything of a datagram's headers that no record changes. */
static void make_template(struct nic_sink *s, const struct weir_value *values)
{
	struct endpoint from, to;
	uint8_t *at = s->template;
	bool is_good = parse_endpoint(values[FROM].text, &from) &&
		       parse_endpoint(values[TO].text, &to) && mac_parse(values[MAC].text, at);

	CHECK(is_good); /* declare has looked */
	memcpy(at + 6, s->port->mac, 6);
	memcpy(at + 12, (const uint8_t[]){0x08, 0x00, 0x45, 0}, 4);
	at += ETHERNET_BYTES;
	at[8] = TTL;
	at[9] = UDP_PROTOCOL;
	memcpy(at + 12, &from.address, 4);
	memcpy(at + 16, &to.address, 4);
	memcpy(at + IP_BYTES, &from.port, 2);
	memcpy(at + IP_BYTES + 2, &to.port, 2);
}

static int open(void *self, struct weir_context *ctx)
{
	const struct weir_info *info = weir_info(ctx);
	struct nic_sink *s = self;
	char error[WEIR_ERROR_BYTES];

	s->port = weir_services_of(ctx)->port_acquire(
			ctx, info->values[PORT].text, WEIR_PORT_SEND, error);
	if (s->port == NULL) {
		weir_fail_for_good(ctx, "port: %s", error);
		return -ENODEV;
	}
	s->is_udp = info->values[AS].integer == AS_UDP;
	s->record_bytes = info->in_record_bytes;
	s->frame_bytes = (uint32_t)info->values[FRAME_BYTES].integer;
	if (s->frame_bytes > s->port->frame_bytes_max) {
		weir_fail_for_good(ctx, "frame-bytes: %u, but frames of port %s are at most %u",
				s->frame_bytes, info->values[PORT].text, s->port->frame_bytes_max);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < COUNTER_COUNT; i++)
		s->counters[i] = weir_counter(ctx, i);
	s->queue = weir_value(ctx, QUEUE);
	make_template(s, info->values);
	return 0;
}

/* ---- the queue ---- */

static uint32_t waiting(const struct nic_sink *s)
{
	return s->queue->tail - s->queue->head;
}

static uint8_t *frame_at(struct nic_sink *s, uint32_t number)
{
	return s->queue->frames + (size_t)(number % SLOTS) * s->frame_bytes;
}

/* Whether all that waited is out. */
static bool flush(struct nic_sink *s, struct weir_context *ctx)
{
	struct queue *q = s->queue;
	struct weir_packet packets[BURST];

	while (waiting(s) > 0) {
		uint32_t count = waiting(s) < BURST ? waiting(s) : BURST;

		for (uint32_t i = 0; i < count; i++)
			packets[i] = (struct weir_packet){frame_at(s, q->head + i),
					q->sizes[(q->head + i) % SLOTS], NULL};
		uint32_t sent = s->port->send(s->port, packets, count, weir_now_ns(ctx));
		q->head += sent;
		if (sent < count)
			return false;
	}
	return true;
}

/* A record in a datagram; without UDP checksum, which IPv4 leaves open. */
static uint32_t make_datagram(
		struct nic_sink *s, uint8_t *frame, const uint8_t *data, uint32_t bytes)
{
	uint8_t *ip = frame + ETHERNET_BYTES;

	memcpy(frame, s->template, HEAD_BYTES);
	put_be16(ip + 2, IP_BYTES + UDP_BYTES + bytes);
	put_be16(ip + 4, s->ip_id++);
	put_be16(ip + 10, ~internet_sum(0, ip, IP_BYTES));
	put_be16(ip + IP_BYTES + 4, UDP_BYTES + bytes);
	memcpy(frame + HEAD_BYTES, data, bytes);
	return HEAD_BYTES + bytes;
}

/* The captured bytes of a packet; 0: not all of it was captured, or it does not fit. */
static uint32_t make_packet(
		const struct nic_sink *s, uint8_t *frame, const uint8_t *data, uint32_t bytes)
{
	struct captured_packet header;

	if (bytes < sizeof(header))
		return 0;
	memcpy(&header, data, sizeof(header));
	bytes -= (uint32_t)sizeof(header);
	if (bytes < header.original_bytes || bytes > s->frame_bytes || bytes <= ETHERNET_BYTES)
		return 0;
	memcpy(frame, data + sizeof(header), bytes);
	return bytes;
}

static void enqueue(struct nic_sink *s, const uint8_t *data, uint32_t bytes)
{
	uint8_t *frame = frame_at(s, s->queue->tail);
	uint32_t size = 0;

	if (!s->is_udp)
		size = make_packet(s, frame, data, bytes);
	else if (bytes + HEAD_BYTES <= s->frame_bytes)
		size = make_datagram(s, frame, data, bytes);
	if (size == 0) {
		++*s->counters[CUT];
		return;
	}
	s->queue->sizes[s->queue->tail++ % SLOTS] = size;
	++*s->counters[FRAMES];
	*s->counters[BYTES] += size;
}

/* ---- hooks ---- */

static uint32_t room(void *self, struct weir_context *ctx)
{
	struct nic_sink *s = self;

	(void)flush(s, ctx);
	return SLOTS - waiting(s);
}

static uint32_t process(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	struct nic_sink *s = self;
	uint32_t count = in->count, most = room(self, ctx);
	const uint8_t *at = in->data;

	if (count > most)
		count = most;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t bytes = in->record_bytes;

		if (bytes == 0)
			at = weir_record_at(at, &bytes);
		enqueue(s, at, bytes);
		at += bytes;
	}
	(void)flush(s, ctx);
	return count;
}

static bool watermark(void *self, struct weir_context *ctx, int64_t watermark_ns)
{
	(void)watermark_ns;
	(void)flush(self, ctx);
	return true;
}

static void before_barrier(void *self, struct weir_context *ctx, int64_t checkpoint_id)
{
	(void)checkpoint_id;
	(void)flush(self, ctx);
}

static bool finish(void *self, struct weir_context *ctx)
{
	return flush(self, ctx);
}

static void close(void *self, struct weir_context *ctx)
{
	struct nic_sink *s = self;

	if (s->port != NULL)
		weir_services_of(ctx)->port_release(ctx, s->port, WEIR_PORT_SEND);
	s->port = NULL;
}

const struct weir_operator builtin_nic_sink = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "nic-sink",
		.help = "sends packets, or records as datagrams, out of a port",
		.role = WEIR_SINK,
		.params = params,
		.param_count = PARAM_COUNT,
		.declare = declare,
		.open = open,
		.process = process,
		.room = room,
		.watermark = watermark,
		.before_barrier = before_barrier,
		.finish = finish,
		.close = close,
};
