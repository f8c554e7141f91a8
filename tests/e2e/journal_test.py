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


def survives(w, hosts, frames, kills, seed):
    rng = random.Random(seed)
    journal = w.path("journal")
    keeper = Keeper(os.path.join(journal, "subtask-0"), w.path("kept"))
    sender = None
    try:
        r = run(w, hosts, LIVE, "kills", sets={
            "source.port": "net_af_packet0", "source.frames": frames, "source.snap": "64 b",
            "source.journal": journal, "source.journal-segment": "1 mb",
            "source.journal-lag": f"{LAG} b", "window.size": "1 s",
            "sink.path": w.path("out")}, more={"restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1000",
            "restart-strategy.fixed-delay.delay": "50 ms"})
        sender = Sender(hosts)
        kill_at_random(w, r, kills, rng)
        last = watch(hosts, r)
        summary = r.summary()
    finally:
        keeper.close()
        if sender is not None:
            sender.close()
    packets = read_journal(w.path("kept"))
    expect_equal(len(packets), frames, f"seed {seed}: packets in the journal")
    expect_equal(output_totals(w.lines("out")), totals_of(packets),
                 f"seed {seed}: packets and bytes of the output and of the journal")
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
