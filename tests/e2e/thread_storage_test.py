"""Where io_uring is refused a thread pool writes the same files; recovery is as exact."""

from captures import flows_capture
from harness import expect, expect_same_lines
from processes import end


def test(w):
    capture = flows_capture(w.path("in.pcap"), 30_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    run = w.flow(capture, "out", rate=10_000, config={"weir.storage": "threads"})
    w.wait_for_checkpoint(3)
    for pid in run.taskmanagers():
        end(pid)
    run.summary()
    expect("threads" in w.logs() or "thread" in w.logs(), "the log says how files are written")
    expect_same_lines(w.lines("out"), w.lines("calm"), "output after kill -9")
