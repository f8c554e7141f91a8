#include "control/config/config_error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { KEY_BYTES_SHOWN = 160, SOURCE_BYTES_SHOWN = 400 };

void config_place_print(struct config_place place, char *text, size_t size)
{
	if (place.line > 0)
		snprintf(text, size, "%.*s:%d:%d", SOURCE_BYTES_SHOWN, place.source, place.line,
				place.column);
	else
		snprintf(text, size, "%.*s", SOURCE_BYTES_SHOWN, place.source);
}

/* What is quoted from a file may hold ends of lines, and what a terminal obeys. */
static void keep_to_one_line(char *text)
{
	for (; *text != 0; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = ' ';
}

int config_refuse(struct config_error *error, struct config_place place, const char *key,
		const char *format, ...)
{
	va_list args;

	config_place_print(place, error->text, sizeof(error->text));
	size_t at = strlen(error->text);
	at += (size_t)snprintf(error->text + at, sizeof(error->text) - at, ": ");
	if (key != NULL)
		at += (size_t)snprintf(error->text + at, sizeof(error->text) - at,
				"%.*s: ", KEY_BYTES_SHOWN, key);
	va_start(args, format);
	vsnprintf(error->text + at, sizeof(error->text) - at, format, args);
	va_end(args);
	keep_to_one_line(error->text);
	return -EINVAL;
}
