/* Restore with another parallelism than that of the checkpoint: who gets what (RE-5). */

#include "dataplane/base/check.h"
#include "dataplane/checkpoint/restore_internal.h"
#include "dataplane/operator/keyed_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rescaling {
	const char *directory;
	const struct restore_share *share;
	const struct declared_state *states;
	uint32_t state_count;
	uint64_t *dealt; /* by state: items of its list seen so far, of all old subtasks */
	char *text;
};

/* ---- one state of one old subtask ---------------------------------------------------------- */

static bool is_overlapping(const struct key_group_range *a, const struct key_group_range *b)
{
	return a->first <= b->last && b->first <= a->last;
}

static int add_keyed(const struct rescaling *r, const struct task_state *t,
		const struct state_handle *h, const struct declared_state *s)
{
	const struct key_group_range *mine = &keyed_state_config_of(s->keyed)->groups;

	if (!is_overlapping(mine, &t->groups))
		return 0;
	return restore_put_state(r->directory, s, h, r->text);
}

/* Reads a value or a list beside what is in place; NULL: `*rc`. */
static uint8_t *read_aside(const struct rescaling *r, const struct state_handle *h,
		const struct declared_state *s, uint32_t *count, int *rc)
{
	struct declared_state aside = *s;

	aside.memory = calloc(s->kind == WEIR_STATE_LIST ? h->item_count + 1 : 1, s->value_bytes);
	aside.list_count = count;
	*rc = aside.memory == NULL ? -ENOMEM
				   : restore_put_state(r->directory, &aside, h, r->text);
	if (*rc == 0)
		return aside.memory;
	free(aside.memory);
	return NULL;
}

static int add_items(const struct rescaling *r, const struct state_handle *h,
		const struct declared_state *s)
{
	uint64_t *dealt = &r->dealt[s - r->states];
	uint32_t count = 0;
	int rc;
	uint8_t *items = read_aside(r, h, s, &count, &rc);

	for (uint32_t i = 0; rc == 0 && i < count; i++, (*dealt)++) {
		if (s->rescale != WEIR_RESCALE_UNION &&
				*dealt % r->share->parallelism != r->share->subtask_index)
			continue;
		if (*s->list_count == s->capacity)
			rc = restore_refuse(r->text, -ENOSPC,
					"operator %s, state %s: with parallelism %u subtask %u "
					"gets more items than its capacity of %llu",
					h->uid, h->name, r->share->parallelism,
					r->share->subtask_index, (unsigned long long)s->capacity);
		else
			memcpy((uint8_t *)s->memory + (size_t)(*s->list_count)++ * s->value_bytes,
					items + (size_t)i * s->value_bytes, s->value_bytes);
	}
	free(items);
	return rc;
}

static bool has_bit(uint64_t bits, uint32_t index)
{
	return index < 64 && (bits >> index & 1) != 0;
}

static int add_counters(const struct rescaling *r, const struct state_handle *h,
		const struct declared_state *s)
{
	uint32_t none = 0;
	int rc;
	uint8_t *old = read_aside(r, h, s, &none, &rc);

	for (uint32_t i = 0; rc == 0 && i < s->value_bytes / sizeof(uint64_t); i++) {
		uint64_t *counter = (uint64_t *)s->memory + i, value;

		memcpy(&value, old + i * sizeof(value), sizeof(value));
		if (has_bit(s->xor_counters, i))
			*counter ^= value;
		else if (!has_bit(s->own_counters, i))
			*counter += value;
	}
	free(old);
	return rc;
}

static int add_value(const struct rescaling *r, const struct task_state *t,
		const struct state_handle *h, const struct declared_state *s)
{
	if (s->is_counters)
		return t->subtask_index % r->share->parallelism == r->share->subtask_index
				? add_counters(r, h, s)
				: 0;
	if (s->rescale == WEIR_RESCALE_KEEP)
		return t->subtask_index == r->share->subtask_index
				? restore_put_state(r->directory, s, h, r->text)
				: 0;
	return restore_refuse(r->text, -EINVAL,
			"operator %s, state %s: a value of each subtask, which stands for no other "
			"parallelism (%u then, %u now)",
			h->uid, h->name, t->parallelism, r->share->parallelism);
}

/* ---- all ----------------------------------------------------------------------------------- */

static int add_handle(const struct rescaling *r, const struct task_state *t,
		const struct state_handle *h)
{
	const struct declared_state *s;
	int rc = restore_find_declared(t, h, r->states, r->state_count, &s, r->text);

	if (rc != 0 && r->share->ignores_unclaimed)
		return 0;
	if (rc == 0)
		rc = restore_check_declared(t, h, s, r->text);
	if (rc != 0)
		return rc;
	switch (s->kind) {
	case WEIR_STATE_KEYED:
		return add_keyed(r, t, h, s);
	case WEIR_STATE_LIST:
		return add_items(r, h, s);
	default:
		return add_value(r, t, h, s);
	}
}

int restore_rescaled(const char *directory, const struct restore_share *share,
		const struct declared_state *states, uint32_t state_count,
		char text[RESTORE_TEXT_BYTES])
{
	struct rescaling r = {directory, share, states, state_count,
			calloc(state_count + 1, sizeof(uint64_t)), text};
	int rc = r.dealt == NULL ? -ENOMEM : 0;

	CHECK(share->subtask_index < share->parallelism);
	for (uint32_t i = 0; rc == 0 && i < share->old_count; i++) {
		const struct task_state *t = share->olds[i];

		for (uint32_t k = 0; rc == 0 && k < t->handle_count; k++)
			rc = add_handle(&r, t, &t->handles[k]);
	}
	free(r.dealt);
	return rc;
}
