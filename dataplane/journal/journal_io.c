#include "dataplane/journal/journal_io.h"

#include <stdarg.h>
#include <stdio.h>

bool journal_ask(struct journal_io *io, enum journal_part part, uint32_t index,
		const struct store_request *request)
{
	struct store_request r = *request;

	r.tag = (uint64_t)index << 16 | (uint64_t)r.op << 8 | part;
	if (store_submit(io->store, &r) != 0)
		return false;
	io->inflight_count++;
	return true;
}

void journal_fail(struct journal_io *io, int status, const char *format, ...)
{
	va_list args;

	if (io->failure != 0)
		return;
	io->failure = status;
	va_start(args, format);
	vsnprintf(io->text, sizeof(io->text), format, args);
	va_end(args);
}

bool journal_is_full_error(int64_t result)
{
	return result == -ENOSPC || result == -EDQUOT;
}
