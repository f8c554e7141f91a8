/* restore_rescaled: with whatever parallelism before and after, nothing is lost and nothing is
 * there twice (RE-5). */

#include "dataplane/checkpoint/restore.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

enum { SUBTASKS_MAX = 8, ITEMS_MAX = 128 };
enum { COUNTERS, KEPT, DEALT, UNION, STATES };
enum { SUM, XOR, OWN, COUNTERS_COUNT };

/* What one old subtask had: subtask i has i + 1 items. */
struct old {
	uint64_t counters[COUNTERS_COUNT], kept, items[SUBTASKS_MAX];
	struct state_handle handles[STATES];
	struct task_state state;
};

/* What one new one gets. */
struct now {
	uint64_t counters[COUNTERS_COUNT], kept, dealt[ITEMS_MAX], all[ITEMS_MAX];
	uint32_t dealt_count, all_count;
	struct declared_state states[STATES];
};

static struct old olds[SUBTASKS_MAX];
static struct task_state *old_states[SUBTASKS_MAX];

static struct state_handle handle(const char *name, enum weir_state_kind kind,
		uint32_t value_bytes, uint64_t count, const void *bytes)
{
	return (struct state_handle){.uid = "op", .name = name, .kind = kind,
			.value_bytes = value_bytes, .version = 1, .item_count = count,
			.bytes = bytes, .size = value_bytes * count};
}

static void make_olds(uint32_t parallelism)
{
	for (uint32_t i = 0; i < parallelism; i++) {
		struct old *o = &olds[i];

		*o = (struct old){.counters = {i + 10, 1u << i, 1}, .kept = 100 + i};
		for (uint32_t k = 0; k <= i; k++)
			o->items[k] = i * 1000 + k;
		o->handles[COUNTERS] = handle("counters", WEIR_STATE_VALUE, sizeof(o->counters), 1,
				o->counters);
		o->handles[KEPT] = handle("kept", WEIR_STATE_VALUE, 8, 1, &o->kept);
		o->handles[DEALT] = handle("dealt", WEIR_STATE_LIST, 8, i + 1, o->items);
		o->handles[UNION] = handle("union", WEIR_STATE_LIST, 8, i + 1, o->items);
		o->state = (struct task_state){.vertex_uid = "v", .subtask_index = i,
				.parallelism = parallelism, .group_count = 128,
				.handle_count = STATES, .handles = o->handles};
		old_states[i] = &o->state;
	}
}

static bool ignores_unclaimed;

static struct declared_state declared(const char *name, enum weir_state_kind kind,
		uint32_t value_bytes, void *memory, uint32_t *list_count)
{
	return (struct declared_state){.uid = "op", .name = name, .kind = kind,
			.value_bytes = value_bytes, .version = 1, .capacity = ITEMS_MAX,
			.memory = memory, .list_count = list_count};
}

static void declare(struct now *n)
{
	*n = (struct now){0};
	n->states[COUNTERS] = declared("counters", WEIR_STATE_VALUE, sizeof(n->counters),
			n->counters, NULL);
	n->states[COUNTERS].is_counters = true;
	n->states[COUNTERS].xor_counters = 1u << XOR;
	n->states[COUNTERS].own_counters = 1u << OWN;
	n->states[KEPT] = declared("kept", WEIR_STATE_VALUE, 8, &n->kept, NULL);
	n->states[KEPT].rescale = WEIR_RESCALE_KEEP;
	n->states[DEALT] = declared("dealt", WEIR_STATE_LIST, 8, n->dealt, &n->dealt_count);
	n->states[UNION] = declared("union", WEIR_STATE_LIST, 8, n->all, &n->all_count);
	n->states[UNION].rescale = WEIR_RESCALE_UNION;
}

static int restore(struct now *n, uint32_t index, uint32_t then, uint32_t parallelism, char *text)
{
	struct restore_share share = {index, parallelism, then, old_states, ignores_unclaimed};

	return restore_rescaled("/nowhere", &share, n->states, STATES, text);
}

static void check(uint32_t then, uint32_t parallelism)
{
	uint32_t items = then * (then + 1) / 2, seen[SUBTASKS_MAX][SUBTASKS_MAX] = {{0}};
	uint64_t sum = 0, xor = 0;
	char text[RESTORE_TEXT_BYTES];

	make_olds(then);
	for (uint32_t i = 0; i < parallelism; i++) {
		struct now n;

		declare(&n);
		cr_assert_eq(restore(&n, i, then, parallelism, text), 0);
		sum += n.counters[SUM];
		xor ^= n.counters[XOR];
		cr_assert_eq(n.counters[OWN], 0);
		cr_assert_eq(n.kept, i < then ? 100 + i : 0);
		cr_assert_eq(n.dealt_count, items / parallelism + (i < items % parallelism));
		for (uint32_t k = 0; k < n.dealt_count; k++)
			seen[n.dealt[k] / 1000][n.dealt[k] % 1000]++;
		cr_assert_eq(n.all_count, items);
	}
	for (uint32_t i = 0; i < then; i++)
		for (uint32_t k = 0; k <= i; k++)
			cr_assert_eq(seen[i][k], 1, "item %u of %u", k, i);
	cr_assert_eq(sum, then * 10 + then * (then - 1) / 2);
	cr_assert_eq(xor, (1u << then) - 1);
}

Test(restore_rescaled, hands_out_everything_once_with_any_parallelism)
{
	static const uint32_t counts[] = {1, 2, 3, 4, 7, 8};

	for (uint32_t i = 0; i < 6; i++)
		for (uint32_t k = 0; k < 6; k++)
			check(counts[i], counts[k]);
}

Test(restore_rescaled, refuses_a_value_that_is_each_subtasks_own)
{
	char text[RESTORE_TEXT_BYTES];
	struct now n;

	make_olds(3);
	declare(&n);
	n.states[KEPT].rescale = WEIR_RESCALE_DEFAULT;
	cr_assert_eq(restore(&n, 0, 3, 2, text), -EINVAL);
	cr_assert_str_eq(text, "operator op, state kept: a value of each subtask, which stands for "
			"no other parallelism (3 then, 2 now)");
}

Test(restore_rescaled, refuses_more_items_than_fit)
{
	char text[RESTORE_TEXT_BYTES];
	struct now n;

	make_olds(3);
	declare(&n);
	n.states[UNION].capacity = 5;
	cr_assert_eq(restore(&n, 1, 3, 2, text), -ENOSPC);
	cr_assert(strstr(text, "more items than its capacity of 5") != NULL, "%s", text);
}

/* RE-3. */
Test(restore_rescaled, leaves_a_state_that_nobody_declares_only_when_told_to)
{
	char text[RESTORE_TEXT_BYTES];
	struct now n;

	make_olds(3);
	declare(&n);
	n.states[UNION].name = "renamed";
	cr_assert_eq(restore(&n, 0, 3, 2, text), -EINVAL);
	declare(&n);
	n.states[UNION].name = "renamed";
	ignores_unclaimed = true;
	cr_assert_eq(restore(&n, 0, 3, 2, text), 0, "%s", text);
	cr_assert_eq(n.all_count, 0);
	cr_assert_eq(n.dealt_count, 3);
}
