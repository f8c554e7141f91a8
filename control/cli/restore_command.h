#pragma once

/*
 * restore_command: `weir restore --dry-run JOB.yaml PATH` says what a job would find again of a
 * checkpoint, and what would be refused; nothing is started or changed.
 *
 * Place    control/cli; reads files only.
 * Thread   one; blocks while it reads every byte of the checkpoint.
 * Errors   an exit code (exit_codes.h).
 */

int restore_command(int argc, char **argv);
