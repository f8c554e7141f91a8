#include "tests/support/chain_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct edge_config CHAIN_EDGE = {
		.producers = 1,
		.consumers = 1,
		.capacity_bytes = 64,
		.channel = {.queue_count = 2, .credit_count = 1},
		.record_bytes = 16,
		.flush_ns = OUTPUT_GATE_FLUSH_NEVER,
};

/* ---- the operator ---- */

static struct probe *probe_of(struct weir_context *ctx)
{
	return (struct probe *)(uintptr_t)weir_info(ctx)->values[0].integer;
}

static bool note(struct weir_context *ctx, const char *hook, int64_t number)
{
	struct probe *p = probe_of(ctx);
	size_t at = strlen(p->journal);

	snprintf(p->journal + at, JOURNAL_BYTES - at, "%s%s.%s", at == 0 ? "" : " ",
			weir_info(ctx)->uid, hook);
	at = strlen(p->journal);
	if (number >= 0)
		snprintf(p->journal + at, JOURNAL_BYTES - at, ":%" PRId64, number);
	if (p->fail_in == NULL || strcmp(p->fail_in, hook) != 0)
		return true;
	weir_fail(ctx, "failed in %s", hook);
	return false;
}

static int probe_declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	if (setting->in_record_bytes != 0 && setting->in_record_bytes != 16) {
		snprintf(error, WEIR_ERROR_BYTES, "records of %u bytes", setting->in_record_bytes);
		return -EINVAL;
	}
	d->self_bytes = 32;
	d->in_record_bytes = 16;
	d->out_record_bytes = 16;
	d->out_key_bytes = 8;
	d->state_count = 2;
	d->states[0] = (struct weir_state){
			.name = "sum", .kind = WEIR_STATE_VALUE, .value_bytes = 8, .version = 3};
	d->states[1] = (struct weir_state){.name = "seen",
			.kind = WEIR_STATE_LIST,
			.value_bytes = 8,
			.version = 1,
			.capacity = 4};
	d->counter_count = 1;
	d->counters[0] = "odd";
	return 0;
}

static int probe_open(void *self, struct weir_context *ctx)
{
	(void)self;
	(void)note(ctx, "open", -1);
	return probe_of(ctx)->open_status;
}

/* Makes records until there are `count` in all; true when that is so. */
static bool make(struct weir_context *ctx, uint32_t count)
{
	struct probe *p = probe_of(ctx);

	while (p->made < count && weir_room(ctx) > 0) {
		uint64_t record[2] = {0, 1000 + p->made};
		struct weir_batch batch = {(const uint8_t *)record, 1, 16, 16};

		cr_assert_eq(weir_collect(ctx, &batch), 1);
		p->made++;
	}
	if (p->made < count)
		return false;
	p->made = 0;
	return true;
}

static uint32_t probe_process(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	struct probe *p = probe_of(ctx);
	uint32_t copies = p->copies != 0 ? p->copies : 1, taken = 0;

	(void)self;
	p->calls++;
	if (p->fail_in != NULL && !note(ctx, "process", in->count))
		return 0;
	while (taken < in->count && (p->take_max == 0 || taken < p->take_max) &&
			(p->take_total == 0 || p->taken < p->take_total) &&
			(copies == 1 || weir_room(ctx) >= copies)) {
		struct weir_batch one = {in->data + 16 * taken, 1, 16, 16};
		uint64_t record[2];

		/* Room for as many as came in is the chain's promise. */
		if (weir_collect(ctx, &one) == 0)
			break;
		for (uint32_t i = 1; i < copies; i++)
			cr_assert_eq(weir_collect(ctx, &one), 1);
		memcpy(record, one.data, 16);
		*(uint64_t *)weir_value(ctx, 0) += record[1];
		*weir_counter(ctx, 0) += record[1] & 1;
		taken++;
		p->taken++;
	}
	if (taken == 0 && p->ask_not_before != 0)
		weir_not_before(ctx, p->ask_not_before);
	return taken;
}

static uint32_t probe_room(void *self, struct weir_context *ctx)
{
	const struct probe *p = probe_of(ctx);

	(void)self;
	/* One that names a time wants to be called, to name it. */
	if (p->take_total == 0 || p->ask_not_before != 0)
		return UINT32_MAX;
	return p->take_total - p->taken;
}

/* Records with values 1000, 1001 ... */
static enum weir_poll probe_poll(void *self, struct weir_context *ctx, uint32_t records_max)
{
	struct probe *p = probe_of(ctx);

	(void)self;
	if (p->fail_in != NULL && !note(ctx, "poll", -1))
		return WEIR_POLL_IDLE;
	if (p->poll_count == 0)
		return p->is_exhausted ? WEIR_POLL_END : WEIR_POLL_IDLE;
	for (uint32_t i = 0; i < records_max && p->poll_count > 0; i++) {
		uint64_t record[2] = {0, 1000 + p->made++};
		struct weir_batch batch = {(const uint8_t *)record, 1, 16, 16};

		cr_assert_eq(weir_collect(ctx, &batch), 1);
		p->poll_count--;
	}
	return WEIR_POLL_MORE;
}

static bool probe_watermark(void *self, struct weir_context *ctx, int64_t watermark)
{
	(void)self;
	return note(ctx, "watermark", watermark) && make(ctx, probe_of(ctx)->window_count);
}

static void probe_before_barrier(void *self, struct weir_context *ctx, int64_t id)
{
	(void)self;
	(void)note(ctx, "barrier", id);
}

static void probe_notify_complete(void *self, struct weir_context *ctx, int64_t id)
{
	(void)self;
	(void)note(ctx, "complete", id);
}

static void probe_notify_aborted(void *self, struct weir_context *ctx, int64_t id)
{
	(void)self;
	(void)note(ctx, "aborted", id);
}

static void probe_event(void *self, struct weir_context *ctx, const void *data, uint32_t bytes)
{
	(void)self;
	(void)data;
	(void)note(ctx, "event", bytes);
}

static void probe_file_done(void *self, struct weir_context *ctx, uint64_t tag, int status)
{
	(void)self;
	(void)status;
	(void)note(ctx, "file", (int64_t)tag);
}

static bool probe_finish(void *self, struct weir_context *ctx)
{
	struct probe *p = probe_of(ctx);

	(void)self;
	if (!note(ctx, "finish", -1))
		return true; /* a failed operator may say anything */
	if (p->finish_refusals > 0) {
		p->finish_refusals--;
		return false;
	}
	return make(ctx, p->finish_count);
}

static bool probe_is_busy(void *self, struct weir_context *ctx)
{
	(void)self;
	return probe_of(ctx)->is_busy;
}

static void probe_close(void *self, struct weir_context *ctx)
{
	(void)self;
	(void)note(ctx, "close", -1);
}

static const struct weir_operator PROBE = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "probe",
		.help = "writes down what is asked of it",
		.role = WEIR_TRANSFORM,
		.declare = probe_declare,
		.open = probe_open,
		.poll = probe_poll,
		.process = probe_process,
		.room = probe_room,
		.watermark = probe_watermark,
		.before_barrier = probe_before_barrier,
		.notify_complete = probe_notify_complete,
		.notify_aborted = probe_notify_aborted,
		.event = probe_event,
		.file_done = probe_file_done,
		.finish = probe_finish,
		.is_busy = probe_is_busy,
		.close = probe_close,
};

/* ---- the chain ---- */

void chain_fixture_init(struct chain_fixture *f, uint32_t count)
{
	memset(f, 0, sizeof(*f));
	f->count = count;
	for (uint32_t i = 0; i < count; i++) {
		f->probes[i].journal = f->journal;
		f->values[i].integer = (int64_t)(uintptr_t)&f->probes[i];
	}
}

void chain_fixture_open(struct chain_fixture *f, const struct edge_config *edge)
{
	static const char *const uids[PROBES_MAX] = {"a", "b", "c"};
	struct chain_operator_config operators[PROBES_MAX];
	char error[WEIR_ERROR_BYTES];

	if (edge != NULL) {
		f->has_edge = true;
		edge_open(&f->edge, edge);
		f->outputs[f->output_count++] = f->edge.out[0];
	}
	for (uint32_t i = 0; i < f->count; i++)
		operators[i] = (struct chain_operator_config){
				.op = f->op != NULL ? f->op : &PROBE,
				.uid = uids[i],
				.values = &f->values[i]};
	cr_assert_eq(chain_declare(operators, f->count, 0, 1, f->in_record_bytes, error), 0);
	struct chain_config config = {
			.operators = operators,
			.operator_count = f->count,
			.outputs = f->outputs,
			.output_count = f->output_count,
			.job_id = "job",
			.attempt_id = "attempt",
			.parallelism = 1,
			.group_count = 1,
			.snapshots_max = 1,
			.checkpointing = true,
	};
	uint64_t bytes = chain_memory_bytes(&config, error);
	f->memory = aligned_alloc(4096, bytes);
	cr_assert_eq(chain_create_at(&f->chain, f->memory, &config), 0);
}

int chain_fixture_open_chain(struct chain_fixture *f)
{
	return chain_open(f->chain);
}

void chain_fixture_close(struct chain_fixture *f)
{
	chain_close(f->chain);
	chain_destroy(f->chain);
	free(f->memory);
	if (f->has_edge)
		edge_close(&f->edge);
}

uint32_t chain_fixture_process(struct chain_fixture *f, uint64_t value, uint32_t count)
{
	uint64_t records[64][2];
	struct weir_batch batch = {(const uint8_t *)records, count, 16, 16 * count};

	cr_assert_leq(count, 64);
	for (uint32_t i = 0; i < count; i++) {
		records[i][0] = 0;
		records[i][1] = value + i;
	}
	return chain_process(f->chain, &batch);
}

uint32_t chain_fixture_drain(struct chain_fixture *f)
{
	struct input_item item;
	uint32_t count = 0;

	edge_push(&f->edge, 0);
	while (edge_next(&f->edge, 0, &item)) {
		uint32_t taken = item.kind == INPUT_RECORDS ? item.batch.count : 1;

		count += item.kind == INPUT_RECORDS ? taken : 0;
		input_gate_consume(f->edge.in[0], taken);
		edge_push(&f->edge, 0);
	}
	return count;
}

const char *chain_fixture_journal(struct chain_fixture *f, char text[JOURNAL_BYTES])
{
	snprintf(text, JOURNAL_BYTES, "%s", f->journal);
	f->journal[0] = '\0';
	return text;
}

struct counter_search {
	const char *uid, *name;
	uint64_t value;
	bool is_found;
};

static void visit(void *context, const char *uid, const char *name, uint64_t value)
{
	struct counter_search *s = context;

	if (strcmp(uid, s->uid) != 0 || strcmp(name, s->name) != 0)
		return;
	s->value = value;
	s->is_found = true;
}

uint64_t chain_fixture_counter(struct chain_fixture *f, const char *uid, const char *name)
{
	struct counter_search s = {uid, name, 0, false};

	chain_visit_counters(f->chain, visit, &s);
	cr_assert(s.is_found, "no counter %s of %s", name, uid);
	return s.value;
}
