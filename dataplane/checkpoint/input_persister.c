#include "dataplane/checkpoint/input_persister.h"

#include "dataplane/base/check.h"
#include "dataplane/channel/input_gate.h"
#include "dataplane/checkpoint/channel_state_persister.h"
#include "dataplane/checkpoint/channel_state_writer.h"
#include "dataplane/wire/buf.h"

#include <errno.h>
#include <stdlib.h>

struct kept_channel {
	struct channel_info at;
	struct channel_state_persister persister;
};

struct input_persister {
	struct input_persister_config config;
	int64_t checkpoint_id; /* started last; 0: none */
	bool is_active;        /* some channel may still have something to hand over */
	uint32_t channel_count;
	struct kept_channel channels[];
};

int input_persister_create(
		struct input_persister **out, const struct input_persister_config *config)
{
	uint32_t count = 0;

	for (uint32_t g = 0; g < config->gate_count; g++)
		count += input_gate_channel_count(config->gates[g]);

	struct input_persister *p = calloc(1, sizeof(*p) + count * sizeof(p->channels[0]));
	if (p == NULL)
		return -ENOMEM;
	p->config = *config;
	for (uint32_t g = 0; g < config->gate_count; g++) {
		for (uint32_t c = 0; c < input_gate_channel_count(config->gates[g]); c++) {
			struct kept_channel *k = &p->channels[p->channel_count++];

			k->at = (struct channel_info){g, c};
			channel_state_persister_init(&k->persister);
		}
	}
	*out = p;
	return 0;
}

void input_persister_destroy(struct input_persister *p)
{
	free(p);
}

static struct input_gate *gate_of(const struct input_persister *p, const struct kept_channel *k)
{
	return p->config.gates[k->at.gate];
}

void input_persister_arrived(
		struct input_persister *p, uint32_t channel, const struct event *barrier)
{
	CHECK(channel < p->channel_count);
	channel_state_persister_check(&p->channels[channel].persister, barrier->checkpoint_id,
			barrier->boundary);
}

/* ---- hand over ---- */

/* `from` is the index of the first one among those that are here. */
static void hand_over(struct input_persister *p, struct kept_channel *k, uint32_t from,
		uint32_t count)
{
	for (uint32_t i = from; i < from + count; i++) {
		uint32_t offset;
		struct buf *b = input_gate_inflight_at(
				gate_of(p, k), k->at.channel, i, &offset);

		channel_state_writer_add_input_data(
				p->config.writer, p->checkpoint_id, k->at, &b, 1, offset);
	}
}

static uint32_t take_channel(struct input_persister *p, struct kept_channel *k)
{
	const struct input_gate *gate = gate_of(p, k);
	uint64_t known = input_gate_known_count(gate, k->at.channel);
	uint32_t count;
	uint64_t from = channel_state_persister_take(&k->persister, known, &count);

	/* What is processed before it is handed over is lost to the checkpoint. */
	CHECK(count == 0 || from >= input_gate_position(gate, k->at.channel));
	if (count > 0)
		hand_over(p, k,
				input_gate_recovered_count(gate, k->at.channel) + (uint32_t)(from -
						input_gate_position(gate, k->at.channel)),
				count);
	return count;
}

uint32_t input_persister_take(struct input_persister *p)
{
	uint32_t taken = 0;
	bool is_active = false;

	if (!p->is_active)
		return 0;
	for (uint32_t i = 0; i < p->channel_count; i++) {
		struct kept_channel *k = &p->channels[i];

		if (!channel_state_persister_is_waiting(&k->persister, p->checkpoint_id))
			continue;
		taken += take_channel(p, k);
		is_active |= channel_state_persister_is_waiting(&k->persister, p->checkpoint_id);
	}
	p->is_active = is_active;
	return taken;
}

/* ---- start and end ---- */

/* 14.1: the bytes of a record that began in buffers already given back. */
static void hand_over_partial(struct input_persister *p, struct kept_channel *k)
{
	uint32_t bytes;
	const uint8_t *at = input_gate_partial(gate_of(p, k), k->at.channel, &bytes);

	if (bytes == 0)
		return;
	channel_state_writer_add_input_partial(
			p->config.writer, p->checkpoint_id, k->at, at, bytes);
}

static void start_channel(struct input_persister *p, struct kept_channel *k)
{
	const struct input_gate *gate = gate_of(p, k);

	if (!input_gate_is_open(gate, k->at.channel))
		return;
	CHECK(channel_state_persister_start(&k->persister, p->checkpoint_id,
			input_gate_position(gate, k->at.channel)));
	/* Also of a record that goes on in what the sender keeps.  A channel that has delivered its
	 * barrier is between two records. */
	hand_over_partial(p, k);
	hand_over(p, k, 0, input_gate_recovered_count(gate, k->at.channel));
}

void input_persister_start(struct input_persister *p, int64_t checkpoint_id)
{
	if (p->config.writer == NULL)
		return;
	p->checkpoint_id = checkpoint_id;
	p->is_active = true;
	for (uint32_t i = 0; i < p->channel_count; i++)
		start_channel(p, &p->channels[i]);
	(void)input_persister_take(p);
}

void input_persister_stop(struct input_persister *p, int64_t checkpoint_id)
{
	for (uint32_t i = 0; i < p->channel_count; i++) {
		struct kept_channel *k = &p->channels[i];

		channel_state_persister_stop(&k->persister, checkpoint_id,
				input_gate_known_count(gate_of(p, k), k->at.channel));
	}
}

void input_persister_cancel(struct input_persister *p, int64_t checkpoint_id)
{
	if (p->checkpoint_id == checkpoint_id)
		input_persister_cancel_up_to(p, checkpoint_id);
}

void input_persister_cancel_up_to(struct input_persister *p, int64_t checkpoint_id)
{
	for (uint32_t i = 0; i < p->channel_count; i++)
		channel_state_persister_cancel(&p->channels[i].persister, checkpoint_id);
}

bool input_persister_is_waiting(const struct input_persister *p, int64_t checkpoint_id)
{
	for (uint32_t i = 0; i < p->channel_count && p->is_active; i++) {
		if (channel_state_persister_is_waiting(&p->channels[i].persister, checkpoint_id))
			return true;
	}
	return false;
}
