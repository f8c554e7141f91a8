#include "tests/support/store_await.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t store_await(struct store *s, const struct store_request *request)
{
	struct store_done done;
	int rc = store_submit(s, request);

	if (rc != 0)
		return rc;
	while (store_reap(s, &done, 1) == 0)
		nanosleep(&(struct timespec){0, 20000}, NULL);
	CHECK(done.tag == request->tag);
	return done.result;
}

void make_test_directory(char path[64])
{
	snprintf(path, 64, "/tmp/weir-test-XXXXXX");
	CHECK(mkdtemp(path) != NULL);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	return remove(path);
}

void remove_test_directory(const char *path)
{
	CHECK(strncmp(path, "/tmp/weir-test-", 15) == 0);
	nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

uint32_t count_files(const char *path)
{
	DIR *directory = opendir(path);
	uint32_t count = 0;

	CHECK(directory != NULL);
	for (struct dirent *e = readdir(directory); e != NULL; e = readdir(directory))
		count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(directory);
	return count;
}

uint8_t *read_whole_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "re");
	uint8_t *bytes;

	if (file == NULL)
		return NULL;
	fseek(file, 0, SEEK_END);
	*size = (size_t)ftell(file);
	rewind(file);
	bytes = malloc(*size + 1);
	if (fread(bytes, 1, *size, file) != *size) {
		free(bytes);
		bytes = NULL;
	}
	fclose(file);
	return bytes;
}
