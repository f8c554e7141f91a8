/* rest_ledger: what became of the packets that were sent to the ports of a job's sources. */

#include "control/rest/rest_internal.h"

static json_int_t number(const json_t *counters, const char *name)
{
	return json_integer_value(json_object_get(counters, name));
}

/* NULL: the operator takes no packets from a port. */
static json_t *ledger_of(const json_t *counters)
{
	static const char *const places[] = {
			"rolled_back", "missed", "no_buffer", "errors", "ring_full"};
	json_int_t taken = number(counters, "frames"), all = 0;
	json_int_t waiting = number(counters, "journal_pending");

	if (json_object_get(counters, "rolled_back") == NULL ||
			json_object_get(counters, "ring_full") == NULL)
		return NULL;
	json_t *lost = json_object();
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		json_int_t count = number(counters, places[i]);

		json_object_set_new(lost, places[i], json_integer(count));
		all += count;
	}
	return json_pack("{s:I, s:I, s:I, s:I, s:o, s:I}", "packets", taken + waiting + all,
			"taken", taken, "waiting", waiting, "lost", all, "lost_by", lost, "unsafe",
			number(counters, "unsafe"));
}

json_t *rest_ledger(json_t *counters_by_uid)
{
	json_t *all = json_object(), *counters;
	const char *uid;

	json_object_foreach(counters_by_uid, uid, counters)
	{
		json_t *ledger = ledger_of(counters);

		if (ledger != NULL)
			json_object_set_new(all, uid, ledger);
	}
	return all;
}
