"""Links on hugepages: memif, vhost with virtio-user, af_packet and af_xdp over veth."""

import time

from captures import flows_capture
from harness import Skip, expect, expect_equal, expect_same_lines
from namespaces import Hosts

ALONE = True  # namespaces have names, hugepages are everybody's
NEEDED = 260  # pages of 2 MiB, for two TaskManagers
SMALL = {"weir.hugepages": "on", "taskmanager.memory.network.size": "32 mb",
         "taskmanager.memory.managed.size": "64 mb"}
IN_MEMORY = ("memif", "vhost")
OVER_VETH = ("af_packet:end0,end1", "af_xdp:end0,end1")
START_S = 12  # with the job; who waits for another's hugepages in vain does so for 15 s
SETS = {"window.max-flows": 4096}


def free_pages():
    with open("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", encoding="ascii") as file:
        return int(file.read())


def carry(w, capture, link, prefix=()):
    """The job over that link gives what it gives on one TaskManager."""
    kind = link.split(":")[0]
    begun = time.monotonic()
    summary = w.flow(capture, kind, state=kind, rate=20_000, sets=SETS, config=SMALL, prefix=prefix,
                     options=("--taskmanagers", "2", "--link", link)).summary()
    expect_equal(summary["restarts"], 0, f"restarts over {kind}")
    expect(time.monotonic() - begun < START_S, f"{time.monotonic() - begun:.1f} s over {kind}")
    expect(summary["link"]["frames"] > 0, f"frames over {kind}: {summary['link']}")
    expect_same_lines(w.lines(kind), w.lines("calm"), f"output over {kind}")
    for name in ("taskmanager-0.log", "taskmanager-1.log"):
        with open(w.path(kind, "logs", name), encoding="utf-8") as log:
            expect("without hugepages" not in log.read(), "they are used")


def test(w):
    try:
        count = free_pages()
    except OSError:
        raise Skip("no 2 MiB hugepages on this kernel") from None
    if count < NEEDED:
        raise Skip(f"{count} hugepages of 2 MiB are free, {NEEDED} are needed "
                   f"(scripts/host-setup)")
    capture = flows_capture(w.path("in.pcap"), 20_000, 300)
    w.flow(capture, "calm", state="calm", sets=SETS).summary()
    for link in IN_MEMORY:
        carry(w, capture, link)
    hosts = Hosts(0)
    try:
        hosts.join(hosts.hub, "end0", hosts.hub, "end1")
        for link in OVER_VETH:
            carry(w, capture, link, ("ip", "netns", "exec", hosts.hub))
    finally:
        hosts.close()
