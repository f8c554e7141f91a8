#include "control/coordinator/checkpoint_coordinator.h"

#include "control/coordinator/checkpoint_coordinator_internal.h"
#include "control/coordinator/heap.h"
#include "dataplane/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define YEAR_MS (INT64_C(365) * 24 * 3600 * 1000)

struct checkpoint_coordinator_config checkpoint_coordinator_config_default(void)
{
	return (struct checkpoint_coordinator_config){
		.backlog_interval_ms = -1,
		.first_delay_ms = -1,
		.timeout_ms = 600000,
		.smallest_ms = 10,
		.concurrent_max = 1,
		.in_flight_max = UINT32_MAX,
		.alignment = { .is_exactly_once = true },
		.is_finished_enabled = true,
		.retained_count = 1,
		.retention = RETAIN_NEVER,
		.queue_max = 1000,
		.history_max = 10,
	};
}

static const char *check_times(const struct checkpoint_coordinator_config *config)
{
	if (config->interval_ms < 0 || config->min_pause_ms < 0 ||
			config->alignment.aligned_timeout_ms < 0)
		return "a duration is negative";
	if (config->timeout_ms < config->smallest_ms)
		return "the timeout is too short";
	if (config->interval_ms != 0 && config->interval_ms < config->smallest_ms)
		return "the interval is too short";
	if (config->interval_ms > YEAR_MS || config->timeout_ms > YEAR_MS)
		return "a duration is longer than a year";
	return NULL;
}

const char *checkpoint_coordinator_config_normalise(struct checkpoint_coordinator_config *config)
{
	const char *error = check_times(config);

	if (error != NULL)
		return error;
	if (config->concurrent_max == 0 || config->queue_max == 0 || config->tolerable_failures < 0)
		return "a limit is too small";
	if (config->min_pause_ms > YEAR_MS)
		config->min_pause_ms = YEAR_MS;
	if (config->interval_ms != 0 && config->interval_ms < config->min_pause_ms)
		config->interval_ms = config->min_pause_ms;
	if (config->backlog_interval_ms > 0 && config->backlog_interval_ms < config->interval_ms)
		return "the interval during backlog is shorter than the interval"; /* OP-6 */
	if (config->first_delay_ms >= 0 && (config->first_delay_ms < config->min_pause_ms ||
					config->first_delay_ms > config->interval_ms))
		return "the first delay is not between the minimum pause and the interval";
	if (!config->alignment.is_exactly_once)
		config->alignment.is_unaligned = false; /* OP-1 */
	if (config->alignment.is_unaligned && config->concurrent_max != 1)
		return "unaligned checkpoints need at most one concurrent checkpoint"; /* OP-2 */
	if (config->retained_count == 0)
		config->retained_count = 1; /* ST-1 */
	return NULL;
}

void checkpoint_coordinator_create(struct checkpoint_coordinator **out,
		const struct checkpoint_coordinator_config *config, struct execution_graph *graph)
{
	struct checkpoint_coordinator *c = heap_zeroed(1, sizeof(*c));

	c->config = *config;
	c->graph = graph;
	prng_seed(&c->prng, config->seed);
	c->periodic.due_ns = NEVER_NS;
	c->planned_ns = NEVER_NS;
	c->last_completion_ns = NEVER_NS;
	c->kept_id_min = INT64_MAX;
	c->has_backlog = heap_zeroed(execution_graph_vertex_count(graph), sizeof(bool));
	checkpoint_request_decider_create(&c->decider, config->concurrent_max, config->queue_max);
	checkpoint_failure_manager_init(&c->failures, config->tolerable_failures);
	checkpoint_stats_create(&c->stats, graph, config->history_max);
	completed_checkpoint_store_create(&c->store, config->retained_count);
	shared_state_registry_create(&c->registry);
	checkpoints_cleaner_create(&c->cleaner);
	*out = c;
}

static void drop_in_flight(struct checkpoint_coordinator *c)
{
	for (uint32_t i = 0; i < c->flight_count; i++) {
		completed_checkpoint_destroy(c->flights[i].completed);
		pending_checkpoint_release(c->flights[i].pending);
	}
	for (uint32_t i = 0; i < c->orphan_count; i++)
		pending_checkpoint_release(c->orphans[i].pending);
	for (uint32_t i = 0; i < c->removal_count; i++)
		completed_checkpoint_destroy(c->removals[i].completed);
	queued_request_destroy(c->triggering.request);
	checkpoint_plan_destroy(c->triggering.plan);
	pending_checkpoint_release(c->triggering.pending);
	free(c->flights);
	free(c->orphans);
	free(c->removals);
	free(c->triggering.is_coordinator_out);
	free(c->triggering.is_hook_out);
}

void checkpoint_coordinator_destroy(struct checkpoint_coordinator *c)
{
	if (c == NULL)
		return;
	coordinator_drop_decisions(c);
	drop_in_flight(c);
	checkpoint_request_decider_destroy(c->decider);
	checkpoint_failure_manager_clear(&c->failures);
	checkpoint_stats_destroy(c->stats);
	completed_checkpoint_store_destroy(c->store);
	shared_state_registry_destroy(c->registry);
	checkpoints_cleaner_destroy(c->cleaner);
	free(c->coordinator_vertices);
	free(c->has_backlog);
	free(c);
}

uint32_t checkpoint_coordinator_add_coordinator(struct checkpoint_coordinator *c, uint32_t vertex)
{
	uint32_t index = c->coordinator_count++;

	CHECK(c->handle == 0);
	CHECK(vertex == UINT32_MAX || vertex < execution_graph_vertex_count(c->graph));
	c->coordinator_vertices = heap_resize(c->coordinator_vertices, c->coordinator_count,
			sizeof(*c->coordinator_vertices));
	c->coordinator_vertices[index] = vertex;
	c->triggering.is_coordinator_out = heap_resize(
			c->triggering.is_coordinator_out, c->coordinator_count, sizeof(bool));
	c->triggering.is_coordinator_out[index] = false;
	return index;
}

uint32_t checkpoint_coordinator_add_hook(struct checkpoint_coordinator *c)
{
	uint32_t index = c->hook_count++;

	CHECK(c->handle == 0);
	c->triggering.is_hook_out =
			heap_resize(c->triggering.is_hook_out, c->hook_count, sizeof(bool));
	c->triggering.is_hook_out[index] = false;
	return index;
}

/* ---- the decider's place ---- */

void coordinator_ask(struct checkpoint_coordinator *c)
{
	c->should_ask = true;
}

static uint64_t pause_end(const struct checkpoint_coordinator *c)
{
	if (c->last_completion_ns == NEVER_NS)
		return 0;
	return c->last_completion_ns + (uint64_t)c->config.min_pause_ms * NS_PER_MS;
}

static void set_periodic(struct checkpoint_coordinator *c, uint64_t due_ns)
{
	c->planned_ns = due_ns;
	coordinator_set_timer(c, &c->periodic, due_ns);
}

static void refuse(struct checkpoint_coordinator *c, struct queued_request *r,
		enum checkpoint_failure_reason reason)
{
	coordinator_request_failed(c, &(struct request_name){ r->handle, r->is_periodic }, 0,
			reason, NULL);
	queued_request_destroy(r);
}

static void ask_once(struct checkpoint_coordinator *c, struct moment now)
{
	struct queued_request *r = NULL;
	struct decider_facts facts = {
		.is_triggering = c->triggering.step != STEP_IDLE,
		.is_full = c->flight_count >= c->config.in_flight_max,
		.pending_count = c->flight_count,
		.cleaning_count = checkpoints_cleaner_running_count(c->cleaner),
		.now_ns = now.now_ns,
		.pause_end_ns = pause_end(c),
	};

	switch (checkpoint_request_decider_choose(c->decider, &facts, &r)) {
	case DECIDER_WAIT:
		return;
	case DECIDER_ADMIT:
		coordinator_trigger(c, r, now);
		return;
	case DECIDER_TOO_EARLY:
		refuse(c, r, REASON_MINIMUM_TIME_BETWEEN_CHECKPOINTS);
		if (c->is_scheduling)
			set_periodic(c, facts.pause_end_ns);
		return;
	}
}

void coordinator_settle(struct checkpoint_coordinator *c, struct moment now)
{
	c->latest = now;
	while (c->should_ask) {
		c->should_ask = false;
		ask_once(c, now);
	}
}

/* ---- requests ---- */

static struct checkpoint_properties properties_of(
		const struct checkpoint_coordinator *c, const struct trigger_request *request)
{
	bool is_forced = !c->config.alignment.is_unaligned; /* TR-3 */
	enum retention_policy policy = c->config.retention;

	switch (request->kind) {
	case REQUEST_CHECKPOINT:
	case REQUEST_INCREMENTAL:
		return checkpoint_properties_checkpoint(KIND_CHECKPOINT, policy);
	case REQUEST_FULL:
		return checkpoint_properties_checkpoint(KIND_FULL_CHECKPOINT, policy);
	case REQUEST_SAVEPOINT:
		return checkpoint_properties_savepoint(KIND_SAVEPOINT, request->format, is_forced);
	case REQUEST_STOP:
		return checkpoint_properties_savepoint(
				KIND_SAVEPOINT_SUSPEND, request->format, is_forced);
	case REQUEST_STOP_DRAIN:
		return checkpoint_properties_savepoint(
				KIND_SAVEPOINT_TERMINATE, request->format, is_forced);
	}
	CHECK(false);
	return (struct checkpoint_properties){ 0 };
}

/* Queues it; one request, this or another, may fall out (RD-2). */
static void queue_request(
		struct checkpoint_coordinator *c, struct queued_request *r, struct moment now)
{
	if (c->is_shutdown) { /* CO-8, whatever is in the pipeline */
		coordinator_fail_unborn(c, r,
				&(struct blame){REASON_COORDINATOR_SHUTDOWN, .subtask = UINT32_MAX},
				now);
		queued_request_destroy(r);
		return;
	}

	struct queued_request *out = checkpoint_request_decider_queue(c->decider, r);

	if (out != NULL)
		refuse(c, out, REASON_TOO_MANY_CHECKPOINT_REQUESTS);
	coordinator_ask(c);
	coordinator_settle(c, now);
}

static struct queued_request *new_request(struct checkpoint_coordinator *c,
		const struct trigger_request *request, struct moment now)
{
	struct queued_request *r = heap_zeroed(1, sizeof(*r));

	r->handle = ++c->handle;
	r->timestamp_ms = now.wall_ms;
	r->properties = properties_of(c, request);
	if (checkpoint_properties_is_savepoint(&r->properties))
		r->directory = heap_text(request->directory != NULL
						? request->directory
						: c->config.savepoint_directory);
	return r;
}

/* The request a client asked for before under that id, which is not all zeros; 0: none. */
static uint64_t find_client(const struct checkpoint_coordinator *c, struct id128 id)
{
	for (uint32_t i = 0; i < CLIENT_IDS_COUNT; i++) {
		if (id128_is_equal(c->clients[i].id, id))
			return c->clients[i].handle;
	}
	return 0;
}

static void remember_client(struct checkpoint_coordinator *c, struct id128 id, uint64_t handle)
{
	c->clients[c->client_count++ % CLIENT_IDS_COUNT] =
			(struct client_request){ .id = id, .handle = handle };
}

int checkpoint_coordinator_request(struct checkpoint_coordinator *c,
		const struct trigger_request *request, struct moment now, uint64_t *handle)
{
	static const struct id128 no_id;
	bool has_id = !id128_is_equal(request->client_id, no_id);
	bool is_stop = request->kind == REQUEST_STOP || request->kind == REQUEST_STOP_DRAIN;
	bool is_savepoint = is_stop || request->kind == REQUEST_SAVEPOINT;

	*handle = has_id ? find_client(c, request->client_id) : 0;
	if (*handle != 0)
		return 0;
	if (is_savepoint && request->directory == NULL && c->config.savepoint_directory == NULL)
		return -EINVAL; /* SV-1 */

	struct queued_request *r = new_request(c, request, now);

	*handle = r->handle;
	if (has_id)
		remember_client(c, request->client_id, r->handle);
	if (is_savepoint && c->config.has_blocking_outputs) {
		refuse(c, r, REASON_BLOCKING_OUTPUT_EXIST);
		return 0;
	}
	if (is_stop)
		checkpoint_coordinator_stop(c, now); /* SV-3 */
	queue_request(c, r, now);
	return 0;
}

static void request_periodic(struct checkpoint_coordinator *c, struct moment now)
{
	struct queued_request *r = new_request(
			c, &(struct trigger_request){ .kind = REQUEST_CHECKPOINT }, now);

	r->is_periodic = true;
	queue_request(c, r, now);
}

bool checkpoint_coordinator_on_task_end_of_data(struct checkpoint_coordinator *c, uint32_t subtask,
		struct attempt_id attempt, struct moment now)
{
	uint64_t handle;

	if (subtask >= execution_graph_subtask_count(c->graph) ||
			!id128_is_equal(execution_graph_attempt(c->graph, subtask).id, attempt.id))
		return false;

	bool was_ended = execution_graph_is_ended(c->graph);

	execution_graph_set_ended(c->graph, subtask);
	if (!was_ended && execution_graph_is_ended(c->graph) && c->config.is_finished_enabled)
		checkpoint_coordinator_request(c,
				&(struct trigger_request){ .kind = REQUEST_CHECKPOINT }, now,
				&handle);
	return true;
}

/* ---- timers and the periodic scheduler ---- */

void coordinator_set_timer(struct checkpoint_coordinator *c, struct timer *t, uint64_t due_ns)
{
	t->due_ns = due_ns;
	t->order = ++c->timer_order;
}

static bool is_earlier(const struct timer *a, const struct timer *b)
{
	return a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->order < b->order);
}

/* The flight whose canceller is due before all others and the periodic timer; NULL: that one. */
static struct flight *find_earliest(const struct checkpoint_coordinator *c)
{
	const struct timer *earliest = &c->periodic;
	struct flight *found = NULL;

	for (uint32_t i = 0; i < c->flight_count; i++) {
		if (is_earlier(&c->flights[i].canceller, earliest)) {
			found = &c->flights[i];
			earliest = &found->canceller;
		}
	}
	return found;
}

uint64_t checkpoint_coordinator_next_timer(const struct checkpoint_coordinator *c)
{
	const struct flight *f = find_earliest(c);

	return f != NULL ? f->canceller.due_ns : c->periodic.due_ns;
}

/* In milliseconds; 0: none for the time being. */
static int64_t current_interval(const struct checkpoint_coordinator *c)
{
	if (c->backlog_count > 0 && c->config.backlog_interval_ms >= 0)
		return c->config.backlog_interval_ms;
	return c->config.interval_ms;
}

/* CO-4: the next firing is set first, from the planned time of this one, so there is no drift. */
static void fire_periodic(struct checkpoint_coordinator *c, struct moment now)
{
	int64_t interval_ms = current_interval(c);

	if (interval_ms > 0) {
		c->planned_ns += (uint64_t)interval_ms * NS_PER_MS;
		coordinator_set_timer(c, &c->periodic,
				c->planned_ns > now.now_ns ? c->planned_ns : now.now_ns);
	} else {
		c->planned_ns = NEVER_NS;
		c->periodic.due_ns = NEVER_NS;
	}
	request_periodic(c, now);
}

bool checkpoint_coordinator_on_timer(struct checkpoint_coordinator *c, struct moment now)
{
	if (checkpoint_coordinator_next_timer(c) > now.now_ns)
		return false;

	struct flight *f = find_earliest(c);

	if (f != NULL)
		coordinator_abort(c, f,
				&(struct blame){ REASON_EXPIRED, .subtask = UINT32_MAX }, now);
	else
		fire_periodic(c, now);
	coordinator_settle(c, now);
	return true;
}

void checkpoint_coordinator_on_backlog(struct checkpoint_coordinator *c, uint32_t source,
		bool has_backlog, struct moment now)
{
	CHECK(source < execution_graph_vertex_count(c->graph));
	if (c->has_backlog[source] == has_backlog)
		return;
	c->has_backlog[source] = has_backlog;
	c->backlog_count = has_backlog ? c->backlog_count + 1 : c->backlog_count - 1;

	int64_t interval_ms = current_interval(c);
	uint64_t due_ns = now.now_ns + (uint64_t)interval_ms * NS_PER_MS;

	if (c->is_scheduling && interval_ms > 0 && due_ns < c->planned_ns)
		set_periodic(c, due_ns);
}

static int64_t draw_first_delay(struct checkpoint_coordinator *c)
{
	const struct checkpoint_coordinator_config *config = &c->config;
	uint64_t range = (uint64_t)(config->interval_ms - config->min_pause_ms) + 1;

	if (config->first_delay_ms >= 0)
		return config->first_delay_ms;
	return config->min_pause_ms + (int64_t)prng_below(&c->prng, range);
}

int checkpoint_coordinator_start(struct checkpoint_coordinator *c, struct moment now)
{
	if (c->is_shutdown)
		return -ESHUTDOWN;
	if (c->config.interval_ms == 0)
		return -EINVAL;
	if (c->is_scheduling)
		checkpoint_coordinator_stop(c, now);
	c->is_scheduling = true;
	set_periodic(c, now.now_ns + (uint64_t)draw_first_delay(c) * NS_PER_MS);
	coordinator_settle(c, now);
	return 0;
}

static void abort_queued(struct checkpoint_coordinator *c, enum checkpoint_failure_reason reason)
{
	struct queued_request *r;

	while ((r = checkpoint_request_decider_take(c->decider)) != NULL)
		refuse(c, r, reason);
}

/* Those whose outcome is open; one on its way into the durable list will have its own. */
static struct flight *find_open(struct checkpoint_coordinator *c)
{
	for (uint32_t i = 0; i < c->flight_count; i++) {
		if (!pending_checkpoint_is_disposed(c->flights[i].pending))
			return &c->flights[i];
	}
	return NULL;
}

void coordinator_abort_all(struct checkpoint_coordinator *c,
		enum checkpoint_failure_reason reason, struct moment now)
{
	const struct blame blame = {reason, .subtask = UINT32_MAX, .is_ending = true};
	struct flight *f;

	while ((f = find_open(c)) != NULL)
		coordinator_abort(c, f, &blame, now);
}

static void stop_scheduling(struct checkpoint_coordinator *c)
{
	c->is_scheduling = false;
	c->periodic.due_ns = NEVER_NS;
	c->planned_ns = NEVER_NS;
}

void checkpoint_coordinator_stop(struct checkpoint_coordinator *c, struct moment now)
{
	stop_scheduling(c);
	abort_queued(c, REASON_COORDINATOR_SUSPEND);
	coordinator_abort_all(c, REASON_COORDINATOR_SUSPEND, now);
	coordinator_settle(c, now);
}

void checkpoint_coordinator_shutdown(struct checkpoint_coordinator *c, struct moment now)
{
	c->is_shutdown = true;
	stop_scheduling(c);
	abort_queued(c, REASON_COORDINATOR_SHUTDOWN);
	coordinator_abort_all(c, REASON_COORDINATOR_SHUTDOWN, now);
	coordinator_settle(c, now);
}
