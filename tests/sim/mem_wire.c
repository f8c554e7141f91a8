#include "tests/sim/mem_wire.h"

#include "dataplane/base/check.h"
#include "dataplane/wire/buf.h"

#include <stdlib.h>
#include <string.h>

struct queue {
	uint32_t head, tail, room, frame_bytes;
	uint32_t *sizes;
	uint8_t *bytes; /* frame_bytes each */
};

struct mem_end {
	struct transport transport;
	struct mem_wire *wire;
	struct queue *out, *in;
	uint32_t limit, loaned_count;
};

struct mem_wire {
	struct queue queues[2];
	struct mem_end ends[2];
	uint64_t overflow_count;
};

static uint8_t *bytes_at(const struct queue *q, uint32_t index)
{
	return q->bytes + (size_t)(index % q->room) * q->frame_bytes;
}

static void put(struct mem_wire *w, struct queue *q, const struct frame_out *f)
{
	if (q->tail - q->head == q->room) {
		w->overflow_count++;
		return;
	}

	uint8_t *at = bytes_at(q, q->tail);
	CHECK(f->head_bytes + f->body_bytes <= q->frame_bytes);
	memcpy(at, f->head, f->head_bytes);
	if (f->body_bytes > 0)
		memcpy(at + f->head_bytes, f->body, f->body_bytes);
	q->sizes[q->tail % q->room] = f->head_bytes + f->body_bytes;
	q->tail++;
}

static uint32_t mem_send(struct transport *t, const struct frame_out *frames, uint32_t count)
{
	struct mem_end *end = (struct mem_end *)t;

	if (count > end->limit)
		count = end->limit;
	end->limit = UINT32_MAX;
	for (uint32_t i = 0; i < count; i++) {
		CHECK(frames[i].head_bytes + frames[i].body_bytes <= t->frame_bytes_max);
		put(end->wire, end->out, &frames[i]);
		if (frames[i].owner != NULL)
			buf_release(frames[i].owner);
	}
	return count;
}

static uint32_t mem_receive(struct transport *t, struct frame_in *frames, uint32_t count)
{
	struct mem_end *end = (struct mem_end *)t;
	struct queue *q = end->in;
	uint32_t given = 0;

	CHECK(end->loaned_count == 0);
	for (; given < count && q->head + given != q->tail; given++) {
		frames[given].buf = NULL;
		frames[given].bytes = bytes_at(q, q->head + given);
		frames[given].size = q->sizes[(q->head + given) % q->room];
	}
	end->loaned_count = given;
	return given;
}

static void mem_release(struct transport *t, const struct frame_in *frames, uint32_t count)
{
	struct mem_end *end = (struct mem_end *)t;

	(void)frames;
	CHECK(count == end->loaned_count);
	end->in->head += count;
	end->loaned_count = 0;
}

static void mem_reclaim(struct transport *t, uint64_t now_ns)
{
	(void)t;
	(void)now_ns;
}

struct mem_wire *mem_wire_create(uint32_t room, uint32_t frame_bytes_max)
{
	struct mem_wire *w = calloc(1, sizeof(*w));

	CHECK(w != NULL);
	for (int i = 0; i < 2; i++) {
		struct queue *q = &w->queues[i];

		q->room = room;
		q->frame_bytes = frame_bytes_max;
		q->sizes = calloc(room, sizeof(q->sizes[0]));
		q->bytes = calloc(room, frame_bytes_max);
		CHECK(q->sizes != NULL && q->bytes != NULL);
		w->ends[i] = (struct mem_end){
				.transport = {.send = mem_send, .receive = mem_receive,
						.release = mem_release, .reclaim = mem_reclaim,
						.frame_bytes_max = frame_bytes_max},
				.wire = w,
				.out = &w->queues[i],
				.in = &w->queues[1 - i],
				.limit = UINT32_MAX,
		};
	}
	return w;
}

struct transport *mem_wire_end(struct mem_wire *w, int end)
{
	return &w->ends[end].transport;
}

void mem_wire_limit(struct mem_wire *w, int end, uint32_t count)
{
	w->ends[end].limit = count;
}

uint64_t mem_wire_overflow_count(const struct mem_wire *w)
{
	return w->overflow_count;
}

void mem_wire_destroy(struct mem_wire *w)
{
	for (int i = 0; i < 2; i++) {
		free(w->queues[i].sizes);
		free(w->queues[i].bytes);
	}
	free(w);
}
