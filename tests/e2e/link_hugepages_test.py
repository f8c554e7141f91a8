"""Links by shared memory on hugepages: memif, vhost with virtio-user."""

from captures import flows_capture
from harness import Skip, expect, expect_equal, expect_same_lines

NEEDED = 260  # pages of 2 MiB, for two TaskManagers
SMALL = {"weir.hugepages": "on", "taskmanager.memory.network.size": "32 mb",
         "taskmanager.memory.managed.size": "64 mb"}


def free_pages():
    with open("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", encoding="ascii") as file:
        return int(file.read())


def test(w):
    try:
        count = free_pages()
    except OSError:
        raise Skip("no 2 MiB hugepages on this kernel") from None
    if count < NEEDED:
        raise Skip(f"{count} hugepages of 2 MiB are free, {NEEDED} are needed "
                   f"(scripts/host-setup)")
    capture = flows_capture(w.path("in.pcap"), 20_000, 300)
    sets = {"window.max-flows": 4096}
    w.flow(capture, "calm", state="calm", sets=sets).summary()
    for kind in ("memif", "vhost"):
        summary = w.flow(capture, kind, state=kind, rate=20_000, sets=sets, config=SMALL,
                         options=("--taskmanagers", "2", "--link", kind)).summary()
        expect_equal(summary["restarts"], 0, f"restarts over {kind}")
        expect_same_lines(w.lines(kind), w.lines("calm"), f"output over {kind}")
        with open(w.path(kind, "logs", "taskmanager-0.log"), encoding="utf-8") as log:
            expect("without hugepages" not in log.read(), "they are used")
