"""Savepoints of a job over two TaskManagers: both write into the one directory, the job goes on, is
stopped with one, goes on from it with the same output, and is drained."""

import glob
import os

from captures import flows_capture
from harness import expect, expect_equal, expect_same_lines
from processes import free_port

JOB = "flow-metering"
LINKED = ("--taskmanagers", "2", "--link", "memif")


def test(w):
    capture = flows_capture(w.path("in.pcap"), 30_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    wanted = w.lines("calm")
    port = free_port()
    rest = ("--rest", f"127.0.0.1:{port}")
    config = {"rest.bind-port": port, "taskmanager.memory.segment-size": "4 kb"}

    run = w.flow(capture, "out", rate=w.pace(10_000), options=LINKED, config=config)
    w.wait_for_checkpoint(2)
    taken = w.weir_json("savepoint", JOB, w.path("sp"), *rest)["operation"]["location"]
    expect(os.path.exists(os.path.join(taken, "_metadata")), f"it is complete: {taken}")
    status, out, err = w.weir("verify", taken)
    expect_equal(status, 0, f"weir verify reads all of it: {out}{err}")
    newest = w.newest_checkpoint()
    w.wait_for_checkpoint(newest + 2)  # the job goes on
    failed = w.weir_json("checkpoints", JOB, *rest)["counts"]["failed"]
    expect_equal(failed, 0, f"failed checkpoints: {run.stderr()}")
    stopped = w.weir_json("stop", JOB, "--savepoint", w.path("sp"), *rest)["operation"]
    summary = run.summary()
    expect_equal(summary["state"], "FINISHED", "the stopped job")
    # One that is under way when the job is told to stop ends there.
    expect(summary["checkpoints"]["failed"] <= 1, f"failed checkpoints: {run.stderr()}")
    expect_equal(summary["restarts"], 0, "restarts")

    run = w.flow(capture, "out", rate=12_000, state="again", config=config,
                 options=LINKED + ("--restore", stopped["location"]))
    run.summary()
    expect_same_lines(w.lines("out"), wanted, "output of both runs")

    run = w.flow(capture, "drained", rate=w.pace(10_000), state="drained", options=LINKED,
                 config=config)
    w.wait_for_checkpoint(2, state="drained")
    end = w.weir_json("stop", JOB, "--savepoint", w.path("sp"), "--drain", *rest)["operation"]
    expect_equal(run.summary()["state"], "FINISHED", "the drained job")
    expect_equal(len(glob.glob(w.path("sp", "savepoint-*", "_metadata"))), 3, "savepoints")
    expect(os.path.exists(os.path.join(end["location"], "_metadata")), "that of the drain")
    lines = w.lines("drained")
    expect(0 < len(lines) <= len(wanted), f"its windows were closed: {len(lines)} lines")
