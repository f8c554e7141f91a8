#pragma once

/*
 * frame_builder: captured frames, written down header by header.
 *
 * Memory   inside the struct; a builder is copied by assignment.
 */

#include <stdint.h>
#include <string.h>

enum { FRAME_BYTES_MAX = 1024 };

struct frame {
	uint8_t bytes[FRAME_BYTES_MAX];
	uint32_t size;
};

static inline void frame_add(struct frame *f, const void *bytes, uint32_t count)
{
	memcpy(f->bytes + f->size, bytes, count);
	f->size += count;
}

static inline void frame_u8(struct frame *f, uint8_t value)
{
	frame_add(f, &value, 1);
}

static inline void frame_u16(struct frame *f, uint16_t value)
{
	frame_u8(f, (uint8_t)(value >> 8));
	frame_u8(f, (uint8_t)value);
}

static inline void frame_u32(struct frame *f, uint32_t value)
{
	frame_u16(f, (uint16_t)(value >> 16));
	frame_u16(f, (uint16_t)value);
}

static inline void frame_zeros(struct frame *f, uint32_t count)
{
	memset(f->bytes + f->size, 0, count);
	f->size += count;
}

/* Ethernet from 02:00:00:00:00:01 to b8:00:00:00:00:02. */
static inline void frame_ether(struct frame *f, uint16_t type)
{
	frame_add(f, "\xb8\0\0\0\0\2\2\0\0\0\0\1", 12);
	frame_u16(f, type);
}

static inline void frame_mpls(struct frame *f, uint32_t label, uint8_t is_last)
{
	frame_u32(f, label << 12 | (uint32_t)is_last << 8 | 64);
}

/* IPv4 from 10.0.0.1 to 10.0.0.2, of `payload_bytes` behind the header. */
static inline void frame_ip4(
		struct frame *f, uint8_t protocol, uint16_t payload_bytes, uint16_t fragment)
{
	frame_u16(f, 0x4500);
	frame_u16(f, (uint16_t)(20 + payload_bytes));
	frame_u16(f, 1);
	frame_u16(f, fragment);
	frame_u8(f, 64);
	frame_u8(f, protocol);
	frame_u16(f, 0);
	frame_add(f, "\x0a\0\0\1\x0a\0\0\2", 8);
}

/* IPv6 from 2001::1 to 2001::2. */
static inline void frame_ip6(struct frame *f, uint8_t next, uint16_t payload_bytes)
{
	frame_u32(f, 0x60000000);
	frame_u16(f, payload_bytes);
	frame_u8(f, next);
	frame_u8(f, 64);
	frame_add(f, "\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	frame_add(f, "\x20\1\0\0\0\0\0\0\0\0\0\0\0\0\0\2", 16);
}

/* UDP from 4660 to 53, 12 bytes. */
static inline void frame_udp(struct frame *f)
{
	frame_u16(f, 0x1234);
	frame_u16(f, 53);
	frame_u16(f, 12);
	frame_u16(f, 0);
	frame_add(f, "abcd", 4);
}

/* TCP from 4660 to 80, 20 bytes. */
static inline void frame_tcp(struct frame *f, uint16_t flags)
{
	frame_u16(f, 0x1234);
	frame_u16(f, 80);
	frame_u32(f, 1);
	frame_u32(f, 2);
	frame_u16(f, (uint16_t)(0x5000 | flags));
	frame_u16(f, 1000);
	frame_u32(f, 0);
}

static inline void frame_ip4_udp(struct frame *f)
{
	frame_ip4(f, 17, 12, 0);
	frame_udp(f);
}

static inline void frame_ip6_udp(struct frame *f)
{
	frame_ip6(f, 17, 12);
	frame_udp(f);
}
