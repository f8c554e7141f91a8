#include "tests/support/flow_pipeline.h"

#include "dataplane/base/check.h"
#include "dataplane/operator/builtins.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void flow_pipeline_open(struct flow_pipeline *p, const struct flow_pipeline_config *c)
{
	const char *size = c->window_size == NULL ? "60 s" : c->window_size;
	const char *late = c->out_of_orderness == NULL ? "1 s" : c->out_of_orderness;
	const struct param_text source[] = {{"path", c->path == NULL ? c->files[0] : c->path},
			{"max-out-of-orderness", late}, {NULL, NULL}};
	const struct param_text window[] = {{"size", size}, {"max-flows", "20000"}, {NULL, NULL}};

	*p = (struct flow_pipeline){.files = c->files, .watermark_ns = WEIR_WATERMARK_NONE};
	p->source = harness_create(&(struct harness_config){
			.op = &builtin_pcap_source, .params = source});
	p->parse = harness_create(&(struct harness_config){.op = &builtin_flow_parse});
	p->window = harness_create(&(struct harness_config){.op = &builtin_flow_window,
			.params = window,
			.in_record_bytes = sizeof(struct flow_packet)});
	if (c->restore != NULL) {
		harness_restore(p->source, c->restore->source);
		harness_restore(p->parse, c->restore->parse);
		harness_restore(p->window, c->restore->window);
		p->file_index = c->restore->file_index;
	}
	CHECK(harness_open(p->source) == 0);
	CHECK(harness_open(p->parse) == 0);
	CHECK(harness_open(p->window) == 0);
}

static void take_rows(struct flow_pipeline *p)
{
	uint32_t count;
	const uint8_t *rows = harness_output(p->window, &count, NULL);

	if (p->row_count + count > p->row_max) {
		p->row_max = 2 * (p->row_count + count);
		p->rows = realloc(p->rows, p->row_max * sizeof(*p->rows));
		CHECK(p->rows != NULL);
	}
	if (count > 0)
		memcpy(p->rows + p->row_count, rows, count * sizeof(*p->rows));
	p->row_count += count;
	harness_clear_output(p->window);
}

static void answer_request(struct flow_pipeline *p, uint32_t asked_before)
{
	char text[4096];

	if (harness_event_count(p->source) == asked_before)
		return;
	CHECK(strcmp(harness_last_event(p->source), "REQUEST") == 0);
	if (p->files[p->file_index] == NULL)
		snprintf(text, sizeof(text), "NO-MORE");
	else
		snprintf(text, sizeof(text), "FILE %s", p->files[p->file_index++]);
	harness_event(p->source, text);
}

static void pass_on(struct flow_pipeline *p)
{
	uint32_t count;
	size_t bytes;
	const uint8_t *records = harness_output(p->source, &count, &bytes);

	harness_set_room(p->parse, 512);
	if (count > 0)
		CHECK(harness_process_bytes(p->parse, records, count, (uint32_t)bytes) == count);
	harness_clear_output(p->source);
	records = harness_output(p->parse, &count, NULL);
	harness_process_all(p->window, records, count);
	harness_clear_output(p->parse);
	if (harness_out_watermark(p->source) > p->watermark_ns) {
		p->watermark_ns = harness_out_watermark(p->source);
		harness_watermark_all(p->window, p->watermark_ns);
	}
	take_rows(p);
}

bool flow_pipeline_step(struct flow_pipeline *p, uint32_t records_max)
{
	uint32_t asked = harness_event_count(p->source);
	enum weir_poll rc;

	if (p->is_over || harness_error(p->source) != NULL)
		return false;
	harness_set_room(p->source, 512);
	rc = harness_poll(p->source, records_max);
	if (harness_error(p->source) != NULL)
		return false;
	answer_request(p, asked);
	pass_on(p);
	if (rc == WEIR_POLL_IDLE)
		usleep(20); /* the reader is a thread of its own */
	if (rc == WEIR_POLL_END) {
		harness_watermark_all(p->window, WEIR_WATERMARK_END);
		take_rows(p);
		p->is_over = true;
	}
	return harness_error(p->window) == NULL;
}

void flow_pipeline_run(struct flow_pipeline *p)
{
	while (flow_pipeline_step(p, 512))
		;
}

void flow_pipeline_save(struct flow_pipeline *p, struct flow_pipeline_snapshot *s)
{
	s->source = harness_save(p->source, 1);
	s->parse = harness_save(p->parse, 1);
	s->window = harness_save(p->window, 1);
	s->file_index = p->file_index;
}

void flow_pipeline_snapshot_free(struct flow_pipeline_snapshot *s)
{
	harness_snapshot_free(s->source);
	harness_snapshot_free(s->parse);
	harness_snapshot_free(s->window);
}

void flow_pipeline_close(struct flow_pipeline *p)
{
	harness_destroy(p->source);
	harness_destroy(p->parse);
	harness_destroy(p->window);
	free(p->rows);
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct flow_row));
}

bool flow_rows_are_equal(const struct flow_pipeline *whole, const struct flow_pipeline *first,
		uint32_t first_count, const struct flow_pipeline *second)
{
	uint32_t count = first_count + second->row_count;
	struct flow_row *a = malloc((count + 1) * sizeof(*a));
	struct flow_row *b = malloc((whole->row_count + 1) * sizeof(*b));

	CHECK(a != NULL);
	CHECK(b != NULL);
	if (first_count > 0)
		memcpy(a, first->rows, first_count * sizeof(*a));
	if (second->row_count > 0)
		memcpy(a + first_count, second->rows, second->row_count * sizeof(*a));
	memcpy(b, whole->rows, whole->row_count * sizeof(*b));
	qsort(a, count, sizeof(*a), compare);
	qsort(b, whole->row_count, sizeof(*b), compare);
	bool are_equal = count == whole->row_count && memcmp(a, b, count * sizeof(*a)) == 0;
	free(a);
	free(b);
	return are_equal;
}
