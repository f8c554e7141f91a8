"""flow-metering: the main job on a synthetic capture, against nfpcapd on the same file.

Both read the file from the page cache and write their flows to the same disk, in turn.  The job's
time is that from its tasks running to the end of `weir run`, when all output is committed; the
whole command's, with the start of three processes and the EAL, stands beside it.  nfpcapd's is the
whole command.
"""

import os
import re
import shutil
import statistics
import subprocess
import time

from bench.harness import (MACHINE, BenchError, Result, RunningJob, Scratch, say, spread,
                           two_cores)

ABOUT = "flows of a 10-million-packet capture with a checkpoint every 100 ms, against nfpcapd"
NEEDS = "two cores, 3 GiB of disk and of page cache, nfpcapd (package nfdump); about 2 minutes"
TARGETS = ["weir", "weir-coordinator", "weir-taskmanager", "bench/make_capture"]

PACKETS, PACKETS_QUICK = 10_000_000, 2_000_000
QUICK_S = 60  # below, the smaller capture
PAIRS_MIN, PAIRS_PRESET = 2, 5
PAIR_S = 12
INTERVAL_MS = 100
RATIO_AIM = 4
END_TIMEOUT_S = 300


def make_capture(build, directory, packets):
    """The capture, in the page cache."""
    path = os.path.join(directory, "capture.pcap")
    subprocess.run([os.path.join(build, "bench/make_capture"), path, str(packets)], check=True)
    return path


def run_job(build, directory, capture):
    """One run from a clean state; (seconds of work, seconds in all, its result)."""
    work = os.path.join(directory, "job")
    os.mkdir(work)
    cores = two_cores()
    settings = [f"weir.cores={cores[0]},{cores[1]}",
                f"execution.checkpointing.interval={INTERVAL_MS}ms"]
    sets = [f"source.path={capture}", f"sink.path={work}/flows"]
    began = time.monotonic()
    job = RunningJob(build, "flow-metering.yaml", work, settings, sets)
    try:
        job.await_start()
        job.await_running()
        running_ms = job.ask()["timestamps"]["RUNNING"]
        offset = time.monotonic() - time.time()
        result = job.await_end(END_TIMEOUT_S)
        ended = time.monotonic()
    finally:
        job.stop()
    if result["state"] != "FINISHED":
        raise BenchError(f"the job ended {result['state']}:\n{job.log()}")
    shutil.rmtree(work)
    return ended - (running_ms / 1000 + offset), ended - began, result, job.options


def run_nfpcapd(directory, capture):
    """One run; seconds."""
    work = os.path.join(directory, "nfpcapd")
    os.mkdir(work)
    began = time.monotonic()
    done = subprocess.run(["nfpcapd", "-r", capture, "-w", work], text=True, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    seconds = time.monotonic() - began
    found = re.findall(r"Processed: (\d+)", done.stdout)
    shutil.rmtree(work)
    return seconds, int(found[-1]) if found else 0


def check(packets, result, processed):
    """Both must have seen every packet, or the ratio means nothing."""
    if result["records_in"] != packets:
        raise BenchError(f"the job read {result['records_in']} of {packets} packets")
    if sum(result["unparsed"].values()) != 0:
        raise BenchError(f"the job did not parse {result['unparsed']}")
    if processed is not None and processed != packets:
        raise BenchError(f"nfpcapd processed {processed} of {packets} packets")


def measure(build, packets, pairs):
    """Job and peer, in turn."""
    has_peer = shutil.which("nfpcapd") is not None
    if not has_peer:
        say("flow-metering: nfpcapd is MISSING (apt-get install nfdump): no peer, no ratio")
    rates = {"job": [], "command": []}
    if has_peer:
        rates["nfpcapd"] = []
    with Scratch(build) as directory:
        capture = make_capture(build, directory, packets)
        run_job(build, directory, capture)  # warms up disk and page cache
        results = []
        for _ in range(pairs):
            seconds, whole, result, options = run_job(build, directory, capture)
            processed = None
            if has_peer:
                peer, processed = run_nfpcapd(directory, capture)
                rates["nfpcapd"].append(packets / peer)
            check(packets, result, processed)
            rates["job"].append(packets / seconds)
            rates["command"].append(packets / whole)
            results.append(result)
    return describe(packets, rates, results, options)


def describe(packets, rates, results, options):
    """The rates as ratios."""
    data = {"packets": packets, "machine": MACHINE, "job_options": options,
            "peer_options": "nfpcapd -r FILE -w DIR (flow cache and timeouts as preset)",
            "packets_per_s": {name: spread(values) for name, values in rates.items()},
            "checkpoints": {
                "interval_ms": INTERVAL_MS, "durable": True,
                "completed": statistics.median(r["checkpoints"]["completed"] for r in results),
                "failed": sum(r["checkpoints"]["failed"] for r in results),
                "p50_ms": statistics.median(r["checkpoints"]["p50_ms"] for r in results),
                "p99_ms": max(r["checkpoints"]["p99_ms"] for r in results)},
            "ratio": None, "rates": rates}
    if "nfpcapd" in rates:
        ratios = [j / n for j, n in zip(rates["job"], rates["nfpcapd"])]
        whole = [j / n for j, n in zip(rates["command"], rates["nfpcapd"])]
        data["ratio"] = statistics.median(ratios)
        data["ratio_spread"] = spread(ratios)
        data["ratio_command_spread"] = spread(whole)
    return data


def table_of(d):
    """For people."""
    def millions(name):
        row = d["packets_per_s"][name]
        return " / ".join(f"{row[k] / 1e6:.2f}" for k in ("min", "median", "max"))

    def ratio(name):
        return " / ".join(f"{d[name][k]:.2f}" for k in ("min", "median", "max"))

    c = d["checkpoints"]
    rows = [f"flow-metering: {d['packets']} packets, 100000 flows; {MACHINE}",
            f"  job, tasks running to committed   {millions('job')} M packets/s"
            "   (min / median / max)",
            f"  job, the whole command            {millions('command')} M packets/s"]
    if d["ratio"] is None:
        rows.append("  nfpcapd                           MISSING: apt-get install nfdump")
    else:
        rows += [f"  nfpcapd, the whole command        {millions('nfpcapd')} M packets/s",
                 f"  job / nfpcapd                     {ratio('ratio_spread')}",
                 f"  whole command / nfpcapd           {ratio('ratio_command_spread')}"]
    rows += [f"  checkpoints                       every {c['interval_ms']} ms, durable: "
             f"{c['completed']:.0f} completed in a run, {c['failed']} failed in all; "
             f"p50 {c['p50_ms']:.0f} ms, p99 {c['p99_ms']:.0f} ms",
             f"  job options: {' '.join(d['job_options'])}", f"  peer: {d['peer_options']}"]
    return "\n".join(rows)


def run(build, seconds):
    """As many pairs as there is time for."""
    packets, pairs = PACKETS, PAIRS_PRESET
    if seconds is not None:
        packets = PACKETS_QUICK if seconds < QUICK_S else PACKETS
        pairs = max(PAIRS_MIN, int(seconds / (PAIR_S * packets / PACKETS)))
    say(f"flow-metering: {packets} packets, {pairs} pairs ...")
    data = measure(build, packets, pairs)
    series = {name: [v / 1e6 for v in values] for name, values in data["rates"].items()}
    result = Result(table_of(data), data, series, "M packets/s")
    if data["ratio"] is not None and data["ratio"] < RATIO_AIM:
        result.breaches.append(f"{data['ratio']:.2f} of nfpcapd, {RATIO_AIM} is the aim")
    return result
