/* The links of a task_group: what crosses to each peer, in an order that both ends agree on. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/task/link_port.h"
#include "dataplane/task/task_group_internal.h"

/* Odd, and far from itself. */
#define TOKEN_STEP UINT64_C(0x9e3779b97f4a7c15)

/* The channels between us and one peer. */
struct crossing {
	struct ring_channel **out, **in;
	uint32_t out_count, in_count;
};

/* Edge by edge, producer by producer, consumer by consumer: so does the peer. */
static void collect(const struct task_group *g, int32_t peer, struct crossing *c)
{
	for (uint32_t i = 0; i < g->edge_count; i++) {
		const struct edge_channels *e = &g->edges[i];

		for (uint32_t k = 0; k < e->producer_count * e->consumer_count; k++) {
			int32_t from = e->producer_places[k / e->consumer_count];
			int32_t to = e->consumer_places[k % e->consumer_count];

			if (e->at[k] == NULL)
				continue;
			if (to == peer)
				c->out[c->out_count++] = e->at[k];
			else if (from == peer)
				c->in[c->in_count++] = e->at[k];
		}
	}
}

static uint32_t channel_count(const struct task_group *g)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < g->edge_count; i++)
		count += g->edges[i].producer_count * g->edges[i].consumer_count;
	return count;
}

/* How many links share what crosses to a peer; the peer comes to the same. */
static uint32_t share_count(const struct task_group *g, const struct crossing *c, uint32_t queues)
{
	uint32_t channels = c->out_count > c->in_count ? c->out_count : c->in_count;
	uint32_t count = g->config.port_count < queues ? g->config.port_count : queues;

	return count < channels || channels == 0 ? count : channels;
}

/* Every `count`-th channel from the `first`. */
static uint32_t take_share(struct ring_channel **share, struct ring_channel **all,
		uint32_t all_count, uint32_t first, uint32_t count)
{
	uint32_t taken = 0;

	for (uint32_t i = first; i < all_count; i += count)
		share[taken++] = all[i];
	return taken;
}

/* Link `k` of `count`: it begins with another queue in each deployment, so that small jobs do not
 * meet at the first. */
static int build_link(struct task_group *g, const struct deployment_peer *peer,
		const struct crossing *c, uint32_t k, uint32_t count)
{
	uint32_t queues = g->config.port_count < peer->address.queue_count
			? g->config.port_count
			: peer->address.queue_count;
	uint32_t queue = (uint32_t)((peer->token + k) % queues);
	struct ring_channel **share = calloc(
			(size_t)c->out_count + c->in_count + 1, sizeof(share[0]));
	struct remote_link_config link = {
		.token = peer->token + k * TOKEN_STEP,
		.peer = net_address_of_queue(&peer->address, queue),
		.pool = g->config.pool,
		.out = share,
	};

	if (share == NULL)
		return -ENOMEM;
	link.out_count = take_share(share, c->out, c->out_count, k, count);
	link.in = share + link.out_count;
	link.in_count = take_share(link.in, c->in, c->in_count, k, count);
	int rc = link_port_create_link(g->config.ports[queue], &g->links[g->link_count], &link);
	g->link_count += rc == 0;
	free(share);
	return rc;
}

static int build_links_to(struct task_group *g, uint32_t index, struct crossing *c)
{
	const struct deployment_peer *peer = &g->config.deployment->peers[index];
	int rc = 0;

	c->out_count = 0;
	c->in_count = 0;
	collect(g, (int32_t)index, c);
	uint32_t count = share_count(g, c, peer->address.queue_count);
	for (uint32_t k = 0; rc == 0 && k < count; k++)
		rc = build_link(g, peer, c, k, count);
	return rc;
}

static int refuse(const struct task_group *g, uint32_t index, int status,
		char error[TASKMANAGER_ERROR_BYTES])
{
	const struct deployment_peer *peer = &g->config.deployment->peers[index];
	char local[NET_ADDRESS_TEXT_BYTES], remote[NET_ADDRESS_TEXT_BYTES];

	net_address_print(link_port_address(g->config.ports[0]), local);
	net_address_print(&peer->address, remote);
	snprintf(error, TASKMANAGER_ERROR_BYTES,
			"no link can be made from %s to %s: %s (both ends need one IP version and "
			"one weir.link.mtu, whose frames hold a buffer of "
			"taskmanager.memory.segment-size in 128 pieces)",
			local, remote, strerror(-status));
	return status;
}

static int check_port(const struct task_group *g, char error[TASKMANAGER_ERROR_BYTES])
{
	uint32_t peers = g->config.deployment->peer_count;

	if (g->config.port_count == 0) {
		snprintf(error, TASKMANAGER_ERROR_BYTES,
				"tasks of the job run on other TaskManagers, and this one has no "
				"port to them; set weir.link.port");
		return -EINVAL;
	}
	if (peers > 1 && g->config.do_ports_join_two) {
		snprintf(error, TASKMANAGER_ERROR_BYTES,
				"tasks of the job run on %u other TaskManagers, and the port of "
				"this one joins two only; give it one of a network "
				"(weir.link.port), or lower weir.job.taskmanagers",
				peers);
		return -EINVAL;
	}
	return 0;
}

int task_group_build_links(struct task_group *g, char error[TASKMANAGER_ERROR_BYTES])
{
	const struct deployment *d = g->config.deployment;
	uint32_t most = channel_count(g);
	int status = 0;

	if (d->peer_count == 0)
		return 0;
	if (check_port(g, error) != 0)
		return -EINVAL;
	struct crossing c = {
		.out = calloc(most + 1, sizeof(c.out[0])),
		.in = calloc(most + 1, sizeof(c.in[0])),
	};
	g->links = calloc((size_t)d->peer_count * g->config.port_count, sizeof(g->links[0]));
	if (g->links == NULL || c.out == NULL || c.in == NULL)
		status = -ENOMEM;
	for (uint32_t i = 0; status == 0 && i < d->peer_count; i++) {
		status = build_links_to(g, i, &c);
		if (status != 0)
			(void)refuse(g, i, status, error);
	}
	free(c.out);
	free(c.in);
	return status;
}

void task_group_start_links(struct task_group *g)
{
	for (uint32_t i = 0; i < g->link_count; i++)
		remote_link_start(g->links[i]);
}

/* What tasks that have finished have sent is still to arrive. */
static bool have_all_finished(const struct task_group *g)
{
	for (uint32_t i = 0; i < g->task_count; i++) {
		if (g->tasks[i].status != TASK_FINISHED)
			return false;
	}
	return true;
}

bool task_group_end_links(struct task_group *g)
{
	bool must_drain = have_all_finished(g), are_gone = true;

	for (uint32_t i = 0; i < g->link_count; i++) {
		remote_link_close(g->links[i], must_drain);
		are_gone = remote_link_is_gone(g->links[i]) && are_gone;
	}
	return are_gone;
}

const char *task_group_take_link_failure(struct task_group *g)
{
	for (uint32_t i = 0; i < g->link_count; i++) {
		const char *text = remote_link_take_failure(g->links[i]);

		if (text != NULL)
			return text;
	}
	return NULL;
}

void task_group_destroy_links(struct task_group *g)
{
	for (uint32_t i = 0; i < g->link_count; i++)
		remote_link_forget(g->links[i]);
	free(g->links);
}
