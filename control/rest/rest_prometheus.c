/* rest_prometheus: /metrics, every metric of the coordinator, its TaskManagers, jobs and tasks in
 * Prometheus' text form, named as Flink's reporter names them (semantics 25.1). */

#include "control/config/job_file.h"
#include "control/coordinator/resource_manager.h"
#include "control/rest/metrics.h"
#include "control/rest/rest_internal.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_MAX = 512, NAME_BYTES = 256, LABELS_BYTES = 2048, HOST_BYTES = 256 };

/* All lines of one metric stand together. */
struct family {
	char name[NAME_BYTES];
	const char *metric, *scope; /* what it was made of, to know it again at a glance */
	bool is_operator;
	char *text;
	size_t bytes;
	FILE *lines;
};

struct page {
	struct family families[NAMES_MAX];
	uint32_t count, cursor;
	bool has_tasks;            /* those of tasks and operators too */
	const char *scope;         /* "jobmanager_job" */
	char labels[LABELS_BYTES]; /* of what is being visited */
	const char *operator_uid;  /* whose labels stand behind those */
	size_t task_bytes;         /* of the labels, without the operator's */
	char host[HOST_BYTES];
};

/* ---- names and labels ---- */

static void print_name(const struct page *p, const struct metric *m, char name[NAME_BYTES])
{
	int n = snprintf(name, NAME_BYTES, "%s_%s%s_%s", m->is_own ? "weir" : "flink", p->scope,
			m->operator_uid != NULL ? "_operator" : "", m->name);

	for (int i = 0; i < n && i < NAME_BYTES; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != ':')
			name[i] = '_';
}

static bool is_of(const struct family *f, const struct page *p, const struct metric *m)
{
	return f->metric == m->name && f->scope == p->scope &&
			f->is_operator == (m->operator_uid != NULL);
}

/* NULL: more names than there is room for. */
static struct family *make_family(struct page *p, const struct metric *m, const char *name)
{
	struct family *f = &p->families[p->count];

	if (p->count == NAMES_MAX)
		return NULL;
	snprintf(f->name, sizeof(f->name), "%s", name);
	f->metric = m->name;
	f->scope = p->scope;
	f->is_operator = m->operator_uid != NULL;
	f->lines = open_memstream(&f->text, &f->bytes);
	if (f->lines == NULL)
		return NULL;
	p->count++;
	return f;
}

static struct family *family_of(struct page *p, const struct metric *m)
{
	char name[NAME_BYTES];
	struct family *f = NULL;

	/* Tasks are alike: after one name comes the one that came after it the last time. */
	if (p->count > 0 && is_of(&p->families[p->cursor % p->count], p, m))
		return &p->families[p->cursor++ % p->count];
	print_name(p, m, name);
	for (uint32_t i = 0; f == NULL && i < p->count; i++)
		if (strcmp(p->families[i].name, name) == 0)
			f = &p->families[i];
	if (f == NULL)
		f = make_family(p, m, name);
	if (f != NULL)
		p->cursor = (uint32_t)(f - p->families) + 1;
	return f;
}

static void add_label(struct page *p, const char *name, const char *value)
{
	size_t at = strlen(p->labels);

	/* Room for the worst: each byte escaped, and what is around it. */
	if (at + strlen(name) + 2 * strlen(value) + 8 > sizeof(p->labels))
		return;
	at += (size_t)snprintf(p->labels + at, sizeof(p->labels) - at, "%s%s=\"",
			at > 0 ? "," : "", name);
	for (; *value != 0; value++) {
		if (*value == '\\' || *value == '"' || *value == '\n')
			p->labels[at++] = '\\';
		p->labels[at++] = *value == '\n' ? 'n' : *value;
	}
	p->labels[at++] = '"';
	p->labels[at] = 0;
}

static void add_number(struct page *p, const char *name, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	add_label(p, name, text);
}

static void add_id(struct page *p, const char *name, json_t *id)
{
	add_label(p, name, json_string_value(id));
	json_decref(id);
}

static void begin(struct page *p, const char *scope)
{
	p->scope = scope;
	p->labels[0] = 0;
	p->operator_uid = NULL;
	add_label(p, "host", p->host);
}

/* ---- lines ---- */

/* Leaves those of the task, and the operator's behind them. */
static void label_operator(struct page *p, const char *uid)
{
	if (uid == p->operator_uid)
		return;
	if (p->operator_uid == NULL)
		p->task_bytes = strlen(p->labels);
	p->labels[p->task_bytes] = 0;
	p->operator_uid = uid;
	if (uid == NULL)
		return;
	add_id(p, "operator_id", rest_vertex_id(uid));
	add_label(p, "operator_name", uid);
}

static void add_line(void *context, const struct metric *m)
{
	struct page *p = context;
	char value[METRIC_VALUE_BYTES];

	if (m->kind == METRIC_TEXT)
		return;
	struct family *f = family_of(p, m);
	if (f == NULL)
		return;
	label_operator(p, m->operator_uid);
	fputs_unlocked(f->name, f->lines);
	putc_unlocked('{', f->lines);
	fputs_unlocked(p->labels, f->lines);
	fputs_unlocked("} ", f->lines);
	fputs_unlocked(m->kind == METRIC_REAL && !isfinite(m->real) ? "NaN"
								    : metric_print(m, value),
			f->lines);
	putc_unlocked('\n', f->lines);
}

static void add_task(struct page *p, struct job_master *jm, uint32_t place, uint32_t index,
		const struct coordinator *c)
{
	const struct execution *e = job_master_execution(jm, place, index);
	const struct resource_row *row =
			e->member == MEMBER_NONE
					? NULL
					: resource_manager_row(coordinator_resources(c), e->member);
	char attempt[ID128_TEXT_BYTES];
	const char *uid = rest_vertex(jm, place)->uid;

	id128_print(e->attempt.id, attempt);
	begin(p, "taskmanager_job_task");
	add_id(p, "job_id", rest_job_id(jm));
	add_label(p, "job_name", job_master_name(jm));
	add_number(p, "subtask_index", index);
	add_label(p, "task_attempt_id", attempt);
	add_number(p, "task_attempt_num", e->attempt_number);
	add_id(p, "task_id", rest_vertex_id(uid));
	add_label(p, "task_name", uid);
	add_label(p, "tm_id", row == NULL ? "" : row->id);
	metrics_of_task(jm, place, index, add_line, p);
}

static void add_job(struct page *p, struct job_master *jm, const struct coordinator *c)
{
	begin(p, "jobmanager_job");
	add_id(p, "job_id", rest_job_id(jm));
	add_label(p, "job_name", job_master_name(jm));
	metrics_of_job(jm, add_line, p);
	/* Tasks that have ended are no more. */
	if (!p->has_tasks || job_status_is_terminal(job_master_status(jm)))
		return;
	for (uint32_t place = 0; place < job_master_spec(jm)->vertex_count; place++)
		for (uint32_t i = 0; i < rest_vertex(jm, place)->parallelism; i++)
			add_task(p, jm, place, i, c);
}

static void add_all(struct page *p, const struct coordinator *c)
{
	struct job_master *jm;

	begin(p, "jobmanager");
	metrics_of_coordinator(c, add_line, p);
	for (uint32_t member = 0; member < MEMBERS_COUNT_MAX; member++) {
		const struct resource_row *row =
				resource_manager_row(coordinator_resources(c), member);

		if (row == NULL)
			continue;
		begin(p, "taskmanager");
		add_label(p, "tm_id", row->id);
		metrics_of_taskmanager(c, member, add_line, p);
	}
	for (uint32_t i = 0; (jm = coordinator_job_at(c, i)) != NULL; i++)
		add_job(p, jm, c);
}

/* Ends the families; the page is the caller's. */
static char *join(struct page *p)
{
	char *text = NULL;
	size_t bytes;
	FILE *all = open_memstream(&text, &bytes);

	for (uint32_t i = 0; i < p->count; i++) {
		struct family *f = &p->families[i];

		fclose(f->lines);
		if (all != NULL)
			fprintf(all, "# TYPE %s gauge\n%s", f->name, f->text);
		free(f->text);
	}
	if (all != NULL)
		fclose(all);
	return text;
}

void rest_get_prometheus(struct rest_call *call)
{
	struct page *p = calloc(1, sizeof(*p));
	char tasks[REST_PART_BYTES], *text = NULL;

	rest_query(call, "tasks", tasks);
	if (p != NULL) {
		p->has_tasks = strcmp(tasks, "off") != 0;
		if (gethostname(p->host, sizeof(p->host) - 1) != 0)
			p->host[0] = '?';
		add_all(p, call->coordinator);
		text = join(p);
	}
	free(p);
	if (text == NULL) {
		rest_refuse(call, 500, "out of memory");
		return;
	}
	call->response->status = 200;
	call->response->content_type = "text/plain; version=0.0.4; charset=utf-8";
	call->response->body = text;
}
