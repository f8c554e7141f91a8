/* planted_overflow: reads one byte behind an allocation. */

#include <criterion/criterion.h>

#include <stdlib.h>

Test(planted, overflow)
{
	volatile size_t behind = 100;
	char *bytes = calloc(behind, 1);

	cr_assert_not_null(bytes);
	cr_expect_eq(bytes[behind], 0);
	free(bytes);
}
