#pragma once

/*
 * inspect: `weir inspect` reads a checkpoint or a journal offline: what is in it, how large, and
 * whether every byte is as it was written.
 *
 * Place    control/cli; starts nothing, talks to nobody.
 * Errors   an exit code (exit_codes.h): 5 for what a restore would refuse.
 */

int inspect_command(int argc, char **argv);
