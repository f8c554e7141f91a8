#include "control/rest/metrics.h"

#include "control/config/job_file.h"
#include "control/coordinator/checkpoint_stats.h"
#include "control/coordinator/resource_manager.h"
#include "control/rest/rest_internal.h"
#include "dataplane/base/clock.h"

#include <stdio.h>
#include <string.h>

enum { NS_IN_MS = 1000000, MS_IN_S = 1000 };

/* Where metrics go, and of which operator they are. */
struct sink {
	metric_visit visit;
	void *context;
	const char *operator_uid;
};

static void put(const struct sink *s, const char *name, int64_t value)
{
	s->visit(s->context, &(struct metric){.name = name,
					     .operator_uid = s->operator_uid,
					     .integer = value});
}

static void put_real(const struct sink *s, const char *name, double value)
{
	s->visit(s->context, &(struct metric){.name = name,
					     .operator_uid = s->operator_uid,
					     .kind = METRIC_REAL,
					     .real = value});
}

static void put_text(const struct sink *s, const char *name, const char *text)
{
	s->visit(s->context,
			&(struct metric){.name = name, .kind = METRIC_TEXT, .text = text});
}

static void put_own(const struct sink *s, const char *name, int64_t value)
{
	s->visit(s->context, &(struct metric){.name = name,
					     .operator_uid = s->operator_uid,
					     .is_own = true,
					     .integer = value});
}

const char *metric_print(const struct metric *m, char text[METRIC_VALUE_BYTES])
{
	if (m->kind == METRIC_TEXT)
		return m->text;
	if (m->kind == METRIC_REAL)
		snprintf(text, METRIC_VALUE_BYTES, "%.17g", m->real);
	else
		snprintf(text, METRIC_VALUE_BYTES, "%lld", (long long)m->integer);
	return text;
}

double metric_number(const struct metric *m)
{
	return m->kind == METRIC_REAL ? m->real : (double)m->integer;
}

/* ---- coordinator and TaskManagers ---- */

void metrics_of_coordinator(const struct coordinator *c, metric_visit visit, void *context)
{
	struct sink s = {visit, context, NULL};
	uint32_t members = 0, slots = 0, used = 0, running = 0;
	struct job_master *jm;

	for (uint32_t member = 0; member < MEMBERS_COUNT_MAX; member++) {
		const struct resource_row *row =
				resource_manager_row(coordinator_resources(c), member);

		if (row == NULL)
			continue;
		uint32_t taken = rest_used_slots(c, member);

		members++;
		slots += row->slot_count;
		used += taken < row->slot_count ? taken : row->slot_count;
	}
	for (uint32_t i = 0; (jm = coordinator_job_at(c, i)) != NULL; i++)
		running += job_master_status(jm) == JOB_STATUS_RUNNING;
	put(&s, "numRegisteredTaskManagers", members);
	put(&s, "numRunningJobs", running);
	put(&s, "taskSlotsTotal", slots);
	put(&s, "taskSlotsAvailable", slots - used);
}

/* Of frames, but for resent and late: those are pieces of buffers. */
static void put_link(const struct sink *s, const Weir__LinkNumbers *n)
{
	put_own(s, "link.queues", n->queues);
	put_own(s, "link.links", n->links);
	put_own(s, "link.framesReceived", (int64_t)n->frames_in);
	put_own(s, "link.framesSent", (int64_t)n->frames_out);
	put_own(s, "link.bytesReceived", (int64_t)n->bytes_in);
	put_own(s, "link.bytesSent", (int64_t)n->bytes_out);
	put_own(s, "link.resent", (int64_t)n->resent);
	put_own(s, "link.resentInVain", (int64_t)n->late);
	put_own(s, "link.duplicates", (int64_t)n->duplicates);
	put_own(s, "link.corrupt", (int64_t)n->corrupt);
	put_own(s, "link.malformed", (int64_t)n->malformed);
	put_own(s, "link.unclaimed", (int64_t)n->unclaimed);
	put_own(s, "link.handedOver", (int64_t)n->handed_over);
	put_own(s, "link.handOverFull", (int64_t)n->hand_over_full);
	put_own(s, "link.partialBursts", (int64_t)n->partial_bursts);
	put_own(s, "link.creditWaits", (int64_t)n->credit_waits);
	put_own(s, "link.windowWaits", (int64_t)n->window_waits);
	put_own(s, "link.roundTripNanoseconds", (int64_t)n->rtt_ns);
	put_own(s, "link.windowFrames", (int64_t)n->window);
}

void metrics_of_taskmanager(
		const struct coordinator *c, uint32_t member, metric_visit visit, void *context)
{
	const struct resource_row *row = resource_manager_row(coordinator_resources(c), member);
	struct sink s = {visit, context, NULL};

	if (row == NULL)
		return;
	put(&s, "Status.Shuffle.Netty.TotalMemory", (int64_t)row->pool_bytes);
	put(&s, "Status.Flink.Memory.Managed.Total", (int64_t)row->state_bytes);
	put_own(&s, "workers", row->core_count);
	put_own(&s, "millisecondsSinceHeartbeat", clock_wall_ms() - row->heard_ms);
	if (row->link[0] != '\0')
		put_link(&s, &row->numbers);
}

/* ---- jobs ---- */

static const struct checkpoint_record *latest_completed(const struct checkpoint_stats *s)
{
	const struct checkpoint_record *c = checkpoint_stats_latest_completed(s);
	const struct checkpoint_record *p = checkpoint_stats_latest_savepoint(s);

	return c == NULL || (p != NULL && p->id > c->id) ? p : c;
}

static void put_checkpoints(const struct sink *s, const struct checkpoint_stats *stats)
{
	struct checkpoint_counts c = checkpoint_stats_counts(stats);
	const struct checkpoint_record *r = latest_completed(stats);
	const struct restored_stats *restored = checkpoint_stats_restored(stats);

	put(s, "totalNumberOfCheckpoints", (int64_t)c.total);
	put(s, "numberOfInProgressCheckpoints", (int64_t)c.in_progress);
	put(s, "numberOfCompletedCheckpoints", (int64_t)c.completed);
	put(s, "numberOfFailedCheckpoints", (int64_t)c.failed);
	put(s, "lastCheckpointRestoreTimestamp", restored->id == 0 ? -1 : restored->restore_ms);
	put(s, "lastCompletedCheckpointId", r == NULL ? -1 : r->id);
	put(s, "lastCheckpointDuration", r == NULL ? -1 : checkpoint_record_duration_ms(r));
	put(s, "lastCheckpointSize", r == NULL ? -1 : r->checkpointed_bytes);
	put(s, "lastCheckpointFullSize", r == NULL ? -1 : r->state_bytes);
	put(s, "lastCheckpointProcessedData", r == NULL ? -1 : r->processed_bytes);
	put(s, "lastCheckpointPersistedData", r == NULL ? -1 : r->persisted_bytes);
	put_text(s, "lastCheckpointExternalPath",
			r == NULL || r->location == NULL ? "n/a" : r->location);
}

static void put_watch(const struct sink *s, const struct job_master *jm)
{
	struct job_watch w = job_master_watch(jm);
	struct metric since = {.name = "secondsSinceLastCompletedCheckpoint",
			.kind = METRIC_REAL,
			.is_own = true,
			.real = (double)w.since_completed_ms / MS_IN_S};

	if (w.since_completed_ms >= 0)
		s->visit(s->context, &since);
	put_own(s, "checkpointsOverdue", w.overdue != NULL);
	put_own(s, "numberOfFailedCheckpointsInARow", w.failed_count);
}

/* The time of the state it is in; 0 of others. */
static void put_status_times(const struct sink *s, const struct job_master *jm)
{
	static const struct {
		enum job_status status;
		const char *name;
	} times[] = {{JOB_STATUS_INITIALIZING, "initializingTime"},
			{JOB_STATUS_CREATED, "createdTime"},
			{JOB_STATUS_RUNNING, "runningTime"},
			{JOB_STATUS_RESTARTING, "restartingTime"},
			{JOB_STATUS_FAILING, "failingTime"},
			{JOB_STATUS_CANCELLING, "cancellingTime"}};
	enum job_status status = job_master_status(jm);
	int64_t in_it = clock_wall_ms() - job_master_entered_ms(jm, status);
	bool is_over = job_status_is_terminal(status), is_up = status == JOB_STATUS_RUNNING;
	bool is_down = status == JOB_STATUS_RESTARTING || status == JOB_STATUS_FAILING;

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		put(s, times[i].name, status == times[i].status ? in_it : 0);
	put(s, "uptime", is_over ? -1 : is_up ? in_it : 0);
	put(s, "downtime", is_over ? -1 : is_down ? in_it : 0);
}

void metrics_of_job(struct job_master *jm, metric_visit visit, void *context)
{
	struct sink s = {visit, context, NULL};
	struct job_counts c = job_master_counts(jm);

	put_checkpoints(&s, job_master_checkpoints(jm));
	put_watch(&s, jm);
	put(&s, "numRestarts", c.restarts);
	put(&s, "fullRestarts", c.restarts);
	put_own(&s, "staleMessages", (int64_t)c.stale_messages);
	put_status_times(&s, jm);
}

/* ---- tasks ---- */

/* Of the newest checkpoint that this subtask acknowledged. */
static const struct subtask_stats *latest_acknowledged(
		const struct checkpoint_stats *stats, uint32_t subtask)
{
	const struct checkpoint_record *r;

	for (uint32_t i = 0; (r = checkpoint_stats_history(stats, i)) != NULL; i++)
		if (subtask < r->subtask_count && r->subtasks[subtask].ack_ms >= 0 &&
				!r->subtasks[subtask].is_finished)
			return &r->subtasks[subtask];
	return NULL;
}

static void put_numbers(const struct sink *s, const struct execution *e)
{
	const struct execution_numbers *n = &e->numbers;
	struct execution_rates r = execution_rates(e);

	put(s, "numRecordsIn", (int64_t)n->records_in);
	put_real(s, "numRecordsInPerSecond", r.records_in);
	put(s, "numRecordsOut", (int64_t)n->records_out);
	put_real(s, "numRecordsOutPerSecond", r.records_out);
	put(s, "numBytesIn", (int64_t)n->bytes_in);
	put_real(s, "numBytesInPerSecond", r.bytes_in);
	put(s, "numBytesOut", (int64_t)n->bytes_out);
	put_real(s, "numBytesOutPerSecond", r.bytes_out);
	put(s, "numBuffersOut", (int64_t)n->buffers_out);
	put_real(s, "numBuffersOutPerSecond", r.buffers_out);
	put(s, "accumulateBusyTimeMs", (int64_t)(n->busy_ns / NS_IN_MS));
	put(s, "accumulateIdleTimeMs", (int64_t)(n->idle_ns / NS_IN_MS));
	put(s, "accumulateBackPressuredTimeMs", (int64_t)(n->backpressured_ns / NS_IN_MS));
	put_real(s, "busyTimeMsPerSecond", r.busy_ms);
	put_real(s, "idleTimeMsPerSecond", r.idle_ms);
	put_real(s, "backPressuredTimeMsPerSecond", r.backpressured_ms);
	put(s, "isBackPressured", r.backpressured_ms > 0);
	put(s, "currentInputWatermark", n->watermark);
}

static void put_counter(void *context, const char *uid, const char *name, uint64_t value)
{
	const struct sink *task = context;
	struct sink s = {task->visit, task->context, uid};

	if (strcmp(name, "records_in") == 0)
		put(&s, "numRecordsIn", (int64_t)value);
	else if (strcmp(name, "records_out") == 0)
		put(&s, "numRecordsOut", (int64_t)value);
	else
		put_own(&s, name, (int64_t)value);
}

void metrics_of_task(struct job_master *jm, uint32_t place, uint32_t subtask_index,
		metric_visit visit, void *context)
{
	const struct execution *e = job_master_execution(jm, place, subtask_index);
	const struct subtask_stats *acknowledged =
			latest_acknowledged(job_master_checkpoints(jm), e->subtask);
	struct sink s = {visit, context, NULL};
	int64_t began = e->entered_ms[EXECUTION_INITIALIZING];
	int64_t ran = e->entered_ms[EXECUTION_RUNNING];

	put_numbers(&s, e);
	if (began > 0 && ran >= began)
		put(&s, "initializationTime", ran - began);
	if (acknowledged != NULL) {
		put(&s, "checkpointAlignmentTime", acknowledged->metrics.alignment_ns);
		put(&s, "checkpointStartDelayNanos", acknowledged->metrics.start_delay_ns);
		put_own(&s, "checkpointMode", acknowledged->metrics.ended);
		put_own(&s, "checkpointProcessedBytes", acknowledged->metrics.processed_bytes);
		put_own(&s, "checkpointPersistedBytes", acknowledged->metrics.persisted_bytes);
		put_own(&s, "checkpointPersistedChannels", acknowledged->metrics.channel_count);
		put_own(&s, "checkpointPersistedFiles", acknowledged->metrics.file_count);
		put_own(&s, "checkpointSyncNanos", acknowledged->metrics.sync_ns);
		put_own(&s, "checkpointAsyncNanos", acknowledged->metrics.async_ns);
	}
	job_master_visit_subtask_counters(jm, place, subtask_index, put_counter, &s);
}
