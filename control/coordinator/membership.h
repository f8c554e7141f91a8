#pragma once

/*
 * membership: which TaskManagers are here, and which have gone silent (semantics FO-7).
 *
 * Place    control/coordinator, a rule.
 * Thread   one owner.
 * Memory   in the struct.
 * Time     callers pass now_ns.
 *
 * A TaskManager is a small number while it is here.  A closed connection is a loss at once and
 * told by the glue with membership_remove; silence is found by membership_silent.
 */

#include <stdbool.h>
#include <stdint.h>

enum {
	MEMBERS_COUNT_MAX = 1024,
	MEMBER_ID_BYTES = 64,
	MEMBER_NONE = UINT32_MAX,
};

struct member {
	bool is_here;
	bool is_busy; /* says nothing for a while, and need not */
	char id[MEMBER_ID_BYTES];
	uint32_t job_count; /* whose tasks run there */
	uint64_t heard_ns;  /* the last sign of life */
};

struct membership {
	uint64_t timeout_ns;
	struct member members[MEMBERS_COUNT_MAX];
};

void membership_init(struct membership *m, uint64_t timeout_ns);

/* A TaskManager registers.  Its number, or MEMBER_NONE when there are too many or the id is too
 * long.  One with the same id must have been removed before (find). */
uint32_t membership_add(struct membership *m, const char *id, uint64_t now_ns);
void membership_remove(struct membership *m, uint32_t member);
uint32_t membership_find(const struct membership *m, const char *id);

/* The end of being busy is a sign of life. */
void membership_set_busy(struct membership *m, uint32_t member, bool is_busy, uint64_t now_ns);
/* We ourselves did not run for a while: nobody's silence counts up to now. */
void membership_forgive(struct membership *m, uint64_t now_ns);
void membership_heard(struct membership *m, uint32_t member, uint64_t now_ns);

/* The first one that has been silent for longer than the timeout, or MEMBER_NONE. */
uint32_t membership_silent(const struct membership *m, uint64_t now_ns);

/* Where the next job goes: the one with the fewest jobs, the lowest number among those; or
 * MEMBER_NONE. */
uint32_t membership_choose(const struct membership *m);

uint32_t membership_count(const struct membership *m);
