/* Both stores do the same to real files, and say the same about what went wrong. */

#include "dataplane/checkpoint/store.h"

#include "dataplane/base/limits.h"
#include "dataplane/checkpoint/store_select.h"
#include "dataplane/checkpoint/store_share.h"
#include "dataplane/checkpoint/thread_store.h"
#include "dataplane/checkpoint/uring_store.h"
#include "tests/sim/fault_store.h"
#include "tests/support/store_await.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];

static const char *in_directory(const char *name)
{
	static char paths[8][128];
	static uint32_t next;
	char *path = paths[next++ % 8];

	snprintf(path, 128, "%s/%s", directory, name);
	return path;
}

static void begin(void)
{
	make_test_directory(directory);
}

static void end(void)
{
	remove_test_directory(directory);
}

TestSuite(store, .init = begin, .fini = end);

/* Runs `test` on each store this machine has. */
static void on_each_store(void (*test)(struct store *s))
{
	char why[STORE_WHY_BYTES];
	struct store *s;

	cr_assert_eq(store_open(&s, STORE_THREADS, why), 0);
	test(s);
	store_destroy(s);
	remove_test_directory(directory);
	make_test_directory(directory);
	if (store_open(&s, STORE_URING, why) != 0)
		return; /* where io_uring is refused, the threads are all there is */
	test(s);
	store_destroy(s);
}

static int64_t open_file(struct store *s, const char *path, uint32_t flags)
{
	return store_await(s, &(struct store_request){STORE_OPEN, .path = path, .flags = flags});
}

static int64_t on_file(struct store *s, enum store_op op, int64_t file)
{
	return store_await(s, &(struct store_request){op, .file = (int32_t)file});
}

static int64_t on_path(struct store *s, enum store_op op, const char *path, const char *to)
{
	return store_await(s, &(struct store_request){op, .path = path, .path_to = to});
}

static int64_t transfer(struct store *s, enum store_op op, int64_t file, void *bytes,
		uint32_t size, uint64_t offset)
{
	return store_await(s, &(struct store_request){op, .file = (int32_t)file, .room = bytes,
				.size = size, .offset = offset});
}

/* ---- what a file goes through ---- */

static void check_life_of_a_file(struct store *s)
{
	char text[] = "twelve bytes", back[32] = "";
	int64_t file = open_file(s, in_directory("a"), STORE_CREATE);

	cr_assert_geq(file, 0);
	cr_assert_eq(open_file(s, in_directory("a"), STORE_CREATE), -EEXIST);
	cr_assert_eq(transfer(s, STORE_WRITE, file, text, 12, 0), 12);
	cr_assert_eq(transfer(s, STORE_WRITE, file, text, 12, 100), 12);
	cr_assert_eq(on_file(s, STORE_SYNC, file), 0);
	cr_assert_eq(on_file(s, STORE_CLOSE, file), 0);
	cr_assert_eq(on_path(s, STORE_MKDIR, in_directory("d"), NULL), 0);
	cr_assert_eq(on_path(s, STORE_MKDIR, in_directory("d"), NULL), -EEXIST);
	cr_assert_eq(on_path(s, STORE_RENAME, in_directory("a"), in_directory("d/b")), 0);
	cr_assert_eq(on_path(s, STORE_SYNC_DIRECTORY, in_directory("d"), NULL), 0);

	file = open_file(s, in_directory("d/b"), 0);
	cr_assert_geq(file, 0);
	cr_assert_eq(transfer(s, STORE_READ, file, back, 32, 100), 12, "ends with the file");
	cr_assert_str_eq(back, text);
	cr_assert_eq(transfer(s, STORE_READ, file, back, 32, 50), 32);
	cr_assert_eq(back[0], 0, "a hole");
	cr_assert_eq(transfer(s, STORE_READ, file, back, 32, 112), 0);
	cr_assert_eq(on_file(s, STORE_CLOSE, file), 0);
	cr_assert_eq(on_path(s, STORE_UNLINK, in_directory("d/b"), NULL), 0);
	cr_assert_eq(access(in_directory("d/b"), F_OK), -1);
	cr_assert_eq(store_inflight(s), 0);
}

Test(store, makes_fills_renames_reads_and_removes_files)
{
	on_each_store(check_life_of_a_file);
}

static void check_errors(struct store *s)
{
	char byte = 0;
	int64_t full = open_file(s, "/dev/full", 0), file;

	cr_assert_eq(open_file(s, in_directory("none"), 0), -ENOENT);
	cr_assert_eq(open_file(s, in_directory("none/a"), STORE_CREATE), -ENOENT);
	cr_assert_eq(on_path(s, STORE_RENAME, in_directory("none"), in_directory("x")), -ENOENT);
	cr_assert_eq(on_path(s, STORE_UNLINK, in_directory("none"), NULL), -ENOENT);
	cr_assert_eq(on_path(s, STORE_SYNC_DIRECTORY, in_directory("none"), NULL), -ENOENT);
	cr_assert_eq(on_path(s, STORE_SYNC_DIRECTORY, "/dev/null", NULL), -ENOTDIR);
	cr_assert_eq(transfer(s, STORE_WRITE, 100000, &byte, 1, 0), -EBADF);
	cr_assert_eq(transfer(s, STORE_WRITE, full, &byte, 1, 0), -EBADF, "open to read");
	cr_assert_eq(on_file(s, STORE_CLOSE, full), 0);
	cr_assert_eq(on_file(s, STORE_CLOSE, full), -EBADF);
	file = open("/dev/full", O_WRONLY);
	cr_assert_eq(transfer(s, STORE_WRITE, file, &byte, 1, 0), -ENOSPC);
	cr_assert_eq(on_file(s, STORE_CLOSE, file), 0);
}

static void allocate(struct store *s)
{
	const char *path = in_directory("allocated");
	struct stat st;
	int64_t file = store_await(s, &(struct store_request){.op = STORE_OPEN,
			.flags = STORE_CREATE, .path = path});

	cr_assert_geq(file, 0);
	cr_assert_eq(store_await(s, &(struct store_request){.op = STORE_ALLOCATE,
			.file = (int32_t)file, .offset = 4096, .size = 8192}), 0);
	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_size, 12288);
	cr_assert_eq(store_await(s, &(struct store_request){.op = STORE_CLOSE,
			.file = (int32_t)file}), 0);
	cr_assert_eq(unlink(path), 0);
}

Test(store, gives_a_file_the_room_that_it_will_need)
{
	on_each_store(allocate);
}

Test(store, reports_the_error_of_each_request)
{
	on_each_store(check_errors);
}

/* The kernel takes the part up to the limit first; the rest is tried and refused. */
static void check_short_write(struct store *s)
{
	static uint8_t bytes[100000];
	struct rlimit limit, before;
	struct stat st;
	int64_t file = open_file(s, in_directory("short"), STORE_CREATE);

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit = (struct rlimit){50000, before.rlim_max};
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_assert_eq(transfer(s, STORE_WRITE, file, bytes, sizeof(bytes), 0), -EFBIG);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
	cr_assert_eq(fstat((int)file, &st), 0);
	cr_assert_eq(st.st_size, 50000);
	cr_assert_eq(on_file(s, STORE_CLOSE, file), 0);
}

Test(store, goes_on_after_a_short_write_and_meets_the_error_behind_it)
{
	on_each_store(check_short_write);
}

/* ---- O_DIRECT ---- */

static void write_direct(struct store *s, const char *path)
{
	uint8_t *bytes = aligned_alloc(STORE_ALIGN_BYTES, 65536), *back;
	size_t size;
	int64_t file = open_file(s, path, STORE_CREATE | STORE_DIRECT);

	for (uint32_t i = 0; i < 65536; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	cr_assert_geq(file, 0);
	for (uint32_t at = 0; at < 65536; at += 16384)
		cr_assert_eq(store_await(s, &(struct store_request){STORE_WRITE, STORE_DIRECT,
			(int32_t)file, 16384, at, {bytes + at}, NULL, NULL, 0}), 16384);
	cr_assert_eq(on_file(s, STORE_SYNC, file), 0);
	cr_assert_eq(on_file(s, STORE_CLOSE, file), 0);
	back = read_whole_file(path, &size);
	cr_assert_eq(size, 65536);
	cr_assert_eq(memcmp(bytes, back, size), 0);
	free(back);
	free(bytes);
}

static void check_direct(struct store *s)
{
	char path[64];

	write_direct(s, in_directory("direct"));
	/* A file system in memory does not know O_DIRECT (before Linux 6.6). */
	snprintf(path, sizeof(path), "/dev/shm/weir-test-%d", getpid());
	write_direct(s, path);
	unlink(path);
}

Test(store, writes_past_the_page_cache_where_it_can_and_through_it_where_not)
{
	on_each_store(check_direct);
}

/* A write that O_DIRECT does not allow goes through the page cache rather than fail. */
static void check_unaligned(struct store *s)
{
	char text[] = "not aligned", *back;
	size_t size;
	int64_t file = open_file(s, in_directory("odd"), STORE_CREATE | STORE_DIRECT);

	cr_assert_eq(store_await(s, &(struct store_request){STORE_WRITE, STORE_DIRECT,
		(int32_t)file, 11, 0, {text}, NULL, NULL, 0}), 11);
	cr_assert_eq(on_file(s, STORE_CLOSE, file), 0);
	back = (char *)read_whole_file(in_directory("odd"), &size);
	cr_assert_eq(size, 11);
	cr_assert_eq(memcmp(back, text, 11), 0);
	free(back);
}

Test(store, gives_up_o_direct_where_the_disk_asks_for_another_alignment)
{
	on_each_store(check_unaligned);
}

/* ---- many at once ---- */

static void check_many(struct store *s)
{
	static uint8_t bytes[STORE_OPS_IN_FLIGHT_MAX][512];
	bool is_done[STORE_OPS_IN_FLIGHT_MAX] = {false};
	uint32_t left = STORE_OPS_IN_FLIGHT_MAX;
	int64_t file = open_file(s, in_directory("many"), STORE_CREATE);
	struct store_request r = {STORE_WRITE, .file = (int32_t)file, .size = 512};
	uint8_t *back;
	size_t size;

	for (uint32_t i = 0; i < STORE_OPS_IN_FLIGHT_MAX; i++) {
		memset(bytes[i], (int)i, 512);
		r.bytes = bytes[i];
		r.offset = i * 512;
		r.tag = i;
		cr_assert_eq(store_submit(s, &r), 0);
	}
	cr_assert_eq(store_submit(s, &r), -EAGAIN);
	cr_assert_eq(store_inflight(s), STORE_OPS_IN_FLIGHT_MAX);
	while (left > 0) {
		struct store_done done[7];
		uint32_t count = store_reap(s, done, 7);

		for (uint32_t i = 0; i < count; i++) {
			cr_assert_eq(done[i].result, 512);
			cr_assert(!is_done[done[i].tag]);
			is_done[done[i].tag] = true;
		}
		left -= count;
	}
	cr_assert_eq(on_file(s, STORE_CLOSE, file), 0);
	back = read_whole_file(in_directory("many"), &size);
	cr_assert_eq(size, sizeof(bytes));
	cr_assert_eq(memcmp(back, bytes, size), 0);
	free(back);
}

/* Then it takes back what the thread was for: nobody else here cancels anything. */
Test(store, waits_for_a_thread_that_the_kernel_cannot_make_at_first)
{
	struct store_request r = {
			STORE_OPEN, .path = in_directory("late"), .flags = STORE_CREATE};
	char why[STORE_WHY_BYTES];
	struct rlimit threads;
	struct store_done done;
	struct store *s;

	if (store_open(&s, STORE_URING, why) != 0)
		return;
	cr_assert_eq(chown(directory, 65534, 65534), 0);
	cr_assert_eq(setresuid(65534, 65534, 65534), 0);
	getrlimit(RLIMIT_NPROC, &threads);
	cr_assert_eq(setrlimit(RLIMIT_NPROC, &(struct rlimit){1, threads.rlim_max}), 0);
	cr_assert_eq(store_submit(s, &r), 0);
	for (uint32_t i = 0; i < 100; i++) {
		cr_assert_eq(store_reap(s, &done, 1), 0);
		usleep(1000);
	}
	cr_assert_eq(setrlimit(RLIMIT_NPROC, &threads), 0);
	while (store_reap(s, &done, 1) == 0)
		usleep(1000);
	cr_assert_geq(done.result, 0, "%s", strerror((int)-done.result));
	cr_assert_eq(on_file(s, STORE_CLOSE, done.result), 0);
	store_destroy(s);
}

Test(store, takes_a_full_queue_and_then_says_again_later)
{
	on_each_store(check_many);
}

/* ---- one that hangs ---- */

enum { HUNG_COUNT = 4 };

/* The open of a pipe that nobody writes to comes back when somebody does. */
Test(store, of_threads_lets_others_pass_what_hangs)
{
	struct store *s;
	const char *pipe_path = in_directory("pipe");
	struct store_request open_pipe = {STORE_OPEN, .path = pipe_path, .tag = 1};
	struct store_done done = {0};
	uint32_t back_count = 0;

	cr_assert_eq(thread_store_create(&s), 0);
	cr_assert_eq(mkfifo(pipe_path, 0600), 0);
	for (uint32_t i = 0; i < HUNG_COUNT; i++)
		cr_assert_eq(store_submit(s, &open_pipe), 0);
	cr_assert_eq(store_submit(s, &(struct store_request){STORE_MKDIR,
		.path = in_directory("beside"), .tag = 2}), 0);
	for (int i = 0; i < 3000 && store_reap(s, &done, 1) == 0; i++)
		usleep(1000);
	cr_assert_eq(done.tag, 2, "it waits behind what hangs");
	cr_assert_eq(done.result, 0);
	int writer = open(pipe_path, O_WRONLY);
	cr_assert_geq(writer, 0);
	while (back_count < HUNG_COUNT) {
		if (store_reap(s, &done, 1) == 0)
			continue;
		cr_assert_geq(done.result, 0);
		close((int)done.result);
		back_count++;
	}
	close(writer);
	store_destroy(s);
}

/* ---- shared by many ---- */

static void check_share(struct store *s)
{
	struct store_share *share;
	struct store *a, *b;
	struct store_done done;
	char text[] = "x";
	int64_t file;

	cr_assert_eq(store_share_create(&share, s), 0);
	a = store_share_attach(share);
	b = store_share_attach(share);
	file = open_file(a, in_directory("shared"), STORE_CREATE);
	cr_assert_geq(file, 0);
	for (uint32_t i = 0; i < STORE_SHARE_INFLIGHT_MAX; i++)
		cr_assert_eq(store_submit(a, &(struct store_request){STORE_WRITE, 0,
			(int32_t)file, 1, i, {text}, NULL, NULL, UINT64_MAX - i}), 0);
	cr_assert_eq(store_submit(a, &(struct store_request){STORE_SYNC,
		.file = (int32_t)file}), -EAGAIN, "its share is used up");
	cr_assert_eq(on_path(b, STORE_MKDIR, in_directory("b"), NULL), 0, "another's is not");
	cr_assert_eq(store_reap(b, &done, 1), 0);
	for (uint64_t sum = 0, count = 0; count < STORE_SHARE_INFLIGHT_MAX;) {
		if (store_reap(a, &done, 1) == 0)
			continue;
		cr_assert_eq(done.result, 1);
		sum += UINT64_MAX - done.tag;
		if (++count == STORE_SHARE_INFLIGHT_MAX)
			cr_assert_eq(sum, STORE_SHARE_INFLIGHT_MAX *
					(STORE_SHARE_INFLIGHT_MAX - 1) / 2, "each tag once");
	}
	cr_assert_eq(on_file(a, STORE_CLOSE, file), 0);
	store_destroy(a);
	store_destroy(b);
	cr_assert(store_share_is_idle(share));
	store_share_destroy(share);
}

Test(store, shared_by_two_users_keeps_their_completions_apart)
{
	on_each_store(check_share);
}

Test(store, keeps_the_place_of_a_user_that_left_until_its_requests_are_back)
{
	struct fault_store hung;
	struct store_share *share;
	struct store *inner, *gone, *next;
	struct store_done done;

	cr_assert_eq(thread_store_create(&inner), 0);
	fault_store_init(&hung, inner);
	hung.is_hung = true;
	cr_assert_eq(store_share_create(&share, &hung.store), 0);
	gone = store_share_attach(share);
	cr_assert_eq(store_submit(gone, &(struct store_request){STORE_MKDIR,
		.path = in_directory("late")}), 0);
	store_destroy(gone);
	next = store_share_attach(share);
	cr_assert_neq(next, gone);
	fault_store_settle(&hung);
	while (!store_share_is_idle(share))
		store_share_poll(share);
	cr_assert_eq(store_reap(next, &done, 1), 0, "that one was another's");
	store_destroy(next);
	cr_assert_eq(store_share_attach(share), gone, "the place is free again");
	store_destroy(gone);
	store_share_destroy(share);
	store_destroy(inner);
}

/* ---- the choice ---- */

Test(store, says_which_store_it_took)
{
	char why[STORE_WHY_BYTES];
	enum store_kind kind;
	struct store *s;

	cr_assert(store_kind_parse("threads", &kind));
	cr_assert_eq(store_open(&s, kind, why), 0);
	cr_assert_str_eq(s->ops->name, "threads");
	cr_assert_not_null(strstr(why, "as configured"));
	store_destroy(s);
	cr_assert(!store_kind_parse("aio", &kind));
}

static void refuse_io_uring(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* the number of the call */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {4, code};

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

static void check_refused(int error, const char *word)
{
	char why[STORE_WHY_BYTES];
	struct store *s;

	refuse_io_uring(error);
	cr_assert_eq(store_probe_uring(why), -error);
	cr_assert_not_null(strstr(why, word), "%s", why);
	cr_assert_eq(store_open(&s, STORE_URING, why), -error, "asked for by name: an error");
	cr_assert_eq(store_open(&s, STORE_AUTO, why), 0);
	cr_assert_str_eq(s->ops->name, "threads");
	cr_assert_not_null(strstr(why, word), "%s", why);
	check_life_of_a_file(s);
	store_destroy(s);
}

Test(store, falls_back_to_threads_where_a_seccomp_filter_refuses_io_uring)
{
	check_refused(EPERM, "seccomp");
}

Test(store, falls_back_to_threads_where_the_kernel_has_no_io_uring)
{
	check_refused(ENOSYS, "this kernel has no io_uring");
}

/* ---- enlisted memory ---- */

Test(store, writes_from_memory_that_was_enlisted_and_from_other_memory)
{
	enum { BYTES = 65536 };
	char why[STORE_WHY_BYTES];
	uint8_t *memory = aligned_alloc(4096, 2 * BYTES), *back;
	struct iovec region = {memory, BYTES};
	struct store *s;
	size_t size;

	if (store_open(&s, STORE_URING, why) != 0)
		return;
	for (uint32_t i = 0; i < 2 * BYTES; i++)
		memory[i] = (uint8_t)(i * 7 + i / 256);
	int rc = store_enlist_buffers(s, &region, 1, 1, why);
	if (rc == 0)
		cr_assert_str_eq(why, "buffers registered");
	int64_t file = store_await(s, &(struct store_request){.op = STORE_OPEN,
			.flags = STORE_CREATE | STORE_DIRECT, .path = in_directory("enlisted")});
	cr_assert_geq(file, 0);
	/* Inside, across the end of it, and outside. */
	for (uint64_t at = 0; at < 2 * BYTES; at += 32768 + 4096) {
		uint32_t bytes = 2 * BYTES - at < 36864 ? (uint32_t)(2 * BYTES - at) : 36864;

		cr_assert_eq(store_await(s, &(struct store_request){.op = STORE_WRITE,
				.flags = STORE_DIRECT, .file = (int32_t)file, .offset = at,
				.bytes = memory + at, .size = bytes}), bytes);
	}
	cr_assert_eq(store_await(s, &(struct store_request){.op = STORE_CLOSE,
			.file = (int32_t)file}), 0);
	back = read_whole_file(in_directory("enlisted"), &size);
	cr_assert_eq(size, 2 * BYTES);
	cr_assert_eq(memcmp(back, memory, size), 0);
	free(back);
	store_destroy(s);
	free(memory);
}

/* In a process that may lock little: 0 when all was said as it should be. */
static int enlist_with_little_memlock(void)
{
	static uint8_t memory[1 << 20] __attribute__((aligned(4096)));
	struct iovec region = {memory, sizeof(memory)};
	struct rlimit limit = {256 * 1024, 256 * 1024};
	char why[STORE_WHY_BYTES];
	struct store *s;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || setuid(65534) != 0 ||
			store_open(&s, STORE_URING, why) != 0)
		return 0;
	if (store_enlist_buffers(s, &region, 1, 3, why) != -ENOMEM)
		return 1;
	puts(why);
	store_destroy(s);
	return strstr(why, "the memlock limit is 256 KiB, 3072 KiB are needed") != NULL ? 0 : 2;
}

Test(store, says_how_much_memory_must_be_lockable_to_enlist_it)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(enlist_with_little_memlock());
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "%d", status);
}

Test(store, of_a_thread_has_no_use_for_enlisted_memory)
{
	char why[STORE_WHY_BYTES], memory[64];
	struct iovec region = {memory, sizeof(memory)};
	struct store *s;

	cr_assert_eq(store_open(&s, STORE_THREADS, why), 0);
	cr_assert_eq(store_enlist_buffers(s, &region, 1, 1, why), -EOPNOTSUPP);
	store_destroy(s);
}
