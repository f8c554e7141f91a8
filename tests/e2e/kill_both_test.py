"""The output after kill -9 of coordinator and TaskManager at once equals that of a calm run."""

from captures import flows_capture
from harness import expect_same_lines
from processes import end


def test(w):
    capture = flows_capture(w.path("in.pcap"), 40_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    run = w.flow(capture, "out", rate=10_000)
    for _ in range(2):
        newest = w.newest_checkpoint()
        w.wait_for_checkpoint(newest + 3)
        for pid in run.coordinators() + run.taskmanagers():
            end(pid)
    run.summary()
    expect_same_lines(w.lines("out"), w.lines("calm"), "output after kill -9")
