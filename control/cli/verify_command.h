#pragma once

/*
 * verify_command: `weir verify PATH...` reads every byte of checkpoints and compares checksums.
 *
 * Place    control/cli; reads files only.
 * Thread   one; blocks while it reads.
 * Errors   an exit code (exit_codes.h).
 */

int verify_command(int argc, char **argv);
