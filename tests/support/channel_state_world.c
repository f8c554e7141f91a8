#include "tests/support/channel_state_world.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

void channel_world_init(struct channel_world *w, struct store *inner, const char *directory)
{
	channel_world_init_sized(w, inner, directory, 16 * 4096);
}

void channel_world_prepare(struct channel_world *w, struct store *inner, const char *directory,
		uint64_t staging_bytes)
{
	*w = (struct channel_world){.inner = inner, .now_ns = 1000000};
	fault_store_init(&w->disk, inner);
	w->config = (struct channel_state_executor_config){
		.store = &w->disk.store,
		.checkpoint_dir = directory,
		.attempt = {{{0xab, 0xcd}}},
		.buf_count = CHANNEL_WORLD_CHUNKS,
		.issued_in_max = 4,
		.issued_out_max = 2,
		.staging_bytes = staging_bytes,
		.patience_ns = 100000000,
		.has_direct = true,
	};
	cr_assert_eq(buf_pool_from_heap(&w->pool, CHANNEL_WORLD_BUF_BYTES, CHANNEL_WORLD_BUFS), 0);
}

void channel_world_add(struct channel_world *w, const struct channel_state_subtask *subtasks,
		uint32_t count)
{
	w->writer_count = count;
	w->config.subtask_count = count;
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t g = 0; g < subtasks[i].input_count; g++)
			w->config.channel_count += subtasks[i].input_channels[g];
		for (uint32_t g = 0; g < subtasks[i].output_count; g++)
			w->config.channel_count += subtasks[i].output_channels[g];
	}
	uint64_t bytes = channel_state_executor_memory_bytes(&w->config);
	w->memory = aligned_alloc(4096, bytes);
	cr_assert_not_null(w->memory);
	struct channel_state_executor *e = channel_state_executor_create_at(w->memory, &w->config);
	for (uint32_t i = 0; i < count; i++)
		w->writers[i] = channel_state_executor_add(e, &subtasks[i]);
}

void channel_world_init_sized(struct channel_world *w, struct store *inner, const char *directory,
		uint64_t staging_bytes)
{
	static const struct channel_state_subtask subtasks[2] = {
		{"map", 3, 1, 1, {2}, {2}},
		{"sink", 0, 1, 0, {1}, {0}},
	};

	channel_world_prepare(w, inner, directory, staging_bytes);
	channel_world_add(w, subtasks, 2);
}

void channel_world_free(struct channel_world *w)
{
	for (uint32_t i = 0; i < w->writer_count; i++)
		channel_state_writer_close(w->writers[i]);
	for (uint32_t i = 0; i < 4000 && !channel_state_writer_is_idle(w->writers[0]); i++)
		channel_world_step(w, 1);
	for (uint32_t i = 0; i < w->writer_count; i++)
		cr_assert(channel_state_writer_is_idle(w->writers[i]));
	cr_assert_eq(channel_world_used(w), 0);
	buf_pool_destroy(w->pool);
	store_destroy(w->inner);
	free(w->memory);
}

struct buf *channel_world_buf(struct channel_world *w, uint32_t size, uint8_t seed)
{
	struct buf *b = buf_alloc(w->pool);

	cr_assert_not_null(b);
	memset(b->data, 0xee, b->capacity_bytes);
	for (uint32_t i = 0; i < size; i++)
		b->data[i] = (uint8_t)(seed + i);
	b->size_bytes = size;
	b->first_record = size > 0 ? 0 : BUF_NO_RECORD;
	b->watermark = seed;
	return b;
}

void channel_world_step(struct channel_world *w, uint32_t turns)
{
	for (uint32_t i = 0; i < turns; i++) {
		w->now_ns += w->is_real ? 100000 : 1000000;
		if (w->is_real)
			usleep(100);
		(void)channel_state_writer_step(w->writers[0], w->now_ns);
	}
}

void channel_world_finish(struct channel_world *w, uint32_t i, int64_t checkpoint_id)
{
	for (uint32_t n = 0; n < 4000; n++) {
		if (channel_state_writer_is_done(w->writers[i], checkpoint_id))
			return;
		channel_world_step(w, 1);
	}
	cr_assert_fail("checkpoint %lld is not done", (long long)checkpoint_id);
}

void channel_world_start_all(struct channel_world *w, int64_t checkpoint_id)
{
	struct checkpoint_options options = {.alignment = ALIGNMENT_UNALIGNED};

	for (uint32_t i = 0; i < w->writer_count; i++)
		cr_assert_eq(channel_state_writer_start(w->writers[i], checkpoint_id, &options), 0);
}

void channel_world_finish_all(struct channel_world *w, int64_t checkpoint_id)
{
	for (uint32_t i = 0; i < w->writer_count; i++) {
		channel_state_writer_finish_input(w->writers[i], checkpoint_id);
		channel_state_writer_finish_output(w->writers[i], checkpoint_id);
	}
}

uint32_t channel_world_used(const struct channel_world *w)
{
	return buf_pool_used_count(w->pool);
}
