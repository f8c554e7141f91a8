#include "control/restore/restore_fit.h"

#include "control/config/job_file.h"
#include "control/metadata/metadata.h"
#include "dataplane/checkpoint/task_state.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* keyed-count keeps `counts`: keyed, key 8 bytes. */
static const char job[] = "name: counting\n"
			  "config: {pipeline.max-parallelism: 128}\n"
			  "vertices:\n"
			  "  - uid: make\n"
			  "    operators: [{uid: generator, type: generator}]\n"
			  "  - uid: counting\n"
			  "    parallelism: 2\n"
			  "    operators:\n"
			  "      - {uid: count, type: keyed-count, keys-max: 1024}\n"
			  "      - {uid: digest, type: digest-sink}\n"
			  "edges: [{from: make, to: counting, partition: hash}]\n";

static struct config *config;
static struct job_spec *spec;
static struct restore_fit *fit;
static bool ignores_unclaimed;

/* A checkpoint as that job takes it. */
static uint8_t state_bytes[2][2048];
static struct state_handle handles[3];
static struct channel_state_handle in_flight;
static struct metadata_subtask subtasks[2];
static struct metadata_vertex vertices[2];
static struct metadata_edge edges[2] = {{"make", "counting", "hash"}};
static uint32_t edge_count = 1;
static struct metadata m;

static void parse(const char *text)
{
	struct job_source source = {.name = "job.yaml", .text = text,
		.text_bytes = strlen(text), .plugin_dir = "/"};
	struct config_error error;

	cr_assert_eq(config_create(&config), 0);
	cr_assert_eq(job_spec_parse(&spec, &source, config, &error), 0, "%s", error.text);
}

/* A handle as the operator declares the state. */
static struct state_handle handle_of(const char *uid, const char *name)
{
	const struct job_operator *op = job_spec_find(spec, uid, NULL);

	for (uint32_t i = 0; i < op->declared.state_count; i++) {
		const struct weir_state *s = &op->declared.states[i];

		if (strcmp(s->name, name) == 0)
			return (struct state_handle){.uid = uid, .name = name, .kind = s->kind,
				.key_bytes = s->key_bytes, .value_bytes = s->value_bytes,
				.version = s->version, .item_count = 2, .file = "f-0-0"};
	}
	cr_assert_fail("operator %s declares no state %s", uid, name);
	return (struct state_handle){0};
}

static void encode(uint32_t subtask)
{
	struct task_state t = {.vertex_uid = "counting", .subtask_index = subtask,
		.parallelism = 2, .group_count = 128,
		.groups = {subtask * 64, subtask * 64 + 63}, .handle_count = 1,
		.handles = handles, .channel_count = in_flight.buf_count > 0,
		.channels = &in_flight};

	cr_assert_leq(task_state_encoded_bytes(&t), sizeof(state_bytes[subtask]));
	task_state_encode(&t, state_bytes[subtask]);
	subtasks[subtask] = (struct metadata_subtask){subtask, false,
		{state_bytes[subtask], task_state_encoded_bytes(&t)}};
}

static void write_checkpoint(void)
{
	/* One chunk of two entries. */
	if (handles[0].kind == WEIR_STATE_KEYED)
		handles[0].size = 8 + 2 * (handles[0].key_bytes + handles[0].value_bytes);
	encode(0);
	encode(1);
	vertices[0] = (struct metadata_vertex){.uid = "make", .parallelism = 1,
		.max_parallelism = 128};
	vertices[1] = (struct metadata_vertex){.uid = "counting", .parallelism = 2,
		.max_parallelism = 128, .subtask_count = 2, .subtasks = subtasks};
	m = (struct metadata){.checkpoint_id = 7, .key_group_count = 128, .vertex_count = 2,
		.vertices = vertices};
}

static void init(void)
{
	parse(job);
	handles[0] = handle_of("count", "counts");
	write_checkpoint();
}

static void fini(void)
{
	restore_fit_destroy(fit);
	job_spec_destroy(spec);
	config_destroy(config);
}

TestSuite(restore_fit, .init = init, .fini = fini);

static void compare(void)
{
	cr_assert_eq(restore_fit_create(&fit, spec, &m, ignores_unclaimed), 0);
}

static const struct restore_fit_operator *row(const char *uid)
{
	for (uint32_t i = 0; i < fit->operator_count; i++)
		if (strcmp(fit->operators[i].operator_uid, uid) == 0)
			return &fit->operators[i];
	cr_assert_fail("no operator %s", uid);
	return NULL;
}

/* One refusal, said once though two subtasks have it. */
static void refuses_only(const char *part)
{
	compare();
	cr_assert_eq(fit->refusal_count, 1, "%u", fit->refusal_count);
	cr_assert_not_null(strstr(fit->refusals[0], part), "%s", fit->refusals[0]);
}

Test(restore_fit, matches_operators_by_uid_and_adds_up_their_state)
{
	compare();
	cr_assert_eq(fit->refusal_count, 0, "%s", fit->refusal_count > 0 ? fit->refusals[0] : "");
	cr_assert_eq(fit->operator_count, 3);
	cr_assert_str_eq(fit->operators[0].operator_uid, "generator");
	cr_assert_eq(row("count")->kind, RESTORE_FIT_MATCHED);
	cr_assert_eq(row("count")->bytes, 2 * handles[0].size);
	cr_assert_eq(row("count")->item_count, 4);
	cr_assert_eq(row("count")->state_count, 2);
	cr_assert_eq(fit->bytes, 2 * handles[0].size);
	/* Without state in the checkpoint: it begins empty. */
	cr_assert_eq(row("digest")->kind, RESTORE_FIT_NEW);
}

Test(restore_fit, refuses_state_of_an_operator_that_the_job_has_not)
{
	handles[0].uid = "gone";
	write_checkpoint();
	refuses_only("operator gone: in the checkpoint with state counts");
	cr_assert_eq(row("gone")->kind, RESTORE_FIT_UNMATCHED);
	cr_assert_eq(row("gone")->bytes, 2 * handles[0].size);
	cr_assert_eq(row("gone")->parallelism_now, 0);
	cr_assert_eq(row("count")->kind, RESTORE_FIT_NEW);
}

Test(restore_fit, refuses_a_state_that_is_declared_in_another_way)
{
	handles[0].version++;
	write_checkpoint();
	refuses_only("operator count, state counts: version");
}

Test(restore_fit, refuses_values_of_another_size)
{
	handles[0].value_bytes += 8;
	write_checkpoint();
	refuses_only("bytes of a value:");
}

Test(restore_fit, refuses_keys_of_another_size)
{
	handles[0].key_bytes += 8;
	write_checkpoint();
	refuses_only("bytes of a key:");
}

Test(restore_fit, refuses_a_state_that_the_operator_no_longer_declares)
{
	handles[0].name = "old-counts";
	write_checkpoint();
	refuses_only("state old-counts: in the checkpoint, but the operator declares no such");
}

Test(restore_fit, takes_an_operators_own_counters_as_they_are)
{
	handles[0] = (struct state_handle){.uid = "count", .name = "counters",
		.kind = WEIR_STATE_VALUE, .value_bytes = 8, .item_count = 1, .file = "f-0-0",
		.size = 8};
	write_checkpoint();
	compare();
	cr_assert_eq(fit->refusal_count, 0);
	cr_assert_eq(row("count")->kind, RESTORE_FIT_MATCHED);
}

Test(restore_fit, refuses_an_operator_that_moved_to_another_vertex)
{
	handles[0] = (struct state_handle){.uid = "generator", .name = "counters",
		.kind = WEIR_STATE_VALUE, .value_bytes = 8, .item_count = 1, .file = "f-0-0",
		.size = 8};
	write_checkpoint();
	refuses_only("operator generator: of vertex counting in the checkpoint, of vertex make");
}

Test(restore_fit, refuses_another_number_of_key_groups)
{
	char text[RESTORE_FIT_TEXT_BYTES];

	m.key_group_count = 64;
	cr_assert_lt(restore_fit_check(spec, &m, ignores_unclaimed, text), 0);
	cr_assert_not_null(strstr(text, "64 key groups, the job has 128"), "%s", text);
	refuses_only("64 key groups");
}

Test(restore_fit, refuses_a_vertex_that_the_job_has_not)
{
	char text[RESTORE_FIT_TEXT_BYTES];

	vertices[0].uid = "other";
	cr_assert_lt(restore_fit_check(spec, &m, ignores_unclaimed, text), 0);
	cr_assert_not_null(strstr(text, "state of vertex other"), "%s", text);
	refuses_only("vertex other");
}

Test(restore_fit, does_not_believe_bytes_that_are_no_state)
{
	subtasks[1].state = (struct metadata_bytes){(const uint8_t *)"garbage", 7};
	refuses_only("vertex counting, subtask 1: its state cannot be read");
}

Test(restore_fit, of_a_checkpoint_that_fits_is_no_error)
{
	char text[RESTORE_FIT_TEXT_BYTES];

	cr_assert_eq(restore_fit_check(spec, &m, ignores_unclaimed, text), 0);
}

/* RE-9. */
Test(restore_fit, takes_finished_tasks_only_behind_finished_ones)
{
	char text[RESTORE_FIT_TEXT_BYTES];

	vertices[0].is_finished = true;
	subtasks[0] = (struct metadata_subtask){.index = 0, .is_finished = true};
	cr_assert_eq(restore_fit_check(spec, &m, ignores_unclaimed, text), 0, "in part");
	vertices[1].is_finished = true;
	vertices[1].subtask_count = 0;
	cr_assert_eq(restore_fit_check(spec, &m, ignores_unclaimed, text), 0, "and all of it");
	vertices[0].is_finished = false;
	cr_assert_eq(restore_fit_check(spec, &m, ignores_unclaimed, text), -EINVAL);
	cr_assert_not_null(strstr(text, "vertex counting had finished"), "%s", text);
	vertices[1].is_finished = false;
	vertices[1].subtask_count = 2;
	refuses_only("make, which the job has in front of it, had not");
}

/* A chain that was one vertex then, or a source that is new. */
Test(restore_fit, refuses_a_finished_task_behind_a_vertex_that_the_checkpoint_lacks)
{
	vertices[1].is_finished = true;
	vertices[1].subtask_count = 0;
	m.vertices = &vertices[1];
	m.vertex_count = 1;
	refuses_only("vertex counting had finished");
}

/* The job has three subtasks now, the checkpoint is of two. */
static void rescale(void)
{
	spec->vertices[1].parallelism = 3;
}

Test(restore_fit, takes_keyed_state_to_another_parallelism)
{
	char text[RESTORE_FIT_TEXT_BYTES] = "";

	rescale();
	cr_assert_eq(restore_fit_check(spec, &m, ignores_unclaimed, text), 0, "%s", text);
	compare();
	cr_assert_eq(fit->refusal_count, 0);
	cr_assert_eq(row("count")->parallelism_then, 2);
	cr_assert_eq(row("count")->parallelism_now, 3);
}

Test(restore_fit, refuses_another_parallelism_when_a_state_is_each_subtasks_own)
{
	struct weir_state *s = &spec->vertices[1].operators[0].declared.states[0];

	rescale();
	s->kind = WEIR_STATE_VALUE;
	s->key_bytes = 0;
	handles[0] = handle_of("count", "counts");
	handles[0].size = 8;
	handles[0].item_count = 1;
	write_checkpoint();
	refuses_only("vertex counting ran with parallelism 2 when checkpoint 7 was taken, the job "
		     "file says 3: operator count, state counts is a value of each subtask");
}

Test(restore_fit, refuses_data_in_flight_that_finds_no_way_and_names_the_edge)
{
	char text[RESTORE_FIT_TEXT_BYTES] = "";

	in_flight = (struct channel_state_handle){.side = CHANNEL_STATE_INPUT, .file = "channels-1",
		.offset = 4096, .bytes = 16, .buf_count = 1};
	write_checkpoint();
	cr_assert_eq(restore_fit_check(spec, &m, ignores_unclaimed, text), 0, "%s", text);
	rescale();
	cr_assert_eq(restore_fit_check(spec, &m, ignores_unclaimed, text), 0, "a hash edge has: %s",
			text);
	spec->edges[0].partition = JOB_BROADCAST;
	cr_assert_neq(restore_fit_check(spec, &m, ignores_unclaimed, text), 0);
	cr_assert_not_null(strstr(text, "edge make -> counting: checkpoint 7 is unaligned"), "%s",
			text);
	refuses_only("edge make -> counting");
}

/* RE-3, "ignore unclaimed state". */
Test(restore_fit, leaves_state_that_nobody_declares_when_told_to)
{
	char text[RESTORE_FIT_TEXT_BYTES] = "";

	handles[0].uid = "gone";
	write_checkpoint();
	vertices[0].uid = "gone-too";
	cr_assert_neq(restore_fit_check(spec, &m, ignores_unclaimed, text), 0);
	ignores_unclaimed = true;
	cr_assert_eq(restore_fit_check(spec, &m, ignores_unclaimed, text), 0, "%s", text);
	compare();
	cr_assert_eq(fit->refusal_count, 0, "%s", fit->refusal_count > 0 ? fit->refusals[0] : "");
	cr_assert_eq(row("gone")->kind, RESTORE_FIT_UNMATCHED);
}

Test(restore_fit, leaves_a_state_of_an_operator_that_declares_it_no_more_when_told_to)
{
	handles[0].name = "renamed";
	write_checkpoint();
	ignores_unclaimed = true;
	compare();
	cr_assert_eq(fit->refusal_count, 0, "%s", fit->refusal_count > 0 ? fit->refusals[0] : "");
}

/* It is claimed, if in another way. */
Test(restore_fit, refuses_what_is_claimed_in_another_way_also_when_told_to_ignore)
{
	handles[0].version++;
	write_checkpoint();
	ignores_unclaimed = true;
	refuses_only("operator count, state counts: version");
}

static void put_in_flight(enum channel_state_side side, uint32_t gate)
{
	in_flight = (struct channel_state_handle){.side = side, .gate = gate, .file = "channels-1",
		.offset = 4096, .bytes = 16, .buf_count = 1};
	write_checkpoint();
	m.edges = edges;
	m.edge_count = edge_count;
}

Test(restore_fit, loses_no_data_in_flight_with_a_vertex_that_is_gone)
{
	put_in_flight(CHANNEL_STATE_INPUT, 0);
	edges[0].from = vertices[0].uid = "gone";
	ignores_unclaimed = true;
	refuses_only("edge gone -> counting (hash): checkpoint 7 is unaligned and has data in "
		     "flight on it, but that is input 0 of vertex counting no more");
}

Test(restore_fit, puts_data_in_flight_on_no_edge_that_took_the_place_of_its_own)
{
	edges[1] = (struct metadata_edge){"other", "counting", "hash"};
	edge_count = 2;
	put_in_flight(CHANNEL_STATE_INPUT, 1);
	refuses_only("edge other -> counting (hash)");
}

Test(restore_fit, puts_data_in_flight_on_no_edge_that_is_parted_in_another_way)
{
	put_in_flight(CHANNEL_STATE_INPUT, 0);
	edges[0].partition = "rebalance";
	refuses_only("edge make -> counting (rebalance)");
}

Test(restore_fit, takes_data_in_flight_on_the_edge_that_it_was_on)
{
	put_in_flight(CHANNEL_STATE_INPUT, 0);
	compare();
	cr_assert_eq(fit->refusal_count, 0, "%s", fit->refusal_count > 0 ? fit->refusals[0] : "");
}

/* What an older version wrote: places alone are known. */
Test(restore_fit, takes_data_in_flight_of_a_checkpoint_that_names_no_edges)
{
	edge_count = 0;
	put_in_flight(CHANNEL_STATE_INPUT, 0);
	compare();
	cr_assert_eq(fit->refusal_count, 0, "%s", fit->refusal_count > 0 ? fit->refusals[0] : "");
	restore_fit_destroy(fit);
	put_in_flight(CHANNEL_STATE_INPUT, 1);
	refuses_only("vertex counting: checkpoint 7 is unaligned and has data in flight on an "
		     "edge");
}
