#include "tests/support/operator_harness.h"

#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"
#include "tests/support/harness_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void resolve(struct harness *h, const struct param_text *params)
{
	uint32_t count = 0, culprit;

	while (params != NULL && params[count].name != NULL)
		count++;
	h->values = calloc(h->op->param_count + 1, sizeof(*h->values));
	CHECK(h->values != NULL);
	h->failed = params_resolve(h->op, params, count, h->values, &culprit, h->error) != 0;
}

static void lay_out(struct harness *h)
{
	struct weir_declaration *d = &h->declaration;

	CHECK(d->state_count <= WEIR_STATES_MAX);
	CHECK(d->counter_count <= WEIR_COUNTERS_MAX);
	for (uint32_t i = 0; i < d->state_count; i++)
		harness_table_init(&h->states[i], &d->states[i]);
	h->self = aligned_alloc(64, ((size_t)d->self_bytes + 64) / 64 * 64);
	CHECK(h->self != NULL);
	memset(h->self, 0, ((size_t)d->self_bytes + 64) / 64 * 64);
}

struct harness *harness_create(const struct harness_config *config)
{
	struct harness *h = calloc(1, sizeof(*h));

	CHECK(h != NULL);
	h->head.services = harness_services();
	h->op = config->op;
	h->room = RECORDS_COUNT_MAX;
	h->now_ns = 1000000000;
	h->disk_bytes = UINT64_MAX;
	h->publishes_left = UINT32_MAX;
	h->port = config->port;
	h->journals = config->journals;
	h->out_watermark = WEIR_WATERMARK_NONE;
	resolve(h, config->params);
	snprintf(h->attempt_id, sizeof(h->attempt_id), "%032llx",
			(unsigned long long)config->attempt);
	uint32_t parallelism = config->parallelism == 0 ? 1 : config->parallelism;
	h->info = (struct weir_info){
			.uid = config->uid == NULL ? "op" : config->uid,
			.job_id = "00000000000000000000000000000001",
			.attempt_id = h->attempt_id,
			.subtask_index = config->subtask_index,
			.parallelism = parallelism,
			.in_record_bytes = config->in_record_bytes,
			.checkpointing = !config->without_checkpoints,
			.values = h->values,
	};
	struct weir_setting setting = {h->info.uid, config->subtask_index, parallelism,
			config->in_record_bytes, h->values};
	if (!h->failed && h->op->declare(&setting, &h->declaration, h->error) != 0)
		h->failed = true;
	if (h->failed)
		return h;
	h->info.out_record_bytes = h->declaration.out_record_bytes;
	lay_out(h);
	return h;
}

void harness_destroy(struct harness *h)
{
	if (h->opened && h->op->close != NULL)
		h->op->close(h->self, harness_context(h));
	for (uint32_t i = 0; i < h->declaration.state_count; i++)
		harness_table_free(&h->states[i]);
	harness_files_forget(h);
	free(h->self);
	free(h->values);
	free(h->output);
	free(h->event);
	free(h);
}

struct harness_snapshot *harness_save(struct harness *h, int64_t checkpoint_id)
{
	struct harness_snapshot *s = calloc(1, sizeof(*s));

	CHECK(s != NULL);
	s->checkpoint_id = checkpoint_id;
	s->state_count = h->declaration.state_count;
	for (uint32_t i = 0; i < s->state_count; i++) {
		harness_table_init(&s->states[i], &h->declaration.states[i]);
		harness_table_copy(&s->states[i], &h->states[i]);
	}
	memcpy(s->counters, h->counters, sizeof(s->counters));
	return s;
}

void harness_restore(struct harness *h, const struct harness_snapshot *s)
{
	CHECK(!h->opened);
	CHECK(s->state_count == h->declaration.state_count);
	for (uint32_t i = 0; i < s->state_count; i++)
		harness_table_copy(&h->states[i], &s->states[i]);
	memcpy(h->counters, s->counters, sizeof(h->counters));
	h->info.restored_checkpoint_id = s->checkpoint_id;
}

void harness_snapshot_free(struct harness_snapshot *s)
{
	for (uint32_t i = 0; i < s->state_count; i++)
		harness_table_free(&s->states[i]);
	free(s);
}

int harness_open(struct harness *h)
{
	int rc = 0;

	if (h->failed)
		return -EINVAL;
	h->opened = true; /* close is called after a failed open too */
	if (h->op->open != NULL)
		rc = h->op->open(h->self, harness_context(h));
	CHECK((rc != 0) == h->failed);
	return rc;
}

enum weir_poll harness_poll(struct harness *h, uint32_t records_max)
{
	uint32_t before = h->output_count;
	uint32_t max = records_max < h->room ? records_max : h->room;

	CHECK(h->opened);
	CHECK(!h->failed);
	h->not_before_ns = 0;
	enum weir_poll result = h->op->poll(h->self, harness_context(h), max);
	CHECK(h->output_count - before <= max);
	return result;
}

uint32_t harness_process_bytes(
		struct harness *h, const void *records, uint32_t count, uint32_t data_bytes)
{
	uint32_t batch_count = count < h->room ? count : h->room;
	uint8_t *copy = malloc(data_bytes + 1);

	CHECK(h->opened);
	CHECK(!h->failed);
	CHECK(copy != NULL);
	h->not_before_ns = 0;
	memcpy(copy, records, data_bytes);
	if (h->op->role == WEIR_SINK)
		batch_count = count;
	if (batch_count > RECORDS_COUNT_MAX)
		batch_count = RECORDS_COUNT_MAX;
	struct weir_batch batch = {copy, batch_count, h->info.in_record_bytes, data_bytes};
	if (batch.record_bytes != 0)
		batch.data_bytes = batch_count * batch.record_bytes;
	uint32_t taken = h->op->process(h->self, harness_context(h), &batch);
	CHECK(taken <= batch_count);
	memset(copy, 0xdb, data_bytes);
	free(copy);
	return taken;
}

uint32_t harness_process(struct harness *h, const void *records, uint32_t count)
{
	CHECK(h->info.in_record_bytes > 0);
	return harness_process_bytes(h, records, count, count * h->info.in_record_bytes);
}

bool harness_watermark(struct harness *h, int64_t watermark)
{
	CHECK(h->opened);
	CHECK(!h->failed);
	return h->op->watermark == NULL ||
	       h->op->watermark(h->self, harness_context(h), watermark);
}

void harness_before_barrier(struct harness *h, int64_t checkpoint_id)
{
	CHECK(checkpoint_id > h->last_barrier);
	h->last_barrier = checkpoint_id;
	if (h->op->before_barrier != NULL)
		h->op->before_barrier(h->self, harness_context(h), checkpoint_id);
}

void harness_notify_complete(struct harness *h, int64_t checkpoint_id)
{
	if (h->op->notify_complete != NULL)
		h->op->notify_complete(h->self, harness_context(h), checkpoint_id);
}

void harness_event(struct harness *h, const char *text)
{
	/* Not a byte longer than the event, so that an overread shows. */
	char *exact = malloc(strlen(text) + 1);

	CHECK(exact != NULL);
	memcpy(exact, text, strlen(text) + 1);
	exact = realloc(exact, strlen(text) > 0 ? strlen(text) : 1);
	CHECK(exact != NULL);
	h->op->event(h->self, harness_context(h), exact, (uint32_t)strlen(text));
	free(exact);
}

bool harness_finish(struct harness *h)
{
	return h->op->finish == NULL || h->op->finish(h->self, harness_context(h));
}

bool harness_is_busy(struct harness *h)
{
	return h->op->is_busy != NULL && h->op->is_busy(h->self, harness_context(h));
}

enum { CALLS_MAX = 10000000 };

void harness_process_all(struct harness *h, const void *records, uint32_t count)
{
	const uint8_t *at = records;

	for (uint32_t done = 0, calls = 0; done < count && !h->failed; calls++) {
		CHECK(calls < CALLS_MAX);
		h->room = RECORDS_COUNT_MAX;
		done += harness_process(h, at + (size_t)done * h->info.in_record_bytes,
				count - done);
	}
}

void harness_watermark_all(struct harness *h, int64_t watermark)
{
	for (uint32_t calls = 0; !h->failed && !harness_watermark(h, watermark); calls++) {
		CHECK(calls < CALLS_MAX);
		h->room = RECORDS_COUNT_MAX;
	}
}

void harness_finish_all(struct harness *h)
{
	for (uint32_t calls = 0; !h->failed && !harness_finish(h); calls++) {
		CHECK(calls < CALLS_MAX);
		h->room = RECORDS_COUNT_MAX;
	}
}

void harness_set_room(struct harness *h, uint32_t records)
{
	CHECK(records <= RECORDS_COUNT_MAX);
	h->room = records;
}

void harness_set_now(struct harness *h, uint64_t now_ns)
{
	h->now_ns = now_ns;
}

const char *harness_error(const struct harness *h)
{
	return h->failed ? h->error : NULL;
}

const uint8_t *harness_output(const struct harness *h, uint32_t *count, size_t *bytes)
{
	*count = h->output_count;
	if (bytes != NULL)
		*bytes = h->output_bytes;
	return h->output;
}

void harness_clear_output(struct harness *h)
{
	h->output_count = 0;
	h->output_bytes = 0;
}

int64_t harness_out_watermark(const struct harness *h)
{
	return h->out_watermark;
}

uint64_t harness_not_before(const struct harness *h)
{
	return h->not_before_ns;
}

const char *harness_last_event(const struct harness *h)
{
	return h->event;
}

uint32_t harness_port_use(const struct harness *h)
{
	return h->port_use;
}

uint32_t harness_event_count(const struct harness *h)
{
	return h->event_count;
}

uint64_t harness_counter(const struct harness *h, const char *name)
{
	for (uint32_t i = 0; i < h->declaration.counter_count; i++) {
		if (strcmp(h->declaration.counters[i], name) == 0)
			return h->counters[i];
	}
	check_failed(name, __FILE__, __LINE__);
}

const struct weir_declaration *harness_declaration(const struct harness *h)
{
	return &h->declaration;
}

uint32_t harness_list_count(const struct harness *h, uint32_t state)
{
	return (uint32_t)h->states[state].used;
}

uint64_t harness_keyed_count(const struct harness *h, uint32_t state)
{
	return h->states[state].live;
}

void *harness_value(struct harness *h, uint32_t state)
{
	return h->states[state].entries;
}
