#pragma once

/*
 * link_world: two TaskManagers' ends of one link on a wire in memory, with producers and consumers
 * of its channels; what a consumer gets is compared with what follows from channel and number.
 *
 * Place    tests/support.
 * Thread   one; time is moved by hand.
 * Life     create, { step | turns }*, destroy (which checks that every buffer is back).
 */

#include "dataplane/base/prng.h"
#include "dataplane/channel/net_endpoint.h"
#include "dataplane/channel/net_faults.h"
#include "dataplane/channel/output_queue.h"
#include "tests/sim/mem_wire.h"
#include "tests/support/hand_clock.h"

enum { LINK_CHANNELS_MAX = 4, LINK_TOKEN = 0x1234567890abcdef };

struct link_world_config {
	uint64_t seed;
	struct net_faults_config faults;
	struct channel_config channel;
	uint32_t channel_count[2];  /* from end 0 to 1, from end 1 to 0 */
	uint32_t buf_count;         /* that each producer makes */
	uint32_t buf_bytes, frame_bytes_max, wire_room;
	uint32_t event_every;       /* about; 0: none but the end of partition */
	bool is_ipv6;
	uint64_t peer_timeout_ns;   /* 0: an hour */
	struct transport *transports[2]; /* NULL: a wire in memory */
	struct buf_pool *pool; /* of both ends, borrowed; NULL: one of the heap for each */
};

struct link_channel {
	struct ring_channel *near, *far; /* the producer's and the consumer's */
	struct output_queue queue;
	uint32_t id;
	uint32_t made, events_made;
	bool is_ended;
	/* at the consumer */
	uint64_t position;
	uint32_t held, event_count;
	struct buf *bufs[CHANNEL_BUFFERS_MAX];
	struct event events[CHANNEL_CONTROL_MAX];
	uint32_t announced, consumed_events;
	uint64_t cuts[4096]; /* of events made, by number */
	bool is_over;
};

struct link_end {
	struct buf_pool *pool;
	struct net_faults *faults;
	struct net_endpoint *endpoint;
	struct net_link *link;
	uint32_t used_max; /* buffers of the pool, ever */
	uint32_t channel_count;
	struct link_channel channels[LINK_CHANNELS_MAX]; /* outgoing */
};

struct link_world {
	struct link_world_config config;
	struct prng prng;
	struct hand_clock clock;
	struct mem_wire *wire;
	struct link_end ends[2];
	uint64_t step_ns_max; /* time moves by at most that a step */
	bool is_producing, is_consuming;
};

struct link_world *link_world_create(const struct link_world_config *config);

/* Time passes; producers, ends and consumers do something each. */
void link_world_step(struct link_world *w);
/* True when every consumer has seen the end of its channel. */
bool link_world_is_over(const struct link_world *w);
/* Steps until then; false: it took more than `steps_max`. */
bool link_world_run(struct link_world *w, uint32_t steps_max);
/* Closes both ends; false: they did not end in `steps_max`. */
bool link_world_close(struct link_world *w, uint32_t steps_max);

void link_world_destroy(struct link_world *w);
