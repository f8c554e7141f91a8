"""A job over two TaskManagers at taps of two queues, joined by a bridge, gives what it gives on
one; its frames come to their queue by flow rules where the kernel has them for a tap, and where
not, are handed over by ring from where it puts them.  A packet source shares a tap's two queues."""

import os
import re
import socket
import time

from captures import flows_capture, output_totals
from harness import Skip, expect, expect_equal, expect_same_lines
from namespaces import Hosts, inside, ip
from nic_queues_test import accounted, finish, job
from nic_source_test import counters, frame, totals_of

ALONE = True  # namespaces have names
TIMEOUT = 60
TAPS = "--vdev=net_tap0,iface=tap%d"  # the kernel numbers them
NO_RULES = "Disabling rte flow support"
PACKETS = 4000


def log_of(w, state, i):
    path = w.path(state, "logs", f"taskmanager-{i}.log")
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as log:
        return log.read()


def join_taps(w, host):
    """The process has the address that a tap came with, so the bridge must not."""
    for i in (0, 1):
        w.wait_for(lambda i=i: "registered as" in log_of(w, "linked", i), "its tap is up")
    for i in (0, 1):
        ip("-n", host, "link", "set", f"tap{i}", "address", f"02:00:00:00:01:0{i}")
        ip("-n", host, "link", "set", f"tap{i}", "master", "wire")


def linked(w, host):
    capture = flows_capture(w.path("in.pcap"), 40_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    ip("-n", host, "link", "add", "wire", "up", "type", "bridge")
    run = w.flow(capture, "out", rate=20_000, state="linked", options=("--taskmanagers", "2"),
                 prefix=("ip", "netns", "exec", host),
                 config={"weir.link.port": "net_tap0", "weir.eal.args": TAPS,
                         "weir.job.taskmanagers": 2})
    join_taps(w, host)
    summary = run.summary()
    expect_equal(summary["restarts"], 0, "restarts")
    expect_same_lines(w.lines("out"), w.lines("calm"), "output")
    for i in (0, 1):
        log = log_of(w, "linked", i)
        how = ("by ring from where the device puts them" if NO_RULES in log
               else "by flow rules for UDP ports")
        said = re.search(r"link: net_tap0 .*", log)
        expect(said and f"2 queue pairs, to which frames come {how}" in said[0],
               f"{how}: {said and said[0]}")
    check_handed_over(summary["link"], NO_RULES in log)


def check_handed_over(link, is_by_ring):
    """The kernel spreads by a hash of its own: of those few flows, maybe all of them well."""
    expect(link["frames"] > 100, f"frames over the link: {link}")
    if not is_by_ring:
        expect_equal(link["handed_over"], 0, "frames handed over in spite of rules")


def put(host, frames):
    """Into the tap, as the kernel does with what it sends."""
    with inside(host), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind(("tap0", 0))
        for i, data in enumerate(frames):
            s.send(data)
            if i % 50 == 49:
                time.sleep(0.005)


def shared(w, hosts):
    """Both queues have a subtask, and every packet is of one."""
    host = hosts.hosts[0]
    run = w.run(job(w), {"source.port": "net_tap0", "window.size": "1 s",
                         "sink.path": w.path("packets")}, state="packets",
                config={"weir.nic.ports": "net_tap0", "weir.eal.args": TAPS,
                        "rest.bind-port": "8081"}, prefix=("ip", "netns", "exec", host))
    w.wait_for_checkpoint(1, "packets")
    frames = [frame(i) for i in range(PACKETS)]
    put(host, frames)
    w.wait_for(lambda: accounted(hosts, PACKETS), "the ledger adds up", 10)
    each = [counters(hosts, "source", subtask)["frames"] for subtask in (0, 1)]
    expect(all(count > PACKETS // 10 for count in each), f"packets of each subtask: {each}")
    finish(w, hosts, "packets", run)
    expect_equal(output_totals(w.lines("packets")), totals_of(frames), "packets and bytes")
    expect("2 queues, to which they come as the driver spreads them"
           in log_of(w, "packets", 0), "the driver spreads them")


def test(w):
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        raise Skip("no /dev/net/tun here (modprobe tun)")
    hosts = Hosts(1)
    try:
        # What the kernel would say by itself at a new interface is no packet of ours.
        Hosts.set(hosts.hosts[0], "net.ipv6.conf.default.disable_ipv6", 1)
        linked(w, hosts.hosts[0])
        shared(w, hosts)
    finally:
        hosts.close()
