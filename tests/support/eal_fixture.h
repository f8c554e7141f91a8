#pragma once

/* eal_fixture: the EAL of a test's process, with one worker and no hugepages; eal_stop ends it. */

#include <stddef.h>
#include <stdint.h>

/* `control_cpus` is the control thread's; `extra`: EAL arguments, NULL: none.  Fails the test. */
void eal_fixture_start(const char *control_cpus, size_t memory_bytes, const char *const *extra,
		uint32_t extra_count);
