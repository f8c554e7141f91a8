#pragma once

/*
 * log: the one way text leaves a process besides its results.
 *
 * Place    base.  Never called on a lcore after start: count there, log on the control thread.
 * Thread   any; one line is written with one write.
 * Format   time level [program] module: text
 * Life     log_open once in main; before it lines go out as INFO of program "weir".
 */

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Names this program and the lowest level that is written.  `program` must live on. */
void log_open(const char *program, enum log_level lowest);

/* Sends lines to `fd` instead of standard error. */
void log_to_fd(int fd);

bool log_level_parse(const char *name, enum log_level *level);

void log_write(enum log_level level, const char *module, const char *format, ...)
		__attribute__((format(printf, 3, 4)));

#define log_debug(module, ...) log_write(LOG_DEBUG, module, __VA_ARGS__)
#define log_info(module, ...) log_write(LOG_INFO, module, __VA_ARGS__)
#define log_warn(module, ...) log_write(LOG_WARN, module, __VA_ARGS__)
#define log_error(module, ...) log_write(LOG_ERROR, module, __VA_ARGS__)
