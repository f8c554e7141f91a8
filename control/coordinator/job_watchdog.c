/* job_watchdog: says when checkpoints fail, and when none completes for too long.  It looks at what
 * has completed by a timer of its own, whatever the triggers do. */

#include "control/coordinator/job_watchdog.h"

#include "control/coordinator/job_master_internal.h"
#include "control/coordinator/resource_manager.h"
#include "control/net/loop.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS_NS UINT64_C(1000000)
#define LEAST_NS (1000 * MS_NS)
#define LOOK_NS (250 * MS_NS)
#define TELL_NS (1000 * MS_NS)

#define CHECKPOINTING "execution.checkpointing."
#define NOT_BEGUN "a checkpoint could not be begun: "

/* Checkpoints are expected from the first start of its tasks on, restarts included. */
static bool is_expected(const struct job_master *jm)
{
	return jm->entered_ms[JOB_STATUS_RUNNING] > 0 && !job_status_is_terminal(jm->status) &&
			jm->status != JOB_STATUS_SUSPENDED &&
			jm->status != JOB_STATUS_CANCELLING && !jm->is_periodic_off &&
			!jm->is_released;
}

/* What the oldest one that has begun waits for; to be freed.  NULL: none has begun. */
static char *explain_waiting(const struct job_master *jm, const struct checkpoint_stats *s)
{
	int64_t now_ms = clock_wall_ms();
	int64_t since_ms = checkpoint_coordinator_draws_id_since(jm->checkpoints);
	char *text = checkpoint_stats_explain_pending(s, now_ms);

	if (text == NULL && since_ms != 0 &&
			asprintf(&text, "one waits for its id to be written for %" PRId64 " ms",
					now_ms - since_ms) < 0)
		text = NULL;
	return text;
}

/* Why none completes; to be freed. */
static char *find_cause(const struct job_master *jm)
{
	const struct checkpoint_stats *s = checkpoint_coordinator_stats(jm->checkpoints);
	const struct checkpoint_record *failed = checkpoint_stats_latest_failed(s);
	char *text = NULL;

	if (jm->status == JOB_STATUS_RUNNING)
		text = explain_waiting(jm, s);
	else if (jm->failure_count > 0 && asprintf(&text, "the job is %s: %s",
							job_status_name(jm->status),
							job_master_failure(jm, 0)->text) < 0)
		text = NULL;
	if (text == NULL && failed != NULL && failed->id > jm->watch.rules.newest_id &&
			asprintf(&text, "%s", failed->failure_message) < 0)
		text = NULL;
	if (text == NULL && jm->status == JOB_STATUS_RUNNING && jm->watch.failed_count > 0 &&
			jm->watch.failed_behind == jm->watch.rules.newest_id &&
			asprintf(&text, "%s%s", jm->watch.failed_id == 0 ? NOT_BEGUN : "",
					jm->watch.failed_text) < 0)
		text = NULL;
	if (text == NULL && asprintf(&text, "none is in progress; the job is %s",
					job_status_name(jm->status)) < 0)
		text = NULL;
	return text;
}

/* What status shows. */
static void describe(struct job_master *jm, uint64_t now_ns)
{
	char *cause = find_cause(jm);

	snprintf(jm->watch.overdue, sizeof(jm->watch.overdue),
			"no checkpoint has completed for %.1f s: %s",
			(double)checkpoint_watchdog_age(&jm->watch.rules, now_ns) / 1e9,
			cause == NULL ? "out of memory" : cause);
	free(cause);
}

void job_watch(struct job_master *jm)
{
	const struct checkpoint_record *r = checkpoint_stats_latest_completed(
			checkpoint_coordinator_stats(jm->checkpoints));
	uint64_t now_ns = clock_monotonic_ns();
	bool was_overdue = jm->watch.rules.is_overdue;

	if (!is_expected(jm)) {
		checkpoint_watchdog_stop(&jm->watch.rules);
		return;
	}
	uint64_t age_ns = checkpoint_watchdog_age(&jm->watch.rules, now_ns);
	checkpoint_watchdog_start(&jm->watch.rules, now_ns);
	if (r != NULL && checkpoint_watchdog_see(&jm->watch.rules, r->id, now_ns) && was_overdue)
		log_info("watchdog", "job %s: checkpoint %" PRId64 " has completed, after %.1f s",
				jm->spec->name, r->id, (double)age_ns / 1e9);
	if (checkpoint_watchdog_is_due(&jm->watch.rules, now_ns)) {
		describe(jm, now_ns);
		log_error("watchdog", "job %s: %s", jm->spec->name, jm->watch.overdue);
	}
}

static void on_timer(void *context)
{
	struct job_master *jm = context;

	loop_timer_set(jm->watch.timer, LOOK_NS);
	job_watch(jm);
	if (jm->watch.rules.is_overdue)
		describe(jm, clock_monotonic_ns());
}

static uint64_t ns_of(const struct config *c, const char *key)
{
	return config_is_set(c, key) ? (uint64_t)config_duration_ns(c, key) : 0;
}

int job_make_watchdog(struct job_master *jm)
{
	uint64_t interval_ns = ns_of(jm->config, CHECKPOINTING "interval");
	uint64_t pause_ns = ns_of(jm->config, CHECKPOINTING "min-pause");
	int rc = loop_timer_create(&jm->watch.timer, jm->services.loop, on_timer, jm);

	/* Without an interval nobody expects any. */
	if (interval_ns > 0 && pause_ns > interval_ns)
		interval_ns = pause_ns;
	checkpoint_watchdog_init(&jm->watch.rules,
			(uint32_t)config_int(jm->config, "weir.checkpoint-watchdog.intervals"),
			interval_ns, LEAST_NS);
	if (rc == 0)
		loop_timer_set(jm->watch.timer, LOOK_NS);
	return rc;
}

void job_note_end(struct job_master *jm, int status)
{
	jm->watch.end_text[0] = 0;
	if (status != 0)
		snprintf(jm->watch.end_text, sizeof(jm->watch.end_text),
				"the job is at its end, which cannot be written to "
				"high-availability.storageDir: %s; it is tried again",
				strerror(-status));
}

void job_note_failed_checkpoint(struct job_master *jm, int64_t id, const char *text)
{
	uint64_t now_ns = clock_monotonic_ns();
	int64_t newest_id = jm->watch.rules.newest_id;

	if (jm->watch.failed_count == 0 || jm->watch.failed_behind != newest_id) {
		jm->watch.failed_id = id;
		jm->watch.failed_count = 0;
		jm->watch.failed_behind = newest_id;
		snprintf(jm->watch.failed_text, sizeof(jm->watch.failed_text), "%s", text);
	}
	jm->watch.failed_count++;
	if (jm->watch.failed_told_ns != 0 && now_ns - jm->watch.failed_told_ns < TELL_NS) {
		jm->watch.failed_untold++;
		return;
	}
	log_warn("job_master", "job %s: %s%s", jm->spec->name,
			id == 0 ? NOT_BEGUN : "", text);
	if (jm->watch.failed_untold > 0)
		log_warn("job_master", "job %s: %u other checkpoints have failed since the last "
				       "such line",
				jm->spec->name, jm->watch.failed_untold);
	jm->watch.failed_untold = 0;
	jm->watch.failed_told_ns = now_ns;
}

/* How many tasks live there, and the first of them. */
static uint32_t count_living(const struct job_master *jm, uint32_t member, uint32_t *first)
{
	uint32_t count = 0;

	for (uint32_t s = jm->subtask_count; s > 0; s--) {
		const struct execution *e = &jm->executions[s - 1];

		if (execution_is_terminal(e) || e->member != member)
			continue;
		*first = s - 1;
		count++;
	}
	return count;
}

void job_describe_loss(const struct job_master *jm, uint32_t member, const char *reason,
		char text[WATCHDOG_TEXT_BYTES])
{
	const struct resource_row *row =
			resource_manager_row(jm->services.resources, member);
	char *pending = checkpoint_stats_explain_pending(
			checkpoint_coordinator_stats(jm->checkpoints), clock_wall_ms());
	char task[SUBTASK_TEXT_BYTES] = "no task", others[64] = "";
	uint32_t first = 0, count = count_living(jm, member, &first);

	if (count > 0)
		execution_graph_print_subtask(jm->graph, first, task);
	if (count > 1)
		snprintf(others, sizeof(others), " and %u other tasks", count - 1);
	snprintf(text, WATCHDOG_TEXT_BYTES, "TaskManager %s is lost: %s; %s%s ran there%s%s",
			row == NULL ? "?" : row->id, reason, task, others,
			pending == NULL ? "" : "; ",
			pending == NULL ? "" : pending);
	free(pending);
}

struct job_watch job_master_watch(const struct job_master *jm)
{
	const struct checkpoint_watchdog *w = &jm->watch.rules;
	uint64_t age_ns = checkpoint_watchdog_age(w, clock_monotonic_ns());

	return (struct job_watch){
			.since_completed_ms = w->is_watching ? (int64_t)(age_ns / MS_NS) : -1,
			.overdue = jm->watch.end_text[0] != 0 ? jm->watch.end_text
				   : w->is_overdue	      ? jm->watch.overdue
							      : NULL,
			.failed_id = jm->watch.failed_id,
			.failed_count = w->newest_id == jm->watch.failed_behind
					? jm->watch.failed_count
					: 0,
			.failure = jm->watch.failed_text[0] == 0 ? NULL : jm->watch.failed_text,
	};
}
