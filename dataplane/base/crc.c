#include "dataplane/base/crc.h"

#include <isa-l/crc.h>
#include <string.h>

/* ISA-L's AVX-512 path leaves the upper halves of the vector registers in use; until they are not,
 * every SSE instruction waits for them: 0.2 us for each sum, on whoever comes next. */
static void leave_vectors(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper" ::: "memory");
#endif
}

#if defined(__x86_64__)
/* Up to here the processor's own instruction is done 7 ns before ISA-L (8 and 16 ns for 64 bytes,
 * 25 and 32 for 192); at 256 its vector path has overtaken it (33 and 17 ns). */
enum { SHORT_BYTES_MAX = 192 };

__attribute__((target("sse4.2"))) static uint32_t sum_short(
		uint32_t crc, const uint8_t *at, size_t size)
{
	uint64_t wide = crc, word;

	for (; size >= 8; size -= 8, at += 8) {
		memcpy(&word, at, sizeof(word));
		wide = __builtin_ia32_crc32di(wide, word);
	}
	crc = (uint32_t)wide;
	for (; size > 0; size--, at++)
		crc = __builtin_ia32_crc32qi(crc, *at);
	return crc;
}
#endif

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

#if defined(__x86_64__)
	if (size <= SHORT_BYTES_MAX && __builtin_cpu_supports("sse4.2"))
		return ~sum_short(~crc, at, size);
#endif
	const size_t piece_max = 1u << 30; /* ISA-L takes an int */

	crc = ~crc;
	while (size > 0) {
		size_t piece = size < piece_max ? size : piece_max;

		crc = crc32_iscsi((unsigned char *)(uintptr_t)at, (int)piece, crc);
		at += piece;
		size -= piece;
	}
	leave_vectors();
	return ~crc;
}

uint32_t crc32c_around(const uint8_t *bytes, size_t size, size_t sum_at)
{
	static const uint8_t zeros[4];
	uint32_t crc = crc32c(0, bytes, sum_at);

	crc = crc32c(crc, zeros, sizeof(zeros));
	return crc32c(crc, bytes + sum_at + 4, size - sum_at - 4);
}
