/* planted_shift: shifts an int by more bits than it has. */

#include <criterion/criterion.h>

Test(planted, shift)
{
	volatile int bits = 40;

	cr_expect_neq(1 << bits, -1);
}
