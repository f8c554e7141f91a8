#pragma once

/*
 * check: assertions that stay on in release builds.
 *
 * Place    the floor; everything may include it.
 * Thread   any.
 * Errors   a failed CHECK is a bug of ours: it prints where and what, and aborts.
 */

#include <stdbool.h>

/* A breach of our own contract.  Never for what came from outside. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			check_failed(#condition, __FILE__, __LINE__);                              \
	} while (0)

/* Too dear for release builds, but always compiled. */
#ifdef WEIR_DEBUG
#define DCHECK(condition) CHECK(condition)
#else
#define DCHECK(condition)                                                                          \
	do {                                                                                       \
		if (false)                                                                         \
			CHECK(condition);                                                          \
	} while (0)
#endif

/* Prints the breach to standard error and aborts. */
_Noreturn void check_failed(const char *condition, const char *file, int line);
