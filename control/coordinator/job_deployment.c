/* job_deployment: from "there is a TaskManager" to running tasks (semantics 19.1). */

#include "control/coordinator/files_list.h"
#include "control/coordinator/job_master_internal.h"
#include "control/coordinator/job_metadata.h"
#include "control/coordinator/resource_manager.h"
#include "control/coordinator/task_manager_gateway.h"
#include "control/metadata/metadata.h"
#include "dataplane/base/check.h"
#include "dataplane/base/crash_point.h"
#include "dataplane/base/log.h"
#include "dataplane/base/prng.h"

#include "control/proto/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Files that one source begins with, when no checkpoint says which. */
struct listing {
	char **files;
	uint32_t count;
};

/* What is read before tasks can be sent off. */
struct deploy_work {
	struct job_master *jm;
	uint64_t generation;
	char *location; /* of the checkpoint restored from; NULL: none */
	struct metadata *metadata;
	struct listing *listings; /* files_count of them */
	int status;
	char directory[METADATA_PATH_BYTES];
	char text[JOB_TEXT_BYTES];
};

static const struct metadata_bytes *state_of_coordinator(
		const struct metadata *m, const char *uid)
{
	for (uint32_t i = 0; m != NULL && i < m->coordinator_count; i++)
		if (strcmp(m->coordinators[i].name, uid) == 0)
			return &m->coordinators[i].bytes;
	return NULL;
}

static bool is_finished(const struct metadata *m, const char *uid)
{
	for (uint32_t i = 0; m != NULL && i < m->vertex_count; i++)
		if (strcmp(m->vertices[i].uid, uid) == 0)
			return m->vertices[i].is_finished;
	return false;
}

/* Its source needs no files any more (PL-5: there is no state of its coordinator either). */
static bool needs_files(const struct deploy_work *w, const struct job_files *f)
{
	return !is_finished(w->metadata, job_vertex_at(w->jm, f->place)->uid);
}

/* ---- on the I/O thread ---- */

static void read_all(void *context)
{
	struct deploy_work *w = context;
	const struct job_master *jm = w->jm;
	char text[METADATA_TEXT_BYTES] = "";

	if (w->location != NULL)
		w->status = metadata_read(&w->metadata, w->location, w->directory, text);
	if (w->status != 0) {
		snprintf(w->text, sizeof(w->text),
				"the checkpoint to restore from cannot be read: %s", text);
		return;
	}
	for (uint32_t i = 0; w->status == 0 && i < jm->files_count; i++) {
		char reason[FILES_TEXT_BYTES];

		if (state_of_coordinator(w->metadata, jm->files[i].uid) != NULL ||
				!needs_files(w, &jm->files[i]))
			continue;
		w->status = files_list(jm->files[i].path, &w->listings[i].files,
				&w->listings[i].count, reason);
		if (w->status != 0)
			snprintf(w->text, sizeof(w->text), "source %s: %s", jm->files[i].uid,
					reason);
	}
}

/* ---- the message ---- */

/* What holds for tasks of this job, wherever it was set; what nobody set each TaskManager knows. */
static const char *const task_keys[] = {
		"execution.buffer-timeout.enabled",
		"execution.buffer-timeout.interval",
		"execution.checkpointing.data-inline-threshold",
		"execution.checkpointing.max-concurrent-checkpoints",
		"execution.checkpointing.mode",
		"execution.checkpointing.unaligned.enabled",
		"execution.checkpointing.unaligned.max-subtasks-per-channel-state-file",
		"execution.state-recovery.ignore-unclaimed-state",
		"parallelism.default",
		"pipeline.max-parallelism",
		"weir.network.control-lane",
};

enum { TASK_KEYS_COUNT = sizeof(task_keys) / sizeof(task_keys[0]) };

static bool is_task_key(const char *assignment)
{
	for (uint32_t i = 0; i < TASK_KEYS_COUNT; i++) {
		size_t length = strlen(task_keys[i]);

		if (strncmp(assignment, task_keys[i], length) == 0 && assignment[length] == '=')
			return true;
	}
	return false;
}

/* Keeps the assignments among "-D", "key=value", ... that tasks need; returns how many. */
static uint32_t keep_task_keys(char **args, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		if (is_task_key(args[i]))
			args[kept++] = args[i];
	return kept;
}

/* Of a vertex with another parallelism than then each task takes its share of all states. */
static void restore_task(
		Weir__SubmitTask *t, const struct metadata_vertex *from, uint32_t parallelism)
{
	t->finished = from->is_finished;
	if (from->parallelism != parallelism)
		return;
	for (uint32_t i = 0; i < from->subtask_count; i++) {
		const struct metadata_subtask *s = &from->subtasks[i];

		if (s->index != t->subtask_index)
			continue;
		t->finished = s->is_finished;
		t->state = (ProtobufCBinaryData){
				s->state.size, (uint8_t *)(uintptr_t)s->state.data};
	}
}

/* One message: what one TaskManager is told of one region. */
struct region_message {
	uint32_t region, place;
	const struct metadata *metadata;
	Weir__SubmitTasks m;
	Weir__SubmitTask *tasks, **task_pointers;
	Weir__RemoteTask *remotes, **remote_pointers;
	Weir__LinkPeer peers[JOB_PLACES_MAX], *peer_pointers[JOB_PLACES_MAX];
	uint32_t peer_of[JOB_PLACES_MAX]; /* by place: 1 + index among the peers, 0: none yet */
};

static void fill_task(const struct job_master *jm, struct region_message *r, uint32_t s)
{
	const struct metadata *m = r->metadata;
	uint32_t place = execution_graph_vertex_of(jm->graph, s);
	const char *uid = job_vertex_at(jm, place)->uid;
	Weir__SubmitTask *t = &r->tasks[s];

	r->task_pointers[r->m.n_tasks++] = t;
	weir__submit_task__init(t);
	t->vertex = jm->spec->order[place];
	t->subtask_index = execution_graph_index_of(jm->graph, s);
	t->attempt = message_id_bytes(&jm->executions[s].attempt.id);
	for (uint32_t v = 0; m != NULL && v < m->vertex_count; v++)
		if (strcmp(m->vertices[v].uid, uid) == 0)
			restore_task(t, &m->vertices[v], job_vertex_at(jm, place)->parallelism);
}

static uint32_t peer_index(const struct job_master *jm, struct region_message *r, uint32_t place)
{
	const struct resource_row *row = resource_manager_row(
			jm->services.resources, jm->places.members[place]);

	if (r->peer_of[place] == 0) {
		Weir__LinkPeer *peer = &r->peers[r->m.n_peers];

		weir__link_peer__init(peer);
		CHECK(row != NULL);
		peer->address = (char *)(uintptr_t)row->link;
		peer->token = job_link_token(jm, r->region, r->place, place);
		r->peer_pointers[r->m.n_peers++] = peer;
		r->peer_of[place] = (uint32_t)r->m.n_peers;
	}
	return r->peer_of[place] - 1;
}

static void fill_remote(
		const struct job_master *jm, struct region_message *r, uint32_t s, uint32_t place)
{
	Weir__RemoteTask *t = &r->remotes[s];

	r->remote_pointers[r->m.n_remote_tasks++] = t;
	weir__remote_task__init(t);
	t->vertex = jm->spec->order[execution_graph_vertex_of(jm->graph, s)];
	t->subtask_index = execution_graph_index_of(jm->graph, s);
	t->peer = peer_index(jm, r, place);
}

/* The tasks of the region at that place, and where its others are. */
static void fill_tasks(const struct job_master *jm, struct region_message *r)
{
	for (uint32_t s = 0; s < jm->subtask_count; s++) {
		uint32_t place = job_place_of_subtask(jm, s);

		if (jm->regions.of[s] != r->region)
			continue;
		if (place == r->place)
			fill_task(jm, r, s);
		else
			fill_remote(jm, r, s, place);
	}
	r->m.tasks = r->task_pointers;
	r->m.remote_tasks = r->remote_pointers;
	r->m.peers = r->peer_pointers;
}

static void fill_job(struct job_master *jm, const struct deploy_work *w, Weir__SubmitTasks *m)
{
	m->job = message_id_bytes(&jm->spec->id.id);
	m->job_name = (char *)(uintptr_t)jm->spec->name;
	m->job_file = jm->record->file_text;
	m->job_file_name = jm->record->file_name;
	m->plugin_dir = jm->record->plugin_dir;
	m->n_overrides = jm->record->n_overrides;
	m->overrides = jm->record->overrides;
	m->checkpoint_dir = jm->job_path;
	m->leaving = jm->stop.step == STOP_LEAVING;
	if (w->metadata != NULL) {
		m->restored_dir = (char *)(uintptr_t)w->directory;
		m->restored_checkpoint_id = w->metadata->checkpoint_id;
	}
}

/* To one TaskManager, when it has tasks of the region. */
static int submit_region(
		struct job_master *jm, const struct deploy_work *w, struct region_message *r)
{
	uint32_t setting_count, member = jm->places.members[r->place];
	char **settings = config_to_args(jm->config, &setting_count);
	int rc = 0;

	CHECK(settings != NULL);
	fill_tasks(jm, r);
	fill_job(jm, w, &r->m);
	r->m.deployment = jm->run ^ (jm->generation * JOB_REGIONS_MAX + r->region);
	r->m.n_settings = keep_task_keys(settings, setting_count);
	r->m.settings = settings;
	r->m.rescaled_states = job_rescaled_states(
			jm, r->metadata, r->region, &r->m.n_rescaled_states);
	if (r->m.n_tasks > 0) {
		jm->regions.at[r->region].deployment = r->m.deployment;
		jm->regions.at[r->region].building |= 1u << r->place;
		resource_manager_set_busy(jm->services.resources, member, true);
		rc = task_manager_gateway_submit(
				resource_manager_gateway(jm->services.resources, member), &r->m);
	}
	free(r->m.rescaled_states);
	free(settings);
	return rc;
}

static int submit_to(struct job_master *jm, const struct deploy_work *w, uint32_t region,
		uint32_t place)
{
	struct region_message r = {
			.region = region,
			.place = place,
			.metadata = w->metadata,
			.m = WEIR__SUBMIT_TASKS__INIT,
			.tasks = calloc(jm->subtask_count, sizeof(*r.tasks)),
			.task_pointers = calloc(jm->subtask_count, sizeof(*r.task_pointers)),
			.remotes = calloc(jm->subtask_count, sizeof(*r.remotes)),
			.remote_pointers = calloc(jm->subtask_count, sizeof(*r.remote_pointers)),
	};

	CHECK(r.tasks != NULL && r.task_pointers != NULL && r.remotes != NULL &&
			r.remote_pointers != NULL);
	int rc = submit_region(jm, w, &r);
	free(r.tasks);
	free(r.task_pointers);
	free(r.remotes);
	free(r.remote_pointers);
	return rc;
}

static int submit(struct job_master *jm, const struct deploy_work *w)
{
	int rc = 0;

	for (uint32_t i = 0; i < jm->regions.count && rc == 0; i++) {
		if (!jm->regions.at[i].must_restart)
			continue;
		for (uint32_t k = 0; k < jm->places.count && rc == 0; k++)
			rc = submit_to(jm, w, i, k);
		jm->regions.at[i].must_restart = false;
	}
	return rc;
}

/* ---- before and after ---- */

static void make_attempts(struct job_master *jm)
{
	jm->attempt_number++;
	for (uint32_t s = 0; s < jm->subtask_count; s++) {
		struct execution *e = &jm->executions[s];

		if (!job_must_restart(jm, s))
			continue;
		execution_reset(e, s, jm->attempt_number, jm->run, job_now().wall_ms);
		execution_graph_set_attempt(jm->graph, s, e->attempt);
		jm->leaving[s] = (struct job_leaving){0};
	}
}

/* The operator coordinators go back to the checkpoint, or to the beginning (RE-7). */
static int reset_files(struct job_master *jm, const struct deploy_work *w)
{
	for (uint32_t i = 0; i < jm->files_count; i++) {
		struct job_files *f = &jm->files[i];
		const struct metadata_bytes *state = state_of_coordinator(w->metadata, f->uid);
		int rc = 0;

		if (!job_must_restart(jm, execution_graph_subtask(jm->graph, f->place, 0)))
			continue;
		rc = state == NULL ? split_enumerator_reset(f->enumerator, NULL, 0)
				       : split_enumerator_reset(f->enumerator, state->data,
							 state->size);

		if (rc == 0 && state != NULL && !split_enumerator_is_listed(f->enumerator))
			rc = -EBADMSG;
		if (rc == 0 && state == NULL)
			rc = split_enumerator_set_files(f->enumerator, w->listings[i].files,
					w->listings[i].count);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static void take_slots(struct job_master *jm, const struct metadata *m)
{
	for (uint32_t s = 0; s < jm->subtask_count; s++) {
		uint32_t place = execution_graph_vertex_of(jm->graph, s);
		uint32_t member = jm->places.members[job_place_of_subtask(jm, s)];

		if (!job_must_restart(jm, s))
			continue;
		jm->was_finished[place] = is_finished(m, job_vertex_at(jm, place)->uid);
		execution_take_slot(&jm->executions[s], member,
				resource_manager_gateway(jm->services.resources, member));
		job_set_execution(jm, &jm->executions[s], EXECUTION_DEPLOYING);
	}
}

/* NULL, or why these tasks cannot be sent. */
static const char *send_tasks(struct job_master *jm, struct deploy_work *w)
{
	if (w->status != 0)
		return w->text;
	if (w->metadata != NULL && job_metadata_check(jm, w->metadata, w->text) != 0)
		return w->text;
	if (reset_files(jm, w) != 0)
		return "the state of a source's file list cannot be read";
	if (w->metadata != NULL)
		job_metadata_tell_changes(jm, w->metadata);
	take_slots(jm, w->metadata);
	jm->restored_id = w->metadata == NULL ? 0 : w->metadata->checkpoint_id;
	crash_point("before-deploy");
	if (submit(jm, w) != 0)
		return "the tasks with their state are too large for one message";
	crash_point("after-deploy");
	return NULL;
}

static void free_work(struct deploy_work *w)
{
	for (uint32_t i = 0; i < w->jm->files_count; i++)
		files_list_free(w->listings[i].files, w->listings[i].count);
	free(w->listings);
	metadata_free(w->metadata);
	free(w->location);
	free(w);
}

static void on_read(void *context)
{
	struct deploy_work *w = context;
	struct job_master *jm = w->jm;

	jm->is_preparing = false;
	/* Cancelled, suspended, or the TaskManager went away meanwhile. */
	if (w->generation != jm->generation) {
		free_work(w);
		job_check_ended(jm);
		job_deploy(jm);
		return;
	}
	const char *fault = send_tasks(jm, w);
	if (fault != NULL) {
		jm->is_restore_refused = w->location != NULL;
		job_fail_for_good(jm, NULL, fault);
	} else {
		job_enter(jm, JOB_STATUS_RUNNING);
	}
	free_work(w);
}

bool job_may_deploy(const struct job_master *jm)
{
	return (jm->status == JOB_STATUS_CREATED || jm->status == JOB_STATUS_RESTARTING) &&
			!jm->is_delayed && !jm->is_preparing && job_is_ready_to_restart(jm);
}

void job_deploy(struct job_master *jm)
{
	char waiting[JOB_WAITING_BYTES];

	if (!job_may_deploy(jm))
		return;
	if (!job_take_places(jm)) {
		CHECK(job_is_waiting(jm, waiting));
		log_info("job_master", "job %s %s", jm->spec->name, waiting);
		return;
	}
	make_attempts(jm);
	const struct completed_checkpoint *from =
			checkpoint_coordinator_restore_latest(jm->checkpoints, job_now());
	struct deploy_work *w = calloc(1, sizeof(*w));
	CHECK(w != NULL);
	w->jm = jm;
	w->generation = ++jm->generation;
	if (jm->stop.step == STOP_LEAVING)
		w->location = strdup(jm->record->stop_location);
	else
		w->location = from == NULL ? NULL : strdup(from->location);
	w->listings = calloc(jm->files_count + 1, sizeof(*w->listings));
	CHECK(w->listings != NULL && (from == NULL || w->location != NULL));
	if (w->location != NULL)
		log_info("job_master", "job %s restores %s", jm->spec->name, w->location);
	jm->is_preparing = true;
	job_pump(jm);
	job_post(jm, read_all, on_read, w);
}

/* What the TaskManager will say again, however often it is asked.  An attempt may still be ending
 * that has what this one asks for: of another job, of which the TaskManager knows (-EAGAIN), or of
 * this job, which another coordinator began. */
static bool is_for_good(const struct job_master *jm, int status)
{
	if (status == -EAGAIN || (status == -EBUSY && jm->is_recovery))
		return false;
	return !jm->was_deployed || status == -EBADMSG || status == -EINVAL || status == -ENOMEM;
}

/* The TaskManager has none of the region's tasks that were for it. */
static void refuse(struct job_master *jm, uint32_t region, uint32_t member,
		const Weir__DeployAnswer *answer)
{
	const struct resource_row *row = resource_manager_row(jm->services.resources, member);
	char text[JOB_TEXT_BYTES];

	for (uint32_t s = 0; s < jm->subtask_count; s++)
		if (jm->regions.of[s] == region && jm->executions[s].member == member)
			job_set_execution(jm, &jm->executions[s],
					jm->executions[s].state == EXECUTION_CANCELING
							? EXECUTION_CANCELED
							: EXECUTION_FAILED);
	snprintf(text, sizeof(text), "%.1000s (TaskManager %s on %s)%s", answer->error,
			row == NULL ? "?" : row->id, row == NULL ? "?" : row->host,
			answer->status == -EBADMSG && jm->restored_id > 0
					? "; weir run --restore latest --allow-rewind goes back to "
					  "the checkpoint before it"
					: "");
	jm->is_restore_refused = jm->restored_id > 0 &&
			(answer->status == -EBADMSG || answer->status == -EINVAL);
	/* A failure while restoring is one of the whole job (FO-2). */
	if (is_for_good(jm, answer->status))
		job_fail_for_good(jm, NULL, text);
	else
		job_fail(jm, NULL, text);
}

static bool is_building_at(const struct job_master *jm, uint32_t place)
{
	for (uint32_t i = 0; i < jm->regions.count; i++)
		if ((jm->regions.at[i].building >> place & 1) != 0)
			return true;
	return false;
}

bool job_on_deploy_answer(
		struct job_master *jm, uint32_t member, const Weir__DeployAnswer *answer)
{
	uint32_t region = job_region_deployed_as(jm, answer->deployment);
	uint32_t place = job_place_of(jm, member);

	if (region == UINT32_MAX || place == PLACE_NONE)
		return false;
	jm->regions.at[region].building &= ~(1u << place);
	if (!is_building_at(jm, place))
		resource_manager_set_busy(jm->services.resources, member, false);
	if (answer->status == 0)
		jm->was_deployed = true;
	else
		refuse(jm, region, member, answer);
	job_check_ended(jm);
	return true;
}

/* ---- the coordinators of operators ---- */

void job_send_files(struct job_master *jm)
{
	char text[SPLIT_TEXT_BYTES];
	uint32_t index;

	for (uint32_t i = 0; i < jm->files_count; i++) {
		struct job_files *f = &jm->files[i];

		while (split_enumerator_next(f->enumerator, &index, text)) {
			uint32_t s = execution_graph_subtask(jm->graph, f->place, index);

			execution_send_event(&jm->executions[s], f->operator_index, text);
		}
	}
}

void job_on_operator_event(
		struct job_master *jm, struct execution *e, const Weir__OperatorEvent *event)
{
	uint32_t place = execution_graph_vertex_of(jm->graph, e->subtask);

	for (uint32_t i = 0; i < jm->files_count; i++) {
		struct job_files *f = &jm->files[i];

		if (f->place != place || f->operator_index != event->operator_index)
			continue;
		if (split_enumerator_on_event(f->enumerator,
				    execution_graph_index_of(jm->graph, e->subtask),
				    event->data.data, event->data.len) != 0)
			log_warn("job_master", "job %s: operator %s sent an event that is none",
					jm->spec->name, f->uid);
		job_send_files(jm);
		return;
	}
}
