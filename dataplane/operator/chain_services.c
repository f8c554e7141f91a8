#include "dataplane/operator/chain_internal.h"

#include <errno.h>
#include <stdio.h>

#include "dataplane/base/check.h"
#include "dataplane/channel/pointer_queue.h"
#include "dataplane/operator/keyed_state.h"
#include "dataplane/operator/port_directory.h"

static const struct weir_info *service_info(struct weir_context *ctx)
{
	return &ctx->info;
}

static uint64_t service_now_ns(struct weir_context *ctx)
{
	return ctx->chain->now_ns;
}

static void service_fail(struct weir_context *ctx, const char *format, va_list args)
{
	struct chain *c = ctx->chain;

	if (c->has_failed)
		return;
	c->has_failed = true;
	int at = snprintf(c->failure, sizeof(c->failure), "operator %s: ", ctx->info.uid);
	vsnprintf(c->failure + at, sizeof(c->failure) - (size_t)at, format, args);
}

static void service_fail_for_good(struct weir_context *ctx, const char *format, va_list args)
{
	if (!ctx->chain->has_failed)
		ctx->chain->is_final = true;
	service_fail(ctx, format, args);
}

static void service_not_before(struct weir_context *ctx, uint64_t time_ns)
{
	struct chain *c = ctx->chain;

	if (c->not_before_ns == 0 || time_ns < c->not_before_ns)
		c->not_before_ns = time_ns;
}

static uint32_t service_room(struct weir_context *ctx)
{
	return chain_room_at(ctx->chain, ctx->index + 1);
}

static uint32_t service_collect(struct weir_context *ctx, const struct weir_batch *batch)
{
	uint32_t taken = chain_hand_over(ctx->chain, ctx->index + 1, batch);

	ctx->counters[CHAIN_RECORDS_OUT] += taken;
	return taken;
}

static void service_emit_watermark(struct weir_context *ctx, int64_t watermark)
{
	if (watermark > ctx->watermark_done)
		ctx->watermark_done = watermark;
	chain_offer_watermark(ctx->chain, ctx->index + 1, ctx->watermark_done);
	(void)chain_advance(ctx->chain);
}

static struct chain_slot *slot(struct weir_context *ctx, uint32_t state, enum weir_state_kind kind)
{
	CHECK(state < ctx->declaration.state_count);
	CHECK(ctx->slots[state].declared.kind == kind);
	return &ctx->slots[state];
}

static void *service_value(struct weir_context *ctx, uint32_t state)
{
	return slot(ctx, state, WEIR_STATE_VALUE)->memory;
}

static uint32_t service_list_count(struct weir_context *ctx, uint32_t state)
{
	return slot(ctx, state, WEIR_STATE_LIST)->list_count;
}

static void *service_list_at(struct weir_context *ctx, uint32_t state, uint32_t index)
{
	struct chain_slot *s = slot(ctx, state, WEIR_STATE_LIST);

	CHECK(index < s->list_count);
	return (uint8_t *)s->memory + (size_t)index * s->declared.value_bytes;
}

static bool service_list_add(struct weir_context *ctx, uint32_t state, const void *item)
{
	struct chain_slot *s = slot(ctx, state, WEIR_STATE_LIST);
	size_t bytes = s->declared.value_bytes;

	if (s->list_count == s->declared.capacity)
		return false;
	memcpy((uint8_t *)s->memory + s->list_count * bytes, item, bytes);
	s->list_count++;
	return true;
}

static void service_list_remove(struct weir_context *ctx, uint32_t state, uint32_t index)
{
	struct chain_slot *s = slot(ctx, state, WEIR_STATE_LIST);
	size_t bytes = s->declared.value_bytes;
	uint8_t *at = (uint8_t *)s->memory + index * bytes;

	CHECK(index < s->list_count);
	memmove(at, at + bytes, (s->list_count - index - 1) * bytes);
	s->list_count--;
}

static bool service_keyed_put(struct weir_context *ctx, uint32_t state, const void *keys,
		uint32_t stride, uint32_t count, void **values)
{
	struct chain_slot *s = slot(ctx, state, WEIR_STATE_KEYED);

	if (__builtin_expect(keyed_state_put_batch(s->keyed, keys, stride, count, values), 1))
		return true;
	if (keyed_state_error(s->keyed) == -EDOM)
		weir_fail_for_good(ctx,
				"state %s got a key of another subtask: the edge in front must "
				"partition by that key (hash)",
				s->declared.name);
	else
		weir_fail_for_good(ctx,
				"state %s is full: it holds %llu entries and needs more; raise the "
				"operator's capacity (and taskmanager.memory.managed.size)",
				s->declared.name, (unsigned long long)s->declared.capacity);
	return false;
}

static void service_keyed_get(struct weir_context *ctx, uint32_t state, const void *keys,
		uint32_t stride, uint32_t count, const void **values)
{
	keyed_state_get_batch(slot(ctx, state, WEIR_STATE_KEYED)->keyed, keys, stride, count,
			values);
}

static bool service_keyed_next(struct weir_context *ctx, uint32_t state, uint64_t *cursor,
		const void **key, const void **value)
{
	return keyed_state_next(slot(ctx, state, WEIR_STATE_KEYED)->keyed, cursor, key, value);
}

static void service_keyed_remove(struct weir_context *ctx, uint32_t state, uint64_t *cursor)
{
	keyed_state_remove(slot(ctx, state, WEIR_STATE_KEYED)->keyed, cursor);
}

static uint64_t service_keyed_count(struct weir_context *ctx, uint32_t state)
{
	return keyed_state_count(slot(ctx, state, WEIR_STATE_KEYED)->keyed);
}

static uint64_t *service_counter(struct weir_context *ctx, uint32_t index)
{
	CHECK(index < ctx->declaration.counter_count);
	return &ctx->counters[CHAIN_OWN_COUNTERS + index];
}

static bool service_file_open(struct weir_context *ctx, const char *path, weir_file *file)
{
	struct file_port *port = ctx->chain->config.files;

	return port->open(port, path, file);
}

static bool service_file_write(
		struct weir_context *ctx, weir_file file, const void *data, size_t bytes)
{
	struct file_port *port = ctx->chain->config.files;

	CHECK(bytes <= WEIR_FILE_WRITE_MAX);
	return port->write(port, file, data, bytes);
}

static void service_file_close(struct weir_context *ctx, weir_file file)
{
	struct file_port *port = ctx->chain->config.files;

	port->close(port, file);
}

static bool service_file_publish(
		struct weir_context *ctx, const char *from, const char *to, uint64_t tag)
{
	struct file_port *port = ctx->chain->config.files;

	return port->publish(port, ctx->index, from, to, tag);
}

static struct weir_queue *service_queue_create(struct weir_context *ctx, uint32_t slots)
{
	(void)ctx;
	return (struct weir_queue *)pointer_queue_create(slots);
}

static void service_queue_destroy(struct weir_queue *queue)
{
	pointer_queue_destroy((struct pointer_queue *)queue);
}

static bool service_queue_push(struct weir_queue *queue, void *item)
{
	return pointer_queue_push((struct pointer_queue *)queue, item);
}

static void *service_queue_pop(struct weir_queue *queue)
{
	return pointer_queue_pop((struct pointer_queue *)queue);
}

static void service_send_event(struct weir_context *ctx, const void *data, uint32_t bytes)
{
	struct event_port *port = ctx->chain->config.events;

	port->send(port, ctx->index, data, bytes);
}

static struct weir_packet_port *service_port_acquire(struct weir_context *ctx, const char *name,
		enum weir_port_use use, char error[WEIR_ERROR_BYTES])
{
	struct port_directory *ports = ctx->chain->config.ports;

	if (ports != NULL)
		return ports->acquire(ports, name, ctx->info.subtask_index, use, error);
	snprintf(error, WEIR_ERROR_BYTES, "weir.nic.ports names no port, so there is no %.64s",
			name);
	return NULL;
}

static void service_port_release(
		struct weir_context *ctx, struct weir_packet_port *port, enum weir_port_use use)
{
	struct port_directory *ports = ctx->chain->config.ports;

	ports->release(ports, port, use);
}

static struct weir_journal *service_journal_open(struct weir_context *ctx,
		const struct weir_journal_config *config, bool *is_final,
		char error[WEIR_ERROR_BYTES])
{
	struct journal_port *port = ctx->chain->config.journals;

	if (port != NULL)
		return port->open(port, config, is_final, error);
	*is_final = true;
	snprintf(error, WEIR_ERROR_BYTES, "there are no journals here");
	return NULL;
}

static void service_journal_close(struct weir_context *ctx, struct weir_journal *journal)
{
	struct journal_port *port = ctx->chain->config.journals;

	port->close(port, journal);
}

const struct weir_services chain_services = {
	.abi_version = WEIR_ABI_VERSION,
	.size = sizeof(struct weir_services),
	.info = service_info,
	.now_ns = service_now_ns,
	.fail = service_fail,
	.not_before = service_not_before,
	.room = service_room,
	.collect = service_collect,
	.emit_watermark = service_emit_watermark,
	.value = service_value,
	.list_count = service_list_count,
	.list_at = service_list_at,
	.list_add = service_list_add,
	.list_remove = service_list_remove,
	.keyed_put = service_keyed_put,
	.keyed_get = service_keyed_get,
	.keyed_next = service_keyed_next,
	.keyed_remove = service_keyed_remove,
	.keyed_count = service_keyed_count,
	.counter = service_counter,
	.file_open = service_file_open,
	.file_write = service_file_write,
	.file_close = service_file_close,
	.file_publish = service_file_publish,
	.queue_create = service_queue_create,
	.queue_destroy = service_queue_destroy,
	.queue_push = service_queue_push,
	.queue_pop = service_queue_pop,
	.send_event = service_send_event,
	.fail_for_good = service_fail_for_good,
	.port_acquire = service_port_acquire,
	.port_release = service_port_release,
	.journal_open = service_journal_open,
	.journal_close = service_journal_close,
};
