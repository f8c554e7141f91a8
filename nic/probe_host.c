#include "nic/probe.h"
#include "nic/probe_internal.h"
#include "nic/topology.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static json_t *number_or_null(int64_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

json_t *probe_cores(const char *root, const struct topology *t)
{
	static const char *const names[] = {"online", "cgroup", "affinity", "allowed"};
	json_t *cores = json_object(), *list = json_array();
	struct topology_core core;
	char text[TOPOLOGY_LIST_BYTES];

	for (int set = TOPOLOGY_ONLINE; set <= TOPOLOGY_ALLOWED; set++) {
		topology_print_set(t, (enum topology_set)set, text, sizeof(text));
		json_object_set_new(cores, names[set], json_string(text));
	}
	json_object_set_new(
			cores, "allowed_count", json_integer(topology_count(t, TOPOLOGY_ALLOWED)));
	for (uint32_t i = 0; topology_core_at(t, i, &core); i++)
		json_array_append_new(list,
				json_pack("{s:i, s:i, s:i, s:i, s:b}", "os", (int)core.os_index,
						"logical", (int)core.logical_index, "physical",
						(int)core.physical_index, "node", (int)core.node,
						"allowed",
						topology_is_in(t, TOPOLOGY_ALLOWED,
								core.os_index)));
	json_object_set_new(cores, "list", list);
	json_object_set_new(cores, "cgroup_limit_hundredths",
			number_or_null(probe_cgroup_cpu_hundredths(root)));
	return cores;
}

json_t *probe_workers(const struct topology *t, const struct core_list *cores)
{
	char error[TOPOLOGY_ERROR_BYTES];
	struct topology_choice choice;
	json_t *list = json_array();

	if (topology_choose(t, cores, &choice, error) != 0)
		return json_pack("{s:o, s:s}", "cores", list, "error", error);
	for (uint32_t i = 0; i < choice.count; i++)
		json_array_append_new(list, json_integer(choice.cores[i].os_index));
	return json_pack("{s:o, s:s}", "cores", list, "control", choice.control_cpus);
}

static int64_t kib_to_bytes(int64_t kib)
{
	return kib < 0 || kib > INT64_MAX / 1024 ? -1 : kib * 1024;
}

static json_t *limit_json(rlim_t limit)
{
	return limit == RLIM_INFINITY ? json_null() : json_integer((json_int_t)limit);
}

json_t *probe_memory(const char *root)
{
	char text[PROBE_TEXT_BYTES] = "";
	struct rlimit lock = {0};

	probe_read(text, sizeof(text), "%s/proc/meminfo", root);
	getrlimit(RLIMIT_MEMLOCK, &lock);
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b}", "total_bytes",
			number_or_null(kib_to_bytes(probe_find_number(text, "MemTotal:", -1))),
			"available_bytes",
			number_or_null(kib_to_bytes(probe_find_number(text, "MemAvailable:", -1))),
			"cgroup_limit_bytes", number_or_null(probe_cgroup_memory_bytes(root)),
			"memlock_soft_bytes", limit_json(lock.rlim_cur), "memlock_hard_bytes",
			limit_json(lock.rlim_max), "is_root", geteuid() == 0);
}

json_t *probe_capabilities(const char *root)
{
	enum { NET_ADMIN = 12, NET_RAW = 13 }; /* CAP_* */
	static const char name[] = "CapEff:";
	char text[PROBE_TEXT_BYTES];

	if (!probe_read(text, sizeof(text), "%s/proc/self/status", root))
		return json_null();
	const char *at = strstr(text, name);
	if (at == NULL)
		return json_null();
	unsigned long long caps = strtoull(at + sizeof(name) - 1, NULL, 16);
	return json_pack("{s:b, s:b}", "net_raw", (int)(caps >> NET_RAW & 1), "net_admin",
			(int)(caps >> NET_ADMIN & 1));
}

/* ---- hugepages ----------------------------------------------------------------------------- */

/* "2M" in the options of a mount; 0: not said, so it is the size the kernel prefers. */
static int64_t page_bytes_of(const char *options)
{
	const char *at = strstr(options, "pagesize=");
	char *end;

	if (at == NULL)
		return 0;
	long long value = strtoll(at + strlen("pagesize="), &end, 10);
	int shift = *end == 'G' ? 30 : *end == 'M' ? 20 : *end == 'K' ? 10 : 0;
	return value <= 0 || value > (1 << 20) ? 0 : (int64_t)value << shift;
}

/* Where pages of that size are mounted, or NULL. */
static json_t *find_mount(const char *root, int64_t page_bytes)
{
	char text[PROBE_TEXT_BYTES], *cursor = NULL, meminfo[PROBE_TEXT_BYTES] = "";

	if (!probe_read(text, sizeof(text), "%s/proc/mounts", root))
		return json_null();
	probe_read(meminfo, sizeof(meminfo), "%s/proc/meminfo", root);
	int64_t preferred = kib_to_bytes(probe_find_number(meminfo, "Hugepagesize:", -1));
	for (char *line = strtok_r(text, "\n", &cursor); line != NULL;
			line = strtok_r(NULL, "\n", &cursor)) {
		char folder[256], type[64], options[512];

		if (sscanf(line, "%*s %255s %63s %511s", folder, type, options) != 3 ||
				strcmp(type, "hugetlbfs") != 0)
			continue;
		int64_t bytes = page_bytes_of(options);
		if (bytes == page_bytes || (bytes == 0 && preferred == page_bytes))
			return json_pack("{s:s, s:b}", "path", folder, "writable",
					access(folder, W_OK) == 0);
	}
	return json_null();
}

json_t *probe_hugepages(const char *root)
{
	json_t *sizes = json_array();
	char folder[PROBE_PATH_BYTES];

	snprintf(folder, sizeof(folder), "%s/sys/kernel/mm/hugepages", root);
	DIR *dir = opendir(folder);
	for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
		const char *name = entry->d_name;
		int64_t kib;

		if (sscanf(name, "hugepages-%" SCNd64 "kB", &kib) != 1 || kib <= 0)
			continue;
		int64_t bytes = kib_to_bytes(kib);
		json_array_append_new(
				sizes, json_pack("{s:I, s:s, s:o, s:o, s:o}", "page_bytes",
						       (json_int_t)bytes, "name", name, "total",
						       number_or_null(probe_read_number(-1,
								       "%s/%s/nr_hugepages", folder,
								       name)),
						       "free",
						       number_or_null(probe_read_number(-1,
								       "%s/%s/free_hugepages",
								       folder, name)),
						       "mount", find_mount(root, bytes)));
	}
	if (dir != NULL)
		closedir(dir);
	return sizes;
}
