#include "nic/packet_ports.h"

#include <errno.h>
#include <rte_mbuf.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/base/check.h"
#include "dataplane/base/log.h"
#include "dataplane/base/prng.h"
#include "dataplane/channel/transport.h"
#include "dataplane/operator/packet_port.h"
#include "nic/packet_queues.h"
#include "nic/port_transport.h"

enum {
	SEND_MAX = 16,
	HEAD_BYTES = 14,
	RECLAIM_INTERVAL_NS = 1000000,
	NAME_BYTES = 64,
	LOOKS = 8, /* most of a second */
};
enum { MISSED, NO_BUFFER, ERRORS, RING_FULL, LOSSES };

/* One subtask at a port: takes packets, sends some, or both. */
struct packet_face {
	struct weir_packet_port face; /* first: what operators see */
	struct packet_port *port;
	uint32_t subtask_index, number;
	uint32_t use;		       /* of WEIR_PORT_* */
	struct port_transport *queue; /* to send by; NULL: it does not */
	uint64_t reclaimed_ns;
	/* Its part of the port's losses.  Written by look, read by the worker: each whole. */
	_Atomic uint64_t losses[LOSSES];
	struct frame_out frames[SEND_MAX];
};

struct packet_port {
	char name[NAME_BYTES];
	struct port *port;
	struct packet_queues *queues;
	struct port_transport *senders[PORT_QUEUES_MAX];
	uint64_t senders_in_use; /* a bit for each */
	uint64_t kernel_before;	 /* packets of the kernel's interface when the port was opened */
	uint64_t port_before;	 /* and of the port */
	uint64_t behind[LOOKS];	 /* packets that the port had less, at each of the last looks */
	uint32_t look_count;
	uint64_t lost[LOSSES];	 /* what the faces have of it together */
	bool has_kernel_count;
	uint32_t face_count;
	struct packet_face *faces[PACKET_TAKERS_MAX];
};

struct packet_ports {
	struct port_directory directory; /* first */
	uint32_t count;
	struct packet_port *ports[PACKET_PORTS_MAX];
};

static struct packet_face *of(struct weir_packet_port *face)
{
	return (struct packet_face *)face;
}

/* ---- on the worker ---- */

static uint32_t face_receive(struct weir_packet_port *face, struct weir_packet *packets,
		uint32_t count, uint64_t now_ns)
{
	struct packet_face *f = of(face);
	struct packet_queues *queues = f->port->queues;

	(void)now_ns;
	count = packet_queues_receive(queues, f->number, packets, count);
	face->received += count;
	face->handed = packet_queues_handed(queues, f->number);
	face->queue_count = packet_queues_held(queues, f->number);
	return count;
}

static void face_release(
		struct weir_packet_port *face, const struct weir_packet *packets, uint32_t count)
{
	(void)face;
	for (uint32_t i = 0; i < count; i++)
		rte_pktmbuf_free(packets[i].handle);
}

/* A wire whose other side is away is looked for; what is sent comes back from the device. */
static void look_after(struct packet_face *f, struct transport *t, uint64_t now_ns)
{
	if (now_ns - f->reclaimed_ns < RECLAIM_INTERVAL_NS)
		return;
	f->reclaimed_ns = now_ns;
	t->reclaim(t, now_ns);
}

static uint32_t face_send(struct weir_packet_port *face, const struct weir_packet *packets,
		uint32_t count, uint64_t now_ns)
{
	struct packet_face *f = of(face);
	struct transport *t = port_transport_port(f->queue);
	uint32_t taken = 0;

	look_after(f, t, now_ns);
	while (taken < count) {
		uint32_t batch = count - taken < SEND_MAX ? count - taken : SEND_MAX;

		for (uint32_t i = 0; i < batch; i++) {
			const struct weir_packet *packet = &packets[taken + i];
			struct frame_out *out = &f->frames[i];

			CHECK(packet->size > HEAD_BYTES && packet->size <= face->frame_bytes_max);
			memcpy(out->head, packet->bytes, HEAD_BYTES);
			out->head_bytes = HEAD_BYTES;
			out->body = packet->bytes + HEAD_BYTES;
			out->body_bytes = packet->size - HEAD_BYTES;
			out->owner = NULL; /* so it is copied */
			out->wants_udp_checksum = false;
		}
		uint32_t sent = t->send(t, f->frames, batch);
		taken += sent;
		if (sent < batch)
			break;
	}
	return taken;
}

static void face_losses(struct weir_packet_port *face, struct weir_port_losses *out)
{
	const struct packet_face *f = of(face);
	uint64_t losses[LOSSES];

	for (uint32_t i = 0; i < LOSSES; i++)
		losses[i] = atomic_load_explicit(&f->losses[i], memory_order_relaxed);
	*out = (struct weir_port_losses){
			losses[MISSED], losses[NO_BUFFER], losses[ERRORS], losses[RING_FULL]};
}

/* ---- losses: the port's, each of them counted by one face ---- */

/* Who counts what is lost from now on. */
static struct packet_face *teller(const struct packet_port *p)
{
	for (uint32_t i = 0; i < p->face_count; i++) {
		if ((p->faces[i]->use & WEIR_PORT_RECEIVE) != 0)
			return p->faces[i];
	}
	return p->face_count > 0 ? p->faces[0] : NULL;
}

static void add_loss(struct packet_face *f, uint32_t place, uint64_t count)
{
	atomic_store_explicit(&f->losses[place],
			atomic_load_explicit(&f->losses[place], memory_order_relaxed) + count,
			memory_order_relaxed);
}

/* What was taken for lost and came after all, from those who counted it. */
static void take_back(struct packet_port *p, uint32_t place, uint64_t count)
{
	for (uint32_t i = 0; i < p->face_count && count > 0; i++) {
		struct packet_face *f = p->faces[i];
		uint64_t has = atomic_load_explicit(&f->losses[place], memory_order_relaxed);
		uint64_t less = has < count ? has : count;

		atomic_store_explicit(&f->losses[place], has - less, memory_order_relaxed);
		count -= less;
	}
}

/* Packets on their way through the socket are behind as well, and come out in a while: lost is what
 * was behind at every look.  Less now than later: what a checkpoint keeps of the count would not be
 * taken back by a process that comes after this one. */
static uint64_t surely_missed(struct packet_port *p, uint64_t behind)
{
	p->behind[p->look_count++ % LOOKS] = behind;
	for (uint32_t i = 0; i < LOOKS; i++)
		behind = p->behind[i] < behind ? p->behind[i] : behind;
	return behind;
}

static void look(struct packet_port *p)
{
	struct packet_face *f = teller(p);
	struct port_counters c;
	uint64_t kernel = 0, now[LOSSES];

	/* The kernel's first: what comes between the two looks is no loss. */
	bool has_kernel = p->has_kernel_count && port_kernel_packets(p->port, &kernel);
	port_counters(p->port, &c);
	uint64_t had = kernel - p->kernel_before, got = c.frames_in - p->port_before;
	now[MISSED] = surely_missed(p, has_kernel && had > got ? had - got : 0);
	if (c.missed > now[MISSED])
		now[MISSED] = c.missed;
	now[NO_BUFFER] = c.no_buffer;
	now[ERRORS] = c.errors_in;
	now[RING_FULL] = packet_queues_dropped(p->queues);
	for (uint32_t i = 0; i < LOSSES && f != NULL; i++) {
		if (now[i] >= p->lost[i])
			add_loss(f, i, now[i] - p->lost[i]);
		else
			take_back(p, i, p->lost[i] - now[i]);
		p->lost[i] = now[i];
	}
}

/* A wire whose other side is away is looked for by who sends by the first queue, or else here. */
static void look_for_peer(struct packet_port *p)
{
	if ((p->senders_in_use & 1) == 0 && !port_is_up(p->port))
		port_try_start(p->port);
}

void packet_ports_look(struct packet_ports *ports)
{
	for (uint32_t i = 0; i < ports->count; i++) {
		look(ports->ports[i]);
		look_for_peer(ports->ports[i]);
		packet_queues_tidy(ports->ports[i]->queues);
	}
}

/* ---- the directory ---- */

static void list_names(const struct packet_ports *ports, char text[PORT_TEXT_BYTES])
{
	size_t at = 0;

	snprintf(text, PORT_TEXT_BYTES, "none");
	for (uint32_t i = 0; i < ports->count && at < PORT_TEXT_BYTES; i++)
		at += (size_t)snprintf(text + at, PORT_TEXT_BYTES - at, "%s%s", i > 0 ? ", " : "",
				ports->ports[i]->name);
}

static void begin_face(struct packet_face *f, struct packet_port *p, uint32_t subtask_index)
{
	f->face = (struct weir_packet_port){
			.receive = face_receive,
			.release = face_release,
			.send = face_send,
			.losses = face_losses,
			.frame_bytes_max = port_frame_bytes_max(p->port),
			.instance = prng_seed_from_os(),
			.handed = packet_queues_handed(p->queues, f->number),
	};
	port_mac(p->port, f->face.mac);
	f->port = p;
	f->subtask_index = subtask_index;
	for (uint32_t i = 0; i < LOSSES; i++)
		atomic_store_explicit(&f->losses[i], 0, memory_order_relaxed);
}

/* A subtask that comes again has the face that it had, so that its ledger goes on.  NULL: there is
 * no more room. */
static struct packet_face *face_of(struct packet_port *p, uint32_t subtask_index)
{
	struct packet_face *unused = NULL;

	for (uint32_t i = 0; i < p->face_count; i++) {
		if (p->faces[i]->subtask_index == subtask_index)
			return p->faces[i];
		if (p->faces[i]->use == 0)
			unused = p->faces[i];
	}
	if (p->face_count < PACKET_TAKERS_MAX) {
		struct packet_face *f = calloc(1, sizeof(*f));

		if (f == NULL)
			return NULL;
		f->number = p->face_count;
		p->faces[p->face_count++] = f;
		unused = f;
	}
	if (unused != NULL)
		begin_face(unused, p, subtask_index);
	return unused;
}

static void say_who_takes(const struct packet_port *p)
{
	char text[PORT_TEXT_BYTES];

	packet_queues_print(p->queues, text);
	log_info("packets", "%s: %s", p->name, text);
}

static int begin_to_receive(struct packet_face *f, char error[WEIR_ERROR_BYTES])
{
	int rc = packet_queues_join(f->port->queues, f->number);

	if (rc != 0)
		snprintf(error, WEIR_ERROR_BYTES,
				"port %s: no memory for another task; raise weir.memory",
				f->port->name);
	else
		say_who_takes(f->port);
	return rc;
}

static int begin_to_send(struct packet_face *f, char error[WEIR_ERROR_BYTES])
{
	struct packet_port *p = f->port;
	uint32_t count = port_queue_count(p->port);

	for (uint32_t i = 0; i < count; i++) {
		if ((p->senders_in_use >> i & 1) != 0)
			continue;
		p->senders_in_use |= UINT64_C(1) << i;
		f->queue = p->senders[i];
		return 0;
	}
	snprintf(error, WEIR_ERROR_BYTES,
			"port %s is taken: %u %s to it already, and it has as many queue pairs; "
			"weir.nic.queues is how many",
			p->name, count, count == 1 ? "task sends" : "tasks send");
	return -EBUSY;
}

static struct weir_packet_port *acquire_at(struct packet_port *p, uint32_t subtask_index,
		enum weir_port_use use, char error[WEIR_ERROR_BYTES])
{
	struct packet_face *f = face_of(p, subtask_index);

	if (f == NULL) {
		snprintf(error, WEIR_ERROR_BYTES, "port %s: no room for another task", p->name);
		return NULL;
	}
	if ((f->use & use) != 0) {
		snprintf(error, WEIR_ERROR_BYTES,
				"port %s is taken: another task of subtask number %u %s it",
				p->name, subtask_index,
				use == WEIR_PORT_RECEIVE ? "receives from" : "sends to");
		return NULL;
	}
	int rc = use == WEIR_PORT_RECEIVE ? begin_to_receive(f, error) : begin_to_send(f, error);
	if (rc != 0)
		return NULL;
	f->use |= use;
	return &f->face;
}

static struct weir_packet_port *acquire(struct port_directory *d, const char *name,
		uint32_t subtask_index, enum weir_port_use use, char error[WEIR_ERROR_BYTES])
{
	struct packet_ports *ports = (struct packet_ports *)d;
	char known[PORT_TEXT_BYTES];

	for (uint32_t i = 0; i < ports->count; i++) {
		if (strcmp(ports->ports[i]->name, name) == 0)
			return acquire_at(ports->ports[i], subtask_index, use, error);
	}
	list_names(ports, known);
	snprintf(error, WEIR_ERROR_BYTES, "weir.nic.ports has no port %.64s (it has: %s)", name,
			known);
	return NULL;
}

static void release(struct port_directory *d, struct weir_packet_port *port, enum weir_port_use use)
{
	struct packet_face *f = of(port);
	struct packet_port *p = f->port;

	(void)d;
	f->use &= ~(uint32_t)use;
	if (use == WEIR_PORT_RECEIVE) {
		packet_queues_leave(p->queues, f->number);
		say_who_takes(p);
		return;
	}
	for (uint32_t i = 0; i < port_queue_count(p->port); i++) {
		if (p->senders[i] == f->queue)
			p->senders_in_use &= ~(UINT64_C(1) << i);
	}
	f->queue = NULL;
}

/* ---- life ---- */

static struct port_config port_config_of(const char *name, const struct packet_ports_config *config)
{
	uint32_t workers = config->worker_count;

	return (struct port_config){
			.name = name,
			.rx_descriptors = config->descriptors,
			.tx_descriptors = config->descriptors,
			.queue_count = config->queue_count,
			.worker_count = workers < PORT_QUEUES_MAX ? workers : PORT_QUEUES_MAX,
			.is_raw = true,
			.spare_bufs = (workers > 1 ? workers : 1) * PACKETS_HANDED_MAX,
	};
}

size_t packet_ports_memory_bytes(const struct packet_ports_config *config)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < config->count; i++) {
		struct port_config port = port_config_of(config->names[i], config);

		bytes += port_memory_bytes(&port);
	}
	return bytes;
}

/* net_af_packet hears all interfaces of the host until it is bound to its own: what is there now is
 * not for us, and counts for nothing. */
static void begin_anew(struct packet_port *p)
{
	struct port_counters counters;

	packet_queues_clear(p->queues);
	p->has_kernel_count = port_kernel_packets(p->port, &p->kernel_before);
	port_counters(p->port, &counters);
	p->port_before = counters.frames_in;
}

static int open_port(struct packet_port **out, const char *name,
		const struct packet_ports_config *config, char error[PORT_ERROR_BYTES])
{
	struct port_config port = port_config_of(name, config);
	struct packet_port *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	*out = p;
	snprintf(p->name, sizeof(p->name), "%s", name);
	int rc = port_create(&p->port, &port, error);
	if (rc != 0)
		return rc;
	rc = packet_queues_create(&p->queues, p->port);
	for (uint32_t i = 0; rc == 0 && i < port_queue_count(p->port); i++)
		rc = port_transport_create(&p->senders[i], p->port, i);
	if (rc != 0) {
		snprintf(error, PORT_ERROR_BYTES,
				"port %s: no memory for its packets; raise weir.memory", name);
		return rc;
	}
	begin_anew(p);
	return 0;
}

int packet_ports_open(struct packet_ports **out, const struct packet_ports_config *config,
		char error[PORT_ERROR_BYTES])
{
	struct packet_ports *ports = calloc(1, sizeof(*ports));

	snprintf(error, PORT_ERROR_BYTES, "no memory for packet ports");
	if (ports == NULL)
		return -ENOMEM;
	ports->directory = (struct port_directory){acquire, release};
	if (config->count > PACKET_PORTS_MAX) {
		snprintf(error, PORT_ERROR_BYTES, "weir.nic.ports: %u are more than %d",
				config->count, PACKET_PORTS_MAX);
		packet_ports_close(ports);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < config->count; i++) {
		int rc = open_port(&ports->ports[i], config->names[i], config, error);

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

/* Also one that did not come far. */
static void close_port(struct packet_port *p)
{
	if (p->port != NULL)
		port_stop(p->port);
	packet_queues_destroy(p->queues);
	for (uint32_t i = 0; i < PORT_QUEUES_MAX; i++)
		port_transport_destroy(p->senders[i]);
	port_destroy(p->port);
	for (uint32_t i = 0; i < p->face_count; i++)
		free(p->faces[i]);
	free(p);
}

void packet_ports_close(struct packet_ports *ports)
{
	if (ports == NULL)
		return;
	for (uint32_t i = 0; i < ports->count; i++)
		close_port(ports->ports[i]);
	free(ports);
}
