#include "control/cli/doctor.h"

#include "control/cli/exit_codes.h"
#include "control/cli/sibling.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* A laptop: two cores, no hugepages, a small memlock limit, io_uring works. */
static const char laptop[] =
		"{'version': 1, 'cores': {'online': '0-1', 'cgroup': '0-1', 'affinity': '0-1',"
		" 'allowed': '0-1', 'allowed_count': 2, 'cgroup_limit_hundredths': null,"
		" 'list': [{'os': 0, 'logical': 0, 'allowed': true},"
		"          {'os': 1, 'logical': 1, 'allowed': true}]},"
		" 'memory': {'available_bytes': 4294967296, 'cgroup_limit_bytes': null,"
		"  'memlock_soft_bytes': 8388608, 'is_root': false},"
		" 'hugepages': [{'page_bytes': 2097152, 'name': 'hugepages-2048kB', 'total': 10,"
		"  'free': 4}],"
		" 'io_uring': {'state': 'works', 'kernel': '6.1'},"
		" 'nics': [{'pci': '0000:00:03.0', 'driver': 'virtio-pci', 'node': -1,"
		"  'iommu_group': null, 'interfaces': ['eth0']}]}";

static struct config *config;
static struct doctor_report report;
static struct config_error error;

static void begin(void)
{
	cr_assert_eq(config_create(&config), 0);
	memset(&report, 0, sizeof(report));
}

static void end(void)
{
	config_destroy(config);
}

TestSuite(doctor, .init = begin, .fini = end);

static void set(const char *option)
{
	cr_assert_eq(config_set_option(config, option, &error), 0, "%s", error.text);
}

/* Judges the laptop, with one part of its facts replaced. */
static void judge(const char *from, const char *to)
{
	char text[4096];
	const char *at = strstr(laptop, from);

	cr_assert_not_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - laptop), laptop, to, at + strlen(from));
	for (char *c = text; *c != '\0'; c++) {
		if (*c == '\'')
			*c = '"';
	}
	json_t *facts = json_loads(text, 0, NULL);
	cr_assert_not_null(facts);
	memset(&report, 0, sizeof(report));
	doctor_judge(facts, config, &report);
	json_decref(facts);
}

static const struct doctor_row *row(const char *item)
{
	static const struct doctor_row none = {.state = DOCTOR_FAIL, .item = "missing"};

	for (uint32_t i = 0; i < report.count; i++) {
		if (strcmp(report.rows[i].item, item) == 0)
			return &report.rows[i];
	}
	return &none;
}

Test(doctor, a_laptop_is_good_enough_with_warnings)
{
	judge("", "");
	cr_expect_eq(doctor_worst(&report), DOCTOR_WARN);
	cr_expect_eq(row("cores")->state, DOCTOR_OK);
	cr_expect_str_eq(row("cores")->is, "online 0-1, cgroup 0-1, affinity 0-1: 2 allowed");
	cr_expect_eq(row("memory")->state, DOCTOR_OK);
	cr_expect_eq(row("memlock")->state, DOCTOR_WARN);
	cr_expect_eq(row("io_uring")->state, DOCTOR_OK);
	cr_expect_eq(row("NIC 0000:00:03.0")->state, DOCTOR_OK);
	cr_expect_str_eq(row("NIC 0000:00:03.0")->is,
			"driver virtio-pci, interface eth0, node -1, IOMMU group none, DPDK's "
			"none");
}

Test(doctor, missing_hugepages_are_counted_and_the_command_gives_them)
{
	judge("", "");
	cr_expect_eq(row("hugepages 2 mb")->state, DOCTOR_WARN);
	cr_expect_str_eq(row("hugepages 2 mb")->is, "4 of 10 free");
	cr_expect_str_eq(
			row("hugepages 2 mb")->needed, "160 of any one size, for each TaskManager");
	cr_expect_str_eq(row("hugepages 2 mb")->fix,
			"sudo sh -c 'echo 166 > "
			"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages'; "
			"until then weir runs on ordinary pages");
	set("weir.hugepages=on");
	judge("", "");
	cr_expect_eq(row("hugepages 2 mb")->state, DOCTOR_FAIL);
	judge("'free': 4", "'free': 160");
	cr_expect_eq(row("hugepages 2 mb")->state, DOCTOR_OK);
	set("weir.hugepages=off");
	judge("", "");
	cr_expect_eq(row("hugepages 2 mb")->state, DOCTOR_OK);
}

Test(doctor, a_listed_core_that_cannot_be_had_fails)
{
	set("weir.cores=1");
	judge("", "");
	cr_expect_eq(row("cores")->state, DOCTOR_OK);
	judge("'logical': 1, 'allowed': true", "'logical': 1, 'allowed': false");
	cr_expect_eq(row("cores")->state, DOCTOR_FAIL);
	cr_expect_str_eq(row("cores")->fix, "core 1 is not allowed: start weir with taskset -c or "
					    "a cgroup cpuset that has "
					    "it, or set weir.cores to some of 0-1");
	set("weir.cores=7");
	judge("", "");
	cr_expect_eq(row("cores")->state, DOCTOR_FAIL);
	cr_expect_str_eq(row("cores")->fix, "core 7 is not online: set weir.cores to some of 0-1");
}

Test(doctor, one_core_and_a_small_cpu_share_are_warnings)
{
	judge("'allowed_count': 2", "'allowed_count': 1");
	cr_expect_eq(row("cores")->state, DOCTOR_WARN);
	judge("'cgroup_limit_hundredths': null", "'cgroup_limit_hundredths': 150");
	cr_expect_eq(row("cpu share")->state, DOCTOR_WARN);
	cr_expect_str_eq(row("cpu share")->is, "the cgroup grants 1.50 cores");
	judge("'cgroup_limit_hundredths': null", "'cgroup_limit_hundredths': 200");
	cr_expect_eq(row("cpu share")->state, DOCTOR_OK);
}

Test(doctor, too_little_memory_fails)
{
	judge("'available_bytes': 4294967296", "'available_bytes': 1048576");
	cr_expect_eq(row("memory")->state, DOCTOR_FAIL);
	judge("'cgroup_limit_bytes': null", "'cgroup_limit_bytes': 1048576");
	cr_expect_eq(row("memory")->state, DOCTOR_FAIL);
	set("taskmanager.memory.managed.size=1 gb");
	judge("'available_bytes': 4294967296", "'available_bytes': 1073741824");
	cr_expect_eq(row("memory")->state, DOCTOR_FAIL);
}

Test(doctor, blocked_io_uring_names_who_blocks_it)
{
	judge("'state': 'works'", "'state': 'sysctl', 'error': 'Operation not permitted'");
	cr_expect_eq(row("io_uring")->state, DOCTOR_WARN);
	cr_expect_str_eq(row("io_uring")->is,
			"blocked by sysctl: Operation not permitted (kernel 6.1)");
	cr_expect_str_eq(row("io_uring")->fix,
			"sudo sysctl -w kernel.io_uring_disabled=0; until then "
			"weir writes by threads");
	set("weir.storage=io_uring");
	judge("'state': 'works'", "'state': 'seccomp', 'error': 'Operation not permitted'");
	cr_expect_eq(row("io_uring")->state, DOCTOR_FAIL);
	set("weir.storage=threads");
	judge("'state': 'works'", "'state': 'old-kernel', 'error': 'no'");
	cr_expect_eq(row("io_uring")->state, DOCTOR_OK);
}

Test(doctor, ports_of_packets_are_judged_as_well)
{
	set("weir.nic.ports=00:03.0;net_tap0");
	judge("'nics': [", "'pmds': ['net_tap'], 'nics': [");
	cr_expect_eq(row("port 00:03.0")->state, DOCTOR_OK);
	cr_expect_eq(row("NIC 0000:00:03.0")->state, DOCTOR_FAIL);
	cr_expect(strstr(row("port net_tap0")->fix, "nothing makes this device") != NULL);
}

/* The NIC of the laptop as the wanted port, with other facts. */
static const struct doctor_row *judge_port(const char *facts)
{
	set("weir.link.port=0000:00:03.0");
	judge("'driver': 'virtio-pci', 'node': -1,  'iommu_group': null, 'interfaces': ['eth0']",
			facts);
	return row("NIC 0000:00:03.0");
}

Test(doctor, why_a_nic_is_no_port_yet_is_told_by_its_cause)
{
	static const struct {
		const char *facts, *fix;
	} cases[] = {
			{"'driver': 'e1000e', 'vendor': '0x8086', 'device': '0x9999'",
					"no driver for device 0x8086:0x9999"},
			{"'driver': 'e1000e', 'pmd': 'net_e1000_em'", "there is no IOMMU"},
			{"'driver': 'e1000e', 'pmd': 'net_e1000_em', 'iommu_group': '4',"
			 " 'iommu_mates': ['0000:00:03.1 (igb)']",
					"hand 0000:00:03.1 (igb) over with it"},
			{"'driver': 'e1000e', 'pmd': 'net_e1000_em', 'iommu_group': '4'",
					"sudo scripts/host-setup --bind 0000:00:03.0"},
			{"'driver': 'vfio-pci', 'pmd': 'net_e1000_em', 'iommu_group': '4',"
			 " 'vfio_open': false",
					"chown $USER /dev/vfio/4"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct doctor_row *nic = judge_port(cases[i].facts);

		cr_expect_eq(nic->state, DOCTOR_FAIL, "%s", cases[i].facts);
		cr_expect(strstr(nic->fix, cases[i].fix) != NULL, "%s: %s", cases[i].facts,
				nic->fix);
	}
	cr_expect_eq(judge_port("'driver': 'vfio-pci', 'pmd': 'net_e1000_em', 'iommu_group': '4',"
				" 'vfio_open': true")
					->state,
			DOCTOR_OK);
	cr_expect_eq(judge_port("'driver': 'mlx5_core', 'pmd': 'net_mlx5', 'iommu_group': '4'")
					->state,
			DOCTOR_OK);
}

Test(doctor, a_port_that_is_not_there_is_told_from_one_that_nothing_makes)
{
	set("weir.link.port=0000:99:00.0");
	judge("", "");
	cr_expect_eq(row("port 0000:99:00.0")->state, DOCTOR_FAIL);
	cr_expect(strstr(row("port 0000:99:00.0")->fix, "no NIC has this address") != NULL);
	set("weir.link.port=net_memif0");
	judge("'nics': [", "'pmds': ['net_memif'], 'nics': [");
	cr_expect(strstr(row("port net_memif0")->fix, "nothing makes this device") != NULL);
	set("weir.eal.args=--vdev=net_memif01,role=server");
	judge("'nics': [", "'pmds': ['net_memif'], 'nics': [");
	cr_expect_eq(row("port net_memif0")->state, DOCTOR_FAIL);
	set("weir.eal.args=--vdev=net_memif0,role=server");
	judge("'nics': [", "'pmds': ['net_memif'], 'nics': [");
	cr_expect_eq(row("port net_memif0")->state, DOCTOR_OK);
	judge("'nics': [", "'pmds': ['net_ring'], 'nics': [");
	cr_expect(strstr(row("port net_memif0")->fix, "no driver net_memif") != NULL);
}

/* The row of a virtual port made by these words, on a host with other facts. */
static const struct doctor_row *judge_vdev(const char *port, const char *args, const char *facts)
{
	static char option[256], item[80], more[512];

	snprintf(option, sizeof(option), "weir.link.port=%s", port);
	set(option);
	snprintf(option, sizeof(option), "weir.eal.args=--vdev=%s%s", port, args);
	set(option);
	snprintf(more, sizeof(more), "%s, 'nics': [", facts);
	judge("'nics': [", more);
	snprintf(item, sizeof(item), "port %s", port);
	return row(item);
}

Test(doctor, why_a_device_of_the_kernel_is_no_port_is_told_by_its_cause)
{
	static const char root[] = "'interfaces': {'eth1': true, 'eth2': false},"
				   " 'capabilities': {'net_raw': true, 'net_admin': true}";
	static const char user[] = "'interfaces': {'eth1': true},"
				   " 'capabilities': {'net_raw': false, 'net_admin': false}";
	static const struct {
		const char *port, *args, *facts, *fix;
	} cases[] = {
			{"net_af_packet0", ",qpairs=2", root, "iface=NAME (there are: eth1 eth2)"},
			{"net_af_packet0", ",iface=eth9", root,
					"no interface eth9: correct iface= (there are: eth1 eth2)"},
			{"net_af_xdp1", ",start_queue=0,iface=eth2", root,
					"sudo ip link set eth2 up"},
			{"net_af_packet0", ",iface=eth1", user, "cap_net_raw+ep"},
			{"net_af_xdp0", ",iface=eth1", user, "run weir as root"},
			{"net_tap0", "", user, "run weir as root"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct doctor_row *port =
				judge_vdev(cases[i].port, cases[i].args, cases[i].facts);

		cr_expect_eq(port->state, DOCTOR_FAIL, "case %zu", i);
		cr_expect(strstr(port->fix, cases[i].fix) != NULL, "case %zu: %s", i, port->fix);
	}
	cr_expect_eq(judge_vdev("net_af_packet0", ",qpairs=2,iface=eth1", root)->state, DOCTOR_OK);
	cr_expect_eq(judge_vdev("net_tap0", "", root)->state, DOCTOR_OK);
	cr_expect_eq(judge_vdev("net_memif0", ",role=server", user)->state, DOCTOR_OK);
	cr_expect_eq(judge_vdev("net_af_packet0", ",iface=eth9", "'interfaces': null")->state,
			DOCTOR_OK, "nothing is known");
}

Test(doctor, facts_of_a_foreign_form_do_not_crash)
{
	static const char *const odd[] = {"{}", "[]",
			"{\"cores\": 1, \"memory\": [], \"nics\": [1, {}]}",
			"{\"hugepages\": [{}, 3], \"io_uring\": null, \"nics\": {\"a\": 1}}"};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		json_t *facts = json_loads(odd[i], 0, NULL);

		memset(&report, 0, sizeof(report));
		doctor_judge(facts, config, &report);
		cr_expect_eq(doctor_worst(&report), DOCTOR_FAIL, "%s", odd[i]);
		json_decref(facts);
	}
}

Test(doctor, a_checkpoint_directory_that_cannot_be_made_fails)
{
	set("execution.checkpointing.dir=/etc/passwd/below");
	doctor_judge_directory(config, &report);
	cr_expect_eq(row("checkpoints")->state, DOCTOR_FAIL);
	set("execution.checkpointing.dir=no/such/yet");
	set("taskmanager.memory.managed.size=1 mb");
	memset(&report, 0, sizeof(report));
	doctor_judge_directory(config, &report);
	cr_expect_eq(row("checkpoints")->state, DOCTOR_OK, "%s", row("checkpoints")->is);
}

/* procfs takes no new file, however it is opened. */
Test(doctor, says_whether_buffers_in_flight_are_written_from_where_they_lie)
{
	set("execution.checkpointing.dir=.");
	doctor_judge_directory(config, &report);
	cr_expect_eq(row("channel state")->state, DOCTOR_OK);
	cr_expect(strstr(row("channel state")->needed, "O_DIRECT") != NULL);
	cr_expect(strstr(row("channel state")->needed, "now off") != NULL);
	set("execution.checkpointing.dir=/proc/self/fd");
	set("execution.checkpointing.unaligned.enabled=true");
	memset(&report, 0, sizeof(report));
	doctor_judge_directory(config, &report);
	cr_expect_eq(row("channel state")->state, DOCTOR_WARN, "%s", row("channel state")->is);
	cr_expect(strstr(row("channel state")->is, "page cache") != NULL);
	cr_expect(strstr(row("channel state")->fix, "execution.checkpointing.dir") != NULL);
}

Test(doctor, the_report_is_a_table_or_json)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	judge("", "");
	cr_assert(doctor_print(&report, out, true));
	fclose(out);
	json_t *all = json_loads(text, 0, NULL);
	cr_expect_str_eq(json_string_value(json_object_get(all, "state")), "WARN");
	cr_expect_eq(json_array_size(json_object_get(all, "checks")), report.count);
	json_decref(all);
	free(text);
	out = open_memstream(&text, &size);
	cr_assert(doctor_print(&report, out, false));
	fclose(out);
	cr_expect_not_null(strstr(text, "OK    io_uring           works (kernel 6.1)\n"));
	free(text);
}

Test(sibling, output_and_status_of_a_program_are_taken)
{
	char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)"echo facts; exit 3", NULL};
	char *text;
	int status;

	cr_assert_eq(sibling_capture(argv, 5000, &text, &status), 0);
	cr_expect_str_eq(text, "facts\n");
	cr_expect_eq(WEXITSTATUS(status), 3);
	free(text);
}

Test(sibling, a_program_that_hangs_or_talks_without_end_is_ended)
{
	char *hangs[] = {(char *)"/bin/sleep", (char *)"60", NULL};
	char *talks[] = {(char *)"/usr/bin/yes", NULL};
	char *missing[] = {(char *)"/no/such/program", NULL};
	char *text;
	int status;

	cr_expect_eq(sibling_capture(hangs, 50, &text, &status), -ETIMEDOUT);
	cr_expect_eq(sibling_capture(talks, 5000, &text, &status), -EFBIG);
	cr_expect_eq(sibling_capture(missing, 50, &text, &status), -ENOENT);
}

Test(sibling, a_program_that_is_not_beside_this_one_is_not_found)
{
	char path[4096];

	cr_expect_eq(sibling_path("no-such-program", path, sizeof(path)), -ENOENT);
	cr_expect_eq(sibling_path("control_cli_doctor_test", path, sizeof(path)), 0, "%s", path);
}
