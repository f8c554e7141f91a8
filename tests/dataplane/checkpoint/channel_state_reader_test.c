/* channel_state_reader: what was in flight comes back from a real file, damage is named. */

#include "dataplane/checkpoint/channel_state_reader.h"

#include "dataplane/checkpoint/store_select.h"
#include "tests/support/channel_state_world.h"
#include "tests/support/store_await.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFS = 5 };

static const int SIZES[BUFS] = {1, 4096, 8192, 5000, 8191};

static struct channel_world w;
static char directory[64], chk[80], path[160];
static const struct channel_state_owner owner = {5, "map", 3};
static const struct channel_state_handle *handle;

/* Writes a checkpoint with data in one input channel; false: this kernel has no such store. */
static bool write_checkpoint(enum store_kind kind)
{
	struct channel_info at = {0, 1};
	struct store *store;
	char why[STORE_WHY_BYTES];

	if (store_open(&store, kind, why) != 0)
		return false;
	make_test_directory(directory);
	snprintf(chk, sizeof(chk), "%s/chk-5", directory);
	snprintf(path, sizeof(path), "%s/channels-map-3-abcd0000", chk);
	cr_assert_eq(mkdir(chk, 0755), 0);
	channel_world_init(&w, store, directory);
	w.is_real = true;
	channel_world_start_all(&w, 5);
	for (uint32_t i = 0; i < BUFS; i++) {
		struct buf *b = channel_world_buf(&w, (uint32_t)SIZES[i], (uint8_t)i);

		channel_state_writer_add_input_data(w.writers[0], 5, at, &b, 1, 0);
		buf_release(b);
	}
	channel_world_finish_all(&w, 5);
	channel_world_finish(&w, 0, 5);
	const struct channel_state_result *r = channel_state_writer_result(w.writers[0], 5);
	cr_assert_eq(r->handle_count, 1);
	handle = &r->handles[0];
	return true;
}

static void end(void)
{
	channel_world_free(&w);
	remove_test_directory(directory);
}

static void read_back(enum store_kind kind)
{
	char text[CHANNEL_STATE_READER_TEXT_BYTES];
	struct channel_state_reader *r;

	if (!write_checkpoint(kind))
		return;
	cr_assert_eq(channel_state_open(&r, chk, handle, &owner, text), 0, "%s", text);
	cr_assert_eq(channel_state_chunk_count(r), BUFS);
	for (uint32_t i = 0; i < BUFS; i++) {
		uint8_t room[8192];

		cr_assert_eq(channel_state_chunk(r, i)->size, (uint32_t)SIZES[i]);
		cr_assert_eq(channel_state_read_chunk(r, i, room, text), 0, "%s", text);
		for (int k = 0; k < SIZES[i]; k++)
			cr_assert_eq(room[k], (uint8_t)(i + (uint32_t)k));
	}
	channel_state_close(r);
	cr_assert_eq(channel_state_verify(chk, handle, &owner, text), 0, "%s", text);
	end();
}

Test(channel_state_reader, reads_what_io_uring_wrote, .timeout = 20)
{
	read_back(STORE_URING);
}

Test(channel_state_reader, reads_what_the_io_thread_wrote_in_the_same_form, .timeout = 20)
{
	read_back(STORE_THREADS);
}

/* Changes one byte of the file, verifies, changes it back. */
static int verify_with(int fd, uint64_t offset, char *text)
{
	uint8_t byte, other;

	cr_assert_eq(pread(fd, &byte, 1, (off_t)offset), 1);
	other = byte ^ 0x40;
	cr_assert_eq(pwrite(fd, &other, 1, (off_t)offset), 1);
	int rc = channel_state_verify(chk, handle, &owner, text);
	cr_assert_eq(pwrite(fd, &byte, 1, (off_t)offset), 1);
	return rc;
}

Test(channel_state_reader, names_any_damage, .timeout = 60)
{
	char text[CHANNEL_STATE_READER_TEXT_BYTES];

	cr_assert(write_checkpoint(STORE_THREADS));
	int fd = open(path, O_RDWR);
	cr_assert_geq(fd, 0);
	for (uint64_t at = 0; at < CHANNEL_STATE_HEADER_BYTES; at++)
		cr_assert_eq(verify_with(fd, at, text), -EBADMSG, "%d", (int)at);
	for (uint64_t at = 0; at < channel_state_section_bytes(BUFS); at++)
		cr_assert_eq(verify_with(fd, handle->offset + at, text), -EBADMSG);
	cr_assert_eq(verify_with(fd, 4096, text), -EBADMSG);
	cr_assert_not_null(strstr(text, "channels-map-3-abcd0000: offset 4096"), "%s", text);
	cr_assert_not_null(strstr(text, "in flight"), "%s", text);
	cr_assert_eq(channel_state_verify(chk, handle, &owner, text), 0, "%s", text);
	cr_assert_eq(ftruncate(fd, (off_t)handle->offset + 10), 0);
	cr_assert_eq(channel_state_verify(chk, handle, &owner, text), -EBADMSG);
	close(fd);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(channel_state_verify(chk, handle, &owner, text), -ENOENT);
	end();
}

Test(channel_state_reader, takes_nobody_elses_data, .timeout = 20)
{
	struct channel_state_owner other = owner;
	char text[CHANNEL_STATE_READER_TEXT_BYTES];

	cr_assert(write_checkpoint(STORE_THREADS));
	other.checkpoint_id = 6;
	cr_assert_eq(channel_state_verify(chk, handle, &other, text), -EBADMSG);
	other = owner;
	other.vertex_uid = "sink";
	cr_assert_eq(channel_state_verify(chk, handle, &other, text), -EBADMSG);
	other = owner;
	other.subtask_index = 2;
	cr_assert_eq(channel_state_verify(chk, handle, &other, text), -EBADMSG);
	struct channel_state_handle wrong = *handle;
	wrong.channel = 0;
	cr_assert_eq(channel_state_verify(chk, &wrong, &owner, text), -EBADMSG);
	end();
}
