#pragma once

/*
 * mem_port: a packet port in memory: what a test puts in comes out of receive, what is sent stays
 * to be looked at.
 *
 * Place    tests only; behind dataplane/operator/packet_port.h.
 * Thread   the test's.
 * Memory   the heap; bytes of a packet are freed when it is given back.
 */

#include "dataplane/operator/packet_port.h"

struct mem_port;

struct mem_port *mem_port_create(void);
void mem_port_destroy(struct mem_port *p);
struct weir_packet_port *mem_port_face(struct mem_port *p);

/* A packet that waits to be received. */
void mem_port_put(struct mem_port *p, const void *bytes, uint32_t size);
void mem_port_lose(struct mem_port *p, struct weir_port_losses losses); /* so far, in all */
/* As if another process had opened it: counts begin anew. */
void mem_port_reopen(struct mem_port *p);

/* How many packets send takes yet; all at first. */
void mem_port_set_room(struct mem_port *p, uint32_t packets);
uint32_t mem_port_sent_count(const struct mem_port *p);
const uint8_t *mem_port_sent(const struct mem_port *p, uint32_t index, uint32_t *size);
/* Packets that were received and not given back. */
uint32_t mem_port_held(const struct mem_port *p);
