"""The output after kill -9 of a TaskManager equals that of an undisturbed run."""

from captures import flows_capture
from harness import expect, expect_same_lines


def test(w):
    capture = flows_capture(w.path("in.pcap"), 40_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    run = w.flow(capture, "out", rate=10_000, options=("--taskmanagers", "2"))
    w.wait_for_checkpoint(3)
    busy = run.taskmanagers()
    expect(len(busy) == 2, f"two TaskManagers run: {busy}")
    for pid in busy:  # whichever has the tasks: both, one after the other
        w.kill([pid])
    summary = run.summary()
    expect(summary["restarts"] >= 1, "the job was restarted")
    expect_same_lines(w.lines("out"), w.lines("calm"), "output after kill -9")
