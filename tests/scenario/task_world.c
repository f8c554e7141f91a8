#include "tests/scenario/task_parts.h"

#include "dataplane/base/check.h"
#include "dataplane/checkpoint/state_writer.h"
#include "dataplane/checkpoint/store.h"
#include "dataplane/checkpoint/store_share.h"
#include "tests/sim/mem_store.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A turn that finds nothing more to do ends the settling; this many mean that it never will. */
enum { TURNS_MAX = 1000000, NS_PER_MS = 1000000 };

/* ---- lists ---- */

void task_world_add(struct task_world *w, struct words *list, const char *name,
		const char *format, ...)
{
	char *word = NULL;
	va_list args;

	va_start(args, format);
	CHECK(vasprintf(&word, format, args) >= 0);
	va_end(args);
	task_words_add(list, word);
	scenario_trace(w->s, "    %s %s", name, word);
}

const char *task_world_reason_name(enum decline_reason reason)
{
	switch (reason) {
	case DECLINE_TASK_NOT_READY:
		return "DECLINED_TASK_NOT_READY";
	case DECLINE_TASK_CLOSING:
		return "DECLINED_TASK_CLOSING";
	case DECLINE_TASK_FAILURE:
		return "TASK_FAILURE";
	case DECLINE_SUBSUMED:
		return "DECLINED_SUBSUMED";
	case DECLINE_ON_CANCELLATION_BARRIER:
		return "DECLINED_ON_CANCELLATION_BARRIER";
	case DECLINE_INPUT_END_OF_STREAM:
		return "DECLINED_INPUT_END_OF_STREAM";
	case DECLINE_ASYNC_EXCEPTION:
		return "ASYNC_EXCEPTION";
	case DECLINE_SHARED_STREAM:
		return "CHANNEL_STATE_SHARED_STREAM_EXCEPTION";
	case DECLINE_CHECKPOINT_SUBSUMED:
		return "SUBSUMED";
	case DECLINE_OTHER:
		return "DECLINED";
	}
	CHECK(!"a decline reason");
	return "";
}

const char *task_world_label_text(const struct task_world *w, uint32_t number)
{
	CHECK(number >= 1 && number <= w->labels.count);
	return w->labels.at[number - 1];
}

bool task_world_label(struct task_world *w, const char *word, uint32_t *number)
{
	if (!scenario_is_name(word))
		return scenario_malformed(w->s, "'%s' is not a label", word);
	for (uint32_t i = 0; i < w->labels.count; i++) {
		if (strcmp(w->labels.at[i], word) == 0)
			return scenario_malformed(w->s, "there is a buffer '%s' already", word);
	}
	task_words_add(&w->labels, strdup(word));
	*number = w->labels.count;
	return true;
}

/* ---- ports ---- */

uint64_t task_world_now_ns(const struct task_world *w)
{
	return (uint64_t)w->now_ms * NS_PER_MS;
}

static struct task_world *of_clock(struct clock *c)
{
	return (struct task_world *)((char *)c - offsetof(struct task_world, clock));
}

static uint64_t clock_now_ns(struct clock *c)
{
	return task_world_now_ns(of_clock(c));
}

static int64_t clock_wall(struct clock *c)
{
	return of_clock(c)->now_ms;
}

static struct task_world *of_reporter(struct task_reporter *r)
{
	return (struct task_world *)((char *)r - offsetof(struct task_world, reporter));
}

static void on_status(struct task_reporter *r, enum task_status status, const char *text)
{
	scenario_trace(of_reporter(r)->s, "    task %s %s", task_status_name(status), text);
}

static void on_end_of_data(struct task_reporter *r)
{
	scenario_trace(of_reporter(r)->s, "    end of data reported");
}

/* Only the first report for each id counts. */
static bool is_first_report(struct task_world *w, int64_t id)
{
	if (task_ids_has(&w->reported, id))
		return false;
	task_ids_add(&w->reported, id);
	return true;
}

static void on_acknowledge(struct task_reporter *r, int64_t id,
		const struct checkpoint_metrics *metrics, const struct task_state *state,
		const struct channel_state_result *in_flight,
		bool has_finished_operators)
{
	struct task_world *w = of_reporter(r);

	(void)state;
	(void)in_flight;
	(void)has_finished_operators;
	task_ids_add(&w->to_release, id);
	w->acked_id = id;
	w->acked_metrics = *metrics;
	if (is_first_report(w, id))
		task_world_add(w, &w->acked, "acked", "%" PRId64, id);
}

/* What the barrier handler can give as a reason; every abort of it is declined, without more words
 * (14.4). */
static bool is_abort(enum decline_reason reason)
{
	return reason == DECLINE_SUBSUMED || reason == DECLINE_ON_CANCELLATION_BARRIER ||
			reason == DECLINE_INPUT_END_OF_STREAM ||
			reason == DECLINE_CHECKPOINT_SUBSUMED;
}

static void on_decline(struct task_reporter *r, int64_t id, enum decline_reason reason,
		const char *text)
{
	struct task_world *w = of_reporter(r);
	const char *name = task_world_reason_name(reason);

	if (text[0] != '\0')
		scenario_trace(w->s, "    declines: %s", text);
	task_in_flight_forget(w, id);
	if (is_abort(reason) && text[0] == '\0')
		task_world_add(w, &w->aborts, "abort", "%" PRId64 ":%s", id, name);
	if (is_first_report(w, id))
		task_world_add(w, &w->declined, "declined", "%" PRId64 ":%s", id, name);
}

/* ---- life ---- */

struct task_world *task_world_create(struct scenario *s)
{
	struct task_world *w = calloc(1, sizeof(*w));

	CHECK(w != NULL);
	w->s = s;
	w->settings = (struct task_settings){
			.buffer_bytes = 100,
			.max_concurrent = 1,
			.has_finished_tasks = true,
	};
	w->clock = (struct clock){clock_now_ns, clock_wall};
	w->reporter = (struct task_reporter){.status = on_status,
			.end_of_data = on_end_of_data,
			.acknowledge = on_acknowledge,
			.decline = on_decline};
	return w;
}

static bool build_chain(struct task_world *w)
{
	struct chain_operator_config o = {
			.op = &recording_operator, .uid = "recording", .values = &w->value};
	char error[WEIR_ERROR_BYTES];
	struct chain_config config = {
			.snapshots_max = 1,
			.operators = &o,
			.operator_count = 1,
			.outputs = &w->output_gate,
			.output_count = w->output_gate != NULL ? 1 : 0,
			.job_id = "00000000000000000000000000000001",
			.attempt_id = "00000000000000000000000000000002",
			.parallelism = 1,
			.group_count = 1,
			.restored_checkpoint_id = w->settings.restored_id,
			.checkpointing = true,
	};

	w->value.integer = (int64_t)(uintptr_t)w;
	if (chain_declare(&o, 1, 0, 1, w->settings.buffer_bytes, error) != 0)
		return false;
	w->chain_memory = aligned_alloc(STORE_ALIGN_BYTES, chain_memory_bytes(&config, error));
	return w->chain_memory != NULL &&
			chain_create_at(&w->chain, w->chain_memory, &config) == 0 &&
			chain_open(w->chain) == 0;
}

static bool build_writer(struct task_world *w)
{
	struct state_writer_config config = {
			.vertex_uid = "recording",
			.parallelism = 1,
			.group_count = 1,
			.inline_bytes_max = 0, /* every state goes through the store */
			.state_count = chain_state_count(w->chain),
			.states = w->states,
	};

	CHECK(config.state_count == WORLD_STATES_MAX);
	for (uint32_t i = 0; i < config.state_count; i++) {
		struct chain_state s = chain_state_at(w->chain, i);

		w->states[i] = (struct declared_state){
				.uid = s.uid,
				.name = s.name,
				.kind = s.kind,
				.value_bytes = s.value_bytes,
				.version = s.version,
				.capacity = s.capacity,
				.memory = s.memory,
		};
	}
	for (uint32_t i = 0; i < WORLD_WRITERS; i++) {
		config.store = w->state_stores[i];
		w->writer_memory[i] = aligned_alloc(
				STORE_ALIGN_BYTES, state_writer_memory_bytes(&config));
		if (w->writer_memory[i] == NULL)
			return false;
		w->writers[i] = state_writer_create_at(w->writer_memory[i], &config);
	}
	return true;
}

static bool build_task(struct task_world *w)
{
	struct stream_task_config config = {
			.chain = w->chain,
			.inputs = w->input_gates,
			.input_count = w->settings.gate_count,
			.outputs = &w->output_gate,
			.output_count = w->output_gate != NULL ? 1 : 0,
			.writers = w->writers,
			.writer_count = WORLD_WRITERS,
			.channel_state = w->channel_state,
			.reporter = &w->reporter,
			.clock = &w->clock,
			.checkpoint_dir = "checkpoints",
			.restored_checkpoint_id = w->settings.restored_id,
			.max_concurrent = w->settings.max_concurrent,
			.checkpointing = true,
			.has_finished_tasks = w->settings.has_finished_tasks,
			.is_at_least_once = w->settings.is_at_least_once,
	};

	return stream_task_create(&w->task, &config) == 0;
}

/* States and channel state have a store each, as in a worker. */
static bool build_stores(struct task_world *w)
{
	if (store_share_create(&w->share, &w->store.store) != 0)
		return false;
	for (uint32_t i = 0; i < WORLD_WRITERS; i++) {
		w->state_stores[i] = store_share_attach(w->share);
		CHECK(w->state_stores[i] != NULL);
	}
	w->channel_store = store_share_attach(w->share);
	return w->channel_store != NULL;
}

bool task_world_build(struct task_world *w)
{
	w->memory = mem_store_create();
	if (w->memory == NULL)
		return scenario_malformed(w->s, "there is no memory for a store");
	fault_store_init(&w->store, w->memory);
	if (!build_stores(w) || !task_lines_create(w) || !task_outputs_create(w) ||
			!build_chain(w) || !build_writer(w) || !task_in_flight_create(w) ||
			!build_task(w))
		return scenario_malformed(w->s, "a task of that size cannot be made");
	stream_task_start(w->task);
	task_world_settle(w);
	return true;
}

/* Whatever the script left hanging comes back, so that all memory does. */
static void wind_down(struct task_world *w)
{
	if (w->task == NULL)
		return;
	w->store.fail_nth = 0;
	fault_store_settle(&w->store);
	stream_task_cancel(w->task);
	task_world_serve(w);
	CHECK(stream_task_is_ended(w->task));
}

static void free_lists(struct task_world *w)
{
	struct words *all[] = {&w->trig, &w->aborts, &w->delivered, &w->acked, &w->declined,
			&w->notified, &w->labels};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		task_words_clear(all[i]);
	task_ids_clear(&w->performed);
	task_ids_clear(&w->reported);
	task_ids_clear(&w->unaligned);
	task_ids_clear(&w->to_release);
}

void task_world_destroy(struct task_world *w)
{
	bool is_traced = w->s->is_traced;

	w->s->is_traced = false;
	wind_down(w);
	w->s->is_traced = is_traced;
	stream_task_destroy(w->task);
	if (w->chain != NULL)
		chain_close(w->chain);
	chain_destroy(w->chain);
	free(w->chain_memory);
	for (uint32_t i = 0; i < WORLD_WRITERS; i++)
		free(w->writer_memory[i]);
	free(w->channel_memory);
	if (w->lines != NULL)
		task_lines_destroy(w);
	if (w->outputs != NULL)
		task_outputs_destroy(w);
	for (uint32_t i = 0; i < WORLD_WRITERS; i++)
		store_destroy(w->state_stores[i]);
	store_destroy(w->channel_store);
	store_share_destroy(w->share);
	store_destroy(w->memory);
	free_lists(w);
	free(w->lines);
	free(w->outputs);
	free(w->elements);
	free(w->emissions);
	free(w->in_flight);
	free(w);
}

/* ---- going on ---- */

static bool emit(struct task_world *w)
{
	uint32_t before = w->emission_count;

	if (before > 0)
		stream_task_operator_event(w->task, 0, "", 0);
	return w->emission_count < before;
}

static bool release_state(struct task_world *w)
{
	bool has_any = w->to_release.count > 0;

	for (uint32_t i = 0; i < w->to_release.count; i++)
		stream_task_release_state(w->task, w->to_release.at[i]);
	task_ids_clear(&w->to_release);
	return has_any;
}

/* Requests that a hung store does not hold back. */
static bool is_store_at_work(const struct task_world *w)
{
	return !w->store.is_hung && store_inflight(&w->store.store) > w->store.held_count;
}

static bool serve_once(struct task_world *w)
{
	uint64_t now_ns = task_world_now_ns(w);
	bool has_worked = stream_task_serve(w->task, now_ns) > 0;

	task_in_flight_look(w);
	has_worked |= store_share_poll(w->share) > 0;
	has_worked |= emit(w);
	has_worked |= task_outputs_move(w);
	has_worked |= release_state(w);
	return has_worked || is_store_at_work(w);
}

void task_world_serve(struct task_world *w)
{
	uint32_t turns = 0;

	while (serve_once(w))
		CHECK(++turns < TURNS_MAX);
}

void task_world_settle(struct task_world *w)
{
	do {
		task_world_serve(w);
	} while (!w->is_held && task_lines_take(w));
}
