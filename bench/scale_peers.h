#pragma once

/*
 * scale_peers: simulated TaskManagers that speak the real protocol over real TCP and run nothing.
 * When one of them is asked for a checkpoint, all acknowledge it for all their subtasks, in one
 * message each.
 *
 * Place    bench.
 * Thread   one of their own, so that their CPU time is nobody else's.
 * Errors   what goes wrong ends the program, with a line.
 * Life     start, { the coordinator works }, stop.
 */

#include "dataplane/base/ids.h"

#include <stdbool.h>
#include <stdint.h>

struct scale_peers;

struct scale_job {
	uint32_t subtask_count, peer_count, parallelism, state_bytes;
	const struct attempt_id *attempts; /* by subtask; subtask s runs at peer s % peer_count */
	uint16_t port;
};

struct scale_bytes {
	uint64_t received, sent, message_count; /* of one checkpoint, both directions counted */
};

void scale_peers_start(struct scale_peers **out, const struct scale_job *job);
/* Whether all have acknowledged that checkpoint.  Any thread. */
bool scale_peers_have_sent(struct scale_peers *p, int64_t checkpoint_id);
/* What went over the connections since the last call.  Any thread, between checkpoints. */
struct scale_bytes scale_peers_take_bytes(struct scale_peers *p);
void scale_peers_stop(struct scale_peers *p);
