"""rfc2544: how many packets a second a job forwards without losing one, and how late they are.

Packets of one size go from a generator (bench/packet_end.c, a core of its own) over a memif to
nic-source, through the job and nic-sink, and back to the generator.  A binary search finds the
highest rate at which all of a trial come back (RFC 2544, 26.1); at that rate, or the nearest below
it that holds when tried again, the time from when a packet was due to when it is back is measured
(26.2).  `most` is what comes back when far more is offered.

On a host with NICs the same job runs on a port at vfio-pci, with a generator on another host:
  weir run bench/rfc2544.yaml --set source.port=0000:03:00.0 --set sink.port=0000:03:00.0 \\
      -D weir.nic.ports=0000:03:00.0 -D weir.idle=spin
and Pktgen-DPDK there, whose rate is halved by hand from `set 0 rate 100` on until `page main`
shows as many received as sent:
  pktgen -l 0-2 -n 4 -- -P -m 1.0        (set 0 size 64; set 0 count 0; start 0; stop 0)
"""

import json
import math
import os
import subprocess
import time

from bench.harness import MACHINE, ROOT, BenchError, Result, RunningJob, Scratch, say, two_cores

ABOUT = "packets a second from port to job to port without a loss, and how late they are"
NEEDS = "two cores; about a minute, --seconds 20 for a quick look"
TARGETS = ["weir", "weir-coordinator", "weir-taskmanager", "bench/packet_end"]

SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
IMIX = 0
IMIX_BYTES = (7 * 64 + 4 * 594 + 1518) / 12
FLOOD_RATE = 20_000_000
GAP_BYTES = 20               # of a frame on a cable: preamble and gap, for bits a second
STEPS_MAX, STEPS_MIN = 8, 4
TRIAL_MS, TRIAL_MS_MIN = 500, 100
CONFIRMATIONS_MAX = 4
RANGE = 256                  # of the most that came back to the least that is tried
LATE_US = 200
BACK_OFF = 0.8               # the next rate, when one that held does not hold again
START_TIMEOUT_S = 20


class Generator:
    """bench/packet_end: trials on command."""

    def __init__(self, build, path, core):
        self.process = subprocess.Popen([os.path.join(build, "bench/packet_end"), path, str(core)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answer()

    def answer(self):
        """One line."""
        line = self.process.stdout.readline()
        if not line:
            raise BenchError("bench/packet_end ended; it said why above")
        return json.loads(line)

    def trial(self, milliseconds, size, rate):
        """What came of so many packets a second, with the rates that really were."""
        self.process.stdin.write(f"trial {milliseconds} {size} {int(rate)}\n")
        self.process.stdin.flush()
        t = self.answer()
        t["rate"] = t["offered"] * 1e9 / t["ns"]
        t["got_rate"] = t["received"] * 1e9 / t["ns"]
        t["lost"] = t["offered"] - t["received"]
        return t

    def close(self):
        """It may be in the middle of something."""
        self.process.stdin.close()
        try:
            self.process.wait(START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def hold(generator, milliseconds, size, rate):
    """A trial; once more when it lost some while the generator itself stood still: what it then
    sends at once is no steady rate."""
    trial = generator.trial(milliseconds, size, rate)
    if trial["lost"] > 0 and trial["behind_us"] > LATE_US:
        trial = generator.trial(milliseconds, size, rate)
    return trial


def search(generator, size, steps, milliseconds):
    """The highest rate without a loss, the trial that shows it, and what came of a flood."""
    generator.trial(milliseconds // 2, size, 100_000)  # warms the way up
    flood = generator.trial(milliseconds // 2, size, FLOOD_RATE)
    high = flood["got_rate"]
    low, best = high / RANGE, None
    for step in range(steps):
        rate = high if step == 0 else math.sqrt(low * high)
        trial = hold(generator, milliseconds, size, rate)
        if trial["lost"] > 0:
            high = rate
            continue
        low, best = rate, trial
        if step == 0:
            break
    rate = low
    for _ in range(CONFIRMATIONS_MAX if best is not None else 0):
        again = hold(generator, milliseconds, size, rate)
        if again["lost"] == 0:
            return rate, again, flood
        rate *= BACK_OFF
    return 0.0, None, flood


def describe(size, found):
    """One row."""
    rate, trial, flood = found
    wire = (IMIX_BYTES if size == IMIX else size) + GAP_BYTES
    row = {"frame_bytes": "IMIX" if size == IMIX else size, "zero_loss_frames": rate,
           "zero_loss_bits": rate * wire * 8, "most_frames": flood["got_rate"],
           "offered_frames": flood["rate"]}
    for name in ("p50_us", "p99_us", "max_us", "behind_us"):
        row[name] = trial[name] if trial and rate > 0 else None
    return row


def number(value, width, digits):
    """Or a dash, of nothing."""
    return f"{'-':>{width}}" if value is None else f"{value:>{width}.{digits}f}"


def line(row):
    """One row for people."""
    return (f"{row['frame_bytes']:>6} {row['zero_loss_frames'] / 1e6:>9.3f} "
            f"{row['zero_loss_bits'] / 1e9:>7.2f} {number(row['p50_us'], 9, 1)} "
            f"{number(row['p99_us'], 9, 1)} {number(row['max_us'], 9, 1)} "
            f"{number(row['behind_us'], 10, 1)} {row['most_frames'] / 1e6:>9.3f}")


def print_table(data):
    """All of it for people."""
    return "\n".join([
        f"nic-source -> nic-sink, one worker, over a memif; {MACHINE}; trials of "
        f"{data['trial_ms']} ms",
        f"{'':>6} {'without a loss':^17} {'latency at that, us':^29} {'generator':>10} "
        f"{'flood':>9}",
        f"{'frame':>6} {'M/s':>9} {'Gbit/s':>7} {'p50':>9} {'p99':>9} {'max':>9} {'late, us':>10} "
        f"{'most M/s':>9}",
        *(line(row) for row in data["rows"]), "", "job options: " + " ".join(data["job_options"])])


def run(build, seconds):
    steps, milliseconds = STEPS_MAX, TRIAL_MS
    if seconds is not None:
        each = seconds / (len(SIZES) + 1)  # a flood takes up to five times its trial
        steps = max(STEPS_MIN, min(STEPS_MAX, int(each / 0.5)))
        milliseconds = max(TRIAL_MS_MIN, min(TRIAL_MS, int(1000 * each / (steps + 5))))
    worker, other = two_cores()
    began = time.monotonic()
    with Scratch(build) as scratch:
        path = os.path.join(scratch, "memif.sock")
        settings = [f"weir.cores={worker}", "weir.idle=spin", "weir.nic.ports=net_memif0",
                    f"weir.eal.args=--vdev=net_memif0,role=server,socket-abstract=no,socket={path}"]
        job = RunningJob(build, os.path.join(ROOT, "bench/rfc2544.yaml"), scratch, settings)
        generator = None
        try:
            job.await_start()
            job.await_running()
            generator = Generator(build, path, other)
            found = {}
            for size in (*SIZES, IMIX):
                say(f"frames of {size or 'IMIX'} bytes")
                found[size] = search(generator, size, steps, milliseconds)
        finally:
            if generator is not None:
                generator.close()
            job.stop()
    data = {"rows": [describe(size, f) for size, f in found.items()], "trial_ms": milliseconds,
            "steps": steps, "generator": "bench/packet_end", "job_options": job.options,
            "machine": MACHINE, "seconds": time.monotonic() - began}
    series = {"without a loss": [r["zero_loss_frames"] / 1e6 for r in data["rows"]],
              "most": [r["most_frames"] / 1e6 for r in data["rows"]]}
    result = Result(print_table(data), data, series, "million frames/s")
    result.breaches = [f"frames of {r['frame_bytes']}: no rate without a loss"
                       for r in data["rows"] if r["zero_loss_frames"] == 0]
    return result
