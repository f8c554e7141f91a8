#pragma once

/*
 * ids: identifiers as distinct small structs, so that they cannot be mixed up.
 *
 * A checkpoint id is a plain int64_t, 1 or more (flink-semantics 2.1); 0 means none.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* 128 bits, printed as 32 hex digits the way Flink prints its ids. */
struct id128 {
	uint8_t bytes[16];
};

struct job_id {
	struct id128 id;
};

/* One attempt of one subtask; every restart makes a new one. */
struct attempt_id {
	struct id128 id;
};

enum { ID128_TEXT_BYTES = 33 };

static inline bool id128_is_equal(struct id128 a, struct id128 b)
{
	return memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}

/* Writes 32 hex digits and a zero. */
static inline void id128_print(struct id128 id, char text[ID128_TEXT_BYTES])
{
	for (int i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", id.bytes[i]);
}

/* Reads exactly 32 hex digits; false for anything else. */
static inline bool id128_parse(const char *text, struct id128 *id)
{
	if (strlen(text) != 32 || strspn(text, "0123456789abcdefABCDEF") != 32)
		return false;
	for (int i = 0; i < 16; i++) {
		unsigned int byte;

		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return false;
		id->bytes[i] = (uint8_t)byte;
	}
	return true;
}
