"""A savepoint stands by itself: the job goes on, nothing deletes it, and a job begins from it."""

import glob
import os

from captures import flows_capture
from harness import FAILURE, REFUSED, expect, expect_equal, expect_same_lines
from processes import free_port

JOB = "flow-metering"


def test(w):
    capture = flows_capture(w.path("in.pcap"), 30_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    port = free_port()
    run = w.flow(capture, "out", rate=w.pace(10_000), config={"rest.bind-port": port})
    rest = ("--rest", f"127.0.0.1:{port}")
    w.wait_for_checkpoint(2)
    status, _, err = w.weir("savepoint", JOB, *rest)
    expect_equal(status, FAILURE, f"no directory: exit status\n{err}")
    expect("savepoint-dir" in err, f"the key that is missing is named: {err}")
    answer = w.weir_json("savepoint", JOB, w.path("sp"), *rest)
    path = answer["operation"]["location"]
    expect(os.path.dirname(path) == w.path("sp"), f"it lies below the directory: {path}")
    history = w.weir_json("checkpoints", JOB, *rest)["history"]
    kinds = [(c["checkpoint_type"], c["discarded"]) for c in history if c["is_savepoint"]]
    expect_equal(kinds, [("SAVEPOINT", False)], f"the history calls it what it is: {history}")
    newest = w.newest_checkpoint()
    w.wait_for_checkpoint(newest + 5)  # the job goes on, older checkpoints go
    status, out, err = w.weir("savepoint", JOB, "sp", *rest)  # below the caller's directory
    expect_equal(status, 0, f"exit status\n{err}")
    expect(out.startswith("savepoint " + w.path("sp")), f"it says where: {out}")
    third = w.weir_json("savepoint", JOB, "gone", *rest)["operation"]["location"]
    status, out, err = w.weir("savepoint", "--dispose", third, *rest)
    expect_equal((status, out), (0, f"disposed of {third}\n"), f"exit status and line\n{err}")
    expect_equal(os.listdir(w.path("gone")), [], "what is left of it")
    for wrong, part in ((w.checkpoints()[w.newest_checkpoint()], "is no savepoint"),
                        (third, "No such file"), (w.path("state", "checkpoints"), "_metadata")):
        status, _, err = w.weir("savepoint", "--dispose", wrong, *rest)
        expect_equal(status, FAILURE, f"{wrong}: exit status\n{err}")
        expect(part in err and len(err.splitlines()) == 1, f"{wrong} is refused: {err}")
    run.summary()
    expect_same_lines(w.lines("out"), w.lines("calm"), "output of the job that went on")
    expect_equal(len(glob.glob(w.path("sp", "savepoint-*", "_metadata"))), 2, "savepoints left")
    expect("flow-window" in str(w.weir_json("inspect", path)), "weir inspect reads it")

    # Output behind it is published already.
    again = w.flow(capture, "out", state="again", options=("--restore", path))
    again.ends_with(REFUSED)
    expect("newer" in again.stderr() or "above" in again.stderr()
           or "committed" in again.stderr(), again.stderr())
    again = w.flow(capture, "out", state="again",
                   options=("--restore", path, "--allow-rewind"))
    again.summary()
    expect_same_lines(w.lines("out"), w.lines("calm"), "output after going back to it")
