"""A nic-source with a journal takes what dpdk-testpmd sends; kill -9 of the TaskManager at random
moments: what comes out is what an independent reader finds in the journal, each packet once, and
what testpmd says it sent beyond that was lost with the kills."""

import os
import random
import sys
import threading
import time

from harness import ROOT, Skip, expect, expect_equal
from journal_test import check_output, keep_journal, run_journalled
from namespaces import Hosts, inside
from nic_source_test import counters
from processes import end

sys.path.append(ROOT)
from bench import testpmd  # noqa: E402  pylint: disable=wrong-import-position

KILLS = 3
FRAME_BYTES = 124
BURSTS = 8  # of 32 packets, some thirty times a second
LOST = ("missed", "no_buffer", "errors", "ring_full")
HEARTBEATS_S = 0.4  # the counters are told every 100 ms


class Generator:
    """A dpdk-testpmd at one end of the cable, which sends some bursts, and some bursts again, while
    it is told to; no disk is too slow for so many."""

    def __init__(self, w, hosts):
        self.program = testpmd.find()
        if self.program is None:
            raise Skip(testpmd.MISSING)
        with inside(hosts.hub):
            self.testpmd = testpmd.Testpmd(
                self.program, w.dir, min(os.sched_getaffinity(0)),
                ["--vdev=net_af_packet0,iface=gen0"], "rxonly", FRAME_BYTES,
                ("--txonly-multi-flow", "--burst=32"))
        self.testpmd.await_link()
        self.must_stop = threading.Event()
        self.thread = None

    def send(self):
        while not self.must_stop.is_set():
            self.testpmd.ask(f"start tx_first {BURSTS}")
            self.testpmd.ask("stop")

    def resume(self):
        self.must_stop.clear()
        self.thread = threading.Thread(target=self.send)
        self.thread.start()

    def pause(self):
        """Packets sent so far, as testpmd says."""
        self.must_stop.set()
        if self.thread is not None:
            self.thread.join()
            self.thread = None
        return self.testpmd.counters()["tx"]

    def close(self):
        self.pause()
        self.testpmd.__exit__()


def settled(w, hosts):
    """The counters, when nothing has come for a while and all that came has gone on."""
    def look():
        before = counters(hosts, "source")
        time.sleep(HEARTBEATS_S * w.factor)
        after = counters(hosts, "source")
        names = ("journalled", "journal_pending", *LOST)
        return after if all(before.get(n) == after.get(n) for n in names) and \
            after.get("journal_pending") == 0 else None

    return w.wait_for(look, "all that was sent has gone on", 10)


def kill(w, hosts, r, number, rng):
    """At a random moment of the stream; packets that were durable before.  It goes on when another
    process takes the packets."""
    def log():
        with open(w.path("kills", "logs", "taskmanager-0.log"), encoding="utf-8") as file:
            return file.read()

    w.wait_for_checkpoint(w.newest_checkpoint("kills") + 1, "kills")
    time.sleep(rng.uniform(0, 0.4))
    durable = counters(hosts, "source")["journalled"]
    end(r.taskmanagers()[0])
    w.wait_for(lambda: log().count("1 task takes packets from") == number + 1,
               "the port is taken again", 20)
    time.sleep(rng.uniform(0.1, 0.3))
    return durable


def stream(w, hosts, r, generator, kills, rng):
    """What was lost with each kill, how many were sent, and the counters at the end."""
    lost = []
    for number in range(1, kills + 1):
        generator.resume()
        durable = kill(w, hosts, r, number, rng)
        sent = generator.pause()
        c = settled(w, hosts)
        expect(durable <= c["journalled"] <= sent,
               f"kill {number}: {durable} were durable before, {c['journalled']} of {sent} are now")
        lost.append(sent - c["journalled"] - sum(lost))
    generator.resume()
    time.sleep(rng.uniform(0.2, 0.5))
    sent = generator.pause()
    # Nothing but kills takes packets away that the ledger does not know.  That tells of losses a
    # second late: some of the last kill's may be among them.
    before = sum(c[name] for name in LOST)

    def adds_up():
        now = settled(w, hosts)
        more = sent - now["journalled"] - sum(lost)
        return now if 0 <= more <= sum(now[name] for name in LOST) - before else None

    c = w.wait_for(adds_up, f"{sent} sent = journalled + {lost} lost with kills + the losses since")
    return lost, sent, c


def survives(w, hosts, kills, seed):
    """The same, when the output has turned out to be exact."""
    generator = Generator(w, hosts)
    keeper = keep_journal(w)
    try:
        r = run_journalled(w, hosts, {}, vdev="framecnt=4096")
        lost, sent, c = stream(w, hosts, r, generator, kills, random.Random(seed))
        w.command(["ip", "netns", "exec", hosts.hosts[0], w.program("weir"), "stop",
                   "flow-metering-live", "--savepoint", w.path("savepoint"), "--drain"])
        summary = r.summary()
    finally:
        keeper.close()
        generator.close()
    check_output(w, c["journalled"], seed)
    return lost, sent, c, summary


def test(w):
    hosts = Hosts(1)
    try:
        Hosts.join(hosts.hub, "gen0", hosts.hosts[0], "eth0")
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        lost, sent, c, summary = survives(w, hosts, KILLS, seed)
        expect(summary["restarts"] >= KILLS, f"restarts: {summary}")
        expect(all(count > 0 for count in lost), f"seed {seed}: lost with each kill: {lost}")
        expect_equal(c["journal_gap"], 0, "packets that were asked for and not there")
        print(f"{sent} sent, {c['journalled']} journalled, lost with each kill: {lost}")
    finally:
        hosts.close()
