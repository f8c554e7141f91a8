#pragma once

/*
 * report: what lcores tell the control thread.
 *
 * Place    task.
 * Thread   written by a worker, read by the control thread through taskmanager_next_report.
 * Memory   a report and what it points to stay valid until taskmanager_release_report.
 */

#include "dataplane/base/ids.h"
#include "dataplane/base/limits.h"
#include "dataplane/checkpoint/checkpoint_metrics.h"

/* Flink's execution states as a TaskManager knows them (semantics 12.3). */
enum task_status {
	TASK_CREATED,
	TASK_DEPLOYING,
	TASK_INITIALIZING,
	TASK_RUNNING,
	TASK_CANCELING,
	TASK_FINISHED,
	TASK_CANCELED,
	TASK_FAILED,
};

/* "RUNNING" and so on. */
const char *task_status_name(enum task_status status);

struct channel_state_result; /* dataplane/checkpoint/channel_state_writer.h */
struct task_state;           /* dataplane/checkpoint/task_state.h */

enum report_kind {
	REPORT_STATUS,      /* .status, .text when TASK_FAILED */
	REPORT_END_OF_DATA, /* all input of the task is in (FO-12) */
	REPORT_ACKNOWLEDGE, /* .checkpoint_id, .metrics, .state */
	REPORT_DECLINE,     /* .checkpoint_id, .reason, .text */
	REPORT_EVENT,       /* .operator_index, .event: to the operator's coordinator */
};

enum { REPORT_TEXT_BYTES = 512, REPORT_EVENT_BYTES_MAX = 4096 };

struct report {
	enum report_kind kind;
	struct attempt_id attempt;
	int64_t checkpoint_id;
	enum task_status status;
	bool is_final; /* TASK_FAILED: another attempt would only repeat it */
	enum decline_reason reason;
	struct checkpoint_metrics metrics;
	const struct task_state *state;
	const struct channel_state_result *in_flight; /* NULL: it has none */
	bool has_finished_operators; /* PL-6 "task finished": all finish logic has run */
	bool is_finished_on_restore; /* PL-6 "finished on restore": it has no state */
	uint32_t operator_index;
	uint32_t event_bytes;
	uint8_t event[REPORT_EVENT_BYTES_MAX];
	char text[REPORT_TEXT_BYTES];
};
