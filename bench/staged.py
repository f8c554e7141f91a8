"""What `backpressure` and `barrier` share: a job of three stages, and when each step of its
checkpoints happened."""

import os
import shutil
import time

from bench.harness import ROOT, START_TIMEOUT_S, BenchError, RunningJob

TARGETS = ["weir", "weir-coordinator", "weir-taskmanager", "bench/staged_operators.so"]
STAGES = ("ingest", "mapping", "draining")
NS_IN_MS = 1_000_000
FLOW_MAX = 20_000  # records a second of a sink that is slow


class StagedJob(RunningJob):
    """source -> map -> sink (bench/staged.yaml).  The control threads of coordinator and
    TaskManager share a core: a message from one to the other then wakes no second one."""

    def __init__(self, build, directory, interval_ms, settings=(), sets=()):
        self.interval_ms = interval_ms
        for path in (os.path.join(ROOT, "bench/staged.yaml"),
                     os.path.join(build, "bench/staged_operators.so")):
            shutil.copy(path, directory)
        settings = [f"execution.checkpointing.interval={interval_ms}ms",
                    f"weir.control.cores={max(os.sched_getaffinity(0))}",
                    "web.checkpoints.history=1000", *settings]
        super().__init__(build, os.path.join(directory, "staged.yaml"), directory, settings, sets)

    def begin(self):
        """Until every task runs; no checkpoint is triggered then."""
        self.await_start()
        self.await_running()
        self.ask("/checkpoints?periodic=off", "PATCH")

    def await_full(self, still_s):
        """Until the sources get nothing more in but what the sinks take."""
        last, until = -1, time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < until:
            made = sum(row["records_out"] for row in self.ask("/numbers")
                       if row["vertex"] == STAGES[0])
            if made > 0 and made - last < still_s * FLOW_MAX:
                return
            last = made
            time.sleep(still_s)
        raise BenchError("the channels do not fill")

    def take_checkpoints(self, count, timeout_s):
        """So many in a row, one every interval; the ids of those that completed."""
        before = {row["id"] for row in self.ask("/checkpoints")["history"]}
        self.ask("/checkpoints?periodic=on", "PATCH")
        until = time.monotonic() + timeout_s
        time.sleep(count * self.interval_ms / 1000)  # who asks takes the coordinator's time
        while True:
            time.sleep(0.1)
            rows = [r for r in self.ask("/checkpoints")["history"] if r["id"] not in before]
            failed = [r["failure_message"] for r in rows if r["status"] == "FAILED"]
            if failed:
                raise BenchError(f"a checkpoint failed: {failed[-1]}")
            done = [r["id"] for r in rows if r["status"] == "COMPLETED"]
            if len(done) >= count:
                break
            if time.monotonic() > until:
                raise BenchError(f"{len(done)} of {count} checkpoints in {timeout_s} s")
        self.ask("/checkpoints?periodic=off", "PATCH")
        return sorted(done)[:count]

    def look_at(self, checkpoint_id):
        """One checkpoint: when its tasks were triggered, and each subtask of each stage."""
        details = f"/checkpoints/details/{checkpoint_id}"
        return Checkpoint(self.ask(details), [
            self.ask(f"{details}/subtasks/{stage}")["subtasks"] for stage in STAGES])


class Checkpoint:
    """Moments in nanoseconds, all on the one monotonic clock of this host."""

    def __init__(self, record, stages):
        self.triggered_ns = record["tasks_triggered_ns"]
        self.persisted_bytes = record["persisted_data"]
        self.stages = [[s["nanoseconds"]["at"] for s in stage] for stage in stages]
        self.unaligned = [s["unaligned_checkpoint"] for stage in stages for s in stage]
        self.last = max((at for stage in self.stages for at in stage),
                        key=lambda at: at["received"])

    def duration_ms(self):
        """From the trigger to the last acknowledgement."""
        return (self.last["received"] - self.triggered_ns) / NS_IN_MS
