#include "dataplane/channel/partitioner.h"

#include "dataplane/base/key_group.h"
#include "dataplane/base/prng.h"

#include <criterion/criterion.h>
#include <errno.h>

static void check(uint32_t record_bytes, uint32_t key_offset, uint32_t key_bytes, uint32_t groups,
		uint32_t channels)
{
	struct partitioner_config config = {
			PARTITIONER_HASH, channels, groups, key_offset, key_bytes, 0};
	struct weir_batch batch = {.count = 200, .record_bytes = record_bytes};
	static uint8_t data[200 * 400];
	struct partitioner p;
	uint16_t targets[200];
	struct prng random;

	prng_seed(&random, record_bytes + key_bytes);
	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)prng_next(&random);
	batch.data = data;
	cr_assert_eq(partitioner_init(&p, &config), 0);
	partitioner_targets(&p, &batch, targets);
	for (uint32_t i = 0; i < batch.count; i++) {
		uint64_t hash = key_hash(data + i * record_bytes + key_offset, key_bytes);

		cr_assert_eq(targets[i],
				key_group_subtask(key_group_of(hash, groups), groups, channels));
	}
}

Test(partitioner, records_follow_the_key_group_of_their_key_whatever_its_size_and_place)
{
	check(16, 0, 8, 128, 2);
	check(16, 8, 8, 128, 3);
	check(24, 16, 8, 4096, 7);
	check(40, 3, 37, 64, 5);
	check(13, 1, 4, 16, 16);
	check(400, 100, KEY_BYTES_MAX, 128, 8);
	check(16, 0, 8, 1, 1);
}

Test(partitioner, what_cannot_be_routed_is_refused)
{
	const struct partitioner_config good = {PARTITIONER_HASH, 4, 128, 0, 8, 0};
	struct partitioner_config c;
	struct partitioner p;

	cr_assert_eq(partitioner_init(&p, &good), 0);
	c = good, c.key_group_count = 100;
	cr_assert_eq(partitioner_init(&p, &c), -EINVAL);
	c = good, c.key_group_count = 2;
	cr_assert_eq(partitioner_init(&p, &c), -EINVAL);
	c = good, c.key_bytes = 0;
	cr_assert_eq(partitioner_init(&p, &c), -EINVAL);
	c = good, c.key_bytes = KEY_BYTES_MAX + 1;
	cr_assert_eq(partitioner_init(&p, &c), -EINVAL);
	c = good, c.channel_count = 0;
	cr_assert_eq(partitioner_init(&p, &c), -EINVAL);
	c = good, c.kind = PARTITIONER_FORWARD;
	cr_assert_eq(partitioner_init(&p, &c), -EINVAL);
	c = good, c.kind = PARTITIONER_REBALANCE, c.channel_count = 0;
	cr_assert_eq(partitioner_init(&p, &c), -EINVAL);
	c = good, c.kind = PARTITIONER_BROADCAST, c.channel_count = CHANNELS_PER_GATE_MAX + 1;
	cr_assert_eq(partitioner_init(&p, &c), -EINVAL);
}

static void expect_turns(struct partitioner *p, uint32_t count, uint32_t first)
{
	uint8_t data[64 * 4] = {0};
	struct weir_batch batch = {data, count, 4, count * 4};
	uint16_t targets[64];

	partitioner_targets(p, &batch, targets);
	for (uint32_t i = 0; i < count; i++)
		cr_assert_eq(targets[i], (first + i) % p->channel_count);
}

Test(partitioner, records_are_dealt_out_in_turn_from_batch_to_batch)
{
	struct partitioner_config config = {
			.kind = PARTITIONER_REBALANCE, .channel_count = 3, .first_turn = 301};
	struct partitioner p;

	cr_assert_eq(partitioner_init(&p, &config), 0);
	expect_turns(&p, 4, 1);
	expect_turns(&p, 1, 2);
	expect_turns(&p, 64, 0);
	expect_turns(&p, 2, 1);
}
