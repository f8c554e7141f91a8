#include "dataplane/operator/packet/capture_reader.h"

#include "dataplane/base/check.h"
#include "dataplane/base/log.h"
#include "dataplane/operator/packet/flow_record.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct capture_reader {
	struct capture_reader_config config;
	const struct weir_services *services;
	pthread_t thread;
	atomic_bool is_stopping;
	sem_t order_count;       /* 1 when `order` is to be read */
	sem_t empty_count;       /* chunks in `empty` */
	struct weir_queue *empty; /* worker -> reader */
	struct weir_queue *full;  /* reader -> worker */
	struct capture_order order;
	struct capture_chunk *chunks;
	/* of the thread alone */
	struct capture_order current;
	struct capture_chunk *chunk; /* being filled */
	struct capture_file *file;
	int64_t highest_ns, watermark_ns; /* of all packets read */
};

int64_t capture_watermark(int64_t highest_ns, int64_t out_of_orderness_ns)
{
	if (highest_ns == WEIR_WATERMARK_NONE)
		return WEIR_WATERMARK_NONE;
	if (highest_ns < INT64_MIN + 1 + out_of_orderness_ns)
		return INT64_MIN + 1;
	return highest_ns - out_of_orderness_ns;
}

/* ---- the thread -------------------------------------------------------------------------------
 */

/* Waits; false: the end has come. */
static bool wait_for(struct capture_reader *r, sem_t *s)
{
	while (sem_wait(s) != 0)
		CHECK(errno == EINTR);
	return !atomic_load_explicit(&r->is_stopping, memory_order_acquire);
}

/* Waits for a chunk to fill. */
static bool begin_chunk(struct capture_reader *r)
{
	if (!wait_for(r, &r->empty_count))
		return false;
	r->chunk = r->services->queue_pop(r->empty);
	CHECK(r->chunk != NULL);
	r->chunk->record_count = 0;
	r->chunk->record_bytes = 0;
	r->chunk->end = CAPTURE_GOES_ON;
	r->chunk->is_no_capture = false;
	r->chunk->text[0] = '\0';
	r->chunk->mark = (struct capture_mark){0};
	r->chunk->identity = (struct capture_identity){0};
	if (r->file != NULL) {
		r->chunk->mark = capture_file_mark(r->file);
		capture_file_identify(r->file, &r->chunk->identity);
	}
	return true;
}

static void end_chunk(struct capture_reader *r)
{
	bool fits = r->services->queue_push(r->full, r->chunk);

	CHECK(fits); /* it has a slot for each chunk */
	r->chunk = NULL;
}

/* How many packets surely fit into the chunk. */
static uint32_t room(const struct capture_reader *r)
{
	uint32_t record_bytes = sizeof(uint32_t) + sizeof(struct captured_packet) +
				r->config.snap_bytes;

	return (CHUNK_BYTES - r->chunk->record_bytes) / record_bytes;
}

static void append(void *user, const struct capture_packet *packet)
{
	struct capture_reader *r = user;
	struct capture_chunk *c = r->chunk;
	uint32_t kept = packet->captured_bytes < r->config.snap_bytes ? packet->captured_bytes
								      : r->config.snap_bytes;
	const struct captured_packet header = {
			.time_ns = packet->time_ns,
			.original_bytes = packet->original_bytes,
			.link_type = (uint16_t)packet->link_type,
			.is_late = packet->time_ns < r->watermark_ns,
	};

	c->record_bytes += captured_packet_put(
			c->records + c->record_bytes, &header, packet->bytes, kept);
	c->record_count++;
	if (packet->time_ns > r->highest_ns) {
		r->highest_ns = packet->time_ns;
		r->watermark_ns = capture_watermark(
				packet->time_ns, r->config.out_of_orderness_ns);
	}
}

/* Fills chunks to the end of the file; false: the end of the reader came first. */
static bool read_packets(struct capture_reader *r)
{
	enum capture_end end;

	do {
		if (room(r) == 0) {
			end_chunk(r);
			if (!begin_chunk(r))
				return false;
		}
		end = capture_file_read(r->file, room(r), append, r, r->chunk->text);
	} while (end == CAPTURE_GOES_ON);
	r->chunk->end = end;
	return true;
}

/* Opens the file at the position ordered.  0, or -errno with a text in `text`. */
static int open_file(struct capture_reader *r, char text[CAPTURE_TEXT_BYTES])
{
	const struct capture_order *o = &r->current;
	int rc = capture_file_open(&r->file, o->path, text);

	if (rc != 0)
		return rc;
	r->highest_ns = o->highest_ns;
	r->watermark_ns = capture_watermark(o->highest_ns, r->config.out_of_orderness_ns);
	if (o->identity.head_bytes != 0)
		rc = capture_file_check(r->file, &o->identity, text);
	if (rc == 0)
		rc = capture_file_seek(r->file, o->mark, text);
	if (rc == 0)
		rc = capture_file_skip(r->file, o->skip_count, text);
	return rc;
}

/* One file, from its opening to the chunk that ends it; false: the end of the reader came. */
static bool read_file(struct capture_reader *r)
{
	char text[CAPTURE_TEXT_BYTES];
	int rc = open_file(r, text);

	if (!begin_chunk(r))
		return false;
	if (rc != 0) {
		r->chunk->is_no_capture = rc == -EMEDIUMTYPE && r->current.is_one_of_many;
		r->chunk->end = r->chunk->is_no_capture ? CAPTURE_ENDED : CAPTURE_UNREADABLE;
		memcpy(r->chunk->text, text, sizeof(text));
	} else if (!read_packets(r)) {
		return false;
	}
	if (r->chunk->end == CAPTURE_WAS_CUT)
		log_warn("pcap-source", "%s; what is in front of it counts", r->chunk->text);
	if (r->chunk->is_no_capture)
		log_warn("pcap-source", "%s; passed over", r->chunk->text);
	end_chunk(r);
	return true;
}

static void *run(void *argument)
{
	struct capture_reader *r = argument;
	bool goes_on = true;

	while (goes_on && wait_for(r, &r->order_count)) {
		r->current = r->order;
		goes_on = read_file(r);
		capture_file_close(r->file);
		r->file = NULL;
	}
	return NULL;
}

/* ---- the owner --------------------------------------------------------------------------------
 */

static int start_thread(struct capture_reader *r)
{
	sigset_t all, before;

	/* Signals are for the threads of the program. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&r->thread, NULL, run, r);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		pthread_setname_np(r->thread, "weir-pcap");
	return -rc;
}

static void free_parts(struct capture_reader *r)
{
	if (r->empty != NULL)
		r->services->queue_destroy(r->empty);
	if (r->full != NULL)
		r->services->queue_destroy(r->full);
	sem_destroy(&r->order_count);
	sem_destroy(&r->empty_count);
	free(r->chunks);
	free(r);
}

int capture_reader_create(struct capture_reader **out, struct weir_context *ctx,
		const struct capture_reader_config *config)
{
	struct capture_reader *r = calloc(1, sizeof(*r));
	int rc = -ENOMEM;

	CHECK(sizeof(uint32_t) + sizeof(struct captured_packet) + config->snap_bytes <=
			CHUNK_BYTES);
	if (r == NULL)
		return -ENOMEM;
	r->config = *config;
	r->services = weir_services_of(ctx);
	sem_init(&r->order_count, 0, 0);
	sem_init(&r->empty_count, 0, CHUNK_COUNT);
	r->chunks = calloc(CHUNK_COUNT, sizeof(*r->chunks));
	r->empty = r->services->queue_create(ctx, 2 * CHUNK_COUNT);
	r->full = r->services->queue_create(ctx, 2 * CHUNK_COUNT);
	if (r->chunks != NULL && r->empty != NULL && r->full != NULL) {
		for (uint32_t i = 0; i < CHUNK_COUNT; i++)
			CHECK(r->services->queue_push(r->empty, &r->chunks[i]));
		rc = start_thread(r);
	}
	if (rc != 0) {
		free_parts(r);
		return rc;
	}
	*out = r;
	return 0;
}

void capture_reader_destroy(struct capture_reader *r)
{
	if (r == NULL)
		return;
	atomic_store_explicit(&r->is_stopping, true, memory_order_release);
	sem_post(&r->order_count);
	sem_post(&r->empty_count);
	pthread_join(r->thread, NULL);
	free_parts(r);
}

void capture_reader_order(struct capture_reader *r, const struct capture_order *order)
{
	r->order = *order;
	sem_post(&r->order_count);
}

const struct capture_chunk *capture_reader_take(struct capture_reader *r)
{
	return r->services->queue_pop(r->full);
}

void capture_reader_give_back(struct capture_reader *r, const struct capture_chunk *chunk)
{
	bool fits = r->services->queue_push(r->empty, &r->chunks[chunk - r->chunks]);

	CHECK(fits);
	sem_post(&r->empty_count);
}
