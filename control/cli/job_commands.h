#pragma once

/*
 * job_commands: the commands that ask a running coordinator: list, checkpoints, checkpoint,
 * savepoint, stop, cancel.
 *
 * Place    control/cli; over REST only.
 * Errors   an exit code (exit_codes.h).
 */

int list_command(int argc, char **argv);
int checkpoints_command(int argc, char **argv);
int checkpoint_command(int argc, char **argv);
int savepoint_command(int argc, char **argv);
int cancel_command(int argc, char **argv);
int stop_command(int argc, char **argv);
