#include "control/coordinator/checkpoint_properties.h"

#include "dataplane/base/check.h"

#include <stddef.h>

struct checkpoint_properties checkpoint_properties_checkpoint(
		enum checkpoint_kind kind, enum retention_policy policy)
{
	CHECK(!checkpoint_kind_is_savepoint(kind));
	return (struct checkpoint_properties){
		.kind = kind,
		.discard_subsumed = true,
		.discard_finished = true,
		.discard_canceled = policy != RETAIN_ON_CANCELLATION,
		.discard_failed = policy == RETAIN_NEVER,
		.discard_suspended = policy != RETAIN_ON_CANCELLATION,
	};
}

struct checkpoint_properties checkpoint_properties_savepoint(
		enum checkpoint_kind kind, enum savepoint_format format, bool is_forced)
{
	CHECK(checkpoint_kind_is_savepoint(kind));
	return (struct checkpoint_properties){
		.kind = kind,
		.format = format,
		.is_forced = is_forced,
	};
}

struct checkpoint_properties checkpoint_properties_restored(
		enum claim_mode mode, enum retention_policy policy)
{
	if (mode == CLAIM_MODE_CLAIM)
		return checkpoint_properties_checkpoint(KIND_CHECKPOINT, policy);

	struct checkpoint_properties p =
			checkpoint_properties_savepoint(KIND_SAVEPOINT, FORMAT_NATIVE, false);

	p.is_unclaimed = mode == CLAIM_MODE_NO_CLAIM;
	return p;
}

bool checkpoint_properties_is_savepoint(const struct checkpoint_properties *p)
{
	return checkpoint_kind_is_savepoint(p->kind) || p->is_unclaimed;
}

bool checkpoint_properties_is_synchronous(const struct checkpoint_properties *p)
{
	return checkpoint_kind_is_synchronous(p->kind);
}

bool checkpoint_properties_is_discarded_at(const struct checkpoint_properties *p, enum job_end end)
{
	switch (end) {
	case JOB_FINISHED:
		return p->discard_finished;
	case JOB_CANCELED:
		return p->discard_canceled;
	case JOB_FAILED:
		return p->discard_failed;
	case JOB_SUSPENDED:
		return p->discard_suspended;
	}
	CHECK(false);
	return false;
}

bool checkpoint_kind_is_savepoint(enum checkpoint_kind kind)
{
	return kind == KIND_SAVEPOINT || checkpoint_kind_is_synchronous(kind);
}

bool checkpoint_kind_is_synchronous(enum checkpoint_kind kind)
{
	return kind == KIND_SAVEPOINT_SUSPEND || kind == KIND_SAVEPOINT_TERMINATE;
}

const char *checkpoint_kind_name(enum checkpoint_kind kind)
{
	static const char *const names[] = {
		[KIND_CHECKPOINT] = "checkpoint",
		[KIND_SAVEPOINT] = "savepoint",
		[KIND_SAVEPOINT_SUSPEND] = "suspend",
		[KIND_SAVEPOINT_TERMINATE] = "terminate",
		[KIND_FULL_CHECKPOINT] = "full",
	};

	CHECK((size_t)kind < sizeof(names) / sizeof(names[0]));
	return names[kind];
}

/* The five cases of 10.3, in their order. */
struct trigger_options trigger_options_of(
		const struct checkpoint_properties *p, const struct alignment_config *config)
{
	struct trigger_options o = {
		.kind = p->kind,
		.format = p->format,
		.alignment = TRIGGER_ALIGNED,
		.aligned_timeout_ms = TRIGGER_TIMEOUT_NONE,
	};
	int64_t timeout_ms = config->aligned_timeout_ms;

	if (!config->is_exactly_once) {
		o.alignment = TRIGGER_AT_LEAST_ONCE;
		return o;
	}
	if (checkpoint_kind_is_savepoint(p->kind) || !config->is_unaligned)
		return o;
	if (timeout_ms <= 0 || timeout_ms == TRIGGER_TIMEOUT_NONE)
		o.alignment = TRIGGER_UNALIGNED;
	else
		o.aligned_timeout_ms = timeout_ms;
	return o;
}

const char *trigger_alignment_name(enum trigger_alignment alignment)
{
	static const char *const names[] = {
		[TRIGGER_AT_LEAST_ONCE] = "at-least-once",
		[TRIGGER_ALIGNED] = "aligned",
		[TRIGGER_UNALIGNED] = "unaligned",
		[TRIGGER_FORCED_ALIGNED] = "forced-aligned",
	};

	CHECK((size_t)alignment < sizeof(names) / sizeof(names[0]));
	return names[alignment];
}
