#pragma once

/*
 * internet: numbers in network headers, their checksum, and MACs as text.
 *
 * Place    base.
 * Thread   any.
 * Memory   none; callers have checked that the bytes are there.
 * Errors   false: no MAC.
 */

#include <stdbool.h>
#include <stdint.h>

static inline void put_be16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline uint32_t get_be16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

/* The sum of big-endian words (RFC 1071), folded to 16 bits; an odd last byte counts as a high
 * one. */
static inline uint32_t internet_sum(uint32_t sum, const uint8_t *bytes, uint32_t count)
{
	uint64_t wide = sum;

	for (; count >= 2; count -= 2, bytes += 2)
		wide += get_be16(bytes);
	if (count == 1)
		wide += (uint32_t)bytes[0] << 8;
	while (wide >> 16 != 0)
		wide = (wide & 0xffff) + (wide >> 16);
	return (uint32_t)wide;
}

static inline uint32_t internet_fold(uint32_t sum)
{
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* "02:00:00:00:00:01". */
bool mac_parse(const char *text, uint8_t mac[6]);
