#include "tests/support/capture_writer.h"

#include "dataplane/base/check.h"

#include <stdlib.h>

static void put32(struct capture_writer *w, uint32_t value)
{
	if (w->format == CAPTURE_PCAP_SWAPPED)
		value = __builtin_bswap32(value);
	CHECK(fwrite(&value, sizeof(value), 1, w->file) == 1);
}

static void put_bytes(struct capture_writer *w, const void *bytes, uint32_t size)
{
	CHECK(fwrite(bytes, 1, size, w->file) == size);
}

void capture_writer_add_block(
		struct capture_writer *w, uint32_t type, const void *bytes, uint32_t size)
{
	uint32_t padded = (size + 3) / 4 * 4;

	put32(w, type);
	put32(w, padded + 12);
	put_bytes(w, bytes, size);
	put_bytes(w, "\0\0\0", padded - size);
	put32(w, padded + 12);
}

void capture_writer_add_interface(
		struct capture_writer *w, uint32_t link_type, uint32_t snap, uint8_t resolution)
{
	struct {
		uint32_t link_type, snap;
		uint16_t code, length; /* if_tsresol */
		uint8_t resolution, padding[3];
		uint32_t end;
	} block = {link_type, snap, 9, 1, resolution, {0}, 0};

	capture_writer_add_block(w, 1, &block, sizeof(block));
}

void capture_writer_open(struct capture_writer *w, const char *path, enum capture_format format,
		uint32_t link_type)
{
	static const uint32_t version_pcap[] = {0x00040002, 0, 0, 262144};

	w->format = format;
	w->file = fopen(path, "wb");
	CHECK(w->file != NULL);
	if (format == CAPTURE_PCAPNG) {
		static const uint32_t section[] = {0x1a2b3c4d, 1, UINT32_MAX, UINT32_MAX};

		capture_writer_add_block(w, 0x0a0d0d0a, section, sizeof(section));
		capture_writer_add_interface(w, link_type, 262144, 9);
		return;
	}
	put32(w, format == CAPTURE_PCAP_NS ? 0xa1b23c4d : 0xa1b2c3d4);
	if (format == CAPTURE_PCAP_SWAPPED)
		put_bytes(w, "\0\2\0\4", 4);
	else
		put32(w, version_pcap[0]);
	for (int i = 1; i < 4; i++)
		put32(w, version_pcap[i]);
	put32(w, link_type);
}

static void add_enhanced(struct capture_writer *w, uint32_t interface, uint64_t ticks,
		const void *bytes, uint32_t captured_bytes, uint32_t original_bytes)
{
	struct {
		uint32_t interface, high, low, captured_bytes, original_bytes;
		uint8_t bytes[2048];
	} block = {interface, (uint32_t)(ticks >> 32), (uint32_t)ticks, captured_bytes,
			original_bytes, {0}};

	CHECK(captured_bytes <= sizeof(block.bytes));
	memcpy(block.bytes, bytes, captured_bytes);
	capture_writer_add_block(w, 6, &block, 20 + captured_bytes);
}

void capture_writer_add_on(struct capture_writer *w, uint32_t interface, uint64_t ticks,
		const void *bytes, uint32_t size)
{
	add_enhanced(w, interface, ticks, bytes, size, size);
}

void capture_writer_add(struct capture_writer *w, int64_t time_ns, const void *bytes,
		uint32_t captured_bytes, uint32_t original_bytes)
{
	if (w->format == CAPTURE_PCAPNG) {
		add_enhanced(w, 0, (uint64_t)time_ns, bytes, captured_bytes, original_bytes);
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
