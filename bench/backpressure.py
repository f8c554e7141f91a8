"""backpressure: how long a checkpoint takes while a slow sink holds everything up.

Source -> map -> sink, two subtasks each, all to all, 1 KiB records; every channel is full.  A sink
takes a record and answers "not before" the next 200 us, or 2,000 us: its worker goes on.  Aligned,
a barrier waits behind what the channels hold, and so for the sink.  Unaligned, that becomes part of
the checkpoint, which should take as long as the same bytes take the channel-state writer alone
(bench/drain.c, same disk, straight after each row) and 2 ms, whatever the sink does.  With a
timeout T it begins aligned and goes over at T.  The last rows have a sink that sits its pause out
in its call, and the worker with it: one record's time for each of the two hops may be added.

A checkpoint lasts from the trigger's message to the last acknowledgement, durable; the first ones
of a job, whose files are new on the disk, count like the others.  The control threads of
coordinator and TaskManager share a core (weir.control.cores), which saves a wake-up from core to
core.
"""

import json
import math
import os
import statistics
import subprocess

from bench.harness import MACHINE, BenchError, Result, Scratch, percentile, say
from bench.staged import NS_IN_MS, StagedJob
from bench.staged import TARGETS as JOB_TARGETS

ABOUT = "checkpoints while a slow sink holds everything up: aligned, unaligned, timed out"
NEEDS = "two cores, a disk under the build directory; two minutes"
TARGETS = [*JOB_TARGETS, "bench/drain"]

FAST_US, SLOW_US = 200, 2000
TIMEOUT_MS = 20
HOPS = 2
INTERVAL_MS = 30
BUF_BYTES = 32768
FILL_S, DRAIN_S = 0.5, 0.3
LIMIT_S = 60
# Name of a row: unaligned?, timeout in ms, pause of the sink, does it block, checkpoints a round
ROWS = {
    "aligned, 200 us": (False, 0, FAST_US, False, 5),
    "aligned, 2,000 us": (False, 0, SLOW_US, False, 1),
    "unaligned, 200 us": (True, 0, FAST_US, False, 20),
    "unaligned, 2,000 us": (True, 0, SLOW_US, False, 20),
    "timeout, 200 us": (True, TIMEOUT_MS, FAST_US, False, 20),
    "timeout, 2,000 us": (True, TIMEOUT_MS, SLOW_US, False, 20),
    "unaligned, blocking 200 us": (True, 0, FAST_US, True, 10),
    "unaligned, blocking 2,000 us": (True, 0, SLOW_US, True, 10),
}
ALIGNED_ROUNDS = 1  # of these: nothing is judged by them
ROUNDS_PRESET, SECONDS_EACH, ALIGNED_S = 8, 12, 12
OVER_MAX_MS, MOVE_MAX, LATE_MAX_MS = 2.0, 0.10, 0.5
# Flink 1.20.5 on a machine like this one, p50 of the same job: for context, not run here.
FLINK_MS = {"aligned, 200 us": 254, "unaligned, 200 us": 75, "unaligned, 2,000 us": 346,
            "timeout, 200 us": 147}


def checkpoints(build, row):
    """What the checkpoints of one job were like, and how it was run."""
    is_unaligned, timeout_ms, pause_us, blocks, count = ROWS[row]
    settings = ["execution.checkpointing.timeout=60s"]
    if is_unaligned:
        settings += ["execution.checkpointing.unaligned.enabled=true",
                     f"execution.checkpointing.aligned-checkpoint-timeout={timeout_ms}ms"]
    sets = [f"sink.pause={pause_us}us", f"sink.blocks={'true' if blocks else 'false'}"]
    with Scratch(build) as directory:
        job = StagedJob(build, directory, INTERVAL_MS, settings, sets)
        try:
            job.begin()
            job.await_full(FILL_S)
            ids = job.take_checkpoints(count, LIMIT_S)
            return [job.look_at(i) for i in ids], job.options
        finally:
            job.stop()


def drain_ms(build, some_bytes):
    """Milliseconds the channel-state writer alone takes for so many bytes, durable."""
    mebibytes = max(1, math.ceil(some_bytes / (1 << 20)))
    with Scratch(build) as directory:
        command = [os.path.join(build, "bench/drain"), directory, str(mebibytes), str(BUF_BYTES),
                   str(DRAIN_S), "direct"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        raise BenchError("bench/drain failed; it said why above")
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")][1:]
    return [row["ns"] / NS_IN_MS * some_bytes / row["bytes"] for row in rows]


def is_drained(row):
    """Held to the time the writer alone takes."""
    is_unaligned, timeout_ms = ROWS[row][:2]
    return is_unaligned and timeout_ms == 0


class Tally:
    """All rounds of all rows."""

    def __init__(self):
        self.rounds = {row: [] for row in ROWS}
        self.drains = {row: [] for row in ROWS if is_drained(row)}
        self.options = []

    def add(self, build, row):
        """One more round of one row."""
        found, self.options = checkpoints(build, row)
        self.rounds[row].append(found)
        if row in self.drains:
            self.drains[row] += drain_ms(build, percentile([c.persisted_bytes for c in found], 50))

    def durations(self, row):
        """Of all its checkpoints, in milliseconds."""
        return [c.duration_ms() for one in self.rounds[row] for c in one]

    def at(self, row, percent):
        """That percentile of them."""
        return percentile(self.durations(row), percent)

    def persisted(self, row):
        """Bytes of the middle one."""
        return percentile([c.persisted_bytes for one in self.rounds[row] for c in one], 50)

    def medians(self, row):
        """Of each round."""
        return [statistics.median(c.duration_ms() for c in one) for one in self.rounds[row]]


def describe(t):
    """The numbers and the bounds."""
    rows = {row: {"checkpoints": len(t.durations(row)),
                  "ms": {f"p{p}": t.at(row, p) for p in (50, 95)}, "max_ms": t.at(row, 100),
                  "persisted_bytes": t.persisted(row), "medians_ms": t.medians(row),
                  "flink_1_20_5_ms": FLINK_MS.get(row)} for row in ROWS}
    for row, (is_unaligned, timeout_ms, pause_us, blocks, _) in ROWS.items():
        hops_ms = HOPS * pause_us / 1000 if blocks else 0
        if is_drained(row):
            drained = {p: percentile(t.drains[row], p) for p in (50, 95)}
            rows[row]["drain_ms"] = {f"p{p}": ms for p, ms in drained.items()}
            for p, ms in drained.items():
                rows[row][f"p{p}_at_most_ms"] = ms + OVER_MAX_MS + hops_ms
        elif is_unaligned:
            base = t.at(f"unaligned, {pause_us:,} us", 95)
            rows[row]["p95_at_most_ms"] = timeout_ms + base + LATE_MAX_MS
    moves = [slow / fast - 1 for fast, slow in zip(
        t.medians("unaligned, 200 us"), t.medians("unaligned, 2,000 us"))]
    return {"machine": MACHINE, "record_bytes": 1024, "parallelism": 2, "stages": 3,
            "timeout_ms": TIMEOUT_MS, "interval_ms": INTERVAL_MS, "durable": True,
            "rows": rows,
            "move": statistics.median(moves), "moves": moves, "job_options": t.options}


def breaches_of(d):
    """What is out of bounds."""
    for row, r in d["rows"].items():
        for p in ("p50", "p95"):
            limit = r.get(f"{p}_at_most_ms")
            if limit is not None and r["ms"][p] > limit:
                yield f"{row}: {p} {r['ms'][p]:.2f} ms, {limit:.2f} at most"
        if row.startswith("unaligned") and r["persisted_bytes"] == 0:
            yield f"{row}: nothing was in flight"
    if d["move"] > MOVE_MAX:
        yield (f"unaligned takes {100 * d['move']:.0f} % longer when the sink is ten times slower, "
               f"{100 * MOVE_MAX:.0f} % at most")


def lines_of(d):
    """The table."""
    rows = [f"backpressure: source -> map -> sink, two subtasks each, all to all, 1 KiB records; "
            f"{MACHINE}",
            f"{'':<30}{'p50 ms':>9}{'at most':>9}{'p95 ms':>9}{'at most':>9}{'max ms':>9}"
            f"{'in flight':>12}{'alone p50':>11}{'p95':>6}{'Flink p50':>11}"]
    for row, r in d["rows"].items():
        limits = [r.get(f"{p}_at_most_ms") for p in ("p50", "p95")]
        limits = [f"{x:9.2f}" if x is not None else f"{'-':>9}" for x in limits]
        flink = r["flink_1_20_5_ms"] or "-"
        alone = r.get("drain_ms")
        alone = (f"{alone['p50']:11.2f}{alone['p95']:6.2f}" if alone is not None
                 else f"{'-':>11}{'-':>6}")
        rows.append(f"{row:<30}{r['ms']['p50']:9.2f}{limits[0]}{r['ms']['p95']:9.2f}{limits[1]}"
                    f"{r['max_ms']:9.2f}{r['persisted_bytes'] / 1048576:8.2f} MiB{alone}"
                    f"{flink:>11}")
    rows += ["alone: the same bytes by the channel-state writer alone, straight after each row; at "
             f"most {OVER_MAX_MS:.0f} ms more,",
             "and one record's time for each hop where the sink blocks; timed out: T, the "
             f"unaligned p95 and {LATE_MAX_MS} ms",
             f"unaligned, sink ten times slower: {100 * d['move']:+.0f} % (at most "
             f"+{100 * MOVE_MAX:.0f} %)",
             f"timeout: {d['timeout_ms']} ms, and 100 ms for Flink, which was measured once, for "
             "context",
             "the control threads of coordinator and TaskManager share a core "
             "(weir.control.cores), which saves a wake-up from core to core",
             "", "job options: " + " ".join(d["job_options"])]
    return rows


def run(build, seconds):
    """Rows in turn, as often as there is time for."""
    rounds = ROUNDS_PRESET
    if seconds is not None:
        rounds = max(1, int((seconds - ALIGNED_S) / SECONDS_EACH))
    t = Tally()
    for i in range(rounds):
        say(f"backpressure: round {i + 1} of {rounds} ...")
        for row in ROWS:
            if i >= ALIGNED_ROUNDS and not ROWS[row][0]:
                continue
            t.add(build, row)
            say(f"  {row}: {t.medians(row)[-1]:.2f} ms")
    d = describe(t)
    result = Result("\n".join(lines_of(d)), d,
                    {row: t.medians(row) for row in ROWS if ROWS[row][0]}, "ms, median of a round")
    result.breaches = list(breaches_of(d))
    return result
