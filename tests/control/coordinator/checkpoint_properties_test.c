#include "control/coordinator/checkpoint_properties.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static bool is_discarded(struct checkpoint_properties p, enum job_end end)
{
	return checkpoint_properties_is_discarded_at(&p, end);
}

Test(checkpoint_properties, the_three_policies_keep_what_the_table_says)
{
	/* finished, canceled, failed, suspended */
	static const bool discarded[3][4] = {
		[RETAIN_NEVER] = { true, true, true, true },
		[RETAIN_ON_FAILURE] = { true, true, false, true },
		[RETAIN_ON_CANCELLATION] = { true, false, false, false },
	};

	for (int policy = 0; policy < 3; policy++) {
		struct checkpoint_properties p = checkpoint_properties_checkpoint(
				KIND_CHECKPOINT, (enum retention_policy)policy);

		cr_expect(p.discard_subsumed);
		for (int end = 0; end < 4; end++)
			cr_expect(eq(int, is_discarded(p, (enum job_end)end),
						  discarded[policy][end]),
					"policy %d, end %d", policy, end);
	}
}

Test(checkpoint_properties, savepoints_and_unclaimed_snapshots_are_always_kept)
{
	const struct checkpoint_properties kept[] = {
		checkpoint_properties_savepoint(KIND_SAVEPOINT, FORMAT_NATIVE, true),
		checkpoint_properties_restored(CLAIM_MODE_NO_CLAIM, RETAIN_NEVER),
		checkpoint_properties_restored(CLAIM_MODE_LEGACY, RETAIN_NEVER),
	};

	for (int i = 0; i < 3; i++) {
		cr_expect(checkpoint_properties_is_savepoint(&kept[i]));
		cr_expect(not(kept[i].discard_subsumed));
		for (int end = 0; end < 4; end++)
			cr_expect(not(is_discarded(kept[i], (enum job_end)end)));
	}
	cr_expect(kept[1].is_unclaimed);
	cr_expect(not(kept[2].is_unclaimed));
}

Test(checkpoint_properties, a_claimed_snapshot_is_a_checkpoint_of_the_job)
{
	struct checkpoint_properties p =
			checkpoint_properties_restored(CLAIM_MODE_CLAIM, RETAIN_ON_CANCELLATION);

	cr_assert(not(checkpoint_properties_is_savepoint(&p)));
	cr_assert(p.discard_subsumed);
	cr_assert(not(p.discard_failed));
}

struct options_case {
	struct alignment_config config;
	enum checkpoint_kind kind;
	enum trigger_alignment alignment;
	int64_t timeout_ms;
};

Test(trigger_options, follow_the_five_cases_in_their_order)
{
	static const struct options_case cases[] = {
		{ { false, false, 0 }, KIND_CHECKPOINT, TRIGGER_AT_LEAST_ONCE, INT64_MAX },
		{ { false, true, 5 }, KIND_SAVEPOINT, TRIGGER_AT_LEAST_ONCE, INT64_MAX },
		{ { true, true, 5 }, KIND_SAVEPOINT, TRIGGER_ALIGNED, INT64_MAX },
		{ { true, true, 0 }, KIND_SAVEPOINT_TERMINATE, TRIGGER_ALIGNED, INT64_MAX },
		{ { true, false, 5 }, KIND_CHECKPOINT, TRIGGER_ALIGNED, INT64_MAX },
		{ { true, true, 0 }, KIND_CHECKPOINT, TRIGGER_UNALIGNED, INT64_MAX },
		{ { true, true, INT64_MAX }, KIND_CHECKPOINT, TRIGGER_UNALIGNED, INT64_MAX },
		{ { true, true, 5 }, KIND_FULL_CHECKPOINT, TRIGGER_ALIGNED, 5 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct checkpoint_properties p = { .kind = cases[i].kind };
		struct trigger_options o = trigger_options_of(&p, &cases[i].config);

		cr_expect(eq(int, (int)o.kind, (int)cases[i].kind));
		cr_expect(eq(int, (int)o.alignment, (int)cases[i].alignment), "case %zu", i);
		cr_expect(eq(i64, o.aligned_timeout_ms, cases[i].timeout_ms), "case %zu", i);
	}
}

/* TR-3 is about requests. */
Test(checkpoint_properties, a_restored_snapshot_is_not_forced)
{
	const enum claim_mode modes[] = { CLAIM_MODE_NO_CLAIM, CLAIM_MODE_CLAIM };

	for (int i = 0; i < 2; i++) {
		struct checkpoint_properties p =
				checkpoint_properties_restored(modes[i], RETAIN_NEVER);

		cr_expect(not(p.is_forced));
		cr_expect(eq(int, p.is_unclaimed, modes[i] == CLAIM_MODE_NO_CLAIM));
	}
}
