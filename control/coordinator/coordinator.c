#include "control/coordinator/coordinator.h"

#include "control/config/config.h"
#include "control/coordinator/checkpoint_storage.h"
#include "control/coordinator/ha_store.h"
#include "control/coordinator/io_thread.h"
#include "control/coordinator/resource_manager.h"
#include "control/coordinator/savepoint_disposals.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NEWS_AGE_MS = 30000 };

struct coordinator {
	struct loop *loop;
	const struct config *config;
	struct ha_store *ha;
	struct io_thread *io;
	struct resource_manager *resources;
	struct savepoint_disposals *disposals;
	uint32_t job_count;
	struct job_master *jobs[COORDINATOR_JOBS_MAX]; /* oldest first */
	uint32_t ended_count;
	struct ended_job ended[COORDINATOR_ENDED_MAX];
};

/* ---- events of TaskManagers ---- */

static void on_joined(void *owner, uint32_t member)
{
	struct coordinator *c = owner;

	(void)member;
	for (uint32_t i = 0; i < c->job_count; i++)
		job_master_on_joined(c->jobs[i]);
}

static void on_lost(void *owner, uint32_t member, const char *reason)
{
	struct coordinator *c = owner;

	for (uint32_t i = 0; i < c->job_count; i++)
		job_master_on_lost(c->jobs[i], member, reason);
}

static void on_message(void *owner, uint32_t member, const Weir__Envelope *envelope)
{
	struct coordinator *c = owner;

	io_thread_collect(c->io);
	for (uint32_t i = 0; i < c->job_count; i++)
		if (job_master_on_message(c->jobs[i], member, envelope))
			return;
}

static const struct resource_manager_events events = {on_joined, on_lost, on_message};

/* ---- life ---- */

static int listen_for_taskmanagers(struct coordinator *c, char text[COORDINATOR_TEXT_BYTES])
{
	int rc = resource_manager_create(&c->resources, c->loop, c->config, &events, c);

	if (rc != 0)
		snprintf(text, COORDINATOR_TEXT_BYTES,
				"cannot listen for TaskManagers on %s:%d (jobmanager.bind-host, "
				"jobmanager.rpc.port): %s",
				config_text(c->config, "jobmanager.bind-host"),
				(int)config_int(c->config, "jobmanager.rpc.port"), strerror(-rc));
	return rc;
}

int coordinator_create(struct coordinator **out, struct loop *l, const struct config *config,
		char text[COORDINATOR_TEXT_BYTES])
{
	struct coordinator *c = calloc(1, sizeof(*c));

	snprintf(text, COORDINATOR_TEXT_BYTES, "out of memory");
	if (c == NULL)
		return -ENOMEM;
	c->loop = l;
	c->config = config;
	int rc = ha_store_open(
			&c->ha, config_text(config, "high-availability.storageDir"), text);
	if (rc == 0)
		rc = io_thread_create(&c->io, l);
	if (rc == 0)
		rc = savepoint_disposals_create(&c->disposals, c->io);
	if (rc == 0)
		rc = listen_for_taskmanagers(c, text);
	if (rc != 0) {
		coordinator_destroy(c);
		return rc;
	}
	*out = c;
	return 0;
}

void coordinator_suspend(struct coordinator *c)
{
	for (uint32_t i = 0; i < c->job_count; i++)
		job_master_suspend(c->jobs[i]);
}

/* Who asked a coordinator before this one comes soon or not at all. */
static bool is_news(const struct ended_job *e)
{
	return e->record->stop_request.len > 0 && !e->is_told &&
			clock_wall_ms() - e->record->ended_ms < NEWS_AGE_MS;
}

bool coordinator_has_news(const struct coordinator *c)
{
	for (uint32_t i = 0; i < c->job_count; i++)
		if (job_master_has_news(c->jobs[i]))
			return true;
	for (uint32_t i = 0; i < c->ended_count; i++)
		if (is_news(&c->ended[i]))
			return true;
	return false;
}

void coordinator_destroy(struct coordinator *c)
{
	if (c == NULL)
		return;
	/* What the I/O thread still has under way tells jobs about it. */
	io_thread_destroy(c->io);
	savepoint_disposals_destroy(c->disposals);
	for (uint32_t i = 0; i < c->job_count; i++)
		job_master_destroy(c->jobs[i]);
	for (uint32_t i = 0; i < c->ended_count; i++)
		weir__job_record__free_unpacked(c->ended[i].record, NULL);
	resource_manager_destroy(c->resources);
	ha_store_close(c->ha);
	free(c);
}

static struct job_services services_of(const struct coordinator *c)
{
	return (struct job_services){c->loop, c->io, c->ha, c->resources, c->config};
}

/* ---- jobs ---- */

static void remove_job(struct coordinator *c, uint32_t index)
{
	job_master_destroy(c->jobs[index]);
	c->job_count--;
	memmove(&c->jobs[index], &c->jobs[index + 1],
			(c->job_count - index) * sizeof(*c->jobs));
}

/* Over, and nothing of it is under way on the I/O thread any more. */
static bool is_forgettable(const struct job_master *jm)
{
	return job_status_is_terminal(job_master_status(jm)) && !job_master_is_busy(jm);
}

/* Keeps the last few that have ended, for people to look at. */
static void forget_ended(struct coordinator *c)
{
	uint32_t ended = 0;

	for (uint32_t i = c->job_count; i > 0; i--) {
		if (!is_forgettable(c->jobs[i - 1]))
			continue;
		ended++;
		if (ended > COORDINATOR_ENDED_MAX)
			remove_job(c, i - 1);
	}
}

/* The same job again takes the place of the one that ended. */
static void forget_same(struct coordinator *c, struct job_id id)
{
	for (uint32_t i = c->job_count; i > 0; i--)
		if (id128_is_equal(job_master_id(c->jobs[i - 1]).id, id.id) &&
				is_forgettable(c->jobs[i - 1]))
			remove_job(c, i - 1);
}

static void drop_ended(struct coordinator *c, uint32_t index)
{
	weir__job_record__free_unpacked(c->ended[index].record, NULL);
	c->ended[index] = c->ended[--c->ended_count];
}

static void drop_ended_of(struct coordinator *c, struct job_id id)
{
	for (uint32_t i = c->ended_count; i > 0; i--)
		if (id128_is_equal(c->ended[i - 1].id.id, id.id))
			drop_ended(c, i - 1);
}

/* Takes the record; the one that ended first makes room. */
static void keep_ended(struct coordinator *c, struct job_id id, Weir__JobRecord *record)
{
	uint32_t oldest = 0;

	if (c->ended_count == COORDINATOR_ENDED_MAX) {
		for (uint32_t i = 1; i < c->ended_count; i++)
			if (c->ended[i].record->ended_ms < c->ended[oldest].record->ended_ms)
				oldest = i;
		drop_ended(c, oldest);
	}
	c->ended[c->ended_count++] = (struct ended_job){id, record, false};
}

static void adopt(struct coordinator *c, struct job_master *jm)
{
	CHECK(c->job_count < COORDINATOR_JOBS_MAX);
	c->jobs[c->job_count++] = jm;
	job_master_start(jm);
}

/* Who asks again may not have heard the first answer; the job may have ended meanwhile. */
static bool find_submission(const struct coordinator *c, struct id128 submission, struct job_id *id)
{
	for (uint32_t i = 0; i < c->job_count; i++) {
		if (job_master_is_submission(c->jobs[i], submission)) {
			*id = job_master_id(c->jobs[i]);
			return true;
		}
	}
	for (uint32_t i = 0; i < c->ended_count; i++) {
		if (job_record_is_submission(c->ended[i].record, submission)) {
			*id = c->ended[i].id;
			return true;
		}
	}
	return false;
}

int coordinator_submit(struct coordinator *c, const struct job_submission *submission,
		struct job_id *id, struct config_error *error)
{
	struct job_services services = services_of(c);
	struct job_master *jm;

	if (find_submission(c, submission->id, id))
		return 0;
	forget_ended(c);
	if (c->job_count == COORDINATOR_JOBS_MAX) {
		snprintf(error->text, sizeof(error->text), "%d jobs are here already",
				COORDINATOR_JOBS_MAX);
		return -EAGAIN;
	}
	int rc = job_master_create(&jm, &services, submission, error);
	if (rc != 0)
		return rc;
	*id = job_master_id(jm);
	struct job_master *other = coordinator_find_job(c, *id);
	if (other != NULL && !job_status_is_terminal(job_master_status(other))) {
		snprintf(error->text, sizeof(error->text),
				"job %s is here already and %s; stop it first (weir stop), or give "
				"this one another name",
				job_master_name(other),
				job_status_name(job_master_status(other)));
		job_master_destroy(jm);
		return -EEXIST;
	}
	rc = job_master_keep(jm);
	if (rc != 0) {
		snprintf(error->text, sizeof(error->text),
				"the job cannot be kept in high-availability.storageDir: %s",
				strerror(-rc));
		job_master_destroy(jm);
		return -EIO;
	}
	forget_same(c, *id);
	drop_ended_of(c, *id);
	adopt(c, jm);
	return 0;
}

/* Its end was durable, and what was under way then may not have been put away. */
static void sweep_ended(struct coordinator *c, struct job_id id, const Weir__JobRecord *record)
{
	char path[STORAGE_PATH_BYTES];
	uint32_t swept = 0;

	if (!record->refused && checkpoint_storage_job_path(
			    config_text(c->config, "execution.checkpointing.dir"), id, path) == 0)
		swept = checkpoint_storage_sweep(path, 0, NULL, 0);
	if (swept > 0)
		log_info("coordinator", "job %s: %u unfinished checkpoints swept away",
				record->name, swept);
}

static void recover_job(struct coordinator *c, struct job_id id)
{
	struct job_services services = services_of(c);
	char text[HA_TEXT_BYTES], name[ID128_TEXT_BYTES];
	struct config_error error = {""};
	Weir__JobRecord *record;
	struct job_master *jm;

	id128_print(id.id, name);
	if (ha_store_read_job(c->ha, id, &record, text) != 0) {
		log_error("coordinator", "job %s cannot be recovered: %s", name, text);
		return;
	}
	if (record->end != WEIR__JOB_END__NOT_ENDED) {
		sweep_ended(c, id, record);
		keep_ended(c, id, record);
		return;
	}
	if (c->job_count < COORDINATOR_JOBS_MAX) {
		if (job_master_recover(&jm, &services, record, &error) == 0) {
			log_info("coordinator", "job %s (%s) is recovered", name,
					job_master_name(jm));
			adopt(c, jm);
		} else {
			log_error("coordinator", "job %s cannot be recovered: %s", name,
					error.text);
		}
	}
	weir__job_record__free_unpacked(record, NULL);
}

void coordinator_recover(struct coordinator *c, const char *which)
{
	struct job_id *jobs, only;
	uint32_t count;
	bool is_one = id128_parse(which, &only.id);
	int rc = ha_store_list_jobs(c->ha, &jobs, &count);

	if (rc != 0) {
		log_error("coordinator", "the jobs of the store cannot be listed: %s",
				strerror(-rc));
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		if (!is_one || id128_is_equal(jobs[i].id, only.id))
			recover_job(c, jobs[i]);
	free(jobs);
}

/* ---- what is ---- */

struct job_master *coordinator_job_at(const struct coordinator *c, uint32_t index)
{
	return index < c->job_count ? c->jobs[c->job_count - 1 - index] : NULL;
}

struct job_master *coordinator_find_job(const struct coordinator *c, struct job_id id)
{
	for (uint32_t i = c->job_count; i > 0; i--)
		if (id128_is_equal(job_master_id(c->jobs[i - 1]).id, id.id))
			return c->jobs[i - 1];
	return NULL;
}

const struct ended_job *coordinator_ended_at(const struct coordinator *c, uint32_t index)
{
	return index < c->ended_count ? &c->ended[index] : NULL;
}

bool coordinator_ended_answer(struct coordinator *c, const struct ended_job *e, struct id128 id,
		struct checkpoint_answer *answer)
{
	const Weir__JobRecord *r = e->record;

	if (r->stop_request.len != sizeof(id.bytes) ||
			memcmp(r->stop_request.data, id.bytes, sizeof(id.bytes)) != 0)
		return false;
	c->ended[e - c->ended].is_told = true;
	*answer = (struct checkpoint_answer){
			.is_done = true,
			.is_success = r->end == WEIR__JOB_END__ENDED_FINISHED,
			.is_savepoint = true,
			.location = r->stop_location,
			.text = r->failure[0] == 0 ? "the job was cancelled before it had left"
						   : r->failure,
	};
	return true;
}

int coordinator_dispose(struct coordinator *c, const char *path, struct id128 *id)
{
	return savepoint_disposals_begin(c->disposals, path, c->jobs, c->job_count, id);
}

bool coordinator_disposal_answer(
		const struct coordinator *c, struct id128 id, struct checkpoint_answer *answer)
{
	return savepoint_disposals_answer(c->disposals, id, answer);
}

uint16_t coordinator_port(const struct coordinator *c)
{
	return resource_manager_port(c->resources);
}

const struct config *coordinator_config(const struct coordinator *c)
{
	return c->config;
}

struct resource_manager *coordinator_resources(const struct coordinator *c)
{
	return c->resources;
}
