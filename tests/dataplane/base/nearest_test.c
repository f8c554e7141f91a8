#include "dataplane/base/nearest.h"

#include <criterion/criterion.h>

static const char *guess(const char *word)
{
	static const char *const known[] = {"path", "follow", "max-records", "rate"};
	struct nearest n;

	nearest_begin(&n, word);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		nearest_offer(&n, known[i]);
	const char *best = nearest_best(&n);
	return best == NULL ? "" : best;
}

Test(nearest, one_slip_finds_the_word_that_was_meant)
{
	cr_expect_str_eq(guess("pth"), "path");
	cr_expect_str_eq(guess("paht"), "path");
	cr_expect_str_eq(guess("Path"), "path");
	cr_expect_str_eq(guess("max_record"), "max-records");
}

Test(nearest, a_word_far_from_all_finds_none)
{
	cr_expect_str_eq(guess("window"), "");
	cr_expect_str_eq(guess(""), "");
	cr_expect_str_eq(guess("x"), "");
}

Test(nearest, a_very_long_word_finds_none)
{
	char word[1000];

	memset(word, 'a', sizeof(word));
	word[sizeof(word) - 1] = '\0';
	cr_expect_str_eq(guess(word), "");
}
