#include "tests/scenario/scenario.h"

/* Scripts about one task are told that they cannot be run. */
const struct scenario_subject scenario_task = { .name = "task" };
