#include "dataplane/operator/pacer.h"

static const uint64_t second_ns = 1000000000;

/* When record number `index` is due, rounded up so that by then it counts as due.  Sums stay small
 * because pacer_allow moves `since_ns`. */
static uint64_t due_ns(const struct pacer *p, uint64_t index)
{
	return p->since_ns +
	       (uint64_t)(((unsigned __int128)index * second_ns + p->rate - 1) / p->rate);
}

uint32_t pacer_allow(struct pacer *p, uint32_t count_max, uint64_t now_ns, uint64_t *next_ns)
{
	if (p->rate == 0)
		return count_max;
	if (p->since_ns == 0)
		p->since_ns = now_ns;
	if (due_ns(p, p->count) + PACER_DEBT_NS < now_ns) {
		p->since_ns = now_ns - PACER_DEBT_NS;
		p->count = 0;
	}
	if (due_ns(p, p->count) > now_ns) {
		*next_ns = due_ns(p, p->count);
		return 0;
	}
	uint64_t due = (uint64_t)((unsigned __int128)(now_ns - p->since_ns) * p->rate / second_ns) +
		       1 - p->count;
	return due < count_max ? (uint32_t)due : count_max;
}

void pacer_made(struct pacer *p, uint32_t count)
{
	p->count += count;
}
