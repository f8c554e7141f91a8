#pragma once

/*
 * input_persister: the receiver's part of the buffers in flight: hands those that a checkpoint
 * overtakes to the channel-state writer, each once, in the order of their channel (14.1, 17.5).
 *
 * Place    checkpoint; between the input gates and the channel-state writer of a task.
 * Thread   the worker of the task.
 * Memory   one allocation in create; a buffer handed over is referenced, never copied here.
 * Errors   none.
 * Life     create, { arrived, start, take, stop | cancel }*, destroy.
 *
 * Channels are numbered through all gates of the task.
 */

#include "dataplane/wire/event.h"

struct channel_state_writer;
struct input_gate;
struct input_persister;

struct input_persister_config {
	struct input_gate *const *gates; /* borrowed */
	uint32_t gate_count;
	struct channel_state_writer *writer; /* borrowed; NULL: nothing is kept */
};

int input_persister_create(
		struct input_persister **out, const struct input_persister_config *config);
void input_persister_destroy(struct input_persister *p);

/* A barrier has come into the channel, wherever in line it is (IC-4). */
void input_persister_arrived(
		struct input_persister *p, uint32_t channel, const struct event *barrier);

/* "Checkpoint started" (IC-8), with the bytes of records that were partly read.  No channel has
 * seen a newer barrier: the handler knows. */
void input_persister_start(struct input_persister *p, int64_t checkpoint_id);

/* "Checkpoint stopped": what has not come by now, and is not before a barrier, is not kept. */
void input_persister_stop(struct input_persister *p, int64_t checkpoint_id);

/* That checkpoint is not wanted any more.  An older one that is under way is: with several at a
 * time the coordinator may abort the younger one alone. */
void input_persister_cancel(struct input_persister *p, int64_t checkpoint_id);

/* Nor are older ones: what ended it in line has ended those too (BH-7). */
void input_persister_cancel_up_to(struct input_persister *p, int64_t checkpoint_id);

/* Hands over what has come.  To be called after gates have taken buffers, before these are
 * processed.  Returns how many buffers. */
uint32_t input_persister_take(struct input_persister *p);

/* False once all buffers of the checkpoint are handed over. */
bool input_persister_is_waiting(const struct input_persister *p, int64_t checkpoint_id);
