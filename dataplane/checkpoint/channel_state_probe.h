#pragma once

/*
 * channel_state_probe: how files of in-flight buffers can be written in a directory.
 *
 * Place    checkpoint.
 * Thread   the control thread; blocks, for one block of one file.
 * Errors   none: what cannot be done is done another way, and said in words.
 */

#include <stdbool.h>

enum { CHANNEL_STATE_PROBE_TEXT_BYTES = 256 };

/* True: past the page cache, from where the buffers lie.  `directory`, or the nearest one above
 * that exists.  `text` is one line for people. */
bool channel_state_probe(const char *directory, char text[CHANNEL_STATE_PROBE_TEXT_BYTES]);
