#pragma once

/*
 * store_share: one store for many users.  Each user holds a store of its own, sees only its own
 * completions, and cannot take the whole queue.
 *
 * Place    checkpoint; a worker owns one, its tasks use it.
 * Thread   one owner.  attach, and the destroy of a user that has nothing under way, may run on
 *          another thread, one at a time: they touch no place the owner uses.
 * Memory   allocated in create.
 * Life     create, { attach, use, detach }*, destroy with nobody attached.
 */

#include <stdbool.h>
#include <stdint.h>

struct store;
struct store_share;

enum {
	STORE_SHARE_USERS_MAX = 1024,
	STORE_SHARE_INFLIGHT_MAX = 32, /* requests of one user under way */
};

/* Borrows `inner`, which outlives it.  -ENOMEM. */
int store_share_create(struct store_share **out, struct store *inner);

/* A store for one user, or NULL when there are STORE_SHARE_USERS_MAX.  Its `destroy` detaches:
 * with requests under way its place is kept until they have come back. */
struct store *store_share_attach(struct store_share *share);

/* Takes completions from the inner store and hands them to their users; the users' own reap does
 * the same.  Returns how many. */
uint32_t store_share_poll(struct store_share *share);

/* True when nothing is under way for anybody. */
bool store_share_is_idle(const struct store_share *share);

void store_share_destroy(struct store_share *share);
