"""A disk that hangs under unaligned checkpoints costs those, never the stream; then all is well."""

import json
import os

from captures import flows_capture
from faults import compile_shared, first_failure
from harness import expect, expect_equal, expect_same_lines, fetch
from processes import free_port
from unaligned_restore_test import JOB, UNALIGNED

PACKETS = 30_000  # of each of two sources


def question(port, path):
    return json.loads(fetch(port, path))


def records_into(port, vertex):
    job = question(port, "/jobs/overview")["jobs"][0]["jid"]
    for v in question(port, f"/jobs/{job}")["vertices"]:
        if v["name"] == vertex:
            return v["metrics"]["read-records"]
    return 0


def counts(port):
    job = question(port, "/jobs/overview")["jobs"][0]["jid"]
    return question(port, f"/jobs/{job}/checkpoints")["counts"]


def test(w):
    compile_shared(w, "stalling.c", "stalling.so")
    library = compile_shared(w, "slow_disk.c", "slow_disk.so", "-ldl")
    for i in range(2):
        flows_capture(w.path(f"in-{i}.pcap"), PACKETS, 600)
    job, gate, disk = w.write("job.yaml", JOB), w.path("gate"), w.path("disk")
    w.run(job, {"sink.path": w.path("calm")}, state="calm").summary()

    port = free_port()
    w.write("gate", "")  # the sinks stand still, so that channels fill
    run = w.run(job, {"sink.path": w.path("out")},
                config={**UNALIGNED, "rest.bind-port": port, "weir.storage": "threads",
                        "execution.checkpointing.timeout": "400 ms"},
                env={"LD_PRELOAD": library, "SLOW_PROGRAM": "weir-taskmanager",
                     "SLOW_GATE": disk, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")
                     + ":verify_asan_link_order=0"})
    w.wait_for_checkpoint(2)
    w.write("disk", "")
    first_failure(w, run)
    w.wait_for(lambda: counts(port)["failed"] >= 4, "several checkpoints fail")
    complete, before = counts(port)["completed"], records_into(port, "metering")
    expect(before < 2 * PACKETS, f"the sinks stood still: {before}")
    os.unlink(gate)  # while the disk still hangs, all of the stream passes
    w.wait_for(lambda: records_into(port, "metering") == 2 * PACKETS, "the stream goes on")
    expect_equal(counts(port)["completed"], complete, "checkpoints while the disk hangs")
    os.unlink(disk)
    summary = run.summary()
    expect(summary["checkpoints"]["completed"] > complete, f"then one completes: {summary}")
    expect_equal(summary["restarts"], 0, "restarts")
    expect_same_lines(w.lines("out"), w.lines("calm"), "output over a disk that hung")
