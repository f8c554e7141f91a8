/*
 * file-sink: lines of text in part files that appear when the checkpoint that covers them
 * completes, each line exactly once.
 *
 * A part is written under a hidden name, closed before the barrier of a checkpoint and put into
 * the state with it.  It gets its visible name when that checkpoint completes, or when a task
 * restored from it opens.  So the state never lists a part that is not durable, and no part is
 * visible that a restore could write again.  The header line belongs to the first part that
 * subtask 0 commits, whether it has other lines or not.
 *
 * A batch is taken whole.  Records that the disk is not ready for wait in the state, and as long
 * as there are any the sink has no room.
 */

#include "dataplane/base/check.h"
#include "dataplane/base/limits.h"
#include "dataplane/operator/builtins.h"
#include "dataplane/operator/file_sink_lock.h"
#include "dataplane/operator/file_sink_parts.h"
#include "dataplane/operator/operator.h"
#include "dataplane/operator/row_format.h"

#include <errno.h>
#include <stdio.h>

enum { PATH, FORMAT, PARAM_COUNT };
enum { OUTPUT, PARTS, WAITING, STATE_COUNT };
enum { ROWS, BYTES, PARTS_WRITTEN, COUNTER_COUNT };
enum { PARTS_MAX = 4096, RETRY_NS = 200000 };

static const struct weir_param params[PARAM_COUNT] = {
		[PATH] = {"path", WEIR_TEXT, NULL, 0, 0, NULL, "the directory of the part files"},
		[FORMAT] = {"format", WEIR_CHOICE, "flow-csv", 0, 0, ROW_FORMAT_CHOICES,
				"how a record is written"},
};

/* State. */
struct output {
	uint64_t has_header; /* subtask 0: the header line is in a part */
	char directory[PARTS_DIRECTORY_BYTES]; /* of the parts in the list */
};

struct file_sink {
	const struct row_format *format;
	struct output *output;
	uint64_t *counters[COUNTER_COUNT];
	struct part_owner owner;
	struct sink_lock lock;
	uint64_t next_number;
	bool is_open; /* `part` and `file` */
	struct part part;
	weir_file file;
	int64_t complete_id;  /* newest checkpoint that completed */
	uint32_t asked_count; /* parts in front of the list whose publishing was asked for */
	char lines[WEIR_FILE_WRITE_MAX];
};

static int declare(const struct weir_setting *setting, struct weir_declaration *d,
		char error[WEIR_ERROR_BYTES])
{
	static const char *const names[COUNTER_COUNT] = {"rows", "bytes", "parts"};
	const char *path = setting->values[PATH].text;

	if (strlen(path) >= PARTS_DIRECTORY_BYTES || path[0] == '\0') {
		snprintf(error, WEIR_ERROR_BYTES, "path: %s; expected the name of a directory",
				path[0] == '\0' ? "empty" : "too long");
		return -EINVAL;
	}
	if (strlen(setting->uid) >= UID_BYTES_MAX || strchr(setting->uid, '/') != NULL) {
		snprintf(error, WEIR_ERROR_BYTES,
				"uid: \"%.80s\" becomes part of file names; expected at most %d "
				"characters and no slash",
				setting->uid, UID_BYTES_MAX - 1);
		return -EINVAL;
	}
	d->self_bytes = sizeof(struct file_sink);
	d->in_record_bytes = row_format_at((uint32_t)setting->values[FORMAT].integer)->record_bytes;
	d->state_count = STATE_COUNT;
	d->states[OUTPUT] = (struct weir_state){.name = "output",
			.kind = WEIR_STATE_VALUE,
			.value_bytes = sizeof(struct output),
			.version = 1,
			.rescale = WEIR_RESCALE_KEEP};
	d->states[PARTS] = (struct weir_state){.name = "parts",
			.kind = WEIR_STATE_LIST,
			.value_bytes = sizeof(struct part),
			.version = 2,
			.capacity = PARTS_MAX,
			.rescale = WEIR_RESCALE_UNION};
	d->states[WAITING] = (struct weir_state){.name = "waiting",
			.kind = WEIR_STATE_LIST,
			.value_bytes = d->in_record_bytes,
			.version = 1,
			.capacity = RECORDS_COUNT_MAX};
	d->counter_count = COUNTER_COUNT;
	memcpy(d->counters, names, sizeof(names));
	return 0;
}

/* After a restore with another parallelism the parts of all are here, also of subtasks that are no
 * more.  Each has one new subtask that sees to it. */
static void keep_own(struct weir_context *ctx)
{
	const struct weir_info *info = weir_info(ctx);

	for (uint32_t i = weir_list_count(ctx, PARTS); i-- > 0;) {
		const struct part *p = weir_list_at(ctx, PARTS, i);

		if (p->subtask % info->parallelism != info->subtask_index)
			weir_list_remove(ctx, PARTS, i);
	}
}

/* Commits what the state lists, where it was written, and clears what it does not. */
static int recover(struct file_sink *s, struct weir_context *ctx, char text[PARTS_TEXT_BYTES])
{
	struct part_owner old = s->owner;
	int rc = 0;

	old.directory = s->output->directory;
	for (uint32_t i = 0; i < weir_list_count(ctx, PARTS) && rc == 0; i++)
		rc = parts_commit(&old, weir_list_at(ctx, PARTS, i), 1, text);
	if (rc == 0)
		rc = parts_remove_hidden(&old, text);
	while (rc == 0 && weir_list_count(ctx, PARTS) > 0)
		weir_list_remove(ctx, PARTS, weir_list_count(ctx, PARTS) - 1);
	return rc;
}

/* A restored task goes on without it: an attempt of this run that hangs may hold it, and of two
 * runs that were restored at once the one whose parts go fails by their names. */
static int take_lock(struct file_sink *s, const struct weir_info *info,
		char text[PARTS_TEXT_BYTES])
{
	int rc = sink_lock_take(&s->lock, &s->owner, text);

	return rc == -EBUSY && info->restored_checkpoint_id != 0 ? 0 : rc;
}

static int prepare(struct file_sink *s, struct weir_context *ctx, char text[PARTS_TEXT_BYTES])
{
	const struct weir_info *info = weir_info(ctx);
	char directory[PARTS_DIRECTORY_BYTES];
	int rc = parts_make_directory(info->values[PATH].text, directory, text);

	s->output->directory[PARTS_DIRECTORY_BYTES - 1] = '\0';
	s->owner = (struct part_owner){
			directory, info->uid, info->subtask_index, info->parallelism};
	keep_own(ctx);
	if (rc == 0)
		rc = take_lock(s, info, text);
	if (rc == 0 && s->output->directory[0] != '\0')
		rc = recover(s, ctx, text);
	if (rc == 0)
		rc = parts_remove_hidden(&s->owner, text);
	if (rc == 0 && info->restored_checkpoint_id == 0 && info->checkpointing)
		rc = parts_refuse_old(&s->owner, text);
	if (rc == 0)
		memcpy(s->output->directory, directory, sizeof(directory));
	s->owner.directory = s->output->directory;
	return rc;
}

static int open(void *self, struct weir_context *ctx)
{
	struct file_sink *s = self;
	char text[PARTS_TEXT_BYTES];

	s->format = row_format_at((uint32_t)weir_info(ctx)->values[FORMAT].integer);
	s->output = weir_value(ctx, OUTPUT);
	for (uint32_t i = 0; i < COUNTER_COUNT; i++)
		s->counters[i] = weir_counter(ctx, i);
	int rc = prepare(s, ctx, text);
	if (rc != 0) {
		sink_lock_release(&s->lock);
		weir_fail(ctx, "%s", text);
	}
	return rc;
}

static void close_sink(void *self, struct weir_context *ctx)
{
	struct file_sink *s = self;

	(void)ctx;
	sink_lock_release(&s->lock);
}

static bool write_lines(struct file_sink *s, struct weir_context *ctx, uint32_t bytes)
{
	if (bytes == 0)
		return true;
	if (!weir_file_write(ctx, s->file, s->lines, bytes))
		return false;
	s->part.size_bytes += bytes;
	*s->counters[BYTES] += bytes;
	return true;
}

/* A part to write to, with the header if it is time for that; false: not now. */
static bool open_part(struct file_sink *s, struct weir_context *ctx)
{
	const struct weir_info *info = weir_info(ctx);
	char path[PARTS_PATH_BYTES];

	if (!s->is_open) {
		if (weir_list_count(ctx, PARTS) == PARTS_MAX)
			return false; /* until a checkpoint completes */
		s->part = (struct part){
				.number = s->next_number, .subtask = info->subtask_index};
		memcpy(s->part.attempt, info->attempt_id, sizeof(s->part.attempt));
		part_hidden_path(&s->owner, &s->part, path);
		if (!weir_file_open(ctx, path, &s->file))
			return false;
		s->is_open = true;
		s->next_number++;
	}
	if (info->subtask_index == 0 && s->output->has_header == 0) {
		uint32_t bytes = (uint32_t)snprintf(
				s->lines, sizeof(s->lines), "%s\n", s->format->header);

		if (!write_lines(s, ctx, bytes))
			return false;
		s->output->has_header = 1;
	}
	return true;
}

/* Asks to publish what completed checkpoints cover, as far as that is possible now. */
static void publish(struct file_sink *s, struct weir_context *ctx)
{
	char from[PARTS_PATH_BYTES], to[PARTS_PATH_BYTES];

	while (s->asked_count < weir_list_count(ctx, PARTS)) {
		const struct part *p = weir_list_at(ctx, PARTS, s->asked_count);

		if (p->checkpoint_id > s->complete_id)
			return;
		part_hidden_path(&s->owner, p, from);
		part_final_path(&s->owner, p, to);
		if (!weir_file_publish(ctx, from, to, p->number))
			return;
		s->asked_count++;
	}
}

/* Writes records from the front; returns how many. */
static uint32_t write_records(struct file_sink *s, struct weir_context *ctx, const uint8_t *records,
		uint32_t count)
{
	uint32_t bytes = 0, written = 0;

	if (count == 0 || !open_part(s, ctx))
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		bytes += s->format->print(
				records + (size_t)i * s->format->record_bytes, s->lines + bytes);
		if (bytes + ROW_BYTES_MAX <= sizeof(s->lines) && i + 1 < count)
			continue;
		if (!write_lines(s, ctx, bytes))
			break;
		written = i + 1;
		bytes = 0;
	}
	*s->counters[ROWS] += written;
	return written;
}

/* Writes what waits; true when nothing does any more. */
static bool drain(struct file_sink *s, struct weir_context *ctx)
{
	uint32_t count = weir_list_count(ctx, WAITING), written = 0;

	while (written < count &&
			write_records(s, ctx, weir_list_at(ctx, WAITING, written), 1) == 1)
		written++;
	for (uint32_t i = written; i-- > 0;)
		weir_list_remove(ctx, WAITING, i);
	return written == count;
}

static uint32_t room(void *self, struct weir_context *ctx)
{
	struct file_sink *s = self;

	publish(s, ctx);
	return drain(s, ctx) ? RECORDS_COUNT_MAX : 0;
}

static uint32_t process(void *self, struct weir_context *ctx, const struct weir_batch *in)
{
	struct file_sink *s = self;
	uint32_t count = in->count < RECORDS_COUNT_MAX ? in->count : RECORDS_COUNT_MAX;

	if (room(self, ctx) == 0) {
		weir_not_before(ctx, weir_now_ns(ctx) + RETRY_NS);
		return 0;
	}
	for (uint32_t i = write_records(s, ctx, in->data, count); i < count; i++) {
		bool fits = weir_list_add(
				ctx, WAITING, in->data + (size_t)i * s->format->record_bytes);
		CHECK(fits);
	}
	return count;
}

/* Ends the part and puts it into the state under that checkpoint. */
static void close_part(struct file_sink *s, struct weir_context *ctx, int64_t checkpoint_id)
{
	weir_file_close(ctx, s->file);
	s->is_open = false;
	s->part.checkpoint_id = checkpoint_id;
	bool fits = weir_list_add(ctx, PARTS, &s->part);
	CHECK(fits); /* open_part left a place */
	++*s->counters[PARTS_WRITTEN];
}

static void before_barrier(void *self, struct weir_context *ctx, int64_t checkpoint_id)
{
	struct file_sink *s = self;

	if (s->is_open && s->part.size_bytes > 0)
		close_part(s, ctx, checkpoint_id);
}

static void notify_complete(void *self, struct weir_context *ctx, int64_t checkpoint_id)
{
	struct file_sink *s = self;

	s->complete_id = checkpoint_id;
	publish(s, ctx);
}

static void file_done(void *self, struct weir_context *ctx, uint64_t tag, int status)
{
	struct file_sink *s = self;
	const struct part *p = weir_list_at(ctx, PARTS, 0);
	char path[PARTS_PATH_BYTES];

	CHECK(s->asked_count > 0);
	CHECK(p->number == tag); /* published in the order asked */
	if (status != 0) {
		part_final_path(&s->owner, p, path);
		weir_fail(ctx, "%s: cannot be published: %s", path, strerror(-status));
		return;
	}
	weir_list_remove(ctx, PARTS, 0);
	s->asked_count--;
}

/* With checkpoints, one comes that covers what is open.  Without, the only part is published. */
static bool finish(void *self, struct weir_context *ctx)
{
	struct file_sink *s = self;
	const struct weir_info *info = weir_info(ctx);

	if (!drain(s, ctx))
		return false;
	if (info->subtask_index == 0 && s->output->has_header == 0 && !open_part(s, ctx))
		return false;
	if (!info->checkpointing && s->is_open)
		close_part(s, ctx, 0);
	publish(s, ctx);
	return true;
}

static bool is_busy(void *self, struct weir_context *ctx)
{
	struct file_sink *s = self;

	publish(s, ctx);
	if (weir_list_count(ctx, PARTS) == 0)
		return false;
	const struct part *p = weir_list_at(ctx, PARTS, 0);
	return p->checkpoint_id <= s->complete_id;
}

const struct weir_operator builtin_file_sink = {
		.abi_version = WEIR_ABI_VERSION,
		.size = sizeof(struct weir_operator),
		.name = "file-sink",
		.help = "lines of text in part files, each line exactly once",
		.role = WEIR_SINK,
		.params = params,
		.param_count = PARAM_COUNT,
		.declare = declare,
		.open = open,
		.process = process,
		.room = room,
		.before_barrier = before_barrier,
		.notify_complete = notify_complete,
		.file_done = file_done,
		.finish = finish,
		.is_busy = is_busy,
		.close = close_sink,
};
