#include "control/coordinator/membership.h"

#include "dataplane/base/check.h"

#include <stdio.h>
#include <string.h>

void membership_init(struct membership *m, uint64_t timeout_ns)
{
	memset(m, 0, sizeof(*m));
	m->timeout_ns = timeout_ns;
}

uint32_t membership_add(struct membership *m, const char *id, uint64_t now_ns)
{
	if (strlen(id) >= MEMBER_ID_BYTES)
		return MEMBER_NONE;
	CHECK(membership_find(m, id) == MEMBER_NONE);
	for (uint32_t i = 0; i < MEMBERS_COUNT_MAX; i++) {
		struct member *member = &m->members[i];

		if (member->is_here)
			continue;
		*member = (struct member){.is_here = true, .heard_ns = now_ns};
		snprintf(member->id, sizeof(member->id), "%s", id);
		return i;
	}
	return MEMBER_NONE;
}

static struct member *at(struct membership *m, uint32_t member)
{
	CHECK(member < MEMBERS_COUNT_MAX && m->members[member].is_here);
	return &m->members[member];
}

void membership_remove(struct membership *m, uint32_t member)
{
	at(m, member)->is_here = false;
}

uint32_t membership_find(const struct membership *m, const char *id)
{
	for (uint32_t i = 0; i < MEMBERS_COUNT_MAX; i++)
		if (m->members[i].is_here && strcmp(m->members[i].id, id) == 0)
			return i;
	return MEMBER_NONE;
}

void membership_heard(struct membership *m, uint32_t member, uint64_t now_ns)
{
	at(m, member)->heard_ns = now_ns;
}

void membership_set_busy(struct membership *m, uint32_t member, bool is_busy, uint64_t now_ns)
{
	at(m, member)->is_busy = is_busy;
	at(m, member)->heard_ns = now_ns;
}

void membership_forgive(struct membership *m, uint64_t now_ns)
{
	for (uint32_t i = 0; i < MEMBERS_COUNT_MAX; i++)
		m->members[i].heard_ns = now_ns;
}

uint32_t membership_silent(const struct membership *m, uint64_t now_ns)
{
	for (uint32_t i = 0; i < MEMBERS_COUNT_MAX; i++) {
		const struct member *member = &m->members[i];

		if (member->is_here && !member->is_busy && now_ns > member->heard_ns &&
				now_ns - member->heard_ns > m->timeout_ns)
			return i;
	}
	return MEMBER_NONE;
}

uint32_t membership_choose(const struct membership *m)
{
	uint32_t best = MEMBER_NONE;

	for (uint32_t i = 0; i < MEMBERS_COUNT_MAX; i++) {
		const struct member *member = &m->members[i];

		if (member->is_here &&
				(best == MEMBER_NONE ||
						member->job_count < m->members[best].job_count))
			best = i;
	}
	return best;
}

uint32_t membership_count(const struct membership *m)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < MEMBERS_COUNT_MAX; i++)
		count += m->members[i].is_here;
	return count;
}
