/* rest_cluster: the coordinator itself and its TaskManagers. */

#include "control/coordinator/coordinator.h"
#include "control/coordinator/membership.h"
#include "control/coordinator/resource_manager.h"
#include "control/rest/rest_internal.h"

#include <string.h>
#include <time.h>

enum { REFRESH_MS = 3000, MEBIBYTE = 1 << 20 };

/* Whose protocol this is; `weir-version` says who answers. */
#define FLINK_VERSION "1.20"

json_t *rest_config(struct rest_exchange *x)
{
	time_t now = time(NULL);
	struct tm tm;

	(void)x;
	localtime_r(&now, &tm);
	return json_pack("{s:i, s:s, s:I, s:s, s:s, s:s, s:{s:b, s:b, s:b, s:b}}",
			"refresh-interval", REFRESH_MS, "timezone-name", tm.tm_zone,
			"timezone-offset", (json_int_t)tm.tm_gmtoff * 1000, "flink-version",
			FLINK_VERSION, "flink-revision", "weir " WEIR_VERSION, "weir-version",
			WEIR_VERSION, "features", "web-submit", 1, "web-cancel", 1, "web-rescale",
			0, "web-history", 0);
}

json_t *rest_overview(struct rest_exchange *x)
{
	const struct resource_manager *r = coordinator_resources(x->coordinator);
	int running = 0, finished = 0, cancelled = 0, failed = 0, slots = 0, taken = 0;
	const struct job_master *jm;

	for (uint32_t i = 0; (jm = coordinator_job_at(x->coordinator, i)) != NULL; i++) {
		enum job_status status = job_master_status(jm);

		finished += status == JOB_STATUS_FINISHED;
		cancelled += status == JOB_STATUS_CANCELED;
		failed += status == JOB_STATUS_FAILED;
		running += !job_status_is_terminal(status);
	}
	for (uint32_t i = 0; i < MEMBERS_COUNT_MAX; i++) {
		const struct resource_row *row = resource_manager_row(r, i);

		if (row == NULL)
			continue;
		slots += (int)row->slot_count;
		taken += resource_manager_jobs(r, i) > 0 ? (int)row->slot_count : 0;
	}
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:s, s:s}", "taskmanagers",
			(int)resource_manager_count(r), "slots-total", slots, "slots-available",
			slots - taken, "jobs-running", running, "jobs-finished", finished,
			"jobs-cancelled", cancelled, "jobs-failed", failed, "flink-version",
			FLINK_VERSION, "flink-commit", "weir", "weir-version", WEIR_VERSION);
}

static json_t *resource(double cores, uint64_t managed, uint64_t network)
{
	return json_pack("{s:f, s:i, s:i, s:I, s:I, s:{}}", "cpuCores", cores, "taskHeapMemory", 0,
			"taskOffHeapMemory", 0, "managedMemory", (json_int_t)(managed / MEBIBYTE),
			"networkMemory", (json_int_t)(network / MEBIBYTE), "extendedResources");
}

/* What Flink does not know of. */
static void add_ours(json_t *o, const struct resource_row *row, uint32_t job_count)
{
	json_t *cores = json_array();

	for (uint32_t i = 0; i < row->core_count; i++)
		json_array_append_new(cores, json_integer(row->cores[i]));
	json_object_set_new(o, "host", json_string(row->host));
	json_object_set_new(o, "pid", json_integer(row->pid));
	json_object_set_new(o, "cores", cores);
	json_object_set_new(o, "pages", json_string(row->pages));
	json_object_set_new(o, "weir-version", json_string(row->version));
	json_object_set_new(o, "jobs", json_integer(job_count));
}

static json_t *row_object(const struct resource_manager *r, uint32_t member)
{
	const struct resource_row *row = resource_manager_row(r, member);
	bool is_free = resource_manager_jobs(r, member) == 0;
	json_int_t bytes = (json_int_t)(row->state_bytes + row->pool_bytes);
	json_t *o = json_pack("{s:s, s:s, s:i, s:i, s:I, s:i, s:i, s:o, s:o}", "id", row->id,
			"path", row->peer, "dataPort", 0, "jmxPort", -1, "timeSinceLastHeartbeat",
			(json_int_t)row->heard_ms, "slotsNumber", (int)row->slot_count,
			"freeSlots", is_free ? (int)row->slot_count : 0, "totalResource",
			resource(row->slot_count, row->state_bytes, row->pool_bytes),
			"freeResource",
			is_free ? resource(row->slot_count, row->state_bytes, row->pool_bytes)
				: resource(0, 0, 0));

	json_object_set_new(o, "hardware",
			json_pack("{s:i, s:I, s:I, s:I}", "cpuCores", (int)row->core_count,
					"physicalMemory", bytes, "freeMemory", (json_int_t)0,
					"managedMemory", (json_int_t)row->state_bytes));
	json_object_set_new(o, "memoryConfiguration",
			json_pack("{s:I, s:I, s:I}", "networkMemory", (json_int_t)row->pool_bytes,
					"managedMemory", (json_int_t)row->state_bytes,
					"totalProcessMemory", bytes));
	add_ours(o, row, resource_manager_jobs(r, member));
	return o;
}

json_t *rest_taskmanagers(struct rest_exchange *x)
{
	const struct resource_manager *r = coordinator_resources(x->coordinator);
	json_t *all = json_array();

	for (uint32_t i = 0; i < MEMBERS_COUNT_MAX; i++)
		if (resource_manager_row(r, i) != NULL)
			json_array_append_new(all, row_object(r, i));
	return json_pack("{s:o}", "taskmanagers", all);
}

json_t *rest_taskmanager(struct rest_exchange *x)
{
	const struct resource_manager *r = coordinator_resources(x->coordinator);

	for (uint32_t i = 0; i < MEMBERS_COUNT_MAX; i++) {
		const struct resource_row *row = resource_manager_row(r, i);

		if (row != NULL && strcmp(row->id, x->arguments[0]) == 0)
			return row_object(r, i);
	}
	return rest_refuse(x, 404, "TaskManager %s not found", x->arguments[0]);
}
