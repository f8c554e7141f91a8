#include "control/cli/doctor_internal.h"
#include "control/cli/topology_picture.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 512 };

static void print_memory(const struct host_picture *p, FILE *out)
{
	char a[DOCTOR_SIZE_BYTES], b[DOCTOR_SIZE_BYTES];
	const json_t *size;
	size_t i;

	fprintf(out, "memory      %s, %s available\n", doctor_size_text(p->memory_bytes, a),
			doctor_size_text(p->available_bytes, b));
	json_array_foreach(p->hugepages, i, size) fprintf(out,
			"hugepages   %s: %" PRId64 " of %" PRId64 " free\n",
			doctor_size_text(doctor_integer(size, "page_bytes"), a),
			doctor_integer(size, "free"), doctor_integer(size, "total"));
	fprintf(out, "TaskManager %s of state, %s of buffers\n",
			doctor_size_text(p->state_bytes, a), doctor_size_text(p->network_bytes, b));
}

/* A row of columns, without the padding behind its last one. */
__attribute__((format(printf, 2, 3))) static void print_row(FILE *out, const char *format, ...)
{
	char line[2 * LINE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	for (size_t end = strlen(line); end > 0 && line[end - 1] == ' '; end--)
		line[end - 1] = '\0';
	fprintf(out, "%s\n", line);
}

static void tasks_line(const struct host_picture *p, int32_t worker, char line[LINE_BYTES])
{
	char task[PICTURE_TEXT_BYTES];
	size_t used = 0;

	line[0] = '\0';
	for (uint32_t i = 0; used < LINE_BYTES && picture_task(p, worker, i, task); i++)
		used += (size_t)snprintf(
				line + used, LINE_BYTES - used, "%s%s", i > 0 ? ", " : "", task);
}

static void print_cores(const struct host_picture *p, FILE *out)
{
	char role[PICTURE_TEXT_BYTES], tasks[LINE_BYTES];

	fprintf(out, "\n");
	print_row(out, "%-4s  %-8s  %-4s  %-7s  %-18s  %s", "node", "physical", "core", "logical",
			"role", "tasks");
	for (uint32_t i = 0; i < p->core_count; i++) {
		const struct picture_core *c = &p->cores[i];
		char logical[24];

		picture_role(c, role);
		tasks_line(p, c->worker, tasks);
		snprintf(logical, sizeof(logical), "L#%" PRId64, c->logical_index);
		print_row(out, "%-4" PRId64 "  %-8" PRId64 "  %-4" PRId64 "  %-7s  %-18s  %s",
				c->node, c->physical_index, c->os_index, logical, role, tasks);
	}
}

static void print_ports(const struct host_picture *p, FILE *out)
{
	if (p->port_count == 0)
		return;
	fprintf(out, "\n");
	print_row(out, "%-4s  %-16s  %-14s  %-14s  %s", "node", "port", "driver", "interface",
			"role");
	for (uint32_t i = 0; i < p->port_count; i++) {
		const struct picture_port *port = &p->ports[i];
		char use[PICTURE_USE_BYTES];

		picture_use(p, port, use);
		print_row(out, "%-4" PRId64 "  %-16s  %-14s  %-14s  %s", port->node, port->name,
				port->driver, port->interface == NULL ? "-" : port->interface, use);
	}
}

bool picture_print_table(const struct host_picture *p, FILE *out)
{
	fprintf(out, "host        %s, kernel %s\n", p->host, p->kernel);
	print_memory(p, out);
	print_cores(p, out);
	print_ports(p, out);
	if (p->error != NULL)
		fprintf(out, "\nno worker: %s\n", p->error);
	if (p->is_spread)
		fprintf(out, "\nno tasks shown: the job is spread over several TaskManagers, which "
			     "may be on other hosts\n");
	return ferror(out) == 0;
}

static json_t *core_json(const struct host_picture *p, const struct picture_core *c)
{
	json_t *tasks = json_array();
	char text[PICTURE_TEXT_BYTES];

	for (uint32_t i = 0; picture_task(p, c->worker, i, text); i++)
		json_array_append_new(tasks, json_string(text));
	return json_pack("{s:I, s:I, s:I, s:I, s:b, s:b, s:o, s:o}", "core", c->os_index, "logical",
			c->logical_index, "physical", c->physical_index, "node", c->node, "allowed",
			c->is_allowed, "control", c->is_control, "worker",
			c->worker < 0 ? json_null() : json_integer(c->worker), "tasks", tasks);
}

static json_t *port_json(const struct host_picture *p, const struct picture_port *port)
{
	char use[PICTURE_USE_BYTES];

	picture_use(p, port, use);
	return json_pack("{s:s, s:s, s:s?, s:I, s:b, s:b, s:s}", "port", port->name, "driver",
			port->driver, "interface", port->interface, "node", port->node, "link",
			port->is_link, "packets", port->is_packets, "use", use);
}

bool picture_print_json(const struct host_picture *p, FILE *out)
{
	json_t *cores = json_array(), *ports = json_array();

	for (uint32_t i = 0; i < p->core_count; i++)
		json_array_append_new(cores, core_json(p, &p->cores[i]));
	for (uint32_t i = 0; i < p->port_count; i++)
		json_array_append_new(ports, port_json(p, &p->ports[i]));
	json_t *all = json_pack("{s:s, s:s, s:s?, s:I, s:I, s:I, s:I, s:o, s:o}", "host", p->host,
			"kernel", p->kernel, "error", p->error, "memory_bytes", p->memory_bytes,
			"available_bytes", p->available_bytes, "state_bytes", p->state_bytes,
			"network_bytes", p->network_bytes, "cores", cores, "ports", ports);
	bool is_good = all != NULL && json_dumpf(all, out, JSON_INDENT(2)) == 0;
	fputc('\n', out);
	json_decref(all);
	return is_good;
}
