"""A job over TaskManagers on hosts of their own, joined by net_af_packet over veth, gives what it
gives on one: two or three of them, with aligned and unaligned checkpoints, jumbo frames, and when
each is killed; and so do two on the same host."""

import json
import re

from clusters import FlowJob
from harness import expect, expect_equal, expect_same_lines
from namespaces import Hosts, ip

ALONE = True  # namespaces have names
TIMEOUT = 120


def taskmanager(arguments="", **more):
    return {"weir.link.port": "net_af_packet0",
            "weir.eal.args": f"--vdev=net_af_packet0,iface=eth1{arguments}", **more}


def bridge(hosts, count):
    """A switch in the hub with a host at each of its ports."""
    ip("-n", hosts.hub, "link", "add", "data", "type", "bridge")
    ip("-n", hosts.hub, "link", "set", "data", "up")
    for i in range(count):
        hosts.join(hosts.hub, f"data{i}", hosts.hosts[i], "eth1", mtu=9000)
        ip("-n", hosts.hub, "link", "set", f"data{i}", "master", "data")


def watch(cluster):
    """Both count what they send and hear."""
    def counts():
        text = cluster.ask("/metrics")
        return all(len(re.findall(rf"^weir_taskmanager_link_{name}\{{.*\}} [1-9]", text, re.M)) == 2
                   for name in ("framesSent", "framesReceived", "roundTripNanoseconds",
                                "windowFrames", "links"))
    cluster.world.wait_for(counts, "link metrics of both TaskManagers")
    one = json.loads(cluster.ask("/taskmanagers"))["taskmanagers"][0]["weir"]
    expect("net_af_packet0 (net_af_packet)" in one["linkPort"], f"the port: {one}")


def kill_each(cluster):
    w = cluster.world
    for i in range(len(cluster.own)):
        newest = w.newest_checkpoint("three")
        w.wait_for_checkpoint(newest + 3, "three")
        cluster.kill_taskmanager(i)
        cluster.start_taskmanager(i)


def on_one_host(w, hosts, job):
    """Neighbouring interfaces of one namespace, and processes that are started one after the other:
    net_af_packet would give their sockets the same group at times."""
    hosts.join(hosts.hub, "end0", hosts.hub, "end1")
    summary = w.flow(job.capture, "one", rate=40_000, state="one",
                     prefix=("ip", "netns", "exec", hosts.hub),
                     options=("--taskmanagers", "2", "--link", "af_packet:end0,end1")).summary()
    expect_equal(summary["restarts"], 0, "restarts on one host")
    expect(summary["link"]["frames"] > 0, f"frames: {summary['link']}")
    expect_same_lines(w.lines("one"), job.wanted, "output on one host")


def test(w):
    hosts = Hosts(3)
    try:
        bridge(hosts, 3)
        job = FlowJob(w, hosts)

        large = taskmanager(",qpairs=2,framesz=12288,blocksz=12288", **{"weir.link.mtu": 9000})
        summary, logs = job.run("two", [large] * 2, disturb=watch)
        expect_equal(summary["restarts"], 0, "restarts")
        expect(all("(net_af_packet): frames to 9014 bytes" in log for log in logs), f"{logs}")
        expect(all("2 queue pairs" in log and "by ring" in log for log in logs), f"{logs}")

        summary, logs = job.run("three", [taskmanager()] * 3, rate=8_000, disturb=kill_each,
                                config={"execution.checkpointing.unaligned.enabled": "true"})
        expect(summary["restarts"] >= 3, f"the job was restarted for each: {summary}")
        expect(all("tasks of job" in log for log in logs), f"each had tasks: {logs}")
        on_one_host(w, hosts, job)
    finally:
        hosts.close()
