/* rest_taskmanagers: /taskmanagers: who is here, and what they have.  What Flink shows of a JVM's
 * heap is 0 here, what is not known is -1. */

#include "control/config/job_file.h"
#include "control/coordinator/resource_manager.h"
#include "control/rest/rest_internal.h"

#define MIB (UINT64_C(1) << 20)

uint32_t rest_job_slots(const struct job_master *jm, uint32_t member)
{
	const struct job_spec *spec = job_master_spec(jm);
	uint32_t used = 0;

	for (uint32_t place = 0; place < spec->vertex_count; place++) {
		for (uint32_t s = 0; s < rest_vertex(jm, place)->parallelism; s++) {
			const struct execution *e = job_master_execution(jm, place, s);

			if (e->member == member && !execution_is_terminal(e) && s + 1 > used)
				used = s + 1;
		}
	}
	return used;
}

uint32_t rest_used_slots(const struct coordinator *c, uint32_t member)
{
	struct job_master *jm;
	uint32_t used = 0;

	for (uint32_t i = 0; (jm = coordinator_job_at(c, i)) != NULL; i++)
		used += rest_job_slots(jm, member);
	return used;
}

/* `slots` of a TaskManager's `slot_count`. */
static json_t *resource(const struct resource_row *row, uint32_t slots)
{
	uint64_t all = row->slot_count > 0 ? row->slot_count : 1;

	return json_pack("{s:f, s:i, s:i, s:I, s:I, s:{}}", "cpuCores",
			(double)row->core_count * slots / (double)all, "taskHeapMemory", 0,
			"taskOffHeapMemory", 0, "managedMemory",
			(json_int_t)(row->state_bytes / MIB * slots / all), "networkMemory",
			(json_int_t)(row->pool_bytes / MIB * slots / all), "extendedResources");
}

static json_t *memory(const struct resource_row *row)
{
	json_int_t pool = (json_int_t)row->pool_bytes, state = (json_int_t)row->state_bytes;

	return json_pack("{s:i, s:i, s:i, s:i, s:I, s:I, s:i, s:i, s:I, s:I}", "frameworkHeap", 0,
			"taskHeap", 0, "frameworkOffHeap", 0, "taskOffHeap", 0, "networkMemory",
			pool, "managedMemory", state, "jvmMetaspace", 0, "jvmOverhead", 0,
			"totalFlinkMemory", pool + state, "totalProcessMemory", pool + state);
}

/* What only we have. */
static json_t *own(const struct resource_row *row)
{
	json_t *cores = json_array();

	for (uint32_t i = 0; i < row->core_count && i < RESOURCE_CORES_MAX; i++)
		json_array_append_new(cores, json_integer(row->cores[i]));
	return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "pid", (int)row->pid, "host",
			rest_text(row->host), "weir-version", rest_text(row->version), "pages",
			rest_text(row->pages), "cores", cores, "link", rest_text(row->link),
			"linkPort", rest_text(row->link_port), "packetPorts",
			rest_text(row->packet_ports));
}

static json_t *taskmanager(const struct coordinator *c, uint32_t member)
{
	const struct resource_row *row = resource_manager_row(coordinator_resources(c), member);
	uint32_t used = rest_used_slots(c, member);
	uint32_t free_slots = used < row->slot_count ? row->slot_count - used : 0;
	json_int_t state = (json_int_t)row->state_bytes;

	return json_pack("{s:o, s:o, s:i, s:i, s:I, s:i, s:i, s:o, s:o, s:{s:i, s:i, s:i, s:I}, "
			 "s:o, s:o}",
			"id", rest_text(row->id), "path", rest_text(row->peer), "dataPort", -1,
			"jmxPort", -1, "timeSinceLastHeartbeat", (json_int_t)row->heard_ms,
			"slotsNumber", (int)row->slot_count, "freeSlots", (int)free_slots,
			"totalResource", resource(row, row->slot_count), "freeResource",
			resource(row, free_slots), "hardware", "cpuCores", (int)row->core_count,
			"physicalMemory", -1, "freeMemory", -1, "managedMemory", state,
			"memoryConfiguration", memory(row), "weir", own(row));
}

void rest_get_taskmanagers(struct rest_call *call)
{
	struct resource_manager *r = coordinator_resources(call->coordinator);
	json_t *all = json_array();

	for (uint32_t member = 0; member < MEMBERS_COUNT_MAX; member++)
		if (resource_manager_row(r, member) != NULL)
			json_array_append_new(all, taskmanager(call->coordinator, member));
	rest_answer(call, 200, json_pack("{s:o}", "taskmanagers", all));
}

static json_t *allocated(const struct coordinator *c, uint32_t member)
{
	const struct resource_row *row = resource_manager_row(coordinator_resources(c), member);
	json_t *slots = json_array();
	struct job_master *jm;

	for (uint32_t i = 0; (jm = coordinator_job_at(c, i)) != NULL; i++)
		for (uint32_t k = rest_job_slots(jm, member); k > 0; k--)
			json_array_append_new(slots, json_pack("{s:o, s:o}", "jobId",
							rest_job_id(jm), "resource",
							resource(row, 1)));
	return slots;
}

static json_t *metrics(const struct resource_row *row)
{
	static const char *const none[] = {"heapUsed", "heapCommitted", "heapMax", "nonHeapUsed",
			"nonHeapCommitted", "nonHeapMax", "directCount", "directUsed", "directMax",
			"mappedCount", "mappedUsed", "mappedMax"};
	static const char *const unknown[] = {"memorySegmentsAvailable", "memorySegmentsTotal",
			"nettyShuffleMemorySegmentsAvailable", "nettyShuffleMemorySegmentsUsed",
			"nettyShuffleMemorySegmentsTotal", "nettyShuffleMemoryAvailable",
			"nettyShuffleMemoryUsed"};
	json_t *m = json_object();

	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		json_object_set_new(m, none[i], json_integer(0));
	for (size_t i = 0; i < sizeof(unknown) / sizeof(*unknown); i++)
		json_object_set_new(m, unknown[i], json_integer(-1));
	json_object_set_new(m, "nettyShuffleMemoryTotal",
			json_integer((json_int_t)row->pool_bytes));
	json_object_set_new(m, "garbageCollectors", json_array());
	return m;
}

void rest_get_taskmanager(struct rest_call *call)
{
	const struct coordinator *c = call->coordinator;
	json_t *json = taskmanager(c, call->member);

	json_object_set_new(json, "allocatedSlots", allocated(c, call->member));
	json_object_set_new(json, "metrics",
			metrics(resource_manager_row(coordinator_resources(c), call->member)));
	rest_answer(call, 200, json);
}
