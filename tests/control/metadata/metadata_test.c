/* metadata: written once and whole or not at all, read back as it was, refused when it is not. */

#include "control/metadata/metadata.h"

#include "control/metadata/checkpoint_verify.h"
#include "dataplane/base/crc.h"
#include "dataplane/base/prng.h"
#include "dataplane/checkpoint/task_state.h"
#include "tests/support/store_await.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64];

static void begin(void)
{
	make_test_directory(directory);
}

static void end(void)
{
	remove_test_directory(directory);
}

TestSuite(metadata, .init = begin, .fini = end);

static const char *in_directory(const char *name)
{
	static char paths[8][128];
	static uint32_t next;
	char *path = paths[next++ % 8];

	snprintf(path, 128, "%s/%s", directory, name);
	return path;
}

/* ---- a checkpoint ---- */

static uint8_t file_bytes[8192];
static uint8_t state_bytes[2][512];
static struct metadata_subtask subtasks[2];
static struct metadata_vertex vertices[3];
static const struct metadata_named masters[1] = {{"job", 1, {(const uint8_t *)"abc", 3}}};
static const struct metadata_named coordinators[2] = {{"source", 2, {(const uint8_t *)"left", 4}},
	{"other", 0, {NULL, 0}}};
static const struct metadata_edge edges[2] = {{"count", "done", "hash"},
	{"count", "plain", "broadcast"}};
static const struct metadata_override overrides[1] = {{"source.path", "a.pcap"}};
static const struct metadata_plugin plugins[1] = {{"/usr/lib/libmine.so", 12345, 0xabcdef01}};
static const char *const sinks[2] = {"/out/a", "/out/b"};

/* The state of one subtask, half of it in a file. */
static void add_subtask(uint32_t index)
{
	static const uint8_t position[8] = "position";
	struct state_handle handles[2] = {
		{.uid = "source", .name = "position", .kind = WEIR_STATE_VALUE, .value_bytes = 8,
			.item_count = 1, .bytes = position, .size = 8,
			.crc = crc32c(0, position, 8)},
		{.uid = "count", .name = "items", .kind = WEIR_STATE_LIST, .value_bytes = 1,
			.item_count = 4000, .file = index == 0 ? "count-0" : "count-1",
			.offset = 4096, .size = 4000, .crc = crc32c(0, file_bytes + 4096, 4000)},
	};
	struct task_state t = {.vertex_uid = "count", .subtask_index = index, .parallelism = 2,
		.group_count = 128, .groups = key_group_range_of(index, 2, 128),
		.handle_count = 2, .handles = handles};
	size_t size = task_state_encoded_bytes(&t);

	cr_assert_leq(size, sizeof(state_bytes[index]));
	task_state_encode(&t, state_bytes[index]);
	subtasks[index] = (struct metadata_subtask){index, false, {state_bytes[index], size}};
}

static struct metadata sample(void)
{
	/* Behind the state there are zeros up to the alignment of the store. */
	for (uint32_t i = 0; i < 4096 + 4000; i++)
		file_bytes[i] = (uint8_t)(i * 31 + i / 256);
	add_subtask(0);
	add_subtask(1);
	vertices[0] = (struct metadata_vertex){"count", 2, 128, false, 2, subtasks};
	vertices[1] = (struct metadata_vertex){"done", 3, 128, true, 0, NULL};
	vertices[2] = (struct metadata_vertex){"plain", 1, 128, false, 0, NULL};
	return (struct metadata){.checkpoint_id = 17, .job.id.bytes = {1, 2, 3, 255},
		.job_name = "flow metering", .kind = METADATA_SAVEPOINT, .properties = 0x55,
		.triggered_ms = 1700000000000, .completed_ms = 1700000000042,
		.key_group_count = 128, .weir_version = "0.1.0",
		.job_text = "name: flow metering\nvertices: []\n",
		.master_count = 1, .coordinator_count = 2, .vertex_count = 3, .edge_count = 2,
		.override_count = 1, .plugin_count = 1, .sink_directory_count = 2,
		.masters = masters, .edges = edges,
		.coordinators = coordinators, .vertices = vertices, .overrides = overrides,
		.plugins = plugins, .sink_directories = sinks};
}

static void write_file(const char *name, const void *bytes, size_t size)
{
	int fd = open(in_directory(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);

	cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
	close(fd);
}

static void write_checkpoint(void)
{
	struct metadata m = sample();
	uint64_t size;

	write_file("count-0", file_bytes, sizeof(file_bytes));
	write_file("count-1", file_bytes, sizeof(file_bytes));
	cr_assert_eq(metadata_write(directory, &m, &size), 0);
}

static void compare_bytes(struct metadata_bytes a, struct metadata_bytes b)
{
	cr_assert_eq(a.size, b.size);
	if (a.size > 0)
		cr_assert_eq(memcmp(a.data, b.data, a.size), 0);
}

static void compare_vertices(const struct metadata *a, const struct metadata *b)
{
	for (uint32_t i = 0; i < a->vertex_count; i++) {
		const struct metadata_vertex *v = &a->vertices[i], *w = &b->vertices[i];

		cr_assert_str_eq(v->uid, w->uid);
		cr_assert_eq(v->parallelism, w->parallelism);
		cr_assert_eq(v->max_parallelism, w->max_parallelism);
		cr_assert_eq(v->is_finished, w->is_finished);
		cr_assert_eq(v->subtask_count, w->subtask_count);
		for (uint32_t k = 0; k < v->subtask_count; k++) {
			cr_assert_eq(v->subtasks[k].index, w->subtasks[k].index);
			cr_assert_eq(v->subtasks[k].is_finished, w->subtasks[k].is_finished);
			compare_bytes(v->subtasks[k].state, w->subtasks[k].state);
		}
	}
}

static void compare(const struct metadata *a, const struct metadata *b)
{
	cr_assert_eq(a->checkpoint_id, b->checkpoint_id);
	cr_assert(id128_is_equal(a->job.id, b->job.id));
	cr_assert_str_eq(a->job_name, b->job_name);
	cr_assert_eq(a->kind, b->kind);
	cr_assert_eq(a->properties, b->properties);
	cr_assert_eq(a->triggered_ms, b->triggered_ms);
	cr_assert_eq(a->completed_ms, b->completed_ms);
	cr_assert_eq(a->key_group_count, b->key_group_count);
	cr_assert_str_eq(a->weir_version, b->weir_version);
	cr_assert_str_eq(a->job_text, b->job_text);
	cr_assert_eq(a->master_count, b->master_count);
	cr_assert_eq(a->coordinator_count, b->coordinator_count);
	cr_assert_eq(a->vertex_count, b->vertex_count);
	cr_assert_eq(a->edge_count, b->edge_count);
	cr_assert_str_eq(a->masters[0].name, b->masters[0].name);
	compare_bytes(a->masters[0].bytes, b->masters[0].bytes);
	for (uint32_t i = 0; i < a->coordinator_count; i++) {
		cr_assert_str_eq(a->coordinators[i].name, b->coordinators[i].name);
		cr_assert_eq(a->coordinators[i].version, b->coordinators[i].version);
		compare_bytes(a->coordinators[i].bytes, b->coordinators[i].bytes);
	}
	compare_vertices(a, b);
	for (uint32_t i = 0; i < a->edge_count; i++) {
		cr_assert_str_eq(a->edges[i].from, b->edges[i].from);
		cr_assert_str_eq(a->edges[i].to, b->edges[i].to);
		cr_assert_str_eq(a->edges[i].partition, b->edges[i].partition);
	}
	cr_assert_str_eq(a->overrides[0].key, b->overrides[0].key);
	cr_assert_str_eq(a->overrides[0].value, b->overrides[0].value);
	cr_assert_str_eq(a->plugins[0].path, b->plugins[0].path);
	cr_assert_eq(a->plugins[0].size, b->plugins[0].size);
	cr_assert_eq(a->plugins[0].crc, b->plugins[0].crc);
	cr_assert_str_eq(a->sink_directories[1], b->sink_directories[1]);
}

/* ---- writing ---- */

Test(metadata, comes_back_as_it_was_by_directory_and_by_file)
{
	char text[METADATA_TEXT_BYTES], where[METADATA_PATH_BYTES];
	struct metadata m = sample(), *back;

	write_checkpoint();
	cr_assert_eq(count_files(directory), 3, "nothing beside the metadata and the two files");
	cr_assert_eq(metadata_read(&back, directory, where, text), 0, "%s", text);
	cr_assert_str_eq(where, directory);
	compare(back, &m);
	metadata_free(back);
	cr_assert_eq(metadata_read(&back, in_directory("_metadata"), where, text), 0, "%s", text);
	cr_assert_str_eq(where, directory);
	metadata_free(back);
	cr_assert_eq(chdir(directory), 0);
	cr_assert_eq(metadata_read(&back, "_metadata", where, text), 0, "%s", text);
	cr_assert_str_eq(where, ".");
	metadata_free(back);
	metadata_free(NULL);
}

Test(metadata, of_an_empty_job_can_be_written_too)
{
	char text[METADATA_TEXT_BYTES], where[METADATA_PATH_BYTES];
	struct metadata m = {.checkpoint_id = 1, .key_group_count = 1}, *back;
	uint64_t size;

	cr_assert_eq(metadata_write(directory, &m, &size), 0);
	cr_assert_eq(metadata_read(&back, directory, where, text), 0, "%s", text);
	cr_assert_eq(back->vertex_count, 0);
	metadata_free(back);
}

Test(metadata, is_never_overwritten)
{
	char text[METADATA_TEXT_BYTES], where[METADATA_PATH_BYTES];
	struct metadata m = sample(), *back;
	uint64_t size;

	write_checkpoint();
	m.checkpoint_id = 18;
	cr_assert_eq(metadata_write(directory, &m, &size), -EEXIST);
	cr_assert_eq(count_files(directory), 3);
	cr_assert_eq(metadata_read(&back, directory, where, text), 0);
	cr_assert_eq(back->checkpoint_id, 17);
	metadata_free(back);
}

static ino_t inode_of(const char *name)
{
	struct stat st;

	cr_assert_eq(lstat(in_directory(name), &st), 0, "%s", name);
	return st.st_ino;
}

/* Longer and shorter than what comes, and of the same size. */
Test(metadata, is_written_over_a_spare_one)
{
	char text[METADATA_TEXT_BYTES], where[METADATA_PATH_BYTES];
	static const uint8_t old[8192] = {'W', 'E', 'I', 'R'};
	struct metadata m = sample(), *back;
	uint64_t size;

	cr_assert_eq(metadata_write(directory, &m, &size), 0);
	cr_assert_lt(size, sizeof(old));
	for (uint32_t i = 0; i < 3; i++) {
		size_t sizes[] = {sizeof(old), 1, size};

		unlink(in_directory("_metadata"));
		write_file(METADATA_SPARE_FILE, old, sizes[i]);
		ino_t inode = inode_of(METADATA_SPARE_FILE);
		cr_assert_eq(metadata_write(directory, &m, &size), 0);
		cr_expect_eq(inode_of("_metadata"), inode);
		cr_expect_eq(count_files(directory), 1);
		cr_assert_eq(metadata_read(&back, directory, where, text), 0, "%s", text);
		compare(back, &m);
		metadata_free(back);
	}
}

/* A backup by hard links shares the bytes; what a symbolic link points to is not ours. */
Test(metadata, is_written_over_no_spare_one_that_is_also_somebody_elses)
{
	char other[METADATA_PATH_BYTES];
	struct metadata m = sample();
	uint64_t size;
	uint8_t *bytes;
	size_t kept;

	for (uint32_t i = 0; i < 2; i++) {
		write_file("other", "theirs", 6);
		snprintf(other, sizeof(other), "%s", in_directory("other"));
		cr_assert_eq(i == 0 ? link(other, in_directory(METADATA_SPARE_FILE))
				    : symlink(other, in_directory(METADATA_SPARE_FILE)), 0);
		cr_assert_eq(metadata_write(directory, &m, &size), 0);
		bytes = read_whole_file(other, &kept);
		cr_expect_eq(kept, 6);
		cr_expect_eq(memcmp(bytes, "theirs", 6), 0);
		free(bytes);
		cr_expect_eq(count_files(directory), 2, "it and the metadata");
		unlink(in_directory("_metadata"));
	}
}

Test(metadata, leaves_nothing_behind_when_the_disk_takes_only_a_part)
{
	struct metadata m = sample();
	struct rlimit limit = {0, 0}, before;
	uint64_t size, whole;

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(metadata_write(directory, &m, &whole), 0);
	unlink(in_directory("_metadata"));
	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	for (limit.rlim_cur = 0; limit.rlim_cur < whole; limit.rlim_cur += 50) {
		limit.rlim_max = before.rlim_max;
		if (limit.rlim_cur % 100 == 0)
			write_file(METADATA_SPARE_FILE, "spare", 5);
		cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
		cr_assert_eq(metadata_write(directory, &m, &size), -EFBIG);
		cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
		cr_assert_eq(count_files(directory), 0);
	}
}

Test(metadata, says_why_it_cannot_be_written)
{
	struct metadata m = sample();
	char name[METADATA_PATH_BYTES + 1];
	uint64_t size;

	cr_assert_eq(metadata_write(in_directory("none"), &m, &size), -ENOENT);
	write_file("plain", "x", 1);
	cr_assert_eq(metadata_write(in_directory("plain"), &m, &size), -ENOTDIR);
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	cr_assert_eq(metadata_write(name, &m, &size), -ENAMETOOLONG);
}

/* ---- reading what is not right ---- */

static void refused(const char *path, int status, const char *word)
{
	char text[METADATA_TEXT_BYTES] = "", where[METADATA_PATH_BYTES];
	struct metadata *back;

	cr_assert_eq(metadata_read(&back, path, where, text), status, "%s", text);
	cr_assert_not_null(strstr(text, word), "%s", text);
}

Test(metadata, that_is_missing_means_no_completed_checkpoint)
{
	refused(directory, -ENOENT, "no _metadata in it, so no completed checkpoint");
	refused(in_directory("chk-9"), -ENOENT, "chk-9: No such file or directory");
	cr_assert_eq(mkdir(in_directory("_metadata"), 0755), 0);
	refused(directory, -EBADMSG, "is not a file");
}

Test(metadata, of_another_kind_is_refused_with_offset_and_reason)
{
	uint8_t *bytes;
	size_t size;

	write_file("text", "this is no metadata of anything", 31);
	refused(in_directory("text"), -EBADMSG, "text: offset 0: not the metadata of a weir");
	write_file("short", "WEIRMETA", 8);
	refused(in_directory("short"), -EBADMSG, "short: offset 0: 8 bytes are less");
	write_checkpoint();
	bytes = read_whole_file(in_directory("_metadata"), &size);
	bytes[8] = 9;
	write_file("newer", bytes, size);
	refused(in_directory("newer"), -EBADMSG, "newer: offset 8: version 9, this weir reads 1");
	free(bytes);
}

Test(metadata, cut_at_any_byte_or_with_any_bit_flipped_is_refused)
{
	char text[METADATA_TEXT_BYTES];
	struct metadata *back;
	uint8_t *bytes, *copy;
	size_t size;

	write_checkpoint();
	bytes = read_whole_file(in_directory("_metadata"), &size);
	cr_assert_eq(metadata_decode(&back, bytes, size, "m", text), 0);
	metadata_free(back);
	for (size_t cut = 0; cut < size; cut++) {
		copy = malloc(cut + 1);
		memcpy(copy, bytes, cut);
		cr_assert_eq(metadata_decode(&back, copy, cut, "m", text), -EBADMSG);
		free(copy);
	}
	for (size_t bit = 0; bit < size * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		cr_assert_eq(metadata_decode(&back, bytes, size, "m", text), -EBADMSG, "%zu", bit);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	free(bytes);
}

/* Who can write files can write checksums too. */
Test(metadata, with_a_right_checksum_of_wrong_bytes_is_survived)
{
	char text[METADATA_TEXT_BYTES];
	struct metadata *back;
	uint8_t *bytes;
	struct prng p;
	size_t size;

	prng_seed(&p, 3);
	write_checkpoint();
	bytes = read_whole_file(in_directory("_metadata"), &size);
	for (int i = 0; i < 20000; i++) {
		size_t at = 24 + prng_below(&p, size - 24);
		uint8_t before = bytes[at];
		uint32_t crc;

		bytes[at] = (uint8_t)prng_next(&p);
		crc = crc32c(0, bytes + 24, size - 24);
		memcpy(bytes + 12, &crc, 4);
		if (metadata_decode(&back, bytes, size, "m", text) == 0)
			metadata_free(back);
		bytes[at] = before;
	}
	free(bytes);
}

static void refused_when(struct metadata *m, const char *word)
{
	uint64_t size;

	cr_assert_eq(metadata_write(directory, m, &size), 0);
	refused(directory, -EBADMSG, word);
	cr_assert_eq(unlink(in_directory("_metadata")), 0);
}

Test(metadata, with_fields_out_of_their_bounds_is_refused)
{
	struct metadata m;

#define WRONG(change, word)                                                                        \
	do {                                                                                       \
		m = sample();                                                                      \
		change;                                                                            \
		refused_when(&m, word);                                                            \
	} while (0)
	WRONG(m.kind = (enum metadata_kind)2, "unknown kind 2");
	WRONG(m.key_group_count = 3, "3 key groups");
	WRONG(vertices[0].uid = "", "uid");
	WRONG(vertices[0].parallelism = 0, "vertex count: parallelism 0");
	WRONG(vertices[0].parallelism = 1, "vertex count: 2 subtasks of 1");
	WRONG(vertices[0].is_finished = true, "vertex count: 2 subtasks of 2");
	WRONG(subtasks[1].index = 2, "subtask 2 out of order");
	WRONG(subtasks[1].index = 0, "subtask 0 out of order");
}

/* ---- verifying ---- */

struct problems {
	uint32_t count;
	char text[8][1500];
};

static void remember(void *context, const char *problem)
{
	struct problems *p = context;

	cr_assert_lt(p->count, 8);
	snprintf(p->text[p->count++], 1500, "%s", problem);
}

static bool is_told(const struct problems *p, const char *word)
{
	for (uint32_t i = 0; i < p->count; i++) {
		if (strstr(p->text[i], word) != NULL)
			return true;
	}
	return false;
}

Test(metadata, verified_tells_every_problem_of_a_checkpoint)
{
	struct problems p = {0};
	uint8_t byte = 0;
	int fd;

	write_checkpoint();
	cr_assert_eq(checkpoint_verify(directory, remember, &p), 0);
	cr_assert_eq(p.count, 0);

	fd = open(in_directory("count-0"), O_RDWR);
	cr_assert_eq(pwrite(fd, &byte, 1, 5000), 1);
	close(fd);
	unlink(in_directory("count-1"));
	cr_assert_eq(checkpoint_verify(directory, remember, &p), -EBADMSG);
	cr_assert_eq(p.count, 2);
	cr_assert(is_told(&p, "count subtask 0: "));
	cr_assert(is_told(&p, "count-0: offset 4096: the checksum of 4000 bytes is"));
	cr_assert(is_told(&p, "count subtask 1: "));
	cr_assert(is_told(&p, "count-1: No such file or directory"));

	p.count = 0;
	write_file("count-1", file_bytes, 5000);
	cr_assert_eq(checkpoint_verify(directory, remember, &p), -EBADMSG);
	cr_assert(is_told(&p, "count-1: ends at 5000"));
}

Test(metadata, verified_tells_a_state_that_is_no_state_or_another_subtasks)
{
	struct problems p = {0};
	struct metadata m = sample();
	uint64_t size;

	write_file("count-0", file_bytes, sizeof(file_bytes));
	write_file("count-1", file_bytes, sizeof(file_bytes));
	subtasks[0].state = (struct metadata_bytes){(const uint8_t *)"\x01", 1};
	cr_assert_eq(metadata_write(directory, &m, &size), 0);
	cr_assert_eq(checkpoint_verify(directory, remember, &p), -EBADMSG);
	cr_assert(is_told(&p, "count subtask 0: task state: 1 bytes that are no such message"));
	unlink(in_directory("_metadata"));

	p.count = 0;
	m = sample();
	subtasks[0].state = subtasks[1].state;
	cr_assert_eq(metadata_write(directory, &m, &size), 0);
	cr_assert_eq(checkpoint_verify(directory, remember, &p), -EBADMSG);
	cr_assert_eq(p.count, 1);
	cr_assert(is_told(&p, "count subtask 0: holds the state of another subtask"));
}

Test(metadata, verified_tells_that_there_is_no_checkpoint)
{
	struct problems p = {0};

	cr_assert_eq(checkpoint_verify(directory, remember, &p), -ENOENT);
	cr_assert(is_told(&p, "no _metadata in it"));
}
