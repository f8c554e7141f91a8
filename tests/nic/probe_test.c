#include "nic/probe.h"

#include "dataplane/base/core_list.h"
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

Test(probe, the_cores_of_workers_are_chosen_as_at_a_start)
{
	struct topology *t;
	struct core_list cores;
	char error[TOPOLOGY_ERROR_BYTES];

	cr_assert_eq(topology_open_synthetic(&t, "core:2 pu:2", "0-3", "0-3", error), 0, "%s",
			error);
	core_list_parse("auto:2", &cores);
	json_t *workers = probe_workers(t, &cores);
	cr_expect_eq(json_array_size(json_object_get(workers, "cores")), 2);
	cr_expect_str_eq(text(workers, "control"), "1,3");
	json_decref(workers);
	core_list_parse("9", &cores);
	workers = probe_workers(t, &cores);
	cr_expect_eq(json_array_size(json_object_get(workers, "cores")), 0);
	cr_expect(strstr(text(workers, "error"), "9") != NULL);
	json_decref(workers);
	topology_close(t);
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
	json_t *nics = probe_nics(root, NULL), *nic = json_array_get(nics, 0);

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

Test(probe, drivers_are_read_from_what_their_objects_say)
{
	char folder[1024];

	put("pmds/librte_net_e1000.so.23",
			"ELF PMD_INFO_STRING= {\"name\": \"net_e1000_em\", \"pci_ids\": "
			"[[32902, 4307, 65535, 65535]]}");
	FILE *file = fopen(make_way("pmds/librte_net_e1000.so.23"), "a");
	fputc('\0', file);
	fputs("PMD_INFO_STRING= not JSON", file);
	fclose(file);
	put("pmds/librte_net_e1000.so", "the same, for the linker");
	put("pmds/librte_net_torn.so.23", "PMD_INFO_STRING= {\"name\": \"net_torn\"");
	put("pmds/librte_crypto_x.so.23", "PMD_INFO_STRING= {\"name\": \"crypto_x\"}");
	put("pmds/librte_net_empty.so.23", "");
	snprintf(folder, sizeof(folder), "%s/pmds", root);
	json_t *pmds = probe_pmds(folder);

	cr_assert_eq(json_array_size(pmds), 1);
	cr_expect_str_eq(probe_pmd_for(pmds, "0x8086", "0x10d3"), "net_e1000_em");
	cr_expect_null(probe_pmd_for(pmds, "0x8086", "0x10d4"));
	json_decref(pmds);
	pmds = probe_pmds("/nowhere");
	cr_expect_eq(json_array_size(pmds), 0);
	json_decref(pmds);
}

Test(probe, mates_in_the_iommu_group_are_named_but_bridges)
{
	static const char *const addresses[] = {
			"0000:00:03.0", "0000:00:03.1", "0000:00:03.2", "0000:00:02.0"};
	static const char *const drivers[] = {"vfio-pci", "igb", "vfio-pci", "pcieport"};
	char path[256], target[256];

	for (size_t i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/class", addresses[i]);
		put(path, i == 3 ? "0x060400\n" : "0x020000\n");
		snprintf(path, sizeof(path), "sys/bus/pci/devices/%s/driver", addresses[i]);
		snprintf(target, sizeof(target), "../../../bus/pci/drivers/%s", drivers[i]);
		put_link(path, target);
		snprintf(path, sizeof(path), "sys/kernel/iommu_groups/9/devices/%s/mark",
				addresses[i]);
		put(path, "");
	}
	put_link("sys/bus/pci/devices/0000:00:03.0/iommu_group",
			"../../../../kernel/iommu_groups/9");
	put("dev/vfio/9", "");
	json_t *nics = probe_nics(root, NULL), *nic = json_array_get(nics, 0), *mates;

	mates = json_object_get(nic, "iommu_mates");
	cr_assert_eq(json_array_size(mates), 1);
	cr_expect_str_eq(json_string_value(json_array_get(mates, 0)), "0000:00:03.1 (igb)");
	cr_expect(json_is_true(json_object_get(nic, "vfio_open")));
	cr_expect(json_is_null(json_object_get(json_array_get(nics, 1), "vfio_open")));
	json_decref(nics);
}

Test(probe, a_group_without_iommu_is_asked_as_well)
{
	put("sys/bus/pci/devices/0000:00:03.0/class", "0x020000\n");
	put_link("sys/bus/pci/devices/0000:00:03.0/iommu_group", "../../kernel/iommu_groups/4");
	put("dev/vfio/noiommu-4", "");
	json_t *nics = probe_nics(root, NULL);

	cr_expect(json_is_true(json_object_get(json_array_get(nics, 0), "vfio_open")));
	json_decref(nics);
}

Test(probe, interfaces_of_the_kernel_are_told_with_whether_they_are_up)
{
	put("sys/class/net/eth1/flags", "0x1003\n");
	put("sys/class/net/eth2/flags", "0x1002\n");
	put("sys/class/net/bonding_masters", "bond0\n");
	json_t *interfaces = probe_interfaces(root);

	cr_assert_eq(json_object_size(interfaces), 2);
	cr_expect(json_is_true(json_object_get(interfaces, "eth1")));
	cr_expect(json_is_false(json_object_get(interfaces, "eth2")));
	json_decref(interfaces);
}

Test(probe, capabilities_are_those_in_force)
{
	json_t *caps = probe_capabilities(root);

	cr_expect(json_is_null(caps));
	json_decref(caps);
	put("proc/self/status", "Name:\tx\nCapPrm:\t000001ffffffffff\nCapEff:\t0000000000002000\n");
	caps = probe_capabilities(root);
	cr_expect(json_is_true(json_object_get(caps, "net_raw")));
	cr_expect(json_is_false(json_object_get(caps, "net_admin")));
	json_decref(caps);
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
	struct core_list cores;
	char error[TOPOLOGY_ERROR_BYTES];

	core_list_parse("auto:4", &cores);
	cr_assert_eq(topology_open_synthetic(&t, "pu:1", "0", "0", error), 0, "%s", error);
	json_t *facts = probe_collect(
			&(struct probe_config){.root = root, .pmd_folder = "", .cores = &cores}, t);
	cr_assert_not_null(facts);
	cr_expect_eq(json_array_size(json_object_get(facts, "hugepages")), 0);
	cr_expect_eq(json_array_size(json_object_get(facts, "nics")), 0);
	cr_expect(json_is_null(json_object_get(json_object_get(facts, "memory"), "total_bytes")));
	cr_expect_not_null(json_object_get(json_object_get(facts, "io_uring"), "state"));
	json_decref(facts);
	topology_close(t);
}
