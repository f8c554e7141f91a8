"""The ledger over a kill -9, against the generator's own count.  Without a journal: lost is exactly
what `unsafe` said, all else is in the output once.  With one: what an independent reader finds in
the journal is in the output once, and nothing is lost that was said to be safe before the kill."""

import os
import threading
import time

from captures import output_totals
from harness import expect, expect_equal
from journals import Keeper, read_journal
from namespaces import Hosts
from nic_source_test import LIVE, LOSSES, counters, frame, run, send
from processes import end

ALONE = True  # namespaces have names
TIMEOUT = 60
RATE = 8_000  # packets a second
NEVER = "1 d"  # between checkpoints: there are those that are asked for
LATER, STREAM, AFTER = 1500, 6000, 1000


def begin(w, hosts, name, interval, **sets):
    return run(w, hosts, LIVE, name, sets={
        "source.port": "net_af_packet0", "source.snap": "64 b", "window.size": "1 s",
        "sink.path": w.path(name + "-out"),
        **{f"source.{key}": value for key, value in sets.items()}},
        more={"execution.checkpointing.interval": interval}, vdev="framecnt=4096",
        is_covered=interval != NEVER)


def known(c):
    return sum(c.get(n, 0) for n in ("frames", *LOSSES))


def send_all(w, hosts, first, count):
    send(hosts, [frame(i) for i in range(first, first + count)], int(RATE / w.factor))


def take_checkpoint(w, hosts):
    """False: the job is not ready for one."""
    status, _, _ = w.command(["ip", "netns", "exec", hosts.hosts[0], w.program("weir"),
                              "checkpoint", "flow-metering-live"])
    return status == 0


def kill_and_wait(w, r, name):
    """Until another process takes packets from the port."""
    def log():
        with open(w.path(name, "logs", "taskmanager-0.log"), encoding="utf-8") as file:
            return file.read()
    end(r.taskmanagers()[0])
    w.wait_for(lambda: log().count("1 task takes packets from") == 2, "the port is taken again", 20)
    time.sleep(0.1)


def finish(w, hosts, r, name):
    """Packets in the committed output."""
    w.command(["ip", "netns", "exec", hosts.hosts[0], w.program("weir"), "stop",
               "flow-metering-live", "--savepoint", w.path(name + "-savepoint"), "--drain"])
    expect(r.summary()["restarts"] > 0, "restarts")
    return sum(count for count, _ in output_totals(w.lines(name + "-out")).values())


def lost_is_what_unsafe_said(w, hosts):
    """Nothing comes while the process is dead, so that what is lost is what it had taken."""
    r = begin(w, hosts, "bare", NEVER)
    w.wait_for(lambda: take_checkpoint(w, hosts), "the port is taken")
    send_all(w, hosts, 0, 1000)
    w.wait_for(lambda: counters(hosts, "source")["frames"] == 1000, "those are taken", 5)
    expect(take_checkpoint(w, hosts), "a checkpoint")
    w.wait_for(lambda: counters(hosts, "source")["unsafe"] == 0, "it covers all of those", 5)
    send_all(w, hosts, 1000, LATER)
    before = w.wait_for(lambda: (c := counters(hosts, "source"))["frames"] == 1000 + LATER and c,
                        "all are taken", 5)
    expect_equal(known(before), 1000 + LATER, "the ledger of the first process")
    expect_equal(before["unsafe"], LATER, "what a failure would lose now")
    kill_and_wait(w, r, "bare")
    w.wait_for(lambda: known(counters(hosts, "source")) == 1000,
               "what the checkpoint covered is known to the second process", 5)
    send_all(w, hosts, 1000 + LATER, AFTER)
    after = w.wait_for(lambda: (c := counters(hosts, "source"))["frames"] == 1000 + AFTER and c,
                       "all are taken", 5)
    packets = finish(w, hosts, r, "bare")
    sent = 1000 + LATER + AFTER
    expect_equal(packets, 1000 + AFTER, "packets in the output")
    expect_equal(sent, known(after) + before["unsafe"], "sent = known + lost with the kill")


def lost_is_what_was_not_in_the_journal(w, hosts):
    """The kill falls into the stream, which goes on while nobody takes it."""
    journal = w.path("journal")
    keeper = Keeper(os.path.join(journal, "subtask-0"), w.path("kept"))
    try:
        r = begin(w, hosts, "kept-job", "100 ms", journal=journal, **{"journal-segment": "1 mb"})
        sender = threading.Thread(target=send_all, args=(w, hosts, 0, STREAM))
        sender.start()
        told = w.wait_for(lambda: (c := counters(hosts, "source"))["frames"] > STREAM // 10 and c,
                          "it is at work", 5)
        kill_and_wait(w, r, "kept-job")
        sender.join()
        time.sleep(0.2)
        keeper.link()
        count = len(read_journal(w.path("kept")))
        w.wait_for(lambda: (c := counters(hosts, "source"))["frames"] == count and
                   c["journal_pending"] == 0, f"the {count} packets of the journal are known", 5)
        lost = STREAM - count
        safe = told["frames"] + told["journal_pending"] - told["unsafe"]
        expect(0 < lost <= STREAM - safe, f"{lost} lost of {STREAM}, {safe} were safe: {told}")
        send_all(w, hosts, STREAM, AFTER)
        w.wait_for(lambda: counters(hosts, "source")["frames"] == count + AFTER,
                   "what comes to the second process is known", 5)
        packets = finish(w, hosts, r, "kept-job")
    finally:
        keeper.close()
    expect_equal(len(read_journal(w.path("kept"))), count + AFTER, "packets in the journal")
    expect_equal(packets, count + AFTER, "packets in the output, each once")
    expect_equal(STREAM + AFTER, packets + lost, "sent = known + lost with the kill")


def test(w):
    hosts = Hosts(1)
    try:
        Hosts.join(hosts.hub, "gen0", hosts.hosts[0], "eth0")
        lost_is_what_unsafe_said(w, hosts)
        lost_is_what_was_not_in_the_journal(w, hosts)
    finally:
        hosts.close()
