"""What cannot be joined is one error: frames of two sizes, an MTU that the interface does not
carry, a third TaskManager at a port between two, a peer that is on another network."""

import json
import os

from clusters import Cluster
from harness import CONFIG, DATA, JOBS, expect, expect_equal
from namespaces import Hosts


def packet(mtu, interface="eth1"):
    return {"weir.link.port": "net_af_packet0", "weir.link.mtu": mtu,
            "weir.eal.args": f"--vdev=net_af_packet0,iface={interface}"}


def submit(w, cluster, parallelism):
    with open(os.path.join(JOBS, "flow-metering.yaml"), encoding="utf-8") as file:
        text = file.read().replace("parallelism: 2", f"parallelism: {parallelism}")
    return cluster.submit(text, {"source.path": os.path.join(DATA, "gnutella.pcap"),
                                 "sink.path": w.path("refused-out")})


def failure_of(w, cluster, job, part):
    """The one with these words: what fails is started again, and may fail otherwise in between."""
    def look():
        failure = json.loads(cluster.ask(f"/jobs/{job}/summary"))["failure"]
        return failure if failure and part in failure else None

    return w.wait_for(look, f"the job fails: {part}")


def refusal(w, cluster, config, status):
    """One more TaskManager; the one error that it ends with."""
    i = len(cluster.own)
    cluster.own.append(config)
    cluster.start_taskmanager(i)
    name = f"taskmanager-{i}"
    expect_equal(cluster.children[name].wait(20 * w.factor), status, f"exit status of {name}")
    errors = [line for line in cluster.log(name).splitlines() if " ERROR " in line]
    expect_equal(len(errors), 1, f"one error: {errors}")
    return errors[0]


def other_frames(w, hosts):
    cluster = Cluster(w, hosts, w.settings("frames"), [packet(1500)])
    w.wait_for(lambda: "registered as" in cluster.log("taskmanager-0"), "the first registers")
    error = refusal(w, cluster, packet(1400), 1)
    expect("frames of 1414 bytes" in error and "has 1514" in error, error)
    error = refusal(w, cluster, packet(9000), CONFIG)
    expect("the MTU of interface eth1 is 1500" in error, error)
    cluster.close()


def third_at_a_memif(w, hosts):
    ends = [{"weir.link.port": "net_memif0",
             "weir.eal.args": f"--vdev=net_memif0,role=server,socket=weir-{os.getpid()}-{i}"}
            for i in range(3)]
    cluster = Cluster(w, hosts, w.settings("third"), ends)
    failure_of(w, cluster, submit(w, cluster, 3), "the port of this one joins two only")
    cluster.close()


def on_two_networks(w, hosts):
    """Each says what it never heard of, on which port, and what to look at."""
    timeout = {"weir.link.connect-timeout": "1 s"}
    cluster = Cluster(w, hosts, w.settings("apart"), [{**packet(1500, "spare"), **timeout},
                                                      {**packet(1500), **timeout}])
    failure = failure_of(w, cluster, submit(w, cluster, 2),
                         "nothing was ever heard of the peer for 100")
    expect("on port net_af_packet0; look whether both ports are on one network" in failure, failure)
    expect("frames of 1514 bytes pass" in failure and "drops UDP port 6125" in failure, failure)
    cluster.close()


def test(w):
    hosts = Hosts(3)
    try:
        hosts.join(hosts.hosts[0], "eth1", hosts.hosts[1], "eth1")
        hosts.join(hosts.hosts[0], "spare", hosts.hosts[2], "eth1")
        on_two_networks(w, hosts)
        other_frames(w, hosts)
        third_at_a_memif(w, hosts)
    finally:
        hosts.close()
