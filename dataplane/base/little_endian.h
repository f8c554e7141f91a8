#pragma once

/*
 * little_endian: numbers in files and messages, least byte first, at any alignment.
 *
 * Place    base.
 * Thread   any.
 * Memory   none; callers have checked that the bytes are there.
 */

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void put_u32(uint8_t *at, uint32_t value)
{
	value = htole32(value);
	memcpy(at, &value, sizeof(value));
}

static inline void put_u64(uint8_t *at, uint64_t value)
{
	value = htole64(value);
	memcpy(at, &value, sizeof(value));
}

static inline uint32_t get_u32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static inline uint64_t get_u64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}
