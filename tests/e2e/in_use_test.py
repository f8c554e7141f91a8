"""A directory of another coordinator and the output of another run are refused, and left alone."""

import glob
import json

from captures import flows_capture
from harness import BUSY, DONE, expect, expect_equal, expect_same_lines


def test(w):
    capture = flows_capture(w.path("in.pcap"), 20_000, 600)
    run = w.flow(capture, "out", rate=w.pace(10_000))
    w.wait_for_checkpoint(1)
    second = w.flow(capture, "other")
    second.ends_with(BUSY)
    expect(w.path("state") in second.stderr(), f"the directory is named:\n{second.stderr()}")
    object_ = json.loads(second.stdout())
    expect_equal((object_["state"], object_["exit_code"]), ("NOT_STARTED", BUSY), "the object")
    expect(w.path("state") in object_["error"], f"it names the directory too: {object_}")
    run.summary()

    before = w.parts("out")
    again = w.flow(capture, "out", state="again")
    expect(again.wait() != DONE, "output that is there is not added to")
    expect(w.path("out") in again.stderr(), f"the directory is named:\n{again.stderr()}")
    expect_equal(w.parts("out"), before, "part files")

    # Two at once, each with state of its own, before either has an output that is visible.
    first = w.flow(capture, "shared", state="first", rate=w.pace(10_000))
    w.wait_for(lambda: glob.glob(w.path("shared", ".sink-0*.inprogress")), "a hidden part")
    at_once = w.flow(capture, "shared", state="second",
                     options=["-D", "restart-strategy.type=none"])
    expect(at_once.wait() != DONE, "output that another run writes is not added to")
    expect("another task writes there now" in at_once.stderr(), at_once.stderr())
    first.summary()
    w.flow(capture, "alone", state="alone").summary()
    expect_same_lines(w.lines("shared"), w.lines("alone"), "output")
