#pragma once

/*
 * submission: the tasks of a SubmitTasks message as the data plane wants them described.
 *
 * Place    control/executor.
 * Memory   a submission owns the job's spec and its own arrays; it lives as long as the tasks.
 *          Task states stay in the message and are only needed while it is deployed.
 * Errors   0, or -errno with one line.
 */

#include "dataplane/task/deployment.h"

#include "control/proto/weir.pb-c.h"

struct config;
struct submission;

enum { SUBMISSION_TEXT_BYTES = 1536 };

/* `config` is this TaskManager's; what the message sets for the job goes before it. */
int submission_create(struct submission **out, const Weir__SubmitTasks *message,
		const struct config *config, char text[SUBMISSION_TEXT_BYTES]);
const struct deployment *submission_deployment(const struct submission *s);
void submission_destroy(struct submission *s);
