#include "dataplane/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 2048 };

static const char *program_name = "weir";
static enum log_level lowest_level = LOG_INFO;
static int log_fd = STDERR_FILENO;

static const char *const level_names[] = {"DEBUG", "INFO", "WARN", "ERROR"};

void log_open(const char *program, enum log_level lowest)
{
	program_name = program;
	lowest_level = lowest;
}

void log_to_fd(int fd)
{
	log_fd = fd;
}

bool log_level_parse(const char *name, enum log_level *level)
{
	for (int i = LOG_DEBUG; i <= LOG_ERROR; i++) {
		if (strcasecmp(name, level_names[i]) == 0) {
			*level = (enum log_level)i;
			return true;
		}
	}
	return false;
}

static int put_head(char *line, size_t size, enum log_level level, const char *module)
{
	struct timespec now;
	struct tm tm;
	char when[32];

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	return snprintf(line, size, "%s.%03ld %-5s [%s] %s: ", when, now.tv_nsec / 1000000,
			level_names[level], program_name, module);
}

void log_write(enum log_level level, const char *module, const char *format, ...)
{
	char line[LINE_BYTES_MAX];
	va_list args;

	if (level < lowest_level)
		return;
	int head = put_head(line, sizeof(line), level, module);
	va_start(args, format);
	int body = vsnprintf(line + head, sizeof(line) - (size_t)head, format, args);
	va_end(args);
	size_t size = (size_t)head + (size_t)(body < 0 ? 0 : body);
	if (size > sizeof(line) - 1)
		size = sizeof(line) - 1;
	line[size++] = '\n';
	ssize_t written = write(log_fd, line, size);
	(void)written; /* nowhere left to say so */
}
