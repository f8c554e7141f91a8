#pragma once

/*
 * checkpoint_properties: what a checkpoint is and when it may be deleted (flink-semantics 10.1,
 * 10.2), and the options its tasks are sent (10.3).
 *
 * Place    control/coordinator, the floor of the rules.
 * Thread   plain values.
 */

#include <stdbool.h>
#include <stdint.h>

/* Numbered as in 2.4. */
enum checkpoint_kind {
	KIND_CHECKPOINT = 0,
	KIND_SAVEPOINT = 1,
	KIND_SAVEPOINT_SUSPEND = 2,
	KIND_SAVEPOINT_TERMINATE = 3,
	KIND_FULL_CHECKPOINT = 4,
};

enum savepoint_format { FORMAT_CANONICAL, FORMAT_NATIVE };

enum retention_policy { RETAIN_NEVER, RETAIN_ON_FAILURE, RETAIN_ON_CANCELLATION };

/* How a job ended; the first three are globally terminal. */
enum job_end { JOB_FINISHED, JOB_CANCELED, JOB_FAILED, JOB_SUSPENDED };

/* 21.2. */
enum claim_mode { CLAIM_MODE_NO_CLAIM, CLAIM_MODE_CLAIM, CLAIM_MODE_LEGACY };

struct checkpoint_properties {
	enum checkpoint_kind kind;
	enum savepoint_format format; /* of a savepoint */
	bool is_forced;               /* ignores the limit of concurrent checkpoints (TR-3) */
	bool is_unclaimed;            /* restored without being claimed (CM-1) */
	bool discard_subsumed, discard_finished, discard_canceled, discard_failed,
			discard_suspended;
};

struct checkpoint_properties checkpoint_properties_checkpoint(
		enum checkpoint_kind kind, enum retention_policy policy);
struct checkpoint_properties checkpoint_properties_savepoint(
		enum checkpoint_kind kind, enum savepoint_format format, bool is_forced);
/* What a snapshot that a job begins from is to that job (SR-3, CM-1). */
struct checkpoint_properties checkpoint_properties_restored(
		enum claim_mode mode, enum retention_policy policy);

/* True for unclaimed ones too (CM-1). */
bool checkpoint_properties_is_savepoint(const struct checkpoint_properties *p);
bool checkpoint_properties_is_synchronous(const struct checkpoint_properties *p);
bool checkpoint_properties_is_discarded_at(
		const struct checkpoint_properties *p, enum job_end end);

bool checkpoint_kind_is_savepoint(enum checkpoint_kind kind);
/* Suspend or terminate: stop-with-savepoint. */
bool checkpoint_kind_is_synchronous(enum checkpoint_kind kind);
/* "checkpoint", "full", "savepoint", "suspend", "terminate". */
const char *checkpoint_kind_name(enum checkpoint_kind kind);

/* Flink's ordinals (10.3). */
enum trigger_alignment {
	TRIGGER_AT_LEAST_ONCE = 0,
	TRIGGER_ALIGNED = 1,
	TRIGGER_UNALIGNED = 2,
	TRIGGER_FORCED_ALIGNED = 3,
};

#define TRIGGER_TIMEOUT_NONE INT64_MAX

/* What goes out with a trigger. */
struct trigger_options {
	enum checkpoint_kind kind;
	enum savepoint_format format;
	enum trigger_alignment alignment;
	int64_t aligned_timeout_ms;
};

/* The settings that 10.3 looks at. */
struct alignment_config {
	bool is_exactly_once;
	bool is_unaligned;
	int64_t aligned_timeout_ms; /* 0 or TRIGGER_TIMEOUT_NONE: unaligned at once */
};

struct trigger_options trigger_options_of(
		const struct checkpoint_properties *p, const struct alignment_config *config);

/* "aligned", "unaligned", "at-least-once", "forced-aligned". */
const char *trigger_alignment_name(enum trigger_alignment alignment);
