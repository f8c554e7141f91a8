#pragma once

/*
 * host_probe: the facts about this host, from the program that can find them: weir-taskmanager
 * --probe --json, for weir itself links neither DPDK nor hwloc.
 *
 * Place    control/cli.
 * Thread   one; blocks until that program has ended (bounded).
 * Errors   NULL, and one line on standard error.
 */

#include "control/config/config.h"

#include <jansson.h>

/* Which cores become workers is judged by weir.cores of `config`.  Free with json_decref. */
json_t *host_probe(const struct config *config);
