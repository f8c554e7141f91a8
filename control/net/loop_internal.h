#pragma once

/* loop_internal: what the rest of net/ sees of a loop. */

#include "control/net/loop.h"

struct event_base;

struct event_base *loop_base(struct loop *l);
