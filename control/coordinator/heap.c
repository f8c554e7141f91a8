#include "control/coordinator/heap.h"

#include "dataplane/base/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *heap_zeroed(size_t count, size_t size)
{
	void *p = calloc(count > 0 ? count : 1, size);

	CHECK(p != NULL);
	return p;
}

void *heap_resize(void *old, size_t count, size_t size)
{
	void *p = reallocarray(old, count > 0 ? count : 1, size);

	CHECK(p != NULL);
	return p;
}

void *heap_copy(const void *from, size_t count, size_t size)
{
	void *p = heap_zeroed(count, size);

	if (count > 0)
		memcpy(p, from, count * size);
	return p;
}

char *heap_text(const char *text)
{
	if (text == NULL)
		return NULL;

	char *copy = strdup(text);

	CHECK(copy != NULL);
	return copy;
}

char *heap_print(const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	int length = vasprintf(&text, format, args);
	va_end(args);
	CHECK(length >= 0);
	return text;
}
