#include "tests/support/barrier_run.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void barrier_run_open_counting(struct barrier_run *r, uint32_t channels, bool has_finished_tasks)
{
	struct barrier_handler_config config = {
			.channel_count = channels,
			.has_finished_tasks = has_finished_tasks,
			.is_at_least_once = true,
	};

	*r = (struct barrier_run){0};
	cr_assert_eq(barrier_handler_create(&r->handler, &config), 0);
}

void barrier_run_open(struct barrier_run *r, uint32_t channels, bool has_finished_tasks)
{
	struct barrier_handler_config config = {
			.channel_count = channels, .has_finished_tasks = has_finished_tasks};

	*r = (struct barrier_run){0};
	cr_assert_eq(barrier_handler_create(&r->handler, &config), 0);
}

int64_t barrier_run_pending(const struct barrier_run *r)
{
	return barrier_handler_pending_count(r->handler) == 0
			? 0
			: barrier_handler_pending_at(r->handler, 0);
}

void barrier_run_close(struct barrier_run *r)
{
	barrier_handler_destroy(r->handler);
}

static const char *reason_word(enum decline_reason reason)
{
	switch (reason) {
	case DECLINE_SUBSUMED:
		return "subsumed";
	case DECLINE_ON_CANCELLATION_BARRIER:
		return "cancelled";
	case DECLINE_INPUT_END_OF_STREAM:
		return "end-of-stream";
	case DECLINE_CHECKPOINT_SUBSUMED:
		return "seen-newer";
	default:
		return "other";
	}
}

static const char *form_word(const struct event *barrier)
{
	return checkpoint_options_is_unaligned(&barrier->options) ? "u" : "";
}

static void write_decision(const struct barrier_decision *d, char word[64])
{
	switch (d->kind) {
	case BARRIER_BLOCK:
		snprintf(word, 64, "block%u%s", d->channel, d->is_ahead ? "-behind" : "");
		return;
	case BARRIER_RESUME:
		snprintf(word, 64, "resume%u", d->channel);
		return;
	case BARRIER_CONVERT:
		snprintf(word, 64, "convert%u", d->channel);
		return;
	case BARRIER_PREPARE:
		snprintf(word, 64, "prepare%" PRId64 "%s", d->barrier.checkpoint_id,
				form_word(&d->barrier));
		return;
	case BARRIER_START:
		snprintf(word, 64, "start%" PRId64, d->checkpoint_id);
		return;
	case BARRIER_TRIGGER:
		snprintf(word, 64, "trigger%" PRId64 "%s", d->barrier.checkpoint_id,
				form_word(&d->barrier));
		return;
	case BARRIER_STOP:
		snprintf(word, 64, "stop%" PRId64, d->checkpoint_id);
		return;
	case BARRIER_ALL_RECEIVED:
		snprintf(word, 64, "all%" PRId64, d->checkpoint_id);
		return;
	case BARRIER_ABORT:
		snprintf(word, 64, "abort%" PRId64 ":%s", d->checkpoint_id,
				reason_word(d->reason));
		return;
	}
}

static void write_decisions(struct barrier_run *r)
{
	struct barrier_decision d;

	while (barrier_handler_next(r->handler, &d)) {
		char word[64] = "";

		if (d.kind == BARRIER_ALL_RECEIVED && !r->is_alternating)
			continue;
		write_decision(&d, word);
		if (r->text[0] != '\0')
			strncat(r->text, " ", TEXT_BYTES - strlen(r->text) - 1);
		strncat(r->text, word, TEXT_BYTES - strlen(r->text) - 1);
	}
}

static void tell(struct barrier_run *r, const char *fact)
{
	int64_t id = fact[1] == '@' ? 0 : strtoll(fact + 1, NULL, 10);
	uint32_t channel = (uint32_t)strtoul(strchr(fact, '@') + 1, NULL, 10);
	struct event barrier = {
			.kind = EVENT_BARRIER,
			.checkpoint_id = id,
			.timestamp_ms = r->timestamp_ms,
			.options = {.aligned_timeout_ms = ALIGNED_TIMEOUT_NONE,
					.alignment = ALIGNMENT_ALIGNED},
	};

	if (strchr("tac", fact[0]) != NULL)
		barrier.options.aligned_timeout_ms = TIMEOUT_MS;
	if (fact[0] == 'u')
		barrier.options.alignment = ALIGNMENT_UNALIGNED;
	switch (fact[0]) {
	case 'b':
	case 't':
		barrier_handler_on_barrier(r->handler, channel, &barrier, BARRIER_IN_LINE,
				r->now_ns, r->wall_ms);
		break;
	case 'r':
		barrier_handler_on_barrier(r->handler, channel, &barrier, BARRIER_BY_RPC, r->now_ns,
				r->wall_ms);
		break;
	case 'u':
	case 'c':
		barrier_handler_on_arrival(r->handler, channel, id);
		barrier_handler_on_barrier(r->handler, channel, &barrier, BARRIER_AHEAD, r->now_ns,
				r->wall_ms);
		break;
	case 'a':
		barrier_handler_on_arrival(r->handler, channel, id);
		barrier_handler_on_announcement(
				r->handler, channel, &barrier, r->now_ns, r->wall_ms);
		break;
	case 'n':
		barrier_handler_on_arrival(r->handler, channel, id);
		break;
	case '+':
		r->now_ns += (uint64_t)id * 1000000;
		r->wall_ms += id;
		break;
	case '*':
		barrier_handler_on_time(r->handler, r->now_ns);
		break;
	case 'x':
		barrier_handler_on_cancel(r->handler, channel, id);
		break;
	case 'e':
		barrier_handler_on_end_of_partition(r->handler, channel, r->now_ns, r->wall_ms);
		break;
	default:
		cr_assert_fail("no such fact: %s", fact);
	}
	write_decisions(r);
}

const char *barrier_run_tell(struct barrier_run *r, const char *facts)
{
	char copy[TEXT_BYTES], *rest = copy;

	r->text[0] = '\0';
	snprintf(copy, sizeof(copy), "%s", facts);
	for (char *fact = strsep(&rest, " "); fact != NULL; fact = strsep(&rest, " ")) {
		if (fact[0] != '\0')
			tell(r, fact);
	}
	return r->text;
}

void barrier_run_expect(struct barrier_run *r, const struct barrier_row *row)
{
	barrier_run_tell(r, row->before);
	cr_expect_str_eq(barrier_run_tell(r, row->fact), row->decisions, "%s: %s", row->name,
			r->text);
	cr_expect_eq(barrier_handler_current(r->handler), row->current, "%s", row->name);
	cr_expect_eq(barrier_run_pending(r), row->pending, "%s", row->name);
	barrier_run_close(r);
}
