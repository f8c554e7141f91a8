"""link: frames and payload a second between two processes, against bare bursts and TCP.

Two processes of bench/link_end.c, one on either core, joined by memif and by vhost/virtio-user.  On
the same ports in the same processes take turns: buffers over the product's reliable link; frames
of the same size by rte_eth_tx_burst and rte_eth_rx_burst alone, which is what dpdk-testpmd does
in txonly and rxonly; and the same buffers over TCP on the loopback, a write for each flush.
A frame of 64 bytes is too small for a link's headers: the bare loop sends those of 64, the link
buffers of 64 bytes of records, of which several that wait share a frame.  Then goodput over a wire
that loses frames, both ways, by the product's own fault wrapper.
"""

import json
import os
import statistics
import subprocess
import time

from bench.harness import (MACHINE, BenchError, Result, Scratch, plot_curves, say, spread,
                           two_cores)

ABOUT = "frames a second between processes, against bare bursts and TCP; goodput against loss"
NEEDS = "two cores; about a minute and a half"
TARGETS = ["bench/link_end"]

HEADERS = 94       # in front of the records of a frame: Ethernet, IPv4, UDP, weir
CHECK_BYTES = 4    # of a frame on a cable, which its size names and no port here carries
# What a row is called, frame size, frames a buffer, channels, credit of each.
ROWS = [("64", 64, 1, 16, 40), ("256", 256, 1, 16, 40), ("1518", 1518, 1, 16, 40),
        ("1518, 32 KiB", 1518, 23, 4, 8), ("9018, 26 KiB", 9018, 3, 4, 8)]
KINDS = ("memif", "vhost")
BOUNDS = {"64": 0.6, "1518, 32 KiB": 0.9}          # of the bare loop
TCP_BOUNDS = {"1518": 4.0, "1518, 32 KiB": 2.0}    # times TCP
LOSSES = [0, 0.001, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2]
LOSS_BOUND = 0.10
WINDOW_MS, LOSS_WINDOW_MS = 200, 250
ROUNDS_MIN, ROUNDS_PRESET, LOSS_ROUNDS = 2, 4, 3
ROUND_S = 13       # of all rows
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

    def weir(self, faults="-", window_ms=WINDOW_MS):
        return self.measure("weir", faults, window_ms)

    def tcp(self):
        return self.measure("tcp", self.hello[0]["tcp"])


# ---- rows ----

def measure_rows(build, directory, rounds):
    """{(kind, row): [(raw, weir, tcp), ...]}, and what each port is."""
    found, ports = {}, {}
    for kind in KINDS:
        for row in ROWS:
            say(f"{kind}, frames of {row[0]}: {rounds} rounds")
            with Ends(build, directory, kind, row) as ends:
                ports[kind] = [hello["port"] for hello in ends.hello]
                ends.weir()  # the first warms the memory up
                found[kind, row[0]] = [(ends.raw(), ends.weir(), ends.tcp())
                                       for _ in range(rounds)]
    return found, ports


def describe(rounds):
    """One row of numbers."""
    raw, weir, tcp = zip(*rounds)
    return {"raw_frames": spread([r["frames"] for r in raw]),
            "weir_frames": spread([w["frames"] for w in weir]),
            "raw_bytes": spread([r["bytes"] for r in raw]),
            "weir_bytes": spread([w["bytes"] for w in weir]),
            "tcp_bytes": spread([t["bytes"] for t in tcp]),
            "ratio": spread([w["frames"] / r["frames"] for r, w, _ in rounds]),
            "tcp_ratio": spread([w["bytes"] / t["bytes"] for _, w, t in rounds]),
            "resent": sum(w["resent"] for w in weir),
            "rtt_us": statistics.median(w["rtt_us"] for w in weir)}


def line(kind, name, d):
    """One row for people."""
    ratio, tcp = d["ratio"], d["tcp_ratio"]
    return (f"{kind:<6} {name:<13} {d['raw_frames']['median'] / 1e6:>6.2f} "
            f"{d['weir_frames']['median'] / 1e6:>6.2f} {ratio['median']:>6.2f} "
            f"{ratio['min']:>5.2f}-{ratio['max']:<5.2f} {d['weir_bytes']['median'] / 1e6:>7.0f} "
            f"{d['tcp_bytes']['median'] / 1e6:>6.0f} {tcp['median']:>6.1f} "
            f"{tcp['min']:>5.1f}-{tcp['max']:<5.1f}")


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
                found[loss].append(ends.weir(f"seed={i + 1},loss={loss}", LOSS_WINDOW_MS))
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
    for row in data["rows"]:
        name, kind = row["frames"], row["kind"]
        ratio, tcp = row["ratio"]["median"], row["tcp_ratio"]["median"]
        if ratio < BOUNDS.get(name, 0):
            yield (f"{kind}, frames of {name}: {ratio:.2f} of the bare loop, "
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
        "bare loop: bench/link_end.c, rte_eth_tx_burst and rte_eth_rx_burst, bursts of 32",
        f"{'':<6} {'':<13} {'million frames/s':^20} {'':<11} {'MB/s of records':^21}",
        f"{'port':<6} {'frame, flush':<13} {'bare':>6} {'weir':>6} {'ratio':>6} {'':<11} "
        f"{'weir':>7} {'TCP':>6} {'times':>6}",
        *(line(r["kind"], r["frames"], r) for r in data["rows"]),
        "", f"{'loss':>8} {'MB/s':>9} {'of it without':>12}   (memif, 1518, both ways)",
        *(loss_line(d) for d in data["loss"])])


def run(build, seconds):
    rounds = max(ROUNDS_MIN, int(seconds / ROUND_S)) if seconds else ROUNDS_PRESET
    began = time.monotonic()
    with Scratch(build) as scratch:
        found, ports = measure_rows(build, scratch, rounds)
        loss = describe_loss(measure_loss(build, scratch, LOSS_ROUNDS))
    rows = [{"kind": kind, "frames": name, **describe(rounds_)}
            for (kind, name), rounds_ in found.items()]
    data = {"bare_loop": "bench/link_end", "ports": ports, "rows": rows, "loss": loss,
            "seconds": time.monotonic() - began}
    result = LinkResult(print_table(data), data, {}, "MB/s")
    result.breaches.extend(breaches_of(data))
    return result
