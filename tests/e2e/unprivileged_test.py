"""A job runs as a user without privileges, storage and recovery included."""

import os
import shutil

from captures import flows_capture
from harness import DATA, JOBS, Skip, expect_same_lines
from processes import end

NOBODY = 65534


def test(w):
    prefix, base = (), w.path("home")
    os.mkdir(base)
    if os.getuid() == 0:
        if shutil.which("setpriv") is None:
            raise Skip("root, and no setpriv to become somebody else")
        prefix = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                  "--inh-caps=-all", "--bounding-set=-all")
    # Where the sources lie may be closed to that user.
    for name in ("weir", "weir-coordinator", "weir-taskmanager"):
        shutil.copy(w.program(name), base)
    w.build = base
    shutil.copy(os.path.join(JOBS, "flow-metering.yaml"), base)
    capture = flows_capture(os.path.join(base, "in.pcap"), 20_000, 600)
    if os.getuid() == 0:
        os.chown(w.dir, NOBODY, NOBODY)
    job = os.path.join(base, "flow-metering.yaml")
    sets = {"source.path": capture}
    w.run(job, {**sets, "sink.path": w.path("calm")}, state="calm", prefix=prefix).summary()
    run = w.run(job, {**sets, "sink.path": w.path("out"), "source.rate": 10_000}, prefix=prefix)
    w.wait_for_checkpoint(3)
    for pid in run.taskmanagers():
        end(pid)
    run.summary()
    expect_same_lines(w.lines("out"), w.lines("calm"), "output after kill -9")
    assert os.path.isdir(DATA)
