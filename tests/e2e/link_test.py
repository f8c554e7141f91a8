"""A job over two TaskManagers joined by memif gives what it gives on one: on a clean wire, on a bad
one, and when either of them is killed."""

import os

from captures import flows_capture
from harness import expect, expect_equal, expect_same_lines

TIMEOUT = 120
LINKED = ("--taskmanagers", "2", "--link", "memif")
BAD = "seed=5,loss=0.05,duplicate=0.02,corrupt=0.01,reorder=0.1,delay=300us"


def test(w):
    capture = flows_capture(w.path("in.pcap"), 40_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    wanted = w.lines("calm")

    summary = w.flow(capture, "clean", state="clean", options=LINKED).summary()
    expect_equal(summary["restarts"], 0, "restarts on a clean wire, a frame for each buffer")
    with open(w.path("clean", "logs", "taskmanager-0.log"), encoding="utf-8") as log:
        said = log.read()
    expect("queue pairs" in said or os.cpu_count() < 2, "one for each worker")
    expect("frames to 32896 bytes" in said, "a buffer and its headers in one frame")
    expect("buffers are summed unless both ends are memory of this host" in said, "the checksum")
    expect_same_lines(w.lines("clean"), wanted, "output over a clean wire")

    summary = w.flow(capture, "bad", state="bad", rate=20_000, options=LINKED,
                     config={"weir.link.faults": BAD, "weir.link.mtu": 0,
                             "taskmanager.memory.segment-size": "4 kb"}).summary()
    expect_equal(summary["restarts"], 0, "restarts on a bad wire")
    with open(w.path("bad", "logs", "taskmanager-0.log"), encoding="utf-8") as log:
        said = log.read()
    expect("unless both ends are memory" not in said, "a bad wire's buffers are summed")
    expect("frames to 1514 bytes" in said, "those of the port itself, for it was told")
    expect(summary["checkpoints"]["completed"] > 3, f"checkpoints on a bad wire: {summary}")
    expect_same_lines(w.lines("bad"), wanted, "output over a bad wire")

    w.flow(capture, "over", state="over", rate=20_000, options=LINKED,
           config={"weir.link.faults": BAD, "execution.checkpointing.unaligned.enabled": "true",
                   "taskmanager.memory.segment-size": "4 kb"}).summary()
    expect_same_lines(w.lines("over"), wanted, "output with unaligned checkpoints")

    run = w.flow(capture, "out", rate=10_000, options=LINKED)
    w.wait_for_checkpoint(3)
    for pid in run.taskmanagers():  # one after the other; both have tasks
        w.kill([pid])
    expect(run.summary()["restarts"] >= 2, "the job was restarted for each")
    expect_same_lines(w.lines("out"), wanted, "output after kill -9 of both")

