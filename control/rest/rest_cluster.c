/* rest_cluster: /config and /overview. */

#include "control/coordinator/resource_manager.h"
#include "control/rest/rest_internal.h"

#include <time.h>

/* Whose protocol this is; weir-version says who answers. */
#define FLINK_VERSION "1.20"

enum { REFRESH_INTERVAL_MS = 3000 };

void rest_get_config(struct rest_call *call)
{
	time_t now = time(NULL);
	struct tm local = {0};

	localtime_r(&now, &local);
	json_t *features = json_pack("{s:b, s:b, s:b, s:b}", "web-submit", 0, "web-cancel", 1,
			"web-rescale", 0, "web-history", 0);
	rest_answer(call, 200,
			json_pack("{s:i, s:o, s:I, s:s, s:s, s:s, s:o}", "refresh-interval",
					REFRESH_INTERVAL_MS, "timezone-name",
					rest_text(local.tm_zone != NULL ? local.tm_zone : "UTC"),
					"timezone-offset", (json_int_t)local.tm_gmtoff * 1000,
					"flink-version", FLINK_VERSION,
					"flink-revision", "weir", "weir-version", WEIR_VERSION,
					"features", features));
}

struct totals {
	uint32_t members, slots, used;
	uint32_t running, finished, cancelled, failed;
};

static void count_jobs(const struct coordinator *c, struct totals *t)
{
	struct job_master *jm;

	for (uint32_t i = 0; (jm = coordinator_job_at(c, i)) != NULL; i++) {
		enum job_status status = job_master_status(jm);

		t->finished += status == JOB_STATUS_FINISHED;
		t->cancelled += status == JOB_STATUS_CANCELED;
		t->failed += status == JOB_STATUS_FAILED;
		t->running += !job_status_is_terminal(status);
	}
}

static void count_slots(const struct coordinator *c, struct totals *t)
{
	for (uint32_t member = 0; member < MEMBERS_COUNT_MAX; member++) {
		const struct resource_row *row =
				resource_manager_row(coordinator_resources(c), member);

		if (row == NULL)
			continue;
		uint32_t used = rest_used_slots(c, member);

		t->members++;
		t->slots += row->slot_count;
		t->used += used < row->slot_count ? used : row->slot_count;
	}
}

json_t *rest_link_totals(const struct coordinator *c)
{
	Weir__LinkNumbers sum = WEIR__LINK_NUMBERS__INIT;
	bool has_links = false;

	for (uint32_t member = 0; member < MEMBERS_COUNT_MAX; member++) {
		const struct resource_row *row =
				resource_manager_row(coordinator_resources(c), member);

		if (row == NULL || row->link[0] == '\0')
			continue;
		has_links = true;
		sum.frames_in += row->numbers.frames_in;
		sum.resent += row->numbers.resent;
		sum.handed_over += row->numbers.handed_over;
		sum.hand_over_full += row->numbers.hand_over_full;
	}
	if (!has_links)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I}", "frames", (json_int_t)sum.frames_in, "resent",
			(json_int_t)sum.resent, "handed_over", (json_int_t)sum.handed_over,
			"hand_over_full", (json_int_t)sum.hand_over_full);
}

void rest_get_overview(struct rest_call *call)
{
	struct totals t = {0};

	count_jobs(call->coordinator, &t);
	count_slots(call->coordinator, &t);
	rest_answer(call, 200,
			json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:s, s:s}",
					"taskmanagers", (int)t.members, "slots-total", (int)t.slots,
					"slots-available", (int)(t.slots - t.used), "jobs-running",
					(int)t.running, "jobs-finished", (int)t.finished,
					"jobs-cancelled", (int)t.cancelled, "jobs-failed",
					(int)t.failed, "flink-version", FLINK_VERSION,
					"flink-commit", "weir", "weir-version",
					WEIR_VERSION));
}
