/* Any bytes as a frame from the wire, to a link in use: refused, or taken without harm. */

#include "dataplane/channel/net_link.h"

#include "dataplane/base/check.h"
#include "dataplane/base/crc.h"
#include "dataplane/channel/transport.h"
#include "dataplane/wire/buf.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TOKEN = 5 };

struct world {
	struct buf_pool *pool;
	struct ring_channel *out, *in;
	struct net_link *link;
};

static void open_world(struct world *w)
{
	struct net_address a;
	struct net_link_config config = {.token = TOKEN, .out = &w->out, .out_count = 1,
			.in = &w->in, .in_count = 1, .window_frames = 64,
			.connect_timeout_ns = 1000, .peer_timeout_ns = 1000};

	CHECK(net_address_parse("02:00:00:00:00:01 10.0.0.1 6125 700 512 1", &a) == 0);
	CHECK(net_path_init(&config.path, &a, &a, NULL) == 0);
	config.path.has_bare_bodies = true;
	CHECK(buf_pool_from_heap(&w->pool, 2048, 8) == 0);
	CHECK(ring_channel_create(&w->out, &(struct channel_config){4, 4, false}) == 0);
	CHECK(ring_channel_create(&w->in, &(struct channel_config){4, 4, false}) == 0);
	config.pool = w->pool;
	CHECK(net_link_create(&w->link, &config) == 0);
}

static void close_world(struct world *w)
{
	net_link_destroy(w->link);
	ring_channel_destroy(w->out);
	ring_channel_destroy(w->in);
	buf_pool_destroy(w->pool);
}

/* Without the right checksum no input would come far. */
static void mend(uint8_t *bytes, uint32_t size)
{
	const uint64_t token = TOKEN;

	if (size < 24)
		return;
	memcpy(bytes, "\x77\x72\x03", 3);
	memset(bytes + 4, 0, 4);
	memcpy(bytes + 8, &token, 8);
	uint32_t crc = (bytes[3] & 0x80) != 0 ? 0 : crc32c(0, bytes, size);
	memcpy(bytes + 4, &crc, 4);
}

static void take(struct world *w, const uint8_t *bytes, uint32_t size, uint64_t now_ns)
{
	struct frame_out frames[8] = {0};
	struct net_frame f;

	if (net_frame_decode(&f, bytes, size) == 0 && f.token == TOKEN)
		net_link_receive(w->link, &f, size, now_ns);
	net_link_pump(w->link, now_ns);
	for (int lane = NET_LANE_CONTROL; lane <= NET_LANE_DATA; lane++) {
		uint32_t count = net_link_send(
				w->link, (enum net_lane)lane, frames, 8, now_ns);

		for (uint32_t i = 0; i < count; i++) {
			if (frames[i].owner != NULL)
				buf_release(frames[i].owner);
		}
	}
}

/* The input is a list of frames, each after its length in one byte times four. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w;
	uint8_t bytes[1024];
	const uint8_t *payload;
	uint32_t payload_bytes;
	struct net_address a;
	size_t at = 0;
	uint64_t now_ns = 1;

	CHECK(net_address_parse("02:00:00:00:00:01 10.0.0.1 6125 700 512 1", &a) == 0);
	(void)net_path_strip(&a, data, (uint32_t)size, &payload, &payload_bytes);
	open_world(&w);
	while (at < size) {
		uint32_t length = data[at] * 4u;

		at++;
		if (length > size - at)
			length = (uint32_t)(size - at);
		memcpy(bytes, data + at, length);
		mend(bytes, length);
		take(&w, bytes, length, now_ns++);
		at += length;
	}
	close_world(&w);
	return 0;
}
