"""tuning: what each setting of a host is worth to the same job.

keyed-count at full speed, two jobs at a time that take turns on the cores, phase by phase (the
other one is stopped by signal): one as it comes, on pages of 4 KiB with a worker that spins on each
of two cores, and one that differs in a single setting.  Then each alone at a fixed low rate: how
much of a core its TaskManager takes.  And paced: the job of `rfc2544` on one of the cores, with
packets from the other at times that are fixed beforehand, and how late they are back; where the
setting is how many workers there are, that one is not comparable.  What this host lacks is not
measured, and its row says why, with the command that gives it.
"""

import os
import re
import statistics
import time

from bench import rfc2544
from bench.harness import (MACHINE, ROOT, BenchError, Result, RunningJob, Scratch, say, spread,
                           two_cores)
from bench.keyed_count import GUARD_S, PHASE_S, Meter

ABOUT = "what page size, spinning and workers a core are worth, to one job"
NEEDS = "two cores, 1 GiB of memory; hugepages for some rows; about two minutes"
TARGETS = ["weir", "weir-coordinator", "weir-taskmanager", "bench/packet_end"]

KEYS = 1 << 19
SLOW_RATE = 1_000            # records a second
SLOW_S = 1.0
PACED_RATE, PACED_BYTES = 20_000, 64  # packets a second
PACED_MS, PACED_TRIALS = 300, 5
ROUNDS_MIN, ROUNDS_PRESET = 3, 5
ROW_S = 20                   # of a row with that many rounds, about
PAGE_BYTES_NEEDED = 1 << 30


class Skipped(Exception):
    """The host lacks what a row needs; with the command that gives it."""


def read(path):
    """A file of the kernel, or nothing."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def pages_settings(kib, name):
    """Options for hugepages of one size; Skipped."""
    count = -(-PAGE_BYTES_NEEDED // (kib * 1024))
    command = f"sudo scripts/host-setup --hugepages {name}:{count}"
    base = f"/sys/kernel/mm/hugepages/hugepages-{kib}kB"
    free = int(read(base + "/free_hugepages") or 0)
    if free < count:
        raise Skipped(f"{free} free pages of this size, {count} needed: {command}")
    size = f"pagesize={'1024M' if kib == 1 << 20 else '2M'}"
    for mount in read("/proc/mounts").splitlines():
        words = mount.split()
        if words[2] == "hugetlbfs" and (size in words[3] or
                                        (kib == 2048 and "pagesize" not in words[3])):
            return ["weir.hugepages=on", f"weir.eal.args=--huge-dir={words[1]}"]
    raise Skipped(f"no hugetlbfs is mounted with {size}: sudo mkdir -p /dev/huge{name} && sudo "
                  f"mount -t hugetlbfs -o {size} none /dev/huge{name}")


def sibling_of(core):
    """The other thread of the same core; Skipped."""
    numbers = [int(n) for n in re.findall(
        r"\d+", read(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"))]
    for number in numbers:
        if number != core and number in os.sched_getaffinity(0):
            return number
    raise Skipped("a core of this host has one hardware thread: two workers need hyper-threading, "
                  "in the firmware or in the virtual machine's topology")


def plain(*cores):
    """The settings that the others differ from."""
    return {"weir.cores": ",".join(str(c) for c in cores), "weir.idle": "spin",
            "weir.hugepages": "off"}


def with_words(settings, words):
    """The same with some more or others."""
    return {**settings, **dict(word.split("=", 1) for word in words)}


def rows_of(cores):
    """What a row is called, its settings, those it is compared with; each when asked."""
    first = cores[0]
    return [
        ("pages of 2 MiB", lambda: with_words(plain(*cores), pages_settings(2048, "2M")),
         plain(*cores)),
        ("pages of 1 GiB", lambda: with_words(plain(*cores), pages_settings(1 << 20, "1G")),
         plain(*cores)),
        ("idle workers back off", lambda: with_words(plain(*cores), ["weir.idle=backoff"]),
         plain(*cores)),
        ("one core instead of two", lambda: plain(first), plain(*cores)),
        ("two workers on one core", lambda: plain(first, sibling_of(first)), plain(first)),
    ]


# ---- measuring ----

def start(build, directory, name, settings, rate):
    """A running job, every task of it."""
    place = os.path.join(directory, name)
    os.mkdir(place)
    words = [f"{key}={value}" for key, value in settings.items()]
    job = RunningJob(build, "keyed-count.yaml", place,
                     [*words, "heartbeat.interval=50ms", "heartbeat.timeout=1h",
                      "execution.checkpointing.interval=1h"],
                     ["generator.records=0", f"generator.rate={rate}", f"generator.keys={KEYS}",
                      f"count.keys-max={KEYS + 64}"])
    try:
        job.await_start()
        job.await_running()
    except BenchError:
        job.stop()
        raise
    return job


def cpu_share(pid):
    """Of a core, over a while."""
    def ticks():
        words = read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
        return int(words[11]) + int(words[12])

    before, began = ticks(), time.monotonic()
    time.sleep(SLOW_S)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began)


def measure_slow(build, directory, name, settings):
    """How much of a core it takes at a low rate."""
    job = start(build, directory, name, settings, SLOW_RATE)
    try:
        time.sleep(GUARD_S)
        return cpu_share(job.pid)
    finally:
        job.stop()


def measure_paced(build, directory, name, settings):
    """Microseconds from when a packet is due to when it is back, of the middle trial; None where
    the setting needs both cores."""
    worker, other = two_cores()
    if settings["weir.cores"] != plain(worker, other)["weir.cores"]:
        return None
    place = os.path.join(directory, name)
    os.mkdir(place)
    path = os.path.join(place, "memif.sock")
    args = f"--vdev=net_memif0,role=server,socket-abstract=no,socket={path}"
    words = {**settings, "weir.cores": worker, "weir.nic.ports": "net_memif0",
             "weir.eal.args": " ".join([settings.get("weir.eal.args", ""), args]).strip()}
    job = RunningJob(build, os.path.join(ROOT, "bench/rfc2544.yaml"), place,
                     [f"{key}={value}" for key, value in words.items()])
    generator = None
    try:
        job.await_start()
        job.await_running()
        generator = rfc2544.Generator(build, path, other)
        generator.trial(PACED_MS, PACED_BYTES, PACED_RATE)
        trials = [generator.trial(PACED_MS, PACED_BYTES, PACED_RATE) for _ in range(PACED_TRIALS)]
    finally:
        if generator is not None:
            generator.close()
        job.stop()
    return {key: spread([t[key] for t in trials]) for key in ("p50_us", "p99_us", "lost")}


def measure_pair(build, directory, settings, than, rounds):
    """Records a second of both, round by round."""
    rates = {"with": [], "without": []}
    jobs = {}
    try:
        for name, words in (("with", settings), ("without", than)):
            jobs[name] = start(build, directory, name, words, 0)
            time.sleep(1)  # every key is in the tables
            jobs[name].pause()
        for i in range(rounds):
            for name in (("with", "without") if i % 2 == 0 else ("without", "with")):
                jobs[name].go_on()
                rates[name].append(Meter(jobs[name]).phase())
                jobs[name].pause()
    finally:
        for job in jobs.values():
            job.stop()
    return rates


def measure_row(build, row, rounds):
    """One row: numbers, or why there are none."""
    name, make, than = row
    try:
        settings = make()
    except Skipped as why:
        say(f"tuning: SKIPPED: {name}: {why}")
        return {"setting": name, "skipped": str(why)}
    say(f"tuning: {name}, {rounds} rounds ...")
    with Scratch(build) as directory:
        rates = measure_pair(build, directory, settings, than, rounds)
        both = {"with": settings, "without": than}
        slow = {word: measure_slow(build, directory, "slow-" + word, words)
                for word, words in both.items()}
        paced = {word: measure_paced(build, directory, "paced-" + word, words)
                 for word, words in both.items()}
    return {"setting": name, "settings": settings, "than": than, "rates": rates,
            "ratio": spread([a / b for a, b in zip(rates["with"], rates["without"])]),
            "records_per_s": {key: spread(values) for key, values in rates.items()},
            "slow_cores": slow, "paced": paced}


# ---- the bench ----

def late(paced, word, key):
    """Microseconds, or a dash."""
    both = all(paced.values())  # what is not compared is not shown
    return f"{paced[word][key]['median']:>7.1f}" if both else f"{'-':>7}"


def line(row):
    """One row for people."""
    if "skipped" in row:
        return f"{row['setting']:<24} not here: {row['skipped']}"
    rates, ratio, slow, paced = (row[k] for k in ("records_per_s", "ratio", "slow_cores", "paced"))
    return (f"{row['setting']:<24} {rates['without']['median'] / 1e6:>7.1f} "
            f"{rates['with']['median'] / 1e6:>7.1f} {ratio['median']:>5.2f} "
            f"{ratio['min']:>4.2f}-{ratio['max']:<4.2f} {slow['without']:>7.2f} "
            f"{slow['with']:>7.2f} {late(paced, 'without', 'p50_us')} "
            f"{late(paced, 'with', 'p50_us')} {late(paced, 'without', 'p99_us')} "
            f"{late(paced, 'with', 'p99_us')}")


def as_it_comes(rows):
    """The settings that the others differ from, over all that were compared with them."""
    base = plain(*two_cores())
    found = [row for row in rows if row.get("than") == base]
    if not found:
        return []
    rate = statistics.median(row["records_per_s"]["without"]["median"] for row in found)
    slow = statistics.median(row["slow_cores"]["without"] for row in found)
    paced = [row["paced"]["without"] for row in found]
    late_us = [statistics.median(p[key]["median"] for p in paced) for key in ("p50_us", "p99_us")]
    return [f"{'as it comes':<24} {rate / 1e6:>7.1f} {'':<23} {slow:>7.2f} {'':<7} "
            f"{late_us[0]:>7.1f} {'':<7} {late_us[1]:>7.1f}"]


def print_table(data):
    """All of it for people."""
    without = f"{'without':>7} {'with':>7}"
    return "\n".join([
        f"keyed-count, {KEYS} keys; as it comes: pages of 4 KiB, a worker that spins on each of "
        f"two cores; {MACHINE}",
        f"paced: nic-source -> nic-sink, {PACED_RATE} packets a second, one worker",
        f"{'':<24} {'M records/s':^15} {'':<15} {'cores at 1000/s':^15} {'paced, p50, us':^15} "
        f"{'p99, us':^15}",
        f"{'setting':<24} {without} {'ratio':>5} {'':<9} {without} {without} {without}",
        *as_it_comes(data["rows"]), *(line(row) for row in data["rows"])])


def run(build, seconds):
    cores = two_cores()
    rounds = ROUNDS_PRESET
    if seconds is not None:
        rounds = max(ROUNDS_MIN, int(seconds / len(rows_of(cores)) / ROW_S * ROUNDS_PRESET))
    began = time.monotonic()
    rows = [measure_row(build, row, rounds) for row in rows_of(cores)]
    data = {"rows": rows, "keys": KEYS, "slow_rate": SLOW_RATE, "paced_rate": PACED_RATE,
            "rounds": rounds, "phase_s": PHASE_S, "machine": MACHINE,
            "seconds": time.monotonic() - began}
    series = {f"{row['setting']}, {word}": [v / 1e6 for v in row["rates"][word]]
              for row in rows if "rates" in row for word in ("without", "with")}
    return Result(print_table(data), data, series, "M records/s")
