#include "tests/soak/soak_hooks.h"

#include "dataplane/base/check.h"
#include "dataplane/channel/input_gate.h"
#include "dataplane/checkpoint/channel_state_writer.h"
#include "dataplane/checkpoint/store_select.h"
#include "dataplane/task/worker.h"
#include "tests/soak/patient_store.h"

#include <errno.h>
#include <string.h>

enum { OPPORTUNITIES = 3, SWAP_BUFS_MAX = 256 };

static struct hooks {
	uint64_t disk_seed;
	uint32_t disk_delay_max;
	enum soak_mistake mistake;
	uint32_t opportunities;
	uint32_t worker_count;
	struct worker *workers[WORKERS_COUNT_MAX];
} hooks;

static const char *const names[SOAK_MISTAKES_COUNT] = {
		[SOAK_NO_MISTAKE] = "none",
		[SOAK_DROP_INPUT] = "drop-input",
		[SOAK_KEEP_TWICE] = "keep-twice",
		[SOAK_DROP_OUTPUT] = "drop-output",
		[SOAK_SWAP] = "swap",
		[SOAK_NO_BLOCK] = "no-block",
};

bool soak_mistake_parse(const char *word, enum soak_mistake *mistake)
{
	for (uint32_t i = 0; i < SOAK_MISTAKES_COUNT; i++) {
		if (strcmp(names[i], word) != 0)
			continue;
		*mistake = (enum soak_mistake)i;
		return true;
	}
	return false;
}

const char *soak_mistake_name(enum soak_mistake mistake)
{
	return names[mistake];
}

void soak_hooks_make(enum soak_mistake mistake)
{
	hooks.mistake = mistake;
}

void soak_hooks_set_disk(uint64_t seed, uint32_t delay_max)
{
	hooks.disk_seed = seed;
	hooks.disk_delay_max = delay_max;
}

struct worker *soak_hooks_worker(uint32_t index)
{
	CHECK(index < hooks.worker_count);
	return hooks.workers[index];
}

static bool is_due(enum soak_mistake mistake)
{
	return hooks.mistake == mistake && ++hooks.opportunities % OPPORTUNITIES == 0;
}

/* ---- what is called instead of the product's own ---- */

int __real_store_open(struct store **out, enum store_kind kind, char why[STORE_WHY_BYTES]);
int __wrap_store_open(struct store **out, enum store_kind kind, char why[STORE_WHY_BYTES]);

int __wrap_store_open(struct store **out, enum store_kind kind, char why[STORE_WHY_BYTES])
{
	int status = __real_store_open(out, kind, why);

	if (status != 0)
		return status;
	*out = patient_store_create(*out, hooks.disk_seed++, hooks.disk_delay_max);
	return *out == NULL ? -ENOMEM : 0;
}

int __real_worker_create(struct worker **out, const struct worker_config *config,
		char error[TASKMANAGER_ERROR_BYTES]);
int __wrap_worker_create(struct worker **out, const struct worker_config *config,
		char error[TASKMANAGER_ERROR_BYTES]);

int __wrap_worker_create(struct worker **out, const struct worker_config *config,
		char error[TASKMANAGER_ERROR_BYTES])
{
	int status = __real_worker_create(out, config, error);

	CHECK(hooks.worker_count < WORKERS_COUNT_MAX);
	if (status == 0)
		hooks.workers[hooks.worker_count++] = *out;
	return status;
}

void __real_channel_state_writer_add_input_data(struct channel_state_writer *w,
		int64_t checkpoint_id, struct channel_info at, struct buf *const *bufs,
		uint32_t count, uint32_t offset);
void __wrap_channel_state_writer_add_input_data(struct channel_state_writer *w,
		int64_t checkpoint_id, struct channel_info at, struct buf *const *bufs,
		uint32_t count, uint32_t offset);

void __wrap_channel_state_writer_add_input_data(struct channel_state_writer *w,
		int64_t checkpoint_id, struct channel_info at, struct buf *const *bufs,
		uint32_t count, uint32_t offset)
{
	if (is_due(SOAK_DROP_INPUT))
		return;
	__real_channel_state_writer_add_input_data(w, checkpoint_id, at, bufs, count, offset);
	if (is_due(SOAK_KEEP_TWICE))
		__real_channel_state_writer_add_input_data(
				w, checkpoint_id, at, bufs, count, offset);
}

void __real_channel_state_writer_add_output_data(struct channel_state_writer *w,
		int64_t checkpoint_id, struct channel_info at, struct buf *const *bufs,
		uint32_t count);
void __wrap_channel_state_writer_add_output_data(struct channel_state_writer *w,
		int64_t checkpoint_id, struct channel_info at, struct buf *const *bufs,
		uint32_t count);

void __wrap_channel_state_writer_add_output_data(struct channel_state_writer *w,
		int64_t checkpoint_id, struct channel_info at, struct buf *const *bufs,
		uint32_t count)
{
	if (count == 0 || !is_due(SOAK_DROP_OUTPUT))
		__real_channel_state_writer_add_output_data(w, checkpoint_id, at, bufs, count);
	else
		__real_channel_state_writer_add_output_data(
				w, checkpoint_id, at, bufs + 1, count - 1);
}

int __real_input_gate_restore(struct input_gate *g, uint32_t channel, struct buf *const *bufs,
		uint32_t count);
int __wrap_input_gate_restore(struct input_gate *g, uint32_t channel, struct buf *const *bufs,
		uint32_t count);

int __wrap_input_gate_restore(struct input_gate *g, uint32_t channel, struct buf *const *bufs,
		uint32_t count)
{
	struct buf *swapped[SWAP_BUFS_MAX];

	if (count < 2 || count > SWAP_BUFS_MAX || hooks.mistake != SOAK_SWAP)
		return __real_input_gate_restore(g, channel, bufs, count);
	memcpy(swapped, bufs, count * sizeof(bufs[0]));
	swapped[0] = bufs[1];
	swapped[1] = bufs[0];
	return __real_input_gate_restore(g, channel, swapped, count);
}

void __real_input_gate_block(struct input_gate *g, uint32_t channel);
void __wrap_input_gate_block(struct input_gate *g, uint32_t channel);

void __wrap_input_gate_block(struct input_gate *g, uint32_t channel)
{
	if (!is_due(SOAK_NO_BLOCK))
		__real_input_gate_block(g, channel);
}
