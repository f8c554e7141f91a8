"""A user's shared object, built against the one installed header, runs in a job."""

import os
import shutil

from harness import DATA, JOBS, ROOT, Skip, expect, expect_equal, expect_same_lines

TCP = "6"


def test(w):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Skip("no C compiler here")
    example = os.path.join(JOBS, "plugin-example")
    shutil.copy(os.path.join(example, "tcp-flows.yaml"), w.dir)
    status, _, err = w.command([compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-I", ROOT,
                                "-o", "byte_filter.so", os.path.join(example, "byte_filter.c")])
    expect_equal(status, 0, f"the compiler's exit status\n{err}")
    capture = os.path.join(DATA, "gnutella.pcap")
    w.flow(capture, "all", state="all").summary()
    w.run(w.path("tcp-flows.yaml"),
          {"source.path": capture, "sink.path": w.path("tcp")}).summary()
    wanted = [line for line in w.lines("all") if line.split(",")[6] == TCP]
    expect(wanted, "there are TCP flows")
    expect_same_lines(w.lines("tcp"), wanted, "TCP flows")
