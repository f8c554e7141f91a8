/*
 * weir-taskmanager: the data plane of one process: EAL, workers, memory, and the executor that
 * does what the coordinator asks.
 *
 * Start-up is a list of steps, each with its undo; the end is the same list backwards.
 */

#include "control/cli/exit_codes.h"
#include "control/config/config.h"
#include "control/executor/task_executor.h"
#include "control/net/address.h"
#include "control/net/loop.h"
#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/crash_point.h"
#include "dataplane/base/log.h"
#include "dataplane/base/parent.h"
#include "dataplane/base/prng.h"
#include "dataplane/channel/net_capture.h"
#include "dataplane/channel/net_faults.h"
#include "dataplane/task/taskmanager.h"
#include "dataplane/taskmanager_options.h"
#include "nic/eal.h"
#include "nic/host_memory.h"
#include "nic/mempool.h"
#include "nic/port.h"
#include "nic/port_transport.h"
#include "nic/probe.h"
#include "nic/topology.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	ERROR_BYTES = 4096,
	END_TIMEOUT_S = 20,
	MEBIBYTE = 1 << 20,
};

/* A peer may be a while about its tasks before it says its first word. */
#define LINK_CONNECT_TIMEOUT_NS UINT64_C(60000000000)

struct program {
	struct taskmanager_options options;
	struct config *config;
	char coordinator_host[ADDRESS_HOST_BYTES];
	uint16_t coordinator_port;
	struct topology_choice choice;
	uint32_t cpus[WORKERS_COUNT_MAX], lcores[WORKERS_COUNT_MAX];
	bool use_hugepages;
	uint32_t pool_count, buf_bytes;
	size_t state_bytes;
	struct mempool *pool;
	struct port *port; /* to other TaskManagers; NULL: none */
	struct port_transport *wire;
	struct net_faults *faults;
	struct net_capture *capture;
	struct net_address link;
	uint8_t gateway[6];
	char link_text[NET_ADDRESS_TEXT_BYTES];
	void *state;
	struct taskmanager *taskmanager;
	struct loop *loop;
	struct loop_signal *on_term, *on_int;
	struct task_executor *executor;
	char id[128];
	int exit_code;
	char error[ERROR_BYTES];
};

/* ---- the steps ---- */

static int open_log(struct program *p)
{
	char name[16];
	enum log_level level = LOG_INFO;

	CHECK(log_level_parse(config_choice(p->config, "weir.log.level", name, sizeof(name)),
			&level));
	log_open("weir-taskmanager", level);
	return 0;
}

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

static int plan_memory(struct program *p)
{
	size_t pool_bytes = (size_t)config_size(p->config, "taskmanager.memory.network.size");

	p->buf_bytes = (uint32_t)config_size(p->config, "taskmanager.memory.segment-size");
	p->pool_count = (uint32_t)(pool_bytes / p->buf_bytes);
	p->state_bytes = (size_t)config_size(p->config, "taskmanager.memory.managed.size");
	size_t need = mempool_memory_bytes(p->pool_count, p->buf_bytes, p->choice.count) +
			p->state_bytes;
	if (config_is_choice(p->config, "weir.hugepages", "auto"))
		p->use_hugepages = host_memory_has_hugepages(need);
	else
		p->use_hugepages = config_is_choice(p->config, "weir.hugepages", "on");
	if (!p->use_hugepages)
		log_info("taskmanager",
				"runs without hugepages (--no-huge): %zu MiB of them are not free "
				"here; weir doctor says how to get them",
				need / MEBIBYTE);
	return 0;
}

static bool has_link(const struct program *p)
{
	return config_text(p->config, "weir.link.port")[0] != '\0';
}

static struct port_config link_port_config(const struct program *p)
{
	uint16_t descriptors = (uint16_t)config_int(p->config, "weir.link.descriptors");

	return (struct port_config){
			.name = config_text(p->config, "weir.link.port"),
			.mtu = (uint32_t)config_int(p->config, "weir.link.mtu"),
			.rx_descriptors = descriptors,
			.tx_descriptors = descriptors,
	};
}

static int start_eal(struct program *p)
{
	char line[EAL_LINE_BYTES];
	struct config_list extra;
	size_t memory = mempool_memory_bytes(p->pool_count, p->buf_bytes, p->choice.count);
	struct port_config port = link_port_config(p);

	if (has_link(p))
		memory += port_memory_bytes(&port);
	if (config_is_set(p->config, "weir.memory"))
		memory = (size_t)config_size(p->config, "weir.memory");
	config_list(p->config, "weir.eal.args", &extra);
	eal_sweep();
	int rc = eal_start(
			&(struct eal_config){
					.worker_cpus = p->cpus,
					.worker_count = p->choice.count,
					.control_cpus = p->choice.control_cpus,
					.use_hugepages = p->use_hugepages,
					.memory_bytes = memory,
					.ports = &port.name,
					.port_count = has_link(p) ? 1 : 0,
					.extra = extra.items,
					.extra_count = extra.count,
			},
			line, p->error);
	log_debug("taskmanager", "EAL: %s", line);
	return rc;
}

static void stop_eal(struct program *p)
{
	(void)p;
	eal_stop();
}

static int make_pool(struct program *p)
{
	return mempool_create(&p->pool, p->pool_count, p->buf_bytes, p->choice.count, p->error);
}

static void destroy_pool(struct program *p)
{
	mempool_destroy(p->pool);
}

/* 169.254.x.y by the MAC: frames go by MAC and token, so two of one address do no harm. */
static void choose_link_address(struct program *p)
{
	const char *text = config_text(p->config, "weir.link.address");

	port_mac(p->port, p->link.mac);
	p->link.udp_port = (uint16_t)config_int(p->config, "weir.link.udp-port");
	p->link.frame_bytes_max = (uint16_t)port_frame_bytes_max(p->port);
	p->link.window_frames = port_rx_descriptors(p->port);
	p->link.is_ipv6 = strchr(text, ':') != NULL;
	if (strcmp(text, "auto") == 0)
		memcpy(p->link.ip,
				(const uint8_t[]){169, 254, (uint8_t)(p->link.mac[4] % 254 + 1),
						p->link.mac[5]},
				4);
	else
		CHECK(inet_pton(p->link.is_ipv6 ? AF_INET6 : AF_INET, text, p->link.ip) == 1);
	net_address_print(&p->link, p->link_text);
}

static int spoil_wire(struct program *p)
{
	const char *text = config_text(p->config, "weir.link.faults");
	struct net_faults_config faults;
	char why[NET_FAULTS_TEXT_BYTES];

	if (text[0] == '\0')
		return 0;
	if (net_faults_parse(text, &faults, why) != 0) {
		snprintf(p->error, sizeof(p->error), "weir.link.faults: %s", why);
		return -EINVAL;
	}
	log_warn("taskmanager", "the link is made bad on purpose: %s", text);
	return net_faults_create(
			&p->faults, port_transport_port(p->wire), &faults, clock_real());
}

static struct transport *link_transport(const struct program *p)
{
	if (p->wire == NULL)
		return NULL;
	if (p->capture != NULL)
		return net_capture_transport(p->capture);
	return p->faults != NULL ? net_faults_transport(p->faults)
				 : port_transport_port(p->wire);
}

/* What the link says and hears, before any fault on the way out. */
static int capture_wire(struct program *p)
{
	const char *prefix = config_text(p->config, "weir.link.capture");
	char path[1100];

	if (prefix[0] == '\0')
		return 0;
	snprintf(path, sizeof(path), "%.1000s.%d", prefix, (int)getpid());
	int rc = net_capture_create(&p->capture, link_transport(p), path, clock_real());
	if (rc != 0)
		snprintf(p->error, sizeof(p->error), "weir.link.capture: %.1000s: %s", path,
				strerror(-rc));
	return rc;
}

static void close_link(struct program *p)
{
	net_capture_destroy(p->capture);
	net_faults_destroy(p->faults);
	port_transport_destroy(p->wire);
	port_destroy(p->port);
}

static int open_link(struct program *p)
{
	struct port_config port = link_port_config(p);
	char text[PORT_TEXT_BYTES];

	if (!has_link(p))
		return 0;
	int rc = port_create(&p->port, &port, p->error);
	if (rc == 0)
		rc = port_transport_create(&p->wire, p->port);
	if (rc == 0)
		rc = spoil_wire(p);
	if (rc == 0)
		rc = capture_wire(p);
	if (rc != 0) {
		close_link(p);
		return rc;
	}
	choose_link_address(p);
	(void)net_mac_parse(config_text(p->config, "weir.link.gateway"), p->gateway);
	port_print(p->port, text);
	log_info("taskmanager", "link: %s at %s", text, p->link_text);
	return 0;
}

static int map_state(struct program *p)
{
	return host_memory_map(&p->state, p->state_bytes, p->use_hugepages, p->error);
}

static void unmap_state(struct program *p)
{
	host_memory_unmap(p->state, p->state_bytes);
}

static int make_taskmanager(struct program *p)
{
	char storage[16];

	return taskmanager_create(&p->taskmanager,
			&(struct taskmanager_config){
					.worker_count = p->choice.count,
					.worker_lcores = p->lcores,
					.must_spin = config_is_choice(
							p->config, "weir.idle", "spin"),
					.pool = mempool_bufs(p->pool),
					.pool_count = p->pool_count,
					.state_memory = p->state,
					.state_bytes = p->state_bytes,
					.storage = config_choice(p->config, "weir.storage",
							storage, sizeof(storage)),
					.clock = clock_real(),
					.transport = link_transport(p),
					.link_address = p->link,
					.link_gateway = config_text(p->config,
								"weir.link.gateway")[0] ==
									'\0'
							? NULL
							: p->gateway,
					.link_connect_timeout_ns = LINK_CONNECT_TIMEOUT_NS,
					.link_peer_timeout_ns = (uint64_t)config_duration_ns(
							p->config, "weir.link.timeout"),
			},
			p->error);
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

static int make_loop(struct program *p)
{
	int rc = loop_create(&p->loop);

	if (rc == 0)
		rc = loop_signal_create(&p->on_term, p->loop, SIGTERM, on_signal, p);
	if (rc == 0)
		rc = loop_signal_create(&p->on_int, p->loop, SIGINT, on_signal, p);
	return rc;
}

static void destroy_loop(struct program *p)
{
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
					.link_address = p->link_text,
					.refused = on_refused,
					.context = p,
			});
}

/* Tasks must have ended before what they stand on goes. */
static void destroy_executor(struct program *p)
{
	taskmanager_stop(p->taskmanager);
	task_executor_destroy(p->executor);
}

struct step {
	const char *name;
	int (*run)(struct program *p);
	void (*undo)(struct program *p);
};

static const struct step steps[] = {
		{"log", open_log, NULL},
		{"coordinator address", find_coordinator, NULL},
		{"cores", choose_cores, NULL},
		{"memory plan", plan_memory, NULL},
		{"EAL", start_eal, stop_eal},
		{"buffer pool", make_pool, destroy_pool},
		{"link", open_link, close_link},
		{"state memory", map_state, unmap_state},
		{"data plane", make_taskmanager, destroy_taskmanager},
		{"loop", make_loop, destroy_loop},
		{"workers", start_workers, NULL},
		{"executor", make_executor, destroy_executor},
};

enum { STEPS_COUNT = sizeof(steps) / sizeof(steps[0]) };

static void undo(struct program *p, uint32_t count)
{
	while (count-- > 0)
		if (steps[count].undo != NULL)
			steps[count].undo(p);
}

static int run(struct program *p)
{
	for (uint32_t i = 0; i < STEPS_COUNT; i++) {
		int rc = steps[i].run(p);

		if (rc == 0)
			continue;
		if (p->error[0] == 0)
			snprintf(p->error, sizeof(p->error), "%s", strerror(-rc));
		log_error("taskmanager", "cannot start (%s): %s", steps[i].name, p->error);
		undo(p, i);
		return rc == -EBUSY || rc == -EADDRINUSE ? WEIR_EXIT_BUSY : WEIR_EXIT_CONFIG;
	}
	loop_run(p->loop);
	undo(p, STEPS_COUNT);
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
