#include "control/cli/inspect_print.h"

#include "control/cli/inspect_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *kind_name(enum weir_state_kind kind)
{
	static const char *const names[] = {"value", "list", "keyed"};

	return names[kind];
}

static const char *snapshot_name(const struct metadata *m)
{
	return m->kind == METADATA_SAVEPOINT ? "savepoint" : "checkpoint";
}

/* ---- for people ------------------------------------------------------------------------------ */

/* Text from the checkpoint, without what a terminal would obey. */
static void put_text(FILE *out, const char *text)
{
	for (const char *c = text; *c != '\0'; c++)
		fputc((unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c, out);
}

static void print_time(FILE *out, int64_t wall_ms)
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm tm;
	char text[32];

	if (wall_ms < 0 || gmtime_r(&seconds, &tm) == NULL) {
		fprintf(out, "%" PRId64 " ms", wall_ms);
		return;
	}
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	fprintf(out, "%s.%03d UTC", text, (int)(wall_ms % 1000));
}

static void print_head(const struct inspect_report *r, FILE *out)
{
	const struct metadata *m = r->metadata;
	char job[ID128_TEXT_BYTES];

	id128_print(m->job.id, job);
	fprintf(out, "%s %" PRId64 " of job ", snapshot_name(m), m->checkpoint_id);
	put_text(out, m->job_name);
	fprintf(out, " (%s)\n  in         %s\n  triggered  ", job, r->directory);
	print_time(out, m->triggered_ms);
	fprintf(out, "\n  completed  ");
	print_time(out, m->completed_ms);
	fprintf(out, ", %" PRId64 " ms later\n  state      %" PRIu64 " bytes, %" PRIu64
			" of them in files\n  written by weir ",
			m->completed_ms - m->triggered_ms, r->total_bytes, r->file_bytes);
	put_text(out, m->weir_version);
	fprintf(out, ", %u key groups\n\n", m->key_group_count);
}

static const char row_format[] = "%-16.64s %7s  %-16.64s %-20.40s %-5s %12s %14s  ";

static void print_state(const struct metadata_vertex *v, uint32_t index,
		const struct inspect_state *s, FILE *out)
{
	const struct state_handle *h = s->handle;
	char subtask[16], items[24], bytes[24];

	snprintf(subtask, sizeof(subtask), "%u", index);
	snprintf(items, sizeof(items), "%" PRIu64, h->item_count);
	snprintf(bytes, sizeof(bytes), "%" PRIu64, h->size);
	fprintf(out, row_format, v->uid, subtask, h->uid, h->name, kind_name(h->kind), items,
			bytes);
	if (s->problem != NULL)
		fprintf(out, "DAMAGED: %s\n", s->problem);
	else if (h->file != NULL)
		fprintf(out, "%08x ok, %s at %" PRIu64 "\n", h->crc, h->file, h->offset);
	else
		fprintf(out, "%08x ok, inline\n", h->crc);
}

static const char *side_name(const struct channel_state_handle *h)
{
	return h->side == CHANNEL_STATE_INPUT ? "input" : "output";
}

/* Data in flight, under the name of its channel: the gate's number, then the channel's. */
static void print_channel(const struct metadata_vertex *v, uint32_t index,
		const struct inspect_channel *c, FILE *out)
{
	const struct channel_state_handle *h = c->handle;
	char subtask[16], name[40], bufs[24], bytes[24];

	snprintf(subtask, sizeof(subtask), "%u", index);
	snprintf(name, sizeof(name), "%s %u.%u", side_name(h), h->gate, h->channel);
	snprintf(bufs, sizeof(bufs), "%u", h->buf_count);
	snprintf(bytes, sizeof(bytes), "%" PRIu64, h->bytes);
	fprintf(out, row_format, v->uid, subtask, "in flight", name, "bufs", bufs, bytes);
	if (c->problem != NULL)
		fprintf(out, "DAMAGED: %s\n", c->problem);
	else
		fprintf(out, "%08x ok, %s at %" PRIu64 "\n", h->crc, h->file, h->offset);
}

static void print_remark(const struct metadata_vertex *v, const char *subtask, const char *remark,
		FILE *out)
{
	fprintf(out, row_format, v->uid, subtask, "", "", "", "", "");
	fprintf(out, "%s\n", remark);
}

static void print_subtask(const struct metadata_vertex *v, const struct inspect_subtask *s,
		FILE *out)
{
	uint32_t count = s->state != NULL ? s->state->handle_count : 0;
	uint32_t channel_count = s->state != NULL ? s->state->channel_count : 0;
	char subtask[16], sum[96];

	snprintf(subtask, sizeof(subtask), "%u", s->entry->index);
	if (s->entry->is_finished)
		print_remark(v, subtask, "finished", out);
	if (s->problem != NULL) {
		fprintf(out, row_format, v->uid, subtask, "", "", "", "", "");
		fprintf(out, "DAMAGED: %s\n", s->problem);
	}
	for (uint32_t i = 0; i < count; i++)
		print_state(v, s->entry->index, &s->states[i], out);
	for (uint32_t i = 0; i < channel_count; i++)
		print_channel(v, s->entry->index, &s->channels[i], out);
	count += channel_count;
	if (count > 1) {
		snprintf(sum, sizeof(sum), "%" PRIu64, task_state_total_bytes(s->state));
		fprintf(out, row_format, v->uid, subtask, "", "all", "", "", sum);
		fprintf(out, "%" PRIu64 " in files\n", task_state_file_bytes(s->state));
	} else if (count == 0 && s->problem == NULL && !s->entry->is_finished) {
		print_remark(v, subtask, "no state", out);
	}
}

static void print_named(const char *what, const struct metadata_named *rows, uint32_t count,
		FILE *out)
{
	for (uint32_t i = 0; i < count; i++) {
		fprintf(out, "%s ", what);
		put_text(out, rows[i].name);
		fprintf(out, ": %zu bytes, version %u\n", rows[i].bytes.size, rows[i].version);
	}
}

static void print_settings(const struct metadata *m, FILE *out)
{
	print_named("master state", m->masters, m->master_count, out);
	print_named("operator coordinator", m->coordinators, m->coordinator_count, out);
	for (uint32_t i = 0; i < m->plugin_count; i++) {
		fprintf(out, "plug-in ");
		put_text(out, m->plugins[i].path);
		fprintf(out, ": %" PRIu64 " bytes, checksum %08x\n", m->plugins[i].size,
				m->plugins[i].crc);
	}
	for (uint32_t i = 0; i < m->sink_directory_count; i++) {
		fprintf(out, "output in ");
		put_text(out, m->sink_directories[i]);
		fputc('\n', out);
	}
	for (uint32_t i = 0; i < m->override_count; i++) {
		fprintf(out, "set ");
		put_text(out, m->overrides[i].key);
		fputc('=', out);
		put_text(out, m->overrides[i].value);
		fputc('\n', out);
	}
}

/* Indented, line by line. */
static void print_job_text(const char *text, FILE *out)
{
	fprintf(out, "\njob file:\n");
	while (*text != '\0') {
		size_t bytes = strcspn(text, "\n");

		fprintf(out, "  ");
		for (size_t i = 0; i < bytes; i++) {
			bool is_control = (unsigned char)text[i] < 0x20 || text[i] == 0x7f;

			fputc(is_control && text[i] != '\t' ? '?' : text[i], out);
		}
		fputc('\n', out);
		text += bytes + (text[bytes] == '\n');
	}
}

bool inspect_print_table(const struct inspect_report *r, FILE *out)
{
	print_head(r, out);
	fprintf(out, row_format, "VERTEX", "SUBTASK", "OPERATOR", "STATE", "KIND", "ITEMS",
			"BYTES");
	fprintf(out, "CHECKSUM\n");
	for (uint32_t i = 0; i < r->metadata->vertex_count; i++) {
		const struct inspect_vertex *v = &r->vertices[i];

		if (v->entry->is_finished)
			print_remark(v->entry, "all", "finished", out);
		for (uint32_t k = 0; k < v->entry->subtask_count; k++)
			print_subtask(v->entry, &v->subtasks[k], out);
	}
	fputc('\n', out);
	print_settings(r->metadata, out);
	print_job_text(r->metadata->job_text, out);
	if (r->problem_count == 0)
		fprintf(out, "\nwhole: every file is there, every checksum is right\n");
	else
		fprintf(out, "\nDAMAGED: %u problems; this checkpoint will not be restored\n",
				r->problem_count);
	return fflush(out) == 0 && !ferror(out);
}

/* ---- for programs ---------------------------------------------------------------------------- */

/* Text that is no UTF-8 comes out with question marks. */
static json_t *text_json(const char *text)
{
	json_t *json = json_string(text);
	char *copy;

	if (json != NULL)
		return json;
	copy = strdup(text);
	if (copy == NULL)
		return NULL;
	for (char *c = copy; *c != '\0'; c++) {
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	}
	json = json_string(copy);
	free(copy);
	return json;
}

static json_t *problem_json(const char *problem)
{
	return problem != NULL ? text_json(problem) : json_null();
}

static json_t *crc_json(uint32_t crc)
{
	return json_sprintf("%08x", crc);
}

static json_t *state_json(const struct inspect_state *s)
{
	const struct state_handle *h = s->handle;
	json_t *file = h->file != NULL ? text_json(h->file) : json_null();

	return json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:o, s:b, s:o}",
			"name", text_json(h->name), "kind", kind_name(h->kind),
			"version", (json_int_t)h->version, "key_bytes", (json_int_t)h->key_bytes,
			"value_bytes", (json_int_t)h->value_bytes,
			"items", (json_int_t)h->item_count, "bytes", (json_int_t)h->size,
			"file", file, "offset", (json_int_t)h->offset, "crc32c", crc_json(h->crc),
			"ok", s->problem == NULL, "problem", problem_json(s->problem));
}

/* States of one uid stand together: a row for each operator. */
static json_t *operators_json(const struct inspect_subtask *s)
{
	json_t *operators = json_array(), *states = NULL;
	const char *uid = NULL;
	uint64_t bytes = 0;

	for (uint32_t i = 0; s->state != NULL && i < s->state->handle_count; i++) {
		const struct state_handle *h = s->states[i].handle;

		if (uid == NULL || strcmp(uid, h->uid) != 0) {
			states = json_array();
			uid = h->uid;
			bytes = 0;
			json_array_append_new(operators, json_pack("{s:o, s:o}", "uid",
					text_json(uid), "states", states));
		}
		bytes += h->size;
		json_array_append_new(states, state_json(&s->states[i]));
		json_object_set_new(json_array_get(operators, json_array_size(operators) - 1),
				"bytes", json_integer((json_int_t)bytes));
	}
	return operators;
}

static json_t *channels_json(const struct inspect_subtask *s)
{
	json_t *channels = json_array();

	for (uint32_t i = 0; s->state != NULL && i < s->state->channel_count; i++) {
		const struct channel_state_handle *h = s->channels[i].handle;

		json_array_append_new(channels, json_pack(
				"{s:s, s:I, s:I, s:I, s:I, s:o, s:I, s:o, s:b, s:o}",
				"side", side_name(h), "gate", (json_int_t)h->gate,
				"channel", (json_int_t)h->channel,
				"buffers", (json_int_t)h->buf_count,
				"bytes", (json_int_t)h->bytes, "file", text_json(h->file),
				"offset", (json_int_t)h->offset, "crc32c", crc_json(h->crc),
				"ok", s->channels[i].problem == NULL,
				"problem", problem_json(s->channels[i].problem)));
	}
	return channels;
}

static json_t *subtask_json(const struct inspect_subtask *s)
{
	uint64_t total = s->state != NULL ? task_state_total_bytes(s->state) : 0;
	uint64_t files = s->state != NULL ? task_state_file_bytes(s->state) : 0;

	return json_pack("{s:I, s:b, s:I, s:I, s:o, s:o, s:o}",
			"index", (json_int_t)s->entry->index,
			"finished", s->entry->is_finished, "bytes", (json_int_t)total,
			"file_bytes", (json_int_t)files, "problem", problem_json(s->problem),
			"operators", operators_json(s), "channels", channels_json(s));
}

static json_t *vertices_json(const struct inspect_report *r)
{
	json_t *vertices = json_array();

	for (uint32_t i = 0; i < r->metadata->vertex_count; i++) {
		const struct inspect_vertex *v = &r->vertices[i];
		json_t *subtasks = json_array();

		for (uint32_t k = 0; k < v->entry->subtask_count; k++)
			json_array_append_new(subtasks, subtask_json(&v->subtasks[k]));
		json_array_append_new(vertices, json_pack("{s:o, s:I, s:I, s:b, s:o}",
				"uid", text_json(v->entry->uid),
				"parallelism", (json_int_t)v->entry->parallelism,
				"max_parallelism", (json_int_t)v->entry->max_parallelism,
				"finished", v->entry->is_finished, "subtasks", subtasks));
	}
	return vertices;
}

static json_t *named_json(const struct metadata_named *rows, uint32_t count)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(list, json_pack("{s:o, s:I, s:I}",
				"name", text_json(rows[i].name),
				"version", (json_int_t)rows[i].version,
				"bytes", (json_int_t)rows[i].bytes.size));
	return list;
}

static json_t *settings_json(const struct metadata *m)
{
	json_t *overrides = json_array(), *plugins = json_array(), *sinks = json_array();

	for (uint32_t i = 0; i < m->override_count; i++)
		json_array_append_new(overrides, json_pack("{s:o, s:o}",
				"key", text_json(m->overrides[i].key),
				"value", text_json(m->overrides[i].value)));
	for (uint32_t i = 0; i < m->plugin_count; i++)
		json_array_append_new(plugins, json_pack("{s:o, s:I, s:o}",
				"path", text_json(m->plugins[i].path),
				"size", (json_int_t)m->plugins[i].size,
				"crc32c", crc_json(m->plugins[i].crc)));
	for (uint32_t i = 0; i < m->sink_directory_count; i++)
		json_array_append_new(sinks, text_json(m->sink_directories[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o}",
			"masters", named_json(m->masters, m->master_count),
			"coordinators", named_json(m->coordinators, m->coordinator_count),
			"overrides", overrides, "plugins", plugins, "sink_directories", sinks);
}

static bool print_json(json_t *json, FILE *out)
{
	bool is_printed = json != NULL && json_dumpf(json, out, JSON_INDENT(2)) == 0;

	json_decref(json);
	return is_printed && fputc('\n', out) != EOF && fflush(out) == 0;
}

bool inspect_print_json(const struct inspect_report *r, FILE *out)
{
	const struct metadata *m = r->metadata;
	json_t *json = settings_json(m);
	char job[ID128_TEXT_BYTES];

	id128_print(m->job.id, job);
	json_object_update_new(json, json_pack(
			"{s:o, s:I, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:b, s:I,"
			" s:o, s:o}",
			"path", text_json(r->directory),
			"checkpoint_id", (json_int_t)m->checkpoint_id,
			"kind", snapshot_name(m), "job_id", job, "job_name", text_json(m->job_name),
			"properties", (json_int_t)m->properties,
			"triggered_ms", (json_int_t)m->triggered_ms,
			"completed_ms", (json_int_t)m->completed_ms,
			"key_groups", (json_int_t)m->key_group_count,
			"weir_version", text_json(m->weir_version),
			"bytes", (json_int_t)r->total_bytes,
			"file_bytes", (json_int_t)r->file_bytes, "whole", r->problem_count == 0,
			"problem_count", (json_int_t)r->problem_count,
			"vertices", vertices_json(r), "job_file", text_json(m->job_text)));
	return print_json(json, out);
}

bool inspect_print_json_error(const char *path, const char *text, FILE *out)
{
	return print_json(json_pack("{s:o, s:b, s:o}", "path", text_json(path), "whole", 0,
					  "problem", text_json(text)), out);
}
