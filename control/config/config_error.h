#pragma once

/*
 * config_error: the one message a user gets for one mistake in a file or an option.
 *
 * Place    control/config; every reader of foreign text fills one.
 * Thread   any.
 * Format   FILE:LINE:COLUMN: KEY: what is wrong; what was expected
 */

#include <stdarg.h>
#include <stddef.h>

enum { CONFIG_ERROR_BYTES = 1536 };

struct config_error {
	char text[CONFIG_ERROR_BYTES];
};

/* Where a key or a value stands. */
struct config_place {
	const char *source; /* a file, or "-D option" */
	int line, column;   /* from 1; line 0: the source alone says it */
};

/* Fills `error` and returns -EINVAL.  `key` may be NULL. */
int config_refuse(struct config_error *error, struct config_place place, const char *key,
		const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Prints FILE:LINE:COLUMN, or the source alone. */
void config_place_print(struct config_place place, char *text, size_t size);
