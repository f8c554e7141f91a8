#include "tests/sim/mem_port.h"

#include <stdlib.h>

#include "dataplane/base/check.h"

enum { PACKETS_MAX = 8192 };

struct packet {
	uint8_t *bytes;
	uint32_t size;
};

struct mem_port {
	struct weir_packet_port face; /* first */
	struct weir_port_losses losses;
	uint32_t in_count, in_taken, held, out_count, room;
	struct packet in[PACKETS_MAX], out[PACKETS_MAX];
};

static struct mem_port *of(struct weir_packet_port *face)
{
	return (struct mem_port *)face;
}

static struct packet copy(const void *bytes, uint32_t size)
{
	struct packet p = {malloc(size > 0 ? size : 1), size};

	CHECK(p.bytes != NULL);
	memcpy(p.bytes, bytes, size);
	return p;
}

static uint32_t port_receive(struct weir_packet_port *face, struct weir_packet *packets,
		uint32_t count, uint64_t now_ns)
{
	struct mem_port *p = of(face);
	uint32_t given = 0;

	(void)now_ns;
	for (; given < count && p->in_taken < p->in_count; given++) {
		struct packet *in = &p->in[p->in_taken++];

		packets[given] = (struct weir_packet){in->bytes, in->size, in};
	}
	p->held += given;
	face->received += given;
	return given;
}

static void port_release(
		struct weir_packet_port *face, const struct weir_packet *packets, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct packet *in = packets[i].handle;

		free(in->bytes);
		in->bytes = NULL;
	}
	of(face)->held -= count;
}

static uint32_t port_send(struct weir_packet_port *face, const struct weir_packet *packets,
		uint32_t count, uint64_t now_ns)
{
	struct mem_port *p = of(face);
	uint32_t taken = 0;

	(void)now_ns;
	for (; taken < count && p->room > 0 && p->out_count < PACKETS_MAX; taken++, p->room--)
		p->out[p->out_count++] = copy(packets[taken].bytes, packets[taken].size);
	return taken;
}

static void port_losses(struct weir_packet_port *face, struct weir_port_losses *out)
{
	*out = of(face)->losses;
}

struct mem_port *mem_port_create(void)
{
	struct mem_port *p = calloc(1, sizeof(*p));

	CHECK(p != NULL);
	p->face = (struct weir_packet_port){port_receive, port_release, port_send, port_losses,
			1514, 1, 0, 0, 1, {2, 0, 0, 0, 0, 9}};
	p->room = UINT32_MAX;
	return p;
}

void mem_port_destroy(struct mem_port *p)
{
	for (uint32_t i = 0; i < p->in_count; i++)
		free(p->in[i].bytes);
	for (uint32_t i = 0; i < p->out_count; i++)
		free(p->out[i].bytes);
	free(p);
}

struct weir_packet_port *mem_port_face(struct mem_port *p)
{
	return &p->face;
}

void mem_port_put(struct mem_port *p, const void *bytes, uint32_t size)
{
	CHECK(p->in_count < PACKETS_MAX);
	p->in[p->in_count++] = copy(bytes, size);
}

void mem_port_lose(struct mem_port *p, struct weir_port_losses losses)
{
	p->losses = losses;
}

void mem_port_reopen(struct mem_port *p)
{
	p->face.instance++;
	p->face.received = 0;
	p->losses = (struct weir_port_losses){0};
}

void mem_port_set_room(struct mem_port *p, uint32_t packets)
{
	p->room = packets;
}

uint32_t mem_port_sent_count(const struct mem_port *p)
{
	return p->out_count;
}

const uint8_t *mem_port_sent(const struct mem_port *p, uint32_t index, uint32_t *size)
{
	CHECK(index < p->out_count);
	*size = p->out[index].size;
	return p->out[index].bytes;
}

uint32_t mem_port_held(const struct mem_port *p)
{
	return p->held;
}
