"""While the sink stands still the source reads nothing and memory does not grow; then all comes."""

import json
import os
import time

from captures import flows_capture
from faults import compile_shared
from harness import expect, expect_equal, expect_same_lines, fetch
from processes import free_port, rss_bytes

ALONE = True  # memory and rates are measured
SECONDS = float(os.environ.get("WEIR_STALL_SECONDS", "5"))  # 30 by hand

JOB = """\
name: stalled
config:
  execution.checkpointing.interval: 200 ms
vertices:
  - uid: ingest
    parallelism: 1
    operators:
      - {uid: source, type: pcap-source, path: in.pcap}
      - {uid: parse, type: flow-parse}
  - uid: metering
    parallelism: 2
    operators:
      - {uid: stall, type: stalling, plugin: ./stalling.so, gate: gate}
      - {uid: window, type: flow-window, size: 60 s}
      - {uid: sink, type: file-sink, path: out}
edges:
  - {from: ingest, to: metering, partition: hash}
"""


def frames_of(port):
    """Frames that the source of the one job has read."""
    job = json.loads(fetch(port, "/jobs/overview"))["jobs"][0]["jid"]
    summary = json.loads(fetch(port, f"/jobs/{job}/summary"))
    return summary["counters"].get("source", {}).get("frames", 0)


def test(w):
    compile_shared(w, "stalling.c", "stalling.so")
    flows_capture(w.path("in.pcap"), 600_000, 600)
    job = w.write("job.yaml", JOB)
    w.run(job, {"sink.path": w.path("calm")}, state="calm").summary()
    port = free_port()
    gate = w.write("gate", "")
    run = w.run(job, {"sink.path": w.path("out")}, config={
        "rest.bind-port": port, "execution.checkpointing.timeout": "10 min"})
    w.wait_for(lambda: "RUNNING" in run.stderr() and frames_of(port) > 0, "the source reads")
    time.sleep(1 * w.factor)  # all channels fill
    before, pids = frames_of(port), run.taskmanagers()
    memory = sum(rss_bytes(p) for p in pids)
    time.sleep(SECONDS)
    expect_equal(frames_of(port), before, "frames read while the sink stands still")
    expect(before < 600_000, f"the channels do not take the whole input: {before}")
    grown = sum(rss_bytes(p) for p in pids) - memory
    # A sanitizer keeps what was freed.
    if "ASAN_OPTIONS" not in os.environ:
        expect(grown < 1 << 20, f"memory grew by {grown} bytes")
    os.unlink(gate)
    run.summary()
    expect_same_lines(w.lines("out"), w.lines("calm"), "output")
