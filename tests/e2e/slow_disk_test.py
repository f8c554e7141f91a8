"""A disk that has stopped answering: the first line says who writes, and since when; all comes."""

import os
import re

from captures import flows_capture
from faults import compile_shared, first_failure, step_of, subtask_of
from harness import expect, expect_equal, expect_same_lines
from processes import free_port


def timeout_ms(w):
    """Above what a checkpoint takes that nothing holds up."""
    return int(600 * w.factor)


def slow_run(w, capture, library, name, program):
    """A run whose `program` syncs nothing from its third checkpoint on; that run, the gate, and the
    newest checkpoint before it: what failed earlier was not held up by us.  The third is complete
    before: once all of it is written, nothing but the list of completed ones is waited for, without
    a timeout."""
    gate, port = w.path("gate-" + name), free_port()
    run = w.flow(capture, name, rate=10_000, state=name,
                 config={"rest.bind-port": port, "weir.storage": "threads",
                         "execution.checkpointing.timeout": f"{timeout_ms(w)} ms",
                         "execution.checkpointing.data-inline-threshold": "0"},
                 env={"LD_PRELOAD": library, "SLOW_PROGRAM": program, "SLOW_GATE": gate,
                      "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")
                      + ":verify_asan_link_order=0"})
    w.wait_for_checkpoint(3, state=name)
    w.wait_for(lambda: w.weir_json("checkpoints", "flow-metering", "--rest", f"127.0.0.1:{port}")
               ["counts"]["completed"] >= 3, "three checkpoints are complete")
    w.write("gate-" + name, "")
    return run, gate, w.newest_checkpoint(name)


def test(w):
    library = compile_shared(w, "slow_disk.c", "slow_disk.so", "-ldl")
    capture = flows_capture(w.path("in.pcap"), 30_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    for program in ("weir-taskmanager", "weir-coordinator"):
        run, gate, newest = slow_run(w, capture, library, program, program)
        failure = first_failure(w, run, behind=newest)
        if program == "weir-taskmanager":
            expect_equal(failure["phase"], "waiting for tasks", "phase")
            # The first that writes, unless it had written when the disk stopped.
            writers = ("ingest (",) if failure["acked"] == "0" else ("ingest (", "metering (")
            expect(subtask_of(failure).startswith(writers), failure.group(0))
            writing = re.match(r"writing its state for (\d+) ms$", step_of(failure))
            expect(writing and int(writing[1]) >= 300, failure.group(0))
        else:
            # Whose disk it is: the coordinator's own; no subtask is to blame.
            expect("waiting for tasks" not in failure["phase"], failure.group(0))
        expect(0 <= int(failure["ms"]) - timeout_ms(w) < 3000 * w.factor, failure.group(0))
        os.unlink(gate)
        summary = run.summary()
        expect_equal(summary["restarts"], 0, "restarts")
        expect_same_lines(w.lines(program), w.lines("calm"), f"output with a slow {program}")
