#pragma once

/*
 * metrics: what can be measured of a coordinator, a TaskManager, a job and its tasks, one by one,
 * under Flink's names where the thing is the same (semantics 25).
 *
 * Place    control/rest, above control/coordinator; JSON and Prometheus pages are made of it.
 * Thread   the loop's.
 * Memory   none; a metric is valid during its visit.
 * Errors   none; what is not known is not visited.
 */

#include "control/coordinator/coordinator.h"

#include <stdbool.h>
#include <stdint.h>

enum metric_kind { METRIC_INTEGER, METRIC_REAL, METRIC_TEXT };

struct metric {
	const char *name;
	const char *operator_uid; /* NULL: it is not an operator's */
	enum metric_kind kind;
	bool is_own;              /* no metric of Flink's */
	int64_t integer;
	double real;
	const char *text;
};

typedef void (*metric_visit)(void *context, const struct metric *m);

void metrics_of_coordinator(const struct coordinator *c, metric_visit visit, void *context);
void metrics_of_taskmanager(
		const struct coordinator *c, uint32_t member, metric_visit visit, void *context);
void metrics_of_job(struct job_master *jm, metric_visit visit, void *context);
/* The task and its operators. */
void metrics_of_task(struct job_master *jm, uint32_t place, uint32_t subtask_index,
		metric_visit visit, void *context);

enum { METRIC_VALUE_BYTES = 64 };

/* As Flink writes it; a text stands for itself. */
const char *metric_print(const struct metric *m, char text[METRIC_VALUE_BYTES]);
/* 0 of a text. */
double metric_number(const struct metric *m);
