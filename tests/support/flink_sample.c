#include "tests/support/flink_sample.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *flink_sample_load(const char *directory, const char *name)
{
	char path[512];
	json_error_t at;

	snprintf(path, sizeof(path), "%s/%s.json", directory, name);
	json_t *recorded = json_load_file(path, 0, &at);
	cr_assert_not_null(recorded, "%s: %s", path, at.text);
	return recorded;
}

enum { PAIRS_MAX = 512 };

struct pair {
	const json_t *wanted, *got;
	char where[96];
};

struct pairs {
	uint32_t count;
	struct pair rows[PAIRS_MAX];
};

static void add_pair(struct pairs *p, const json_t *wanted, const json_t *got, const char *where,
		const char *key)
{
	cr_assert_lt(p->count, PAIRS_MAX);
	struct pair *row = &p->rows[p->count++];
	row->wanted = wanted;
	row->got = got;
	snprintf(row->where, sizeof(row->where), "%.60s.%.30s", where, key);
}

static bool is_nan(const json_t *json)
{
	return json_is_string(json) && strcmp(json_string_value(json), "NaN") == 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static bool is_alike(const json_t *wanted, const json_t *got, const char *where)
{
	/* The samples have a savepoint, we have none. */
	if (json_is_null(got) &&
			(ends_with(where, ".savepoint") || ends_with(where, ".savepointFormat")))
		return true;
	if (json_is_null(wanted) || (json_is_boolean(wanted) && json_is_boolean(got)))
		return true;
	/* A number that is not known. */
	if ((is_nan(wanted) && json_is_real(got)) || (json_is_real(wanted) && is_nan(got)))
		return true;
	return json_typeof(wanted) == json_typeof(got);
}

/* The samples of checkpoints have completed; only such have these. */
static bool may_miss(const json_t *got, const char *key)
{
	const char *class_name = json_string_value(json_object_get(got, "className"));

	return class_name != NULL && strcmp(class_name, "completed") != 0 &&
			(strcmp(key, "external_path") == 0 || strcmp(key, "discarded") == 0);
}

/* An object whose keys are ids: all values have one shape. */
static bool is_map(const json_t *json)
{
	const char *key = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)json));

	return key != NULL && strlen(key) == 32;
}

static void add_members(struct pairs *p, const struct pair *pair)
{
	const char *key;
	json_t *value, *wanted = (json_t *)(uintptr_t)pair->wanted;
	json_t *got = (json_t *)(uintptr_t)pair->got;

	if (is_map(wanted)) {
		const json_t *first = json_object_iter_value(json_object_iter(wanted));

		json_object_foreach(got, key, value) add_pair(p, first, value, pair->where, "*");
		return;
	}
	json_object_foreach(wanted, key, value)
	{
		const json_t *ours = json_object_get(got, key);

		cr_expect(ours != NULL || may_miss(got, key), "%s.%s is missing", pair->where, key);
		if (ours != NULL)
			add_pair(p, value, ours, pair->where, key);
	}
}

/* The element of the sample at the same place, or its last one. */
static void add_elements(struct pairs *p, const struct pair *pair)
{
	size_t count = json_array_size(pair->wanted), i;
	const json_t *item;

	if (count == 0)
		return;
	json_array_foreach(pair->got, i, item)
			add_pair(p, json_array_get(pair->wanted, i < count ? i : count - 1), item,
					pair->where, "[]");
}

void flink_sample_compare(const json_t *wanted, const json_t *got, const char *what)
{
	struct pairs *p = calloc(1, sizeof(*p));

	cr_assert_not_null(p);
	add_pair(p, wanted, got, what, "");
	for (uint32_t i = 0; i < p->count; i++) {
		struct pair pair = p->rows[i];

		cr_expect(is_alike(pair.wanted, pair.got, pair.where), "%s: another type",
				pair.where);
		if (json_is_object(pair.wanted) && json_is_object(pair.got))
			add_members(p, &pair);
		if (json_is_array(pair.wanted) && json_is_array(pair.got))
			add_elements(p, &pair);
	}
	free(p);
}
