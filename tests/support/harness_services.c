#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"
#include "dataplane/operator/chain.h"
#include "tests/support/harness_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct harness *of(struct weir_context *ctx)
{
	return (struct harness *)(void *)ctx;
}

static const struct weir_info *info(struct weir_context *ctx)
{
	return &of(ctx)->info;
}

static uint64_t now_ns(struct weir_context *ctx)
{
	return of(ctx)->now_ns;
}

static void fail(struct weir_context *ctx, const char *format, va_list args)
{
	struct harness *h = of(ctx);

	if (!h->failed)
		vsnprintf(h->error, sizeof(h->error), format, args);
	h->failed = true;
}

static void not_before(struct weir_context *ctx, uint64_t time_ns)
{
	of(ctx)->not_before_ns = time_ns;
}

static uint32_t room(struct weir_context *ctx)
{
	return of(ctx)->room;
}

static size_t bytes_of(const struct weir_batch *batch, uint32_t count)
{
	size_t bytes = 0;

	if (batch->record_bytes != 0)
		return (size_t)count * batch->record_bytes;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t size;

		weir_record_at(batch->data + bytes, &size);
		bytes += sizeof(size) + size;
	}
	return bytes;
}

static uint32_t collect(struct weir_context *ctx, const struct weir_batch *batch)
{
	struct harness *h = of(ctx);
	uint32_t count = batch->count < h->room ? batch->count : h->room;
	size_t bytes = bytes_of(batch, count);

	CHECK(h->op->role != WEIR_SINK);
	CHECK(batch->record_bytes == h->declaration.out_record_bytes);
	CHECK(bytes_of(batch, batch->count) == batch->data_bytes);
	if (h->output_bytes + bytes > h->output_bytes_max) {
		h->output_bytes_max = 2 * (h->output_bytes + bytes);
		h->output = realloc(h->output, h->output_bytes_max);
		CHECK(h->output != NULL);
	}
	if (bytes > 0)
		memcpy(h->output + h->output_bytes, batch->data, bytes);
	h->output_bytes += bytes;
	h->output_count += count;
	h->room -= count;
	return count;
}

static void emit_watermark(struct weir_context *ctx, int64_t watermark)
{
	CHECK(of(ctx)->op->role == WEIR_SOURCE);
	CHECK(watermark >= of(ctx)->out_watermark);
	of(ctx)->out_watermark = watermark;
}

static struct harness_table *state_of(
		struct weir_context *ctx, uint32_t state, enum weir_state_kind kind)
{
	struct harness *h = of(ctx);

	CHECK(state < h->declaration.state_count);
	CHECK(h->states[state].declared.kind == kind);
	return &h->states[state];
}

static void *value(struct weir_context *ctx, uint32_t state)
{
	return state_of(ctx, state, WEIR_STATE_VALUE)->entries;
}

static uint32_t list_count(struct weir_context *ctx, uint32_t state)
{
	return (uint32_t)state_of(ctx, state, WEIR_STATE_LIST)->used;
}

static void *list_at(struct weir_context *ctx, uint32_t state, uint32_t index)
{
	return harness_list_at(state_of(ctx, state, WEIR_STATE_LIST), index);
}

static bool list_add(struct weir_context *ctx, uint32_t state, const void *item)
{
	return harness_list_add(state_of(ctx, state, WEIR_STATE_LIST), item);
}

static void list_remove(struct weir_context *ctx, uint32_t state, uint32_t index)
{
	harness_list_remove(state_of(ctx, state, WEIR_STATE_LIST), index);
}

static bool keyed_put(struct weir_context *ctx, uint32_t state, const void *keys, uint32_t stride,
		uint32_t count, void **values)
{
	struct harness_table *t = state_of(ctx, state, WEIR_STATE_KEYED);

	CHECK(count <= RECORDS_COUNT_MAX);
	for (uint32_t i = 0; i < count; i++) {
		values[i] = harness_keyed_find(t, (const uint8_t *)keys + (size_t)i * stride, true);
		if (values[i] == NULL) {
			weir_fail(ctx, "state %s is full", t->declared.name);
			return false;
		}
	}
	return true;
}

static void keyed_get(struct weir_context *ctx, uint32_t state, const void *keys, uint32_t stride,
		uint32_t count, const void **values)
{
	struct harness_table *t = state_of(ctx, state, WEIR_STATE_KEYED);

	for (uint32_t i = 0; i < count; i++)
		values[i] = harness_keyed_find(
				t, (const uint8_t *)keys + (size_t)i * stride, false);
}

static bool keyed_next(struct weir_context *ctx, uint32_t state, uint64_t *cursor, const void **key,
		const void **value_out)
{
	return harness_keyed_next(state_of(ctx, state, WEIR_STATE_KEYED), cursor, key, value_out);
}

static void keyed_remove(struct weir_context *ctx, uint32_t state, uint64_t *cursor)
{
	harness_keyed_remove(state_of(ctx, state, WEIR_STATE_KEYED), *cursor);
}

static uint64_t keyed_count(struct weir_context *ctx, uint32_t state)
{
	return state_of(ctx, state, WEIR_STATE_KEYED)->live;
}

static uint64_t *counter(struct weir_context *ctx, uint32_t index)
{
	CHECK(index < of(ctx)->declaration.counter_count);
	return &of(ctx)->counters[index];
}

/* ---- files ---------------------------------------------------------------------------------- */

static bool file_open(struct weir_context *ctx, const char *path, weir_file *file)
{
	struct harness *h = of(ctx);

	for (uint32_t i = 0; i < HARNESS_FILES_MAX; i++) {
		if (h->files[i] != 0)
			continue;
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (fd < 0)
			weir_fail(ctx, "%s: %s", path, strerror(errno));
		h->files[i] = fd + 1;
		*file = i;
		return fd >= 0;
	}
	return false;
}

static bool file_write(struct weir_context *ctx, weir_file file, const void *data, size_t bytes)
{
	struct harness *h = of(ctx);

	CHECK(file < HARNESS_FILES_MAX);
	CHECK(h->files[file] != 0);
	CHECK(bytes > 0);
	CHECK(bytes <= WEIR_FILE_WRITE_MAX);
	if (bytes > h->disk_bytes)
		return false;
	h->disk_bytes -= bytes;
	CHECK(write(h->files[file] - 1, data, bytes) == (ssize_t)bytes);
	return true;
}

static void file_close(struct weir_context *ctx, weir_file file)
{
	struct harness *h = of(ctx);

	CHECK(h->files[file] != 0);
	close(h->files[file] - 1);
	h->files[file] = 0;
}

static bool file_publish(struct weir_context *ctx, const char *from, const char *to, uint64_t tag)
{
	struct harness *h = of(ctx);

	if (h->publishes_left == 0)
		return false;
	h->publishes_left--;
	CHECK(h->publish_count < HARNESS_PUBLISHES_MAX);
	h->publishes[h->publish_count++] = (struct harness_publish){strdup(from), strdup(to), tag};
	return true;
}

uint32_t harness_run_publishes(struct harness *h, uint32_t count)
{
	uint32_t done = 0;

	while (done < count && h->publish_count > 0) {
		struct harness_publish p = h->publishes[0];
		int status = h->publish_status;

		if (status == 0 && rename(p.from, p.to) != 0)
			status = -errno;
		memmove(h->publishes, h->publishes + 1, --h->publish_count * sizeof(p));
		h->op->file_done(h->self, harness_context(h), p.tag, status);
		free(p.from);
		free(p.to);
		done++;
	}
	return done;
}

void harness_set_disk(struct harness *h, uint64_t bytes)
{
	h->disk_bytes = bytes;
}

void harness_set_publishes(struct harness *h, uint32_t count)
{
	h->publishes_left = count;
}

void harness_fail_publishes(struct harness *h, int status)
{
	h->publish_status = status;
}

void harness_files_forget(struct harness *h)
{
	for (uint32_t i = 0; i < HARNESS_FILES_MAX; i++) {
		if (h->files[i] > 0)
			close(h->files[i] - 1);
	}
	for (uint32_t i = 0; i < h->publish_count; i++) {
		free(h->publishes[i].from);
		free(h->publishes[i].to);
	}
}

/* ---- queues and events ------------------------------------------------------------------------
 */

struct weir_queue {
	uint32_t slots;
	_Atomic uint32_t head, tail; /* next to push, next to pop */
	void *items[];
};

static struct weir_queue *queue_create(struct weir_context *ctx, uint32_t slots)
{
	struct weir_queue *q = calloc(1, sizeof(*q) + slots * sizeof(q->items[0]));

	(void)ctx;
	CHECK(q != NULL);
	q->slots = slots;
	return q;
}

static void queue_destroy(struct weir_queue *q)
{
	free(q);
}

static bool queue_push(struct weir_queue *q, void *item)
{
	uint32_t head = atomic_load_explicit(&q->head, memory_order_relaxed);

	if (head - atomic_load_explicit(&q->tail, memory_order_acquire) == q->slots)
		return false;
	q->items[head % q->slots] = item;
	atomic_store_explicit(&q->head, head + 1, memory_order_release);
	return true;
}

static void *queue_pop(struct weir_queue *q)
{
	uint32_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);

	if (atomic_load_explicit(&q->head, memory_order_acquire) == tail)
		return NULL;
	void *item = q->items[tail % q->slots];
	atomic_store_explicit(&q->tail, tail + 1, memory_order_release);
	return item;
}

static void send_event(struct weir_context *ctx, const void *data, uint32_t bytes)
{
	struct harness *h = of(ctx);

	CHECK(bytes <= 4096);
	free(h->event);
	h->event = strndup(data, bytes);
	h->event_count++;
}

static struct weir_packet_port *port_acquire(struct weir_context *ctx, const char *name,
		enum weir_port_use use, char error[WEIR_ERROR_BYTES])
{
	struct harness *h = of(ctx);

	if (h->port == NULL) {
		snprintf(error, WEIR_ERROR_BYTES, "no port is named %s", name);
		return NULL;
	}
	h->port_use |= use;
	return h->port;
}

static void port_release(
		struct weir_context *ctx, struct weir_packet_port *port, enum weir_port_use use)
{
	struct harness *h = of(ctx);

	CHECK(port == h->port && (h->port_use & use) != 0);
	h->port_use &= ~(uint32_t)use;
}

static struct weir_journal *journal_open(struct weir_context *ctx,
		const struct weir_journal_config *config, bool *is_final,
		char error[WEIR_ERROR_BYTES])
{
	struct journal_port *journals = of(ctx)->journals;

	CHECK(journals != NULL);
	return journals->open(journals, config, is_final, error);
}

static void journal_close(struct weir_context *ctx, struct weir_journal *journal)
{
	struct journal_port *journals = of(ctx)->journals;

	journals->close(journals, journal);
}

const struct weir_services *harness_services(void)
{
	static const struct weir_services services = {WEIR_ABI_VERSION, sizeof(services), info,
			now_ns, fail, not_before, room, collect, emit_watermark, value, list_count,
			list_at, list_add, list_remove, keyed_put, keyed_get, keyed_next,
			keyed_remove, keyed_count, counter, file_open, file_write, file_close,
			file_publish, queue_create, queue_destroy, queue_push, queue_pop,
			send_event, fail, port_acquire, port_release, journal_open, journal_close};

	return &services;
}
