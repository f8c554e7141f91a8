"""The output after kill -9 of the coordinator equals that of an undisturbed run."""

from captures import flows_capture
from harness import expect, expect_same_lines
from processes import are_alive


def test(w):
    capture = flows_capture(w.path("in.pcap"), 40_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    run = w.flow(capture, "out", rate=10_000)
    w.wait_for_checkpoint(3)
    workers = run.taskmanagers()
    w.kill(run.coordinators())
    expect(are_alive(workers) == workers, "TaskManagers stay up when the coordinator dies")
    run.summary()
    expect_same_lines(w.lines("out"), w.lines("calm"), "output after kill -9")
