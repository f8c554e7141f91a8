#include "dataplane/operator/packet/pcapng.h"

#include "dataplane/base/check.h"

#include <errno.h>
#include <pcap/dlt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
	BLOCK_INTERFACE = 1,
	BLOCK_PACKET = 2, /* obsolete */
	BLOCK_SIMPLE = 3,
	BLOCK_ENHANCED = 6,
};
static const uint32_t block_section = 0x0a0d0d0a;
static const uint32_t order_magic = 0x1a2b3c4d;

enum {
	OPTION_END = 0,
	OPTION_RESOLUTION = 9,
	OPTION_OFFSET = 14,
	LINK_TYPE_RAW = 101, /* in files; libpcap's number of it is another */
	HEAD_BYTES = 8,      /* type and length, in front of a body */
	TAIL_BYTES = 4,      /* the length again */
};

static const uint64_t second_ns = 1000000000;

struct interface {
	uint32_t link_type; /* DLT_* */
	uint32_t snap;
	unsigned __int128 ticks_per_second;
	int64_t offset_s;
};

struct pcapng {
	FILE *stream;
	bool is_swapped;
	struct interface *interfaces;
	uint32_t interface_count, interface_max;
	uint8_t *body;
	uint32_t body_max;
	/* the block in `body` */
	uint32_t type, body_bytes;
};

__attribute__((format(printf, 3, 4))) static enum capture_end damaged(
		const struct pcapng *p, char text[CAPTURE_TEXT_BYTES], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, CAPTURE_TEXT_BYTES, format, args);
	va_end(args);
	return ferror(p->stream) != 0 ? CAPTURE_UNREADABLE : CAPTURE_WAS_CUT;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static uint16_t read_u16(const struct pcapng *p, const uint8_t *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return p->is_swapped ? __builtin_bswap16(value) : value;
}

static uint32_t read_u32(const struct pcapng *p, const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return p->is_swapped ? __builtin_bswap32(value) : value;
}

static uint64_t read_u64(const struct pcapng *p, const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return p->is_swapped ? __builtin_bswap64(value) : value;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Room for a body and what follows it. */
static bool make_room(struct pcapng *p, uint32_t bytes)
{
	if (bytes <= p->body_max)
		return true;
	uint8_t *body = realloc(p->body, bytes);
	if (body == NULL)
		return false;
	p->body = body;
	p->body_max = bytes;
	return true;
}

/* The byte order of a section stands behind the length of its first block. */
static enum capture_end begin_section(
		struct pcapng *p, uint8_t order[4], char text[CAPTURE_TEXT_BYTES])
{
	uint32_t magic;

	if (fread(order, 1, 4, p->stream) != 4)
		return damaged(p, text, "ends within a section header");
	memcpy(&magic, order, sizeof(magic));
	if (magic != order_magic && magic != __builtin_bswap32(order_magic))
		return damaged(p, text, "a section without a byte order");
	p->is_swapped = magic != order_magic;
	p->interface_count = 0;
	return CAPTURE_GOES_ON;
}

/* Reads the next block into `body`. */
static enum capture_end next_block(struct pcapng *p, char text[CAPTURE_TEXT_BYTES])
{
	uint8_t head[HEAD_BYTES], order[4];
	uint32_t early = 0; /* bytes of the body read with the head */
	size_t got = fread(head, 1, sizeof(head), p->stream);

	if (got == 0 && ferror(p->stream) == 0)
		return CAPTURE_ENDED;
	if (got != sizeof(head))
		return damaged(p, text, "ends within a block header");
	memcpy(&p->type, head, sizeof(p->type));
	if (p->type == block_section) {
		enum capture_end end = begin_section(p, order, text);

		if (end != CAPTURE_GOES_ON)
			return end;
		early = sizeof(order);
	} else {
		p->type = read_u32(p, head);
	}
	uint32_t total = read_u32(p, head + 4);
	if (total < HEAD_BYTES + TAIL_BYTES + early || total > PCAPNG_BLOCK_BYTES_MAX)
		return damaged(p, text, "a block of %u bytes", total);
	/* The bytes are padded, even where an old writer left that out of the length. */
	p->body_bytes = (total + 3) / 4 * 4 - HEAD_BYTES - TAIL_BYTES;
	if (!make_room(p, p->body_bytes + TAIL_BYTES)) {
		snprintf(text, CAPTURE_TEXT_BYTES, "no memory for a block of %u bytes", total);
		return CAPTURE_UNREADABLE;
	}
	memcpy(p->body, order, early);
	uint32_t rest = p->body_bytes + TAIL_BYTES - early;
	if (fread(p->body + early, 1, rest, p->stream) != rest)
		return damaged(p, text, "ends within a block of %u bytes", total);
	if (read_u32(p, p->body + p->body_bytes) != total)
		return damaged(p, text, "a block whose two lengths differ");
	return CAPTURE_GOES_ON;
}

/* ---- interfaces ------------------------------------------------------------------------------ */

/* A negative power of 10, or of 2 with the top bit. */
static unsigned __int128 resolution_of(uint8_t code)
{
	enum { POWER_OF_10_MAX = 38 }; /* in 128 bits; at any finer, 64 bits of ticks are 0 ns */
	uint32_t power = code & 0x7f;
	unsigned __int128 ticks_per_second = 1;

	if ((code & 0x80) != 0)
		return ticks_per_second << power;
	for (uint32_t i = 0; i < power && i < POWER_OF_10_MAX; i++)
		ticks_per_second *= 10;
	return ticks_per_second;
}

static void read_options(const struct pcapng *p, uint32_t at, struct interface *interface)
{
	while (at + 4 <= p->body_bytes) {
		uint16_t code = read_u16(p, p->body + at);
		uint16_t bytes = read_u16(p, p->body + at + 2);

		at += 4;
		if (code == OPTION_END || bytes > p->body_bytes - at)
			break;
		if (code == OPTION_RESOLUTION && bytes >= 1)
			interface->ticks_per_second = resolution_of(p->body[at]);
		if (code == OPTION_OFFSET && bytes >= 8)
			interface->offset_s = (int64_t)read_u64(p, p->body + at);
		at += (bytes + 3u) / 4 * 4;
	}
}

static enum capture_end add_interface(struct pcapng *p, char text[CAPTURE_TEXT_BYTES])
{
	if (p->body_bytes < 8)
		return damaged(p, text, "an interface of %u bytes", p->body_bytes);
	if (p->interface_count == PCAPNG_INTERFACES_MAX)
		return damaged(p, text, "more than %d interfaces", PCAPNG_INTERFACES_MAX);
	if (p->interface_count == p->interface_max) {
		uint32_t max = p->interface_max == 0 ? 8 : 2 * p->interface_max;
		struct interface *more = realloc(p->interfaces, max * sizeof(*more));

		if (more == NULL) {
			snprintf(text, CAPTURE_TEXT_BYTES, "no memory for %u interfaces", max);
			return CAPTURE_UNREADABLE;
		}
		p->interfaces = more;
		p->interface_max = max;
	}
	struct interface *interface = &p->interfaces[p->interface_count];
	uint16_t link_type = read_u16(p, p->body);
	*interface = (struct interface){link_type == LINK_TYPE_RAW ? DLT_RAW : link_type,
			read_u32(p, p->body + 4), 1000000, 0};
	read_options(p, 8, interface);
	p->interface_count++;
	return CAPTURE_GOES_ON;
}

/* ---- packets --------------------------------------------------------------------------------- */

static int64_t time_of(const struct interface *interface, uint64_t ticks)
{
	__int128 ns = interface->ticks_per_second == second_ns
				      ? (__int128)ticks
				      : (__int128)((unsigned __int128)ticks * second_ns /
						  interface->ticks_per_second);

	ns += (__int128)interface->offset_s * (int64_t)second_ns;
	return capture_time_clamp(ns);
}

static enum capture_end find_packet(struct pcapng *p, struct capture_packet *packet,
		char text[CAPTURE_TEXT_BYTES])
{
	enum { DATA_AT = 20 };
	const uint8_t *body = p->body;

	if (p->body_bytes < DATA_AT)
		return damaged(p, text, "a packet block of %u bytes", p->body_bytes);
	uint32_t index = p->type == BLOCK_PACKET ? read_u16(p, body) : read_u32(p, body);
	uint32_t captured = read_u32(p, body + 12);
	if (index >= p->interface_count)
		return damaged(p, text, "a packet of interface %u, which there is not", index);
	if (captured > p->body_bytes - DATA_AT)
		return damaged(p, text, "a packet longer than its block");
	uint64_t ticks = (uint64_t)read_u32(p, body + 4) << 32 | read_u32(p, body + 8);
	*packet = (struct capture_packet){
			.time_ns = time_of(&p->interfaces[index], ticks),
			.bytes = body + DATA_AT,
			.captured_bytes = captured,
			.original_bytes = read_u32(p, body + 16),
			.link_type = p->interfaces[index].link_type,
	};
	return CAPTURE_GOES_ON;
}

/* Without a time, of the first interface; its length says how much was captured. */
static enum capture_end find_simple_packet(struct pcapng *p, struct capture_packet *packet,
		char text[CAPTURE_TEXT_BYTES])
{
	if (p->body_bytes < 4)
		return damaged(p, text, "a packet block of %u bytes", p->body_bytes);
	if (p->interface_count == 0)
		return damaged(p, text, "a packet without an interface");
	uint32_t original = read_u32(p, p->body), captured = p->body_bytes - 4;
	uint32_t snap = p->interfaces[0].snap;
	if (original < captured)
		captured = original;
	if (snap != 0 && snap < captured)
		captured = snap;
	*packet = (struct capture_packet){
			.bytes = p->body + 4,
			.captured_bytes = captured,
			.original_bytes = original,
			.link_type = p->interfaces[0].link_type,
	};
	return CAPTURE_GOES_ON;
}

enum capture_end pcapng_read(struct pcapng *p, uint32_t count_max, capture_packet_fn take,
		void *user, uint64_t *count, char text[CAPTURE_TEXT_BYTES])
{
	struct capture_packet packet;
	uint32_t taken = 0;

	while (taken < count_max) {
		enum capture_end end = next_block(p, text);
		bool is_packet = p->type == BLOCK_ENHANCED || p->type == BLOCK_PACKET;

		if (end != CAPTURE_GOES_ON)
			return end;
		if (is_packet)
			end = find_packet(p, &packet, text);
		else if (p->type == BLOCK_SIMPLE)
			end = find_simple_packet(p, &packet, text);
		else if (p->type == BLOCK_INTERFACE)
			end = add_interface(p, text);
		if (end != CAPTURE_GOES_ON)
			return end;
		if (!is_packet && p->type != BLOCK_SIMPLE)
			continue;
		taken++;
		++*count;
		take(user, &packet);
	}
	return CAPTURE_GOES_ON;
}

int pcapng_create(struct pcapng **out, FILE *stream)
{
	struct pcapng *p = calloc(1, sizeof(*p));

	CHECK(stream != NULL);
	if (p == NULL)
		return -ENOMEM;
	p->stream = stream;
	*out = p;
	return 0;
}

void pcapng_destroy(struct pcapng *p)
{
	if (p == NULL)
		return;
	free(p->interfaces);
	free(p->body);
	free(p);
}
