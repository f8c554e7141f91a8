#pragma once

/*
 * mem_wire: a cable in memory between two transports.
 *
 * Place    tests/sim.
 * Thread   one.
 * Memory   frames are copied; each direction holds `room` of them, what comes on top is dropped and
 *          counted as a full queue of a NIC would.
 * Life     create, use both ends, destroy.
 */

#include "dataplane/channel/transport.h"

struct mem_wire;

struct mem_wire *mem_wire_create(uint32_t room, uint32_t frame_bytes_max);
/* 0 or 1. */
struct transport *mem_wire_end(struct mem_wire *w, int end);
/* At the next send an end takes only so many frames; UINT32_MAX: all. */
void mem_wire_limit(struct mem_wire *w, int end, uint32_t count);
uint64_t mem_wire_overflow_count(const struct mem_wire *w);
void mem_wire_destroy(struct mem_wire *w);
