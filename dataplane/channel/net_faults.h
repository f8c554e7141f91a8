#pragma once

/*
 * net_faults: a transport around another one that loses, repeats, damages, delays and reorders
 * frames, or stops passing any, by a seed.
 *
 * Place    channel; for tests and for trying a job on a bad wire (weir.link.faults).
 * Thread   that of the transport.
 * Memory   all in create: up to `held_max` frames at a time are held back, copied.
 * Time     the clock port, for delays and partitions.
 * Errors   -EINVAL from parse with what it would take; a frame that cannot be held is passed on.
 * Life     create, used as a transport, destroy.
 *
 * Faults are made on the way out: with one of these at both ends, both ways are bad.
 */

#include "dataplane/channel/transport.h"

struct clock;
struct net_faults;

struct net_faults_config {
	uint64_t seed;
	double loss, duplicate, corrupt, reorder; /* shares, 0..1 */
	uint64_t delay_ns;          /* of a frame that is reordered; of all frames when `reorder`
				     * is 0 */
	uint64_t partition_every_ns, partition_ns; /* nothing passes for the latter, each former */
};

struct net_faults_counters {
	uint64_t lost, repeated, damaged, delayed, cut_off;
};

enum { NET_FAULTS_TEXT_BYTES = 200 };

/* "seed=7,loss=0.01,duplicate=0.001,corrupt=0.001,reorder=0.05,delay=200us,partition=5s/300ms";
 * each part may be left out. */
int net_faults_parse(const char *text, struct net_faults_config *config,
		char error[NET_FAULTS_TEXT_BYTES]);

int net_faults_create(struct net_faults **out, struct transport *inner,
		const struct net_faults_config *config, struct clock *clock);
struct transport *net_faults_transport(struct net_faults *f);
/* From now on nothing passes, or all does that should. */
void net_faults_cut(struct net_faults *f, bool is_cut);
const struct net_faults_counters *net_faults_counters(const struct net_faults *f);
/* NULL is accepted; the inner transport is the caller's. */
void net_faults_destroy(struct net_faults *f);
