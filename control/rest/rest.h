#pragma once

/*
 * rest: what people and the CLI ask over HTTP, in Flink 1.20's paths, fields and types; and our
 * own (semantics 24).
 *
 * Place    control/rest; reads control/coordinator, which knows nothing of it.
 * Thread   the loop's.
 * Memory   the answer's body; nothing stays between two requests.
 * Errors   an answer {"errors": [text]}: 400 for what cannot be understood, 404 for what is not
 *          here, 405 for a known path asked the wrong way, 409 for what another state forbids.
 * Life     none: a handler for http_server with the coordinator as its context.
 *
 * Of a job that had ended before the coordinator began, lists, status and summary are left.
 *
 * Every path may begin with /v1.  JOB is 32 hex digits or a job's name, VERTEX 32 hex digits or the
 * vertex's uid.
 *
 * As in Flink:
 *   GET   /config /overview /jobs /jobs/overview /taskmanagers /taskmanagers/ID
 *   GET   /jobs/JOB, JOB/status JOB/plan JOB/config JOB/exceptions JOB/checkpoints
 *         JOB/checkpoints/config JOB/checkpoints/details/N
 *         JOB/checkpoints/details/N/subtasks/VERTEX
 *   GET   JOB/metrics JOB/vertices/VERTEX/metrics JOB/vertices/VERTEX/subtasks/N/metrics
 *         /jobmanager/metrics /taskmanagers/ID/metrics: [{"id"}], with ?get=A,B [{"id", "value"}]
 *   GET   /jobs/metrics JOB/vertices/VERTEX/subtasks/metrics: all together, with ?get= [{"id",
 *         "min", "max", "avg", "sum", "skew"}]
 *   GET   JOB/vertices/VERTEX/backpressure JOB/vertices/VERTEX/watermarks
 *   POST  /jobs/JOB/checkpoints {"checkpointType", "triggerId"} -> 202 {"request-id"}
 *   GET   /jobs/JOB/checkpoints/REQUEST -> {"status": {"id"}, "operation": {..}}
 *   PATCH /jobs/JOB?mode=cancel -> 202
 * Ours (control/cli/run_command.h):
 *   GET   /: a page for people
 *   POST  /jobs -> 202 {"jobid", "name"}
 *   GET   /metrics: all of them as Prometheus reads it; flink_* are Flink's, weir_* our own;
 *         ?tasks=off leaves out those of tasks, which are some 6 kB and 50 us a subtask
 *   GET   /jobs/JOB/summary
 *   GET   /jobs/JOB/numbers: what each subtask last said of itself, and when it read that
 *   POST  /jobs/JOB/stop -> 202
 *   PATCH /jobs/JOB/checkpoints?periodic=on|off -> 202
 */

struct http_request;
struct http_response;

/* `context` is a struct coordinator. */
void rest_handle(void *context, const struct http_request *request,
		struct http_response *response);
