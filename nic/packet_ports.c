#include "nic/packet_ports.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/base/check.h"
#include "dataplane/base/prng.h"
#include "dataplane/channel/transport.h"
#include "dataplane/operator/packet_port.h"
#include "nic/port_transport.h"

enum {
	BURST_MAX = 64,
	SEND_MAX = 16,
	HEAD_BYTES = 14,
	RECLAIM_INTERVAL_NS = 1000000,
	NAME_BYTES = 64,
};

struct packet_port {
	struct weir_packet_port face; /* first: what operators see */
	char name[NAME_BYTES];
	struct port *port;
	struct port_transport *queue;
	struct transport *transport;
	uint64_t reclaimed_ns;
	uint32_t use;		/* of WEIR_PORT_*, who has it */
	uint32_t subtask_index; /* of those who have it */
	uint64_t kernel_before; /* packets of the kernel's interface when the port was opened */
	uint64_t port_before;   /* and of the port */
	bool has_kernel_count;
	/* Written by look, read by the worker: each whole. */
	_Atomic uint64_t missed, no_buffer, errors;
	struct frame_out frames[SEND_MAX];
};

struct packet_ports {
	struct port_directory directory; /* first */
	uint32_t count;
	struct packet_port *ports[PACKET_PORTS_MAX];
};

static struct packet_port *of(struct weir_packet_port *face)
{
	return (struct packet_port *)face;
}

/* ---- on the worker ---- */

/* A wire whose other side is away is looked for; what is sent comes back from the device. */
static void look_after(struct packet_port *p, uint64_t now_ns)
{
	if (now_ns - p->reclaimed_ns < RECLAIM_INTERVAL_NS)
		return;
	p->reclaimed_ns = now_ns;
	p->transport->reclaim(p->transport, now_ns);
}

static uint32_t face_receive(struct weir_packet_port *face, struct weir_packet *packets,
		uint32_t count, uint64_t now_ns)
{
	struct packet_port *p = of(face);
	struct frame_in frames[BURST_MAX];

	look_after(p, now_ns);
	if (count > BURST_MAX)
		count = BURST_MAX;
	count = p->transport->receive(p->transport, frames, count);
	for (uint32_t i = 0; i < count; i++)
		packets[i] = (struct weir_packet){
				frames[i].bytes, frames[i].size, frames[i].handle};
	face->received += count;
	return count;
}

static void face_release(
		struct weir_packet_port *face, const struct weir_packet *packets, uint32_t count)
{
	struct packet_port *p = of(face);

	for (uint32_t i = 0; i < count; i++) {
		const struct frame_in frame = {
				packets[i].bytes, packets[i].size, packets[i].handle};

		p->transport->release(p->transport, &frame, 1);
	}
}

static uint32_t face_send(struct weir_packet_port *face, const struct weir_packet *packets,
		uint32_t count, uint64_t now_ns)
{
	struct packet_port *p = of(face);
	uint32_t taken = 0;

	look_after(p, now_ns);
	while (taken < count) {
		uint32_t batch = count - taken < SEND_MAX ? count - taken : SEND_MAX;

		for (uint32_t i = 0; i < batch; i++) {
			const struct weir_packet *packet = &packets[taken + i];
			struct frame_out *f = &p->frames[i];

			CHECK(packet->size > HEAD_BYTES && packet->size <= face->frame_bytes_max);
			memcpy(f->head, packet->bytes, HEAD_BYTES);
			f->head_bytes = HEAD_BYTES;
			f->body = packet->bytes + HEAD_BYTES;
			f->body_bytes = packet->size - HEAD_BYTES;
			f->owner = NULL; /* so it is copied */
			f->wants_udp_checksum = false;
		}
		uint32_t sent = p->transport->send(p->transport, p->frames, batch);
		taken += sent;
		if (sent < batch)
			break;
	}
	return taken;
}

static void face_losses(struct weir_packet_port *face, struct weir_port_losses *out)
{
	struct packet_port *p = of(face);

	out->missed = atomic_load_explicit(&p->missed, memory_order_relaxed);
	out->no_buffer = atomic_load_explicit(&p->no_buffer, memory_order_relaxed);
	out->errors = atomic_load_explicit(&p->errors, memory_order_relaxed);
}

/* ---- on the control thread ---- */

static void look(struct packet_port *p)
{
	struct port_counters c;
	uint64_t kernel = 0;

	/* The kernel's first: what comes between the two looks is no loss. */
	bool has_kernel = p->has_kernel_count && port_kernel_packets(p->port, &kernel);
	port_counters(p->port, &c);
	uint64_t had = kernel - p->kernel_before, got = c.frames_in - p->port_before;
	uint64_t missed = has_kernel && had > got ? had - got : 0;
	/* Those on their way through the socket are taken for lost until they come out. */
	if (c.missed > missed)
		missed = c.missed;
	atomic_store_explicit(&p->missed, missed, memory_order_relaxed);
	atomic_store_explicit(&p->no_buffer, c.no_buffer, memory_order_relaxed);
	atomic_store_explicit(&p->errors, c.errors_in, memory_order_relaxed);
}

void packet_ports_look(struct packet_ports *ports)
{
	for (uint32_t i = 0; i < ports->count; i++)
		look(ports->ports[i]);
}

static void list_names(const struct packet_ports *ports, char text[PORT_TEXT_BYTES])
{
	size_t at = 0;

	snprintf(text, PORT_TEXT_BYTES, "none");
	for (uint32_t i = 0; i < ports->count && at < PORT_TEXT_BYTES; i++)
		at += (size_t)snprintf(text + at, PORT_TEXT_BYTES - at, "%s%s", i > 0 ? ", " : "",
				ports->ports[i]->name);
}

static struct weir_packet_port *acquire(struct port_directory *d, const char *name,
		uint32_t subtask_index, enum weir_port_use use, char error[WEIR_ERROR_BYTES])
{
	struct packet_ports *ports = (struct packet_ports *)d;
	char known[PORT_TEXT_BYTES];

	for (uint32_t i = 0; i < ports->count; i++) {
		struct packet_port *p = ports->ports[i];

		if (strcmp(p->name, name) != 0)
			continue;
		if ((p->use & use) != 0) {
			snprintf(error, WEIR_ERROR_BYTES,
					"port %s is taken: another task %s it, and it has one "
					"queue "
					"pair",
					name,
					use == WEIR_PORT_RECEIVE ? "receives from" : "sends to");
			return NULL;
		}
		if (p->use != 0 && p->subtask_index != subtask_index) {
			snprintf(error, WEIR_ERROR_BYTES,
					"port %s has one queue pair: who receives from it and who "
					"sends to it must be of one subtask number, not %u and %u",
					name, p->subtask_index, subtask_index);
			return NULL;
		}
		p->use |= use;
		p->subtask_index = subtask_index;
		return &p->face;
	}
	list_names(ports, known);
	snprintf(error, WEIR_ERROR_BYTES, "weir.nic.ports has no port %.64s (it has: %s)", name,
			known);
	return NULL;
}

static void release(struct port_directory *d, struct weir_packet_port *port, enum weir_port_use use)
{
	(void)d;
	of(port)->use &= ~(uint32_t)use;
}

static struct port_config port_config_of(const char *name, uint16_t descriptors)
{
	return (struct port_config){
			.name = name,
			.rx_descriptors = descriptors,
			.tx_descriptors = descriptors,
			.queue_count = 1,
			.worker_count = 1,
	};
}

size_t packet_ports_memory_bytes(const char *const *names, uint32_t count, uint16_t descriptors)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct port_config config = port_config_of(names[i], descriptors);

		bytes += port_memory_bytes(&config);
	}
	return bytes;
}

/* net_af_packet hears all interfaces of the host until it is bound to its own: what is there now is
 * not for us, and counts for nothing. */
static void begin_anew(struct packet_port *p, uint16_t descriptors)
{
	struct port_counters counters;
	struct frame_in frames[BURST_MAX];
	uint32_t count = 1;

	for (uint32_t total = 0; count > 0 && total < descriptors; total += count) {
		count = p->transport->receive(p->transport, frames, BURST_MAX);
		p->transport->release(p->transport, frames, count);
	}
	p->has_kernel_count = port_kernel_packets(p->port, &p->kernel_before);
	port_counters(p->port, &counters);
	p->port_before = counters.frames_in;
}

static int open_port(struct packet_port **out, const char *name, uint16_t descriptors,
		char error[PORT_ERROR_BYTES])
{
	struct port_config config = port_config_of(name, descriptors);
	struct packet_port *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	*out = p;
	snprintf(p->name, sizeof(p->name), "%s", name);
	int rc = port_create(&p->port, &config, error);
	if (rc != 0)
		return rc;
	rc = port_transport_create(&p->queue, p->port, 0);
	if (rc != 0) {
		snprintf(error, PORT_ERROR_BYTES,
				"port %s: no memory for its packets; raise "
				"weir.memory",
				name);
		return rc;
	}
	p->transport = port_transport_port(p->queue);
	begin_anew(p, descriptors);
	p->face = (struct weir_packet_port){
			.receive = face_receive,
			.release = face_release,
			.send = face_send,
			.losses = face_losses,
			.frame_bytes_max = p->transport->frame_bytes_max,
			.instance = prng_seed_from_os(),
	};
	port_mac(p->port, p->face.mac);
	return 0;
}

int packet_ports_open(struct packet_ports **out, const char *const *names, uint32_t count,
		uint16_t descriptors, char error[PORT_ERROR_BYTES])
{
	struct packet_ports *ports = calloc(1, sizeof(*ports));

	snprintf(error, PORT_ERROR_BYTES, "no memory for packet ports");
	if (ports == NULL)
		return -ENOMEM;
	ports->directory = (struct port_directory){acquire, release};
	if (count > PACKET_PORTS_MAX) {
		snprintf(error, PORT_ERROR_BYTES, "weir.nic.ports: %u are more than %d", count,
				PACKET_PORTS_MAX);
		packet_ports_close(ports);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < count; i++) {
		int rc = open_port(&ports->ports[i], names[i], descriptors, error);

		ports->count += ports->ports[i] != NULL;
		if (rc != 0) {
			packet_ports_close(ports);
			return rc;
		}
	}
	*out = ports;
	return 0;
}

struct port_directory *packet_ports_directory(struct packet_ports *ports)
{
	return &ports->directory;
}

bool packet_ports_print(
		const struct packet_ports *ports, uint32_t index, char text[PORT_TEXT_BYTES])
{
	if (index >= ports->count)
		return false;
	port_print(ports->ports[index]->port, text);
	return true;
}

void packet_ports_close(struct packet_ports *ports)
{
	if (ports == NULL)
		return;
	for (uint32_t i = 0; i < ports->count; i++) {
		port_transport_destroy(ports->ports[i]->queue);
		port_destroy(ports->ports[i]->port);
		free(ports->ports[i]);
	}
	free(ports);
}
