#include "dataplane/base/core_list.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, " \t");
}

/* Reads a number; NULL when there is none. */
static const char *take_number(const char *at, uint32_t *number)
{
	if (!isdigit((unsigned char)*at))
		return NULL;
	*number = 0;
	for (; isdigit((unsigned char)*at); at++) {
		if (*number <= CORE_NUMBER_MAX)
			*number = *number * 10 + (uint32_t)(*at - '0');
	}
	return at;
}

static int add_cores(struct core_list *list, uint32_t first, uint32_t last)
{
	if (last < first)
		return -EINVAL;
	if (last > CORE_NUMBER_MAX)
		return -ERANGE;
	for (uint32_t core = first; core <= last; core++) {
		for (uint32_t i = 0; i < list->count; i++) {
			if (list->cores[i] == core)
				return -EEXIST;
		}
		if (list->count == WORKERS_COUNT_MAX)
			return -ERANGE;
		list->cores[list->count++] = core;
	}
	return 0;
}

/* One "3", "3-5", "L#3" or "L#3-5". */
static const char *take_item(const char *at, bool *is_logical, uint32_t *first, uint32_t *last)
{
	at = skip_blanks(at);
	*is_logical = strncasecmp(at, "L#", 2) == 0;
	at = take_number(*is_logical ? at + 2 : at, first);
	if (at == NULL)
		return NULL;
	*last = *first;
	if (*at == '-')
		at = take_number(at + 1, last);
	return at == NULL ? NULL : skip_blanks(at);
}

static int parse_auto(const char *at, struct core_list *list)
{
	list->is_auto = true;
	list->count = WORKERS_COUNT_MAX;
	if (*at == '\0')
		return 0;
	at = *at == ':' ? take_number(at + 1, &list->count) : NULL;
	if (at == NULL || *skip_blanks(at) != '\0' || list->count == 0)
		return -EINVAL;
	return list->count > WORKERS_COUNT_MAX ? -ERANGE : 0;
}

int core_list_parse(const char *text, struct core_list *list)
{
	const char *at = skip_blanks(text);

	*list = (struct core_list){0};
	if (strncasecmp(at, "auto", 4) == 0)
		return parse_auto(at + 4, list);
	for (bool is_first = true;; is_first = false) {
		uint32_t first, last;
		bool is_logical;

		at = take_item(at, &is_logical, &first, &last);
		if (at == NULL || (!is_first && is_logical != list->is_logical))
			return -EINVAL;
		list->is_logical = is_logical;
		int rc = add_cores(list, first, last);
		if (rc != 0)
			return rc;
		if (*at == '\0')
			return 0;
		if (*at++ != ',')
			return -EINVAL;
	}
}
