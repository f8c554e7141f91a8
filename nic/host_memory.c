#include "nic/host_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { HUGE_PAGE_BYTES = 2 << 20, CLAIM_PAUSE_MS = 1 };

/* A file that all processes of a host see as one, whatever their user and namespaces. */
static const char claimed[] = "/proc/sys/vm/nr_hugepages";

int host_memory_claim(uint32_t wait_ms)
{
	const struct timespec pause = {.tv_nsec = CLAIM_PAUSE_MS * 1000000};
	int fd = open(claimed, O_RDONLY | O_CLOEXEC);

	for (uint32_t waited = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;
			waited += CLAIM_PAUSE_MS) {
		if (errno != EWOULDBLOCK || waited >= wait_ms) {
			close(fd);
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	return fd;
}

void host_memory_yield(int claim)
{
	if (claim >= 0)
		close(claim);
}

static size_t round_up(size_t bytes)
{
	return (bytes + HUGE_PAGE_BYTES - 1) & ~((size_t)HUGE_PAGE_BYTES - 1);
}

bool host_memory_has_hugepages(size_t bytes)
{
	/* The kernel reserves the pages with the call, or refuses it. */
	void *memory = mmap(NULL, round_up(bytes), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (memory == MAP_FAILED)
		return false;
	munmap(memory, round_up(bytes));
	return true;
}

int host_memory_map(void **out, size_t bytes, bool use_hugepages, char error[512])
{
	size_t size = round_up(bytes);
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (use_hugepages ? MAP_HUGETLB : MAP_NORESERVE);
	/* One huge page more, so that an aligned piece is inside. */
	void *memory = mmap(NULL, size + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (memory == MAP_FAILED) {
		int status = -errno;

		snprintf(error, 512,
				"cannot take %zu MiB of %s for operator state: %s; lower "
				"taskmanager.memory.managed.size or run: sysctl "
				"vm.nr_hugepages=%zu",
				size >> 20, use_hugepages ? "hugepages" : "memory",
				strerror(-status), size / HUGE_PAGE_BYTES + 64);
		return status;
	}
	uintptr_t start = (uintptr_t)memory;
	uintptr_t aligned = (start + HUGE_PAGE_BYTES - 1) & ~((uintptr_t)HUGE_PAGE_BYTES - 1);
	if (aligned > start)
		munmap(memory, aligned - start);
	size_t behind = (start + size + HUGE_PAGE_BYTES) - (aligned + size);
	if (behind > 0)
		munmap((void *)(aligned + size), behind);
	if (!use_hugepages)
		(void)madvise((void *)aligned, size, MADV_HUGEPAGE);
	*out = (void *)aligned;
	return 0;
}

void host_memory_unmap(void *memory, size_t bytes)
{

	if (memory != NULL)
		munmap(memory, round_up(bytes));
}
