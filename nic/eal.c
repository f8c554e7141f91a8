#include "nic/eal.h"

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/base/check.h"
#include "nic/packet_fanout.h"

enum { ARGS_COUNT_MAX = 48, LCORES_BYTES = 1024 };

static const char run_prefix[] = "weir-";
static const char awaiting[] = "--vdev=net_virtio_user";

/* "0@(0-1),1@0,2@1": lcore 0 is the control thread, lcore i + 1 is worker i. */
static void print_lcores(const struct eal_config *config, char *text, size_t size)
{
	size_t at = (size_t)snprintf(text, size, "0@(%s)", config->control_cpus);

	for (uint32_t i = 0; i < config->worker_count && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, ",%u@%u", i + 1,
				config->worker_cpus[i]);
	CHECK(at < size);
}

static void print_line(char *const *argv, int argc, char line[EAL_LINE_BYTES])
{
	size_t at = 0;

	line[0] = '\0';
	for (int i = 0; i < argc && at < EAL_LINE_BYTES; i++)
		at += (size_t)snprintf(line + at, EAL_LINE_BYTES - at, "%s%s", i > 0 ? " " : "",
				argv[i]);
}

/* The PCI bus is looked at for the devices we are given, and for nothing else. */
static int take_ports(const struct eal_config *config, char **argv, int argc)
{
	int before = argc;

	for (uint32_t i = 0; i < config->port_count; i++) {
		if (strchr(config->ports[i], ':') == NULL)
			continue;
		argv[argc++] = (char *)(uintptr_t)"-a";
		argv[argc++] = (char *)(uintptr_t)config->ports[i];
	}
	if (argc == before)
		argv[argc++] = (char *)(uintptr_t)"--no-pci";
	return argc;
}

/* virtio-user that listens: its start ends when vhost has called. */
static bool does_wait(const char *argument)
{
	return strncmp(argument, awaiting, sizeof(awaiting) - 1) == 0 &&
			strstr(argument, ",server=1") != NULL;
}

int eal_start(const struct eal_config *config, char line[EAL_LINE_BYTES],
		char error[EAL_ERROR_BYTES])
{
	char lcores[LCORES_BYTES], prefix[64], memory[32];
	char *argv[ARGS_COUNT_MAX];
	int argc = 0;

	CHECK(config->worker_count >= 1 && config->worker_count <= EAL_WORKER_CPUS_MAX);
	CHECK(config->extra_count + 2 * config->port_count < ARGS_COUNT_MAX - 16);
	packet_fanout_look();
	print_lcores(config, lcores, sizeof(lcores));
	snprintf(prefix, sizeof(prefix), "%s%d", run_prefix, (int)getpid());
	snprintf(memory, sizeof(memory), "%zu", (config->memory_bytes + (1u << 20) - 1) >> 20);
	argv[argc++] = (char *)(uintptr_t)"weir-taskmanager";
	argv[argc++] = (char *)(uintptr_t)"--lcores";
	argv[argc++] = lcores;
	argv[argc++] = (char *)(uintptr_t)"--main-lcore=0";
	argv[argc++] = (char *)(uintptr_t)"--no-telemetry";
	argv[argc++] = (char *)(uintptr_t)"--log-level=*:error";
	argv[argc++] = (char *)(uintptr_t)"--file-prefix";
	argv[argc++] = prefix;
	argv[argc++] = (char *)(uintptr_t)"-m";
	argv[argc++] = memory;
	if (config->use_hugepages) {
		argv[argc++] = (char *)(uintptr_t)"--in-memory";
	} else {
		argv[argc++] = (char *)(uintptr_t)"--no-huge";
		argv[argc++] = (char *)(uintptr_t)"--no-shconf";
	}
	/* A pool then lies in one file: io_uring of Linux 6.1 registers no buffer that lies in
	 * several, and virtio-user cannot share more than eight. */
	argv[argc++] = (char *)(uintptr_t)"--single-file-segments";
	argc = take_ports(config, argv, argc);
	for (uint32_t i = 0; i < config->extra_count; i++) {
		if (!does_wait(config->extra[i]))
			argv[argc++] = (char *)(uintptr_t)config->extra[i];
	}
	argv[argc] = NULL;
	print_line(argv, argc, line);
	if (rte_eal_init(argc, argv) < 0) {
		char pages[160] = "";

		if (config->use_hugepages)
			snprintf(pages, sizeof(pages),
					" on hugepages, of which it needs %s MiB (weir doctor says "
					"how to get them; weir.hugepages: auto goes without)",
					memory);
		snprintf(error, EAL_ERROR_BYTES,
				"EAL did not start%s: %s; its arguments were: %.300s", pages,
				rte_strerror(rte_errno), line);
		return rte_errno > 0 ? -rte_errno : -EIO;
	}
	return 0;
}

/* "--vdev=NAME,ARGUMENTS" */
static int attach(const char *argument, char error[EAL_ERROR_BYTES])
{
	const char *name = argument + strlen("--vdev=");
	size_t length = strcspn(name, ",");
	char device[RTE_DEV_NAME_MAX_LEN];

	snprintf(device, sizeof(device), "%.*s", (int)length, name);
	int rc = rte_eal_hotplug_add("vdev", device, name + length + 1);
	if (rc != 0)
		snprintf(error, EAL_ERROR_BYTES, "%s did not come up: %s", device, strerror(-rc));
	return rc;
}

int eal_attach(const struct eal_config *config, char error[EAL_ERROR_BYTES])
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < config->extra_count; i++) {
		if (does_wait(config->extra[i]))
			rc = attach(config->extra[i], error);
	}
	return rc;
}

const char *eal_driver_folder(void)
{
	return RTE_EAL_PMD_PATH;
}

void eal_stop(void)
{
	char path[256];
	const char *base = getuid() == 0 ? "/var/run" : getenv("XDG_RUNTIME_DIR");

	/* No rte_eal_cleanup: it unmaps what its interrupt thread goes on reading (net_memif leaves
	 * its listener there), and what it gives back goes with the process.  The EAL leaves its
	 * (empty) run directory behind. */
	snprintf(path, sizeof(path), "%s/dpdk/%s%d", base != NULL ? base : "/tmp", run_prefix,
			(int)getpid());
	(void)rmdir(path);
}

/* "weir-123" of a process that is gone. */
static bool is_left_over(const char *name)
{
	size_t length = sizeof(run_prefix) - 1;
	char *end;

	if (strncmp(name, run_prefix, length) != 0)
		return false;
	long pid = strtol(name + length, &end, 10);
	return *end == '\0' && pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

static bool remove_run_directory(const char *parent, const char *name)
{
	char path[512], file[1024];

	snprintf(path, sizeof(path), "%s/%s", parent, name);
	DIR *dir = opendir(path);
	if (dir == NULL)
		return false;
	for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		(void)unlink(file);
	}
	closedir(dir);
	return rmdir(path) == 0;
}

static uint32_t sweep_parent(const char *parent)
{
	uint32_t count = 0;
	DIR *dir = opendir(parent);

	if (dir == NULL)
		return 0;
	for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		if (is_left_over(e->d_name) && remove_run_directory(parent, e->d_name))
			count++;
	}
	closedir(dir);
	return count;
}

uint32_t eal_sweep(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char parent[256];
	uint32_t count = sweep_parent("/var/run/dpdk") + sweep_parent("/tmp/dpdk");

	if (runtime != NULL) {
		snprintf(parent, sizeof(parent), "%s/dpdk", runtime);
		count += sweep_parent(parent);
	}
	return count;
}
