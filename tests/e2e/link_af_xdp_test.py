"""A job over two TaskManagers joined by net_af_xdp over veth gives what it gives on one."""

from captures import flows_capture
from harness import expect, expect_equal, expect_same_lines
from namespaces import Hosts

ALONE = True  # namespaces have names
LINKED = ("--taskmanagers", "2", "--link", "af_xdp:xdp0,xdp1")


def test(w):
    hosts = Hosts(0)
    try:
        hosts.join(hosts.hub, "xdp0", hosts.hub, "xdp1")
        capture = flows_capture(w.path("in.pcap"), 40_000, 600)
        w.flow(capture, "calm", state="calm").summary()
        summary = w.flow(capture, "out", rate=20_000, options=LINKED,
                         config={"execution.checkpointing.unaligned.enabled": "true"},
                         prefix=("ip", "netns", "exec", hosts.hub)).summary()
        expect_equal(summary["restarts"], 0, "restarts")
        expect(summary["checkpoints"]["completed"] > 3, f"checkpoints: {summary}")
        expect_same_lines(w.lines("out"), w.lines("calm"), "output")
    finally:
        hosts.close()
