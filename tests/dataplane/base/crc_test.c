/* The sum that frames and files carry. */

#include "dataplane/base/crc.h"

#include <criterion/criterion.h>
#include <string.h>

static uint32_t slow_crc32c(uint32_t crc, const uint8_t *bytes, size_t size)
{
	crc = ~crc;
	for (size_t i = 0; i < size; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (0x82f63b78u & (0u - (crc & 1)));
	}
	return ~crc;
}

Test(crc, of_bytes_that_hold_it_takes_its_place_for_zeros)
{
	uint8_t bytes[16] = {1, 2, 3, 4, 0, 0, 0, 0, 5};
	uint32_t crc = crc32c(0, bytes, sizeof(bytes));

	for (uint32_t i = 4; i < 8; i++)
		bytes[i] = 0xff;
	cr_assert_eq(crc32c_around(bytes, sizeof(bytes), 4), crc);
	bytes[8]++;
	cr_assert_neq(crc32c_around(bytes, sizeof(bytes), 4), crc);
}

Test(crc, is_the_one_of_castagnoli)
{
	uint8_t bytes[2048];

	cr_assert_eq(crc32c(0, "123456789", 9), 0xe3069283u);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 37 + i / 256);
	for (size_t size = 0; size < sizeof(bytes); size += 1 + size / 9)
		cr_assert_eq(crc32c(7, bytes, size), slow_crc32c(7, bytes, size), "%zu", size);
}

Test(crc, goes_on_where_it_ended)
{
	uint8_t bytes[999];

	memset(bytes, 5, sizeof(bytes));
	cr_assert_eq(crc32c(crc32c(0, bytes, 400), bytes + 400, 599),
			crc32c(0, bytes, sizeof(bytes)));
}

#if defined(__x86_64__)
/* The components of the processor's state that are not as they were at its start: 2 and 6 are the
 * upper halves of the vector registers that SSE code shares. */
__attribute__((target("xsave"))) static uint64_t state_in_use(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
	return (uint64_t)high << 32 | low;
}

static bool can_ask_for_state(void)
{
	uint32_t a = 1, b, c = 0, d;

	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	if ((c >> 27 & 1) == 0)
		return false;
	a = 0xd;
	c = 1;
	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	return (a >> 2 & 1) != 0;
}

Test(crc, does_not_slow_down_who_comes_next)
{
	static const uint8_t bytes[4096];

	if (!can_ask_for_state())
		cr_skip_test("this processor does not tell");
	uint32_t crc = crc32c(0, bytes, sizeof(bytes));
	uint64_t used = state_in_use();
	cr_assert_eq(used & (1u << 2 | 1u << 6), 0, "%lx", used);
	cr_assert_neq(crc, 0);
}
#endif
