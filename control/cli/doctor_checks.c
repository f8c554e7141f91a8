#include "control/cli/doctor_checks.h"

#include "control/cli/doctor_internal.h"

#include "dataplane/base/core_list.h"
#include "dataplane/base/units.h"
#include "dataplane/checkpoint/channel_state_probe.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Buffers, rings and EAL itself beside the state memory. */
static const int64_t beside_state_bytes = INT64_C(64) << 20;

static const char *const state_names[] = {"OK", "WARN", "FAIL"};

const char *doctor_state_name(enum doctor_state state)
{
	return state_names[state];
}

enum doctor_state doctor_worst(const struct doctor_report *report)
{
	enum doctor_state worst = DOCTOR_OK;

	for (uint32_t i = 0; i < report->count; i++) {
		if (report->rows[i].state > worst)
			worst = report->rows[i].state;
	}
	return worst;
}

struct doctor_row *doctor_add(
		struct doctor_report *report, enum doctor_state state, const char *item, ...)
{
	/* Rows that do not fit replace the last one: a host with that many NICs sees the first. */
	uint32_t index = report->count < DOCTOR_ROWS_MAX ? report->count++ : DOCTOR_ROWS_MAX - 1;
	struct doctor_row *row = &report->rows[index];
	va_list args;

	*row = (struct doctor_row){.state = state};
	va_start(args, item);
	vsnprintf(row->item, sizeof(row->item), item, args);
	va_end(args);
	return row;
}

int64_t doctor_integer(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? json_integer_value(value) : -1;
}

const char *doctor_text(const json_t *object, const char *key, const char *otherwise)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value == NULL ? otherwise : value;
}

const char *doctor_size_text(int64_t bytes, char out[DOCTOR_SIZE_BYTES])
{
	/* Whole mebibytes read better than an exact odd number of bytes. */
	int64_t rounded = bytes >= INT64_C(16) << 20 ? bytes >> 20 << 20 : bytes;

	if (bytes < 0)
		snprintf(out, DOCTOR_SIZE_BYTES, "unknown");
	else
		units_print_size(rounded, out, DOCTOR_SIZE_BYTES);
	return out;
}

static int64_t needed_bytes(const struct config *config)
{
	if (config_is_set(config, "weir.memory"))
		return config_size(config, "weir.memory") +
		       config_size(config, "taskmanager.memory.managed.size");
	return config_size(config, "taskmanager.memory.managed.size") + beside_state_bytes;
}

/* ---- cores --------------------------------------------------------------------------------- */

static const json_t *find_core(const json_t *cores, bool is_logical, uint32_t number)
{
	const json_t *list = json_object_get(cores, "list"), *core;
	size_t i;

	json_array_foreach(list, i, core)
	{
		if (doctor_integer(core, is_logical ? "logical" : "os") == (int64_t)number)
			return core;
	}
	return NULL;
}

static void judge_core_list(
		const json_t *cores, const struct core_list *list, struct doctor_row *row)
{
	for (uint32_t i = 0; i < list->count && row->state == DOCTOR_OK; i++) {
		const json_t *core = find_core(cores, list->is_logical, list->cores[i]);
		const char *mark = list->is_logical ? "L#" : "";

		if (json_is_true(json_object_get(core, "allowed")))
			continue;
		row->state = DOCTOR_FAIL;
		if (core == NULL)
			SAY(row->fix, "core %s%u is not online: set weir.cores to some of %s", mark,
					list->cores[i], doctor_text(cores, "allowed", "?"));
		else
			SAY(row->fix,
					"core %s%u is not allowed: start weir with taskset -c or a "
					"cgroup "
					"cpuset that has it, or set weir.cores to some of %s",
					mark, list->cores[i], doctor_text(cores, "allowed", "?"));
	}
}

static void judge_cores(
		const json_t *facts, const struct config *config, struct doctor_report *report)
{
	const json_t *cores = json_object_get(facts, "cores");
	int64_t allowed = doctor_integer(cores, "allowed_count");
	int64_t share = doctor_integer(cores, "cgroup_limit_hundredths");
	const char *wanted = config_text(config, "weir.cores");
	struct core_list list;
	struct doctor_row *row = doctor_add(report, DOCTOR_OK, "cores");

	core_list_parse(wanted, &list); /* the config has checked its form */
	SAY(row->is, "online %s, cgroup %s, affinity %s: %" PRId64 " allowed",
			doctor_text(cores, "online", "?"), doctor_text(cores, "cgroup", "?"),
			doctor_text(cores, "affinity", "?"), allowed);
	SAY(row->needed, "weir.cores %s", wanted);
	if (allowed <= 0)
		row->state = DOCTOR_FAIL;
	else if (!list.is_auto)
		judge_core_list(cores, &list, row);
	if (row->state == DOCTOR_OK && allowed == 1) {
		row->state = DOCTOR_WARN;
		SAY(row->fix, "one core for workers and control thread: allow a second one");
	}
	if (share < 0)
		return;
	int64_t workers = list.is_auto && allowed < list.count ? allowed : list.count;
	bool is_enough = share >= workers * 100;
	row = doctor_add(report, is_enough ? DOCTOR_OK : DOCTOR_WARN, "cpu share");
	SAY(row->is, "the cgroup grants %" PRId64 ".%02" PRId64 " cores", share / 100, share % 100);
	SAY(row->needed, "%" PRId64 " for that many workers", workers);
	if (!is_enough)
		SAY(row->fix,
				"raise cpu.max of the cgroup (systemd: CPUQuota=; docker: --cpus), "
				"or "
				"set weir.cores=auto:%" PRId64,
				share >= 200 ? share / 100 : 1);
}

/* ---- memory -------------------------------------------------------------------------------- */

static void judge_memory(
		const json_t *facts, const struct config *config, struct doctor_report *report)
{
	const json_t *memory = json_object_get(facts, "memory");
	int64_t available = doctor_integer(memory, "available_bytes");
	int64_t limit = doctor_integer(memory, "cgroup_limit_bytes");
	int64_t needed = needed_bytes(config);
	char a[DOCTOR_SIZE_BYTES], b[DOCTOR_SIZE_BYTES];
	struct doctor_row *row = doctor_add(report, DOCTOR_OK, "memory");

	SAY(row->is, "%s available, cgroup limit %s", doctor_size_text(available, a),
			limit < 0 ? "none" : doctor_size_text(limit, b));
	SAY(row->needed, "about %s for each TaskManager", doctor_size_text(needed, a));
	if (available < 0)
		row->state = DOCTOR_WARN;
	else if (available < needed || (limit >= 0 && limit < needed))
		row->state = DOCTOR_FAIL;
	if (row->state == DOCTOR_FAIL)
		SAY(row->fix, "free memory, raise the limit, or lower "
			      "taskmanager.memory.managed.size");
}

static void judge_memlock(
		const json_t *facts, const struct config *config, struct doctor_report *report)
{
	const json_t *memory = json_object_get(facts, "memory");
	int64_t soft = doctor_integer(memory, "memlock_soft_bytes");
	/* What is between the buffers adds a little. */
	int64_t needed = config_size(config, "taskmanager.memory.network.size") / 16 * 17;
	bool is_root = json_is_true(json_object_get(memory, "is_root"));
	char size[DOCTOR_SIZE_BYTES];
	struct doctor_row *row = doctor_add(report, DOCTOR_OK, "memlock");

	SAY(row->is, "%s%s", soft < 0 ? "unlimited" : doctor_size_text(soft, size),
			is_root ? ", and root is exempt" : "");
	SAY(row->needed, "%s for each worker, so that its writes of buffers cost less",
			doctor_size_text(needed, size));
	if (soft < 0 || soft >= needed || is_root)
		return;
	row->state = DOCTOR_WARN;
	SAY(row->fix, "ulimit -l unlimited (systemd: LimitMEMLOCK=infinity; otherwise "
		      "\"* - memlock unlimited\" in /etc/security/limits.conf)");
}

static void judge_page_size(const json_t *size, int64_t needed, enum doctor_state state,
		struct doctor_report *report)
{
	int64_t page = doctor_integer(size, "page_bytes");
	int64_t total = doctor_integer(size, "total"), available = doctor_integer(size, "free");
	int64_t pages = page > 0 ? (needed + page - 1) / page : 0;
	char a[DOCTOR_SIZE_BYTES];
	struct doctor_row *row =
			doctor_add(report, state, "hugepages %s", doctor_size_text(page, a));

	SAY(row->is, "%" PRId64 " of %" PRId64 " free", available < 0 ? 0 : available,
			total < 0 ? 0 : total);
	SAY(row->needed, "%" PRId64 " of any one size, for each TaskManager", pages);
	if (state != DOCTOR_OK)
		SAY(row->fix,
				"sudo sh -c 'echo %" PRId64 " > "
				"/sys/kernel/mm/hugepages/%s/nr_hugepages'%s",
				(total < 0 ? 0 : total) - (available < 0 ? 0 : available) + pages,
				doctor_text(size, "name", "hugepages-2048kB"),
				state == DOCTOR_WARN ? "; until then weir runs on ordinary pages"
						     : "");
}

static void judge_hugepages(
		const json_t *facts, const struct config *config, struct doctor_report *report)
{
	const json_t *sizes = json_object_get(facts, "hugepages"), *size;
	int64_t needed = needed_bytes(config);
	bool is_off = config_is_choice(config, "weir.hugepages", "off"), is_enough = false;
	enum doctor_state missing = config_is_choice(config, "weir.hugepages", "on") ? DOCTOR_FAIL
										     : DOCTOR_WARN;
	size_t i;

	json_array_foreach(sizes, i, size)
	{
		int64_t page = doctor_integer(size, "page_bytes"),
			available = doctor_integer(size, "free");

		is_enough = is_enough || (page > 0 && available >= (needed + page - 1) / page);
	}
	if (is_off || is_enough)
		missing = DOCTOR_OK;
	json_array_foreach(sizes, i, size) judge_page_size(size, needed, missing, report);
	if (json_array_size(sizes) > 0)
		return;
	struct doctor_row *row = doctor_add(report, missing, "hugepages");
	SAY(row->is, "this kernel offers none");
	SAY(row->needed, "weir.hugepages %s", is_off ? "off" : "auto or on");
	if (missing != DOCTOR_OK)
		SAY(row->fix, "use a kernel with CONFIG_HUGETLBFS, or set weir.hugepages=off");
}

/* ---- io_uring ------------------------------------------------------------------------------ */

static void judge_io_uring(
		const json_t *facts, const struct config *config, struct doctor_report *report)
{
	static const struct {
		const char *state, *fix;
	} fixes[] = {
			{"old-kernel", "use a kernel of 5.6 or later with CONFIG_IO_URING"},
			{"sysctl", "sudo sysctl -w kernel.io_uring_disabled=0"},
			{"seccomp", "allow io_uring_setup, io_uring_enter and io_uring_register in "
				    "the "
				    "container's seccomp profile (docker: --security-opt "
				    "seccomp=PROFILE.json)"},
			{"memlock", "ulimit -l unlimited"},
			{"other", "look for a security module (AppArmor, SELinux) that denies it"},
	};
	const json_t *uring = json_object_get(facts, "io_uring");
	const char *state = doctor_text(uring, "state", "other");
	bool works = strcmp(state, "works") == 0;
	bool is_required = config_is_choice(config, "weir.storage", "io_uring");
	bool is_unused = config_is_choice(config, "weir.storage", "threads");
	struct doctor_row *row = doctor_add(report, DOCTOR_OK, "io_uring");
	char choice[DOCTOR_SIZE_BYTES];

	SAY(row->needed, "weir.storage %s",
			config_choice(config, "weir.storage", choice, sizeof(choice)));
	if (works) {
		SAY(row->is, "works (kernel %s)", doctor_text(uring, "kernel", "?"));
		return;
	}
	SAY(row->is, "blocked by %s: %s (kernel %s)", state, doctor_text(uring, "error", "?"),
			doctor_text(uring, "kernel", "?"));
	if (is_unused)
		return;
	row->state = is_required ? DOCTOR_FAIL : DOCTOR_WARN;
	for (size_t i = 0; i < sizeof(fixes) / sizeof(fixes[0]); i++) {
		if (strcmp(fixes[i].state, state) == 0)
			SAY(row->fix, "%s%s", fixes[i].fix,
					is_required ? "" : "; until then weir writes by threads");
	}
}

void doctor_judge(const json_t *facts, const struct config *config, struct doctor_report *report)
{
	judge_cores(facts, config, report);
	judge_memory(facts, config, report);
	judge_hugepages(facts, config, report);
	judge_memlock(facts, config, report);
	judge_io_uring(facts, config, report);
	doctor_judge_ports(facts, config, report);
}

/* ---- the checkpoint directory -------------------------------------------------------------- */

/* The folder itself, or the nearest one above it that exists. */
static bool find_existing(const char *path, char found[PATH_MAX])
{
	snprintf(found, PATH_MAX, "%s", path);
	for (;;) {
		char *slash = strrchr(found, '/');

		if (access(found, F_OK) == 0)
			return true;
		if (errno != ENOENT)
			return false;
		if (slash == NULL)
			snprintf(found, PATH_MAX, ".");
		else if (slash == found)
			snprintf(found, PATH_MAX, "/");
		else
			*slash = '\0';
	}
}

/* Whether what is in flight at an unaligned checkpoint goes to the disk without a copy. */
static void judge_channel_state(
		const char *directory, const struct config *config, struct doctor_report *report)
{
	struct doctor_row *row = doctor_add(report, DOCTOR_OK, "channel state");
	bool is_used = config_bool(config, "execution.checkpointing.unaligned.enabled");
	char text[CHANNEL_STATE_PROBE_TEXT_BYTES];
	bool is_direct = channel_state_probe(directory, text);

	SAY(row->is, "%s", text);
	SAY(row->needed,
			"O_DIRECT, and buffers registered within memlock, for unaligned "
			"checkpoints (now %s) that copy nothing",
			is_used ? "on" : "off");
	if (is_direct || !is_used)
		return;
	row->state = DOCTOR_WARN;
	SAY(row->fix, "put execution.checkpointing.dir on a file system that takes O_DIRECT, as "
		      "ext4 and xfs do; until then weir writes through the page cache");
}

void doctor_judge_directory(const struct config *config, struct doctor_report *report)
{
	const char *path = config_text(config, "execution.checkpointing.dir");
	int64_t needed = config_size(config, "taskmanager.memory.managed.size") *
			 config_int(config, "execution.checkpointing.num-retained");
	struct doctor_row *row = doctor_add(report, DOCTOR_OK, "checkpoints");
	char found[PATH_MAX], a[DOCTOR_SIZE_BYTES];
	struct statvfs fs;

	SAY(row->needed, "a directory to write to, with up to %s", doctor_size_text(needed, a));
	if (!find_existing(path, found) || access(found, W_OK | X_OK) != 0 ||
			statvfs(found, &fs) != 0) {
		row->state = DOCTOR_FAIL;
		SAY(row->is, "%.200s: %s", path, strerror(errno));
		SAY(row->fix, "sudo install -d -o $USER %.200s, or set execution.checkpointing.dir",
				path);
		return;
	}
	judge_channel_state(found, config, report);
	int64_t available = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
	SAY(row->is, "%.200s: %s free", path, doctor_size_text(available, a));
	if (available >= needed)
		return;
	row->state = DOCTOR_WARN;
	SAY(row->fix, "free space, or lower taskmanager.memory.managed.size or "
		      "execution.checkpointing.num-retained");
}
