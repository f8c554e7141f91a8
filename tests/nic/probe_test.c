#include "nic/probe.h"

#include "nic/topology.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A made-up /proc and /sys. */
static char root[] = "/tmp/weir_probe_XXXXXX";

static void begin(void)
{
	cr_assert_not_null(mkdtemp(root));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void end(void)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(probe, .init = begin, .fini = end);

/* Makes the folders that lead to root/path and returns that path. */
static const char *make_way(const char *path)
{
	static char full[1024];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash != NULL;
			slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	return full;
}

static void put(const char *path, const char *text)
{
	FILE *file = fopen(make_way(path), "w");

	cr_assert_not_null(file, "%s", path);
	fputs(text, file);
	fclose(file);
}

static void put_link(const char *path, const char *target)
{
	cr_assert_eq(symlink(target, make_way(path)), 0, "%s", path);
}

static int64_t integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value == NULL ? "(null)" : value;
}

Test(probe, hugepages_are_listed_with_their_mount)
{
	put("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512\n");
	put("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "500\n");
	put("proc/meminfo", "MemTotal: 8 kB\nHugepagesize:       2048 kB\n");
	put("proc/mounts", "proc /proc proc rw 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw,relatime "
			   "0 0\n");
	json_t *sizes = probe_hugepages(root), *size = json_array_get(sizes, 0);

	cr_assert_eq(json_array_size(sizes), 1);
	cr_expect_eq(integer(size, "page_bytes"), 2 << 20);
	cr_expect_eq(integer(size, "total"), 512);
	cr_expect_eq(integer(size, "free"), 500);
	cr_expect_str_eq(text(json_object_get(size, "mount"), "path"), "/dev/hugepages");
	json_decref(sizes);
}

Test(probe, a_mount_of_another_page_size_is_not_taken)
{
	put("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "1\n");
	put("proc/meminfo", "Hugepagesize:       2048 kB\n");
	put("proc/mounts", "none /dev/hugepages hugetlbfs rw,pagesize=2M 0 0\n");
	json_t *sizes = probe_hugepages(root);

	cr_expect(json_is_null(json_object_get(json_array_get(sizes, 0), "mount")));
	cr_expect(json_is_null(json_object_get(json_array_get(sizes, 0), "free")));
	json_decref(sizes);
	put("proc/mounts", "none /big hugetlbfs rw,pagesize=1024M 0 0\n");
	sizes = probe_hugepages(root);
	cr_expect_str_eq(text(json_object_get(json_array_get(sizes, 0), "mount"), "path"), "/big");
	json_decref(sizes);
}

Test(probe, memory_reads_meminfo_and_the_smallest_cgroup_limit)
{
	put("proc/meminfo", "MemTotal:       1000 kB\nMemAvailable:    600 kB\n");
	put("proc/self/cgroup", "0::/a/b\n");
	put("sys/fs/cgroup/a/b/memory.max", "max\n");
	put("sys/fs/cgroup/a/memory.max", "409600\n");
	json_t *memory = probe_memory(root);

	cr_expect_eq(integer(memory, "total_bytes"), 1024000);
	cr_expect_eq(integer(memory, "available_bytes"), 614400);
	cr_expect_eq(integer(memory, "cgroup_limit_bytes"), 409600);
	json_decref(memory);
}

Test(probe, cores_show_the_cgroup_share_of_either_version)
{
	struct topology *t;
	char error[TOPOLOGY_ERROR_BYTES];

	cr_assert_eq(topology_open_synthetic(&t, "core:2 pu:1", "0-1", "1", error), 0, "%s", error);
	json_t *cores = probe_cores(root, t);
	cr_expect_str_eq(text(cores, "online"), "0-1");
	cr_expect_str_eq(text(cores, "allowed"), "1");
	cr_expect_eq(json_array_size(json_object_get(cores, "list")), 2);
	cr_expect(json_is_null(json_object_get(cores, "cgroup_limit_hundredths")));
	json_decref(cores);

	put("proc/self/cgroup", "0::/x\n4:cpu,cpuacct:/y\n3:cpuset:/z\n");
	put("sys/fs/cgroup/x/cpu.max", "150000 100000\n");
	cores = probe_cores(root, t);
	cr_expect_eq(integer(cores, "cgroup_limit_hundredths"), 150);
	json_decref(cores);

	put("sys/fs/cgroup/cpu/y/cpu.cfs_quota_us", "50000\n");
	put("sys/fs/cgroup/cpu/y/cpu.cfs_period_us", "100000\n");
	cores = probe_cores(root, t);
	cr_expect_eq(integer(cores, "cgroup_limit_hundredths"), 50);
	json_decref(cores);
	topology_close(t);
}

Test(probe, nics_are_found_with_driver_node_group_and_interface)
{
	put("sys/bus/pci/devices/0000:00:01.0/class", "0x060000\n");
	put("sys/bus/pci/devices/0000:00:03.0/class", "0x020000\n");
	put("sys/bus/pci/devices/0000:00:03.0/numa_node", "1\n");
	put("sys/bus/pci/devices/0000:00:03.0/vendor", "0x8086\n");
	put_link("sys/bus/pci/devices/0000:00:03.0/driver", "../../../bus/pci/drivers/ixgbe");
	put_link("sys/bus/pci/devices/0000:00:03.0/iommu_group", "../../kernel/iommu_groups/17");
	put("sys/devices/pci0000:00/0000:00:03.0/virtio2/mark", "");
	put_link("sys/class/net/eth0/device", "../../../devices/pci0000:00/0000:00:03.0/virtio2");
	put("sys/class/net/lo/mtu", "65536\n");
	put("sys/devices/platform/nic0/mark", "");
	put_link("sys/class/net/end0/device", "../../../devices/platform/nic0");
	json_t *nics = probe_nics(root), *nic = json_array_get(nics, 0);

	cr_assert_eq(json_array_size(nics), 2);
	cr_expect_str_eq(text(nic, "pci"), "0000:00:03.0");
	cr_expect_str_eq(text(nic, "driver"), "ixgbe");
	cr_expect_str_eq(text(nic, "iommu_group"), "17");
	cr_expect_eq(integer(nic, "node"), 1);
	cr_assert_eq(json_array_size(json_object_get(nic, "interfaces")), 1);
	cr_expect_str_eq(json_string_value(json_array_get(json_object_get(nic, "interfaces"), 0)),
			"eth0");
	nic = json_array_get(nics, 1);
	cr_expect(json_is_null(json_object_get(nic, "pci")));
	cr_expect_str_eq(json_string_value(json_array_get(json_object_get(nic, "interfaces"), 0)),
			"end0");
	json_decref(nics);
}

Test(probe, what_keeps_io_uring_away_is_told_apart)
{
	static const struct {
		struct probe_uring_facts facts;
		enum probe_uring verdict;
	} cases[] = {
			{{0, 0, 0, true}, PROBE_URING_WORKS},
			{{ENOSYS, -1, 0, false}, PROBE_URING_OLD_KERNEL},
			{{ENOSYS, -1, 2, true}, PROBE_URING_SECCOMP},
			{{ENOSYS, -1, 0, true}, PROBE_URING_OLD_KERNEL},
			{{EPERM, 2, 0, true}, PROBE_URING_SYSCTL},
			{{EPERM, 1, 2, true}, PROBE_URING_SYSCTL},
			{{EPERM, 0, 2, true}, PROBE_URING_SECCOMP},
			{{EPERM, -1, 2, true}, PROBE_URING_SECCOMP},
			{{EPERM, 0, 0, true}, PROBE_URING_OTHER},
			{{ENOMEM, 0, 0, true}, PROBE_URING_MEMLOCK},
			{{EINVAL, 0, 0, true}, PROBE_URING_OTHER},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(probe_uring_verdict(&cases[i].facts), cases[i].verdict, "case %zu", i);
}

Test(probe, a_host_that_shows_nothing_still_gives_all_parts)
{
	struct topology *t;
	char error[TOPOLOGY_ERROR_BYTES];

	cr_assert_eq(topology_open_synthetic(&t, "pu:1", "0", "0", error), 0, "%s", error);
	json_t *facts = probe_collect(root, t);
	cr_assert_not_null(facts);
	cr_expect_eq(json_array_size(json_object_get(facts, "hugepages")), 0);
	cr_expect_eq(json_array_size(json_object_get(facts, "nics")), 0);
	cr_expect(json_is_null(json_object_get(json_object_get(facts, "memory"), "total_bytes")));
	cr_expect_not_null(json_object_get(json_object_get(facts, "io_uring"), "state"));
	json_decref(facts);
	topology_close(t);
}
