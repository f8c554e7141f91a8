#include "control/cli/topology_picture.h"

#include "control/cli/doctor_internal.h"
#include "dataplane/base/core_list.h"

#include <stdlib.h>
#include <string.h>

/* By node, then physical core, then as the kernel numbers them. */
static int compare(const void *a, const void *b)
{
	const struct picture_core *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->physical_index != y->physical_index)
		return x->physical_index < y->physical_index ? -1 : 1;
	return x->os_index < y->os_index ? -1 : x->os_index > y->os_index;
}

static int32_t worker_on(const json_t *workers, int64_t os_index)
{
	const json_t *list = json_object_get(workers, "cores"), *core;
	size_t i;

	json_array_foreach(list, i, core)
	{
		if (json_is_integer(core) && json_integer_value(core) == os_index)
			return (int32_t)i;
	}
	return -1;
}

static bool is_in(const struct core_list *list, int64_t os_index)
{
	for (uint32_t i = 0; i < list->count; i++) {
		if (list->cores[i] == (uint64_t)os_index)
			return true;
	}
	return false;
}

static void take_cores(struct host_picture *p, const json_t *facts)
{
	const json_t *list = json_object_get(json_object_get(facts, "cores"), "list"), *core;
	const json_t *workers = json_object_get(facts, "workers");
	struct core_list control = {0};
	size_t i;

	if (core_list_parse(doctor_text(workers, "control", ""), &control) != 0)
		control.count = 0;
	p->error = doctor_text(workers, "error", NULL);
	p->worker_count = (uint32_t)json_array_size(json_object_get(workers, "cores"));
	json_array_foreach(list, i, core)
	{
		if (p->core_count == PICTURE_CORES_MAX)
			break;
		struct picture_core *c = &p->cores[p->core_count++];
		c->os_index = doctor_integer(core, "os");
		c->logical_index = doctor_integer(core, "logical");
		c->physical_index = doctor_integer(core, "physical");
		c->node = doctor_integer(core, "node");
		c->is_allowed = json_is_true(json_object_get(core, "allowed"));
		c->worker = worker_on(workers, c->os_index);
		c->is_control = is_in(&control, c->os_index);
	}
	qsort(p->cores, p->core_count, sizeof(p->cores[0]), compare);
}

/* The port of that name; one that the host does not have is made by --vdev.  NULL: "" or no room.
 */
static struct picture_port *find_port(struct host_picture *p, const char *name)
{
	for (uint32_t i = 0; i < p->port_count; i++) {
		if (doctor_is_same_address(p->ports[i].name, name))
			return &p->ports[i];
	}
	if (name[0] == '\0' || p->port_count == PICTURE_PORTS_MAX)
		return NULL;
	struct picture_port *port = &p->ports[p->port_count++];
	*port = (struct picture_port){.name = name, .driver = "virtual", .node = -1};
	return port;
}

/* What the config says of them. */
static void mark_ports(struct host_picture *p, const struct config *config)
{
	struct picture_port *port = find_port(p, config_text(config, "weir.link.port"));

	if (port != NULL)
		port->is_link = true;
	config_list(config, "weir.nic.ports", &p->packets);
	for (uint32_t i = 0; i < p->packets.count; i++) {
		port = find_port(p, p->packets.items[i]);
		if (port != NULL)
			port->is_packets = true;
	}
}

static void take_ports(struct host_picture *p, const json_t *facts, const struct config *config)
{
	const json_t *nics = json_object_get(facts, "nics"), *nic;
	size_t i;

	json_array_foreach(nics, i, nic)
	{
		const char *name = doctor_text(nic, "pci", NULL);

		if (name == NULL || p->port_count == PICTURE_PORTS_MAX)
			continue;
		struct picture_port *port = &p->ports[p->port_count++];
		port->name = name;
		port->driver = doctor_text(nic, "driver", "none");
		port->interface = json_string_value(
				json_array_get(json_object_get(nic, "interfaces"), 0));
		port->node = doctor_integer(nic, "node");
	}
	mark_ports(p, config);
}

void picture_take(struct host_picture *p, const json_t *facts, const struct config *config,
		const struct job_spec *job)
{
	const json_t *memory = json_object_get(facts, "memory");

	memset(p, 0, sizeof(*p));
	p->host = doctor_text(facts, "host", "?");
	p->kernel = doctor_text(facts, "kernel", "?");
	p->memory_bytes = doctor_integer(memory, "total_bytes");
	p->available_bytes = doctor_integer(memory, "available_bytes");
	p->state_bytes = config_size(config, "taskmanager.memory.managed.size");
	p->network_bytes = config_size(config, "taskmanager.memory.network.size");
	p->hugepages = json_object_get(facts, "hugepages");
	p->is_spread = job != NULL && config_int(config, "weir.job.taskmanagers") > 1;
	p->job = p->is_spread ? NULL : job;
	take_cores(p, facts);
	take_ports(p, facts, config);
}

bool picture_task(const struct host_picture *p, int32_t worker, uint32_t index,
		char text[PICTURE_TEXT_BYTES])
{
	if (p->job == NULL || worker < 0 || p->worker_count == 0)
		return false;
	for (uint32_t v = 0; v < p->job->vertex_count; v++) {
		const struct job_vertex *vertex = &p->job->vertices[v];

		for (uint32_t s = (uint32_t)worker; s < vertex->parallelism; s += p->worker_count) {
			if (index-- > 0)
				continue;
			snprintf(text, PICTURE_TEXT_BYTES, "%.36s (%u/%u)", vertex->uid, s + 1,
					vertex->parallelism);
			return true;
		}
	}
	return false;
}

void picture_role(const struct picture_core *core, char text[PICTURE_TEXT_BYTES])
{
	if (core->worker >= 0)
		snprintf(text, PICTURE_TEXT_BYTES, "worker %d%s", core->worker,
				core->is_control ? " + control" : "");
	else
		snprintf(text, PICTURE_TEXT_BYTES, "%s",
				!core->is_allowed  ? "not allowed"
				: core->is_control ? "control"
						   : "");
}

static bool uses(const struct job_operator *o, const struct picture_port *port)
{
	for (uint32_t i = 0; i < o->table->param_count; i++) {
		if (strcmp(o->table->params[i].name, "port") == 0)
			return doctor_is_same_address(port->name, o->values[i].text);
	}
	return false;
}

/* " to ingest, from out" */
static void add_users(const struct job_spec *job, const struct picture_port *port,
		char text[PICTURE_USE_BYTES], size_t used)
{
	const char *between = "";

	for (uint32_t v = 0; v < job->vertex_count; v++) {
		const struct job_vertex *vertex = &job->vertices[v];

		for (uint32_t i = 0; i < vertex->operator_count; i++) {
			const struct job_operator *o = &vertex->operators[i];

			if (!uses(o, port) || used >= PICTURE_USE_BYTES)
				continue;
			used += (size_t)snprintf(text + used, PICTURE_USE_BYTES - used,
					"%s %s %.36s", between,
					o->table->role == WEIR_SOURCE ? "to" : "from", vertex->uid);
			between = ",";
		}
	}
}

void picture_use(const struct host_picture *p, const struct picture_port *port,
		char text[PICTURE_USE_BYTES])
{
	int used = snprintf(text, PICTURE_USE_BYTES, "%s%s%s",
			port->is_link ? "link to other TaskManagers" : "",
			port->is_link && port->is_packets ? "; " : "",
			port->is_packets ? "packets" : "");

	if (p->job != NULL && port->is_packets)
		add_users(p->job, port, text, (size_t)used);
}
