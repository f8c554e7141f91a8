#pragma once

/*
 * restart_config: what the keys under restart-strategy say (semantics FO-5, 23.3).
 *
 * Place    control/coordinator.
 * Thread   any.
 * Memory   none.
 */

#include "control/config/config.h"
#include "control/coordinator/restart_strategy.h"

/* Without periodic checkpoints a job is restarted only when a strategy was asked for. */
void restart_config_read(struct restart_config *r, const struct config *c);
