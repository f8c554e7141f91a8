/* planted_leak: forgets memory.  The test passes; only the report of the sanitizer tells. */

#include <criterion/criterion.h>

#include <stdlib.h>

Test(planted, leak)
{
	void *volatile forgotten = malloc(100);

	cr_assert_not_null(forgotten);
	forgotten = NULL;
}
