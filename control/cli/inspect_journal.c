#include "control/cli/inspect_journal.h"

#include "control/cli/exit_codes.h"
#include "dataplane/journal/journal_report.h"
#include "dataplane/operator/packet/flow_record.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SUBTASK_BYTES = sizeof("subtask-") - 1, DLT_ETHERNET = 1, TIME_BYTES = 40 };

/* ---- which directories ----------------------------------------------------------------------- */

static int is_subtask(const struct dirent *e)
{
	return strncmp(e->d_name, "subtask-", SUBTASK_BYTES) == 0;
}

static int is_segment(const struct dirent *e)
{
	uint64_t ordinal;

	return journal_name_parse(e->d_name, &ordinal) == 0;
}

/* By number, not by letter. */
static int compare_subtasks(const struct dirent **a, const struct dirent **b)
{
	unsigned long x = strtoul((*a)->d_name + SUBTASK_BYTES, NULL, 10);
	unsigned long y = strtoul((*b)->d_name + SUBTASK_BYTES, NULL, 10);

	return (x > y) - (x < y);
}

static void free_names(struct dirent **names, int count)
{
	for (int i = 0; i < count; i++)
		free(names[i]);
	if (count >= 0)
		free(names);
}

static bool has_any(const char *path, int (*is_one)(const struct dirent *e))
{
	struct dirent **names;
	int count = scandir(path, &names, is_one, NULL);

	free_names(names, count);
	return count > 0;
}

bool inspect_is_journal(const char *path)
{
	return has_any(path, is_segment) || has_any(path, is_subtask);
}

/* ---- what a report says ---------------------------------------------------------------------- */

static const char *tail_name(enum journal_tail tail)
{
	static const char *const names[] = {
			[JOURNAL_TAIL_NONE] = "whole",
			[JOURNAL_TAIL_ZEROS] = "whole",
			[JOURNAL_TAIL_TORN] = "torn",
			[JOURNAL_TAIL_DAMAGED] = "damaged",
	};

	return names[tail];
}

/* False: the record is none of a packet. */
static bool packet_of(const struct journal_edge *edge, struct captured_packet *packet)
{
	if (edge->bytes < sizeof(*packet))
		return false;
	memcpy(packet, edge->at, sizeof(*packet));
	return packet->link_type == DLT_ETHERNET && packet->reserved == 0;
}

static void print_time(char text[TIME_BYTES], const struct journal_edge *edge)
{
	struct captured_packet packet;
	struct tm tm;

	snprintf(text, TIME_BYTES, "-");
	if (!packet_of(edge, &packet))
		return;
	time_t seconds = (time_t)(packet.time_ns / 1000000000);
	if (packet.time_ns < 0 || gmtime_r(&seconds, &tm) == NULL)
		return;
	size_t at = strftime(text, TIME_BYTES, "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(text + at, TIME_BYTES - at, ".%03d",
			(int)(packet.time_ns / 1000000 % 1000));
}

struct sums {
	uint64_t packets, bytes, payload, lost;
};

static struct sums sum_up(const struct journal_report *r)
{
	struct sums s = {0};

	for (uint32_t i = 0; i < r->count; i++) {
		s.packets += r->segments[i].end - r->segments[i].first;
		s.bytes += r->segments[i].file_bytes;
		s.payload += r->segments[i].payload_bytes;
		s.lost += r->segments[i].lost;
	}
	return s;
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_segment(const struct journal_report_segment *s)
{
	char first[TIME_BYTES], last[TIME_BYTES], range[48] = "none";

	print_time(first, &s->first_record);
	print_time(last, &s->last_record);
	if (s->end > s->first)
		snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64, s->first, s->end - 1);
	printf("  %-16" PRIx64 " %-24s %12" PRIu64 " %8" PRIu64 "  %-23s  %-23s  %s\n", s->ordinal,
			range, s->file_bytes, s->blocks, first, last, tail_name(s->tail));
	if (s->text[0] != '\0')
		printf("  %-16s %s\n", "", s->text);
}

static void print_journal(const struct journal_report *r)
{
	struct sums s = sum_up(r);

	printf("journal %016" PRIx64 " in %s\n", r->id, r->path);
	printf("  packets    %" PRIu64 ", %" PRIu64
	       " bytes with their heads, every checksum compared\n",
			s.packets, s.payload);
	printf("  files      %u, %" PRIu64 " bytes\n", r->count, s.bytes);
	printf("  covered    %s\n\n",
			r->is_covered ? "by some completed checkpoint: a job goes on from that"
				      : "by no checkpoint yet");
	printf("  %-16s %-24s %12s %8s  %-23s  %-23s\n", "segment", "packets", "bytes", "blocks",
			"first (UTC)", "last");
	for (uint32_t i = 0; i < r->count; i++)
		print_segment(&r->segments[i]);
	if (r->damaged_count > 0)
		printf("  DAMAGED: %u of %u segments; at least %" PRIu64
		       " packets cannot be read; a job that needs them is refused, unless "
		       "journal-gap: accept gives them up\n",
				r->damaged_count, r->count, s.lost);
	putchar('\n');
}

/* ---- for programs ---------------------------------------------------------------------------- */

static json_t *edge_json(const struct journal_edge *edge)
{
	struct captured_packet packet;

	if (!packet_of(edge, &packet))
		return json_null();
	return json_pack("{s:I, s:I}", "time_ns", (json_int_t)packet.time_ns, "bytes",
			(json_int_t)packet.original_bytes);
}

static json_t *segment_json(const struct journal_report_segment *s)
{
	char name[JOURNAL_NAME_BYTES];

	journal_name(name, s->ordinal);
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "file",
			name, "state", tail_name(s->tail), "first", (json_int_t)s->first, "end",
			(json_int_t)s->end, "lost", (json_int_t)s->lost, "blocks",
			(json_int_t)s->blocks, "payload_bytes", (json_int_t)s->payload_bytes,
			"file_bytes", (json_int_t)s->file_bytes, "whole_bytes",
			(json_int_t)s->whole_bytes, "first_packet", edge_json(&s->first_record),
			"last_packet", edge_json(&s->last_record), "text",
			s->text[0] == '\0' ? json_null() : json_string(s->text));
}

static json_t *journal_json(const struct journal_report *r)
{
	json_t *segments = json_array();
	struct sums s = sum_up(r);
	char id[20];

	for (uint32_t i = 0; i < r->count; i++)
		json_array_append_new(segments, segment_json(&r->segments[i]));
	snprintf(id, sizeof(id), "%016" PRIx64, r->id);
	return json_pack("{s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:i, s:o}", "path", r->path, "id", id,
			"covered", r->is_covered, "packets", (json_int_t)s.packets, "payload_bytes",
			(json_int_t)s.payload, "file_bytes", (json_int_t)s.bytes, "lost",
			(json_int_t)s.lost, "damaged_segments", (int)r->damaged_count, "segments",
			segments);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* One journal; appended to `all`, or printed when that is NULL. */
static int inspect_one(const char *path, json_t *all)
{
	char text[JOURNAL_DIRECTORY_TEXT_BYTES];
	struct journal_report *r;
	int rc = journal_report_create(&r, path, text);

	if (rc != 0) {
		fprintf(stderr, "weir inspect: %s\n", text);
		if (all != NULL)
			json_array_append_new(all,
					json_pack("{s:s, s:s}", "path", path, "error", text));
		return rc == -ENOENT ? WEIR_EXIT_DONE : WEIR_EXIT_RESTORE_REFUSED;
	}
	bool is_damaged = r->damaged_count > 0;
	if (all != NULL)
		json_array_append_new(all, journal_json(r));
	else
		print_journal(r);
	journal_report_destroy(r);
	return is_damaged ? WEIR_EXIT_RESTORE_REFUSED : WEIR_EXIT_DONE;
}

static int inspect_each(const char *path, json_t *all)
{
	struct dirent **names;
	int count = scandir(path, &names, is_subtask, compare_subtasks), code = WEIR_EXIT_DONE;

	for (int i = 0; i < count; i++) {
		char one[JOURNAL_PATH_BYTES];

		snprintf(one, sizeof(one), "%s/%s", path, names[i]->d_name);
		int rc = inspect_one(one, all);
		if (rc != WEIR_EXIT_DONE)
			code = rc;
	}
	free_names(names, count);
	return code;
}

int inspect_journal(const char *path, bool json)
{
	json_t *all = json ? json_array() : NULL;
	int code = has_any(path, is_segment) ? inspect_one(path, all) : inspect_each(path, all);

	if (!json)
		return code;
	json_t *answer = json_pack("{s:s, s:b, s:o}", "kind", "journal", "whole",
			code == WEIR_EXIT_DONE, "journals", all);
	bool is_said = answer != NULL && json_dumpf(answer, stdout, JSON_INDENT(2)) == 0;
	putchar('\n');
	json_decref(answer);
	return is_said ? code : WEIR_EXIT_FAILURE;
}
