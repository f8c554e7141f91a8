#include "tests/scenario/scenario.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool scenario_malformed(struct scenario *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(s->text, sizeof(s->text), format, args);
	va_end(args);
	s->result = SCENARIO_MALFORMED;
	return false;
}

bool scenario_unsupported(struct scenario *s, const char *what)
{
	snprintf(s->text, sizeof(s->text), "%s is not supported yet", what);
	s->result = SCENARIO_UNSUPPORTED;
	return false;
}

bool scenario_failed(struct scenario *s, const char *expected, const char *got)
{
	snprintf(s->text, sizeof(s->text), "expected %s, got %s", expected, got);
	s->result = SCENARIO_FAILED;
	return false;
}

void scenario_trace(const struct scenario *s, const char *format, ...)
{
	va_list args;

	if (!s->is_traced || s->is_checking)
		return;
	printf("  %4u  ", s->line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
}

bool scenario_number(struct scenario *s, const char *word, int64_t min, int64_t max, int64_t *out)
{
	size_t length = strlen(word);

	if (length == 0 || strspn(word, "0123456789") != length || length > 18)
		return scenario_malformed(s, "'%s' is not a number", word);
	*out = strtoll(word, NULL, 10);
	if (*out < min || *out > max)
		return scenario_malformed(s, "%s is not in %lld..%lld", word, (long long)min,
				(long long)max);
	return true;
}

bool scenario_is_name(const char *word)
{
	if (!isalpha((unsigned char)word[0]))
		return false;
	for (const char *c = word; *c != '\0'; c++) {
		if (!isalnum((unsigned char)*c) && *c != '_' && *c != '-')
			return false;
	}
	return true;
}

bool scenario_step(struct scenario *s, const char *word, int64_t *ms)
{
	if (word[0] != '+')
		return scenario_malformed(s, "'%s' does not begin with +", word);
	return scenario_number(s, word + 1, 0, INT64_C(1000000000000), ms);
}

bool scenario_switch(struct scenario *s, const char *word, bool *out)
{
	*out = strcmp(word, "on") == 0;
	if (!*out && strcmp(word, "off") != 0)
		return scenario_malformed(s, "'%s' is neither on nor off", word);
	return true;
}

bool scenario_errno(struct scenario *s, const char *word, int *out)
{
	for (int i = 1; i < 134; i++) {
		const char *name = strerrorname_np(i);

		if (name != NULL && strcmp(name, word) == 0) {
			*out = i;
			return true;
		}
	}
	return scenario_malformed(s, "'%s' is not the name of an error", word);
}

const char *scenario_value(const char *word, const char *key)
{
	size_t length = strlen(key);

	if (strncmp(word, key, length) != 0 || word[length] != '=')
		return NULL;
	return word + length + 1;
}

bool scenario_count(struct scenario *s, const struct scenario_line *l, uint32_t min, uint32_t max)
{
	if (l->word_count < min)
		return scenario_malformed(s, "'%s' needs more words", l->words[0]);
	if (l->word_count > max)
		return scenario_malformed(s, "'%s' is too much", l->words[max]);
	return true;
}

void scenario_text_add(struct scenario_text *t, const char *format, ...)
{
	char *more = NULL;
	va_list args;

	va_start(args, format);
	int length = vasprintf(&more, format, args);
	va_end(args);
	if (length < 0)
		abort();

	bool is_first = t->length == 0;
	size_t room = t->length + (size_t)length + 2;

	t->bytes = realloc(t->bytes, room);
	if (t->bytes == NULL)
		abort();
	t->length += (size_t)snprintf(
			t->bytes + t->length, room - t->length, "%s%s", is_first ? "" : " ", more);
	free(more);
}

const char *scenario_text_get(const struct scenario_text *t)
{
	return t->length > 0 ? t->bytes : "none";
}

void scenario_text_clear(struct scenario_text *t)
{
	free(t->bytes);
	*t = (struct scenario_text){ 0 };
}
