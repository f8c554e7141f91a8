#include "tests/support/eal_fixture.h"

#include "nic/eal.h"

#include <criterion/criterion.h>

void eal_fixture_start(const char *control_cpus, size_t memory_bytes, const char *const *extra,
		uint32_t extra_count)
{
	static const uint32_t cpus[1] = {0};
	char line[EAL_LINE_BYTES], error[EAL_ERROR_BYTES];
	struct eal_config config = {.worker_cpus = cpus, .worker_count = 1,
			.control_cpus = control_cpus, .memory_bytes = memory_bytes, .extra = extra,
			.extra_count = extra_count};

	cr_assert_eq(eal_start(&config, line, error), 0, "%s", error);
}
