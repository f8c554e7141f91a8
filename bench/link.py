"""link: frames and payload a second between two processes, against dpdk-testpmd and TCP.

Two processes of bench/link_end.c, one on either core, joined by memif and by vhost/virtio-user, and
two of dpdk-testpmd on the same cores, joined likewise, take turns.  The former send buffers over
the product's reliable link; then frames of the same size by rte_eth_tx_burst and rte_eth_rx_burst
alone; then the same buffers over TCP on the loopback, a write for each flush.  dpdk-testpmd sends
in txonly mode what it receives in rxonly mode.  The bare loop does less for a frame than that (its
headers are copied, not made), in the processes and on the memory of the link: it tells a port that
is slow from a link that is.  A second one does the same with the bytes as a link must, and nothing
else: it sends pieces of buffers from where they lie, and copies what comes into buffers.  That is
the ceiling of a link, and what it has of dpdk-testpmd, which sends and receives the same few warm
mbufs and looks at none, is what memory allows.
A frame of 64 bytes is too small for a link's headers: the others send those of 64, the link buffers
of 64 bytes of records, of which several that wait share a frame: there its buffers are counted.  A
buffer of 32 KiB goes in frames of 1518, as over a cable, and in one, as `weir run --link memif` and
vhost have it: dpdk-testpmd is not asked for that one.  Then goodput over a wire that loses frames,
both ways, by the product's own fault wrapper.
"""

import contextlib
import json
import os
import statistics
import subprocess
import time

from bench import testpmd
from bench.harness import (MACHINE, BenchError, Result, Scratch, plot_curves, say, spread,
                           two_cores)

ABOUT = "frames a second between processes, against dpdk-testpmd and TCP; goodput against loss"
NEEDS = "two cores, dpdk-testpmd (package dpdk-dev); about two minutes"
TARGETS = ["bench/link_end"]

HEADERS = 96       # in front of the records of a frame: Ethernet, IPv4, UDP, weir
CHECK_BYTES = 4    # of a frame on a cable, which its size names and no port here carries
# What a row is called, frame size, frames a buffer, channels, credit of each.
ROWS = [("64", 64, 1, 16, 40), ("256", 256, 1, 16, 40), ("1518", 1518, 1, 16, 40),
        ("1518, 32 KiB", 1518, 23, 4, 8), ("9018, 26 KiB", 9018, 3, 4, 8),
        ("32868, 32 KiB", 32868, 1, 4, 8)]
PEER_FRAME_MAX = 9018  # larger ones dpdk-testpmd is not asked for
KINDS = ("memif", "vhost")
BOUNDS = {"64": 0.6, "1518, 32 KiB": 0.9}          # of dpdk-testpmd
TCP_BOUNDS = {"1518": 4.0, "32868, 32 KiB": 2.0}   # times TCP
LOSSES = [0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2]
LOSS_BOUND = 0.10
WINDOW_MS, LOSS_WINDOW_MS = 200, 250
WINDOWS_MAX = 3    # without a frame
ROUNDS_MIN, ROUNDS_PRESET, LOSS_ROUNDS = 2, 4, 3
ROUND_S = 18       # of all rows
START_TIMEOUT_S = 20


def frame_bytes(row):
    """Without the check sequence."""
    return row[1] - CHECK_BYTES


def flush_bytes(row):
    """Of records in a buffer."""
    return 64 if row[1] == 64 else (frame_bytes(row) - HEADERS) * row[2]


class Ends:
    """Both processes of a row; commands go to both, the numbers come from the receiver."""

    def __init__(self, build, directory, kind, row):
        self.row = row
        program = os.path.join(build, "bench/link_end")
        path = os.path.join(directory, kind + ".sock")
        if os.path.exists(path):
            os.unlink(path)  # a virtio-user device leaves it behind, and does not take it over
        mtu = max(1500, frame_bytes(row) - 14)
        self.processes = []
        for role, core in zip(("receive", "send"), reversed(two_cores())):
            command = [program, role, kind, path, mtu, flush_bytes(row), row[3], row[4], core]
            self.processes.append(subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True))
        self.hello = self.answers()
        if self.hello[0]["payload"] < flush_bytes(row) / row[2]:
            raise BenchError(f"a frame of {row[1]} bytes carries only "
                             f"{self.hello[0]['payload']} of records")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            try:
                process.wait(START_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
            process.stderr.close()

    def answers(self):
        """One line of each."""
        lines = [process.stdout.readline() for process in self.processes]
        if not all(lines):
            for process in self.processes:
                process.kill()
            said = "".join(process.stderr.read() for process in self.processes)
            raise BenchError(f"bench/link_end failed: {said.strip() or 'without a word'}")
        return [json.loads(line) for line in lines]

    def measure(self, verb, argument, window_ms=WINDOW_MS):
        """Frames and bytes of records a second, and what the sender counted."""
        for process in self.processes:
            process.stdin.write(f"{verb} {window_ms} {argument}\n")
            process.stdin.flush()
        got, sent = self.answers()
        return {"frames": got["frames"] * 1e9 / got["ns"],
                "bytes": got["bytes"] * 1e9 / got["ns"], **sent}

    def raw(self):
        return self.measure("raw", frame_bytes(self.row))

    def carry(self):
        return self.measure("carry", frame_bytes(self.row))

    def weir(self, faults="-", window_ms=WINDOW_MS):
        return self.measure("weir", faults, window_ms)

    def tcp(self):
        return self.measure("tcp", self.hello[0]["tcp"])


# ---- rows ----

def some(take):
    """What came in a window; again when nothing did, for then one of both had no core."""
    for _ in range(WINDOWS_MAX):
        got = take()
        if got["frames"] > 0:
            return got
    raise BenchError(f"no frame came in {WINDOWS_MAX} windows: the machine is overloaded")


def measure_row(build, directory, kind, row, rounds):
    """[{who: what came}, ...], what each port is, and how dpdk-testpmd was started."""
    program, commands = testpmd.find(), []
    with contextlib.ExitStack() as stack:
        ends = stack.enter_context(Ends(build, directory, kind, row))
        turns = [("raw", ends.raw), ("weir", ends.weir), ("tcp", ends.tcp)]
        if frame_bytes(row) > HEADERS:
            turns.insert(1, ("carry", ends.carry))
        if program is not None and row[1] <= PEER_FRAME_MAX:
            pair = stack.enter_context(
                testpmd.Pair(program, directory, kind, frame_bytes(row), two_cores()))
            commands = [end.command for end in (pair.receiver, pair.sender)]
            turns.insert(1, ("testpmd", lambda: pair.measure(WINDOW_MS)))
        ends.weir()  # the first warms the memory up
        found = [{who: some(take) for who, take in turns} for _ in range(rounds)]
        return found, [hello["port"] for hello in ends.hello], commands


def measure_rows(build, directory, rounds):
    """{(kind, row): [{who: what came}, ...]}; what each port is; how dpdk-testpmd was started."""
    found, ports, commands = {}, {}, {}
    for kind in KINDS:
        for row in ROWS:
            say(f"{kind}, frames of {row[0]}: {rounds} rounds")
            found[kind, row[0]], ports[kind], said = measure_row(
                build, directory, kind, row, rounds)
            commands[kind] = said or commands.get(kind, [])
    return found, ports, commands


def ratio(rounds, who, than, what):
    """Of a number in each round; None where nobody stood there."""
    if any(name not in r for r in rounds for name in (who, than)):
        return None
    return spread([r[who][what] / r[than][what] for r in rounds])


def describe(rounds):
    """One row of numbers."""
    d = {f"{who}_{what}": spread([r[who][what] for r in rounds])
         for who in rounds[0] for what in ("frames", "bytes")}
    return {**d, "testpmd_ratio": ratio(rounds, "weir", "testpmd", "frames"),
            "raw_ratio": ratio(rounds, "weir", "raw", "frames"),
            "carry_ratio": ratio(rounds, "weir", "carry", "frames"),
            "tcp_ratio": ratio(rounds, "weir", "tcp", "bytes"),
            "resent": sum(r["weir"]["resent"] for r in rounds),
            "rtt_us": statistics.median(r["weir"]["rtt_us"] for r in rounds)}


def millions(numbers, width):
    """Their middle; a dash for nobody."""
    return f"{'-':>{width}}" if numbers is None else f"{numbers['median'] / 1e6:>{width}.2f}"


def times(numbers, digits):
    """A ratio and its spread."""
    if numbers is None:
        return f"{'-':>5} {'':<11}"
    low, high = f"{numbers['min']:.{digits}f}", f"{numbers['max']:.{digits}f}"
    return f"{numbers['median']:>5.{digits}f} {low:>5}-{high:<5}"


def line(kind, name, d):
    """One row for people."""
    return (f"{kind:<6} {name:<13} {millions(d.get('testpmd_frames'), 7)} "
            f"{millions(d['raw_frames'], 6)} {millions(d.get('carry_frames'), 6)} "
            f"{millions(d['weir_frames'], 6)}  "
            f"{times(d['testpmd_ratio'], 2)} {times(d['carry_ratio'], 2)} "
            f"{d['weir_bytes']['median'] / 1e6:>7.0f} {d['tcp_bytes']['median'] / 1e6:>6.0f} "
            f"{times(d['tcp_ratio'], 1)}").rstrip()


# ---- loss ----

def measure_loss(build, directory, rounds):
    """{loss: [bytes a second, ...]}, in rounds over all of them, and how many were sent again."""
    row = next(r for r in ROWS if r[0] == "1518, 32 KiB")
    found = {loss: [] for loss in LOSSES}
    with Ends(build, directory, "memif", row) as ends:
        ends.weir()
        for i in range(rounds):
            say(f"goodput against loss: round {i + 1} of {rounds}")
            for loss in LOSSES:
                found[loss].append(
                    some(lambda: ends.weir(f"seed={i + 1},loss={loss}", LOSS_WINDOW_MS)))
    return found


def describe_loss(found):
    """Each loss: goodput, and as a share of that without any in the same round."""
    clean = [m["bytes"] for m in found[0]]
    return [{"loss": loss, "bytes": spread([m["bytes"] for m in ms]),
             "share": spread([m["bytes"] / c for m, c in zip(ms, clean)]),
             "resent": sum(m["resent"] for m in ms)} for loss, ms in found.items()]


def loss_line(d):
    """One loss for people."""
    share = d["share"]
    return (f"{100 * d['loss']:>6.1f} % {d['bytes']['median'] / 1e6:>9.0f} "
            f"{share['median']:>6.2f} {share['min']:>5.2f}-{share['max']:<5.2f}")


# ---- the bench ----

def breaches_of(data):
    """What is out of bounds."""
    if any(row["testpmd_ratio"] is None for row in data["rows"] if row["frames"] in BOUNDS):
        yield f"the bounds against dpdk-testpmd are not judged: {testpmd.MISSING}"
    for row in data["rows"]:
        name, kind = row["frames"], row["kind"]
        beside, tcp = row["testpmd_ratio"], row["tcp_ratio"]["median"]
        if beside is not None and beside["median"] < BOUNDS.get(name, 0):
            yield (f"{kind}, frames of {name}: {beside['median']:.2f} of dpdk-testpmd, "
                   f"{BOUNDS[name]} at least")
        if tcp < TCP_BOUNDS.get(name, 0):
            yield f"{kind}, frames of {name}: {tcp:.1f} times TCP, {TCP_BOUNDS[name]:.0f} at least"
    for d in data["loss"]:
        if d["loss"] == 0.001 and d["share"]["median"] < 1 - LOSS_BOUND:
            yield (f"0.1 % of loss costs {100 - 100 * d['share']['median']:.0f} %, "
                   f"{100 * LOSS_BOUND:.0f} % at most")


class LinkResult(Result):
    """Its picture is goodput against loss."""

    def plot(self, path):
        curve = [(100 * d["loss"], d["bytes"]["median"] / 1e6) for d in self.data["loss"]]
        plot_curves(path, {"goodput, memif, frames of 1518": curve}, "% of frames lost", "MB/s")


def print_table(data):
    """All of it for people."""
    return "\n".join([
        f"two processes, a core each; {MACHINE}",
        f"dpdk-testpmd: {data['testpmd'] or 'SKIPPED, ' + testpmd.MISSING}",
        "bare: rte_eth_tx_burst and rte_eth_rx_burst in the link's own processes; all in bursts "
        "of 32",
        "weir at 64: buffers of 64 bytes of records, several of them to a frame",
        "carry: bare, out of buffers and into buffers as a link must: its ceiling",
        f"{'':<6} {'':<13} {'million frames/s':^28}  {'weir, of testpmd':<17} {'of carry':<17} "
        f"{'MB/s of records':^14}",
        f"{'port':<6} {'frame, flush':<13} {'testpmd':>7} {'bare':>6} {'carry':>6} {'weir':>6}  "
        f"{'':<17} {'':<17} {'weir':>7} {'TCP':>6} {'times':>5}",
        *(line(r["kind"], r["frames"], r) for r in data["rows"]),
        "", f"{'loss':>8} {'MB/s':>9} {'of it without':>12}   (memif, 1518, both ways)",
        *(loss_line(d) for d in data["loss"]), "",
        *(f"{kind}, {role}: {command}" for kind, both in data["testpmd_commands"].items()
          for role, command in zip(("receiver", "sender"), both))])


def run(build, seconds):
    rounds = max(ROUNDS_MIN, int(seconds / ROUND_S)) if seconds else ROUNDS_PRESET
    began = time.monotonic()
    with Scratch(build) as scratch:
        found, ports, commands = measure_rows(build, scratch, rounds)
        loss = describe_loss(measure_loss(build, scratch, LOSS_ROUNDS))
    rows = [{"kind": kind, "frames": name, **describe(rounds_)}
            for (kind, name), rounds_ in found.items()]
    data = {"testpmd": testpmd.find(), "testpmd_commands": commands, "bare_loop": "bench/link_end",
            "ports": ports, "rows": rows, "loss": loss, "seconds": time.monotonic() - began}
    result = LinkResult(print_table(data), data, {}, "MB/s")
    result.breaches.extend(breaches_of(data))
    return result
