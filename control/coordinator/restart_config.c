#include "control/coordinator/restart_config.h"

#define TYPE "restart-strategy.type"
#define EXPONENTIAL "restart-strategy.exponential-delay."
#define FIXED "restart-strategy.fixed-delay."
#define RATE "restart-strategy.failure-rate."

static uint64_t ns_of(const struct config *c, const char *name)
{
	return (uint64_t)config_duration_ns(c, name);
}

static struct restart_config exponential(const struct config *c)
{
	int64_t attempts = config_int(c, EXPONENTIAL "attempts-before-reset-backoff");

	return (struct restart_config){
			.kind = RESTART_EXPONENTIAL,
			.initial_ns = ns_of(c, EXPONENTIAL "initial-backoff"),
			.max_ns = ns_of(c, EXPONENTIAL "max-backoff"),
			.reset_ns = ns_of(c, EXPONENTIAL "reset-backoff-threshold"),
			.multiplier = config_real(c, EXPONENTIAL "backoff-multiplier"),
			.jitter = config_real(c, EXPONENTIAL "jitter-factor"),
			.attempts_max = attempts >= INT32_MAX ? 0 : (uint32_t)attempts,
			.is_first_at_once = config_bool(c, "weir.restart.first-at-once"),
	};
}

static bool is_off(const struct config *c)
{
	if (config_origin_of(c, TYPE) == CONFIG_PRESET)
		return config_duration_ns(c, "execution.checkpointing.interval") == 0;
	return config_is_choice(c, TYPE, "none") || config_is_choice(c, TYPE, "off") ||
	       config_is_choice(c, TYPE, "disable");
}

void restart_config_read(struct restart_config *r, const struct config *c)
{
	*r = (struct restart_config){.kind = RESTART_NONE};
	if (is_off(c))
		return;
	if (config_is_choice(c, TYPE, "fixed-delay")) {
		r->kind = RESTART_FIXED_DELAY;
		r->attempts_max = (uint32_t)config_int(c, FIXED "attempts");
		r->delay_ns = ns_of(c, FIXED "delay");
	} else if (config_is_choice(c, TYPE, "failure-rate")) {
		r->kind = RESTART_FAILURE_RATE;
		r->failures_max = (uint32_t)config_int(c, RATE "max-failures-per-interval");
		r->rate_interval_ns = ns_of(c, RATE "failure-rate-interval");
		r->delay_ns = ns_of(c, RATE "delay");
	} else {
		*r = exponential(c);
	}
}
