/* The links of a task_group: what crosses to each peer, in an order that both ends agree on. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/task/link_port.h"
#include "dataplane/task/task_group_internal.h"

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

static int build_link(struct task_group *g, uint32_t index, struct crossing *c)
{
	const struct deployment_peer *peer = &g->config.deployment->peers[index];

	c->out_count = 0;
	c->in_count = 0;
	collect(g, (int32_t)index, c);
	return link_port_create_link(g->config.port, &g->links[index],
			&(struct remote_link_config){
					.token = peer->token,
					.peer = peer->address,
					.pool = g->config.pool,
					.out = c->out,
					.out_count = c->out_count,
					.in = c->in,
					.in_count = c->in_count,
			});
}

static int refuse(const struct task_group *g, uint32_t index, int status,
		char error[TASKMANAGER_ERROR_BYTES])
{
	const struct deployment_peer *peer = &g->config.deployment->peers[index];
	char local[NET_ADDRESS_TEXT_BYTES], remote[NET_ADDRESS_TEXT_BYTES];

	net_address_print(link_port_address(g->config.port), local);
	net_address_print(&peer->address, remote);
	snprintf(error, TASKMANAGER_ERROR_BYTES,
			"no link can be made from %s to %s: %s (both ends need one IP version and "
			"one weir.link.mtu, whose frames hold a buffer of "
			"taskmanager.memory.segment-size in 128 pieces)",
			local, remote, strerror(-status));
	return status;
}

int task_group_build_links(struct task_group *g, char error[TASKMANAGER_ERROR_BYTES])
{
	const struct deployment *d = g->config.deployment;
	uint32_t most = channel_count(g);
	int status = 0;

	if (d->peer_count == 0)
		return 0;
	if (g->config.port == NULL) {
		snprintf(error, TASKMANAGER_ERROR_BYTES,
				"tasks of the job run on other TaskManagers, and this one has no "
				"port to them; set weir.link.port");
		return -EINVAL;
	}
	struct crossing c = {
		.out = calloc(most + 1, sizeof(c.out[0])),
		.in = calloc(most + 1, sizeof(c.in[0])),
	};
	g->links = calloc(d->peer_count, sizeof(g->links[0]));
	if (g->links == NULL || c.out == NULL || c.in == NULL)
		status = -ENOMEM;
	for (; status == 0 && g->link_count < d->peer_count; g->link_count++) {
		status = build_link(g, g->link_count, &c);
		if (status != 0) {
			(void)refuse(g, g->link_count, status, error);
			break;
		}
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
