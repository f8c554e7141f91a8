#pragma once

/*
 * process: what each of the programs does before anything else, and what it looks at last.
 *
 * Place    base; used by the mains.
 * Thread   main thread, once, before others.
 * Errors   false: what is wrong stands in errno; or -errno with a text.
 */

#include <stdbool.h>
#include <stddef.h>

/* Closed standard streams become /dev/null: otherwise the first files that are opened take their
 * numbers, and messages go into them.  A file that outgrows `ulimit -f` is an error of its write
 * from now on (EFBIG), not a signal.  As many files may be open as the hard limit allows, up to
 * 65536. */
void process_prepare(void);

/* Whether enough files may be open: 0, or -EMFILE with one line that says what to do. */
int process_check_files(char *error, size_t error_bytes);

/* False: what was printed to standard output did not all get there. */
bool process_output_is_whole(void);
