"""A full disk fails checkpoints, not the job; with room again they complete and all is exact."""

import glob
import os
import shutil

from captures import flows_capture
from faults import first_failure, subtask_of
from harness import Skip, expect, expect_equal, expect_same_lines

MOUNT = 'mount -t tmpfs -o size=2m tmpfs "$0" && exec "$@"'


def prefix_of(w, place):
    """Words in front of a command that give it a small file system at `place`."""
    for words in (["unshare", "-m"], ["unshare", "-rm"]):
        if shutil.which("unshare") is None:
            break
        status, _, _ = w.command([*words, "sh", "-c", MOUNT, place, "true"])
        if status == 0:
            return [*words, "sh", "-c", MOUNT, place]
    raise Skip("no small file system: neither root nor user namespaces here")


def test(w):
    place = w.path("small")
    os.mkdir(place)
    capture = flows_capture(w.path("in.pcap"), 60_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    run = w.flow(capture, "out", rate=10_000, prefix=prefix_of(w, place), config={
        "execution.checkpointing.dir": os.path.join(place, "checkpoints"),
        "execution.checkpointing.data-inline-threshold": "0"})
    inside = f"/proc/{run.pid}/root{place}"
    w.wait_for(lambda: glob.glob(f"{inside}/checkpoints/*/chk-*/_metadata"),
               "a checkpoint completes")
    filler = os.path.join(inside, "filler")
    try:
        with open(filler, "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        pass

    def failed_checkpoints():
        lines = [l for l in run.stderr().splitlines() if " failed, last" in l]
        return int(lines[-1].split("(")[1].split(" ")[0]) if lines else 0

    w.wait_for(lambda: failed_checkpoints() >= 3, "checkpoints fail")
    failure = first_failure(w, run)
    expect_equal(failure["phase"], "waiting for tasks", "phase")
    subtask = subtask_of(failure)
    expect(subtask.startswith("ingest (") or subtask.startswith("metering ("), failure.group(0))
    expect("No space left on device" in failure["rest"], failure.group(0))
    os.unlink(filler)
    summary = run.summary()
    expect(summary["checkpoints"]["failed"] >= 3, f"failures are counted: {summary}")
    expect(summary["checkpoints"]["completed"] >= 3, f"and others complete: {summary}")
    expect_equal(summary["restarts"], 0, "restarts")
    expect_same_lines(w.lines("out"), w.lines("calm"), "output")
