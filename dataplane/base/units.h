#pragma once

/*
 * units: durations and sizes as people write them in config and job files.
 *
 * Durations: a number and ns, us, ms, s, min, h, d (Flink's longer words too: "10 seconds"); a
 * number without a unit is milliseconds.  Sizes: a number and b, kb, mb, gb (powers of 1024; k, kib
 * and so on too); without a unit bytes.  A blank may stand between.
 *
 * Errors   0, or -EINVAL (not of that form), -ERANGE (does not fit).
 */

#include <stddef.h>
#include <stdint.h>

int units_parse_duration(const char *text, int64_t *ns);
int units_parse_size(const char *text, int64_t *bytes);

/* The shortest exact form: "10 s", "250 ms", "32 kb". */
void units_print_duration(int64_t ns, char *text, size_t size);
void units_print_size(int64_t bytes, char *text, size_t size);
