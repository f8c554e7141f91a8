#include "control/coordinator/job_locations.h"

#include "control/coordinator/job_master_internal.h"
#include "control/coordinator/task_manager_gateway.h"
#include "control/proto/message.h"
#include "dataplane/base/check.h"

static_assert(JOB_PLACES_MAX <= 32, "a bit for each place");

static void check(struct job_master *jm)
{
	struct job_locations *l = &jm->locations;

	if (l->waiting != 0)
		return;
	l->id = 0;
	checkpoint_coordinator_on_location_prepared(
			jm->checkpoints, l->token, 0, l->location, job_now());
}

void job_tell_location(
		struct job_master *jm, uint64_t token, int64_t id, const char *location)
{
	struct job_locations *l = &jm->locations;

	CHECK(l->id == 0 && id != 0);
	l->token = token;
	l->id = id;
	snprintf(l->location, sizeof(l->location), "%s", location);
	for (uint32_t i = 0; i < jm->subtask_count; i++) {
		struct execution *e = &jm->executions[i];

		if (e->gateway == NULL || job_place_of(jm, e->member) == PLACE_NONE)
			continue;
		l->waiting |= 1u << job_place_of(jm, e->member);
		task_manager_gateway_locate(e->gateway, e->attempt, id, l->location);
	}
	job_flush_places(jm);
	check(jm);
}

bool job_on_savepoint_located(
		struct job_master *jm, uint32_t member, const Weir__SavepointLocated *m)
{
	struct job_locations *l = &jm->locations;
	uint32_t place = job_place_of(jm, member);

	if (l->id == 0 || m->checkpoint_id != l->id || place == PLACE_NONE ||
			!job_is_own(jm, (struct attempt_id){message_id(&m->attempt)}))
		return false;
	l->waiting &= ~(1u << place);
	check(jm);
	job_pump(jm);
	return true;
}

void job_check_locations(struct job_master *jm)
{
	if (jm->locations.id == 0)
		return;
	check(jm);
	job_pump(jm);
}
