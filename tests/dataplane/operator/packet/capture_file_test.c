#include "dataplane/operator/packet/capture_file.h"
#include "tests/support/capture_writer.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pcap/dlt.h>
#include <stdlib.h>
#include <unistd.h>

enum { SEEN_MAX = 64 };

struct seen {
	uint32_t count;
	uint32_t link_type[SEEN_MAX], captured[SEEN_MAX], original[SEEN_MAX];
	int64_t time_ns[SEEN_MAX];
	uint8_t first_byte[SEEN_MAX];
};

static char directory[256], path[300], text[CAPTURE_TEXT_BYTES];
static struct seen seen;

static void setup(void)
{
	make_test_directory(directory);
	snprintf(path, sizeof(path), "%s/a.pcapng", directory);
}

static void teardown(void)
{
	remove_test_directory(directory);
}

TestSuite(capture_file, .init = setup, .fini = teardown, .timeout = 30);

static void see(void *user, const struct capture_packet *p)
{
	struct seen *s = user;
	volatile uint8_t sum = 0;

	for (uint32_t i = 0; i < p->captured_bytes; i++)
		sum = (uint8_t)(sum + p->bytes[i]); /* a sanitizer looks at each */
	if (s->count < SEEN_MAX) {
		s->link_type[s->count] = p->link_type;
		s->captured[s->count] = p->captured_bytes;
		s->original[s->count] = p->original_bytes;
		s->time_ns[s->count] = p->time_ns;
		s->first_byte[s->count] = p->captured_bytes > 0 ? p->bytes[0] : 0;
	}
	s->count++;
}

static enum capture_end read_all(void)
{
	struct capture_file *f;
	enum capture_end end;
	int rc = capture_file_open(&f, path, text);

	memset(&seen, 0, sizeof(seen));
	cr_assert_eq(rc, 0, "%s", text);
	do
		end = capture_file_read(f, 3, see, &seen, text);
	while (end == CAPTURE_GOES_ON);
	capture_file_close(f);
	return end;
}

Test(capture_file, each_interface_of_pcapng_has_its_link_type_and_clock)
{
	struct capture_writer w;

	capture_writer_open(&w, path, CAPTURE_PCAPNG, 1);
	capture_writer_add_interface(&w, 101, 96, 6);     /* microseconds */
	capture_writer_add_interface(&w, 113, 0, 3);      /* milliseconds */
	capture_writer_add_interface(&w, 0, 0, 0x80 | 10); /* 1024 a second */
	capture_writer_add_on(&w, 0, 1000000007, "a", 1);
	capture_writer_add_on(&w, 1, 1000007, "b", 1);
	capture_writer_add_on(&w, 2, 1007, "c", 1);
	capture_writer_add_on(&w, 3, 1024 + 512, "d", 1);
	capture_writer_close(&w);
	cr_assert_eq(read_all(), CAPTURE_ENDED);
	cr_assert_eq(seen.count, 4);
	cr_expect_eq(seen.link_type[0], DLT_EN10MB);
	cr_expect_eq(seen.link_type[1], DLT_RAW);
	cr_expect_eq(seen.link_type[2], DLT_LINUX_SLL);
	cr_expect_eq(seen.link_type[3], DLT_NULL);
	cr_expect_eq(seen.time_ns[0], 1000000007);
	cr_expect_eq(seen.time_ns[1], 1000007000);
	cr_expect_eq(seen.time_ns[2], 1007000000);
	cr_expect_eq(seen.time_ns[3], 1500000000);
}

Test(capture_file, sections_may_differ_in_byte_order_and_begin_with_no_interface)
{
	struct capture_writer w;

	capture_writer_open(&w, path, CAPTURE_PCAPNG, 1);
	capture_writer_add(&w, 5, "ab", 2, 60);
	capture_writer_add_section(&w, CAPTURE_PCAPNG_SWAPPED);
	capture_writer_add_interface(&w, 101, 0, 9);
	capture_writer_add(&w, 6, "cde", 3, 61);
	capture_writer_add_section(&w, CAPTURE_PCAPNG);
	capture_writer_add(&w, 7, "f", 1, 62);
	capture_writer_close(&w);
	cr_expect_eq(read_all(), CAPTURE_WAS_CUT);
	cr_expect_not_null(strstr(text, "a packet of interface 0, which there is not"));
	cr_expect_not_null(strstr(text, "after packet 2"));
	cr_assert_eq(seen.count, 2);
	cr_expect_eq(seen.link_type[1], DLT_RAW);
	cr_expect_eq(seen.captured[1], 3);
	cr_expect_eq(seen.original[1], 61);
	cr_expect_eq(seen.time_ns[1], 6);
	cr_expect_eq(seen.first_byte[1], 'c');
}

Test(capture_file, simple_and_obsolete_packets_count_and_unknown_blocks_do_not)
{
	static const uint32_t simple[] = {70, 0x61616161};
	static const uint32_t old[] = {0, 0, 9, 4, 71, 0x62626262};
	struct capture_writer w;

	capture_writer_open(&w, path, CAPTURE_PCAPNG, 1);
	capture_writer_add_block(&w, 3, simple, sizeof(simple));
	capture_writer_add_block(&w, 4, "names", 5);
	capture_writer_add_block(&w, 2, old, sizeof(old));
	capture_writer_add_block(&w, 0x0badcafe, "", 0);
	capture_writer_close(&w);
	cr_assert_eq(read_all(), CAPTURE_ENDED);
	cr_assert_eq(seen.count, 2);
	cr_expect_eq(seen.original[0], 70);
	cr_expect_eq(seen.captured[0], 4);
	cr_expect_eq(seen.first_byte[0], 'a');
	cr_expect_eq(seen.original[1], 71);
	cr_expect_eq(seen.time_ns[1], 9);
	cr_expect_eq(seen.first_byte[1], 'b');
}

Test(capture_file, times_beyond_64_bits_are_kept_away_from_their_ends)
{
	struct capture_writer w;

	capture_writer_open(&w, path, CAPTURE_PCAPNG, 1);
	capture_writer_add_interface(&w, 1, 0, 0); /* seconds */
	capture_writer_add_on(&w, 1, UINT64_MAX, "a", 1);
	capture_writer_close(&w);
	cr_assert_eq(read_all(), CAPTURE_ENDED);
	cr_expect_eq(seen.time_ns[0], INT64_C(9200000000000000000));
}

Test(capture_file, a_clock_of_any_resolution_is_read)
{
	struct capture_writer w;

	capture_writer_open(&w, path, CAPTURE_PCAPNG, 1);
	capture_writer_add_interface(&w, 1, 0, 20);
	capture_writer_add_interface(&w, 1, 0, 127);
	capture_writer_add_interface(&w, 1, 0, 0x80 | 64);
	capture_writer_add_interface(&w, 1, 0, 0x80 | 127);
	capture_writer_add_on(&w, 1, UINT64_C(5000000000000000000), "a", 1);
	capture_writer_add_on(&w, 2, UINT64_MAX, "b", 1);
	capture_writer_add_on(&w, 3, UINT64_C(1) << 63, "c", 1);
	capture_writer_add_on(&w, 4, UINT64_MAX, "d", 1);
	capture_writer_close(&w);
	cr_assert_eq(read_all(), CAPTURE_ENDED, "%s", text);
	cr_assert_eq(seen.count, 4);
	cr_expect_eq(seen.time_ns[0], 50000000);
	cr_expect_eq(seen.time_ns[1], 0);
	cr_expect_eq(seen.time_ns[2], 500000000);
	cr_expect_eq(seen.time_ns[3], 0);
}

Test(capture_file, a_block_may_say_its_length_without_its_padding)
{
	/* As the first writers of the format did: the bytes are padded, the lengths are not. */
	static const uint32_t old[] = {2, 12 + 20 + 3, 0, 0, 9, 3, 71, 0x00616161, 12 + 20 + 3};
	struct capture_writer w;

	capture_writer_open(&w, path, CAPTURE_PCAPNG, 1);
	cr_assert_eq(fwrite(old, sizeof(old), 1, w.file), 1);
	capture_writer_add(&w, 5, "b", 1, 60);
	capture_writer_close(&w);
	cr_assert_eq(read_all(), CAPTURE_ENDED, "%s", text);
	cr_assert_eq(seen.count, 2);
	cr_expect_eq(seen.captured[0], 3);
	cr_expect_eq(seen.first_byte[0], 'a');
	cr_expect_eq(seen.first_byte[1], 'b');
}

Test(capture_file, seconds_of_pcap_have_no_sign)
{
	struct capture_writer w;

	capture_writer_open(&w, path, CAPTURE_PCAP, 1);
	capture_writer_add(&w, INT64_C(2147483648000000000), "a", 1, 1); /* January 2038 */
	capture_writer_add(&w, INT64_C(4294967295999999000), "b", 1, 1); /* February 2106 */
	capture_writer_close(&w);
	cr_assert_eq(read_all(), CAPTURE_ENDED);
	cr_assert_eq(seen.count, 2);
	cr_expect_eq(seen.time_ns[0], INT64_C(2147483648000000000));
	cr_expect_eq(seen.time_ns[1], INT64_C(4294967295999999000));
}

Test(capture_file, a_link_type_of_more_than_16_bits_is_not_taken_for_another)
{
	struct capture_writer w;

	capture_writer_open(&w, path, CAPTURE_PCAP, 0x10000 | DLT_EN10MB);
	capture_writer_add(&w, 5, "a", 1, 60);
	capture_writer_close(&w);
	cr_assert_eq(read_all(), CAPTURE_ENDED);
	cr_expect_eq(seen.link_type[0], UINT16_MAX); /* nobody's */
}

Test(capture_file, what_is_no_capture_has_its_own_error)
{
	static const char *const texts[] = {"no", "This is a text.", "\x0a\x0d\x0d\x0a",
			"\x0a\x0d\x0d\x0a\x1c\1\1\1\x4d\x3c\x2b\x1b",
			"\xd4\xc3\xb2\xa1\2"};
	struct capture_file *f = NULL;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		FILE *out = fopen(path, "wb");

		fputs(texts[i], out);
		fclose(out);
		cr_expect_eq(capture_file_open(&f, path, text), -EMEDIUMTYPE, "%zu", i);
		cr_expect_not_null(strstr(text, path));
	}
	unlink(path);
	cr_expect_eq(capture_file_open(&f, path, text), -ENOENT);
}

Test(capture_file, a_mark_in_the_middle_of_a_packet_is_refused_in_pcapng)
{
	struct capture_file *f;

	write_udp_capture(path, CAPTURE_PCAPNG, 10, 1, 0, 1000);
	cr_assert_eq(capture_file_open(&f, path, text), 0);
	cr_expect_eq(capture_file_seek(f, (struct capture_mark){200, 2}, text), -EBADMSG);
	capture_file_close(f);
	cr_assert_eq(capture_file_open(&f, path, text), 0);
	cr_expect_eq(capture_file_seek(f, (struct capture_mark){200, 11}, text), -EBADMSG);
	capture_file_close(f);
}

static void flip_bytes(const uint8_t *bytes, size_t size, const char *to)
{
	uint8_t *copy = malloc(size);
	FILE *f = fopen(to, "wb");
	int flips = 1 + rand() % 4;

	cr_assert_not_null(copy);
	memcpy(copy, bytes, size);
	for (int i = 0; i < flips; i++)
		copy[8 + (size_t)rand() % (size - 8)] = (uint8_t)(rand() % 4 == 0 ? 255 : rand());
	cr_assert_eq(fwrite(copy, 1, size - (size_t)(rand() % 20), f) > 0, 1);
	fclose(f);
	free(copy);
}

Test(capture_file, damaged_files_of_either_format_are_read_up_to_the_damage)
{
	static const enum capture_format formats[] = {
			CAPTURE_PCAP, CAPTURE_PCAPNG, CAPTURE_PCAPNG_SWAPPED};
	char damaged[320];
	uint32_t whole = 0, cut = 0;

	snprintf(damaged, sizeof(damaged), "%s/damaged", directory);
	srand(1);
	for (int format = 0; format < 3; format++) {
		uint8_t bytes[16384];

		write_udp_capture(path, formats[format], 20, 3, 1000000, 1000);
		FILE *in = fopen(path, "rb");
		size_t size = fread(bytes, 1, sizeof(bytes), in);
		fclose(in);
		for (int round = 0; round < 1500; round++) {
			struct capture_file *f;
			enum capture_end end;

			flip_bytes(bytes, size, damaged);
			memset(&seen, 0, sizeof(seen));
			if (capture_file_open(&f, damaged, text) != 0)
				continue;
			do
				end = capture_file_read(f, 7, see, &seen, text);
			while (end == CAPTURE_GOES_ON);
			whole += end == CAPTURE_ENDED;
			cut += end == CAPTURE_WAS_CUT;
			cr_expect_neq(end, CAPTURE_UNREADABLE, "%s", text);
			capture_file_close(f);
		}
	}
	cr_expect_gt(whole, 100);
	cr_expect_gt(cut, 1000);
}
