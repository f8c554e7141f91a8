#pragma once

/*
 * core_list: which cores a config file asks for, as text and as numbers.
 *
 * Place    base: the config table checks the form, nic/topology checks what the host has.
 * Thread   any.
 * Form     "auto", "auto:4" (at most four of the allowed ones); "2,3-5" (numbers of the operating
 *          system); "L#0,L#2-3" (logical numbers, by position in the machine).
 * Errors   0, -EINVAL (not of that form), -ERANGE (a number or their count is too large),
 *          -EEXIST (a core twice).
 */

#include "dataplane/base/limits.h"

#include <stdbool.h>

enum { CORE_NUMBER_MAX = 4095 };

struct core_list {
	bool is_auto;
	bool is_logical;
	uint32_t count; /* of cores; when auto: at most so many */
	uint32_t cores[WORKERS_COUNT_MAX];
};

int core_list_parse(const char *text, struct core_list *list);
