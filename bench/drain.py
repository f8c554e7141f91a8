"""drain: in-flight buffers from the pool to a durable channel-state file, beside fio.

The product's writer (bench/drain.c) and fio take turns on the same directory: the same block size,
32 requests at a time, registered buffers, O_DIRECT, a new file of the same size allocated ahead,
synced at its end.  fio allocates before it looks at the clock, weir behind it.  Bytes of the pool
that the program copies are counted at every memcpy.  The other two ways to write, through the page
cache and by a thread, are what there is where O_DIRECT or io_uring is refused.
"""

import json
import os
import shutil
import statistics
import subprocess

from bench.harness import MACHINE, BenchError, Result, Scratch, say, spread

ABOUT = "in-flight buffers to a channel-state file, against fio"
NEEDS = "fio, two cores, a disk under the build directory; about half a minute"
TARGETS = ["bench/drain"]

MEBIBYTES, BUF_BYTES, DEPTH = 64, 32768, 32
ROUND_S = 0.5
ROUNDS_MIN, ROUNDS_PRESET = 3, 12
RATIO_MIN = 0.9
FIO_TIMEOUT_S = 60


def fio(directory):
    """Bytes a second."""
    command = ["fio", "--name=drain", f"--directory={directory}", "--filename=fio.dat",
               "--ioengine=io_uring", "--fixedbufs=1", "--direct=1", f"--bs={BUF_BYTES}",
               f"--iodepth={DEPTH}", "--rw=write", f"--size={MEBIBYTES}m", "--fallocate=native",
               "--end_fsync=1", "--unlink=1", "--output-format=json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FIO_TIMEOUT_S)
    if done.returncode != 0:
        raise BenchError(f"fio: {done.stderr or done.stdout}")
    job = json.loads(done.stdout)["jobs"][0]
    return job["write"]["io_bytes"] * 1000 / job["job_runtime"]


def drain(build, directory, way):
    """What each checkpoint of a round said; the first warms the memory up and is left out."""
    command = [os.path.join(build, "bench/drain"), directory, str(MEBIBYTES), str(BUF_BYTES),
               str(ROUND_S), way]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=FIO_TIMEOUT_S)
    if done.returncode != 0:
        raise BenchError("bench/drain failed; it said why above")
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return rows[1:] or rows


def rate(rows):
    """Bytes a second."""
    return statistics.median(row["bytes"] * 1e9 / row["ns"] for row in rows)


def share(rows):
    """Of the time, how much the lcore spends in the writer."""
    return statistics.median(row["lcore_ns"] / row["ns"] for row in rows)


def line(name, rows, ceiling):
    return (f"{name:<34} {rate(rows) / 1e6:>9.0f} MB/s {rate(rows) / ceiling:>6.2f} "
            f"{100 * share(rows):>8.0f} % {max(r['copied_bytes'] for r in rows):>12}")


def run(build, seconds):
    if shutil.which("fio") is None:
        raise BenchError("needs fio: apt-get install fio")
    rounds = max(ROUNDS_MIN, int(seconds / (2 * ROUND_S + 1)) if seconds else ROUNDS_PRESET)
    ratios, fios, ours, direct = [], [], [], []
    with Scratch(build) as scratch:
        for i in range(rounds):
            say(f"round {i + 1} of {rounds}")
            fios.append(statistics.median(fio(scratch) for _ in range(3)))
            rows = drain(build, scratch, "direct")
            direct += rows
            ours.append(rate(rows))
            ratios.append(ours[-1] / fios[-1])
        buffered, threads = (drain(build, scratch, way) for way in ("buffered", "threads"))
    ceiling, ratio = statistics.median(fios), statistics.median(ratios)
    copied = max(row["copied_bytes"] for row in direct)
    table = "\n".join([
        f"{MEBIBYTES} MiB in buffers of {BUF_BYTES} bytes, {DEPTH} at a time; {MACHINE}",
        f"{'':<34} {'':>14} {'ratio':>6} {'lcore':>10} {'bytes copied':>12}",
        f"{'fio, io_uring, O_DIRECT, registered':<34} {ceiling / 1e6:>8.0f} MB/s {1:>6.2f}",
        line("weir, direct", direct, ceiling),
        line("weir, through the page cache", buffered, ceiling),
        line("weir, by a thread", threads, ceiling),
        f"weir / fio in each round: median {ratio:.2f} (at least {RATIO_MIN})"])
    data = {"mebibytes": MEBIBYTES, "buf_bytes": BUF_BYTES, "depth": DEPTH, "fio": spread(fios),
            "weir": spread(ours), "ratio": spread(ratios), "copied_bytes": copied,
            "registered": all(row["registered"] for row in direct),
            "lcore_share": share(direct), "buffered": rate(buffered), "threads": rate(threads)}
    result = Result(table, data, {"fio": [v / 1e6 for v in fios],
                                  "weir": [v / 1e6 for v in ours]}, "MB/s")
    if ratio < RATIO_MIN:
        result.breaches.append(f"weir writes {ratio:.2f} of what fio does, not {RATIO_MIN}")
    if copied > 0:
        result.breaches.append(f"{copied} bytes of the pool were copied on the direct path")
    return result
