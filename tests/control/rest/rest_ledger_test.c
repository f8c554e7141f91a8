/* The ledger of packets in a job's summary. */

#include "control/rest/rest_internal.h"

#include <criterion/criterion.h>

static json_int_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

Test(rest_ledger, packets_are_those_taken_waiting_and_lost_by_place)
{
	json_t *counters = json_pack("{s:{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i}, s:{s:i,s:i}}", "source",
			"frames", 1000, "journal_pending", 20, "rolled_back", 3, "missed", 40,
			"no_buffer", 5, "errors", 6, "ring_full", 7, "unsafe", 11, "sink", "frames",
			50, "cut", 0);
	json_t *all = rest_ledger(counters);
	const json_t *ledger = json_object_get(all, "source");

	cr_assert_eq(json_object_size(all), 1, "a sink takes nothing from a port");
	cr_expect_eq(number(ledger, "packets"), 1081);
	cr_expect_eq(number(ledger, "taken"), 1000);
	cr_expect_eq(number(ledger, "waiting"), 20);
	cr_expect_eq(number(ledger, "lost"), 61);
	cr_expect_eq(number(ledger, "unsafe"), 11);
	cr_expect_eq(number(json_object_get(ledger, "lost_by"), "missed"), 40);
	cr_expect_eq(number(json_object_get(ledger, "lost_by"), "ring_full"), 7);
	json_decref(all);
	json_decref(counters);
}
