"""A job goes on from a checkpoint with other parallelism, up and down, and its result is exact."""

import os
import re

from captures import flows_capture
from harness import INTERRUPTED, JOBS, expect, expect_equal, expect_same_lines

RECORDS = 450_000
# Subtasks of the source and of what stands behind the exchange.
COUNTS = [(2, 2), (3, 1), (1, 8), (4, 3), (7, 7), (2, 4)]
FLOWS = [(1, 2), (2, 7), (1, 1), (3, 4)]
PAUSE = 3  # checkpoints of each life


def job_with(w, name, subtasks):
    with open(os.path.join(JOBS, name + ".yaml"), encoding="utf-8") as file:
        text = file.read()
    counts = iter(subtasks)
    text = re.sub(r"parallelism: \d+", lambda _: f"parallelism: {next(counts)}", text)
    return w.write(f"{name}-{subtasks[0]}-{subtasks[1]}.yaml", text)


def live_through(w, name, lives, sets, state, options=()):
    """Runs the job with each pair of subtasks in turn; the summary of the last life."""
    run = None
    for index, subtasks in enumerate(lives):
        more = ("--restore", "latest") if index > 0 else ()
        run = w.run(job_with(w, name, subtasks), sets, state=state, options=(*options, *more))
        if index + 1 == len(lives):
            break
        w.wait_for_checkpoint(w.newest_checkpoint(state) + PAUSE, state)
        if index == 2:  # also from there, before a checkpoint of this parallelism is old
            w.kill(run.taskmanagers(), PAUSE, state)
        run.interrupt()
        run.summary(status=INTERRUPTED)
    return run.summary()


def counting(w):
    calm = w.run(job_with(w, "keyed-count", COUNTS[0]), {"generator.records": RECORDS},
                 state="calm").summary()
    moved = live_through(w, "keyed-count", COUNTS, {
        "generator.records": RECORDS, "generator.rate": 150_000, "count.keys-max": 65536},
        "counts")
    expect_equal(moved["counters"]["digest"], calm["counters"]["digest"], "digest")
    expect_equal(moved["counters"]["digest"]["sum_of_values"], RECORDS, "records")


def metering(w):
    capture = flows_capture(w.path("in.pcap"), 50_000, 600)
    w.flow(capture, "calm-flows", state="calm-flows").summary()
    live_through(w, "flow-metering", FLOWS, {
        "source.path": capture, "source.rate": 20_000, "sink.path": w.path("out"),
        "window.max-flows": 16384}, "flows")
    expect(len({os.path.basename(p).split("-")[2] for p in w.parts("out")}) > 2,
           "several subtasks wrote")
    expect_same_lines(w.lines("out"), w.lines("calm-flows"), "flows of all lives together")


def test(w):
    counting(w)
    metering(w)
