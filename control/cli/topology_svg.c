#include "control/cli/topology_picture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * The drawing: a box for the host; in it memory as a bar, a box for each node with its physical
 * cores side by side, in each the hardware threads one above the other; below them the ports.
 */

enum {
	MARGIN = 16,
	CELL_WIDTH = 190,
	CELL_GAP = 10,
	LINE = 16,
	TASKS_SHOWN_MAX = 6,
	CELLS_A_ROW = 4,
	BAR_HEIGHT = 18,
	PORT_HEIGHT = 56,
	WIDTH = 2 * MARGIN + CELLS_A_ROW * (CELL_WIDTH + CELL_GAP) + 2 * CELL_GAP,
};

struct canvas {
	const struct host_picture *picture;
	FILE *out;
	int y; /* where the next thing goes */
};

/* Names come from job files and the host. */
static void escape(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '<' || *text == '>' || *text == '&' || *text == '"')
			fprintf(out, "&#%d;", *text);
		else if ((unsigned char)*text >= ' ')
			fputc(*text, out);
	}
}

static void write_text(struct canvas *c, int x, int y, const char *class, const char *text)
{
	fprintf(c->out, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, y, class);
	escape(c->out, text);
	fprintf(c->out, "</text>\n");
}

static void box(struct canvas *c, int x, int y, int width, int height, const char *class)
{
	fprintf(c->out,
			"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" "
			"class=\"%s\"/>\n",
			x, y, width, height, class);
}

static uint32_t task_count(const struct host_picture *p, int32_t worker)
{
	char text[PICTURE_TEXT_BYTES];
	uint32_t count = 0;

	while (picture_task(p, worker, count, text))
		count++;
	return count;
}

static int thread_height(const struct host_picture *p, const struct picture_core *core)
{
	uint32_t tasks = task_count(p, core->worker);

	return (int)(tasks > TASKS_SHOWN_MAX ? TASKS_SHOWN_MAX + 1 : tasks) * LINE + 2 * LINE - 6;
}

/* One hardware thread: its number, what it does, its tasks. */
static int draw_thread(struct canvas *c, int x, int y, const struct picture_core *core)
{
	int height = thread_height(c->picture, core);
	char role[PICTURE_TEXT_BYTES], text[2 * PICTURE_TEXT_BYTES];
	uint32_t tasks = task_count(c->picture, core->worker);

	box(c, x, y, CELL_WIDTH - 2 * CELL_GAP, height,
			core->worker >= 0   ? "worker"
			: !core->is_allowed ? "denied"
			: core->is_control  ? "control"
					    : "free");
	picture_role(core, role);
	snprintf(text, sizeof(text), "core %" PRId64 "%s%s", core->os_index,
			role[0] == '\0' ? "" : ": ", role);
	write_text(c, x + 6, y + LINE, "name", text);
	for (uint32_t i = 0; i < tasks && i < TASKS_SHOWN_MAX; i++) {
		picture_task(c->picture, core->worker, i, text);
		write_text(c, x + 14, y + LINE * (int)(i + 2), "task", text);
	}
	if (tasks > TASKS_SHOWN_MAX) {
		snprintf(text, sizeof(text), "and %u more", tasks - TASKS_SHOWN_MAX);
		write_text(c, x + 14, y + LINE * (TASKS_SHOWN_MAX + 2), "task", text);
	}
	return height;
}

/* How many hardware threads from `first` on share one physical core. */
static uint32_t threads_at(const struct host_picture *p, uint32_t first)
{
	uint32_t end = first + 1;

	while (end < p->core_count && p->cores[end].node == p->cores[first].node &&
			p->cores[end].physical_index == p->cores[first].physical_index)
		end++;
	return end - first;
}

static int cell_height(const struct host_picture *p, uint32_t first)
{
	int height = LINE + CELL_GAP;

	for (uint32_t i = first; i < first + threads_at(p, first); i++)
		height += thread_height(p, &p->cores[i]) + 6;
	return height;
}

static void draw_cell(struct canvas *c, int x, int y, int height, uint32_t first)
{
	const struct host_picture *p = c->picture;
	char text[PICTURE_TEXT_BYTES];
	int at = y + LINE + 6;

	box(c, x, y, CELL_WIDTH, height, "cell");
	snprintf(text, sizeof(text), "physical core %" PRId64, p->cores[first].physical_index);
	write_text(c, x + CELL_GAP, y + LINE, "dim", text);
	for (uint32_t i = first; i < first + threads_at(p, first); i++)
		at += draw_thread(c, x + CELL_GAP, at, &p->cores[i]) + 6;
}

/* Up to four physical cores side by side; returns the first core behind them. */
static uint32_t draw_row(struct canvas *c, uint32_t first)
{
	const struct host_picture *p = c->picture;
	uint32_t end = first;
	int height = 0, x = MARGIN + CELL_GAP;

	for (int cell = 0; cell < CELLS_A_ROW && end < p->core_count &&
			   p->cores[end].node == p->cores[first].node;
			cell++) {
		int needed = cell_height(p, end);

		height = needed > height ? needed : height;
		end += threads_at(p, end);
	}
	for (uint32_t at = first; at < end; at += threads_at(p, at)) {
		draw_cell(c, x, c->y, height, at);
		x += CELL_WIDTH + CELL_GAP;
	}
	c->y += height + CELL_GAP;
	return end;
}

static void draw_nodes(struct canvas *c)
{
	const struct host_picture *p = c->picture;
	char text[PICTURE_TEXT_BYTES];

	for (uint32_t at = 0; at < p->core_count;) {
		int64_t node = p->cores[at].node;

		if (node < 0)
			snprintf(text, sizeof(text), "cores");
		else
			snprintf(text, sizeof(text), "NUMA node %" PRId64, node);
		c->y += LINE;
		write_text(c, MARGIN + CELL_GAP, c->y, "head", text);
		c->y += CELL_GAP;
		while (at < p->core_count && p->cores[at].node == node)
			at = draw_row(c, at);
	}
}

/* What a TaskManager reserves, and what else is in use, of all memory. */
static void draw_memory(struct canvas *c)
{
	const struct host_picture *p = c->picture;
	int width = WIDTH - 2 * MARGIN - 2 * CELL_GAP, x = MARGIN + CELL_GAP;
	int64_t ours = p->state_bytes + p->network_bytes;
	char text[2 * PICTURE_TEXT_BYTES];

	if (p->memory_bytes <= 0 || p->available_bytes < 0 || p->available_bytes > p->memory_bytes)
		return;
	double scale = (double)width / (double)p->memory_bytes;
	int used = (int)((double)(p->memory_bytes - p->available_bytes) * scale);
	int reserved = ours > p->available_bytes ? width - used : (int)((double)ours * scale);

	snprintf(text, sizeof(text),
			"memory: %" PRId64 " MiB, in use %" PRId64 ", a TaskManager takes %" PRId64,
			p->memory_bytes >> 20, (p->memory_bytes - p->available_bytes) >> 20,
			ours >> 20);
	c->y += LINE;
	write_text(c, x, c->y, "head", text);
	c->y += 6;
	box(c, x, c->y, width, BAR_HEIGHT, "free");
	box(c, x, c->y, used, BAR_HEIGHT, "denied");
	box(c, x + used, c->y, reserved < 2 ? 2 : reserved, BAR_HEIGHT, "worker");
	c->y += BAR_HEIGHT + CELL_GAP;
}

static void draw_ports(struct canvas *c)
{
	const struct host_picture *p = c->picture;
	char text[PICTURE_USE_BYTES];

	if (p->port_count == 0)
		return;
	c->y += LINE;
	write_text(c, MARGIN + CELL_GAP, c->y, "head", "ports");
	c->y += CELL_GAP;
	for (uint32_t i = 0; i < p->port_count; i++) {
		const struct picture_port *port = &p->ports[i];
		int x = MARGIN + CELL_GAP + (int)(i % CELLS_A_ROW) * (CELL_WIDTH + CELL_GAP);

		box(c, x, c->y, CELL_WIDTH, PORT_HEIGHT,
				port->is_link || port->is_packets ? "worker" : "free");
		write_text(c, x + 6, c->y + LINE, "name", port->name);
		snprintf(text, sizeof(text), "%.24s%s%.16s", port->driver,
				port->interface == NULL ? "" : ", ",
				port->interface == NULL ? "" : port->interface);
		write_text(c, x + 14, c->y + 2 * LINE, "task", text);
		picture_use(p, port, text);
		write_text(c, x + 14, c->y + 3 * LINE, "task", text);
		if (i % CELLS_A_ROW == CELLS_A_ROW - 1 || i + 1 == p->port_count)
			c->y += PORT_HEIGHT + CELL_GAP;
	}
}

static int draw(struct canvas *c)
{
	char text[4 * PICTURE_TEXT_BYTES];

	c->y = MARGIN + LINE + 6;
	snprintf(text, sizeof(text), "%.80s, kernel %.80s", c->picture->host, c->picture->kernel);
	write_text(c, MARGIN + CELL_GAP, c->y, "title", text);
	c->y += 6;
	draw_memory(c);
	draw_nodes(c);
	draw_ports(c);
	return c->y;
}

static const char style[] =
		"<style>text{font-family:sans-serif;font-size:12px;fill:#1d2733}"
		".title{font-size:15px;font-weight:bold}.head{font-weight:bold}.dim{fill:#5f6b7a}"
		".task{font-size:11px}rect{stroke:#9aa5b1;fill:#fff}"
		".host{fill:#f4f6f8}.cell{fill:#fff}.worker{fill:#bfe3c8;stroke:#3a8a52}"
		".control{fill:#cfe0f5;stroke:#3f6fa8}.denied{fill:#e3e6ea}.free{fill:#fff}"
		"</style>\n";

bool picture_print_svg(const struct host_picture *p, FILE *out)
{
	/* Drawn into memory first, for its height stands at the head. */
	char *body = NULL;
	size_t size;
	FILE *memory = open_memstream(&body, &size);

	if (memory == NULL)
		return false;
	int height = draw(&(struct canvas){.picture = p, .out = memory}) + MARGIN;
	bool is_good = fclose(memory) == 0;
	struct canvas page = {.picture = p, .out = out};

	if (is_good) {
		fprintf(out,
				"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
				"height=\"%d\" viewBox=\"0 0 %d %d\">\n%s",
				WIDTH, height, WIDTH, height, style);
		box(&page, 4, 4, WIDTH - 8, height - 8, "host");
		fprintf(out, "%s</svg>\n", body);
	}
	free(body);
	return is_good && ferror(out) == 0;
}
