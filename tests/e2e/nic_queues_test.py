"""Packets of one port for two subtasks: from two queues that the driver fills, and from one queue
whose packets they share by ring; the ledger of both together adds up, also over a kill -9."""

import os
import time

from captures import output_totals
from harness import expect, expect_equal
from namespaces import Hosts
from nic_source_test import FRAMES, LIVE, LOSSES, counters, frame, run, send, totals_of
from processes import end

ALONE = True  # namespaces have names
TIMEOUT = 120
RATE = 10_000  # packets a second that nothing here loses


def job(w):
    """That of the live metering, its source twice."""
    with open(LIVE, encoding="utf-8") as file:
        text = file.read()
    return w.write("two.yaml", text.replace("parallelism: 1 ", "parallelism: 2 "))


def begin(w, hosts, name, queues):
    vdev = f"--vdev=net_af_packet0,iface=eth0,framecnt=4096,qpairs={queues}"
    return run(w, hosts, job(w), name, sets={"source.port": "net_af_packet0", "window.size": "1 s",
               "sink.path": w.path(name + "-out")}, more={"weir.eal.args": vdev})


def accounted(hosts, frames):
    """The counters once they tell of all frames."""
    c = counters(hosts, "source")
    return c if sum(c.get(n, 0) for n in ("frames", *LOSSES)) == frames else None


def finish(w, hosts, name, r):
    w.command(["ip", "netns", "exec", hosts.hosts[0], w.program("weir"), "stop",
               "flow-metering-live", "--savepoint", w.path(name + "-savepoint"), "--drain"])
    return r.summary()


def log_of(w, name):
    with open(w.path(name, "logs", "taskmanager-0.log"), encoding="utf-8") as log:
        return log.read()


def both_take(w, hosts, name, queues, how):
    frames = [frame(i) for i in range(FRAMES)]
    r = begin(w, hosts, name, queues)
    send(hosts, frames, int(RATE / w.factor))
    c = w.wait_for(lambda: accounted(hosts, FRAMES), "the ledger adds up", 10)
    each = [counters(hosts, "source", subtask)["frames"] for subtask in (0, 1)]
    summary = finish(w, hosts, name, r)
    expect_equal((summary["ledger"]["source"]["packets"], summary["ledger"]["source"]["taken"]),
                 (FRAMES, FRAMES), "packets of the summary")
    expect(all(count > FRAMES // 10 for count in each), f"packets of each subtask: {each}")
    expect_equal(c["queues"], queues, "queues of both")
    expect_equal(sum(c[n] for n in LOSSES), 0, "losses")
    expect_equal(output_totals(w.lines(name + "-out")), totals_of(frames), "packets and bytes")
    expect(how in log_of(w, name), f"{how} in force")
    return c


def all_are_accounted_for_after_a_kill(w, hosts):
    """A new process has a port that counted nothing: its ledger is of what came since."""
    r = begin(w, hosts, "killed", 2)
    send(hosts, [frame(i) for i in range(2000)], int(RATE / w.factor))
    w.wait_for(lambda: accounted(hosts, 2000), "the ledger adds up", 10)
    w.wait_for_checkpoint(w.newest_checkpoint("killed") + 1, "killed")
    end(r.taskmanagers()[0])
    w.wait_for(lambda: log_of(w, "killed").count("2 tasks take packets from 2 queues") == 2,
               "both subtasks are there again", 20)
    time.sleep(0.2)
    before = counters(hosts, "source")
    known = sum(before[n] for n in ("frames", *LOSSES))
    send(hosts, [frame(i) for i in range(2000)], int(RATE / w.factor))
    w.wait_for(lambda: accounted(hosts, known + 2000), "and again", 10)
    summary = finish(w, hosts, "killed", r)
    expect(summary["restarts"] > 0, "restarts")


def test(w):
    hosts = Hosts(1)
    try:
        Hosts.join(hosts.hub, "gen0", hosts.hosts[0], "eth0")
        c = both_take(w, hosts, "fanned", 2, "as the driver spreads them")
        expect_equal(c["handed"], 0, "packets handed over")
        c = both_take(w, hosts, "handed", 1, "by a hash, handed over by ring")
        expect(c["handed"] > FRAMES // 10, f"packets handed over: {c['handed']}")
        if (os.cpu_count() or 1) >= 2:
            all_are_accounted_for_after_a_kill(w, hosts)
    finally:
        hosts.close()
