"""A stop with savepoint ends the job; one that goes on from it completes the output exactly."""

import json
import os

from captures import flows_capture
from harness import FAILURE, expect, expect_equal, expect_same_lines
from processes import free_port

JOB = "flow-metering"


def stop(w, port, *options):
    answer = w.weir_json("stop", JOB, "--savepoint", w.path("sp"), "--rest",
                         f"127.0.0.1:{port}", *options)
    return answer["operation"]["location"]


def test(w):
    capture = flows_capture(w.path("in.pcap"), 30_000, 600)
    w.flow(capture, "calm", state="calm").summary()

    port = free_port()
    run = w.flow(capture, "out", rate=w.pace(12_000), config={"rest.bind-port": port})
    w.wait_for_checkpoint(2)
    path = stop(w, port)
    summary = run.summary()
    expect_equal(summary["state"], "FINISHED", "the stopped job's state")
    expect(os.path.exists(os.path.join(path, "_metadata")), "the savepoint is there")
    expect(summary["records_in"] < 30_000, f"it was stopped before its end: {summary}")
    w.flow(capture, "out", state="moved", options=("--restore", path)).summary()
    expect_same_lines(w.lines("out"), w.lines("calm"), "output of both runs together")

    # Drained: every packet that was read is in a row, open windows too.
    port = free_port()
    run = w.flow(capture, "drained", rate=w.pace(12_000), state="drain",
                 config={"rest.bind-port": port})
    w.wait_for_checkpoint(2, "drain")
    stop(w, port, "--drain")
    summary = run.summary()
    counted = sum(int(line.split(",")[7]) for line in w.lines("drained"))
    expect_equal(counted, summary["counters"]["source"]["records_out"], "packets in rows")

    # It cannot be written: the job goes on as if nothing had happened.
    port = free_port()
    run = w.flow(capture, "on", rate=w.pace(15_000), state="on",
                 config={"rest.bind-port": port})
    w.wait_for_checkpoint(2, "on")
    w.write("file", "no directory")
    status, out, err = w.weir("stop", JOB, "--savepoint", w.path("file"), "--json", "--rest",
                              f"127.0.0.1:{port}")
    expect_equal(status, FAILURE, f"exit status\n{err}")
    expect("ot a directory" in err, f"it says why: {err}")
    expect("ot a directory" in json.loads(out)["error"], f"as JSON too: {out}")
    summary = run.summary()
    expect_equal(summary["restarts"], 0, "restarts")
    expect_same_lines(w.lines("on"), w.lines("calm"), "output of the job that went on")
