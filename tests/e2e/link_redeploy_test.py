"""Attempt after attempt in memory that holds one: the next comes before the links of the last are
gone from the TaskManager that lives on, and takes what it had."""

import re

from captures import flows_capture
from harness import expect, expect_equal, expect_same_lines

LINKED = ("--taskmanagers", "2", "--link", "memif")
KILLS = 4


def memory_needed(w, capture):
    """MiB of state that one of the two needs for the job, as its refusal says it."""
    run = w.flow(capture, "none", state="none", options=LINKED,
                 config={"taskmanager.memory.managed.size": "1 mb"})
    expect(run.wait() != 0, "1 MiB is too little")
    found = re.search(r"needs (\d+) MiB in one piece", run.stderr())
    expect(found, run.stderr()[-2000:])
    return int(found[1])


def test(w):
    capture = flows_capture(w.path("in.pcap"), 40_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    size = f"{int(1.5 * memory_needed(w, capture))} mb"  # of either, but not twice that
    run = w.flow(capture, "out", rate=w.pace(6_000), options=LINKED,
                 config={"taskmanager.memory.managed.size": size})
    w.wait_for_checkpoint(2)
    for i in range(KILLS):
        w.kill([run.taskmanagers()[i % 2]], 2)
    summary = run.summary()
    expect_equal(summary["state"], "FINISHED", run.stderr()[-2000:])
    expect_equal(summary["restarts"], KILLS, run.stderr()[-3000:])
    for i in range(2):
        with open(w.path("state", "logs", f"taskmanager-{i}.log"), encoding="utf-8") as log:
            expect("is refused" not in log.read(), f"every attempt finds room on TaskManager {i}")
    expect_same_lines(w.lines("out"), w.lines("calm"), "output")
