#include "dataplane/journal/journal_report.h"

#include "dataplane/base/little_endian.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One segment on its way through the reader. */
struct reading {
	int fd;
	struct journal_report_segment *s;
	struct journal_segment_header header;
	uint64_t next_first; /* of the next segment; UINT64_MAX: there is none */
	uint8_t bytes[JOURNAL_BLOCK_BYTES_MAX];
};

/* How much of the file stands at `offset`, as far as there is room. */
static size_t read_at(struct reading *r, uint64_t offset)
{
	size_t got = 0;

	while (got < sizeof(r->bytes)) {
		ssize_t size = pread(r->fd, r->bytes + got, sizeof(r->bytes) - got,
				(off_t)(offset + got));

		if (size < 0 && errno == EINTR)
			continue;
		if (size <= 0)
			break;
		got += (size_t)size;
	}
	return got;
}

/* ---- records --------------------------------------------------------------------------------- */

static void keep_edge(struct journal_edge *edge, const uint8_t *record)
{
	uint32_t size = get_u32(record);

	edge->bytes = size < JOURNAL_EDGE_BYTES ? size : JOURNAL_EDGE_BYTES;
	memcpy(edge->at, record + sizeof(uint32_t), edge->bytes);
}

static void keep_edges(struct reading *r, const struct journal_block_head *head)
{
	const uint8_t *at = r->bytes + JOURNAL_BLOCK_HEAD_BYTES;

	if (r->s->blocks == 0)
		keep_edge(&r->s->first_record, at);
	for (uint32_t i = 1; i < head->count; i++)
		at += sizeof(uint32_t) + get_u32(at);
	keep_edge(&r->s->last_record, at);
}

/* ---- what stands behind them ----------------------------------------------------------------- */

static bool is_zero(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] != 0)
			return false;
	}
	return true;
}

/* A later block that knows of records which are not there; else whether anything stands there. */
static void look_behind(struct reading *r, const char *why)
{
	struct journal_report_segment *s = r->s;
	char text[JOURNAL_TEXT_BYTES];
	struct journal_block_head head;
	uint64_t durable = s->end;
	bool is_empty = true;
	size_t size;

	for (uint64_t offset = s->whole_bytes; (size = read_at(r, offset)) > 0; offset += size) {
		is_empty = is_empty && is_zero(r->bytes, size);
		for (size_t at = 0; at < size; at += JOURNAL_ALIGN_BYTES) {
			if (journal_decode_head(&head, r->bytes + at, size - at, text) == 0 &&
					head.ordinal == s->ordinal && head.durable > durable)
				durable = head.durable;
		}
	}
	if (durable > s->end) {
		s->tail = JOURNAL_TAIL_DAMAGED;
		s->lost = durable - s->end;
		snprintf(s->text, sizeof(s->text),
				"at %" PRIu64 ": %.120s; a later block says that the %" PRIu64
				" records from %" PRIu64 " on were durable",
				s->whole_bytes, why, s->lost, s->end);
	} else if (is_empty) {
		s->tail = s->whole_bytes < s->file_bytes ? JOURNAL_TAIL_ZEROS
							 : JOURNAL_TAIL_NONE;
	} else {
		s->tail = JOURNAL_TAIL_TORN;
		snprintf(s->text, sizeof(s->text),
				"at %" PRIu64 ": %.120s; it was durable for nobody, and the next "
				"start goes on from here",
				s->whole_bytes, why);
	}
}

static void end_segment(struct reading *r, const char *why)
{
	struct journal_report_segment *s = r->s;

	if (r->next_first == UINT64_MAX) {
		look_behind(r, why);
		return;
	}
	if (s->end == r->next_first) {
		s->tail = s->whole_bytes < s->file_bytes ? JOURNAL_TAIL_ZEROS : JOURNAL_TAIL_NONE;
		return;
	}
	s->tail = JOURNAL_TAIL_DAMAGED;
	s->lost = r->next_first > s->end ? r->next_first - s->end : 0;
	snprintf(s->text, sizeof(s->text),
			"at %" PRIu64 ": %.120s; the next segment begins at record %" PRIu64
			", this one ends at %" PRIu64,
			s->whole_bytes, why, r->next_first, s->end);
}

/* ---- a segment ------------------------------------------------------------------------------- */

static void read_blocks(struct reading *r)
{
	struct journal_report_segment *s = r->s;
	char text[JOURNAL_TEXT_BYTES] = "the file ends";
	struct journal_block_head head;

	s->whole_bytes = JOURNAL_ALIGN_BYTES;
	while (s->end < r->next_first) {
		size_t size = read_at(r, s->whole_bytes);

		if (journal_check_block(&head, r->bytes, size, r->header.record_bytes_max, text) !=
				0)
			break;
		if (head.ordinal != s->ordinal || head.sequence != s->end) {
			snprintf(text, sizeof(text), "a block of another place");
			break;
		}
		keep_edges(r, &head);
		s->blocks++;
		s->payload_bytes += head.bytes;
		s->end += head.count;
		s->whole_bytes += journal_block_bytes(head.bytes);
	}
	end_segment(r, text);
}

static void refuse_header(struct reading *r, const char *why)
{
	struct journal_report_segment *s = r->s;
	char text[JOURNAL_TEXT_BYTES];
	struct journal_block_head head;
	size_t size = read_at(r, JOURNAL_ALIGN_BYTES);
	bool has_block = journal_decode_head(&head, r->bytes, size, text) == 0 &&
			 head.ordinal == s->ordinal;

	s->tail = r->next_first == UINT64_MAX && !has_block ? JOURNAL_TAIL_TORN
							    : JOURNAL_TAIL_DAMAGED;
	snprintf(s->text, sizeof(s->text), "%.200s%s", why,
			s->tail == JOURNAL_TAIL_TORN
					? "; nothing stands behind it: the next start deletes it"
					: "");
}

/* Whether its header can be read; its blocks are read once that of the next one is known. */
static bool open_segment(struct reading *r, const struct journal_report *report, char *why)
{
	struct stat st;
	size_t size = read_at(r, 0);

	if (fstat(r->fd, &st) == 0)
		r->s->file_bytes = (uint64_t)st.st_size;
	if (journal_decode_header(&r->header, r->bytes, size, why) != 0)
		return false;
	if (r->header.ordinal != r->s->ordinal) {
		snprintf(why, JOURNAL_TEXT_BYTES, "is another segment under this name");
		return false;
	}
	if (report->id != 0 && r->header.id != report->id) {
		snprintf(why, JOURNAL_TEXT_BYTES, "is of another journal");
		return false;
	}
	r->s->first = r->header.first;
	r->s->end = r->header.first;
	return true;
}

/* Where the segment of that ordinal begins; UINT64_MAX: it cannot be told. */
static uint64_t first_of(const struct journal_directory *d, uint64_t ordinal)
{
	char path[JOURNAL_PATH_BYTES + JOURNAL_NAME_BYTES], text[JOURNAL_TEXT_BYTES];
	uint8_t bytes[JOURNAL_HEADER_BYTES];
	struct journal_segment_header h;

	journal_segment_path(d, ordinal, path, sizeof(path));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return UINT64_MAX;
	ssize_t size = pread(fd, bytes, sizeof(bytes), 0);
	close(fd);
	return size > 0 && journal_decode_header(&h, bytes, (size_t)size, text) == 0 ? h.first
										     : UINT64_MAX;
}

/* 1: it is in the report; 0: it has gone meanwhile. */
static int read_segment(struct journal_report *report, const struct journal_directory *d,
		uint32_t index, struct reading *r)
{
	char path[JOURNAL_PATH_BYTES + JOURNAL_NAME_BYTES], why[JOURNAL_TEXT_BYTES];

	r->s = &report->segments[report->count];
	*r->s = (struct journal_report_segment){.ordinal = d->segments[index].ordinal};
	r->next_first = index + 1 < d->count ? first_of(d, r->s->ordinal + 1) : UINT64_MAX;
	journal_segment_path(d, r->s->ordinal, path, sizeof(path));
	r->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0 && errno == ENOENT)
		return 0;
	if (r->fd < 0) {
		r->s->tail = JOURNAL_TAIL_DAMAGED;
		snprintf(r->s->text, sizeof(r->s->text), "%s", strerror(errno));
		return 1;
	}
	if (!open_segment(r, report, why)) {
		refuse_header(r, why);
	} else {
		report->id = r->header.id;
		read_blocks(r);
	}
	close(r->fd);
	return 1;
}

int journal_report_create(struct journal_report **out, const char *path,
		char text[JOURNAL_DIRECTORY_TEXT_BYTES])
{
	struct journal_report *report = calloc(1, sizeof(*report));
	struct journal_directory *d = calloc(1, sizeof(*d));
	struct reading *reading = calloc(1, sizeof(*reading));
	int rc = -ENOMEM;

	snprintf(text, JOURNAL_DIRECTORY_TEXT_BYTES, "out of memory");
	if (report != NULL && d != NULL && reading != NULL)
		rc = journal_directory_list(d, path, text);
	if (rc == 0 && d->count == 0) {
		snprintf(text, JOURNAL_DIRECTORY_TEXT_BYTES, "%.400s has no segment of a journal",
				path);
		rc = -ENOENT;
	}
	if (rc == 0) {
		snprintf(report->path, sizeof(report->path), "%s", path);
		report->is_covered = d->is_covered;
	}
	for (uint32_t i = 0; rc == 0 && i < d->count; i++) {
		if (read_segment(report, d, i, reading) == 0)
			continue;
		report->damaged_count += reading->s->tail == JOURNAL_TAIL_DAMAGED;
		report->count++;
	}
	free(reading);
	free(d);
	if (rc == 0)
		*out = report;
	else
		free(report);
	return rc;
}

void journal_report_destroy(struct journal_report *r)
{
	free(r);
}
