#include "control/cli/interrupts.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t interrupts;

static void on_interrupt(int number)
{
	(void)number;
	interrupts++;
}

/* A child that ends ends a pause, too. */
static void on_child(int number)
{
	(void)number;
}

void interrupts_catch(void)
{
	struct sigaction action = {.sa_handler = on_interrupt};
	struct sigaction child = {.sa_handler = on_child, .sa_flags = SA_RESTART};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGCHLD, &child, NULL);
	signal(SIGPIPE, SIG_IGN);
}

uint32_t interrupts_count(void)
{
	return (uint32_t)interrupts;
}

void interrupts_join(void)
{
	if (interrupts > 1)
		interrupts = 1;
}
