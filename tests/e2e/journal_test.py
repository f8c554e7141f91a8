"""A nic-source with a journal: kill -9 of the TaskManager at random moments, and what comes out
is what an independent reader finds in the journal, each packet once."""

import os
import random
import socket
import threading
import time
import urllib.error

from captures import output_totals
from harness import expect, expect_equal
from namespaces import Hosts, inside
from nic_source_test import LIVE, counters, frame, run
from processes import end
from journals import Keeper, read_journal

TIMEOUT = 120
FRAMES, RATE, KILLS = 30_000, 8_000, 4
LAG = 1 << 20


class Sender:
    """Sends frames evenly until it is told to stop; how many it sent."""

    def __init__(self, hosts):
        self.hosts, self.count = hosts, 0
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.send)
        self.thread.start()

    def send(self):
        with inside(self.hosts.hub), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
            s.bind(("gen0", 0))
            begun = time.monotonic()
            while not self.is_over.is_set():
                s.send(frame(self.count))
                self.count += 1
                if self.count % 50 == 0:
                    time.sleep(max(0.0, begun + self.count / RATE - time.monotonic()))

    def close(self):
        self.is_over.set()
        self.thread.join()


def totals_of(packets):
    totals = {}
    for length, data in packets:
        pair = (socket.inet_ntoa(data[26:30]), socket.inet_ntoa(data[30:34]))
        count, octets = totals.get(pair, (0, 0))
        totals[pair] = (count + 1, octets + length)
    return totals


def kill_at_random(w, r, kills, rng):
    """Each time at work again: a checkpoint has completed since."""
    for _ in range(kills):
        w.wait_for_checkpoint(w.newest_checkpoint("kills") + 1, "kills")
        time.sleep(rng.uniform(0, 0.4))
        taskmanagers = r.taskmanagers()
        if not r.is_running() or not taskmanagers:
            return
        end(taskmanagers[0])


def watch(hosts, r):
    """Until the job has ended: its counters as they were last, and the largest `journal_lag`."""
    last, lag = {}, 0
    while r.is_running():
        try:
            last = counters(hosts, "source") or last
            lag = max(lag, last.get("journal_lag", 0))
        except (OSError, urllib.error.URLError):
            pass
        time.sleep(0.05)
    return {**last, "journal_lag": lag}


def keep_journal(w):
    """All of the journal of `run_journalled`, also what it trims: in "kept"."""
    return Keeper(os.path.join(w.path("journal"), "subtask-0"), w.path("kept"))


def run_journalled(w, hosts, sets, **options):
    """The live job, restarted as often as it is killed; its output is in "out"."""
    return run(w, hosts, LIVE, "kills", sets={
        "source.port": "net_af_packet0", "source.snap": "64 b",
        "source.journal": w.path("journal"), "source.journal-segment": "1 mb",
        "window.size": "1 s", "sink.path": w.path("out"), **sets},
        more={"restart-strategy.type": "fixed-delay",
              "restart-strategy.fixed-delay.attempts": "1000",
              "restart-strategy.fixed-delay.delay": "50 ms"}, **options)


def check_output(w, count, seed):
    """So many packets are in the kept journal, and those in the output."""
    packets = read_journal(w.path("kept"))
    expect_equal(len(packets), count, f"seed {seed}: packets in the journal")
    expect_equal(output_totals(w.lines("out")), totals_of(packets),
                 f"seed {seed}: packets and bytes of the output and of the journal")


def survives(w, hosts, frames, kills, seed):
    rng = random.Random(seed)
    keeper = keep_journal(w)
    sender = None
    try:
        r = run_journalled(w, hosts, {"source.frames": frames,
                                      "source.journal-lag": f"{LAG} b"})
        sender = Sender(hosts)
        kill_at_random(w, r, kills, rng)
        last = watch(hosts, r)
        summary = r.summary()
    finally:
        keeper.close()
        if sender is not None:
            sender.close()
    check_output(w, frames, seed)
    expect(last.get("journal_lag", 0) <= LAG, f"seed {seed}: bytes that were not durable: {last}")
    ours = w.weir_json("inspect", w.path("kept"))
    expect_equal((ours["whole"], ours["journals"][0]["packets"]), (True, frames),
                 f"seed {seed}: packets that weir inspect finds")
    return sender.count, last, summary


def test(w):
    hosts = Hosts(1)
    try:
        Hosts.join(hosts.hub, "gen0", hosts.hosts[0], "eth0")
        seed = random.randrange(1 << 32)
        sent, last, summary = survives(w, hosts, FRAMES, KILLS, seed)
        expect(summary["restarts"] >= 1, f"restarts: {summary}")
        expect(sent >= FRAMES, f"{sent} sent")
        expect(last["replayed"] > 0 and last["trimmed"] > 0, f"{last}")
        expect_equal(last["journal_gap"], 0, "packets that were asked for and not there")
        print(f"{sent} sent, {FRAMES} journalled, {sent - FRAMES} never got that far, "
              f"{last['replayed']} read again")
    finally:
        hosts.close()
