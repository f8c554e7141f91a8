#include "control/rest/rest_internal.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The stream of the sample that Flink recorded; how many bytes. */
static size_t decode(const char *text, uint8_t *out)
{
	static const char digits[] =
			"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = 0, count = 0;
	size_t bytes = 0;

	for (; *text != 0 && *text != '='; text++) {
		const char *digit = strchr(digits, *text);

		cr_assert_not_null(digit, "%c is no digit of base64", *text);
		bits = bits << 6 | (uint32_t)(digit - digits);
		count += 6;
		if (count < 8)
			continue;
		count -= 8;
		out[bytes++] = (uint8_t)(bits >> count);
	}
	return bytes;
}

static size_t stream_of(const json_t *failure, uint8_t *out)
{
	const char *text = json_string_value(json_object_get(failure, "serialized-throwable"));

	cr_assert_not_null(text);
	cr_assert_eq(strlen(text) % 4, 0, "padded");
	return decode(text, out);
}

Test(rest_throwable, describes_the_class_with_the_very_bytes_of_flink)
{
	/* Up to the first value, as Flink 1.20.5 sent it. */
	static const char flink[] =
			"rO0ABXNyAClvcmcuYXBhY2hlLmZsaW5rLnV0aWwuU2VyaWFsaXplZFRocm93YWJsZWUWnfUf"
			"pxPzAgADTAAZZnVsbFN0cmluZ2lmaWVkU3RhY2tUcmFjZXQAEkxqYXZhL2xhbmcvU3RyaW5n"
			"O0wAFm9yaWdpbmFsRXJyb3JDbGFzc05hbWVxAH4AAVsAE3NlcmlhbGl6ZWRFeGNlcHRpb250"
			"AAJbQnhyABNqYXZhLmxhbmcuRXhjZXB0aW9u0P0fPho7HMQCAAB4cgATamF2YS5sYW5nLlRo"
			"cm93YWJsZdXGNSc5d7jLAwAETAAFY2F1c2V0ABVMamF2YS9sYW5nL1Rocm93YWJsZTtMAA1k"
			"ZXRhaWxNZXNzYWdlcQB+AAFbAApzdGFja1RyYWNl";
	uint8_t wanted[512], got[16384];
	json_t *failure = rest_failure("it went wrong");
	size_t count = decode(flink, wanted);

	cr_assert_gt(stream_of(failure, got), count);
	cr_assert_arr_eq(got, wanted, count);
	json_decref(failure);
}

Test(rest_throwable, carries_the_text_as_message_and_as_stack_trace)
{
	static const char message[] = "pt\0\x0dit went wrongppxt\0\x0dit went wrongt\0";
	uint8_t got[16384];
	json_t *failure = rest_failure("it went wrong");
	size_t count = stream_of(failure, got);

	cr_assert_not_null(memmem(got, count, message, sizeof(message) - 1));
	cr_assert_eq(got[count - 1], 'p', "without the original exception");
	cr_assert_str_eq(json_string_value(json_object_get(failure, "stack-trace")),
			"it went wrong");
	json_decref(failure);
}

Test(rest_throwable, is_whole_for_texts_of_any_length_and_bytes)
{
	static char text[8192];
	uint8_t got[16384];

	for (size_t length = 0; length < sizeof(text); length += 97) {
		memset(text, 'x', length);
		text[length] = 0;
		if (length > 0)
			text[length - 1] = (char)0xff;
		json_t *failure = rest_failure(text);
		size_t count = stream_of(failure, got);

		cr_assert_eq(got[count - 1], 'p');
		/* A byte that is no UTF-8 would not be read; a text that is too long is cut. */
		if (length > 0 && length <= 2048)
			cr_assert_not_null(memmem(got, count, "?ppxt", 5), "%zu", length);
		json_decref(failure);
	}
}
