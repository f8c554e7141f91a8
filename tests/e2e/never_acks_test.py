"""A task that never acknowledges: the first line names it, the phase and the time; all comes."""

import os
import re

from captures import flows_capture
from faults import compile_shared, first_failure, step_of, subtask_of
from harness import expect, expect_equal, expect_same_lines
from processes import free_port

JOB = """\
name: held
config:
  execution.checkpointing.interval: 100 ms
  execution.checkpointing.timeout: 700 ms
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


def test(w):
    compile_shared(w, "stalling.c", "stalling.so")
    flows_capture(w.path("in.pcap"), 60_000, 600)
    job = w.write("job.yaml", JOB)
    w.run(job, {"sink.path": w.path("calm")}, state="calm").summary()
    port = free_port()
    gate = w.write("gate", "")
    run = w.run(job, {"sink.path": w.path("out")}, config={"rest.bind-port": port},
                options=["--quiet"])
    failure = first_failure(w, run)
    expect_equal(failure["phase"], "waiting for tasks", "phase")
    expect(subtask_of(failure) in ("metering (1/2)", "metering (2/2)"), failure.group(0))
    expect(700 <= int(failure["ms"]) < 700 + 2000 * w.factor, f"elapsed: {failure.group(0)}")
    # The watchdog says so by itself, on every way there is.
    w.wait_for(lambda: "no checkpoint has completed for" in run.stderr(), "the watchdog speaks")
    rest = ("--rest", f"127.0.0.1:{port}")
    answer = w.weir_json("checkpoints", "held", "--failed", *rest)
    expect(answer["history"], "failed checkpoints are in the history")
    expect("metering" in answer["history"][0]["slowest_subtask"], f"{answer['history'][0]}")
    expect("metering" in answer["watchdog"]["overdue"], f"status: {answer['watchdog']}")
    expect(answer["watchdog"]["since_completed_ms"] >= 1000, f"{answer['watchdog']}")
    _, out, _ = w.weir("checkpoints", "held", *rest)
    expect("OVERDUE: no checkpoint has completed" in out, out)
    expect("REST at http://" in run.stderr(), "a quiet run says where it can be asked")
    os.unlink(gate)
    w.wait_for(lambda: w.weir_json("checkpoints", "held", *rest)["watchdog"]["overdue"] is None,
               "with a completed checkpoint it is content")
    run.summary()
    expect_same_lines(w.lines("out"), w.lines("calm"), "output")
    blocked(w)


def blocked(w):
    """The same by an operator that does not come back from its call."""
    job = w.write("blocked.yaml", JOB.replace("type: stalling", "type: blocking"))
    gate = w.write("gate", "")
    run = w.run(job, {"sink.path": w.path("blocked")}, state="blocked")
    failure = first_failure(w, run)
    expect(subtask_of(failure).startswith("metering ("), failure.group(0))
    stuck = re.match(r"stuck in one call for (\d+) ms$", step_of(failure))
    expect(stuck and int(stuck[1]) >= 300, failure.group(0))
    os.unlink(gate)
    run.summary()
    expect_same_lines(w.lines("blocked"), w.lines("calm"), "output after the operator blocked")
