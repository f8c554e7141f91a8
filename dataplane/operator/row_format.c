#include "dataplane/operator/row_format.h"

#include "dataplane/base/check.h"
#include "dataplane/operator/counted_record.h"
#include "dataplane/operator/packet/flow_record.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>

enum { SECONDS_PER_DAY = 86400, DAYS_PER_ERA = 146097 };

static char *put_text(char *at, const char *text)
{
	size_t size = strlen(text);

	memcpy(at, text, size);
	return at + size;
}

static char *put_number(char *at, uint64_t number)
{
	char digits[20];
	uint32_t count = 0;

	do {
		digits[count++] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	while (count > 0)
		*at++ = digits[--count];
	return at;
}

/* With zeros in front, `width` digits. */
static char *put_digits(char *at, uint32_t number, uint32_t width)
{
	for (uint32_t i = width; i-- > 0; number /= 10)
		at[i] = (char)('0' + number % 10);
	return at + width;
}

static char *put_hex(char *at, uint32_t number, uint32_t width)
{
	for (uint32_t i = width; i-- > 0; number >>= 4)
		at[i] = "0123456789abcdef"[number & 15];
	return at + width;
}

/* `days` since 1970.  Counted from the first of March of a year 400 k, where leap days come last
 * in a year and an era of 400 years has the same length as any other. */
static char *put_date(char *at, int64_t days)
{
	int64_t shifted = days + 719468; /* since 1 March of year 0 */
	int64_t era = (shifted >= 0 ? shifted : shifted - (DAYS_PER_ERA - 1)) / DAYS_PER_ERA;
	uint32_t day = (uint32_t)(shifted - era * DAYS_PER_ERA);
	uint32_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	uint32_t day_of_year = day - (365 * year + year / 4 - year / 100);
	uint32_t month = (5 * day_of_year + 2) / 153; /* 0 is March */
	uint32_t day_of_month = day_of_year - (153 * month + 2) / 5 + 1;

	year += (uint32_t)(era * 400) + (month >= 10);
	month = month < 10 ? month + 3 : month - 9;
	at = put_digits(at, year, 4);
	*at++ = '-';
	at = put_digits(at, month, 2);
	*at++ = '-';
	return put_digits(at, day_of_month, 2);
}

/* Rounds to the past, before 1970 too. */
static int64_t divide_down(int64_t number, int64_t by, int64_t *rest)
{
	int64_t quotient = number / by;

	*rest = number % by;
	if (*rest < 0) {
		*rest += by;
		quotient--;
	}
	return quotient;
}

static char *put_time(char *at, int64_t time_ns, bool always_ns)
{
	int64_t ns, second;
	int64_t seconds = divide_down(time_ns, 1000000000, &ns);
	int64_t days = divide_down(seconds, SECONDS_PER_DAY, &second);

	at = put_date(at, days);
	*at++ = 'T';
	at = put_digits(at, (uint32_t)second / 3600, 2);
	*at++ = ':';
	at = put_digits(at, (uint32_t)second / 60 % 60, 2);
	*at++ = ':';
	at = put_digits(at, (uint32_t)second % 60, 2);
	if (always_ns || ns != 0) {
		*at++ = '.';
		at = put_digits(at, (uint32_t)ns, 9);
	}
	*at++ = 'Z';
	return at;
}

static char *put_address(char *at, const uint8_t address[16], uint8_t ip_version)
{
	if (ip_version == 6) {
		const char *text = inet_ntop(AF_INET6, address, at, INET6_ADDRSTRLEN);

		CHECK(text != NULL);
		return at + strlen(at);
	}
	for (uint32_t i = 0; i < 4; i++) {
		at = put_number(at, address[i]);
		*at++ = '.';
	}
	return at - 1;
}

static uint32_t print_flow(const uint8_t *record, char line[ROW_BYTES_MAX])
{
	struct flow_row r;
	char *at = line;

	memcpy(&r, record, sizeof(r));
	at = put_time(at, r.window_start_ns, false);
	*at++ = ',';
	at = put_time(at, r.window_end_ns, false);
	*at++ = ',';
	at = put_address(at, r.key.source, r.key.ip_version);
	*at++ = ',';
	at = put_address(at, r.key.destination, r.key.ip_version);
	*at++ = ',';
	at = put_number(at, r.key.source_port);
	*at++ = ',';
	at = put_number(at, r.key.destination_port);
	*at++ = ',';
	at = put_number(at, r.key.protocol);
	*at++ = ',';
	at = put_number(at, r.packets);
	*at++ = ',';
	at = put_number(at, r.bytes);
	*at++ = ',';
	at = put_time(at, r.first_ns, true);
	*at++ = ',';
	at = put_time(at, r.last_ns, true);
	at = put_text(at, ",0x");
	at = put_hex(at, r.tcp_flags, 3);
	*at++ = '\n';
	return (uint32_t)(at - line);
}

static uint32_t print_count(const uint8_t *record, char line[ROW_BYTES_MAX])
{
	struct counted_record r;
	char *at = line;

	memcpy(&r, record, sizeof(r));
	at = put_number(at, r.key);
	*at++ = ',';
	at = put_number(at, r.value);
	*at++ = '\n';
	return (uint32_t)(at - line);
}

const struct row_format *row_format_at(uint32_t index)
{
	/* In the order of ROW_FORMAT_CHOICES. */
	static const struct row_format formats[] = {
			{"flow-csv",
					"window_start,window_end,src,dst,sport,dport,protocol,"
					"packets,bytes,first,last,tcp_flags",
					sizeof(struct flow_row), print_flow},
			{"count-csv", "key,count", sizeof(struct counted_record), print_count},
	};

	CHECK(index < sizeof(formats) / sizeof(formats[0]));
	return &formats[index];
}
