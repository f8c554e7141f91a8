"""--restore PATH goes on from that checkpoint; with other parameters the rest is exact too."""

from captures import flows_capture
from harness import INTERRUPTED, expect, expect_same_lines


def test(w):
    capture = flows_capture(w.path("in.pcap"), 30_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    run = w.flow(capture, "out", rate=10_000, options=("--taskmanagers", "2"))
    w.wait_for_checkpoint(3)
    run.interrupt()
    run.summary(status=INTERRUPTED)
    newest = w.checkpoints()[w.newest_checkpoint()]
    # Another home for what comes, another rate; the state is that of the path.
    run = w.flow(capture, "out", rate=20_000, state="moved", options=("--restore", newest))
    summary = run.summary()
    expect(summary["checkpoints"]["completed"] >= 1, f"checkpoints go on: {summary}")
    expect_same_lines(w.lines("out"), w.lines("calm"), "output of both runs together")
