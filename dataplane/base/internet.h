#pragma once

/*
 * internet: numbers in network headers, their checksum, and MACs as text.
 *
 * Place    base.
 * Thread   any.
 * Memory   none; callers have checked that the bytes are there.
 * Errors   false: no MAC.
 */

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as internet_sum adds");

static inline void put_be16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static inline uint32_t get_be16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static inline uint32_t internet_fold(uint32_t sum)
{
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* The sum of big-endian words (RFC 1071), folded to 16 bits; an odd last byte counts as a high
 * one. */
static inline uint32_t internet_sum(uint32_t sum, const uint8_t *bytes, uint32_t count)
{
	uint64_t wide = 0; /* of little-endian words: the same with its bytes swapped */
	uint32_t four;

	for (; count >= sizeof(four); count -= sizeof(four), bytes += sizeof(four)) {
		memcpy(&four, bytes, sizeof(four));
		wide += four;
	}
	if (count >= 2)
		wide += (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
	if (count % 2 != 0)
		wide += bytes[count - 1];
	wide = (wide & UINT32_MAX) + (wide >> 32);
	wide = (wide & UINT32_MAX) + (wide >> 32);
	return internet_fold(sum + __builtin_bswap16((uint16_t)internet_fold((uint32_t)wide)));
}

/* "02:00:00:00:00:01". */
bool mac_parse(const char *text, uint8_t mac[6]);
