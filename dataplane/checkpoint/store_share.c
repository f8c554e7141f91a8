/*
 * A request goes to the inner store under a tag of our own, (user, place); the user's tag waits in
 * that place.  A completion waits in the user's ring until its user reaps.
 */

#include "dataplane/checkpoint/store_share.h"

#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"
#include "dataplane/checkpoint/store.h"

#include <errno.h>
#include <stdlib.h>

enum { PLACE_BITS = 5 };

static_assert(1 << PLACE_BITS == STORE_SHARE_INFLIGHT_MAX, "a place fits its bits");

struct user {
	struct store store;
	struct store_share *share;
	bool is_attached;
	uint32_t inflight_count; /* at the inner store */
	uint32_t free_places;    /* a bit each */
	uint64_t tags[STORE_SHARE_INFLIGHT_MAX];
	uint32_t done_first, done_count;
	struct store_done done[STORE_SHARE_INFLIGHT_MAX];
};

struct store_share {
	struct store *inner;
	struct store_ops ops; /* with the inner one's name */
	struct user users[STORE_SHARE_USERS_MAX];
};

static int user_submit(struct store *s, const struct store_request *request)
{
	struct user *u = (struct user *)s;
	struct store_request inner = *request;
	uint32_t place;
	int rc;

	CHECK(u->is_attached);
	if (u->inflight_count + u->done_count == STORE_SHARE_INFLIGHT_MAX)
		return -EAGAIN;
	place = (uint32_t)__builtin_ctz(u->free_places);
	inner.tag = (uint64_t)(u - u->share->users) << PLACE_BITS | place;
	rc = store_submit(u->share->inner, &inner);
	if (rc != 0)
		return rc;
	u->tags[place] = request->tag;
	u->free_places &= u->free_places - 1;
	u->inflight_count++;
	return 0;
}

static void deliver(struct store_share *share, const struct store_done *done)
{
	uint64_t index = done->tag >> PLACE_BITS;
	uint32_t place = done->tag & (STORE_SHARE_INFLIGHT_MAX - 1);
	struct user *u = &share->users[index];

	CHECK(index < STORE_SHARE_USERS_MAX);
	CHECK(u->inflight_count > 0);
	CHECK(!(u->free_places >> place & 1));
	u->inflight_count--;
	u->free_places |= 1u << place;
	if (!u->is_attached)
		return;
	CHECK(u->done_count < STORE_SHARE_INFLIGHT_MAX);
	u->done[(u->done_first + u->done_count++) % STORE_SHARE_INFLIGHT_MAX] =
			(struct store_done){u->tags[place], done->result};
}

uint32_t store_share_poll(struct store_share *share)
{
	struct store_done done[BATCH_COUNT_MAX];
	uint32_t count = store_reap(share->inner, done, BATCH_COUNT_MAX);

	for (uint32_t i = 0; i < count; i++)
		deliver(share, &done[i]);
	return count;
}

static uint32_t user_reap(struct store *s, struct store_done *done, uint32_t count_max)
{
	struct user *u = (struct user *)s;
	uint32_t count = 0;

	CHECK(u->is_attached);
	if (u->inflight_count > 0)
		store_share_poll(u->share);
	while (count < count_max && u->done_count > 0) {
		done[count++] = u->done[u->done_first];
		u->done_first = (u->done_first + 1) % STORE_SHARE_INFLIGHT_MAX;
		u->done_count--;
	}
	return count;
}

static uint32_t user_inflight(const struct store *s)
{
	const struct user *u = (const struct user *)s;

	return u->inflight_count + u->done_count;
}

static void user_detach(struct store *s)
{
	struct user *u = (struct user *)s;

	CHECK(u->is_attached);
	u->is_attached = false;
}

int store_share_create(struct store_share **out, struct store *inner)
{
	struct store_share *share = calloc(1, sizeof(*share));

	if (share == NULL)
		return -ENOMEM;
	share->inner = inner;
	share->ops = (struct store_ops){
		.name = inner->ops->name,
		.submit = user_submit,
		.reap = user_reap,
		.inflight = user_inflight,
		.destroy = user_detach,
	};
	*out = share;
	return 0;
}

struct store *store_share_attach(struct store_share *share)
{
	for (uint32_t i = 0; i < STORE_SHARE_USERS_MAX; i++) {
		struct user *u = &share->users[i];

		if (u->is_attached || u->inflight_count > 0)
			continue;
		*u = (struct user){
			.store.ops = &share->ops,
			.share = share,
			.is_attached = true,
			.free_places = UINT32_MAX,
		};
		return &u->store;
	}
	return NULL;
}

bool store_share_is_idle(const struct store_share *share)
{
	return store_inflight(share->inner) == 0;
}

void store_share_destroy(struct store_share *share)
{
	if (share == NULL)
		return;
	for (uint32_t i = 0; i < STORE_SHARE_USERS_MAX; i++)
		CHECK(!share->users[i].is_attached);
	free(share);
}
