"""Ctrl-C ends a run with a last checkpoint, and --restore latest goes on exactly there."""

from captures import flows_capture
from harness import INTERRUPTED, expect, expect_same_lines
from processes import are_alive


def test(w):
    capture = flows_capture(w.path("in.pcap"), 40_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    run = w.flow(capture, "out", rate=10_000, config={"execution.checkpointing.interval": "1 s"})
    w.wait_for_checkpoint(1)
    children = run.coordinators() + run.taskmanagers()
    before = w.newest_checkpoint()
    run.interrupt()
    run.summary(status=INTERRUPTED)
    expect(not are_alive(children), "nothing is left running")
    expect(w.newest_checkpoint() > before, "a last checkpoint was taken")
    w.flow(capture, "out", options=("--restore", "latest")).summary()
    expect_same_lines(w.lines("out"), w.lines("calm"), "output of both runs together")
