"""rfc2544: how many packets a second a job forwards without losing one, and how late they are.

Packets of one size go from a generator, on a core of its own, over a memif to nic-source, through
the job and nic-sink, and back to the generator.  There are two, one after the other:

dpdk-testpmd knows no rate on a virtual port.  It goes round: so many packets at once are sent
(`start tx_first`) and each that is back is sent again, so that none finds a full ring; its rate is
the highest of some such numbers of which none was missing at the end.  And it floods, in flowgen
mode: what comes back of all it can offer.

bench/packet_end knows rates.  A binary search finds the highest at which all of a trial come back
(RFC 2544, 26.1); at that rate, or the nearest below it that holds when tried again, the time from
when a packet was due to when it is back is measured (26.2).  A packet for which the port has no
room when it is due is lost.  `flood` is what comes back when far more is offered.  It has IMIX,
too: dpdk-testpmd sends one size at a time.

On a host with NICs the same job runs on two ports at vfio-pci, with a generator on another host:
  weir run bench/rfc2544.yaml --set source.port=0000:03:00.0 --set sink.port=0000:03:00.1 \\
      -D 'weir.nic.ports=0000:03:00.0;0000:03:00.1' -D weir.idle=spin
and Pktgen-DPDK there, in the folder of its sources, whose script searches for each frame size:
  pktgen -l 0-4 -n 4 -- -P -m "[1:2].0,[3:4].1" -f scripts/rfc2544_tput_test.lua
"""

import json
import math
import os
import subprocess
import time

from bench import testpmd
from bench.harness import MACHINE, ROOT, BenchError, Result, RunningJob, Scratch, say, two_cores

ABOUT = "packets a second from port to job to port without a loss, and how late they are"
NEEDS = ("two cores, dpdk-testpmd (package dpdk-dev); about a minute and a half, --seconds 20 for "
         "a quick look")
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
BURST = 32                   # of dpdk-testpmd
BURSTS_ROUND = (1, 4, 16, 31)  # that go round at once; a ring holds 1024
DRAIN_S, STILL_S = 0.5, 0.02


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


class Peer:
    """dpdk-testpmd: what goes round, and a flood."""

    def __init__(self, program, directory, path, core):
        self.testpmd = testpmd.Testpmd(program, directory, core, testpmd.memif(path, "client"),
                                       "flowgen", SIZES[0])

    def __enter__(self):
        try:
            self.testpmd.await_link()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.testpmd.__exit__()

    def forward(self, mode, size, start, seconds):
        """Packets a second that came back, and how many of all that were sent did not."""
        peer = self.testpmd
        before = peer.counters()
        for command in (f"set txpkts {size}", f"set fwd {mode}", start):
            peer.ask(command)
        time.sleep(testpmd.WARM_UP_S)
        peer.counters()
        time.sleep(seconds)
        rate = peer.counters()["rx_rate"]
        for command in ("stop", "set fwd rxonly", "start"):  # what is still on the way
            peer.ask(command)
        until, after, last = time.monotonic() + DRAIN_S, peer.counters(), -1
        while time.monotonic() < until and (after["rx"] > last or self.missing(before, after) > 0):
            time.sleep(STILL_S)
            last, after = after["rx"], peer.counters()
        peer.ask("stop")
        return rate, self.missing(before, peer.counters())

    @staticmethod
    def missing(before, after):
        """Sent and not back between two moments."""
        return (after["tx"] - before["tx"]) - (after["rx"] - before["rx"])

    def measure(self, size, seconds):
        """The highest rate of what goes round without a loss, of how many packets, and what came
        back of a flood."""
        best = (0, None)
        for bursts in BURSTS_ROUND:
            rate, missing = self.forward("io", size - testpmd.CHECK_BYTES,
                                         f"start tx_first {bursts}", seconds)
            if missing == 0:
                best = max(best, (rate, bursts * BURST))
        # In this mode its size is that with the check sequence.
        flood, _ = self.forward("flowgen", size, "start", seconds)
        return {"round_frames": best[0], "round_packets": best[1], "flood_frames": flood}


def measure_peer(directory, path, core, seconds):
    """{size: what dpdk-testpmd found}; of nothing where it is not here."""
    program = testpmd.find()
    if program is None:
        say(f"rfc2544: dpdk-testpmd is SKIPPED: {testpmd.MISSING}")
        return {}
    found = {}
    with Peer(program, directory, path, core) as peer:
        for size in SIZES:
            say(f"dpdk-testpmd, frames of {size} bytes")
            found[size] = peer.measure(size, seconds)
    return found


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


def describe(size, found, peer):
    """One row; `peer` is what dpdk-testpmd found, or nothing."""
    rate, trial, flood = found
    wire = (IMIX_BYTES if size == IMIX else size) + GAP_BYTES
    row = {"frame_bytes": "IMIX" if size == IMIX else size, "zero_loss_frames": rate,
           "zero_loss_bits": rate * wire * 8, "most_frames": flood["got_rate"],
           "offered_frames": flood["rate"]}
    for name in ("p50_us", "p99_us", "max_us", "behind_us"):
        row[name] = trial[name] if trial and rate > 0 else None
    return {**row, "testpmd": peer}


def number(value, width, digits):
    """Or a dash, of nothing."""
    return f"{'-':>{width}}" if value is None else f"{value:>{width}.{digits}f}"


def line(row):
    """One row for people."""
    peer = row["testpmd"] or {"round_frames": 0, "round_packets": None, "flood_frames": None}
    rate = peer["round_frames"] / 1e6 if peer["round_packets"] else None
    flood = peer["flood_frames"] / 1e6 if peer["flood_frames"] else None
    return (f"{row['frame_bytes']:>6} {number(rate, 7, 3)} {number(peer['round_packets'], 6, 0)} "
            f"{number(flood, 7, 3)} {row['zero_loss_frames'] / 1e6:>9.3f} "
            f"{row['zero_loss_bits'] / 1e9:>7.2f} {number(row['p50_us'], 8, 1)} "
            f"{number(row['p99_us'], 8, 1)} {number(row['max_us'], 8, 1)} "
            f"{number(row['behind_us'], 8, 1)} {row['most_frames'] / 1e6:>8.3f}")


def print_table(data):
    """All of it for people."""
    return "\n".join([
        f"nic-source -> nic-sink, one worker, over a memif; {MACHINE}; trials of "
        f"{data['trial_ms']} ms",
        f"dpdk-testpmd: {data['testpmd'] or 'SKIPPED, ' + testpmd.MISSING}",
        f"{'':>6} {'dpdk-testpmd, M/s':^22} {'packet_end: no loss':^17}{'latency at that, us':^25} "
        f"{'it was':>9} {'flood':>8}",
        f"{'frame':>6} {'round':>7} {'of':>6} {'flood':>7} {'M/s':>9} {'Gbit/s':>7} {'p50':>8} "
        f"{'p99':>8} {'max':>8} {'late, us':>8} {'M/s':>8}",
        *(line(row) for row in data["rows"]), "", "job options: " + " ".join(data["job_options"])])


def breaches_of(rows):
    """What could not be found."""
    for row in rows:
        size, peer = row["frame_bytes"], row["testpmd"]
        if row["zero_loss_frames"] == 0:
            yield f"frames of {size}: no rate without a loss"
        if peer is not None and peer["round_packets"] is None:
            yield f"frames of {size}: some of what dpdk-testpmd sent round did not come back"


def run(build, seconds):
    steps, milliseconds = STEPS_MAX, TRIAL_MS
    if seconds is not None:
        each = seconds / (len(SIZES) + 1)  # a trial may be made twice; a flood takes five
        steps = max(STEPS_MIN, min(STEPS_MAX, int(each / 0.5)))
        milliseconds = max(TRIAL_MS_MIN, min(TRIAL_MS, int(1000 * each / (2 * steps + 8))))
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
            peer = measure_peer(scratch, path, other, milliseconds / 2000)
            generator = Generator(build, path, other)
            found = {}
            for size in (*SIZES, IMIX):
                say(f"frames of {size or 'IMIX'} bytes")
                found[size] = search(generator, size, steps, milliseconds)
        finally:
            if generator is not None:
                generator.close()
            job.stop()
    rows = [describe(size, f, peer.get(size)) for size, f in found.items()]
    data = {"rows": rows, "trial_ms": milliseconds, "steps": steps, "testpmd": testpmd.find(),
            "generator": "bench/packet_end", "job_options": job.options, "machine": MACHINE,
            "seconds": time.monotonic() - began}
    series = {"without a loss": [r["zero_loss_frames"] / 1e6 for r in rows],
              "most": [r["most_frames"] / 1e6 for r in rows],
              "dpdk-testpmd, round": [r["testpmd"]["round_frames"] / 1e6 for r in rows
                                      if r["testpmd"]]}
    result = Result(print_table(data), data, {k: v for k, v in series.items() if v},
                    "million frames/s")
    result.breaches = list(breaches_of(rows))
    return result
