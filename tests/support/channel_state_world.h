#pragma once

/*
 * channel_state_world: writers of two subtasks that share their files, a pool, and a disk in
 * memory that fails on purpose.
 *
 * Subtask 0 has one input gate of two channels and one output gate of two; subtask 1 has one input
 * gate of one channel.
 */

#include "dataplane/checkpoint/channel_state_executor.h"
#include "dataplane/checkpoint/channel_state_writer.h"
#include "dataplane/wire/buf.h"
#include "tests/sim/fault_store.h"
#include "tests/sim/mem_store.h"

enum { CHANNEL_WORLD_BUF_BYTES = 8192, CHANNEL_WORLD_BUFS = 64,
	CHANNEL_WORLD_CHUNKS = 128, CHANNEL_WORLD_SUBTASKS = 3 };

struct channel_world {
	struct channel_state_executor_config config;
	struct fault_store disk;
	struct store *inner;
	struct buf_pool *pool;
	void *memory;
	struct channel_state_writer *writers[CHANNEL_WORLD_SUBTASKS];
	uint32_t writer_count;
	uint64_t now_ns;
	bool is_real; /* the inner store needs time of its own: a turn takes a bit of it */
};

void channel_world_init(struct channel_world *w, struct store *inner, const char *directory);
/* The same with other room for records that were partly read. */
void channel_world_init_sized(struct channel_world *w, struct store *inner, const char *directory,
		uint64_t staging_bytes);
/* In two steps: pool, disk and config, which may be changed; then subtasks of any kind. */
void channel_world_prepare(struct channel_world *w, struct store *inner, const char *directory,
		uint64_t staging_bytes);
void channel_world_add(struct channel_world *w, const struct channel_state_subtask *subtasks,
		uint32_t count);
/* Every buffer must be back; destroys the inner store. */
void channel_world_free(struct channel_world *w);

/* A buffer of `size` bytes that begin with `seed` and count up; one record starts at its front. */
struct buf *channel_world_buf(struct channel_world *w, uint32_t size, uint8_t seed);

/* Steps until writer `i` is done with the checkpoint, a millisecond each; fails the test after a
 * few thousand. */
void channel_world_finish(struct channel_world *w, uint32_t i, int64_t checkpoint_id);
/* `turns` steps, a millisecond each. */
void channel_world_step(struct channel_world *w, uint32_t turns);
void channel_world_finish_all(struct channel_world *w, int64_t checkpoint_id);
void channel_world_start_all(struct channel_world *w, int64_t checkpoint_id);

/* Buffers of the pool that are out. */
uint32_t channel_world_used(const struct channel_world *w);
