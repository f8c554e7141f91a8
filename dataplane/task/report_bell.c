#include "dataplane/task/report_bell.h"

void report_bell_hold(struct report_bell *b, uint64_t now_ns)
{
	if (!b->is_holding)
		b->held_since_ns = now_ns;
	b->is_holding = true;
}

bool report_bell_is_due(const struct report_bell *b, bool is_answering, uint64_t now_ns)
{
	uint64_t wait_ns = is_answering ? REPORT_BELL_WAIT_NS : REPORT_BELL_DELAY_NS;

	return b->is_holding && now_ns >= b->held_since_ns + wait_ns;
}

void report_bell_rung(struct report_bell *b)
{
	b->is_holding = false;
}
