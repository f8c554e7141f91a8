#include "control/coordinator/restart_strategy.h"

#include "dataplane/base/check.h"

#include <string.h>

void restart_strategy_init(struct restart_strategy *s, const struct restart_config *config)
{
	CHECK(config->failures_max <= RESTART_FAILURES_MAX);
	if (config->kind == RESTART_EXPONENTIAL)
		CHECK(config->multiplier > 1 && config->jitter >= 0 && config->jitter <= 1);
	memset(s, 0, sizeof(*s));
	s->config = *config;
	s->backoff_ns = config->initial_ns;
	s->is_fresh = true;
}

/* Compared before it becomes a whole number, which it may be too large for. */
static uint64_t at_most(double ns, uint64_t max_ns)
{
	return ns < (double)max_ns ? (uint64_t)ns : max_ns;
}

static bool on_fixed(struct restart_strategy *s, uint64_t *delay_ns)
{
	s->attempts++;
	*delay_ns = s->config.delay_ns;
	return s->attempts <= s->config.attempts_max;
}

/* Too many when the failure `failures_max` before this one is not old enough. */
static bool on_rate(struct restart_strategy *s, uint64_t *delay_ns, uint64_t now_ns)
{
	uint32_t max = s->config.failures_max;
	uint64_t n = s->failure_count++;

	s->failures_ns[n % (RESTART_FAILURES_MAX + 1)] = now_ns;
	*delay_ns = s->config.delay_ns;
	if (n < max)
		return true;
	uint64_t oldest_ns = s->failures_ns[(n - max) % (RESTART_FAILURES_MAX + 1)];
	return now_ns - oldest_ns > s->config.rate_interval_ns;
}

static double with_jitter(uint64_t backoff_ns, double jitter, uint64_t random)
{
	/* 53 bits make a number in [0, 1). */
	double unit = (double)(random >> 11) / 9007199254740992.0;

	return (double)backoff_ns * (1 + jitter * (2 * unit - 1));
}

static bool on_exponential(
		struct restart_strategy *s, uint64_t random, uint64_t *delay_ns, uint64_t now_ns)
{
	const struct restart_config *c = &s->config;

	if (s->is_restarting && now_ns - s->restart_at_ns >= c->reset_ns) {
		s->attempts = 0;
		s->backoff_ns = c->initial_ns;
		s->is_fresh = true;
	}
	s->attempts++;
	if (c->is_first_at_once && s->is_fresh) {
		*delay_ns = 0;
	} else {
		*delay_ns = at_most(with_jitter(s->backoff_ns, c->jitter, random), c->max_ns);
		s->backoff_ns = at_most((double)s->backoff_ns * c->multiplier, c->max_ns);
	}
	s->is_fresh = false;
	return c->attempts_max == 0 || s->attempts <= c->attempts_max;
}

bool restart_strategy_on_failure(
		struct restart_strategy *s, uint64_t random, uint64_t *delay_ns, uint64_t now_ns)
{
	bool may_restart = false;

	if (s->is_restarting && s->restart_at_ns >= now_ns) {
		*delay_ns = s->restart_at_ns - now_ns;
		return true;
	}
	*delay_ns = 0;
	switch (s->config.kind) {
	case RESTART_NONE:
		break;
	case RESTART_FIXED_DELAY:
		may_restart = on_fixed(s, delay_ns);
		break;
	case RESTART_FAILURE_RATE:
		may_restart = on_rate(s, delay_ns, now_ns);
		break;
	case RESTART_EXPONENTIAL:
		may_restart = on_exponential(s, random, delay_ns, now_ns);
		break;
	}
	if (may_restart)
		s->restart_at_ns = now_ns + *delay_ns;
	s->is_restarting = may_restart;
	return may_restart;
}

const char *restart_kind_name(enum restart_kind kind)
{
	static const char *const names[] = {
			"none", "fixed-delay", "failure-rate", "exponential-delay"};

	CHECK(kind <= RESTART_EXPONENTIAL);
	return names[kind];
}
