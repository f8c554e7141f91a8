/*
 * weir-scenario: runs scenario scripts against the production modules.
 *
 *   weir-scenario [--trace] FILE|DIRECTORY|-...
 *
 * Exit status: 0 all passed, 1 some failed, 2 some were not well formed, could not be read, or want
 * what is not supported yet.
 */

#include "tests/scenario/scenario.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct scenario_subject *const subjects[] = {
	&scenario_coordinator,
	&scenario_task,
};

struct statement {
	uint32_t number; /* line in the file */
	struct scenario_line line;
};

struct script {
	char *text;
	struct statement *statements;
	uint32_t count;
};

struct totals {
	uint32_t passed, failed, malformed;
	bool is_traced;
};

static void *grow(void *old, size_t count, size_t size)
{
	void *p = reallocarray(old, count, size);

	if (p == NULL)
		abort();
	return p;
}

static bool read_all(FILE *f, char **text)
{
	size_t length = 0;
	size_t room = 4096;

	*text = grow(NULL, room, 1);
	for (;;) {
		length += fread(*text + length, 1, room - length - 1, f);
		if (length + 1 < room)
			break;
		room *= 2;
		*text = grow(*text, room, 1);
	}
	(*text)[length] = '\0';
	return ferror(f) == 0 && strlen(*text) == length;
}

/* Splits one line into words; what follows a # is a comment. */
static void split_line(struct script *script, char *line, uint32_t number)
{
	struct statement st = { .number = number };
	char *save = NULL;

	line[strcspn(line, "#")] = '\0';
	for (char *w = strtok_r(line, " \t\r", &save); w != NULL;
			w = strtok_r(NULL, " \t\r", &save)) {
		st.line.words = grow(
				st.line.words, st.line.word_count + 1, sizeof(*st.line.words));
		st.line.words[st.line.word_count++] = w;
	}
	if (st.line.word_count == 0)
		return;
	script->statements =
			grow(script->statements, script->count + 1, sizeof(*script->statements));
	script->statements[script->count++] = st;
}

static void split(struct script *script)
{
	char *at = script->text;

	for (uint32_t number = 1; at != NULL; number++) {
		char *line = strsep(&at, "\n");

		split_line(script, line, number);
	}
}

static void script_clear(struct script *script)
{
	for (uint32_t i = 0; i < script->count; i++)
		free(script->statements[i].line.words);
	free(script->statements);
	free(script->text);
}

static const struct scenario_subject *find_subject(const char *name)
{
	for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++) {
		if (strcmp(subjects[i]->name, name) == 0)
			return subjects[i];
	}
	return NULL;
}

static bool run_statement(struct scenario *s, const struct scenario_subject *subject, void *world,
		const struct scenario_line *l, bool *is_started)
{
	bool is_assertion = strcmp(l->words[0], "=") == 0;
	const struct scenario_line rest = { l->word_count - 1, l->words + 1 };

	if (!is_assertion && subject->is_setting(l->words[0])) {
		if (*is_started)
			return scenario_malformed(
					s, "the setting '%s' comes too late", l->words[0]);
		return subject->setting(world, l);
	}
	if (!*is_started && !subject->start(world))
		return false;
	*is_started = true;
	if (!is_assertion) {
		struct scenario_text t = { 0 };

		for (uint32_t i = 0; i < l->word_count; i++)
			scenario_text_add(&t, "%s", l->words[i]);
		scenario_trace(s, "%s", scenario_text_get(&t));
		scenario_text_clear(&t);
		return subject->event(world, l);
	}
	if (rest.word_count == 0)
		return scenario_malformed(s, "'=' names nothing");
	return subject->assertion(world, &rest);
}

/* Goes through the script once. */
static void run_once(struct scenario *s, const struct scenario_subject *subject,
		const struct script *script)
{
	void *world = subject->begin(s);
	bool is_started = false;
	bool is_good = true;

	for (uint32_t i = 1; i < script->count && is_good; i++) {
		s->line = script->statements[i].number;
		is_good = run_statement(
				s, subject, world, &script->statements[i].line, &is_started);
	}
	if (is_good && !is_started)
		is_good = subject->start(world);
	if (is_good && !s->is_checking)
		subject->end(world);
	subject->destroy(world);
}

static void run_script(struct scenario *s, const struct script *script)
{
	if (script->count == 0) {
		scenario_malformed(s, "the script is empty");
		return;
	}

	const struct scenario_line *first = &script->statements[0].line;
	const struct scenario_subject *subject = find_subject(first->words[0]);

	s->line = script->statements[0].number;
	if (subject == NULL || first->word_count > 1) {
		scenario_malformed(s, "the first statement must be 'task' or 'coordinator'");
		return;
	}
	if (subject->begin == NULL) {
		scenario_malformed(s, "subject %s is not built in", subject->name);
		return;
	}
	s->is_checking = true;
	run_once(s, subject, script);
	s->is_checking = false;
	if (s->result == SCENARIO_OK)
		run_once(s, subject, script);
}

static void report(struct totals *totals, const struct scenario *s, const char *name)
{
	switch (s->result) {
	case SCENARIO_OK:
		totals->passed++;
		printf("ok %s\n", name);
		return;
	case SCENARIO_FAILED:
		totals->failed++;
		printf("FAIL %s:%u: %s\n", name, s->line, s->text);
		return;
	case SCENARIO_MALFORMED:
		totals->malformed++;
		printf("FAIL %s:%u: malformed: %s\n", name, s->line, s->text);
		return;
	case SCENARIO_UNSUPPORTED:
		totals->malformed++;
		printf("unsupported %s:%u: %s\n", name, s->line, s->text);
		return;
	}
}

static void run_stream(struct totals *totals, FILE *f, const char *name)
{
	struct scenario *s = grow(NULL, 1, sizeof(*s));
	struct script script = { 0 };

	*s = (struct scenario){ .is_traced = totals->is_traced };
	if (!read_all(f, &script.text)) {
		scenario_malformed(s, "it is not a text");
	} else {
		split(&script);
		run_script(s, &script);
	}
	report(totals, s, name);
	script_clear(&script);
	free(s);
}

static void run_file(struct totals *totals, const char *path)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");

	if (f == NULL) {
		totals->malformed++;
		printf("FAIL %s:0: malformed: %s\n", path, strerror(errno));
		return;
	}
	run_stream(totals, f, path);
	if (f != stdin)
		fclose(f);
}

static bool is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

struct path_list {
	char **paths;
	size_t count;
};

static void path_add(struct path_list *l, const char *directory, const char *name)
{
	char *path = NULL;

	if (asprintf(&path, "%s/%s", directory, name) < 0)
		abort();
	l->paths = grow(l->paths, l->count + 1, sizeof(*l->paths));
	l->paths[l->count++] = path;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_script(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot != NULL && strcmp(dot, ".scn") == 0;
}

/* All scripts below, in name order: folders are taken up as they are met. */
static void run_directory(struct totals *totals, const char *path)
{
	struct path_list folders = { 0 };
	struct path_list files = { 0 };

	path_add(&folders, path, ".");
	for (size_t i = 0; i < folders.count; i++) {
		DIR *d = opendir(folders.paths[i]);

		for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
			const char *folder = i == 0 ? path : folders.paths[i];

			if (e->d_name[0] == '.')
				continue;
			if (is_script(e->d_name)) {
				path_add(&files, folder, e->d_name);
				continue;
			}
			path_add(&folders, folder, e->d_name);
			if (!is_directory(folders.paths[folders.count - 1]))
				free(folders.paths[--folders.count]);
		}
		if (d != NULL)
			closedir(d);
	}
	if (files.count > 0)
		qsort(files.paths, files.count, sizeof(*files.paths), compare_paths);
	for (size_t i = 0; i < files.count; i++)
		run_file(totals, files.paths[i]);
	for (size_t i = 0; i < files.count; i++)
		free(files.paths[i]);
	for (size_t i = 0; i < folders.count; i++)
		free(folders.paths[i]);
	free(files.paths);
	free(folders.paths);
}

static int usage(FILE *to, int status)
{
	fprintf(to, "usage: weir-scenario [--trace] FILE|DIRECTORY|-...\n"
		    "Runs scenario scripts; a directory stands for every *.scn below it,\n"
		    "- for standard input.  Exit status: 1 when one failed, 2 when one is\n"
		    "not well formed.\n"
		    "example: weir-scenario --trace tests/scenarios/coordinator\n");
	return status;
}

int main(int argc, char **argv)
{
	struct totals totals = { 0 };
	bool has_directory = false;
	int argument = 1;

	for (; argument < argc && argv[argument][0] == '-' && argv[argument][1] != '\0';
			argument++) {
		if (strcmp(argv[argument], "--help") == 0)
			return usage(stdout, 0);
		if (strcmp(argv[argument], "--trace") != 0)
			return usage(stderr, 2);
		totals.is_traced = true;
	}
	if (argument == argc)
		return usage(stderr, 2);
	for (; argument < argc; argument++) {
		if (is_directory(argv[argument])) {
			has_directory = true;
			run_directory(&totals, argv[argument]);
		} else {
			run_file(&totals, argv[argument]);
		}
	}
	if (has_directory)
		printf("%u passed, %u failed\n", totals.passed, totals.failed + totals.malformed);
	return totals.malformed > 0 ? 2 : totals.failed > 0 ? 1 : 0;
}
