"""Everything runs on one core: taskset -c 1, recovery included."""

import os
import shutil

from captures import flows_capture
from harness import Skip, expect_same_lines
from processes import end


def test(w):
    if shutil.which("taskset") is None:
        raise Skip("no taskset here")
    core = str(max(os.sched_getaffinity(0)))
    capture = flows_capture(w.path("in.pcap"), 20_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    run = w.flow(capture, "out", rate=10_000, prefix=("taskset", "-c", core))
    w.wait_for_checkpoint(2)
    for pid in run.taskmanagers():
        end(pid)
    run.summary()
    expect_same_lines(w.lines("out"), w.lines("calm"), "output on one core")
