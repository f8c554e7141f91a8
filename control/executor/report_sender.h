#pragma once

/*
 * report_sender: reports of the data plane as messages to the coordinator, acknowledgements of one
 * turn in one message.
 *
 * Place    control/executor.
 * Thread   the loop's.
 * Memory   the acknowledgements of one turn.
 * Errors   what cannot be sent is lost with its connection, and so are the tasks.
 */

#include <stdint.h>

struct connection;
struct report_sender;
struct taskmanager;

int report_sender_create(struct report_sender **out, struct taskmanager *tm);
void report_sender_destroy(struct report_sender *s);

/* Takes all reports there are.  `c` NULL: they are read and dropped. */
void report_sender_drain(struct report_sender *s, struct connection *c);

/* The numbers of all tasks (a heartbeat). */
void report_sender_heartbeat(struct report_sender *s, struct connection *c);
