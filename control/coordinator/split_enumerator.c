#include "control/coordinator/split_enumerator.h"

#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"

#include "control/proto/durable.pb-c.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLOSED_BY_MAX = 2 * CHECKPOINTS_IN_FLIGHT_MAX };

/* What stands between the coordinator and one subtask. */
struct gateway {
	bool is_asking;
	uint32_t closed_count; /* checkpoints that keep it closed */
	int64_t closed_by[CLOSED_BY_MAX];
};

struct split_enumerator {
	uint32_t subtask_count;
	struct gateway *gateways;
	bool is_listed;
	char **paths; /* first..count are not handed out */
	uint32_t first, count;
	int64_t newest_id; /* the newest checkpoint that began or ended */
};

int split_enumerator_create(struct split_enumerator **out, uint32_t subtask_count)
{
	struct split_enumerator *e = calloc(1, sizeof(*e));

	CHECK(subtask_count > 0);
	if (e == NULL)
		return -ENOMEM;
	e->subtask_count = subtask_count;
	e->gateways = calloc(subtask_count, sizeof(*e->gateways));
	if (e->gateways == NULL) {
		free(e);
		return -ENOMEM;
	}
	*out = e;
	return 0;
}

static void drop_files(struct split_enumerator *e)
{
	for (uint32_t i = 0; i < e->count; i++)
		free(e->paths[i]);
	free(e->paths);
	e->paths = NULL;
	e->first = e->count = 0;
	e->is_listed = false;
}

void split_enumerator_destroy(struct split_enumerator *e)
{
	if (e == NULL)
		return;
	drop_files(e);
	free(e->gateways);
	free(e);
}

bool split_enumerator_is_listed(const struct split_enumerator *e)
{
	return e->is_listed;
}

int split_enumerator_set_files(struct split_enumerator *e, char *const *paths, uint32_t count)
{
	drop_files(e);
	e->paths = calloc(count == 0 ? 1 : count, sizeof(*e->paths));
	if (e->paths == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		if (strlen(paths[i]) >= SPLIT_TEXT_BYTES - sizeof("FILE "))
			return -ENAMETOOLONG;
		e->paths[i] = strdup(paths[i]);
		if (e->paths[i] == NULL)
			return -ENOMEM;
		e->count = i + 1;
	}
	e->is_listed = true;
	return 0;
}

int split_enumerator_reset(struct split_enumerator *e, const uint8_t *state, size_t state_bytes)
{
	drop_files(e);
	memset(e->gateways, 0, e->subtask_count * sizeof(*e->gateways));
	if (state == NULL)
		return 0;
	Weir__FilesState *s = weir__files_state__unpack(NULL, state_bytes, state);
	if (s == NULL)
		return -EBADMSG;
	int rc = 0;
	if (s->is_listed)
		rc = split_enumerator_set_files(e, s->unassigned, (uint32_t)s->n_unassigned);
	weir__files_state__free_unpacked(s, NULL);
	return rc;
}

int split_enumerator_on_event(
		struct split_enumerator *e, uint32_t subtask, const uint8_t *data, size_t bytes)
{
	static const char request[] = "REQUEST";

	if (subtask >= e->subtask_count || bytes != sizeof(request) - 1 ||
			memcmp(data, request, bytes) != 0)
		return -EBADMSG;
	e->gateways[subtask].is_asking = true;
	return 0;
}

bool split_enumerator_next(
		struct split_enumerator *e, uint32_t *subtask, char text[SPLIT_TEXT_BYTES])
{
	if (!e->is_listed)
		return false;
	for (uint32_t i = 0; i < e->subtask_count; i++) {
		struct gateway *g = &e->gateways[i];

		if (!g->is_asking || g->closed_count > 0)
			continue;
		g->is_asking = false;
		*subtask = i;
		if (e->first < e->count)
			snprintf(text, SPLIT_TEXT_BYTES, "FILE %s", e->paths[e->first++]);
		else
			snprintf(text, SPLIT_TEXT_BYTES, "NO-MORE");
		return true;
	}
	return false;
}

int split_enumerator_snapshot(struct split_enumerator *e, int64_t checkpoint_id,
		uint8_t **state, size_t *state_bytes)
{
	Weir__FilesState s = WEIR__FILES_STATE__INIT;

	s.is_listed = e->is_listed;
	s.n_unassigned = e->count - e->first;
	s.unassigned = e->paths == NULL ? NULL : e->paths + e->first;
	size_t bytes = weir__files_state__get_packed_size(&s);
	uint8_t *out = malloc(bytes == 0 ? 1 : bytes);
	if (out == NULL)
		return -ENOMEM;
	weir__files_state__pack(&s, out);
	*state = out;
	*state_bytes = bytes;

	if (checkpoint_id <= e->newest_id)
		return 0;
	e->newest_id = checkpoint_id;
	for (uint32_t i = 0; i < e->subtask_count; i++) {
		struct gateway *g = &e->gateways[i];

		CHECK(g->closed_count < CLOSED_BY_MAX);
		g->closed_by[g->closed_count++] = checkpoint_id;
	}
	return 0;
}

static void open_gateway(struct gateway *g, int64_t checkpoint_id)
{
	for (uint32_t i = 0; i < g->closed_count; i++) {
		if (g->closed_by[i] != checkpoint_id)
			continue;
		g->closed_by[i] = g->closed_by[--g->closed_count];
		return;
	}
}

void split_enumerator_on_acknowledge(
		struct split_enumerator *e, uint32_t subtask, int64_t checkpoint_id)
{
	if (subtask < e->subtask_count)
		open_gateway(&e->gateways[subtask], checkpoint_id);
}

void split_enumerator_on_ended(struct split_enumerator *e, int64_t checkpoint_id)
{
	for (uint32_t i = 0; i < e->subtask_count; i++)
		open_gateway(&e->gateways[i], checkpoint_id);
	if (checkpoint_id > e->newest_id)
		e->newest_id = checkpoint_id;
}
