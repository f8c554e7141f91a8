#include "dataplane/operator/params.h"

#include "dataplane/base/check.h"
#include "dataplane/base/nearest.h"
#include "dataplane/base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { BOUND_BYTES = 32, SHOWN_BYTES_MAX = 80 };

/* Writes `name: "text" is WRONG; expected EXPECTED`, and returns -EINVAL. */
static int refuse(const struct weir_param *param, const char *text, const char *wrong,
		const char *expected, char error[WEIR_ERROR_BYTES])
{
	snprintf(error, WEIR_ERROR_BYTES, "%s: \"%.*s\"%s; expected %s", param->name,
			SHOWN_BYTES_MAX, text, wrong, expected);
	return -EINVAL;
}

static void print_bound(const struct weir_param *param, int64_t bound, char text[BOUND_BYTES])
{
	if (param->type == WEIR_DURATION)
		units_print_duration(bound, text, BOUND_BYTES);
	else if (param->type == WEIR_SIZE)
		units_print_size(bound, text, BOUND_BYTES);
	else
		snprintf(text, BOUND_BYTES, "%" PRId64, bound);
}

static int check_bounds(const struct weir_param *param, const char *text, int64_t value,
		char error[WEIR_ERROR_BYTES])
{
	char low[BOUND_BYTES], high[BOUND_BYTES], expected[3 * BOUND_BYTES];

	if ((param->min == 0 && param->max == 0) || (value >= param->min && value <= param->max))
		return 0;
	print_bound(param, param->min, low);
	print_bound(param, param->max, high);
	if (param->max == INT64_MAX)
		snprintf(expected, sizeof(expected), "%s or more", low);
	else if (param->min == INT64_MIN)
		snprintf(expected, sizeof(expected), "%s or less", high);
	else
		snprintf(expected, sizeof(expected), "%s to %s", low, high);
	return refuse(param, text, value < param->min ? " is too small" : " is too large", expected,
			error);
}

static int parse_integer(const struct weir_param *param, const char *text, int64_t *value,
		char error[WEIR_ERROR_BYTES])
{
	char *end;

	errno = 0;
	long long number = strtoll(text, &end, 10);
	if (end == text || *end != '\0' || text[0] == ' ')
		return refuse(param, text, " is not a whole number", "such as 8", error);
	if (errno == ERANGE)
		return refuse(param, text, " does not fit", "a number of at most 63 bits", error);
	*value = number;
	return check_bounds(param, text, *value, error);
}

static int parse_real(const struct weir_param *param, const char *text, double *value,
		char error[WEIR_ERROR_BYTES])
{
	char *end;

	*value = strtod(text, &end);
	if (end == text || *end != '\0' || strspn(text, "0123456789.eE+-") != strlen(text) ||
			!isfinite(*value))
		return refuse(param, text, " is not a number", "such as 0.75", error);
	return 0;
}

static int parse_boolean(const struct weir_param *param, const char *text, int64_t *value,
		char error[WEIR_ERROR_BYTES])
{
	*value = strcasecmp(text, "true") == 0;
	if (*value == 0 && strcasecmp(text, "false") != 0)
		return refuse(param, text, " is neither true nor false", "true or false", error);
	return 0;
}

static int parse_duration(const struct weir_param *param, const char *text, int64_t *value,
		char error[WEIR_ERROR_BYTES])
{
	int rc = units_parse_duration(text, value);

	if (rc == -ERANGE)
		return refuse(param, text, " does not fit", "at most 292 years", error);
	if (rc != 0)
		return refuse(param, text, " is not a duration",
				"a whole number and ns, us, ms, s, min, h or d, such as \"10 s\"",
				error);
	return check_bounds(param, text, *value, error);
}

static int parse_size(const struct weir_param *param, const char *text, int64_t *value,
		char error[WEIR_ERROR_BYTES])
{
	int rc = units_parse_size(text, value);

	if (rc == -ERANGE)
		return refuse(param, text, " does not fit", "less than 2^63 bytes", error);
	if (rc != 0)
		return refuse(param, text, " is not a size",
				"a whole number and b, kb, mb, gb or tb, such as \"32 kb\"", error);
	return check_bounds(param, text, *value, error);
}

static int parse_choice(const struct weir_param *param, const char *text, int64_t *value,
		char error[WEIR_ERROR_BYTES])
{
	const char *at = param->choices;
	size_t size = strlen(text);
	char expected[WEIR_ERROR_BYTES / 2] = "";

	CHECK(at != NULL);
	for (*value = 0;; (*value)++) {
		size_t length = strcspn(at, "|");

		if (length == size && size > 0 && strncasecmp(at, text, size) == 0)
			return 0;
		if (at[length] == '\0')
			break;
		at += length + 1;
	}
	snprintf(expected, sizeof(expected), "one of %s", param->choices);
	return refuse(param, text, " is not known", expected, error);
}

int param_parse(const struct weir_param *param, const char *text, struct weir_value *value,
		char error[WEIR_ERROR_BYTES])
{
	*value = (struct weir_value){.text = text};
	switch (param->type) {
	case WEIR_TEXT:
		return 0;
	case WEIR_INTEGER:
		return parse_integer(param, text, &value->integer, error);
	case WEIR_REAL:
		return parse_real(param, text, &value->real, error);
	case WEIR_BOOLEAN:
		return parse_boolean(param, text, &value->integer, error);
	case WEIR_DURATION:
		return parse_duration(param, text, &value->integer, error);
	case WEIR_SIZE:
		return parse_size(param, text, &value->integer, error);
	case WEIR_CHOICE:
		return parse_choice(param, text, &value->integer, error);
	}
	return refuse(param, text, " has a type nobody knows", "a type of operator.h", error);
}

static const struct weir_param *find_param(const struct weir_operator *op, const char *name)
{
	for (uint32_t i = 0; i < op->param_count; i++) {
		if (strcmp(op->params[i].name, name) == 0)
			return &op->params[i];
	}
	return NULL;
}

static void refuse_unknown(
		const struct weir_operator *op, const char *name, char error[WEIR_ERROR_BYTES])
{
	struct nearest near;

	nearest_begin(&near, name);
	for (uint32_t i = 0; i < op->param_count; i++)
		nearest_offer(&near, op->params[i].name);
	const char *best = nearest_best(&near);
	int at = snprintf(error, WEIR_ERROR_BYTES, "%.*s: %.64s has no such parameter; ",
			SHOWN_BYTES_MAX, name, op->name);
	if (best != NULL) {
		snprintf(error + at, WEIR_ERROR_BYTES - (size_t)at, "did you mean %s?", best);
		return;
	}
	at += snprintf(error + at, WEIR_ERROR_BYTES - (size_t)at, "expected %s",
			op->param_count == 0 ? "none" : "one of ");
	for (uint32_t i = 0; i < op->param_count && at < WEIR_ERROR_BYTES; i++)
		at += snprintf(error + at, WEIR_ERROR_BYTES - (size_t)at, "%s%s",
				i == 0 ? "" : ", ", op->params[i].name);
}

/* Each given text is for a parameter of `op`, and for one only. */
static int check_names(const struct weir_operator *op, const struct param_text *given,
		uint32_t count, uint32_t *culprit, char error[WEIR_ERROR_BYTES])
{
	for (uint32_t i = 0; i < count; i++) {
		*culprit = i;
		if (find_param(op, given[i].name) == NULL) {
			refuse_unknown(op, given[i].name, error);
			return -EINVAL;
		}
		for (uint32_t j = 0; j < i; j++) {
			if (strcmp(given[i].name, given[j].name) == 0) {
				snprintf(error, WEIR_ERROR_BYTES, "%s: given twice; expected once",
						given[i].name);
				return -EINVAL;
			}
		}
	}
	return 0;
}

static uint32_t find_given(const struct param_text *given, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(given[i].name, name) == 0)
			return i;
	}
	return UINT32_MAX;
}

int params_resolve(const struct weir_operator *op, const struct param_text *given, uint32_t count,
		struct weir_value *values, uint32_t *culprit, char error[WEIR_ERROR_BYTES])
{
	int rc = check_names(op, given, count, culprit, error);

	for (uint32_t i = 0; i < op->param_count && rc == 0; i++) {
		const struct weir_param *param = &op->params[i];
		uint32_t at = find_given(given, count, param->name);
		const char *text = at == UINT32_MAX ? param->preset : given[at].text;

		*culprit = at;
		if (text == NULL) {
			snprintf(error, WEIR_ERROR_BYTES, "%s: missing; expected %s", param->name,
					param->help == NULL ? "a value" : param->help);
			return -EINVAL;
		}
		rc = param_parse(param, text, &values[i], error);
	}
	return rc;
}
