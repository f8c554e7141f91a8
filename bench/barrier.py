"""barrier: from the trigger to the last acknowledgement, step by step.

Three stages with all-to-all edges, no state, records that come more slowly than they are taken, so
that no queue forms; the workers never sleep and have both cores to themselves but for what the
checkpoint itself wakes; the control threads of coordinator and TaskManager share one of them.  The
steps are those on the way to the acknowledgement that comes last, so they add up to the whole: when
the trigger's message was read, when the first stage began its snapshot, when each further stage had
all barriers, when the last one was done, when its acknowledgement left, and when the coordinator
had it.  All of it is one clock of one host.

A host may run at half of its speed for minutes.  Before each job the same work is timed that is
none of ours (harness.host_speed), and printed beside its p50: one that is slow by itself can be
told from one that is slow with everything else.
"""

from bench.harness import MACHINE, Result, Scratch, host_speed, percentile, say, spread
from bench.staged import NS_IN_MS, STAGES, TARGETS, StagedJob  # noqa: F401

ABOUT = "a checkpoint without state or backpressure, from the trigger to the last acknowledgement"
NEEDS = "two cores; about half a minute"

INTERVAL_MS = 10
RATE = 10_000  # records a second of each source
JOBS_PRESET, CHECKPOINTS_EACH = 5, 200
SECONDS_EACH = 6
TIMEOUT_S = 60
WARM_UP = 20  # checkpoints that do not count
P50_MAX_US = 200
FLINK_US = 6000  # Flink 1.20.5 on a machine like this one, an interval of 10 ms: for context
STEPS = ("trigger message", "mailbox wait", "barrier to stage 2", "barrier to stage 3", "snapshot",
         "ack sent", "ack received")


def steps_of(checkpoint):
    """Microseconds of each step before the last acknowledgement."""
    first, second, _ = checkpoint.stages
    heard = max(at["heard"] for at in first)
    begun = max(max(at["began"] for at in first), heard)
    at_second = max(max(at["began"] for at in second), begun)
    last = checkpoint.last
    at_third = max(last["began"], at_second)
    ended = max(last["ended"], at_third)
    moments = [checkpoint.triggered_ns, heard, begun, at_second, at_third, ended,
               max(last["sent"], ended), last["received"]]
    return [(b - a) / 1000 for a, b in zip(moments, moments[1:])]


def measure_job(build):
    """All steps of the checkpoints of one job, and how it was run."""
    with Scratch(build) as directory:
        job = StagedJob(build, directory, INTERVAL_MS, ["weir.idle=spin"],
                        [f"source.rate={RATE}"])
        try:
            job.begin()
            ids = job.take_checkpoints(WARM_UP + CHECKPOINTS_EACH, TIMEOUT_S)
            return [job.look_at(i) for i in ids[WARM_UP:]], job.options
        finally:
            job.stop()


def describe(jobs, options, hosts):
    """Of each job by itself and of all."""
    rounds = [[c.duration_ms() * 1000 for c in job] for job in jobs]
    everything = [us for one in rounds for us in one]
    rows = list(zip(*(steps_of(c) for job in jobs for c in job)))
    total = sum(sum(row) for row in rows)
    return {
        "machine": MACHINE, "stages": len(STAGES), "parallelism": 2, "interval_ms": INTERVAL_MS,
        "records_per_s": 2 * RATE, "record_bytes": 1024, "durable": True,
        "checkpoints": len(everything), "job_options": options, "flink_1_20_5_us": FLINK_US,
        "us": {f"p{p}": percentile(everything, p) for p in (10, 50, 95, 99)},
        "rounds_us": {"p50": [percentile(r, 50) for r in rounds],
                      "p95": [percentile(r, 95) for r in rounds]},
        "host": {name: [h[name] for h in hosts] for name in hosts[0]},
        "steps_us": {name: {"p50": percentile(row, 50), "p95": percentile(row, 95),
                            "share": sum(row) / total} for name, row in zip(STEPS, rows)},
    }


def lines_of(d):
    """The table."""
    u, r = d["us"], d["rounds_us"]["p50"]
    rows = [f"barrier: trigger to last acknowledgement, three stages of two subtasks, no state, "
            f"{d['records_per_s']} records/s; {MACHINE}",
            f"  {d['checkpoints']} checkpoints of {len(r)} jobs, one every {INTERVAL_MS} ms; "
            "workers never sleep",
            f"  all steps                p50 {u['p50']:6.0f} us   p95 {u['p95']:6.0f}   p10 "
            f"{u['p10']:6.0f}   p50 of each job {min(r):.0f} to {max(r):.0f}"]
    hash_rate, trip = (spread(d["host"][k]) for k in ("sha256_mb_s", "round_trip_us"))
    rows.append(f"  the host meanwhile       SHA-256 {hash_rate['median']:.0f} MB/s "
                f"({hash_rate['min']:.0f} to {hash_rate['max']:.0f}), a byte to another process "
                f"and back {trip['median']:.1f} us ({trip['min']:.1f} to {trip['max']:.1f})")
    for name, s in d["steps_us"].items():
        rows.append(f"    {name:<22} p50 {s['p50']:6.0f} us   p95 {s['p95']:6.0f}   "
                    f"{100 * s['share']:3.0f} %")
    rows += [f"  Flink 1.20.5 p50 {FLINK_US} us (measured once, for context)", "",
             "job options: " + " ".join(d["job_options"])]
    return rows


def run(build, seconds):
    """As many jobs as there is time for."""
    count = JOBS_PRESET if seconds is None else max(1, int(seconds / SECONDS_EACH))
    jobs, options, hosts = [], [], []
    for i in range(count):
        hosts.append(host_speed())
        job, options = measure_job(build)
        jobs.append(job)
        p50 = percentile([c.duration_ms() for c in job], 50) * 1000
        say(f"  job {i + 1} of {count}: p50 {p50:.0f} us; host: SHA-256 "
            f"{hosts[-1]['sha256_mb_s']:.0f} MB/s, round trip {hosts[-1]['round_trip_us']:.1f} us")
    d = describe(jobs, options, hosts)
    result = Result("\n".join(lines_of(d)), d, d["rounds_us"], "us to the last acknowledgement")
    if d["us"]["p50"] > P50_MAX_US:
        result.breaches = [f"p50 {d['us']['p50']:.0f} us from the trigger to the last "
                           f"acknowledgement, {P50_MAX_US} at most"]
    return result
