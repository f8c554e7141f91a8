"""A TaskManager hangs (SIGSTOP): the first line names task, phase and time; the job recovers."""

import os
import re
import signal

from captures import flows_capture
from harness import expect, expect_same_lines

ALONE = True  # heartbeats are timed
LOST = re.compile(r"TaskManager \S+ is lost: no heartbeat for (?P<ms>\d+) ms; "
                  r"(?P<task>\S+ \(\d+/\d+\))( and \d+ other tasks)? ran there(?P<rest>.*)")


def test(w):
    capture = flows_capture(w.path("in.pcap"), 30_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    run = w.flow(capture, "out", rate=10_000, options=["--quiet"])
    w.wait_for_checkpoint(3)
    hung = run.taskmanagers()[0]
    os.kill(hung, signal.SIGSTOP)
    try:
        line = w.wait_for(lambda: LOST.search(run.stderr()), "a line that tells the loss")
        expect(500 <= int(line["ms"]) < 500 + 2000 * w.factor, f"elapsed: {line.group(0)}")
        expect(line["task"] == "ingest (1/1)", line.group(0))
        expect("waiting for tasks" in line["rest"] and "has not acknowledged" in line["rest"],
               f"the checkpoint that was under way: {line.group(0)}")
    finally:
        os.kill(hung, signal.SIGKILL)
    run.summary()
    expect_same_lines(w.lines("out"), w.lines("calm"), "output")
