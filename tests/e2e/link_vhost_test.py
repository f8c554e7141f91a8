"""A job over two TaskManagers joined by vhost-user and virtio-user gives what it gives on one, with
aligned and unaligned checkpoints and when either of them is killed; no hugepages are needed."""

import glob

from captures import flows_capture
from harness import expect, expect_equal, expect_same_lines

LINKED = ("--taskmanagers", "2", "--link", "vhost")


def test(w):
    capture = flows_capture(w.path("in.pcap"), 40_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    wanted = w.lines("calm")

    summary = w.flow(capture, "clean", state="clean", rate=40_000, options=LINKED).summary()
    expect_equal(summary["restarts"], 0, "restarts on a clean wire")
    for name in ("taskmanager-0.log", "taskmanager-1.log"):
        with open(w.path("clean", "logs", name), encoding="utf-8") as log:
            expect("frames to 32896 bytes" in log.read(), "a buffer and its headers in one frame")
    expect_same_lines(w.lines("clean"), wanted, "output over a clean wire")

    run = w.flow(capture, "out", rate=8_000, options=LINKED,
                 config={"execution.checkpointing.unaligned.enabled": "true"})
    w.wait_for_checkpoint(3)
    for pid in run.taskmanagers():  # one after the other; both have tasks
        w.kill([pid])
    expect(run.summary()["restarts"] >= 2, "the job was restarted for each")
    expect_same_lines(w.lines("out"), wanted, "output after kill -9 of both")
    expect_equal(glob.glob(f"/tmp/weir-{run.pid}-*"), [], "sockets left behind")
