"""Aligned until the time is up, and at least once: kill -9 under backpressure, then a restore."""

import os
import time

from captures import flows_capture
from faults import compile_shared
from harness import expect, expect_same_lines
from processes import end
from unaligned_restore_test import JOB, in_flight_bytes

TIMED = {"execution.checkpointing.unaligned.enabled": "true",
         "execution.checkpointing.aligned-checkpoint-timeout": "30 ms",
         "execution.checkpointing.timeout": "10 min"}


def is_overtaken(w, state):
    """The newest checkpoint has something in flight."""
    path = w.checkpoints(state).get(w.newest_checkpoint(state))
    return path is not None and in_flight_bytes(w, path) > 10_000


def flows(lines):
    """Packets of each flow and window."""
    seen = {}
    for line in lines:
        *key, packets = line.split(",")[:8]
        if packets != "packets":
            seen[tuple(key)] = seen.get(tuple(key), 0) + int(packets)
    return seen


def stop_and_go(w, run, gate, state):
    """The sinks stand still and go on again, and a TaskManager dies each time they stand."""
    for pid in run.taskmanagers():
        w.write("gate", "")
        w.wait_for(lambda: is_overtaken(w, state), "a checkpoint overtakes data")
        end(pid)
        os.unlink(gate)
        w.wait_for_checkpoint(w.newest_checkpoint(state) + 2, state=state)
        time.sleep(0.2 * w.factor)


def test(w):
    compile_shared(w, "stalling.c", "stalling.so")
    for i in range(2):
        flows_capture(w.path(f"in-{i}.pcap"), 60_000, 600)
    job, gate = w.write("job.yaml", JOB), w.path("gate")
    w.run(job, {"sink.path": w.path("calm")}, state="calm").summary()
    calm = w.lines("calm")

    run = w.run(job, {"sink.path": w.path("out"), "source.rate": 15_000}, config=TIMED,
                state="timed", options=("--taskmanagers", "2"))
    w.wait_for_checkpoint(2, state="timed")
    stop_and_go(w, run, gate, "timed")
    run.summary()
    expect_same_lines(w.lines("out"), calm, "output of timed-out checkpoints")

    run = w.run(job, {"sink.path": w.path("more"), "source.rate": 25_000}, state="counted",
                config={"execution.checkpointing.mode": "AT_LEAST_ONCE",
                        "weir.network.control-lane": "false"},
                options=("--taskmanagers", "2"))
    w.wait_for_checkpoint(3, state="counted")
    end(run.taskmanagers()[0])
    run.summary()
    once, more = flows(calm), flows(w.lines("more"))
    expect(all(more.get(key, 0) >= packets for key, packets in once.items()),
           "nothing is lost at least once")
