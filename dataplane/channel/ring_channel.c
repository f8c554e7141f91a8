#include "dataplane/channel/ring_channel.h"

#include "dataplane/base/check.h"
#include "dataplane/base/lines.h"
#include "dataplane/wire/buf.h"

#include <errno.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>
#include <stdalign.h>
#include <stddef.h>

static_assert(sizeof(struct event) % 4 == 0, "the ring copies words");

struct ring_channel {
	/* the control thread writes, before either end runs */
	struct channel_config config;
	struct rte_ring *data;
	struct rte_ring *control;
	/* the receiver writes, the sender reads */
	alignas(LINE_BYTES) _Atomic uint64_t credit;
	_Atomic bool is_all_processed;
	/* the rings, each with a line for either side */
	alignas(LINE_BYTES) uint8_t memory[];
};
static_assert(offsetof(struct ring_channel, credit) == LINE_BYTES, "no shared line");

/* A ring holds one less than its slots. */
static uint32_t data_slots(const struct channel_config *config)
{
	return rte_align32pow2(config->credit_count + 1);
}

static size_t ring_bytes(uint32_t element_bytes, uint32_t slots)
{
	ssize_t bytes = rte_ring_get_memsize_elem(element_bytes, slots);

	CHECK(bytes > 0);
	return ((size_t)bytes + LINE_BYTES - 1) & ~(size_t)(LINE_BYTES - 1);
}

uint64_t ring_channel_memory_bytes(const struct channel_config *config)
{
	return sizeof(struct ring_channel) + ring_bytes(sizeof(struct buf *), data_slots(config)) +
			ring_bytes(sizeof(struct event), CHANNEL_CONTROL_MAX);
}

int ring_channel_create(struct ring_channel **out, const struct channel_config *config)
{
	if (config->queue_count < 2 || config->credit_count < 1 ||
			config->queue_count > CHANNEL_BUFFERS_MAX ||
			config->credit_count > CHANNEL_BUFFERS_MAX ||
			channel_buffers_max(config) > CHANNEL_BUFFERS_MAX)
		return -EINVAL;

	struct ring_channel *c = lines_alloc(ring_channel_memory_bytes(config));
	if (c == NULL)
		return -ENOMEM;

	const unsigned int single = RING_F_SP_ENQ | RING_F_SC_DEQ;
	c->config = *config;
	c->data = (struct rte_ring *)(void *)c->memory;
	c->control = (struct rte_ring *)(void *)(c->memory +
			ring_bytes(sizeof(struct buf *), data_slots(config)));
	CHECK(rte_ring_init(c->data, "data", data_slots(config), single) == 0);
	CHECK(rte_ring_init(c->control, "control", CHANNEL_CONTROL_MAX, single) == 0);
	atomic_init(&c->credit, config->credit_count);
	*out = c;
	return 0;
}

const struct channel_config *ring_channel_config(const struct ring_channel *c)
{
	return &c->config;
}

uint64_t ring_channel_credit(const struct ring_channel *c)
{
	return atomic_load_explicit(&c->credit, memory_order_acquire);
}

void ring_channel_push(struct ring_channel *c, struct buf *const *bufs, uint32_t count)
{
	CHECK(rte_ring_sp_enqueue_bulk_elem(
			      c->data, bufs, sizeof(struct buf *), count, NULL) == count);
}

uint32_t ring_channel_announce(struct ring_channel *c, const struct event *events, uint32_t count)
{
	return rte_ring_sp_enqueue_burst_elem(
			c->control, events, sizeof(struct event), count, NULL);
}

bool ring_channel_is_all_processed(const struct ring_channel *c)
{
	return atomic_load_explicit(&c->is_all_processed, memory_order_acquire);
}

uint32_t ring_channel_take(struct ring_channel *c, struct buf **bufs, uint32_t count)
{
	return rte_ring_sc_dequeue_burst_elem(c->data, bufs, sizeof(struct buf *), count, NULL);
}

uint32_t ring_channel_take_events(struct ring_channel *c, struct event *events, uint32_t count)
{
	return rte_ring_sc_dequeue_burst_elem(
			c->control, events, sizeof(struct event), count, NULL);
}

void ring_channel_grant(struct ring_channel *c, uint64_t processed_count)
{
	atomic_store_explicit(&c->credit, processed_count + c->config.credit_count,
			memory_order_release);
}

void ring_channel_all_processed(struct ring_channel *c)
{
	atomic_store_explicit(&c->is_all_processed, true, memory_order_release);
}

void ring_channel_destroy(struct ring_channel *c)
{
	struct buf *b;

	if (c == NULL)
		return;
	while (ring_channel_take(c, &b, 1) == 1)
		buf_release(b);
	free(c);
}
