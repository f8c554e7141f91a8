#pragma once

/*
 * run_command: `weir run JOB.yaml`: coordinator and TaskManagers as child processes of this one,
 * the job from its start to its end, what dies started again.
 *
 * Place    control/cli; talks to its coordinator over REST only.
 * Thread   one.
 * Errors   an exit code (exit_codes.h).
 *
 * What it asks of the coordinator:
 *   POST /jobs                {"file", "job" (text), "plugin_dir", "sets" ["UID.PARAM=VALUE"],
 *                              "settings" ["KEY=VALUE"], "restore" ("none", "latest", a path),
 *                              "allow_rewind", "triggerId" (32 hex digits)}
 *                             -> 202 {"jobid", "name"}, again so for the same triggerId; 400, or
 *                             409 while another job of that id runs: {"errors" [text]}
 *   GET  /jobs/ID/summary     {"state", "job_id", "name", "records_in", "records_out",
 *                              "unparsed" {reason: n}, "counters" {uid: {name: n}},
 *                              "checkpoints" {"completed", "failed", "p50_ms", "p99_ms",
 *                              "last_ms", "since_completed_ms", "overdue",
 *                              "failed_in_a_row", "failed_id",
 *                              "failure" (texts or null)}, "restarts",
 *                              "failure", "waiting" (texts or null), "refused",
 *                              "tasks" {state: n}, "link" {"frames", "resent", "handed_over",
 *                              "hand_over_full"} of all TaskManagers since they began, or null}
 *   POST /jobs/ID/stop        a last checkpoint, then the end (what Ctrl-C does) -> 202
 *   PATCH /jobs/ID?mode=cancel
 * The coordinator prints one line "REST http://HOST:PORT" to standard output when it listens, and
 * "RPC HOST:PORT" for its TaskManagers; children of `weir run` are given --parent PID and end with
 * it.
 */

int run_command(int argc, char **argv);
