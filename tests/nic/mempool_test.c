/* The pool of buffers over the real EAL. */

#include "nic/mempool.h"

#include "dataplane/wire/buf.h"
#include "nic/eal.h"
#include "tests/support/eal_fixture.h"

#include <criterion/criterion.h>

enum { BUFS = 4000, BURST = 200, ROUNDS = 100, BUF_BYTES = 1024 };

static struct mempool *make(void)
{
	char why[512];
	struct mempool *m = NULL;

	eal_fixture_start("0", mempool_memory_bytes(BUFS, BUF_BYTES, 1), NULL, 0);
	cr_assert_eq(mempool_create(&m, BUFS, BUF_BYTES, 1, why), 0, "%s", why);
	return m;
}

static uint32_t take(struct mempool *m, struct buf **bufs, uint32_t count)
{
	uint32_t got = 0;

	while (got < count && (bufs[got] = buf_alloc(mempool_bufs(m))) != NULL)
		got++;
	return got;
}

static void give(struct buf **bufs, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		buf_release(bufs[i]);
}

/* More than a lcore keeps for itself go out and come back, over and over. */
Test(mempool, hands_the_same_few_buffers_out_again, .timeout = 20)
{
	struct mempool *m = make();
	struct buf *bufs[BURST];
	uint32_t fresh = 0;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		cr_assert_eq(take(m, bufs, BURST), BURST);
		for (uint32_t i = 0; i < BURST; i++) {
			fresh += bufs[i]->data[0] != 0xa5;
			bufs[i]->data[0] = 0xa5;
		}
		give(bufs, BURST);
	}
	cr_assert_leq(fresh, 2 * BURST);
	mempool_destroy(m);
	eal_stop();
}

Test(mempool, has_all_that_were_asked_for_whatever_was_kept_before, .timeout = 20)
{
	static struct buf *bufs[BUFS];
	struct mempool *m = make();

	for (uint32_t round = 0; round < 3; round++) {
		cr_assert_eq(take(m, bufs, BUFS), BUFS);
		cr_assert_eq(buf_pool_used_count(mempool_bufs(m)), BUFS);
		give(bufs, BUFS);
		cr_assert_eq(buf_pool_used_count(mempool_bufs(m)), 0);
	}
	mempool_destroy(m);
	eal_stop();
}
