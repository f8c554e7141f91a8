#include "dataplane/channel/net_capture.h"

#include "dataplane/base/clock.h"
#include "dataplane/base/lines.h"

#include <errno.h>
#include <stdio.h>

enum {
	PCAP_MAGIC = 0xa1b2c3d4, /* microseconds */
	LINK_TYPE_ETHERNET = 1,
	FILE_BUFFER_BYTES = 1 << 20,
};

struct net_capture {
	struct transport transport;
	struct transport *inner;
	struct clock *clock;
	FILE *file; /* NULL: it could not be written any more */
};

struct pcap_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, accuracy, frame_bytes_max, link_type;
};

struct pcap_record {
	uint32_t seconds, microseconds, kept_bytes, frame_bytes;
};

static struct net_capture *capture_of(struct transport *t)
{
	return (struct net_capture *)t;
}

static void put(struct net_capture *c, const void *bytes, size_t size)
{
	if (c->file == NULL || size == 0 || fwrite(bytes, 1, size, c->file) == size)
		return;
	(void)fclose(c->file);
	c->file = NULL;
}

static void put_record(struct net_capture *c, uint32_t size)
{
	int64_t wall_ms = c->clock->wall_ms(c->clock);
	struct pcap_record r = {
			.seconds = (uint32_t)(wall_ms / 1000),
			.microseconds = (uint32_t)(wall_ms % 1000 * 1000),
			.kept_bytes = size,
			.frame_bytes = size,
	};

	put(c, &r, sizeof(r));
}

/* ---- the port ---- */

/* Before they are handed over: afterwards a body may be somebody else's. */
static uint32_t capture_send(struct transport *t, const struct frame_out *frames, uint32_t count)
{
	struct net_capture *c = capture_of(t);
	uint32_t taken = 0;

	for (; taken < count; taken++) {
		struct frame_out copy = frames[taken];
		long at = c->file != NULL ? ftell(c->file) : 0;

		put_record(c, copy.head_bytes + copy.body_bytes);
		put(c, copy.head, copy.head_bytes);
		put(c, copy.body, copy.body_bytes);
		if (c->inner->send(c->inner, &copy, 1) == 1)
			continue;
		/* Not taken: it comes again. */
		if (c->file != NULL)
			(void)fseek(c->file, at, SEEK_SET);
		break;
	}
	return taken;
}

static uint32_t capture_receive(struct transport *t, struct frame_in *frames, uint32_t count)
{
	struct net_capture *c = capture_of(t);
	uint32_t got = c->inner->receive(c->inner, frames, count);

	for (uint32_t i = 0; i < got; i++) {
		put_record(c, frames[i].size);
		put(c, frames[i].bytes, frames[i].size);
	}
	return got;
}

static void capture_release(struct transport *t, const struct frame_in *frames, uint32_t count)
{
	struct net_capture *c = capture_of(t);

	c->inner->release(c->inner, frames, count);
}

static void capture_reclaim(struct transport *t, uint64_t now_ns)
{
	struct net_capture *c = capture_of(t);

	c->inner->reclaim(c->inner, now_ns);
}

/* ---- life ---- */

int net_capture_create(struct net_capture **out, struct transport *inner, const char *path,
		struct clock *clock)
{
	struct pcap_header header = {
			.magic = PCAP_MAGIC,
			.major = 2,
			.minor = 4,
			.frame_bytes_max = FRAME_BYTES_MAX,
			.link_type = LINK_TYPE_ETHERNET,
	};
	struct net_capture *c = lines_alloc(sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	c->file = fopen(path, "wb");
	if (c->file == NULL) {
		int rc = -errno;

		free(c);
		return rc;
	}
	(void)setvbuf(c->file, NULL, _IOFBF, FILE_BUFFER_BYTES);
	c->transport = (struct transport){
			.send = capture_send,
			.receive = capture_receive,
			.release = capture_release,
			.reclaim = capture_reclaim,
			.counters = inner->counters,
			.frame_bytes_max = inner->frame_bytes_max,
			.can_udp_checksum = inner->can_udp_checksum,
	};
	c->inner = inner;
	c->clock = clock;
	put(c, &header, sizeof(header));
	*out = c;
	return 0;
}

struct transport *net_capture_transport(struct net_capture *c)
{
	return &c->transport;
}

void net_capture_destroy(struct net_capture *c)
{
	if (c == NULL)
		return;
	if (c->file != NULL)
		(void)fclose(c->file);
	free(c);
}
