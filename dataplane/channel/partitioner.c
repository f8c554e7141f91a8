#include "dataplane/channel/partitioner.h"

#include "dataplane/base/check.h"
#include "dataplane/base/key_group.h"

#include <errno.h>

static int init_hash(struct partitioner *p, const struct partitioner_config *config)
{
	uint32_t groups = config->key_group_count;

	if (groups == 0 || groups > KEY_GROUPS_COUNT_MAX || (groups & (groups - 1)) != 0 ||
			config->channel_count > groups)
		return -EINVAL;
	if (config->key_bytes == 0 || config->key_bytes > KEY_BYTES_MAX ||
			config->key_offset > BUF_BYTES_MAX)
		return -EINVAL;
	p->key_offset = config->key_offset;
	p->key_bytes = config->key_bytes;
	p->key_group_count = groups;
	for (uint32_t group = 0; group < groups; group++)
		p->channel_of_group[group] =
				(uint16_t)key_group_subtask(group, groups, config->channel_count);
	return 0;
}

int partitioner_init(struct partitioner *p, const struct partitioner_config *config)
{
	*p = (struct partitioner){.kind = config->kind, .channel_count = config->channel_count};
	if (config->channel_count == 0 || config->channel_count > CHANNELS_PER_GATE_MAX)
		return -EINVAL;
	switch (config->kind) {
	case PARTITIONER_FORWARD:
		return config->channel_count == 1 ? 0 : -EINVAL;
	case PARTITIONER_HASH:
		return init_hash(p, config);
	case PARTITIONER_REBALANCE:
		p->turn = config->first_turn % config->channel_count;
		return 0;
	case PARTITIONER_BROADCAST:
		return 0;
	}
	return -EINVAL;
}

static inline uint16_t channel_of(const struct partitioner *p, const void *key, uint32_t key_bytes)
{
	return p->channel_of_group[key_group_of(key_hash(key, key_bytes), p->key_group_count)];
}

/* Called with constants, so that hash and stride are folded. */
__attribute__((always_inline)) static inline void decide(const struct partitioner *p,
		const struct weir_batch *batch, uint32_t stride, uint32_t key_bytes,
		uint16_t *targets)
{
	const uint8_t *key = batch->data + p->key_offset;

	for (uint32_t i = 0; i < batch->count; i++)
		targets[i] = channel_of(p, key + (size_t)i * stride, key_bytes);
}

static void decide_variable(
		const struct partitioner *p, const struct weir_batch *batch, uint16_t *targets)
{
	const uint8_t *at = batch->data;

	for (uint32_t i = 0; i < batch->count; i++) {
		uint8_t padded[KEY_BYTES_MAX];
		uint32_t bytes;
		const uint8_t *record = weir_record_at(at, &bytes);
		const uint8_t *key = record + p->key_offset;

		if (bytes < p->key_offset + p->key_bytes) {
			memset(padded, 0, p->key_bytes);
			if (bytes > p->key_offset)
				memcpy(padded, key, bytes - p->key_offset);
			key = padded;
		}
		targets[i] = channel_of(p, key, p->key_bytes);
		at = record + bytes;
	}
}

static void deal(struct partitioner *p, uint32_t count, uint16_t *targets)
{
	uint32_t turn = p->turn;

	for (uint32_t i = 0; i < count; i++) {
		targets[i] = (uint16_t)turn;
		turn = turn + 1 < p->channel_count ? turn + 1 : 0;
	}
	p->turn = turn;
}

void partitioner_targets(
		struct partitioner *p, const struct weir_batch *batch, uint16_t *targets)
{
	DCHECK(!partitioner_is_broadcast(p));
	if (partitioner_is_single(p))
		memset(targets, 0, batch->count * sizeof(*targets));
	else if (p->kind == PARTITIONER_REBALANCE)
		deal(p, batch->count, targets);
	else if (batch->record_bytes == 0)
		decide_variable(p, batch, targets);
	else if (batch->record_bytes == 16 && p->key_bytes == 8)
		decide(p, batch, 16, 8, targets);
	else if (p->key_bytes == 8)
		decide(p, batch, batch->record_bytes, 8, targets);
	else
		decide(p, batch, batch->record_bytes, p->key_bytes, targets);
}
