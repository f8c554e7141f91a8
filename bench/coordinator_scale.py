"""coordinator-scale: what one checkpoint costs the coordinator, from 100 to 10,000 subtasks.

The rules, messages, TCP connections and `_metadata` of weir-coordinator (bench/coordinator_scale.c)
with TaskManagers that only pretend: 40 subtasks each, states of 1 KiB, one message of
acknowledgements from each.  CPU time is that of the coordinator's thread alone, from the request to
the last notification, and TaskManagers do not run meanwhile.  `_metadata` is written to memory, so
that no disk is measured.
"""

import json
import math
import os
import statistics
import subprocess
import tempfile

from bench.harness import MACHINE, BenchError, Result, percentile, say

ABOUT = "the coordinator's CPU time for one checkpoint of up to 10,000 subtasks"
NEEDS = "1 GiB of memory, 250 connections on loopback; about half a minute"
TARGETS = ["bench/coordinator_scale"]

MEMORY = "/dev/shm"
SIZES = (100, 300, 1000, 3000, 10000)
SUBTASKS_EACH = 40
WARM, CHECKPOINTS = 5, 40
SECONDS_OF_ALL = 20  # what so many checkpoints of all sizes take, about
PARTS = ("rules", "receive", "states", "trigger", "metadata", "index", "notify")
RULES_MS_MAX, ALL_MS_MAX, GROWTH_MAX = 10.0, 60.0, 1.15


def measure(program, subtasks, count, directory):
    """The rows of one size, without those that warm up."""
    words = [program, str(subtasks), str(max(1, subtasks // SUBTASKS_EACH)), str(WARM + count),
             directory]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise BenchError(f"coordinator_scale: {done.stderr.strip() or done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()][WARM:]


def summarise(rows):
    """Medians, and how far the total strays."""
    d = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    total = [row["all_ms"] for row in rows]
    d["all_ms_p10"], d["all_ms_p90"] = percentile(total, 10), percentile(total, 90)
    d["memory_of_pending"] = d["memory_full"] - d["memory_at_rest"]
    d["checkpoints"] = len(rows)
    return d


def growth(sizes, key):
    """The exponent between the smallest and the largest of the sizes; 1 is linear."""
    first, last = sizes[0], sizes[-1]
    return math.log(last[key] / first[key]) / math.log(last["subtasks"] / first["subtasks"])


def breaches_of(data):
    last = data["sizes"][-1]
    if last["rules_ms"] > RULES_MS_MAX:
        yield f"the rules take {last['rules_ms']:.1f} ms, {RULES_MS_MAX:.0f} at most"
    if last["all_ms"] > ALL_MS_MAX:
        yield f"all in all it takes {last['all_ms']:.1f} ms, {ALL_MS_MAX:.0f} at most"
    for key in ("rules_ms", "all_ms"):
        if data["growth"][key] > GROWTH_MAX:
            yield (f"{key} grows with the power {data['growth'][key]:.2f} of the subtasks, "
                   f"{GROWTH_MAX} at most")


def lines_of(data):
    yield f"coordinator-scale: states of 1 KiB, {SUBTASKS_EACH} subtasks a TaskManager; {MACHINE}"
    yield "CPU ms of one checkpoint, medians"
    yield f"{'subtasks':>9} " + "".join(f"{p:>9}" for p in PARTS) + f"{'all':>9}  p10..p90"
    for d in data["sizes"]:
        yield (f"{d['subtasks']:>9.0f} " + "".join(f"{d[p + '_ms']:>9.2f}" for p in PARTS) +
               f"{d['all_ms']:>9.2f}  {d['all_ms_p10']:.2f}..{d['all_ms_p90']:.2f}")
    yield ""
    yield f"{'subtasks':>9} {'messages':>9} {'MB in':>9} {'MB out':>9} {'metadata':>9} " \
          f"{'at rest':>9} {'pending':>9}  (MB)"
    for d in data["sizes"]:
        yield (f"{d['subtasks']:>9.0f} {d['messages']:>9.0f} {d['bytes_in'] / 1e6:>9.2f} "
               f"{d['bytes_out'] / 1e6:>9.3f} {d['metadata_bytes'] / 1e6:>9.2f} "
               f"{d['memory_at_rest'] / 1e6:>9.2f} {d['memory_of_pending'] / 1e6:>9.2f}")
    g = data["growth"]
    yield ""
    yield (f"growth, 1 is linear: rules {g['rules_ms']:.2f}, all {g['all_ms']:.2f} "
           f"(from {SIZES[0]} to {SIZES[-1]} subtasks)")


def run(build, seconds):
    """All sizes in turn; `seconds` is for all of them."""
    program = os.path.join(build, "bench", "coordinator_scale")
    count = CHECKPOINTS
    if seconds is not None:
        count = max(3, int(CHECKPOINTS * seconds / SECONDS_OF_ALL))
    sizes = []
    for subtasks in SIZES:
        say(f"coordinator-scale: {subtasks} subtasks, {count} checkpoints ...")
        with tempfile.TemporaryDirectory(prefix="weir-", dir=MEMORY) as directory:
            sizes.append(summarise(measure(program, subtasks, count, directory)))
    data = {"sizes": sizes,
            "growth": {key: growth(sizes, key) for key in ("rules_ms", "all_ms")}}
    series = {part: [d[part + "_ms"] for d in sizes] for part in (*PARTS, "all")}
    result = Result("\n".join(lines_of(data)), data, series, "CPU ms")
    result.breaches = data["breaches"] = list(breaches_of(data))
    return result
