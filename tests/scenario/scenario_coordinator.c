#include "tests/scenario/scenario.h"

#include "control/coordinator/heap.h"
#include "tests/scenario/coordinator_script.h"

#include <stdlib.h>

/* Subject `coordinator`: the checkpoint coordinator with a job graph. */

static void *begin(struct scenario *s)
{
	struct world *w = heap_zeroed(1, sizeof(*w));

	w->s = s;
	w->config = checkpoint_coordinator_config_default();
	return w;
}

static void destroy(void *world)
{
	world_clear(world);
	free(world);
}

const struct scenario_subject scenario_coordinator = {
	.name = "coordinator",
	.begin = begin,
	.destroy = destroy,
	.is_setting = coordinator_setting_is,
	.setting = coordinator_setting,
	.start = coordinator_start,
	.event = coordinator_event,
	.assertion = coordinator_assertion,
	.end = coordinator_end,
};
