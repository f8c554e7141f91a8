#include "control/config/config_keys.h"

#include "control/config/config_checks.h"
#include "dataplane/base/limits.h"
#include "dataplane/base/nearest.h"

#include <string.h>

enum {
	MS = 1000000,
	COORDINATOR = CONFIG_COORDINATOR,
	TASKMANAGER = CONFIG_TASKMANAGER,
	CLI = CONFIG_CLI,
	SERVERS = COORDINATOR | TASKMANAGER,
	ALL = SERVERS | CLI,
};

/* A row reads: name and preset, bounds or choices, programs, exceptions, help. */
#define TEXT(n, v) .param.name = n, .param.type = WEIR_TEXT, .param.preset = v
#define INTEGER(n, v) .param.name = n, .param.type = WEIR_INTEGER, .param.preset = v
#define REAL(n, v) .param.name = n, .param.type = WEIR_REAL, .param.preset = v
#define BOOLEAN(n, v) .param.name = n, .param.type = WEIR_BOOLEAN, .param.preset = v
#define DURATION(n, v) .param.name = n, .param.type = WEIR_DURATION, .param.preset = v
#define SIZE(n, v) .param.name = n, .param.type = WEIR_SIZE, .param.preset = v
#define CHOICE(n, v, c)                                                                            \
	.param.name = n, .param.type = WEIR_CHOICE, .param.preset = v, .param.choices = c
#define BOUNDS(low, high) .param.min = low, .param.max = high
#define FOR(set) .programs = set
#define OLD(names) .old_names = names
#define ONLY(value) .supported = value
#define LIST(between) .separator = between
#define FORM(function) .form = config_check_##function
#define HELP(line) .param.help = line

#define CHECKPOINTING "execution.checkpointing."
#define RECOVERY "execution.state-recovery."
#define RESTART "restart-strategy."
#define NETWORK "taskmanager.network.memory."

/* clang-format off */
static const struct config_key keys[] = {
	/* execution.checkpointing.* (23.1) */
	{DURATION(CHECKPOINTING "interval", NULL), FOR(SERVERS), FORM(interval),
		HELP("base period of checkpoints; 0 or not set: none periodically")},
	{DURATION(CHECKPOINTING "interval-during-backlog", NULL), FOR(SERVERS), ONLY(""),
		HELP("period while a source reports backlog")},
	{DURATION(CHECKPOINTING "timeout", "10 min"), BOUNDS(10 * MS, INT64_MAX), FOR(SERVERS),
		HELP("a checkpoint that takes longer is aborted")},
	{DURATION(CHECKPOINTING "min-pause", "0 ms"), FOR(SERVERS),
		HELP("least time from the end of one checkpoint to the start of the next")},
	{INTEGER(CHECKPOINTING "max-concurrent-checkpoints", "1"),
		BOUNDS(1, CHECKPOINTS_IN_FLIGHT_MAX), FOR(SERVERS),
		HELP("pending checkpoints at one time")},
	{CHOICE(CHECKPOINTING "mode", "EXACTLY_ONCE", "EXACTLY_ONCE|AT_LEAST_ONCE"), FOR(SERVERS),
		HELP("what a restore guarantees; at-least-once never blocks a channel")},
	{INTEGER(CHECKPOINTING "tolerable-failed-checkpoints", "2147483647"), BOUNDS(0, INT32_MAX),
		FOR(SERVERS), HELP("consecutive failures that do not fail the job")},
	{INTEGER(CHECKPOINTING "num-retained", "3"), BOUNDS(1, INT32_MAX), FOR(SERVERS),
		OLD("state.checkpoints.num-retained"), HELP("completed checkpoints kept")},
	{CHOICE(CHECKPOINTING "externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION",
			"NO_EXTERNALIZED_CHECKPOINTS|DELETE_ON_CANCELLATION|"
			"RETAIN_ON_CANCELLATION"),
		FOR(SERVERS), HELP("whether checkpoints outlive a cancelled job")},
	{BOOLEAN(CHECKPOINTING "unaligned.enabled", "false"), FOR(SERVERS),
		OLD(CHECKPOINTING "unaligned"),
		HELP("barriers overtake data, which becomes part of the checkpoint")},
	{DURATION(CHECKPOINTING "aligned-checkpoint-timeout", "0 ms"), FOR(SERVERS),
		OLD(CHECKPOINTING "alignment-timeout"),
		HELP("unaligned: start aligned, switch after this time")},
	{BOOLEAN(CHECKPOINTING "unaligned.forced", "false"), FOR(SERVERS),
		HELP("allow unaligned with custom partitioners and loops: jobs have neither, so it "
		     "changes nothing")},
	{BOOLEAN(CHECKPOINTING "unaligned.interruptible-timers.enabled", "false"), FOR(SERVERS),
		ONLY("false"), HELP("let a barrier interrupt a long run of timers")},
	{INTEGER(CHECKPOINTING "unaligned.max-subtasks-per-channel-state-file", "5"),
		BOUNDS(1, 64), FOR(SERVERS), HELP("sharing of channel-state files")},
	{BOOLEAN(CHECKPOINTING "checkpoints-after-tasks-finish", "true"), FOR(SERVERS),
		OLD(CHECKPOINTING "checkpoints-after-tasks-finish.enabled"), ONLY("true"),
		HELP("go on with checkpoints when some tasks have finished")},
	{CHOICE(CHECKPOINTING "storage", "filesystem", "filesystem|jobmanager"), FOR(SERVERS),
		OLD("state.checkpoint-storage"), ONLY("filesystem"),
		HELP("where checkpoints live")},
	{TEXT(CHECKPOINTING "dir", "weir-state/checkpoints"), FOR(SERVERS),
		OLD("state.checkpoints.dir"), FORM(directory), HELP("checkpoint directory")},
	{TEXT(CHECKPOINTING "savepoint-dir", NULL), FOR(SERVERS), OLD("state.savepoints.dir"),
		FORM(directory), HELP("default savepoint directory")},
	{BOOLEAN(CHECKPOINTING "create-subdir", "true"), FOR(SERVERS),
		OLD("state.checkpoints.create-subdir"), ONLY("true"),
		HELP("sub-directory with the job id")},
	{SIZE(CHECKPOINTING "data-inline-threshold", "20 kb"), BOUNDS(0, STATE_INLINE_BYTES_MAX),
		FOR(SERVERS), OLD("state.storage.fs.memory-threshold"),
		HELP("state up to this size goes into the metadata")},
	{SIZE(CHECKPOINTING "write-buffer-size", "4 kb"), FOR(SERVERS),
		OLD("state.storage.fs.write-buffer-size"), ONLY("4 kb"),
		HELP("size of writes to checkpoint files")},
	{BOOLEAN(CHECKPOINTING "incremental", "false"), FOR(SERVERS),
		OLD("state.backend.incremental"), ONLY("false"), HELP("incremental snapshots")},
	{BOOLEAN(CHECKPOINTING "cleaner.parallel-mode", "true"), FOR(SERVERS),
		OLD("state.checkpoint.cleaner.parallel-mode"), ONLY("true"),
		HELP("delete the parts of a checkpoint in parallel")},
	{BOOLEAN(CHECKPOINTING "local-backup.enabled", "false"), FOR(SERVERS), ONLY("false"),
		HELP("keep local copies of state")},
	{TEXT(CHECKPOINTING "local-backup.dirs", NULL), FOR(SERVERS),
		OLD("taskmanager.state.local.root-dirs"), ONLY(""),
		HELP("where local copies are kept")},
	{BOOLEAN(CHECKPOINTING "file-merging.enabled", "false"), FOR(SERVERS), ONLY("false"),
		HELP("merge small state files of several subtasks")},
	{BOOLEAN(CHECKPOINTING "file-merging.across-checkpoint-boundary", "false"), FOR(SERVERS),
		ONLY("false"), HELP("merge over several checkpoints")},
	{SIZE(CHECKPOINTING "file-merging.max-file-size", "32 mb"), FOR(SERVERS), ONLY("32 mb"),
		HELP("size of a merged file")},
	{BOOLEAN(CHECKPOINTING "file-merging.pool-blocking", "false"), FOR(SERVERS), ONLY("false"),
		HELP("wait for a pooled file")},
	{REAL(CHECKPOINTING "file-merging.max-space-amplification", "2.0"), FOR(SERVERS),
		ONLY("2.0"), HELP("rewrite when more is wasted")},
	{INTEGER(CHECKPOINTING "file-merging.max-subtasks-per-file", "4"), FOR(SERVERS), ONLY("4"),
		HELP("subtasks that share a file")},
	{BOOLEAN(CHECKPOINTING "snapshot-compression", "false"), FOR(SERVERS), ONLY("false"),
		HELP("compress state snapshots")},
	{BOOLEAN(CHECKPOINTING "force", "false"), FOR(SERVERS), ONLY("false"),
		HELP("deprecated: checkpoint iterative jobs")},
	/* execution.state-recovery.* (23.2) */
	{TEXT(RECOVERY "path", NULL), FOR(SERVERS), OLD("execution.savepoint.path"),
		FORM(directory), HELP("snapshot to restore from, unless told another")},
	{CHOICE(RECOVERY "claim-mode", "NO_CLAIM", "NO_CLAIM|CLAIM|LEGACY"), FOR(SERVERS),
		OLD("execution.savepoint-restore-mode"),
		HELP("who owns the restored snapshot: the job deletes it only with CLAIM")},
	{BOOLEAN(RECOVERY "ignore-unclaimed-state", "false"), FOR(SERVERS),
		OLD("execution.savepoint.ignore-unclaimed-state"),
		HELP("restore also when state of operators that no longer exist is lost")},
	{BOOLEAN(RECOVERY "from-local", "false"), FOR(SERVERS), OLD("state.backend.local-recovery"),
		ONLY("false"), HELP("prefer local copies")},
	{INTEGER(RECOVERY "without-channel-state.checkpoint-id", "-1"), FOR(SERVERS),
		OLD(CHECKPOINTING "recover-without-channel-state.checkpoint-id"), ONLY("-1"),
		HELP("drop in-flight data of this checkpoint")},
	{BOOLEAN(RECOVERY "approximate-local-recovery", "false"), FOR(SERVERS),
		OLD(CHECKPOINTING "approximate-local-recovery"), ONLY("false"),
		HELP("restart only the failed task, losing in-flight data")},
	/* jobs */
	{INTEGER("parallelism.default", "1"), BOUNDS(1, PARALLELISM_MAX), FOR(COORDINATOR | CLI),
		HELP("parallelism of a vertex that names none")},
	{INTEGER("pipeline.max-parallelism", "128"), BOUNDS(1, KEY_GROUPS_COUNT_MAX), FOR(ALL),
		FORM(power_of_two),
		HELP("key groups: a power of two, the most subtasks a vertex can have")},
	{DURATION("execution.buffer-timeout.interval", "100 ms"), FOR(TASKMANAGER),
		OLD("execution.buffer-timeout"),
		HELP("an open buffer is sent after this time; 0: after every batch")},
	{BOOLEAN("execution.buffer-timeout.enabled", "true"), FOR(TASKMANAGER),
		HELP("false: only full buffers are sent")},
	{CHOICE("state.backend.type", "hashmap", "hashmap|rocksdb"), FOR(SERVERS),
		OLD("state.backend"), ONLY("hashmap"), HELP("how keyed state is kept")},
	/* restart-strategy.* (FO-5) */
	{CHOICE(RESTART "type", "exponential-delay",
			"exponential-delay|fixed-delay|failure-rate|disable|none|off"),
		FOR(COORDINATOR), OLD("restart-strategy"),
		HELP("when and how often a failed job is restarted; not set and no checkpointing "
		     "interval: never")},
	{DURATION(RESTART "exponential-delay.initial-backoff", "1 s"), BOUNDS(MS, INT64_MAX),
		FOR(COORDINATOR), HELP("first delay")},
	{DURATION(RESTART "exponential-delay.max-backoff", "1 min"), BOUNDS(MS, INT64_MAX),
		FOR(COORDINATOR), HELP("longest delay")},
	{REAL(RESTART "exponential-delay.backoff-multiplier", "1.5"), FOR(COORDINATOR),
		FORM(growth), HELP("each delay is so many times the last")},
	{DURATION(RESTART "exponential-delay.reset-backoff-threshold", "1 h"),
		BOUNDS(MS, INT64_MAX), FOR(COORDINATOR),
		HELP("time without failure after which the delay starts anew")},
	{REAL(RESTART "exponential-delay.jitter-factor", "0.1"), FOR(COORDINATOR), FORM(share),
		HELP("delays vary by this share, up and down")},
	{INTEGER(RESTART "exponential-delay.attempts-before-reset-backoff", "2147483647"),
		BOUNDS(1, INT32_MAX), FOR(COORDINATOR), HELP("restarts before the job fails")},
	{INTEGER(RESTART "fixed-delay.attempts", "1"), BOUNDS(0, INT32_MAX), FOR(COORDINATOR),
		HELP("restarts before the job fails")},
	{DURATION(RESTART "fixed-delay.delay", "1 s"), FOR(COORDINATOR),
		HELP("delay before a restart")},
	{INTEGER(RESTART "failure-rate.max-failures-per-interval", "1"),
		BOUNDS(1, RESTART_FAILURES_MAX), FOR(COORDINATOR),
		HELP("failures in the interval that are forgiven; one more and the job fails")},
	{DURATION(RESTART "failure-rate.failure-rate-interval", "1 min"), BOUNDS(MS, INT64_MAX),
		FOR(COORDINATOR), HELP("interval of that count")},
	{DURATION(RESTART "failure-rate.delay", "1 s"), FOR(COORDINATOR),
		HELP("delay before a restart")},
	{BOOLEAN("weir.restart.first-at-once", "true"), FOR(COORDINATOR),
		HELP("the first restart after a quiet time does not wait")},
	/* processes and addresses */
	{DURATION("heartbeat.interval", "100 ms"), BOUNDS(MS, INT64_MAX), FOR(SERVERS),
		HELP("period of heartbeats between coordinator and TaskManagers")},
	{DURATION("heartbeat.timeout", "500 ms"), BOUNDS(MS, INT64_MAX), FOR(SERVERS),
		HELP("silence after which the other side counts as lost")},
	{INTEGER("heartbeat.rpc-failure-threshold", "2"), BOUNDS(-1, INT32_MAX), FOR(SERVERS),
		HELP("without effect: one that cannot be sent is a lost connection, a loss at "
		     "once")},
	{TEXT("jobmanager.rpc.address", "localhost"), FOR(ALL),
		HELP("where TaskManagers find the coordinator")},
	{INTEGER("jobmanager.rpc.port", "6123"), BOUNDS(0, 65535), FOR(ALL),
		HELP("its control port; 0: any")},
	{TEXT("jobmanager.bind-host", "127.0.0.1"), FOR(COORDINATOR),
		HELP("address the control port listens on")},
	{TEXT("rest.address", "localhost"), FOR(CLI),
		HELP("where the command line finds the coordinator")},
	{INTEGER("rest.port", "8081"), BOUNDS(0, 65535), FOR(CLI), HELP("and on which port")},
	{TEXT("rest.bind-address", "127.0.0.1"), FOR(COORDINATOR),
		HELP("address the REST server listens on")},
	{TEXT("rest.bind-port", "8081-8099"), FOR(COORDINATOR | CLI), FORM(ports),
		HELP("its port, the first free one of a range; 0: any")},
	{INTEGER("web.checkpoints.history", "10"), BOUNDS(0, 10000), FOR(COORDINATOR),
		HELP("finished checkpoints that are remembered and shown")},
	{TEXT("high-availability.storageDir", "weir-state/ha"), FOR(COORDINATOR | CLI),
		FORM(directory), HELP("what the coordinator itself must not forget")},
	{TEXT("taskmanager.resource-id", NULL), FOR(TASKMANAGER),
		HELP("name of a TaskManager; not set: made up")},
	/* memory of a TaskManager (23.3) */
	{SIZE("taskmanager.memory.segment-size", "32 kb"), BOUNDS(BUF_BYTES_MIN, BUF_BYTES_MAX),
		FOR(TASKMANAGER), HELP("size of a buffer")},
	{SIZE("taskmanager.memory.min-segment-size", "256 b"), FOR(TASKMANAGER), ONLY("256 b"),
		HELP("smallest buffer when debloating")},
	{SIZE("taskmanager.memory.managed.size", "256 mb"), BOUNDS(1 << 20, INT64_C(1) << 44),
		FOR(TASKMANAGER), HELP("memory for state, all tasks of a TaskManager together")},
	{SIZE("taskmanager.memory.network.size", "64 mb"), BOUNDS(1 << 20, INT64_C(1) << 40),
		FOR(TASKMANAGER),
		HELP("memory for buffers, all channels of a TaskManager together")},
	{INTEGER(NETWORK "buffers-per-channel", "2"), BOUNDS(1, CHANNEL_BUFFERS_MAX),
		FOR(TASKMANAGER), HELP("buffers that belong to one channel")},
	{INTEGER(NETWORK "floating-buffers-per-gate", "8"), FOR(TASKMANAGER), ONLY("8"),
		HELP("buffers that the channels of a gate share")},
	{INTEGER(NETWORK "max-buffers-per-channel", "10"), BOUNDS(1, CHANNEL_BUFFERS_MAX),
		FOR(TASKMANAGER), HELP("most buffers one channel may hold")},
	{INTEGER(NETWORK "max-overdraft-buffers-per-gate", "5"), FOR(TASKMANAGER), ONLY("5"),
		HELP("extra buffers when a gate has none left")},
	{BOOLEAN(NETWORK "buffer-debloat.enabled", "false"), FOR(TASKMANAGER), ONLY("false"),
		HELP("fit buffers to the time they take")},
	{DURATION(NETWORK "buffer-debloat.period", "200 ms"), FOR(TASKMANAGER), ONLY("200 ms"),
		HELP("how often")},
	{INTEGER(NETWORK "buffer-debloat.samples", "20"), FOR(TASKMANAGER), ONLY("20"),
		HELP("over how many samples")},
	{DURATION(NETWORK "buffer-debloat.target", "1 s"), FOR(TASKMANAGER), ONLY("1 s"),
		HELP("time that in-flight data should take")},
	{INTEGER(NETWORK "buffer-debloat.threshold-percentages", "25"), FOR(TASKMANAGER),
		ONLY("25"), HELP("smallest change that is applied")},
	/* weir's own */
	{TEXT("weir.cores", "auto:4"), FOR(TASKMANAGER | CLI), FORM(cores),
		HELP("cores of the workers: auto:N, or a list 2,3-5, or logical L#0-3")},
	{CHOICE("weir.hugepages", "auto", "auto|on|off"), FOR(TASKMANAGER | CLI),
		HELP("auto: when the host has enough of them")},
	{SIZE("weir.memory", NULL), BOUNDS(1 << 20, INT64_C(1) << 44), FOR(TASKMANAGER | CLI),
		HELP("memory given to EAL; not set: what pools and state need")},
	{BOOLEAN("weir.network.control-lane", "true"), FOR(SERVERS),
		HELP("barriers travel beside the data; false: behind it, as over a plain ring")},
	{CHOICE("weir.idle", "backoff", "backoff|spin"), FOR(TASKMANAGER),
		HELP("what an idle worker does")},
	{CHOICE("weir.control.scheduling", "prompt", "prompt|fair"), FOR(SERVERS),
		HELP("prompt: control threads go before workers on their core, where allowed")},
	{TEXT("weir.control.cores", "auto"), FOR(SERVERS), FORM(control_cores),
		HELP("cores of the control thread: auto, or a list 0,2-3")},
	{TEXT("weir.eal.args", ""), FOR(TASKMANAGER), LIST(' '), FORM(eal_args),
		HELP("words passed on to EAL")},
	{TEXT("weir.nic.ports", ""), FOR(TASKMANAGER), LIST(';'), FORM(nic_ports),
		HELP("ports of raw packets, for nic-source and nic-sink: 0000:03:00.0;net_tap0")},
	{INTEGER("weir.nic.descriptors", "1024"), BOUNDS(64, 32768), FOR(TASKMANAGER),
		HELP("packets that the queues of each hold, as far as the port can")},
	{INTEGER("weir.nic.queues", "0"), BOUNDS(0, 64), FOR(TASKMANAGER),
		HELP("queue pairs of each; 0: one for each worker where it spreads packets")},
	{INTEGER("weir.job.taskmanagers", "1"), BOUNDS(1, 16), FOR(COORDINATOR),
		HELP("TaskManagers that a job's tasks are spread over, joined by links")},
	{TEXT("weir.link.port", ""), FOR(TASKMANAGER), FORM(nic_ports),
		HELP("DPDK port to other TaskManagers, such as net_memif0; empty: none")},
	{TEXT("weir.link.address", "auto"), FOR(TASKMANAGER), FORM(link_address),
		HELP("IPv4 or IPv6 address on that port; auto: 169.254.x.y by its MAC")},
	{INTEGER("weir.link.udp-port", "6125"), BOUNDS(1, 65535), FOR(TASKMANAGER),
		HELP("UDP port of frames on it")},
	{TEXT("weir.link.gateway", ""), FOR(TASKMANAGER), FORM(link_gateway),
		HELP("MAC to send to on a routed path; empty: to the peer's own")},
	{INTEGER("weir.link.mtu", "0"), BOUNDS(0, LINK_MTU_MAX), FOR(TASKMANAGER),
		HELP("largest IP packet on it, the same at all ends; 0: the port's own")},
	{INTEGER("weir.link.descriptors", "1024"), BOUNDS(64, 32768), FOR(TASKMANAGER),
		HELP("frames its queues hold, as far as the port can")},
	{INTEGER("weir.link.queues", "0"), BOUNDS(0, 64), FOR(TASKMANAGER),
		HELP("its queue pairs, each served by a worker; 0: one for each, if the port can")},
	{DURATION("weir.link.timeout", "3 s"), BOUNDS(100 * MS, INT64_MAX), FOR(TASKMANAGER),
		HELP("a peer not heard of on the wire for so long is lost")},
	{DURATION("weir.link.connect-timeout", "15 s"), BOUNDS(100 * MS, INT64_MAX),
		FOR(TASKMANAGER),
		HELP("the same of a peer never heard of, whose tasks may still be restoring")},
	{CHOICE("weir.link.checksum", "auto", "auto|always"), FOR(TASKMANAGER),
		HELP("CRC32C of what frames carry; auto: not over memory within one host")},
	{TEXT("weir.link.capture", ""), FOR(TASKMANAGER),
		HELP("writes every frame of the link to the pcap file of that name and .PID")},
	{TEXT("weir.link.faults", ""), FOR(TASKMANAGER),
		HELP("makes the wire bad on purpose: seed=1,loss=0.01,reorder=0.1,delay=1ms,"
		     "partition=5s/1s")},
	{CHOICE("weir.storage", "auto", "auto|io_uring|threads"), FOR(TASKMANAGER),
		HELP("how files are written; auto: io_uring where the kernel lets us")},
	{INTEGER("weir.checkpoint-watchdog.intervals", "10"), BOUNDS(0, INT32_MAX),
		FOR(COORDINATOR),
		HELP("complain when no checkpoint completed for so many intervals, and for 1 s; "
		     "0: never")},
	{CHOICE("weir.log.level", "info", "debug|info|warn|error"), FOR(ALL),
		HELP("lowest level that is logged")},
};
/* clang-format on */

enum { KEYS_COUNT = sizeof(keys) / sizeof(keys[0]) };

uint32_t config_keys_count(void)
{
	return KEYS_COUNT;
}

const struct config_key *config_key_at(uint32_t index)
{
	return index < KEYS_COUNT ? &keys[index] : NULL;
}

/* Whether `name` is one of "a|b". */
static bool is_among(const char *names, const char *name)
{
	size_t size = strlen(name);

	while (names != NULL) {
		size_t length = strcspn(names, "|");

		if (length == size && memcmp(names, name, size) == 0)
			return true;
		names = names[length] == '|' ? names + length + 1 : NULL;
	}
	return false;
}

bool config_key_is_of_job(uint32_t index)
{
	static const char *const families[] = {CHECKPOINTING, RECOVERY, RESTART,
			"execution.buffer-timeout.", "parallelism.", "pipeline.", "state.",
			"weir.checkpoint-watchdog.", "weir.job.", "weir.network.", "weir.restart."};

	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (strncmp(keys[index].param.name, families[i], strlen(families[i])) == 0)
			return true;
	return false;
}

bool config_key_find(const char *name, uint32_t *index)
{
	for (uint32_t i = 0; i < KEYS_COUNT; i++) {
		if (strcmp(keys[i].param.name, name) == 0 || is_among(keys[i].old_names, name)) {
			*index = i;
			return true;
		}
	}
	return false;
}

const char *config_key_nearest(const char *name)
{
	struct nearest near;

	nearest_begin(&near, name);
	for (uint32_t i = 0; i < KEYS_COUNT; i++)
		nearest_offer(&near, keys[i].param.name);
	return nearest_best(&near);
}
