#include "dataplane/operator/counted_record.h"
#include "dataplane/operator/packet/flow_record.h"
#include "dataplane/operator/row_format.h"

#include <criterion/criterion.h>
#include <string.h>
#include <time.h>

enum { FLOW_CSV, COUNT_CSV };

static char line[ROW_BYTES_MAX + 1];

static const char *print_flow(const struct flow_row *r)
{
	uint32_t bytes = row_format_at(FLOW_CSV)->print((const uint8_t *)r, line);

	cr_assert_leq(bytes, ROW_BYTES_MAX);
	line[bytes] = '\0';
	return line;
}

static struct flow_row row(void)
{
	struct flow_row r = {.key = {.source = {10, 0, 0, 1},
					     .destination = {192, 168, 1, 254},
					     .source_port = 4660,
					     .destination_port = 80,
					     .protocol = 6,
					     .ip_version = 4},
			.window_start_ns = INT64_C(1700000040000000000),
			.window_end_ns = INT64_C(1700000100000000000),
			.packets = 3,
			.bytes = 1234567890123,
			.first_ns = INT64_C(1700000041000000001),
			.last_ns = INT64_C(1700000099999999999),
			.tcp_flags = 0x1b};

	return r;
}

Test(row_format, a_flow_is_a_line_in_the_order_of_the_header)
{
	struct flow_row r = row();

	cr_expect_str_eq(row_format_at(FLOW_CSV)->header,
			"window_start,window_end,src,dst,sport,dport,protocol,packets,bytes,first,"
			"last,tcp_flags");
	cr_expect_str_eq(print_flow(&r),
			"2023-11-14T22:14:00Z,2023-11-14T22:15:00Z,10.0.0.1,192.168.1.254,4660,80,"
			"6,3,1234567890123,2023-11-14T22:14:01.000000001Z,"
			"2023-11-14T22:14:59.999999999Z,0x01b\n");
}

Test(row_format, ip6_addresses_are_written_in_short)
{
	struct flow_row r = row();

	memset(&r.key, 0, sizeof(r.key));
	r.key.ip_version = 6;
	r.key.source[0] = 0x20;
	r.key.source[1] = 0x01;
	r.key.source[15] = 1;
	cr_expect_not_null(strstr(print_flow(&r), ",2001::1,::,0,0,0,"));
}

Test(row_format, windows_that_begin_within_a_second_say_so)
{
	struct flow_row r = row();

	r.window_start_ns = INT64_C(1700000040100000000);
	cr_expect_eq(strncmp(print_flow(&r), "2023-11-14T22:14:00.100000000Z,", 31), 0);
}

Test(row_format, dates_are_those_of_the_calendar)
{
	struct flow_row r = row();

	/* Each day and some odd seconds over the whole range of times, against the C library. */
	for (int64_t seconds = INT64_C(-9200000000); seconds < INT64_C(9200000000);
			seconds += 86399 * INT64_C(3)) {
		char expected[64];
		time_t t = seconds;
		struct tm tm;

		gmtime_r(&t, &tm);
		strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%SZ,", &tm);
		r.window_start_ns = seconds * 1000000000;
		cr_assert_eq(strncmp(print_flow(&r), expected, strlen(expected)), 0, "%s is not %s",
				line, expected);
	}
}

Test(row_format, the_longest_line_fits)
{
	struct flow_row r;

	memset(&r, 0xff, sizeof(r));
	r.key.ip_version = 6;
	r.window_start_ns = r.window_end_ns = r.first_ns = r.last_ns = INT64_MIN;
	cr_expect_gt(strlen(print_flow(&r)), 200);
}

Test(row_format, a_count_is_a_line)
{
	const struct counted_record r = {18446744073709551615u, 0};
	uint32_t bytes = row_format_at(COUNT_CSV)->print((const uint8_t *)&r, line);

	line[bytes] = '\0';
	cr_expect_str_eq(line, "18446744073709551615,0\n");
}
