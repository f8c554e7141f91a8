/* barrier-seeds: one seed after the other: a job that nothing disturbs, then the same under fire;
 * both must end with the same records. */

#include "dataplane/base/check.h"
#include "dataplane/base/clock.h"
#include "tests/soak/soak_hooks.h"
#include "tests/soak/soak_life.h"

#include <errno.h>
#include <ftw.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_MISTAKE = 1, EXIT_USAGE = 2, HANG_SECONDS = 20, WALK_FILES = 16 };

struct options {
	uint64_t seed, count;
	enum soak_mistake mistake;
	bool must_keep, is_wordy;
	double seconds_max;
};

/* One seed at work. */
struct seed_run {
	const struct options *options;
	struct soak_plan plan;
	char directory[SOAK_PATH_BYTES / 2];
	struct soak_outcome *out; /* shared with the child */
	struct soak_life life;    /* the last one begun */
	uint64_t calm_turns;
	uint32_t completed;       /* checkpoints of all lives under fire */
	char text[SOAK_TEXT_BYTES];
};

/* ---- files ---- */

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
	(void)s;
	(void)type;
	(void)at;
	return remove(path);
}

static void make_directory(const char *path)
{
	CHECK(mkdir(path, 0755) == 0 || errno == EEXIST);
}

/* Directories of the calm run, or of the other. */
static struct soak_place place_of(
		struct seed_run *r, bool is_calm, char checkpoints[], char result[])
{
	const char *name = is_calm ? "calm" : "fire";

	snprintf(checkpoints, SOAK_PATH_BYTES, "%s/%s", r->directory, name);
	snprintf(result, SOAK_PATH_BYTES, "%s/%s-result", r->directory, name);
	return (struct soak_place){
			.directory = checkpoints,
			.result = result,
			.calm_turns = r->calm_turns,
			.seconds_max = r->options->seconds_max,
	};
}

static void make_directories(struct seed_run *r)
{
	char path[SOAK_PATH_BYTES];
	static const char *const names[] = {
			"", "/calm", "/calm/records", "/calm-result", "/fire", "/fire/records",
			"/fire-result"};

	snprintf(r->directory, sizeof(r->directory), "%s/barrier-soak-%d-%" PRIu64,
			r->plan.is_on_disk ? "/tmp" : "/dev/shm", getpid(), r->plan.seed);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", r->directory, names[i]);
		make_directory(path);
	}
}

/* ---- lives ---- */

static bool may_be_killed(const struct soak_life *l)
{
	return !l->is_last && (l->fault == SOAK_KILL || l->fault == SOAK_KILL_AT_ACK ||
					      l->fault == SOAK_KILL_COMPLETE);
}

/* What the parent sees of a child that ended without a word. */
static void judge_death(struct seed_run *r, int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && may_be_killed(&r->life))
		return;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && r->out->end != SOAK_DIED)
		return;
	r->out->end = SOAK_WRONG;
	if (WIFSIGNALED(status))
		snprintf(r->out->text, sizeof(r->out->text), "it ended by signal %d (%s)",
				WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(r->out->text, sizeof(r->out->text), "it ended with status %d", status);
}

/* In a child; false: `text` says what went wrong. */
static bool live(struct seed_run *r, bool is_calm)
{
	char checkpoints[SOAK_PATH_BYTES], result[SOAK_PATH_BYTES];
	struct soak_place place = place_of(r, is_calm, checkpoints, result);
	int status;

	*r->out = (struct soak_outcome){.end = SOAK_DIED};
	fflush(NULL);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		if (!is_calm)
			soak_hooks_make(r->options->mistake);
		alarm((unsigned int)r->options->seconds_max + HANG_SECONDS);
		soak_life_run(&r->plan, &r->life, &place, r->out);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	judge_death(r, status);
	if (r->out->end == SOAK_WRONG)
		snprintf(r->text, sizeof(r->text), "%.1000s", r->out->text);
	return r->out->end != SOAK_WRONG;
}

static const char *end_name(enum soak_end end)
{
	static const char *const names[] = {"killed", "finished", "over", "WRONG"};

	return names[end];
}

static void say_life(const struct seed_run *r)
{
	const struct soak_life *l = &r->life;

	printf("  life %u: %s, %s, parallelism", l->number, soak_mode_name(l->mode),
			l->is_last ? "to the end" : soak_fault_name(l->fault));
	for (uint32_t v = 0; v < r->plan.vertex_count; v++)
		printf(" %u", l->parallelism[v]);
	printf("; from checkpoint %" PRId64 ", begun up to %" PRId64
	       ", %u completed, %u aborted, %u of them declined (%s); %" PRIu64 " turns, %s\n",
			r->out->restored_id, r->out->begun_id, r->out->completed, r->out->aborted,
			r->out->declined, r->out->declined_text, r->out->turns,
			end_name(r->out->end));
}

/* What had finished stays as it was. */
static void fit_to_record(struct seed_run *r)
{
	char checkpoints[SOAK_PATH_BYTES], result[SOAK_PATH_BYTES];
	struct soak_place place = place_of(r, false, checkpoints, result);
	struct soak_record *record = soak_record_read_newest(place.directory);

	if (record != NULL && soak_record_has_finished(record, &r->plan))
		memcpy(r->life.parallelism, record->parallelism, sizeof(record->parallelism));
	soak_record_free(record);
}

static bool live_under_fire(struct seed_run *r)
{
	struct soak_life before = soak_life_calm(&r->plan);

	for (uint32_t number = 1;; number++) {
		r->life = soak_life_draw(&r->plan, number, &before);
		fit_to_record(r);
		bool is_good = live(r, false);
		r->completed += r->out->completed;
		if (r->options->is_wordy)
			say_life(r);
		if (!is_good || r->out->end == SOAK_FINISHED)
			return is_good;
		before = r->life;
	}
}

/* ---- what vertices have in the end ---- */

static bool has(const struct numbered_result *s, uint32_t stream, uint32_t number)
{
	return (s->seen[stream][number / 64] >> number % 64 & 1) != 0;
}

static bool read_result(struct seed_run *r, bool is_calm, uint32_t vertex, uint32_t subtask,
		struct numbered_result *s)
{
	char checkpoints[SOAK_PATH_BYTES], result[SOAK_PATH_BYTES], path[SOAK_PATH_BYTES + 32];
	struct soak_place place = place_of(r, is_calm, checkpoints, result);

	snprintf(path, sizeof(path), "%s/%s-%u-of-%u", place.result, r->plan.vertices[vertex].uid,
			subtask, r->life.parallelism[vertex]);
	FILE *file = fopen(path, "rb");
	bool is_read = file != NULL && fread(s, sizeof(*s), 1, file) == 1;

	if (file != NULL)
		fclose(file);
	if (!is_read)
		snprintf(r->text, sizeof(r->text), "%s %u has finished without a word",
				r->plan.vertices[vertex].uid, subtask);
	return is_read;
}

/* How often each record is there must be as the edge wants it. */
static bool check_record(struct seed_run *r, uint32_t vertex, uint32_t stream, uint32_t number,
		const struct numbered_result *all)
{
	const struct soak_vertex *v = &r->plan.vertices[vertex];
	uint32_t parallelism = r->life.parallelism[vertex], times = 0;

	for (uint32_t i = 0; i < parallelism; i++)
		times += has(&all[i], stream, number);
	uint32_t wanted = v->must_share ? parallelism : 1;
	if (times == wanted || (v->order == NUMBERED_REPEATS && times > 0 && !v->must_share))
		return true;
	uint32_t from = 0;
	for (uint32_t e = 0; e < r->plan.edge_count; e++) {
		if (r->plan.edges[e].to == vertex)
			from = r->plan.edges[e].from;
	}
	snprintf(r->text, sizeof(r->text),
			"edge %s -> %s: stream %u number %u is there %u times instead of %u (the "
			"first such), restored from checkpoint %" PRId64,
			r->plan.vertices[from].uid, v->uid, stream, number, times, wanted,
			r->out->restored_id);
	return false;
}

static bool check_vertex(struct seed_run *r, bool is_calm, uint32_t vertex, uint64_t *digest)
{
	static struct numbered_result all[SOAK_PARALLELISM_MAX];
	const struct soak_plan *p = &r->plan;

	for (uint32_t i = 0; i < r->life.parallelism[vertex]; i++) {
		if (!read_result(r, is_calm, vertex, i, &all[i]))
			return false;
	}
	for (uint32_t s = 0; s < p->streams; s++) {
		for (uint32_t n = 0; n < p->count; n++) {
			if (!check_record(r, vertex, s, n, all))
				return false;
			*digest += numbered_digest(p->seed + vertex, s, n);
		}
	}
	return true;
}

/* In the order of the dataflow: what is named first was lost there. */
static bool check_result(struct seed_run *r, bool is_calm, uint64_t *digest)
{
	*digest = 0;
	for (uint32_t v = 1; v < r->plan.vertex_count; v++) {
		if (!check_vertex(r, is_calm, v, digest))
			return false;
	}
	return true;
}

/* ---- a seed ---- */

static bool play(struct seed_run *r, uint64_t *calm, uint64_t *fire)
{
	r->life = soak_life_calm(&r->plan);
	if (!live(r, true) || !check_result(r, true, calm))
		return false;
	r->calm_turns = r->out->turns;
	if (!live_under_fire(r) || !check_result(r, false, fire))
		return false;
	if (*calm == *fire)
		return true;
	snprintf(r->text, sizeof(r->text), "the digest is %" PRIx64 " instead of %" PRIx64, *fire,
			*calm);
	return false;
}

static void say_failure(const struct seed_run *r)
{
	printf("FAIL seed %" PRIu64 ", life %u (%s, %s), newest checkpoint begun %" PRId64
	       ": %s\n  ",
			r->plan.seed, r->life.number, soak_mode_name(r->life.mode),
			r->life.is_last ? "to the end" : soak_fault_name(r->life.fault),
			r->out->begun_id, r->text);
	soak_plan_print(&r->plan, stdout);
}

static bool play_seed(const struct options *o, uint64_t seed)
{
	uint64_t calm = 0, fire = 0, begun_ns = clock_monotonic_ns();
	struct seed_run *r = calloc(1, sizeof(*r));

	CHECK(r != NULL);
	r->options = o;
	soak_plan_draw(&r->plan, seed);
	r->out = mmap(NULL, sizeof(*r->out), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	CHECK(r->out != MAP_FAILED);
	make_directories(r);
	if (o->is_wordy)
		soak_plan_print(&r->plan, stdout);
	bool is_good = play(r, &calm, &fire);
	if (!is_good)
		say_failure(r);
	else
		printf("%6" PRIu64 "  digest %016" PRIx64 "  %u lives, %3u checkpoints  %.2f s\n",
				seed, fire, r->life.number, r->completed,
				(double)(clock_monotonic_ns() - begun_ns) / 1e9);
	fflush(stdout);
	if (!o->must_keep)
		(void)nftw(r->directory, remove_one, WALK_FILES, FTW_DEPTH | FTW_PHYS);
	munmap(r->out, sizeof(*r->out));
	free(r);
	return is_good;
}

/* ---- the command line ---- */

static const char usage[] =
		"usage: barrier-seeds [--seed N] [--count M] [--plant MISTAKE] [--seconds S]\n"
		"                     [--keep] [--verbose]\n"
		"Plays seeds N, N+1 ... of the barrier soak in this process's children.\n"
		"  --plant   drop-input, keep-twice, drop-output, swap, no-block: a mistake to be\n"
		"            found; the first seed that does ends it\n"
		"  --seconds what one attempt of a job may take (60)\n"
		"  --keep    leave the directories\n"
		"Exit: 0 all digests equal; 1 a seed failed; 2 usage.\n"
		"example: barrier-seeds --seed 7 --count 1 --verbose\n";

static bool read_options(struct options *o, int argc, char **argv)
{
	static const struct option known[] = {{"seed", 1, NULL, 's'}, {"count", 1, NULL, 'c'},
			{"plant", 1, NULL, 'p'}, {"seconds", 1, NULL, 't'},
			{"keep", 0, NULL, 'k'}, {"verbose", 0, NULL, 'v'}, {NULL, 0, NULL, 0}};
	int word;

	*o = (struct options){.seed = 1, .count = 1, .seconds_max = 60};
	while ((word = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (word) {
		case 's':
			o->seed = strtoull(optarg, NULL, 10);
			break;
		case 'c':
			o->count = strtoull(optarg, NULL, 10);
			break;
		case 'p':
			if (!soak_mistake_parse(optarg, &o->mistake))
				return false;
			break;
		case 't':
			o->seconds_max = strtod(optarg, NULL);
			break;
		case 'k':
			o->must_keep = true;
			break;
		case 'v':
			o->is_wordy = true;
			break;
		default:
			return false;
		}
	}
	return optind == argc;
}

int main(int argc, char **argv)
{
	struct options o;
	uint64_t played = 0, failed = 0;

	if (!read_options(&o, argc, argv)) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	/* A planted mistake need be found once. */
	for (; played < o.count && (o.mistake == SOAK_NO_MISTAKE || failed == 0); played++)
		failed += !play_seed(&o, o.seed + played);
	printf("%" PRIu64 " seeds, %" PRIu64 " failed\n", played, failed);
	return failed > 0 ? EXIT_MISTAKE : 0;
}
