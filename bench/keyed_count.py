"""keyed-count: the job on its three real processes, the raw loop, and what checkpoints cost.

Phases of half a second on the same two cores, in turn: the raw loop (the TaskManager is stopped by
signal meanwhile), the job without checkpoints, the job with one every 100 ms.  Between the last two
only the coordinator's periodic trigger is switched on and off (PATCH /jobs/JOB/checkpoints), so
both are the same tasks on the same memory.  Records are counted by the tasks themselves, which
stamp each reading with their own clock; the first 100 ms of a phase do not count.
"""

import os
import time

from bench.harness import (MACHINE, BenchError, RawLoop, Result, RunningJob, Scratch, mean_loss,
                           percentile, say, spread, two_cores)

ABOUT = "the spine's hot path against a raw loop; the cost of a checkpoint every 100 ms"
NEEDS = "two cores, 1 GiB of memory; about 3 minutes"
TARGETS = ["weir", "weir-coordinator", "weir-taskmanager", "bench/raw_keyed_count"]

KEY_COUNTS = (1 << 14, 1 << 19)
PHASE_S = 0.5
GUARD_S = 0.1
INTERVAL_MS = 100
SWITCH_MS = 5  # between a switch here and its effect there, generously
# What falls due this close to the end of a phase may be overtaken by the switch: the coordinator
# shares the two cores with two workers that never sleep, so its timer can be a time slice late.
END_MS = INTERVAL_MS // 2
ROUNDS_MIN, PAIRS_PRESET = 5, 60
RAW_TO_COUNT_MIN, RATIO_MIN, LOSS_MAX = 0.25, 0.5, 0.03


class Meter:
    """Rates of the counting tasks, by their own readings."""

    def __init__(self, job):
        self.job = job

    def read(self):
        """Records and the time of reading, subtask by subtask."""
        return [(row["records_in"], row["read_at_ns"]) for row in self.job.ask("/numbers")
                if row["vertex"] == "counting"]

    def read_from(self, from_ns):
        """The first readings taken at that time or later."""
        while True:
            rows = self.read()
            if min(read_at for _, read_at in rows) >= from_ns:
                return rows
            time.sleep(0.01)

    def phase(self):
        """Records a second over the rest of a phase that has just begun."""
        begin_ns = time.monotonic_ns()
        first = self.read_from(begin_ns + int(GUARD_S * 1e9))
        time.sleep(max(0.0, PHASE_S - (time.monotonic_ns() - begin_ns) / 1e9))
        last = self.read()
        if min(b[1] - a[1] for a, b in zip(first, last)) <= 0:
            raise BenchError("no two readings in a phase: the machine is overloaded")
        return sum((b[0] - a[0]) * 1e9 / (b[1] - a[1]) for a, b in zip(first, last))


class Checkpoints:
    """Phases with checkpoints, and what became of those that were due in them."""

    def __init__(self, job):
        self.job = job
        self.phases = []

    def on(self):
        """From now on one every interval.  The phase begins before the switch and behind what an
        earlier switch has aborted: a phase may follow another at once."""
        time.sleep(0.002)
        self.phases.append([int(time.time() * 1000), None])
        self.job.ask("/checkpoints?periodic=on", "PATCH")

    def off(self):
        """None is triggered any more.  The switch aborts one that is under way: the phase ends
        before one that begins between the last look and the switch."""
        while True:
            self.phases[-1][1] = time.time() * 1000
            if self.job.ask("/checkpoints")["counts"]["in_progress"] == 0:
                break
            time.sleep(0.005)
        self.job.ask("/checkpoints?periodic=off", "PATCH")

    def account(self):
        """Due: the first of each phase, and from then on one every interval to END_MS before its
        end; one that was triggered after that counts too."""
        history = {r["id"]: r for r in self.job.ask("/checkpoints")["history"]}.values()
        due, durations, sizes = 0, [], []
        for begin, end in self.phases:
            end -= SWITCH_MS
            here = [r for r in history
                    if begin <= r["trigger_timestamp"] <= end]
            done = [r for r in here if r["status"] == "COMPLETED"]
            first = min((r["trigger_timestamp"] for r in here), default=begin)
            due += max(len(here), 1 + int((end - END_MS - first) // INTERVAL_MS))
            durations += [r["end_to_end_duration"] for r in done]
            sizes += [r["state_size"] for r in done]
        return {"interval_ms": INTERVAL_MS, "due": due, "completed": len(sizes),
                "missed": due - len(sizes), "durable": True,
                "bytes_each": percentile(sizes, 50), "p50_ms": percentile(durations, 50),
                "p99_ms": percentile(durations, 99)}


def options_of(keys, cores):
    """How the job is tuned: room for its keys, long silences allowed while it is stopped."""
    settings = [f"weir.cores={cores[0]},{cores[1]}", "heartbeat.interval=50ms",
                "heartbeat.timeout=1h", f"execution.checkpointing.interval={INTERVAL_MS}ms",
                "web.checkpoints.history=10000"]
    sets = ["generator.records=0", f"generator.keys={keys}",
            f"count.keys-max={keys // 2 + keys // 8 + 64}"]
    return settings, sets


def measure_ratio(raw, job, meter, rounds):
    """Raw loop and job without checkpoints, in turn."""
    rates = {"raw": [], "job": [], "count": []}
    for i in range(rounds):
        job.pause()
        try:
            if i < ROUNDS_MIN:
                rates["count"].append(raw.measure("count", int(PHASE_S * 1000)))
            rates["raw"].append(raw.measure("run", int(PHASE_S * 1000)))
        finally:
            job.go_on()
        rates["job"].append(meter.phase())
    return rates


def measure_loss(meter, checkpoints, pairs):
    """With and without checkpoints, the order changing from pair to pair."""
    rates = {"on": [], "off": []}
    for i in range(pairs):
        for kind in (("off", "on") if i % 2 == 0 else ("on", "off")):
            if kind == "on":
                checkpoints.on()
            rates[kind].append(meter.phase())
            if kind == "on":
                checkpoints.off()
    return rates


def measure(build, keys, pairs):
    """All of one key count."""
    cores = two_cores()
    settings, sets = options_of(keys, cores)
    rounds = max(ROUNDS_MIN, min(pairs, 15))
    with Scratch(build) as directory:
        raw = RawLoop(os.path.join(build, "bench/raw_keyed_count"), str(keys),
                      f"{cores[0]},{cores[1]}")
        job = RunningJob(build, "keyed-count.yaml", directory, settings, sets)
        try:
            job.await_start()
            job.await_running()
            job.ask("/checkpoints?periodic=off", "PATCH")
            time.sleep(1)  # warm up: every key is in the tables
            meter, checkpoints = Meter(job), Checkpoints(job)
            rates = measure_ratio(raw, job, meter, rounds)
            rates.update(measure_loss(meter, checkpoints, pairs))
            account = checkpoints.account()
            raw.close()
        finally:
            raw.kill()
            job.stop()
    return describe(keys, cores, rates, account, job.options)


def describe(keys, cores, rates, account, options):
    """The rates as ratios."""
    ratios = [j / r for j, r in zip(rates["job"], rates["raw"])]
    loss, interval = mean_loss(rates["on"], rates["off"])
    counts = [r / c for r, c in zip(rates["raw"], rates["count"])]
    return {"ratio": spread(ratios)["median"], "loss_100ms": loss,
            "ratio_spread": spread(ratios), "loss_100ms_interval_95": interval,
            "raw_to_count": spread(counts)["median"], "pairs": len(rates["on"]),
            "rounds": len(ratios), "phase_s": PHASE_S, "cores": cores, "keys": keys,
            "record_bytes": 16, "buffer_bytes": 32768, "machine": MACHINE,
            "records_per_s": {name: spread(values) for name, values in rates.items()},
            "checkpoints": account, "job_options": options, "rates": rates}


def millions(row):
    """Least, middle and largest as text."""
    return " / ".join(f"{row[k] / 1e6:.0f}" for k in ("min", "median", "max"))


def lines_of(d):
    """The rows of the table for one key count."""
    low, high = d["loss_100ms_interval_95"]
    s, c = d["ratio_spread"], d["checkpoints"]
    size = "-" if c["bytes_each"] is None else f"{c['bytes_each'] / 1048576:.2f} MiB"
    return [
        f"{d['keys']} keys",
        f"  only counting (no exchange)      {millions(d['records_per_s']['count'])} M records/s"
        "   (min / median / max)",
        f"  raw loop                         {millions(d['records_per_s']['raw'])} M records/s, "
        f"{d['raw_to_count']:.2f} of only counting",
        f"  job, checkpoints off             {millions(d['records_per_s']['job'])} M records/s",
        f"  job / raw loop                   {s['min']:.2f} / {s['median']:.2f} / {s['max']:.2f}"
        f"   ({d['rounds']} rounds)",
        f"  loss by a checkpoint each 100 ms {100 * d['loss_100ms']:.2f} %, 95 % interval "
        f"{100 * low:.2f} to {100 * high:.2f} %   ({d['pairs']} pairs)",
        f"  checkpoints                      {c['due']} due, {c['completed']} completed, "
        f"{c['missed']} missed; durable; {size} each; p50 {c['p50_ms']} ms, p99 {c['p99_ms']} ms",
    ]


def breaches_of(d):
    """What is out of the bounds of this bench."""
    if d["raw_to_count"] < RAW_TO_COUNT_MIN:
        yield (f"{d['keys']} keys: the raw loop does {d['raw_to_count']:.2f} of two cores that "
               f"only count, {RAW_TO_COUNT_MIN} at least: it is no ceiling")
    if d["ratio"] < RATIO_MIN:
        yield f"{d['keys']} keys: {d['ratio']:.2f} of the raw loop, {RATIO_MIN} at least"
    if d["loss_100ms_interval_95"][0] > LOSS_MAX:
        yield (f"{d['keys']} keys: checkpoints cost {100 * d['loss_100ms']:.1f} %, "
               f"{100 * LOSS_MAX:.0f} % at most")
    if d["checkpoints"]["missed"] > 0:
        yield f"{d['keys']} keys: {d['checkpoints']['missed']} checkpoints were missed"


def run(build, seconds):
    """Both key counts; `seconds` is for all of it."""
    per_pair = 2 * (PHASE_S + 0.05)
    pairs = PAIRS_PRESET
    if seconds is not None:
        pairs = max(2, int((seconds / len(KEY_COUNTS) - 12) / per_pair))
    data, table, series = {}, [f"keyed-count: 2 sources, hash exchange, 2 counters; {MACHINE}"], {}
    for keys in KEY_COUNTS:
        say(f"keyed-count: {keys} keys, {pairs} pairs ...")
        d = data[str(keys)] = measure(build, keys, pairs)
        d["breaches"] = list(breaches_of(d))
        table += lines_of(d)
        series.update({f"{name}, {keys} keys": [v / 1e6 for v in d["rates"][name]]
                       for name in ("raw", "job", "off", "on")})
    table += ["", "job options: " + " ".join(data[str(KEY_COUNTS[-1])]["job_options"])]
    result = Result("\n".join(table), data, series, "M records/s")
    result.breaches = [b for d in data.values() for b in d["breaches"]]
    return result
