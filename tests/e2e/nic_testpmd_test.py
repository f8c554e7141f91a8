"""Packets that dpdk-testpmd makes, over memif and over vhost, at all the speed it has: what it says
it sent is what the ledgers of the sources account for, and what the flows add up to; what found no
room in a port it knows itself."""

import json
import os
import re
import sys
import time

from captures import output_totals
from harness import ROOT, Skip, expect, expect_equal, fetch
from nic_jobs import metering
from processes import free_port

sys.path.append(ROOT)
from bench import testpmd  # noqa: E402  pylint: disable=wrong-import-position
from bench.harness import BenchError  # noqa: E402  pylint: disable=wrong-import-position

TIMEOUT = 90
SEND_S = 0.3
FRAME_BYTES = 124  # in txonly mode without check sequence, in flowgen mode with it
CHECK_BYTES = 4
FLOWS = 64
TXONLY = ("198.18.0.1", "198.18.0.2")  # from whom to whom, in that mode


def start(w, port):
    """The job, a port of each kind."""
    ports = {"net_memif0": f"role=server,socket-abstract=no,socket={w.path('memif.sock')}",
             "net_vhost0": f"iface={w.path('vhost.sock')}"}
    config = {"weir.nic.ports": ";".join(ports), "rest.bind-port": port,
              "weir.eal.args": " ".join(f"--vdev={n},{how}" for n, how in ports.items())}
    return w.run(w.write("generated.yaml", metering("generated", ports)),
                 {"sink.path": w.path("out")}, config)


def accounted(port, source):
    """Packets that the ledger of a source has by now."""
    job = json.loads(fetch(port, "/jobs"))["jobs"][0]["id"]
    return json.loads(fetch(port, f"/jobs/{job}/summary"))["ledger"][source]["packets"]


def joined(*words):
    """A dpdk-testpmd whose port is up.  DPDK's net_memif takes it down at times while its peer
    comes (a segmentation fault in its thread for interrupts)."""
    for is_last in (False, False, True):
        generator = testpmd.Testpmd(*words)
        try:
            generator.await_link()
            return generator
        except BenchError:
            generator.__exit__()
            if is_last:
                raise
    return None


def generate(w, program, device, name, is_accounted):
    """Full speed in both modes; packets sent in each, and those that found no room.  It stays until
    they are accounted for: what a port has not read goes with its peer."""
    directory = w.path(name)
    os.mkdir(directory)
    core = min(os.sched_getaffinity(0))
    sent, refused = {}, 0
    with joined(program, directory, core, device, "txonly", FRAME_BYTES,
                (f"--flowgen-flows={FLOWS}",)) as generator:
        for mode in ("txonly", "flowgen"):
            generator.ask(f"set fwd {mode}")
            before = generator.counters()["tx"]
            generator.ask("start")
            time.sleep(SEND_S * w.factor)
            said = generator.ask("stop")
            sent[mode] = generator.counters()["tx"] - before
            refused += int(re.search(r"TX-dropped:\s+(\d+)", said)[1])
        w.wait_for(lambda: is_accounted(sum(sent.values())), f"the ledger has all of {sent}", 10)
    return sent, refused


def test(w):
    program = testpmd.find()
    if program is None:
        raise Skip(testpmd.MISSING)
    port = free_port()
    r = start(w, port)
    w.wait_for(lambda: os.path.exists(w.path("memif.sock")), "the ports are there")
    sent = {}
    devices = {"memif": testpmd.memif(w.path("memif.sock"), "client"),
               "vhost": testpmd.virtio_user(w.path("vhost.sock"), False)}
    for i, (name, device) in enumerate(devices.items()):
        source = f"source{i}"
        sent[source], refused = generate(w, program, device, name,
                                         lambda n, s=source: accounted(port, s) == n)
        print(f"{name}: {sent[source]} sent, {refused} found no room in the port")
        expect(min(sent[source].values()) > 1000, f"packets sent over {name}")
    w.weir_json("stop", "generated", "--savepoint", w.path("savepoint"), "--drain", "--rest",
                f"127.0.0.1:{port}")
    summary = r.summary()
    for source, modes in sent.items():
        expect_equal(summary["ledger"][source]["packets"], sum(modes.values()),
                     f"packets to {source} as testpmd says: {summary['ledger'][source]}")
    taken = sum(summary["ledger"][source]["taken"] for source in sent)
    totals = output_totals(w.lines("out"))
    packets = sum(count for count, _ in totals.values())
    expect_equal(packets + sum(summary["unparsed"].values()), taken, "in flows, or unparsed")
    for pair, (count, octets) in totals.items():
        size = FRAME_BYTES if pair == TXONLY else FRAME_BYTES - CHECK_BYTES
        expect_equal(octets, count * size, f"bytes of {pair}")
    lost = sum(sum(modes.values()) for modes in sent.values()) - taken
    of_one_flow = sum(modes["txonly"] for modes in sent.values())
    expect(0 <= of_one_flow - totals[TXONLY][0] <= lost, f"{totals[TXONLY]} of {of_one_flow}")
    expect_equal(len(totals), FLOWS + 1, "flows")
