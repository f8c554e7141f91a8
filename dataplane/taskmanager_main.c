/*
 * weir-taskmanager: the data plane of one process: EAL, workers, memory, and the executor that
 * does what the coordinator asks.
 *
 * Start-up is a list of steps, each with its undo; the end is the same list backwards.
 */

#include "control/cli/exit_codes.h"
#include "control/cli/program_steps.h"
#include "control/config/config.h"
#include "control/executor/task_executor.h"
#include "control/net/address.h"
#include "control/net/loop.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/control_thread.h"
#include "dataplane/base/crash_point.h"
#include "dataplane/base/log.h"
#include "dataplane/base/parent.h"
#include "dataplane/base/process.h"
#include "dataplane/base/prng.h"
#include "dataplane/task/taskmanager.h"
#include "dataplane/taskmanager_link.h"
#include "dataplane/taskmanager_options.h"
#include "nic/eal.h"
#include "nic/host_memory.h"
#include "nic/mempool.h"
#include "nic/packet_ports.h"
#include "nic/probe.h"
#include "nic/topology.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	END_TIMEOUT_S = 20,
	MEBIBYTE = 1 << 20,
	CLAIM_WAIT_MS = 15000, /* another one starts meanwhile */
	LOOK_INTERVAL_NS = 100000000, /* at what packet ports have lost */
};

struct program {
	struct taskmanager_options options;
	struct config *config;
	char coordinator_host[ADDRESS_HOST_BYTES];
	uint16_t coordinator_port;
	struct topology_choice choice;
	uint32_t cpus[WORKERS_COUNT_MAX], lcores[WORKERS_COUNT_MAX];
	bool use_hugepages;
	uint32_t pool_count, buf_bytes;
	size_t state_bytes, eal_bytes;
	int claim; /* on hugepages, until they are taken; -1: none */
	struct mempool *pool;
	struct taskmanager_link *link; /* to other TaskManagers; NULL: none */
	struct packet_ports *packet_ports; /* NULL: none */
	char ports_text[2048];
	struct loop_timer *look; /* at their losses */
	void *state;
	struct taskmanager *taskmanager;
	struct loop *loop;
	struct loop_signal *on_term, *on_int;
	struct task_executor *executor;
	char id[128];
	int exit_code;
	char error[PROGRAM_ERROR_BYTES];
};

/* ---- the steps ---- */

static int find_coordinator(struct program *p)
{
	if (p->options.coordinator == NULL) {
		snprintf(p->coordinator_host, sizeof(p->coordinator_host), "%s",
				config_text(p->config, "jobmanager.rpc.address"));
		p->coordinator_port = (uint16_t)config_int(p->config, "jobmanager.rpc.port");
	} else if (address_parse(p->options.coordinator, p->coordinator_host,
				   &p->coordinator_port) != 0) {
		snprintf(p->error, sizeof(p->error),
				"--coordinator %s: expected HOST:PORT, such as 127.0.0.1:6123",
				p->options.coordinator);
		return -EINVAL;
	}
	if (config_is_set(p->config, "taskmanager.resource-id"))
		snprintf(p->id, sizeof(p->id), "%s",
				config_text(p->config, "taskmanager.resource-id"));
	else
		snprintf(p->id, sizeof(p->id), "tm-%d-%06x", (int)getpid(),
				(unsigned int)(prng_seed_from_os() & 0xffffff));
	return 0;
}

static int choose_cores(struct program *p)
{
	struct topology *t;
	struct core_list list;
	char text[TOPOLOGY_LIST_BYTES];

	CHECK(core_list_parse(config_text(p->config, "weir.cores"), &list) == 0);
	int rc = topology_open(&t, p->error);
	if (rc != 0)
		return rc;
	rc = topology_choose(t, &list, &p->choice, p->error);
	topology_close(t);
	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < p->choice.count; i++) {
		p->cpus[i] = p->choice.cores[i].os_index;
		p->lcores[i] = i + 1;
	}
	topology_print_choice(&p->choice, text, sizeof(text));
	log_info("taskmanager", "%u workers on cores %s", p->choice.count, text);
	return 0;
}

/* Those of jobs, and what the port of the link receives into. */
static uint32_t mempool_count(const struct program *p)
{
	return p->pool_count + taskmanager_link_receive_bufs(p->config, p->choice.count);
}

/* Of the ports of packets; `names` must live as long as it is used. */
static void read_packets(const struct program *p, struct config_list *names,
		struct packet_ports_config *out)
{
	config_list(p->config, "weir.nic.ports", names);
	*out = (struct packet_ports_config){
			.names = names->items,
			.count = names->count,
			.queue_count = (uint32_t)config_int(p->config, "weir.nic.queues"),
			.worker_count = p->choice.count,
			.descriptors = (uint16_t)config_int(p->config, "weir.nic.descriptors"),
	};
}

/* Buffers and ports. */
static size_t eal_memory(const struct program *p)
{
	struct packet_ports_config packets;
	struct config_list names;

	if (config_is_set(p->config, "weir.memory"))
		return (size_t)config_size(p->config, "weir.memory");
	read_packets(p, &names, &packets);
	return mempool_memory_bytes(mempool_count(p), p->buf_bytes, p->choice.count) +
			taskmanager_link_memory_bytes(p->config, p->choice.count) +
			packet_ports_memory_bytes(&packets);
}

static void yield_pages(struct program *p)
{
	host_memory_yield(p->claim);
	p->claim = -1;
}

/* Another TaskManager that starts now would count the same free pages. */
static void choose_pages(struct program *p)
{
	size_t need = p->eal_bytes + p->state_bytes + 2 * MEBIBYTE; /* to align the state */

	p->claim = -1;
	if (!config_is_choice(p->config, "weir.hugepages", "off"))
		p->claim = host_memory_claim(CLAIM_WAIT_MS);
	p->use_hugepages = config_is_choice(p->config, "weir.hugepages", "on") ||
			(config_is_choice(p->config, "weir.hugepages", "auto") &&
					host_memory_has_hugepages(need));
	if (p->use_hugepages)
		return;
	yield_pages(p);
	log_info("taskmanager",
			"runs without hugepages (--no-huge): %zu MiB of them are not free here; "
			"weir doctor says how to get them",
			need / MEBIBYTE);
}

static int plan_memory(struct program *p)
{
	size_t pool_bytes = (size_t)config_size(p->config, "taskmanager.memory.network.size");

	p->buf_bytes = (uint32_t)config_size(p->config, "taskmanager.memory.segment-size");
	p->pool_count = (uint32_t)(pool_bytes / p->buf_bytes);
	p->state_bytes = (size_t)config_size(p->config, "taskmanager.memory.managed.size");
	p->eal_bytes = eal_memory(p);
	choose_pages(p);
	return 0;
}

static int start_eal(struct program *p)
{
	char line[EAL_LINE_BYTES];
	const char *link = config_text(p->config, "weir.link.port");
	const char *ports[PACKET_PORTS_MAX + 1];
	struct packet_ports_config packets;
	struct config_list extra, names;
	uint32_t port_count = 0;

	read_packets(p, &names, &packets);
	for (uint32_t i = 0; i < names.count && i < PACKET_PORTS_MAX; i++)
		ports[port_count++] = names.items[i];
	if (link[0] != '\0')
		ports[port_count++] = link;
	log_info("taskmanager", "%zu MiB of memory for buffers and ports",
			p->eal_bytes / MEBIBYTE);
	config_list(p->config, "weir.eal.args", &extra);
	eal_sweep();
	int rc = eal_start(
			&(struct eal_config){
					.worker_cpus = p->cpus,
					.worker_count = p->choice.count,
					.control_cpus = p->choice.control_cpus,
					.use_hugepages = p->use_hugepages,
					.memory_bytes = p->eal_bytes,
					.ports = ports,
					.port_count = port_count,
					.extra = extra.items,
					.extra_count = extra.count,
			},
			line, p->error);
	log_debug("taskmanager", "EAL: %s", line);
	return rc;
}

/* Now that nobody waits for what this process holds. */
static int attach_devices(struct program *p)
{
	struct config_list extra;

	config_list(p->config, "weir.eal.args", &extra);
	return eal_attach(
			&(struct eal_config){.extra = extra.items, .extra_count = extra.count},
			p->error);
}

static void stop_eal(struct program *p)
{
	(void)p;
	eal_stop();
}

static int make_pool(struct program *p)
{
	return mempool_create(&p->pool, mempool_count(p), p->buf_bytes, p->choice.count, p->error);
}

static void destroy_pool(struct program *p)
{
	mempool_destroy(p->pool);
}

static int open_link(struct program *p)
{
	return taskmanager_link_open(&p->link, p->config, p->choice.count,
			mempool_mbufs(p->pool), p->error);
}

static void close_link(struct program *p)
{
	taskmanager_link_close(p->link);
}

static int open_packet_ports(struct program *p)
{
	char text[PORT_TEXT_BYTES];
	struct packet_ports_config config;
	struct config_list names;

	read_packets(p, &names, &config);
	if (names.count == 0)
		return 0;
	int rc = packet_ports_open(&p->packet_ports, &config, p->error);
	for (uint32_t i = 0; rc == 0 && packet_ports_print(p->packet_ports, i, text); i++) {
		size_t at = strlen(p->ports_text);

		log_info("taskmanager", "packets: %s", text);
		snprintf(p->ports_text + at, sizeof(p->ports_text) - at, "%s%s",
				at > 0 ? "; " : "", text);
	}
	return rc;
}

static void close_packet_ports(struct program *p)
{
	packet_ports_close(p->packet_ports);
}

static int map_state(struct program *p)
{
	int rc = host_memory_map(&p->state, p->state_bytes, p->use_hugepages, p->error);

	yield_pages(p); /* what is ours is taken */
	return rc;
}

static void unmap_state(struct program *p)
{
	host_memory_unmap(p->state, p->state_bytes);
}

static int make_taskmanager(struct program *p)
{
	char storage[16];
	struct taskmanager_config config = {
		.worker_count = p->choice.count,
		.worker_lcores = p->lcores,
		.must_spin = config_is_choice(p->config, "weir.idle", "spin"),
		.pool = mempool_bufs(p->pool),
		.pool_count = p->pool_count,
		.state_memory = p->state,
		.state_bytes = p->state_bytes,
		.storage = config_choice(p->config, "weir.storage", storage, sizeof(storage)),
		.clock = clock_real(),
	};

	if (p->packet_ports != NULL)
		config.packet_ports = packet_ports_directory(p->packet_ports);
	taskmanager_link_fill(p->link, &config);
	return taskmanager_create(&p->taskmanager, &config, p->error);
}

static void destroy_taskmanager(struct program *p)
{
	taskmanager_destroy(p->taskmanager);
}

static int start_workers(struct program *p)
{
	int rc = taskmanager_start(p->taskmanager, p->error);
	char text[1024], *rest;

	if (rc != 0)
		return rc;
	taskmanager_print_memory(p->taskmanager, text, sizeof(text));
	for (char *line = strtok_r(text, "\n", &rest); line != NULL;
			line = strtok_r(NULL, "\n", &rest))
		log_info("taskmanager", "memory: %s", line);
	return 0;
}

static void on_signal(void *context)
{
	struct program *p = context;

	log_info("taskmanager", "ends: told by a signal");
	alarm(END_TIMEOUT_S);
	loop_stop_mt(p->loop);
}

static void look_at_ports(void *context)
{
	struct program *p = context;

	packet_ports_look(p->packet_ports);
	loop_timer_set(p->look, LOOK_INTERVAL_NS);
}

static int make_loop(struct program *p)
{
	int rc = loop_create(&p->loop);

	if (rc == 0 && p->packet_ports != NULL) {
		rc = loop_timer_create(&p->look, p->loop, look_at_ports, p);
		if (rc == 0)
			look_at_ports(p);
	}
	if (rc == 0)
		rc = loop_signal_create(&p->on_term, p->loop, SIGTERM, on_signal, p);
	if (rc == 0)
		rc = loop_signal_create(&p->on_int, p->loop, SIGINT, on_signal, p);
	return rc;
}

static void destroy_loop(struct program *p)
{
	loop_timer_destroy(p->look);
	loop_signal_destroy(p->on_int);
	loop_signal_destroy(p->on_term);
	loop_destroy(p->loop);
}

static void on_refused(void *context, const char *text)
{
	struct program *p = context;

	log_error("taskmanager", "the coordinator refuses this TaskManager: %s", text);
	p->exit_code = WEIR_EXIT_FAILURE;
	loop_stop_mt(p->loop);
}

static int make_executor(struct program *p)
{
	return task_executor_create(&p->executor,
			&(struct task_executor_config){
					.loop = p->loop,
					.taskmanager = p->taskmanager,
					.config = p->config,
					.host = p->coordinator_host,
					.port = p->coordinator_port,
					.id = p->id,
					.cores = p->cpus,
					.worker_count = p->choice.count,
					.pool_bytes = (uint64_t)p->pool_count * p->buf_bytes,
					.state_bytes = p->state_bytes,
					.pages = p->use_hugepages ? "2 MiB hugepages"
								  : "no hugepages",
					.link_address = taskmanager_link_text(p->link),
					.link_port = taskmanager_link_port(p->link),
					.packet_ports = p->ports_text,
					.refused = on_refused,
					.context = p,
			});
}

/* This thread is the loop's.  All the others have been made. */
static int schedule_control(struct program *p)
{
	return control_thread_schedule("taskmanager",
			config_is_choice(p->config, "weir.control.scheduling", "prompt"),
			config_text(p->config, "weir.control.cores"), p->error);
}

static void release_control(struct program *p)
{
	(void)p;
	(void)control_thread_yield();
}

/* Tasks must have ended before what they stand on goes. */
static void destroy_executor(struct program *p)
{
	taskmanager_stop(p->taskmanager);
	task_executor_destroy(p->executor);
}

static const struct program_step steps[] = {
		{"coordinator address", find_coordinator, NULL},
		{"cores", choose_cores, NULL},
		{"memory plan", plan_memory, NULL},
		{"EAL", start_eal, stop_eal},
		{"buffer pool", make_pool, destroy_pool},
		{"state memory", map_state, unmap_state},
		{"devices", attach_devices, NULL},
		{"link", open_link, close_link},
		{"packet ports", open_packet_ports, close_packet_ports},
		{"data plane", make_taskmanager, destroy_taskmanager},
		{"loop", make_loop, destroy_loop},
		{"workers", start_workers, NULL},
		{"executor", make_executor, destroy_executor},
		{"scheduling", schedule_control, release_control},
};

enum { STEPS_COUNT = sizeof(steps) / sizeof(steps[0]) };

static int run(struct program *p)
{
	const struct program_start start = {
			.name = "weir-taskmanager",
			.module = "taskmanager",
			.config = p->config,
			.steps = steps,
			.step_count = STEPS_COUNT,
			.error = p->error,
	};
	int code = program_begin(&start, p);

	if (code != WEIR_EXIT_DONE)
		return code;
	loop_run(p->loop);
	program_end(&start, p);
	return p->exit_code;
}

static int probe(const struct program *p)
{
	struct core_list cores;

	CHECK(core_list_parse(config_text(p->config, "weir.cores"), &cores) == 0);
	return probe_main(&(struct probe_config){.root = "",
					  .pmd_folder = eal_driver_folder(),
					  .cores = &cores},
			p->options.is_json);
}

int main(int argc, char **argv)
{
	struct program *p = calloc(1, sizeof(*p));
	int exit_code;

	if (p == NULL)
		return WEIR_EXIT_FAILURE;
	process_prepare();
	crash_point_arm();
	if (!taskmanager_options_take(&p->options, argc, argv, &exit_code)) {
		free(p);
		return exit_code;
	}
	if (p->options.must_probe) {
		exit_code = job_options_config(&p->options.job, &p->config);
		if (exit_code == WEIR_EXIT_DONE)
			exit_code = probe(p);
		config_destroy(p->config);
	} else if (p->options.parent != 0 && !parent_bind(p->options.parent)) {
		exit_code = WEIR_EXIT_FAILURE;
	} else {
		exit_code = job_options_config(&p->options.job, &p->config);
		if (exit_code == WEIR_EXIT_DONE)
			exit_code = run(p);
		config_destroy(p->config);
	}
	free(p);
	return exit_code;
}
