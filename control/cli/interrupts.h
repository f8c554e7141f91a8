#pragma once

/*
 * interrupts: how often this command was asked to end (SIGINT, SIGTERM).
 *
 * Place    control/cli.
 * Thread   the main one; handlers only count, its loop looks.
 * Life     interrupts_catch once; a pause ends when a signal or the end of a child arrives.
 */

#include <stdint.h>

void interrupts_catch(void);
uint32_t interrupts_count(void);
/* What came in together counts as one. */
void interrupts_join(void);
