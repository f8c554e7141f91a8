#include "dataplane/base/units.h"

#include "dataplane/base/check.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The words of one unit; the first is the one that is printed. */
struct unit {
	int64_t factor;
	const char *words;
};

#define SECOND_NS INT64_C(1000000000)

/* Largest first: printing takes the first that divides. */
static const struct unit duration_units[] = {
		{86400 * SECOND_NS, "d day days"},
		{3600 * SECOND_NS, "h hour hours"},
		{60 * SECOND_NS, "min m minute minutes"},
		{SECOND_NS, "s sec secs second seconds"},
		{1000000, "ms milli millis millisecond milliseconds"},
		{1000, "us micro micros microsecond microseconds"},
		{1, "ns nano nanos nanosecond nanoseconds"},
};

static const struct unit size_units[] = {
		{INT64_C(1) << 40, "tb t tib tebibytes"},
		{INT64_C(1) << 30, "gb g gib gibibytes"},
		{INT64_C(1) << 20, "mb m mib mebibytes"},
		{INT64_C(1) << 10, "kb k kib kibibytes"},
		{1, "b byte bytes"},
};

enum {
	DURATION_UNITS_COUNT = sizeof(duration_units) / sizeof(duration_units[0]),
	SIZE_UNITS_COUNT = sizeof(size_units) / sizeof(size_units[0]),
	MILLISECONDS_INDEX = 4,
	BYTES_INDEX = SIZE_UNITS_COUNT - 1,
};

static bool is_one_of(const char *words, const char *word, size_t size)
{
	while (*words != '\0') {
		size_t length = strcspn(words, " ");

		if (length == size && strncasecmp(words, word, size) == 0)
			return true;
		words += length;
		words += strspn(words, " ");
	}
	return false;
}

static const struct unit *find_unit(
		const struct unit *units, int count, const char *word, size_t size)
{
	for (int i = 0; i < count; i++) {
		if (is_one_of(units[i].words, word, size))
			return &units[i];
	}
	return NULL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static int parse(const char *text, const struct unit *units, int count, int preset, int64_t *value)
{
	const char *at = text;
	const struct unit *unit = &units[preset];
	int64_t number = 0;
	bool fits = true;

	while (is_blank(*at))
		at++;
	if (!isdigit((unsigned char)*at))
		return -EINVAL;
	for (; isdigit((unsigned char)*at); at++) {
		fits = fits && !__builtin_mul_overflow(number, 10, &number) &&
		       !__builtin_add_overflow(number, *at - '0', &number);
	}
	while (is_blank(*at))
		at++;

	size_t size = strlen(at);
	while (size > 0 && is_blank(at[size - 1]))
		size--;
	if (size > 0)
		unit = find_unit(units, count, at, size);
	if (unit == NULL)
		return -EINVAL;
	if (!fits || __builtin_mul_overflow(number, unit->factor, &number))
		return -ERANGE;
	*value = number;
	return 0;
}

int units_parse_duration(const char *text, int64_t *ns)
{
	return parse(text, duration_units, DURATION_UNITS_COUNT, MILLISECONDS_INDEX, ns);
}

int units_parse_size(const char *text, int64_t *bytes)
{
	return parse(text, size_units, SIZE_UNITS_COUNT, BYTES_INDEX, bytes);
}

static void print(int64_t value, const struct unit *unit, char *text, size_t size)
{
	while (value % unit->factor != 0)
		unit++; /* the last factor is 1 */
	snprintf(text, size, "%" PRId64 " %.*s", value / unit->factor,
			(int)strcspn(unit->words, " "), unit->words);
}

void units_print_duration(int64_t ns, char *text, size_t size)
{
	CHECK(size > 0);
	print(ns, ns == 0 ? &duration_units[MILLISECONDS_INDEX] : duration_units, text, size);
}

void units_print_size(int64_t bytes, char *text, size_t size)
{
	CHECK(size > 0);
	print(bytes, bytes == 0 ? &size_units[BYTES_INDEX] : size_units, text, size);
}
