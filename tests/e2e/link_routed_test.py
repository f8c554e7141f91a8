"""A job over two TaskManagers with a router between them gives what it gives on one, by IPv4 and by
IPv6."""

from clusters import FlowJob
from harness import expect_equal
from namespaces import Hosts, ip

ALONE = True  # namespaces have names
TIMEOUT = 120
FOUR = ("198.51.100", "203.0.113"), ".1", ".2", 24
SIX = ("2001:db8:a:", "2001:db8:b:"), ":1", ":2", 64


def mac(name, interface):
    return ip("-n", name, "-br", "link", "show", interface).split()[2]


def route(hosts, nets, router, end, bits):
    """The hub forwards between its two wires; nobody answers ARP there."""
    taskmanagers = []
    for i, net in enumerate(nets):
        wire = f"wire{i}"
        ip("-n", hosts.hub, "addr", "add", f"{net}{router}/{bits}", "dev", wire)
        ip("-n", hosts.hub, "neigh", "add", net + end, "lladdr", mac(hosts.hosts[i], "eth1"),
           "dev", wire)
        taskmanagers.append({
            "weir.link.port": "net_af_packet0", "weir.link.address": net + end,
            "weir.link.gateway": mac(hosts.hub, wire),
            "weir.eal.args": "--vdev=net_af_packet0,iface=eth1"})
    return taskmanagers


def test(w):
    hosts = Hosts(2)
    try:
        for i in range(2):
            hosts.join(hosts.hub, f"wire{i}", hosts.hosts[i], "eth1")
            hosts.set(hosts.hub, f"net.ipv6.conf.wire{i}.disable_ipv6", 0)
        hosts.set(hosts.hub, "net.ipv4.ip_forward", 1)
        hosts.set(hosts.hub, "net.ipv6.conf.all.forwarding", 1)
        job = FlowJob(w, hosts)
        for name, nets in (("four", FOUR), ("six", SIX)):
            summary, _ = job.run(name, route(hosts, *nets))
            expect_equal(summary["restarts"], 0, "restarts")
    finally:
        hosts.close()
