#pragma once

/*
 * coordinator_rig: a checkpoint coordinator for tests, whose decisions are written down and, where
 * the test does not want to do it itself, answered at once.  The job is src(2) -> sum(1).
 *
 * Place    tests/support.
 * Thread   one; time is set by hand.
 */

#include "control/coordinator/checkpoint_coordinator.h"

enum { RIG_LOG_MAX = 256, RIG_TEXT_BYTES = 512 };

struct rig_decision {
	enum checkpoint_decision_kind kind;
	uint64_t token;
	int64_t id;
	enum deletion_kind deletion;
	bool is_all_ended, is_success, is_periodic;
	uint64_t request;
	int64_t timestamp_ms, other_id;
	uint32_t subtask_count, subtask, index;
	struct checkpoint_properties properties;
	enum checkpoint_failure_reason reason;
	char text[RIG_TEXT_BYTES];
	char path[RIG_TEXT_BYTES];
	char files[RIG_TEXT_BYTES]; /* to be deleted, each with a space behind it */
};

struct rig {
	struct execution_graph *graph;
	struct checkpoint_coordinator *c;
	struct moment now;
	int64_t id;
	bool is_auto[32]; /* decisions that are answered at once, by kind */
	struct rig_decision log[RIG_LOG_MAX];
	uint32_t count;
};

/* Any number of failures, a timeout of 500 ms. */
struct checkpoint_coordinator_config rig_tolerant(void);
void rig_open(struct rig *r, const struct checkpoint_coordinator_config *config);
void rig_close(struct rig *r);

/* Takes all decisions. */
void rig_drain(struct rig *r);
/* The newest decision of that kind; fails the test when there is none. */
struct rig_decision *rig_find(struct rig *r, enum checkpoint_decision_kind kind);
uint32_t rig_count(const struct rig *r, enum checkpoint_decision_kind kind);
uint32_t rig_count_deletions(const struct rig *r, enum deletion_kind kind, int64_t id);

uint64_t rig_request(struct rig *r, enum request_kind kind);
/* `shared`: a shared file, or NULL. */
void rig_acknowledge(struct rig *r, int64_t id, uint32_t subtask, const char *shared);
void rig_acknowledge_all(struct rig *r, int64_t id, const char *shared);
/* Asks for a checkpoint, which gets that id, and acknowledges it. */
void rig_complete(struct rig *r, int64_t id, const char *shared);
/* The removal of that checkpoint from the durable list ends. */
void rig_answer_removal(struct rig *r, int64_t id, int status);
/* Time passes, timers run. */
void rig_pass(struct rig *r, int64_t ms);
