/* A capture holds what went out and what came in, and nothing of what was not taken. */

#include "dataplane/channel/net_capture.h"

#include "tests/sim/mem_wire.h"
#include "tests/support/hand_clock.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long size_of(const char *path)
{
	FILE *file = fopen(path, "rb");

	cr_assert_not_null(file);
	fseek(file, 0, SEEK_END);
	long size = ftell(file);
	fclose(file);
	return size;
}

Test(net_capture, writes_each_frame_once)
{
	struct hand_clock clock = hand_clock_make(0, 1700000000123);
	struct mem_wire *wire = mem_wire_create(16, FRAME_BYTES_MAX);
	char path[] = "/tmp/weir-capture-XXXXXX";
	struct frame_out frames[2] = {{.head_bytes = 60}, {.head_bytes = 100}};
	struct frame_in in[2];
	struct net_capture *c;

	close(mkstemp(path));
	cr_assert_eq(net_capture_create(&c, mem_wire_end(wire, 0), path, &clock.clock), 0);
	struct transport *t = net_capture_transport(c), *far = mem_wire_end(wire, 1);

	mem_wire_limit(wire, 0, 0);
	cr_assert_eq(t->send(t, frames, 2), 0);
	cr_assert_eq(t->send(t, frames, 2), 2);
	cr_assert_eq(far->send(far, frames, 1), 1);
	cr_assert_eq(t->receive(t, in, 2), 1);
	t->release(t, in, 1);
	net_capture_destroy(c);
	cr_assert_eq(size_of(path), 24 + 3 * 16 + 60 + 100 + 60);
	unlink(path);
	mem_wire_destroy(wire);
}

Test(net_capture, says_why_it_cannot_write)
{
	struct mem_wire *wire = mem_wire_create(16, FRAME_BYTES_MAX);
	struct hand_clock clock = hand_clock_make(0, 0);
	struct net_capture *c;

	cr_assert_eq(net_capture_create(&c, mem_wire_end(wire, 0), "/nowhere/at/all", &clock.clock),
			-ENOENT);
	mem_wire_destroy(wire);
}
