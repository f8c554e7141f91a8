#include "control/cli/run_print.h"

#include <inttypes.h>
#include <string.h>

#define PLAIN_PERIOD_NS UINT64_C(2000000000)
#define FAILED_PERIOD_NS UINT64_C(1000000000)
#define OVERDUE_PERIOD_NS UINT64_C(10000000000)
#define WAITING_NS UINT64_C(1000000000) /* shorter than that is a start */

static int64_t number(const json_t *object, const char *key)
{
	return (int64_t)json_number_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "-";
}

void run_print_break(struct run_progress *p, FILE *out)
{
	if (p->has_line)
		fputc('\n', out);
	p->has_line = false;
}

/* 12.3 M, 4.5 k, 999 */
static void print_count(char text[32], double count)
{
	if (count >= 1e9)
		snprintf(text, 32, "%.2f G", count / 1e9);
	else if (count >= 1e6)
		snprintf(text, 32, "%.1f M", count / 1e6);
	else if (count >= 1e4)
		snprintf(text, 32, "%.1f k", count / 1e3);
	else
		snprintf(text, 32, "%.0f", count);
}

static double rate_of(struct run_progress *p, uint64_t records, uint64_t now_ns)
{
	double rate = 0;

	if (p->records_ns != 0 && now_ns > p->records_ns && records >= p->records_in)
		rate = (double)(records - p->records_in) * 1e9 / (double)(now_ns - p->records_ns);
	p->records_in = records;
	p->records_ns = now_ns;
	return rate;
}

/* Of all ports of the job. */
static int64_t lost_packets(const json_t *summary)
{
	const char *uid;
	json_t *ledger;
	int64_t lost = 0;

	json_object_foreach((json_t *)(uintptr_t)json_object_get(summary, "ledger"), uid, ledger)
	{
		lost += number(ledger, "lost");
	}
	return lost;
}

static void print_line(struct run_progress *p, FILE *out, const json_t *summary, uint64_t now_ns)
{
	const json_t *checkpoints = json_object_get(summary, "checkpoints");
	char in[32], outs[32], rate[32];

	print_count(in, (double)number(summary, "records_in"));
	print_count(outs, (double)number(summary, "records_out"));
	print_count(rate, rate_of(p, (uint64_t)number(summary, "records_in"), now_ns));
	int64_t lost = lost_packets(summary);

	fprintf(out, "%-10s in %9s  out %9s  %9s/s  checkpoints %" PRId64 " (%" PRId64
		     " failed, last %" PRId64 " ms)  restarts %" PRId64,
			text_of(summary, "state"), in, outs, rate, number(checkpoints, "completed"),
			number(checkpoints, "failed"), number(checkpoints, "last_ms"),
			number(summary, "restarts"));
	if (lost > 0)
		fprintf(out, "  packets lost %" PRId64, lost);
}

void run_print_progress(struct run_progress *p, FILE *out, const json_t *summary, uint64_t now_ns)
{
	if (!p->is_tty && p->shown_ns != 0 && now_ns - p->shown_ns < PLAIN_PERIOD_NS)
		return;
	p->shown_ns = now_ns;
	if (p->is_tty)
		fputs("\r\033[K", out);
	if (summary == NULL)
		fputs("the coordinator does not answer yet", out);
	else
		print_line(p, out, summary, now_ns);
	p->has_line = p->is_tty;
	if (!p->is_tty)
		fputc('\n', out);
	fflush(out);
}

static bool is_time(uint64_t told_ns, uint64_t period_ns, uint64_t now_ns)
{
	return told_ns == 0 || now_ns - told_ns >= period_ns;
}

static void print_waiting(
		struct run_progress *p, FILE *out, const json_t *summary, uint64_t now_ns)
{
	const char *waiting = json_string_value(json_object_get(summary, "waiting"));

	if (waiting == NULL) {
		p->waits_ns = 0;
		p->has_told_waiting = false;
		return;
	}
	if (p->waits_ns == 0)
		p->waits_ns = now_ns;
	if (p->has_told_waiting || now_ns - p->waits_ns < WAITING_NS)
		return;
	p->has_told_waiting = true;
	run_print_break(p, out);
	fprintf(out, "the job %s\n", waiting);
}

void run_print_troubles(struct run_progress *p, FILE *out, const json_t *summary, uint64_t now_ns)
{
	const json_t *checkpoints = json_object_get(summary, "checkpoints");
	const char *failure = json_string_value(json_object_get(checkpoints, "failure"));
	const char *overdue = json_string_value(json_object_get(checkpoints, "overdue"));
	int64_t id = number(checkpoints, "failed_id");

	print_waiting(p, out, summary, now_ns);
	if (failure != NULL && (p->failed_ns == 0 || id != p->failed_id) &&
			is_time(p->failed_ns, FAILED_PERIOD_NS, now_ns)) {
		p->failed_id = id;
		p->failed_ns = now_ns;
		run_print_break(p, out);
		fprintf(out, "%s%s\n", id == 0 ? "a checkpoint could not be begun: " : "",
				failure);
	}
	if (overdue == NULL) {
		p->overdue_ns = 0;
	} else if (is_time(p->overdue_ns, OVERDUE_PERIOD_NS, now_ns)) {
		p->overdue_ns = now_ns;
		run_print_break(p, out);
		fprintf(out, "%s\n", overdue);
	}
}

/* "packets       20000 to source = 18990 taken + 10 waiting + 1000 missed" */
static void print_ledger(FILE *out, const char *uid, json_t *ledger)
{
	json_t *count;
	const char *place;

	fprintf(out, "packets       %" PRId64 " to %s = %" PRId64 " taken",
			number(ledger, "packets"), uid, number(ledger, "taken"));
	if (number(ledger, "waiting") > 0)
		fprintf(out, " + %" PRId64 " waiting", number(ledger, "waiting"));
	json_object_foreach(json_object_get(ledger, "lost_by"), place, count)
	{
		if (json_integer_value(count) > 0)
			fprintf(out, " + %" PRId64 " %s", (int64_t)json_integer_value(count),
					place);
	}
	fputc('\n', out);
}

/* What a damaged capture held behind the damage is in no count. */
static void print_captures(FILE *out, const json_t *summary)
{
	const char *uid;
	json_t *counters;

	json_object_foreach(
			(json_t *)(uintptr_t)json_object_get(summary, "counters"), uid, counters)
	{
		int64_t cut = number(counters, "files_cut");
		int64_t skipped = number(counters, "files_skipped");

		if (cut + skipped > 0)
			fprintf(out, "captures      %" PRId64 " of %s damaged or cut, %" PRId64
				     " passed over; the TaskManager's log says where\n",
					cut, uid, skipped);
	}
}

/* Pieces of buffers had been lost or were only late; frames came to another worker's queue. */
static void print_link(FILE *out, const json_t *link)
{
	if (!json_is_object(link))
		return;
	fprintf(out, "link          %" PRId64 " frames, %" PRId64 " pieces sent again, %" PRId64
		     " frames handed over between queues",
			number(link, "frames"), number(link, "resent"),
			number(link, "handed_over"));
	if (number(link, "hand_over_full") > 0)
		fprintf(out, ", %" PRId64 " found no room there", number(link, "hand_over_full"));
	fputc('\n', out);
}

static void print_table(FILE *out, const json_t *summary, double wall_s)
{
	const json_t *checkpoints = json_object_get(summary, "checkpoints");
	const json_t *failure = json_object_get(summary, "failure");
	const char *reason, *uid;
	json_t *count, *ledger;

	fprintf(out, "state         %s\n", text_of(summary, "state"));
	if (json_is_string(failure))
		fprintf(out, "failure       %s\n", json_string_value(failure));
	fprintf(out, "job           %s (%s)\n", text_of(summary, "name"),
			text_of(summary, "job_id"));
	fprintf(out, "records in    %" PRId64 "\n", number(summary, "records_in"));
	fprintf(out, "records out   %" PRId64 "\n", number(summary, "records_out"));
	json_object_foreach((json_t *)(uintptr_t)json_object_get(summary, "ledger"), uid, ledger)
	{
		print_ledger(out, uid, ledger);
	}
	json_object_foreach(
			(json_t *)(uintptr_t)json_object_get(summary, "unparsed"), reason, count)
	{
		if (json_integer_value(count) > 0)
			fprintf(out, "unparsed      %" PRId64 " %s\n",
					(int64_t)json_integer_value(count), reason);
	}
	print_captures(out, summary);
	print_link(out, json_object_get(summary, "link"));
	fprintf(out, "checkpoints   %" PRId64 " completed, %" PRId64 " failed, p50 %" PRId64
		     " ms, p99 %" PRId64 " ms\n",
			number(checkpoints, "completed"), number(checkpoints, "failed"),
			number(checkpoints, "p50_ms"), number(checkpoints, "p99_ms"));
	fprintf(out, "restarts      %" PRId64 "\n", number(summary, "restarts"));
	fprintf(out, "wall time     %.1f s\n", wall_s);
}

bool run_print_result(FILE *out, const json_t *summary, double wall_s, bool json)
{
	if (!json) {
		print_table(out, summary, wall_s);
		return true;
	}
	json_t *result = json_copy((json_t *)(uintptr_t)summary);
	bool is_whole = result != NULL &&
			json_object_set_new(result, "wall_s", json_real(wall_s)) == 0 &&
			json_dumpf(result, out, JSON_INDENT(2)) == 0;
	fputc('\n', out);
	json_decref(result);
	return is_whole;
}
