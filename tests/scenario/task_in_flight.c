/* The channel-state writer of a task under script, and what it has been given: read back from where
 * it is now, the buffer or the file. */

#include "tests/scenario/task_parts.h"

#include "dataplane/base/check.h"
#include "dataplane/base/ids.h"
#include "dataplane/channel/ring_channel.h"
#include "dataplane/checkpoint/barrier_handler.h"
#include "dataplane/checkpoint/channel_state_executor.h"
#include "dataplane/checkpoint/channel_state_writer.h"
#include "tests/sim/mem_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const struct attempt_id attempt = {{{0x77}}};

static struct channel_state_subtask subtask_of(const struct task_world *w)
{
	struct channel_state_subtask s = {
			.vertex_uid = "recording",
			.input_count = w->settings.gate_count,
			.output_count = w->settings.output_count > 0,
			.output_channels = {w->settings.output_count},
	};

	for (uint32_t g = 0; g < w->settings.gate_count; g++)
		s.input_channels[g] = w->settings.gate_channels[g];
	return s;
}

bool task_in_flight_create(struct task_world *w)
{
	uint32_t channels = w->settings.channel_count + w->settings.output_count;
	struct channel_state_subtask subtask = subtask_of(w);
	struct channel_state_executor_config config = {
			.store = w->channel_store,
			.checkpoint_dir = "checkpoints",
			.attempt = attempt,
			.subtask_count = 1,
			.channel_count = channels,
			.buf_count = (channels + 1) * CHANNEL_BUFFERS_MAX,
			.issued_in_max = LINE_CREDIT_COUNT,
			.issued_out_max = LINE_CREDIT_COUNT,
			.staging_bytes = WORLD_STAGING_BYTES,
			.patience_ns = INT64_MAX, /* a script waits as long as it likes */
			.has_direct = true,
	};

	w->channel_memory = aligned_alloc(
			STORE_ALIGN_BYTES, channel_state_executor_memory_bytes(&config));
	if (w->channel_memory == NULL)
		return false;
	w->channel_state = channel_state_executor_add(
			channel_state_executor_create_at(w->channel_memory, &config), &subtask);
	return true;
}

/* ---- what was given ---- */

struct look {
	struct task_world *w;
	int64_t id;
	bool is_output;
	uint32_t channel; /* numbered through all gates */
	uint32_t index;   /* of the buffer in its channel */
};

static bool is_known(const struct look *l)
{
	for (uint32_t i = 0; i < l->w->in_flight_count; i++) {
		const struct in_flight *f = &l->w->in_flight[i];

		if (f->id == l->id && f->is_output == l->is_output && f->channel == l->channel &&
				f->index == l->index)
			return true;
	}
	return false;
}

static const uint8_t *bytes_in_file(const struct look *l, uint64_t offset, uint32_t size)
{
	char path[128], text[ID128_TEXT_BYTES];
	size_t file_bytes;

	id128_print(attempt.id, text);
	snprintf(path, sizeof(path), "checkpoints/chk-%" PRId64 "/channels-recording-0-%.8s",
			l->id, text);
	const uint8_t *file = mem_store_file(l->w->memory, path, &file_bytes);
	CHECK(file != NULL && offset + size <= file_bytes);
	return file + offset;
}

static void see(void *context, const uint8_t *bytes, uint64_t offset, uint32_t size)
{
	struct look *l = context;
	struct task_world *w = l->w;

	if (!is_known(l)) {
		const uint8_t *at = bytes != NULL ? bytes : bytes_in_file(l, offset, size);
		uint32_t skip = l->is_output ? sizeof(uint64_t) : 0;
		struct in_flight f = {l->id, l->is_output, l->channel, l->index,
				task_label_read(at + skip, size - skip)};

		w->in_flight = reallocarray(
				w->in_flight, w->in_flight_count + 1, sizeof(w->in_flight[0]));
		CHECK(w->in_flight != NULL);
		w->in_flight[w->in_flight_count++] = f;
		if (f.label != 0)
			scenario_trace(w->s, "    in flight %" PRId64 ", %s %u: %s", f.id,
					f.is_output ? "output" : "channel", f.channel,
					task_world_label_text(w, f.label));
	}
	l->index++;
}

static void look_at(struct task_world *w, int64_t id)
{
	struct look l = {.w = w, .id = id};

	if (!channel_state_writer_has(w->channel_state, id))
		return;
	for (uint32_t g = 0; g < w->settings.gate_count; g++) {
		for (uint32_t c = 0; c < w->settings.gate_channels[g]; c++) {
			l.channel = w->first_channel[g] + c;
			l.index = 0;
			channel_state_writer_visit(w->channel_state, id, CHANNEL_STATE_INPUT,
					(struct channel_info){g, c}, see, &l);
		}
	}
	l.is_output = true;
	for (uint32_t o = 0; o < w->settings.output_count; o++) {
		l.channel = o;
		l.index = 0;
		channel_state_writer_visit(w->channel_state, id, CHANNEL_STATE_OUTPUT,
				(struct channel_info){0, o}, see, &l);
	}
}

void task_in_flight_look(struct task_world *w)
{
	struct barrier_handler *h = stream_task_barrier_handler(w->task);
	int64_t current = h != NULL ? barrier_handler_current(h) : -1;
	int64_t performed = w->performed.count > 0 ? w->performed.at[w->performed.count - 1] : -1;

	if (current > 0)
		look_at(w, current);
	if (performed > 0 && performed != current)
		look_at(w, performed);
}

void task_in_flight_forget(struct task_world *w, int64_t id)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < w->in_flight_count; i++) {
		if (w->in_flight[i].id != id)
			w->in_flight[kept++] = w->in_flight[i];
	}
	w->in_flight_count = kept;
}

/* The list is in the order in which things were seen: of one channel in its order. */
void task_in_flight_labels(
		struct task_world *w, int64_t id, bool is_output, struct scenario_text *labels)
{
	uint32_t channels = is_output ? w->settings.output_count : w->settings.channel_count;

	for (uint32_t c = 0; c < channels; c++) {
		for (uint32_t i = 0; i < w->in_flight_count; i++) {
			const struct in_flight *f = &w->in_flight[i];

			if (f->id == id && f->is_output == is_output && f->channel == c &&
					f->label != 0)
				scenario_text_add(labels, "%s",
						task_world_label_text(w, f->label));
		}
	}
}
