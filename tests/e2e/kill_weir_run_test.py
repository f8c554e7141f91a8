"""When `weir run` itself is killed its children end, and the next start clears what they left."""

import glob
import os

from captures import flows_capture
from harness import expect
from processes import are_alive


def run_directories(pids):
    """What the EAL of these processes left behind."""
    bases = ["/var/run", "/tmp", os.environ.get("XDG_RUNTIME_DIR", "/tmp")]
    return [p for b in bases for p in glob.glob(os.path.join(b, "dpdk", "weir-*"))
            if int(p.rsplit("-", 1)[1]) in pids]


def test(w):
    capture = flows_capture(w.path("in.pcap"), 40_000, 600)
    run = w.flow(capture, "out", rate=5_000)
    w.wait_for_checkpoint(2)
    children = run.coordinators() + run.taskmanagers()
    expect(len(children) >= 2, f"a coordinator and a TaskManager run: {children}")
    expect(run_directories(children), "the EAL keeps a run directory while it lives")
    run.kill()
    run.wait()
    w.runs.clear()
    w.wait_for(lambda: not are_alive(children), "the children end", 5)
    w.flow(capture, "next", state="next").summary()
    left = run_directories(children)
    expect(not left, f"left behind: {left}")
