#include "dataplane/operator/packet/capture_file.h"

#include "dataplane/base/check.h"
#include "dataplane/base/crc.h"
#include "dataplane/operator/packet/pcapng.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD_BYTES_MAX = 4096, READ_BYTES = 256 * 1024, MAGIC_BYTES = 4 };

static const int64_t time_max_ns = INT64_C(9200000000000000000);

struct capture_file {
	char *path;
	FILE *stream; /* owned by `pcap` once that is open */
	pcap_t *pcap;
	struct pcapng *pcapng; /* packets lean on blocks in front of them, so no seeking */
	bool is_pcapng;        /* neither of the two: an empty file */
	uint32_t link_type;
	uint64_t packet; /* number of the next one */
	struct capture_identity identity;
	char buffer[READ_BYTES];
};

__attribute__((format(printf, 4, 5))) static int refuse(const char *path, int rc,
		char text[CAPTURE_TEXT_BYTES], const char *format, ...)
{
	char reason[CAPTURE_TEXT_BYTES / 2];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	snprintf(text, CAPTURE_TEXT_BYTES, "capture %.*s: %s", CAPTURE_TEXT_BYTES / 2 - 16, path,
			reason);
	return rc;
}

/* pcap in either byte order, with micro- or nanoseconds, old variants too, and pcapng. */
static bool is_magic(const uint8_t at[MAGIC_BYTES])
{
	static const uint32_t known[] = {0xa1b2c3d4, 0xa1b23c4d, 0xa1b2cd34, 0x0a0d0d0a};
	uint32_t magic;

	memcpy(&magic, at, sizeof(magic));
	for (uint32_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (magic == known[i] || __builtin_bswap32(magic) == known[i])
			return true;
	}
	return false;
}

/* A pcapng file says the byte order of its first section behind its first block's length. */
static bool is_pcapng_order(const uint8_t at[MAGIC_BYTES])
{
	uint32_t magic;

	memcpy(&magic, at, sizeof(magic));
	return magic == 0x1a2b3c4d || magic == __builtin_bswap32(0x1a2b3c4d);
}

/* Size and first bytes; an empty file has none. */
static int identify(struct capture_file *f, int fd, char text[CAPTURE_TEXT_BYTES])
{
	uint8_t head[HEAD_BYTES_MAX];
	struct stat st;

	if (fstat(fd, &st) != 0)
		return refuse(f->path, -errno, text, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(f->path, -EMEDIUMTYPE, text, "not a regular file");
	ssize_t got = pread(fd, head, sizeof(head), 0);
	if (got < 0)
		return refuse(f->path, -errno, text, "%s", strerror(errno));
	f->identity = (struct capture_identity){
			(uint64_t)st.st_size, (uint32_t)got, crc32c(0, head, (size_t)got)};
	if (got == 0)
		return 0;
	if (got < MAGIC_BYTES || !is_magic(head))
		return refuse(f->path, -EMEDIUMTYPE, text, "neither pcap nor pcapng");
	f->is_pcapng = head[0] == 0x0a;
	bool is_whole = f->is_pcapng ? got >= 8 + MAGIC_BYTES && is_pcapng_order(head + 8)
				     : got >= (ssize_t)sizeof(struct pcap_file_header);
	if (!is_whole)
		return refuse(f->path, -EMEDIUMTYPE, text, "neither pcap nor pcapng");
	return 0;
}

static int open_pcap(struct capture_file *f, char text[CAPTURE_TEXT_BYTES])
{
	char reason[PCAP_ERRBUF_SIZE];

	f->pcap = pcap_fopen_offline_with_tstamp_precision(
			f->stream, PCAP_TSTAMP_PRECISION_NANO, reason);
	if (f->pcap == NULL)
		return refuse(f->path, -ENOTSUP, text, "%s", reason);
	/* Records have 16 bits for it, and so have all that are given out. */
	int link_type = pcap_datalink(f->pcap);
	f->link_type = link_type < UINT16_MAX ? (uint32_t)link_type : UINT16_MAX;
	return 0;
}

static int open_stream(struct capture_file *f, char text[CAPTURE_TEXT_BYTES])
{
	/* Not blocking: a pipe must not hold us before it is seen to be none of a file. */
	int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return refuse(f->path, -errno, text, "%s", strerror(errno));
	int rc = identify(f, fd, text);
	if (rc == 0)
		f->stream = fdopen(fd, "rb");
	if (rc == 0 && f->stream == NULL)
		rc = refuse(f->path, -errno, text, "%s", strerror(errno));
	if (rc != 0) {
		close(fd);
		return rc;
	}
	__fsetlocking(f->stream, FSETLOCKING_BYCALLER); /* it has one user */
	setvbuf(f->stream, f->buffer, _IOFBF, sizeof(f->buffer));
	posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	if (f->identity.head_bytes == 0)
		return 0;
	return f->is_pcapng ? pcapng_create(&f->pcapng, f->stream) : open_pcap(f, text);
}

int capture_file_open(
		struct capture_file **out, const char *path, char text[CAPTURE_TEXT_BYTES])
{
	struct capture_file *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return refuse(path, -ENOMEM, text, "no memory");
	f->path = strdup(path);
	int rc = f->path == NULL ? refuse(path, -ENOMEM, text, "no memory") : open_stream(f, text);
	if (rc != 0) {
		capture_file_close(f);
		return rc;
	}
	*out = f;
	return 0;
}

void capture_file_close(struct capture_file *f)
{
	if (f == NULL)
		return;
	pcapng_destroy(f->pcapng);
	if (f->pcap != NULL)
		pcap_close(f->pcap);
	else if (f->stream != NULL)
		fclose(f->stream);
	free(f->path);
	free(f);
}

void capture_file_identify(const struct capture_file *f, struct capture_identity *identity)
{
	*identity = f->identity;
}

int capture_file_check(const struct capture_file *f, const struct capture_identity *expected,
		char text[CAPTURE_TEXT_BYTES])
{
	uint8_t head[HEAD_BYTES_MAX];

	if (f->identity.size_bytes < expected->size_bytes)
		return refuse(f->path, -EBADMSG, text,
				"shorter than at the checkpoint: %llu bytes, were %llu",
				(unsigned long long)f->identity.size_bytes,
				(unsigned long long)expected->size_bytes);
	CHECK(expected->head_bytes <= HEAD_BYTES_MAX);
	ssize_t got = pread(fileno(f->stream), head, expected->head_bytes, 0);
	if (got != (ssize_t)expected->head_bytes ||
			crc32c(0, head, (size_t)got) != expected->head_crc)
		return refuse(f->path, -EBADMSG, text,
				"another file than at the checkpoint: its first %u bytes differ",
				expected->head_bytes);
	return 0;
}

struct capture_mark capture_file_mark(const struct capture_file *f)
{
	off_t offset = ftello(f->stream);

	return (struct capture_mark){offset < 0 ? 0 : (uint64_t)offset, f->packet};
}

static void pass_over(void *user, const struct capture_packet *packet)
{
	(void)user;
	(void)packet;
}

int capture_file_skip(struct capture_file *f, uint64_t count, char text[CAPTURE_TEXT_BYTES])
{
	enum { SKIP_COUNT_MAX = 65536 };
	uint64_t end = f->packet + count;

	while (f->packet < end) {
		uint64_t left = end - f->packet;
		uint32_t some = left < SKIP_COUNT_MAX ? (uint32_t)left : SKIP_COUNT_MAX;

		if (capture_file_read(f, some, pass_over, NULL, text) != CAPTURE_GOES_ON)
			break;
	}
	if (f->packet < end)
		return refuse(f->path, -EBADMSG, text,
				"ends before packet %llu, where the checkpoint stands",
				(unsigned long long)end);
	return 0;
}

int capture_file_seek(struct capture_file *f, struct capture_mark mark,
		char text[CAPTURE_TEXT_BYTES])
{
	CHECK(f->packet == 0);
	if (mark.packet == 0)
		return 0;
	if (mark.offset > f->identity.size_bytes)
		return refuse(f->path, -EBADMSG, text, "ends before offset %llu",
				(unsigned long long)mark.offset);
	if (f->pcap != NULL) {
		f->packet = mark.packet;
		if (fseeko(f->stream, (off_t)mark.offset, SEEK_SET) != 0)
			return refuse(f->path, -errno, text, "%s", strerror(errno));
		return 0;
	}
	int rc = capture_file_skip(f, mark.packet, text);
	if (rc == 0 && capture_file_mark(f).offset != mark.offset)
		rc = refuse(f->path, -EBADMSG, text,
				"packet %llu begins at another offset than at the checkpoint",
				(unsigned long long)mark.packet);
	return rc;
}

int64_t capture_time_clamp(__int128 ns)
{
	if (ns > time_max_ns)
		return time_max_ns;
	return ns < -time_max_ns ? -time_max_ns : (int64_t)ns;
}

/* The seconds of a pcap file are 32 bits without a sign (until 2106); libpcap gives them one.  With
 * nanosecond precision tv_usec holds nanoseconds; in a damaged file both hold anything. */
static int64_t time_of(const struct timeval *t)
{
	return capture_time_clamp((__int128)(uint32_t)t->tv_sec * 1000000000 + t->tv_usec);
}

/* What a batch of packets goes through; libpcap calls `on_packet` for each. */
struct batch {
	struct capture_file *file;
	capture_packet_fn take;
	void *user;
};

static void on_packet(u_char *user, const struct pcap_pkthdr *header, const u_char *bytes)
{
	const struct batch *b = (const struct batch *)(void *)user;
	const struct capture_packet packet = {
			time_of(&header->ts), bytes, header->caplen, header->len,
			b->file->link_type};

	b->file->packet++;
	b->take(b->user, &packet);
}

enum capture_end capture_file_read(struct capture_file *f, uint32_t count_max,
		capture_packet_fn take, void *user, char text[CAPTURE_TEXT_BYTES])
{
	struct batch batch = {f, take, user};
	char reason[CAPTURE_TEXT_BYTES];

	CHECK(count_max > 0);
	CHECK(count_max <= INT32_MAX);
	if (f->pcapng != NULL) {
		enum capture_end end = pcapng_read(
				f->pcapng, count_max, take, user, &f->packet, reason);

		if (end == CAPTURE_WAS_CUT || end == CAPTURE_UNREADABLE)
			refuse(f->path, 0, text, "after packet %llu: %s",
					(unsigned long long)f->packet, reason);
		return end;
	}
	if (f->pcap == NULL)
		return CAPTURE_ENDED;
	int rc = pcap_dispatch(f->pcap, (int)count_max, on_packet, (u_char *)&batch);
	if (rc > 0)
		return CAPTURE_GOES_ON;
	if (rc == 0)
		return CAPTURE_ENDED;
	refuse(f->path, 0, text, "after packet %llu: %s", (unsigned long long)f->packet,
			pcap_geterr(f->pcap));
	return ferror(f->stream) != 0 ? CAPTURE_UNREADABLE : CAPTURE_WAS_CUT;
}
