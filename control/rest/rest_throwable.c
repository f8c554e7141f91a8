/* rest_throwable: a failure as Flink's clients read it: a Java serialization stream of
 * org.apache.flink.util.SerializedThrowable, in base64.  Its command line decodes that and fails
 * without it.  Ours holds the texts; the original exception, which there is none of, is null. */

#include "control/rest/rest_internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 4096, STREAM_BYTES = 3 * TEXT_BYTES_MAX };

static const char class_name[] = "org.apache.flink.runtime.checkpoint.CheckpointException";

/* The stream up to the values of the fields: what a SerializedThrowable is (an Exception, which is
 * a Throwable), with the fields of each class.  Strings that repeat are references (q 00 7e). */
static const char head[] =
		"\xac\xed\0\5"
		"sr\0\x29org.apache.flink.util.SerializedThrowable"
		"\x65\x16\x9d\xf5\x1f\xa7\x13\xf3\2\0\3"
		"L\0\x19" "fullStringifiedStackTrace" "t\0\x12Ljava/lang/String;"
		"L\0\x16" "originalErrorClassName" "q\0~\0\1"
		"[\0\x13" "serializedException" "t\0\2[B"
		"xr\0\x13java.lang.Exception" "\xd0\xfd\x1f\x3e\x1a\x3b\x1c\xc4\2\0\0"
		"xr\0\x13java.lang.Throwable" "\xd5\xc6\x35\x27\x39\x77\xb8\xcb\3\0\4"
		"L\0\5" "cause" "t\0\x15Ljava/lang/Throwable;"
		"L\0\x0d" "detailMessage" "q\0~\0\1"
		"[\0\x0a" "stackTrace" "t\0\x1e[Ljava/lang/StackTraceElement;"
		"L\0\x14" "suppressedExceptions" "t\0\x10Ljava/util/List;"
		"xp";

struct stream {
	size_t count;
	uint8_t bytes[STREAM_BYTES];
};

static void put(struct stream *s, const char *bytes, size_t count)
{
	memcpy(s->bytes + s->count, bytes, count);
	s->count += count;
}

/* A string of the stream: length and bytes, which are ASCII so that any UTF-8 is right. */
static void put_text(struct stream *s, const char *text)
{
	size_t length = strnlen(text, TEXT_BYTES_MAX / 2);

	put(s, (const char[]){'t', (char)(length >> 8), (char)length}, 3);
	for (size_t i = 0; i < length; i++)
		s->bytes[s->count++] = (uint8_t)text[i] < 0x80 ? (uint8_t)text[i] : '?';
}

static json_t *base64(const struct stream *s)
{
	static const char digits[] =
			"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char text[(STREAM_BYTES + 2) / 3 * 4 + 1];
	size_t at = 0;

	for (size_t i = 0; i < s->count; i += 3) {
		size_t left = s->count - i;
		uint32_t three = (uint32_t)s->bytes[i] << 16 |
				(left > 1 ? (uint32_t)s->bytes[i + 1] << 8 : 0) |
				(left > 2 ? s->bytes[i + 2] : 0);

		text[at++] = digits[three >> 18];
		text[at++] = digits[three >> 12 & 63];
		text[at++] = left > 1 ? digits[three >> 6 & 63] : '=';
		text[at++] = left > 2 ? digits[three & 63] : '=';
	}
	text[at] = 0;
	return json_string(text);
}

json_t *rest_failure(const char *text)
{
	struct stream s = {0};

	put(&s, head, sizeof(head) - 1);
	put(&s, "p", 1);          /* no cause */
	put_text(&s, text);       /* the message */
	put(&s, "ppx", 3);        /* neither stack trace nor suppressed exceptions */
	put_text(&s, text);       /* the stack trace as text */
	put_text(&s, class_name); /* the class of the original */
	put(&s, "p", 1);          /* which is not here */
	return json_pack("{s:s, s:o, s:o}", "class", class_name, "stack-trace", rest_text(text),
			"serialized-throwable", base64(&s));
}
