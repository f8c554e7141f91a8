#include "nic/topology.h"

#include "dataplane/base/check.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS_COUNT = TOPOLOGY_ALLOWED + 1 };

struct topology {
	hwloc_topology_t machine;
	hwloc_bitmap_t sets[SETS_COUNT];
};

void topology_close(struct topology *t)
{
	if (t == NULL)
		return;
	for (int i = 0; i < SETS_COUNT; i++)
		hwloc_bitmap_free(t->sets[i]);
	hwloc_topology_destroy(t->machine);
	free(t);
}

static int refuse(struct topology *t, const char *what, char error[TOPOLOGY_ERROR_BYTES])
{
	int rc = errno > 0 ? -errno : -EIO;

	snprintf(error, TOPOLOGY_ERROR_BYTES, "cores: %s: %s", what, strerror(-rc));
	topology_close(t);
	return rc;
}

/* A topology without sets; `description` NULL: this machine, cores of other cgroups included. */
static int load(struct topology **out, const char *description, char error[TOPOLOGY_ERROR_BYTES])
{
	struct topology *t = calloc(1, sizeof(*t));

	if (t == NULL || hwloc_topology_init(&t->machine) != 0) {
		free(t);
		snprintf(error, TOPOLOGY_ERROR_BYTES, "cores: out of memory");
		return -ENOMEM;
	}
	for (int i = 0; i < SETS_COUNT; i++) {
		t->sets[i] = hwloc_bitmap_alloc();
		if (t->sets[i] == NULL)
			return refuse(t, "no memory", error);
	}
	errno = 0;
	if (description != NULL && hwloc_topology_set_synthetic(t->machine, description) != 0)
		return refuse(t, description, error);
	hwloc_topology_set_flags(t->machine, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
	if (hwloc_topology_load(t->machine) != 0)
		return refuse(t, "the machine cannot be read", error);
	*out = t;
	return 0;
}

static void join_sets(struct topology *t)
{
	hwloc_bitmap_t allowed = t->sets[TOPOLOGY_ALLOWED];

	hwloc_bitmap_and(t->sets[TOPOLOGY_CGROUP], t->sets[TOPOLOGY_CGROUP],
			t->sets[TOPOLOGY_ONLINE]);
	hwloc_bitmap_and(t->sets[TOPOLOGY_AFFINITY], t->sets[TOPOLOGY_AFFINITY],
			t->sets[TOPOLOGY_ONLINE]);
	hwloc_bitmap_and(allowed, t->sets[TOPOLOGY_CGROUP], t->sets[TOPOLOGY_AFFINITY]);
}

int topology_open(struct topology **out, char error[TOPOLOGY_ERROR_BYTES])
{
	struct topology *t = NULL;
	int rc = load(&t, NULL, error);

	if (rc != 0)
		return rc;
	hwloc_bitmap_copy(t->sets[TOPOLOGY_ONLINE], hwloc_topology_get_topology_cpuset(t->machine));
	hwloc_bitmap_copy(t->sets[TOPOLOGY_CGROUP], hwloc_topology_get_allowed_cpuset(t->machine));
	if (hwloc_get_cpubind(t->machine, t->sets[TOPOLOGY_AFFINITY], HWLOC_CPUBIND_THREAD) != 0)
		return refuse(t, "the affinity mask cannot be read", error);
	join_sets(t);
	*out = t;
	return 0;
}

int topology_open_synthetic(struct topology **out, const char *description, const char *cgroup,
		const char *affinity, char error[TOPOLOGY_ERROR_BYTES])
{
	struct topology *t = NULL;
	int rc = load(&t, description, error);

	if (rc != 0)
		return rc;
	hwloc_bitmap_copy(t->sets[TOPOLOGY_ONLINE], hwloc_topology_get_topology_cpuset(t->machine));
	errno = EINVAL;
	if (hwloc_bitmap_list_sscanf(t->sets[TOPOLOGY_CGROUP], cgroup) != 0 ||
			hwloc_bitmap_list_sscanf(t->sets[TOPOLOGY_AFFINITY], affinity) != 0)
		return refuse(t, "a list cannot be read", error);
	join_sets(t);
	*out = t;
	return 0;
}

static void describe(const struct topology *t, hwloc_obj_t pu, struct topology_core *core)
{
	hwloc_obj_t physical = hwloc_get_ancestor_obj_by_type(t->machine, HWLOC_OBJ_CORE, pu);

	core->os_index = pu->os_index;
	core->logical_index = pu->logical_index;
	core->physical_index = physical == NULL ? pu->logical_index : physical->logical_index;
	core->node = pu->nodeset == NULL ? -1 : hwloc_bitmap_first(pu->nodeset);
}

bool topology_core_at(const struct topology *t, uint32_t index, struct topology_core *core)
{
	hwloc_obj_t pu = hwloc_get_obj_by_type(t->machine, HWLOC_OBJ_PU, index);

	if (pu == NULL)
		return false;
	describe(t, pu, core);
	return true;
}

bool topology_is_in(const struct topology *t, enum topology_set set, uint32_t os_index)
{
	return hwloc_bitmap_isset(t->sets[set], os_index) != 0;
}

uint32_t topology_count(const struct topology *t, enum topology_set set)
{
	int count = hwloc_bitmap_weight(t->sets[set]);

	return count < 0 ? 0 : (uint32_t)count;
}

void topology_print_set(const struct topology *t, enum topology_set set, char *text, size_t size)
{
	hwloc_bitmap_list_snprintf(text, size, t->sets[set]);
}

/* ---- choosing ------------------------------------------------------------------------------ */

/* How many chosen cores share the physical core of `core`. */
static uint32_t siblings_in(const struct topology_choice *choice, const struct topology_core *core)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < choice->count; i++)
		count += choice->cores[i].physical_index == core->physical_index;
	return count;
}

static bool has_core(const struct topology_choice *choice, uint32_t os_index)
{
	for (uint32_t i = 0; i < choice->count; i++) {
		if (choice->cores[i].os_index == os_index)
			return true;
	}
	return false;
}

/* Round by round: the first hardware thread of each physical core, then the second of each. */
static void choose_some(
		const struct topology *t, uint32_t count_max, struct topology_choice *choice)
{
	uint32_t available = topology_count(t, TOPOLOGY_ALLOWED);
	uint32_t wanted = available < count_max ? available : count_max;

	for (uint32_t round = 0; choice->count < wanted; round++) {
		struct topology_core core;

		for (uint32_t i = 0; choice->count < wanted && topology_core_at(t, i, &core); i++) {
			if (topology_is_in(t, TOPOLOGY_ALLOWED, core.os_index) &&
					!has_core(choice, core.os_index) &&
					siblings_in(choice, &core) <= round)
				choice->cores[choice->count++] = core;
		}
	}
}

static int refuse_core(const struct topology *t, const struct core_list *list, uint32_t core,
		int rc, char error[TOPOLOGY_ERROR_BYTES])
{
	bool is_online = rc == -EPERM;
	char online[128], cgroup[128], affinity[128];

	topology_print_set(t, TOPOLOGY_ONLINE, online, sizeof(online));
	topology_print_set(t, TOPOLOGY_CGROUP, cgroup, sizeof(cgroup));
	topology_print_set(t, TOPOLOGY_AFFINITY, affinity, sizeof(affinity));
	if (!is_online)
		snprintf(error, TOPOLOGY_ERROR_BYTES,
				"weir.cores: core %s%u is not online; expected some of %s",
				list->is_logical ? "L#" : "", core, online);
	else
		snprintf(error, TOPOLOGY_ERROR_BYTES,
				"weir.cores: core %s%u is not allowed for this process; the cgroup "
				"leaves "
				"%s, the affinity mask %s",
				list->is_logical ? "L#" : "", core, cgroup, affinity);
	return rc;
}

static int choose_listed(const struct topology *t, const struct core_list *list,
		struct topology_choice *choice, char error[TOPOLOGY_ERROR_BYTES])
{
	for (uint32_t i = 0; i < list->count; i++) {
		hwloc_obj_t pu = list->is_logical ? hwloc_get_obj_by_type(t->machine, HWLOC_OBJ_PU,
								    list->cores[i])
						  : hwloc_get_pu_obj_by_os_index(
								    t->machine, list->cores[i]);
		if (pu == NULL)
			return refuse_core(t, list, list->cores[i], -ENODEV, error);
		if (!topology_is_in(t, TOPOLOGY_ALLOWED, pu->os_index))
			return refuse_core(t, list, list->cores[i], -EPERM, error);
		describe(t, pu, &choice->cores[choice->count++]);
	}
	return 0;
}

static int print_control_cpus(const struct topology *t, struct topology_choice *choice)
{
	hwloc_bitmap_t rest = hwloc_bitmap_dup(t->sets[TOPOLOGY_ALLOWED]);

	if (rest == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < choice->count; i++)
		hwloc_bitmap_clr(rest, choice->cores[i].os_index);
	hwloc_bitmap_list_snprintf(choice->control_cpus, sizeof(choice->control_cpus),
			hwloc_bitmap_iszero(rest) ? t->sets[TOPOLOGY_ALLOWED] : rest);
	hwloc_bitmap_free(rest);
	return 0;
}

int topology_choose(const struct topology *t, const struct core_list *list,
		struct topology_choice *choice, char error[TOPOLOGY_ERROR_BYTES])
{
	int rc = 0;

	CHECK(list->count <= WORKERS_COUNT_MAX);
	*choice = (struct topology_choice){0};
	if (topology_count(t, TOPOLOGY_ALLOWED) == 0) {
		snprintf(error, TOPOLOGY_ERROR_BYTES,
				"weir.cores: cgroup and affinity mask leave no core in common");
		return -EPERM;
	}
	if (list->is_auto)
		choose_some(t, list->count, choice);
	else
		rc = choose_listed(t, list, choice, error);
	if (rc == 0 && print_control_cpus(t, choice) != 0) {
		snprintf(error, TOPOLOGY_ERROR_BYTES, "cores: out of memory");
		rc = -ENOMEM;
	}
	return rc;
}

void topology_print_choice(const struct topology_choice *choice, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < choice->count && used < size; i++) {
		const struct topology_core *core = &choice->cores[i];

		used += (size_t)snprintf(text + used, size - used, "%s%u (L#%u, node %d)",
				i == 0 ? "" : ", ", core->os_index, core->logical_index,
				core->node);
	}
}
