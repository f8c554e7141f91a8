#include "dataplane/checkpoint/channel_state_persister.h"

#include "dataplane/base/check.h"

void channel_state_persister_init(struct channel_state_persister *p)
{
	*p = (struct channel_state_persister){.state = PERSISTER_COMPLETED, .last_seen = -1};
}

static void set_end(struct channel_state_persister *p, uint64_t end)
{
	p->end = end > p->next ? end : p->next;
}

bool channel_state_persister_start(
		struct channel_state_persister *p, int64_t checkpoint_id, uint64_t position)
{
	if (p->state == PERSISTER_BARRIER_RECEIVED && p->last_seen > checkpoint_id)
		return false;
	if (p->last_seen < checkpoint_id) {
		p->state = PERSISTER_BARRIER_PENDING;
		p->last_seen = checkpoint_id;
	}
	p->checkpoint_id = checkpoint_id;
	p->next = position;
	set_end(p, p->state == PERSISTER_BARRIER_RECEIVED ? p->boundary : PERSISTER_NO_END);
	return true;
}

void channel_state_persister_check(
		struct channel_state_persister *p, int64_t checkpoint_id, uint64_t boundary)
{
	int64_t expected = p->state == PERSISTER_COMPLETED ? p->last_seen + 1 : p->last_seen;

	if (checkpoint_id < expected)
		return;
	/* Also one that is newer ends what was begun: that has no barrier any more. */
	if (p->state == PERSISTER_BARRIER_PENDING && p->end == PERSISTER_NO_END)
		set_end(p, boundary);
	p->state = PERSISTER_BARRIER_RECEIVED;
	p->last_seen = checkpoint_id;
	p->boundary = boundary;
}

void channel_state_persister_stop(
		struct channel_state_persister *p, int64_t checkpoint_id, uint64_t known_count)
{
	if (p->checkpoint_id == checkpoint_id && p->end == PERSISTER_NO_END)
		set_end(p, known_count);
	if (checkpoint_id < p->last_seen)
		return;
	p->state = PERSISTER_COMPLETED;
	p->last_seen = checkpoint_id;
}

void channel_state_persister_cancel(struct channel_state_persister *p, int64_t checkpoint_id)
{
	if (p->checkpoint_id <= checkpoint_id)
		p->end = p->next;
}

uint64_t channel_state_persister_take(
		struct channel_state_persister *p, uint64_t known_count, uint32_t *count)
{
	uint64_t from = p->next, limit = known_count < p->end ? known_count : p->end;

	*count = limit > from ? (uint32_t)(limit - from) : 0;
	p->next += *count;
	return from;
}
