#include "dataplane/base/units.h"

#include <criterion/criterion.h>
#include <errno.h>

static int64_t duration(const char *text)
{
	int64_t ns = -1;
	int rc = units_parse_duration(text, &ns);

	cr_assert_eq(rc, 0, "\"%s\" gave %d", text, rc);
	return ns;
}

static int64_t bytes_of(const char *text)
{
	int64_t bytes = -1;
	int rc = units_parse_size(text, &bytes);

	cr_assert_eq(rc, 0, "\"%s\" gave %d", text, rc);
	return bytes;
}

Test(units, a_duration_without_unit_is_milliseconds)
{
	cr_assert_eq(duration("250"), INT64_C(250000000));
	cr_assert_eq(duration("0"), 0);
}

Test(units, every_duration_word_means_its_unit)
{
	cr_assert_eq(duration("7ns"), 7);
	cr_assert_eq(duration("7 us"), 7000);
	cr_assert_eq(duration("7 ms"), 7000000);
	cr_assert_eq(duration("7 s"), INT64_C(7000000000));
	cr_assert_eq(duration("10 seconds"), INT64_C(10000000000));
	cr_assert_eq(duration("1 min"), INT64_C(60000000000));
	cr_assert_eq(duration("2 h"), INT64_C(7200000000000));
	cr_assert_eq(duration(" 1 D "), INT64_C(86400000000000));
}

Test(units, every_size_word_is_a_power_of_1024)
{
	cr_assert_eq(bytes_of("4096"), 4096);
	cr_assert_eq(bytes_of("12 b"), 12);
	cr_assert_eq(bytes_of("32kb"), 32768);
	cr_assert_eq(bytes_of("32 KiB"), 32768);
	cr_assert_eq(bytes_of("3 m"), 3 << 20);
	cr_assert_eq(bytes_of("2 gb"), INT64_C(2) << 30);
	cr_assert_eq(bytes_of("1 tb"), INT64_C(1) << 40);
}

Test(units, other_forms_are_refused)
{
	static const char *const bad[] = {"", " ", "s", "1 fortnight", "1.5 s", "-1 s", "1 s 2 ms",
			"0x10", "1 k b", "+1"};
	int64_t value;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect_eq(units_parse_duration(bad[i], &value), -EINVAL, "\"%s\"", bad[i]);
		cr_expect_eq(units_parse_size(bad[i], &value), -EINVAL, "\"%s\"", bad[i]);
	}
	cr_expect_eq(units_parse_duration("1 kb", &value), -EINVAL);
	cr_expect_eq(units_parse_size("1 s", &value), -EINVAL);
}

Test(units, what_does_not_fit_is_a_range_error)
{
	int64_t value;

	cr_expect_eq(units_parse_duration("9223372036854775807 ns", &value), 0);
	cr_expect_eq(units_parse_duration("9223372036854775808 ns", &value), -ERANGE);
	cr_expect_eq(units_parse_duration("200000000000 s", &value), -ERANGE);
	cr_expect_eq(units_parse_size("99999999999999999999999", &value), -ERANGE);
	cr_expect_eq(units_parse_size("9000000000 gb", &value), -ERANGE);
}

Test(units, printing_takes_the_largest_unit_that_is_exact)
{
	char text[32];

	units_print_duration(INT64_C(10000000000), text, sizeof(text));
	cr_expect_str_eq(text, "10 s");
	units_print_duration(INT64_C(1500000000), text, sizeof(text));
	cr_expect_str_eq(text, "1500 ms");
	units_print_duration(INT64_C(600000000000), text, sizeof(text));
	cr_expect_str_eq(text, "10 min");
	units_print_duration(1, text, sizeof(text));
	cr_expect_str_eq(text, "1 ns");
	units_print_duration(0, text, sizeof(text));
	cr_expect_str_eq(text, "0 ms");
	units_print_size(32768, text, sizeof(text));
	cr_expect_str_eq(text, "32 kb");
	units_print_size(1000, text, sizeof(text));
	cr_expect_str_eq(text, "1000 b");
	units_print_size(0, text, sizeof(text));
	cr_expect_str_eq(text, "0 b");
}

Test(units, what_is_printed_reads_back_the_same)
{
	for (int64_t ns = 1; ns < INT64_MAX / 7; ns *= 7) {
		char text[32];

		units_print_duration(ns, text, sizeof(text));
		cr_assert_eq(duration(text), ns);
		units_print_size(ns, text, sizeof(text));
		cr_assert_eq(bytes_of(text), ns);
	}
}
