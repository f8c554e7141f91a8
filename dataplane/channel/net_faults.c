#include "dataplane/channel/net_faults.h"

#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/lines.h"
#include "dataplane/base/prng.h"
#include "dataplane/base/units.h"
#include "dataplane/wire/buf.h"

#include <errno.h>
#include <stdio.h>

enum { HELD_MAX = 512 };

/* A frame of our own, flat: the body is in here. */
struct held {
	uint64_t due_ns;
	struct frame_out frame;
	uint8_t *body;
};

struct net_faults {
	struct transport transport;
	struct transport *inner;
	struct net_faults_config config;
	struct clock *clock;
	struct prng prng;
	bool is_cut;
	uint64_t began_ns;
	uint32_t held_count;
	uint32_t order[HELD_MAX]; /* indexes of slots; the first held_count are in use */
	struct held *held;
	uint8_t *bodies;
	struct net_faults_counters counters;
};

static struct net_faults *faults_of(struct transport *t)
{
	return (struct net_faults *)t;
}

/* ---- what becomes of a frame ---- */

enum fate { FATE_PASS, FATE_LOSE, FATE_REPEAT, FATE_DAMAGE, FATE_DELAY };

static bool is_partitioned(const struct net_faults *f, uint64_t now_ns)
{
	if (f->is_cut)
		return true;
	if (f->config.partition_every_ns == 0)
		return false;
	return (now_ns - f->began_ns) % f->config.partition_every_ns >=
			f->config.partition_every_ns - f->config.partition_ns;
}

static enum fate decide(struct net_faults *f, uint64_t now_ns)
{
	const struct net_faults_config *c = &f->config;

	if (is_partitioned(f, now_ns)) {
		f->counters.cut_off++;
		return FATE_LOSE;
	}

	double draw = prng_unit(&f->prng);
	if (draw < c->loss) {
		f->counters.lost++;
		return FATE_LOSE;
	}
	draw -= c->loss;
	if (draw < c->duplicate)
		return FATE_REPEAT;
	draw -= c->duplicate;
	if (draw < c->corrupt)
		return FATE_DAMAGE;
	draw -= c->corrupt;
	if (draw < c->reorder || (c->reorder == 0 && c->delay_ns > 0))
		return FATE_DELAY;
	return FATE_PASS;
}

/* ---- frames of our own ---- */

static void copy_frame(struct held *to, const struct frame_out *from)
{
	to->frame = *from;
	if (from->body_bytes > 0) {
		memcpy(to->body, from->body, from->body_bytes);
		to->frame.body = to->body;
	}
	to->frame.owner = NULL;
}

static struct held *held_at(struct net_faults *f, uint32_t index)
{
	return &f->held[f->order[index]];
}

/* A free slot, after the last in use; NULL: none. */
static struct held *free_slot(struct net_faults *f)
{
	return f->held_count < HELD_MAX ? held_at(f, f->held_count) : NULL;
}

static void damage(struct net_faults *f, struct frame_out *frame, uint8_t *body)
{
	uint32_t bit = (uint32_t)prng_below(
			&f->prng, 8ull * (frame->head_bytes + frame->body_bytes));
	uint32_t at = bit / 8;
	uint8_t *byte = at < frame->head_bytes ? &frame->head[at] : &body[at - frame->head_bytes];

	*byte ^= (uint8_t)(1u << bit % 8);
	f->counters.damaged++;
}

static void let_go(const struct frame_out *frame)
{
	if (frame->owner != NULL)
		buf_release(frame->owner);
}

/* Sends what has been held long enough; nothing passes a cut. */
static void send_due(struct net_faults *f, uint64_t now_ns)
{
	bool is_cut = is_partitioned(f, now_ns);

	for (uint32_t i = 0; i < f->held_count; i++) {
		if (held_at(f, i)->due_ns > now_ns)
			continue;
		if (is_cut)
			f->counters.cut_off++;
		else if (f->inner->send(f->inner, &held_at(f, i)->frame, 1) == 0)
			return;

		uint32_t slot = f->order[i];
		f->order[i] = f->order[--f->held_count];
		f->order[f->held_count] = slot;
		i--;
	}
}

/* Carries out a fate other than passing.  False: the inner transport takes nothing now. */
static bool carry_out(struct net_faults *f, enum fate fate, const struct frame_out *frame,
		uint64_t now_ns)
{
	struct held *own = free_slot(f);

	if (fate == FATE_LOSE) {
		let_go(frame);
		return true;
	}
	if (own == NULL)
		return f->inner->send(f->inner, frame, 1) == 1;
	copy_frame(own, frame);
	if (fate == FATE_DELAY) {
		own->due_ns = now_ns + (f->config.reorder > 0
				? prng_below(&f->prng, f->config.delay_ns + 1)
				: f->config.delay_ns);
		f->held_count++;
		f->counters.delayed++;
		let_go(frame);
		return true;
	}
	if (fate == FATE_DAMAGE)
		damage(f, &own->frame, own->body);
	else
		f->counters.repeated++;
	if (f->inner->send(f->inner, &own->frame, 1) == 0)
		return false;
	if (fate == FATE_DAMAGE) {
		let_go(frame);
		return true;
	}
	return f->inner->send(f->inner, frame, 1) == 1;
}

/* ---- the port ---- */

static uint32_t faults_send(struct transport *t, const struct frame_out *frames, uint32_t count)
{
	struct net_faults *f = faults_of(t);
	uint64_t now_ns = f->clock->now_ns(f->clock);
	uint32_t from = 0, at = 0;

	send_due(f, now_ns);
	while (at < count) {
		enum fate fate = decide(f, now_ns);

		if (fate == FATE_PASS) {
			at++;
			continue;
		}
		if (at > from)
			from += f->inner->send(f->inner, frames + from, at - from);
		if (from < at || !carry_out(f, fate, &frames[at], now_ns))
			return from;
		from = ++at;
	}
	if (at > from)
		from += f->inner->send(f->inner, frames + from, at - from);
	return from;
}

static uint32_t faults_receive(struct transport *t, struct frame_in *frames, uint32_t count)
{
	struct net_faults *f = faults_of(t);

	if (f->held_count > 0)
		send_due(f, f->clock->now_ns(f->clock));
	return f->inner->receive(f->inner, frames, count);
}

static void faults_release(struct transport *t, const struct frame_in *frames, uint32_t count)
{
	struct net_faults *f = faults_of(t);

	f->inner->release(f->inner, frames, count);
}

static void faults_reclaim(struct transport *t, uint64_t now_ns)
{
	struct net_faults *f = faults_of(t);

	f->inner->reclaim(f->inner, now_ns);
}

/* ---- life ---- */

int net_faults_create(struct net_faults **out, struct transport *inner,
		const struct net_faults_config *config, struct clock *clock)
{
	struct net_faults *f = lines_alloc(sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	f->held = lines_alloc(HELD_MAX * sizeof(*f->held));
	f->bodies = lines_alloc((size_t)HELD_MAX * inner->frame_bytes_max);
	if (f->held == NULL || f->bodies == NULL) {
		net_faults_destroy(f);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < HELD_MAX; i++) {
		f->held[i].body = f->bodies + (size_t)i * inner->frame_bytes_max;
		f->order[i] = i;
	}
	f->transport = (struct transport){
			.send = faults_send,
			.receive = faults_receive,
			.release = faults_release,
			.reclaim = faults_reclaim,
			.counters = inner->counters,
			.frame_bytes_max = inner->frame_bytes_max,
			.can_udp_checksum = inner->can_udp_checksum,
	};
	f->inner = inner;
	f->config = *config;
	f->clock = clock;
	f->began_ns = clock->now_ns(clock);
	prng_seed(&f->prng, config->seed);
	*out = f;
	return 0;
}

struct transport *net_faults_transport(struct net_faults *f)
{
	return &f->transport;
}

void net_faults_cut(struct net_faults *f, bool is_cut)
{
	f->is_cut = is_cut;
}

const struct net_faults_counters *net_faults_counters(const struct net_faults *f)
{
	return &f->counters;
}

void net_faults_destroy(struct net_faults *f)
{
	if (f == NULL)
		return;
	free(f->held);
	free(f->bodies);
	free(f);
}

/* ---- text ---- */

static bool parse_share(const char *text, double *share)
{
	char *end;

	*share = strtod(text, &end);
	return end != text && *end == '\0' && *share >= 0 && *share <= 1;
}

static bool parse_time(const char *text, uint64_t *ns)
{
	int64_t value;

	if (units_parse_duration(text, &value) != 0 || value < 0)
		return false;
	*ns = (uint64_t)value;
	return true;
}

static bool parse_partition(const char *text, struct net_faults_config *c)
{
	char every[32];
	const char *slash = strchr(text, '/');

	if (slash == NULL || (size_t)(slash - text) >= sizeof(every))
		return false;
	snprintf(every, sizeof(every), "%.*s", (int)(slash - text), text);
	return parse_time(every, &c->partition_every_ns) &&
			parse_time(slash + 1, &c->partition_ns) &&
			c->partition_ns < c->partition_every_ns;
}

static bool parse_part(const char *name, const char *value, struct net_faults_config *c)
{
	char *end;

	if (strcmp(name, "seed") == 0) {
		c->seed = strtoull(value, &end, 10);
		return end != value && *end == '\0';
	}
	if (strcmp(name, "loss") == 0)
		return parse_share(value, &c->loss);
	if (strcmp(name, "duplicate") == 0)
		return parse_share(value, &c->duplicate);
	if (strcmp(name, "corrupt") == 0)
		return parse_share(value, &c->corrupt);
	if (strcmp(name, "reorder") == 0)
		return parse_share(value, &c->reorder);
	if (strcmp(name, "delay") == 0)
		return parse_time(value, &c->delay_ns);
	return strcmp(name, "partition") == 0 && parse_partition(value, c);
}

int net_faults_parse(const char *text, struct net_faults_config *config,
		char error[NET_FAULTS_TEXT_BYTES])
{
	char copy[256], *rest;

	*config = (struct net_faults_config){.seed = 1};
	if (strlen(text) >= sizeof(copy)) {
		snprintf(error, NET_FAULTS_TEXT_BYTES, "longer than %zu bytes", sizeof(copy) - 1);
		return -EINVAL;
	}
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *part = strtok_r(copy, ",", &rest); part != NULL;
			part = strtok_r(NULL, ",", &rest)) {
		char *value = strchr(part, '=');

		if (value != NULL)
			*value++ = '\0';
		if (value == NULL || !parse_part(part, value, config)) {
			snprintf(error, NET_FAULTS_TEXT_BYTES,
					"%.60s: expected seed=N, loss=, duplicate=, corrupt=, "
					"reorder= a share of 0 to 1, delay=TIME or "
					"partition=EVERY/FOR",
					part);
			return -EINVAL;
		}
	}
	return 0;
}
