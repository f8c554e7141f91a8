#include "dataplane/operator/params.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static const struct weir_param params[] = {
		{"path", WEIR_TEXT, NULL, 0, 0, NULL, "file to read"},
		{"count", WEIR_INTEGER, "8", 1, 100, NULL, "how many"},
		{"skew", WEIR_REAL, "0.99", 0, 0, NULL, "zipf exponent"},
		{"follow", WEIR_BOOLEAN, "false", 0, 0, NULL, "wait for more"},
		{"size", WEIR_DURATION, "10 s", 1000000, INT64_MAX, NULL, "window"},
		{"part-bytes", WEIR_SIZE, "1 mb", 0, 1 << 30, NULL, "part size"},
		{"keys", WEIR_CHOICE, "uniform", 0, 0, "uniform|zipf", "distribution"},
};
static const struct weir_operator op = {.name = "generator", .params = params, .param_count = 7};

enum { PATH, COUNT, SKEW, FOLLOW, SIZE, PART_BYTES, KEYS };

static struct weir_value values[7];
static uint32_t culprit;
static char error[WEIR_ERROR_BYTES];

static int resolve(const char *name, const char *text)
{
	struct param_text given[] = {{"path", "a.pcap"}, {name, text}};

	return params_resolve(&op, given, 2, values, &culprit, error);
}

static void expect_refused(const char *name, const char *text, const char *message)
{
	cr_expect_eq(resolve(name, text), -EINVAL, "%s: %s", name, text);
	cr_expect_eq(culprit, 1);
	cr_expect_str_eq(error, message);
}

Test(params, what_is_not_given_is_the_preset)
{
	struct param_text given[] = {{"path", "a.pcap"}};

	cr_assert_eq(params_resolve(&op, given, 1, values, &culprit, error), 0, "%s", error);
	cr_expect_str_eq(values[PATH].text, "a.pcap");
	cr_expect_eq(values[COUNT].integer, 8);
	cr_expect_float_eq(values[SKEW].real, 0.99, 1e-12);
	cr_expect_eq(values[FOLLOW].integer, 0);
	cr_expect_eq(values[SIZE].integer, INT64_C(10000000000));
	cr_expect_eq(values[PART_BYTES].integer, 1 << 20);
	cr_expect_eq(values[KEYS].integer, 0);
}

Test(params, each_type_reads_its_text_and_keeps_it)
{
	cr_expect_eq(resolve("count", "100"), 0);
	cr_expect_eq(values[COUNT].integer, 100);
	cr_expect_str_eq(values[COUNT].text, "100");
	cr_expect_eq(resolve("skew", "1.5e-1"), 0);
	cr_expect_float_eq(values[SKEW].real, 0.15, 1e-12);
	cr_expect_eq(resolve("follow", "True"), 0);
	cr_expect_eq(values[FOLLOW].integer, 1);
	cr_expect_eq(resolve("size", "250 ms"), 0);
	cr_expect_eq(values[SIZE].integer, 250000000);
	cr_expect_eq(resolve("part-bytes", "32 kb"), 0);
	cr_expect_eq(values[PART_BYTES].integer, 32768);
	cr_expect_eq(resolve("keys", "ZIPF"), 0);
	cr_expect_eq(values[KEYS].integer, 1);
}

Test(params, a_text_of_another_type_is_refused_by_name)
{
	expect_refused("count", "many",
			"count: \"many\" is not a whole number; expected such as 8");
	expect_refused("count", "8 ", "count: \"8 \" is not a whole number; expected such as 8");
	expect_refused("count", "", "count: \"\" is not a whole number; expected such as 8");
	expect_refused("skew", "nan", "skew: \"nan\" is not a number; expected such as 0.75");
	expect_refused("follow", "1",
			"follow: \"1\" is neither true nor false; expected true or false");
	expect_refused("size", "10 parsecs",
			"size: \"10 parsecs\" is not a duration; expected a whole number and ns, "
			"us, ms, "
			"s, min, h or d, such as \"10 s\"");
	expect_refused("part-bytes", "1.5 kb",
			"part-bytes: \"1.5 kb\" is not a size; expected a whole number and b, kb, "
			"mb, gb "
			"or tb, such as \"32 kb\"");
	expect_refused("keys", "normal",
			"keys: \"normal\" is not known; expected one of uniform|zipf");
	expect_refused("keys", "", "keys: \"\" is not known; expected one of uniform|zipf");
}

Test(params, what_is_out_of_bounds_is_refused_with_the_bounds)
{
	expect_refused("count", "0", "count: \"0\" is too small; expected 1 to 100");
	expect_refused("count", "101", "count: \"101\" is too large; expected 1 to 100");
	expect_refused("count", "9223372036854775808",
			"count: \"9223372036854775808\" does not fit; expected a number of at most "
			"63 bits");
	expect_refused("size", "999 us", "size: \"999 us\" is too small; expected 1 ms or more");
	expect_refused("part-bytes", "2 gb",
			"part-bytes: \"2 gb\" is too large; expected 0 b to 1 gb");
}

Test(params, an_unknown_name_is_refused_with_a_guess_or_all_names)
{
	expect_refused("cuont", "1", "cuont: generator has no such parameter; did you mean count?");
	expect_refused("colour", "1",
			"colour: generator has no such parameter; expected one of path, count, "
			"skew, follow, size, part-bytes, keys");
}

Test(params, a_name_given_twice_is_refused)
{
	expect_refused("path", "b.pcap", "path: given twice; expected once");
}

Test(params, a_missing_one_without_preset_is_refused_and_no_given_one_is_to_blame)
{
	cr_expect_eq(params_resolve(&op, NULL, 0, values, &culprit, error), -EINVAL);
	cr_expect_eq(culprit, UINT32_MAX);
	cr_expect_str_eq(error, "path: missing; expected file to read");
}

Test(params, a_long_text_does_not_overrun_the_message)
{
	char text[4096];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	cr_expect_eq(resolve("keys", text), -EINVAL);
	cr_expect_eq(resolve(text, "1"), -EINVAL);
	cr_expect_lt(strlen(error), WEIR_ERROR_BYTES);
}
