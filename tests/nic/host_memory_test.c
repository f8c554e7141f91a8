/* host_memory: who counts and takes hugepages is alone at it. */

#include "nic/host_memory.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000 }; /* somebody else of this host may be at it now */

/* A process that claims them and stays, or goes without a word. */
static pid_t claim_elsewhere(void)
{
	int ready[2];
	char word;

	cr_assert_eq(pipe(ready), 0);
	pid_t child = fork();
	if (child == 0) {
		int claim = host_memory_claim(PATIENCE_MS);

		(void)!write(ready[1], claim >= 0 ? "y" : "n", 1);
		pause();
		_exit(0);
	}
	cr_assert_eq(read(ready[0], &word, 1), 1);
	cr_assert_eq(word, 'y');
	return child;
}

Test(host_memory, is_claimed_by_one_process_at_a_time)
{
	pid_t child = claim_elsewhere();

	cr_assert_eq(host_memory_claim(20), -1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	int claim = host_memory_claim(PATIENCE_MS);
	cr_assert_geq(claim, 0, "it goes with its process");
	cr_assert_eq(host_memory_claim(0), -1);
	host_memory_yield(claim);
	claim = host_memory_claim(PATIENCE_MS);
	cr_assert_geq(claim, 0);
	host_memory_yield(claim);
	host_memory_yield(-1);
}

Test(host_memory, gives_an_aligned_piece_that_can_be_written)
{
	char error[512];
	void *memory;

	cr_assert_eq(host_memory_map(&memory, 3 << 20, false, error), 0, "%s", error);
	cr_assert_eq((uintptr_t)memory % (2 << 20), 0);
	((volatile char *)memory)[(3 << 20) - 1] = 1;
	host_memory_unmap(memory, 3 << 20);
}
