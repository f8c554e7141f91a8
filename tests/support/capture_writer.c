#include "tests/support/capture_writer.h"

#include "dataplane/base/check.h"

#include <ftw.h>
#include <stdbool.h>
#include <stdlib.h>

static bool is_swapped(const struct capture_writer *w)
{
	return w->format == CAPTURE_PCAP_SWAPPED || w->format == CAPTURE_PCAPNG_SWAPPED;
}

static bool is_pcapng(const struct capture_writer *w)
{
	return w->format == CAPTURE_PCAPNG || w->format == CAPTURE_PCAPNG_SWAPPED;
}

static void put_bytes(struct capture_writer *w, const void *bytes, uint32_t size)
{
	CHECK(fwrite(bytes, 1, size, w->file) == size);
}

static void put32(struct capture_writer *w, uint32_t value)
{
	value = is_swapped(w) ? __builtin_bswap32(value) : value;
	put_bytes(w, &value, sizeof(value));
}

static void put16(struct capture_writer *w, uint16_t value)
{
	value = is_swapped(w) ? __builtin_bswap16(value) : value;
	put_bytes(w, &value, sizeof(value));
}

static void put_padded(struct capture_writer *w, const void *bytes, uint32_t size)
{
	put_bytes(w, bytes, size);
	put_bytes(w, "\0\0\0", (4 - size % 4) % 4);
}

static void begin_block(struct capture_writer *w, uint32_t type, uint32_t body_bytes)
{
	put32(w, type);
	put32(w, (body_bytes + 3) / 4 * 4 + 12);
}

static void end_block(struct capture_writer *w, uint32_t body_bytes)
{
	put32(w, (body_bytes + 3) / 4 * 4 + 12);
}

void capture_writer_add_block(
		struct capture_writer *w, uint32_t type, const void *bytes, uint32_t size)
{
	begin_block(w, type, size);
	put_padded(w, bytes, size);
	end_block(w, size);
}

void capture_writer_add_interface(
		struct capture_writer *w, uint32_t link_type, uint32_t snap, uint8_t resolution)
{
	begin_block(w, 1, 20);
	put16(w, (uint16_t)link_type);
	put16(w, 0);
	put32(w, snap);
	put16(w, 9); /* if_tsresol */
	put16(w, 1);
	put_padded(w, &resolution, 1);
	put32(w, 0);
	end_block(w, 20);
}

void capture_writer_add_section(struct capture_writer *w, enum capture_format format)
{
	w->format = format;
	begin_block(w, 0x0a0d0d0a, 16);
	put32(w, 0x1a2b3c4d);
	put16(w, 1);
	put16(w, 0);
	put32(w, UINT32_MAX);
	put32(w, UINT32_MAX);
	end_block(w, 16);
}

void capture_writer_open(struct capture_writer *w, const char *path, enum capture_format format,
		uint32_t link_type)
{
	w->format = format;
	w->file = fopen(path, "wb");
	CHECK(w->file != NULL);
	if (is_pcapng(w)) {
		capture_writer_add_section(w, format);
		capture_writer_add_interface(w, link_type, 262144, 9);
		return;
	}
	put32(w, format == CAPTURE_PCAP_NS ? 0xa1b23c4d : 0xa1b2c3d4);
	put16(w, 2);
	put16(w, 4);
	put32(w, 0);
	put32(w, 0);
	put32(w, 262144);
	put32(w, link_type);
}

static void add_enhanced(struct capture_writer *w, uint32_t interface, uint64_t ticks,
		const void *bytes, const uint32_t sizes[2])
{
	begin_block(w, 6, 20 + sizes[0]);
	put32(w, interface);
	put32(w, (uint32_t)(ticks >> 32));
	put32(w, (uint32_t)ticks);
	put32(w, sizes[0]);
	put32(w, sizes[1]);
	put_padded(w, bytes, sizes[0]);
	end_block(w, 20 + sizes[0]);
}

void capture_writer_add_on(struct capture_writer *w, uint32_t interface, uint64_t ticks,
		const void *bytes, uint32_t size)
{
	add_enhanced(w, interface, ticks, bytes, (uint32_t[]){size, size});
}

void capture_writer_add(struct capture_writer *w, int64_t time_ns, const void *bytes,
		uint32_t captured_bytes, uint32_t original_bytes)
{
	if (is_pcapng(w)) {
		add_enhanced(w, 0, (uint64_t)time_ns, bytes,
				(uint32_t[]){captured_bytes, original_bytes});
		return;
	}
	put32(w, (uint32_t)(time_ns / 1000000000));
	put32(w, (uint32_t)(time_ns % 1000000000 / (w->format == CAPTURE_PCAP_NS ? 1 : 1000)));
	put32(w, captured_bytes);
	put32(w, original_bytes);
	put_bytes(w, bytes, captured_bytes);
}

void capture_writer_close(struct capture_writer *w)
{
	CHECK(fclose(w->file) == 0);
}

void make_test_directory(char path[256])
{
	snprintf(path, 256, "/tmp/weir-test-XXXXXX");
	CHECK(mkdtemp(path) != NULL);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	return remove(path);
}

void remove_test_directory(const char *path)
{
	CHECK(strncmp(path, "/tmp/weir-test-", 15) == 0);
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void write_udp_capture(const char *path, enum capture_format format, uint32_t count,
		uint32_t flows, int64_t start_ns, int64_t step_ns)
{
	struct capture_writer w;

	capture_writer_open(&w, path, format, 1);
	for (uint32_t i = 0; i < count; i++) {
		struct frame f = {.size = 0};

		frame_ether(&f, 0x0800);
		frame_ip4_udp(&f);
		f.bytes[34] = (uint8_t)(i % flows >> 8);
		f.bytes[35] = (uint8_t)(i % flows);
		capture_writer_add(&w, start_ns + i * step_ns, f.bytes, f.size, f.size + i % 7);
	}
	capture_writer_close(&w);
}
