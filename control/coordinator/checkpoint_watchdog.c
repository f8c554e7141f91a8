#include "control/coordinator/checkpoint_watchdog.h"

#include <string.h>

void checkpoint_watchdog_init(struct checkpoint_watchdog *w, uint32_t intervals,
		uint64_t interval_ns, uint64_t least_ns)
{
	memset(w, 0, sizeof(*w));
	if (intervals == 0 || interval_ns == 0)
		return;
	w->limit_ns = interval_ns > UINT64_MAX / 4 / intervals ? UINT64_MAX / 4
							       : interval_ns * intervals;
	if (w->limit_ns < least_ns)
		w->limit_ns = least_ns;
}

static void begin(struct checkpoint_watchdog *w, uint64_t now_ns)
{
	w->since_ns = now_ns;
	w->due_ns = now_ns + w->limit_ns;
	w->is_overdue = false;
}

void checkpoint_watchdog_start(struct checkpoint_watchdog *w, uint64_t now_ns)
{
	if (w->is_watching)
		return;
	w->is_watching = true;
	begin(w, now_ns);
}

void checkpoint_watchdog_stop(struct checkpoint_watchdog *w)
{
	w->is_watching = false;
	w->is_overdue = false;
}

bool checkpoint_watchdog_see(struct checkpoint_watchdog *w, int64_t newest_id, uint64_t now_ns)
{
	if (newest_id == w->newest_id)
		return false;
	w->newest_id = newest_id;
	begin(w, now_ns);
	return true;
}

bool checkpoint_watchdog_is_due(struct checkpoint_watchdog *w, uint64_t now_ns)
{
	if (!w->is_watching || w->limit_ns == 0 || now_ns < w->due_ns)
		return false;
	w->is_overdue = true;
	while (w->due_ns <= now_ns)
		w->due_ns += w->due_ns - w->since_ns;
	return true;
}

uint64_t checkpoint_watchdog_age(const struct checkpoint_watchdog *w, uint64_t now_ns)
{
	return w->is_watching && now_ns > w->since_ns ? now_ns - w->since_ns : 0;
}
