#include "tests/soak/soak_record.h"

#include "dataplane/base/check.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void write_all(FILE *file, const void *bytes, size_t size)
{
	CHECK(size == 0 || fwrite(bytes, size, 1, file) == 1);
}

void soak_record_write(const struct soak_record *r, const char *directory)
{
	char path[SOAK_PATH_BYTES], beside[SOAK_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/records/%" PRId64, directory, r->id);
	snprintf(beside, sizeof(beside), "%s/beside", directory);
	FILE *file = fopen(beside, "wb");
	CHECK(file != NULL);
	write_all(file, r, sizeof(*r));
	for (uint32_t v = 0; v < SOAK_VERTICES_MAX; v++) {
		for (uint32_t i = 0; i < r->parallelism[v]; i++)
			write_all(file, r->tasks[v][i].state, r->tasks[v][i].bytes);
	}
	CHECK(fclose(file) == 0);
	CHECK(rename(beside, path) == 0);
}

static void read_states(struct soak_record *r, FILE *file)
{
	for (uint32_t v = 0; v < SOAK_VERTICES_MAX; v++) {
		for (uint32_t i = 0; i < r->parallelism[v]; i++) {
			struct soak_task_record *t = &r->tasks[v][i];

			t->state = NULL;
			if (t->bytes == 0)
				continue;
			t->state = malloc(t->bytes);
			CHECK(t->state != NULL);
			CHECK(fread(t->state, t->bytes, 1, file) == 1);
		}
	}
}

/* The highest number behind `prefix` among the names of a directory; 0: none. */
static int64_t highest(const char *directory, const char *prefix)
{
	size_t length = strlen(prefix);
	int64_t most = 0;
	DIR *dir = opendir(directory);

	CHECK(dir != NULL);
	for (struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
		int64_t id = strncmp(e->d_name, prefix, length) == 0
				? strtoll(e->d_name + length, NULL, 10)
				: 0;

		most = id > most ? id : most;
	}
	closedir(dir);
	return most;
}

struct soak_record *soak_record_read_newest(const char *directory)
{
	char path[SOAK_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/records", directory);
	int64_t id = highest(path, "");
	if (id == 0)
		return NULL;
	snprintf(path, sizeof(path), "%s/records/%" PRId64, directory, id);
	struct soak_record *r = malloc(sizeof(*r));
	FILE *file = fopen(path, "rb");
	CHECK(r != NULL);
	CHECK(file != NULL);
	CHECK(fread(r, sizeof(*r), 1, file) == 1);
	read_states(r, file);
	fclose(file);
	return r;
}

void soak_record_free(struct soak_record *r)
{
	for (uint32_t v = 0; r != NULL && v < SOAK_VERTICES_MAX; v++) {
		for (uint32_t i = 0; i < SOAK_PARALLELISM_MAX; i++)
			free(r->tasks[v][i].state);
	}
	free(r);
}

bool soak_record_is_vertex_finished(const struct soak_record *r, uint32_t vertex)
{
	for (uint32_t i = 0; i < r->parallelism[vertex]; i++) {
		if (!r->tasks[vertex][i].is_finished)
			return false;
	}
	return true;
}

bool soak_record_has_finished(const struct soak_record *r, const struct soak_plan *p)
{
	for (uint32_t v = 0; v < p->vertex_count; v++) {
		for (uint32_t i = 0; i < r->parallelism[v]; i++) {
			if (r->tasks[v][i].is_finished)
				return true;
		}
	}
	return false;
}

void soak_record_path(const char *directory, int64_t id, bool is_savepoint,
		char path[SOAK_PATH_BYTES])
{
	snprintf(path, SOAK_PATH_BYTES, "%s/%s-%" PRId64, directory,
			is_savepoint ? "savepoint" : "chk", id);
}

int64_t soak_record_next_id(const char *directory)
{
	int64_t checkpoint = highest(directory, "chk-");
	int64_t savepoint = highest(directory, "savepoint-");

	return 1 + (checkpoint > savepoint ? checkpoint : savepoint);
}
