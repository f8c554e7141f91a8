#pragma once

/*
 * scenario: the common form of scenario scripts, and what a subject brings to it.
 *
 * Place    tests/scenario.  A subject drives the production modules, by hand-set time.
 * Thread   one.
 * Memory   lines and words are valid for the length of a call.
 * Errors   a function that meets a mistake calls scenario_malformed, or scenario_failed for an
 *          assertion that does not hold, and returns what they return: false.
 * Life     each script is gone through twice, with a world of its own each time: once to check that
 *          it is well formed (is_checking: events and assertions are parsed, nothing happens), then
 *          for real.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct scenario_line {
	uint32_t word_count; /* 1 or more */
	char **words;
};

enum scenario_result {
	SCENARIO_OK,
	SCENARIO_FAILED,
	SCENARIO_MALFORMED,
	SCENARIO_UNSUPPORTED, /* well formed, and more than the subject can do so far */
};

enum { SCENARIO_TEXT_BYTES = 4096 };

struct scenario {
	uint32_t line; /* the one that is looked at */
	bool is_checking;
	bool is_traced;
	enum scenario_result result;
	char text[SCENARIO_TEXT_BYTES]; /* what was wrong */
};

bool scenario_malformed(struct scenario *s, const char *format, ...)
		__attribute__((format(printf, 2, 3)));
bool scenario_unsupported(struct scenario *s, const char *what);
bool scenario_failed(struct scenario *s, const char *expected, const char *got);
/* An effect, as it happens; nothing unless --trace. */
void scenario_trace(const struct scenario *s, const char *format, ...)
		__attribute__((format(printf, 2, 3)));

struct scenario_subject {
	const char *name;
	/* NULL: this subject is not built in; then all else is NULL too. */
	void *(*begin)(struct scenario *s);
	void (*destroy)(void *world);
	bool (*is_setting)(const char *word);
	bool (*setting)(void *world, const struct scenario_line *l);
	/* All settings are known; called before the first event or assertion. */
	bool (*start)(void *world);
	bool (*event)(void *world, const struct scenario_line *l);
	/* `l` without the equals sign. */
	bool (*assertion)(void *world, const struct scenario_line *l);
	/* What is left unasserted. */
	bool (*end)(void *world);
};

extern const struct scenario_subject scenario_coordinator;
extern const struct scenario_subject scenario_task;

/* ---- words ---- */

/* Digits only, up to `max`. */
bool scenario_number(struct scenario *s, const char *word, int64_t min, int64_t max, int64_t *out);
/* A letter, then letters, digits, _ and -. */
bool scenario_is_name(const char *word);
/* "+250". */
bool scenario_step(struct scenario *s, const char *word, int64_t *ms);
/* "on" or "off". */
bool scenario_switch(struct scenario *s, const char *word, bool *out);
/* "EIO", as a positive number. */
bool scenario_errno(struct scenario *s, const char *word, int *out);
/* The text behind "key=", or NULL. */
const char *scenario_value(const char *word, const char *key);
/* Fails unless `l` has `min`..`max` words. */
bool scenario_count(
		struct scenario *s, const struct scenario_line *l, uint32_t min, uint32_t max);

/* A growing text. */
struct scenario_text {
	char *bytes;
	size_t length;
};
void scenario_text_add(struct scenario_text *t, const char *format, ...)
		__attribute__((format(printf, 2, 3)));
/* "none" when nothing was added. */
const char *scenario_text_get(const struct scenario_text *t);
void scenario_text_clear(struct scenario_text *t);
