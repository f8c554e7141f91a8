#include "dataplane/base/crc.h"

#include <isa-l/crc.h>

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	const size_t piece_max = 1u << 30; /* ISA-L takes an int */

	crc = ~crc;
	while (size > 0) {
		size_t piece = size < piece_max ? size : piece_max;

		crc = crc32_iscsi((unsigned char *)(uintptr_t)at, (int)piece, crc);
		at += piece;
		size -= piece;
	}
	return ~crc;
}
