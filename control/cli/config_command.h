#pragma once

/*
 * config_command: `weir config` shows every key, the value that holds and where it comes from.
 *
 * Place    control/cli; starts nothing, talks to nobody.
 * Errors   an exit code (exit_codes.h).
 */

int config_command(int argc, char **argv);
