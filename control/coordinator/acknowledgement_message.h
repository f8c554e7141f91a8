#pragma once

/*
 * acknowledgement_message: what a task reports of its part of a checkpoint, as its message says it.
 *
 * Place    control/coordinator, between the connection and the rules.
 * Thread   any; no state.
 * Memory   the state is copied; it belongs to the acknowledgement.  `kept` is to be freed.
 * Errors   the message was checked, the state in it is foreign: -EBADMSG with one line, -ENOMEM.
 */

#include "control/coordinator/acknowledgement.h"
#include "control/coordinator/completed_record.h"

#include "control/proto/weir.pb-c.h"

/* On an error `*a` has no state, and all else is filled in. */
int acknowledgement_read(struct acknowledgement *a, const Weir__Acknowledge *m,
		char text[COMPLETED_TEXT_BYTES]);
