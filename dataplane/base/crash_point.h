#pragma once

/*
 * crash_point: lets a test kill this process with SIGKILL at a named point of the protocol.
 *
 * The environment variable WEIR_CRASH_AT=NAME[:N] names the point and which time it is reached
 * (the first).  Without it a point costs one load.  Names stand in the README.
 *
 * Thread   any.
 * Memory   one counter for the process.
 */

/* Reads the environment; call it once in main, before threads. */
void crash_point_arm(void);

/* Does not return when this is the point and the time. */
void crash_point(const char *name);
