"""In an input of ten windows the first part file with rows is visible before the input ends."""

import os

from captures import flows_capture
from harness import expect_same_lines


def test(w):
    capture = flows_capture(w.path("in.pcap"), 20_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    run = w.flow(capture, "out", rate=4_000)
    w.wait_for(lambda: run.is_running() and any(os.path.getsize(p) > 1000 for p in w.parts("out")),
               "a part with rows is visible")
    early = set()
    for part in w.parts("out"):
        with open(part, encoding="utf-8") as file:
            early.update(file.read().splitlines())
    assert run.is_running(), "the run still reads"
    run.summary()
    expect_same_lines(w.lines("out"), w.lines("calm"), "output")
    lost = early - set(w.lines("out")) - {line for line in early if line.startswith("window_")}
    assert not lost, f"visible once, gone later: {sorted(lost)[:3]}"
