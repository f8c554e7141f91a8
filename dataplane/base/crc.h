#pragma once

/* crc: CRC32C (Castagnoli) by ISA-L, as stored beside every checkpoint byte. */

#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 at the beginning) over `size` bytes. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t size);

/* Of `size` bytes that hold their own sum at `sum_at`, whose four bytes count as zeros. */
uint32_t crc32c_around(const uint8_t *bytes, size_t size, size_t sum_at);
