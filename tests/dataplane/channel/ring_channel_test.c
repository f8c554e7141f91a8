#include "dataplane/channel/ring_channel.h"

#include "dataplane/wire/buf.h"

#include <criterion/criterion.h>
#include <errno.h>

Test(ring_channel, counts_out_of_bounds_are_refused)
{
	const struct channel_config bad[] = {
			{1, 4, false}, {2, 0, false}, {CHANNEL_BUFFERS_MAX, 1, false},
			{UINT32_MAX, 4, false}, {2, UINT32_MAX, false}};
	struct ring_channel *c;

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		cr_assert_eq(ring_channel_create(&c, &bad[i]), -EINVAL);
}

Test(ring_channel, credit_is_what_was_processed_and_the_window)
{
	const struct channel_config config = {2, CHANNEL_BUFFERS_MAX - 2, false};
	struct ring_channel *c;

	cr_assert_eq(ring_channel_create(&c, &config), 0);
	cr_assert_eq(ring_channel_credit(c), CHANNEL_BUFFERS_MAX - 2);
	ring_channel_grant(c, 100);
	cr_assert_eq(ring_channel_credit(c), 100 + CHANNEL_BUFFERS_MAX - 2);
	ring_channel_destroy(c);
}

Test(ring_channel, buffers_still_under_way_go_back_to_their_pool)
{
	const struct channel_config config = {2, 3, false};
	struct buf_pool *pool;
	struct ring_channel *c;
	struct buf *bufs[3];

	cr_assert_eq(buf_pool_from_heap(&pool, 256, 3), 0);
	cr_assert_eq(ring_channel_create(&c, &config), 0);
	for (uint32_t i = 0; i < 3; i++)
		bufs[i] = buf_alloc(pool);
	ring_channel_push(c, bufs, 3);
	ring_channel_destroy(c);
	cr_assert_eq(buf_pool_used_count(pool), 0);
	buf_pool_destroy(pool);
}

Test(ring_channel, events_come_out_as_they_went_in_and_a_full_lane_says_so)
{
	const struct channel_config config = {2, 3, false};
	struct event in[2 * CHANNEL_CONTROL_MAX] = {0}, out[2 * CHANNEL_CONTROL_MAX];
	struct ring_channel *c;

	cr_assert_eq(ring_channel_create(&c, &config), 0);
	for (uint32_t i = 0; i < 2 * CHANNEL_CONTROL_MAX; i++)
		in[i] = (struct event){.kind = EVENT_CANCEL, .checkpoint_id = i, .cut = ~0ull - i};

	uint32_t taken = ring_channel_announce(c, in, 2 * CHANNEL_CONTROL_MAX);
	cr_assert(taken > 0 && taken < 2 * CHANNEL_CONTROL_MAX);
	cr_assert_eq(ring_channel_announce(c, in, 1), 0);
	cr_assert_eq(ring_channel_take_events(c, out, 2 * CHANNEL_CONTROL_MAX), taken);
	cr_assert_eq(memcmp(in, out, taken * sizeof(*in)), 0);
	ring_channel_destroy(c);
}
