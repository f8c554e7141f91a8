#pragma once

/*
 * topology_command: `weir topology` shows this host as weir would use it, as a table, as JSON, or
 * as a drawing.
 *
 * Place    control/cli; asks weir-taskmanager --probe.
 * Errors   an exit code.
 */

int topology_command(int argc, char **argv);
