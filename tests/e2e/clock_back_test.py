"""When the clock of a capture jumps back an hour, late packets get rows of their own windows."""

import datetime
import json

from captures import udp_frame, write_pcap
from harness import expect, expect_equal, expect_same_lines, fetch
from processes import end, free_port

START = 1_600_000_020  # the beginning of a minute
COUNT = 30_000


def packets():
    """Ten minutes forward, an hour back, and ten minutes forward again."""
    step = 2 * 600 * 10**9 // COUNT
    for i in range(COUNT):
        time_ns = START * 10**9 + i * step - (3600 * 10**9 if i >= COUNT // 2 else 0)
        yield time_ns, udp_frame(f"10.0.0.{i % 40}", "192.0.2.1", 1000 + i % 40, 53, i % 90)


def wanted():
    """Packets for each (start of window, source)."""
    totals = {}
    for i, (time_ns, _) in enumerate(packets()):
        start = datetime.datetime.fromtimestamp(time_ns // 10**9 // 60 * 60, datetime.timezone.utc)
        key = (start.strftime("%Y-%m-%dT%H:%M:%SZ"), f"10.0.0.{i % 40}")
        totals[key] = totals.get(key, 0) + 1
    return totals


def late_records(port):
    """Of the one job, so far."""
    job = json.loads(fetch(port, "/jobs/overview"))["jobs"][0]["jid"]
    summary = json.loads(fetch(port, f"/jobs/{job}/summary"))
    return summary["counters"].get("window", {}).get("late_records", 0)


def test(w):
    capture = write_pcap(w.path("in.pcap"), packets())
    summary = w.flow(capture, "calm", state="calm").summary()
    expect(summary["counters"]["window"]["late_records"] >= COUNT // 2 - 1000,
           f"late packets are counted: {summary['counters']['window']}")
    totals = {}
    for line in w.lines("calm"):
        fields = line.split(",")
        key = (fields[0], fields[2])
        totals[key] = totals.get(key, 0) + int(fields[7])
    expect_equal(totals, wanted(), "packets for each window and source")

    port = free_port()
    run = w.flow(capture, "out", rate=10_000, config={"rest.bind-port": port})
    w.wait_for_checkpoint(1)
    w.wait_for(lambda: late_records(port) > 0, "the clock has jumped")
    w.wait_for_checkpoint(w.newest_checkpoint() + 2)  # so the second began behind the jump
    for pid in run.taskmanagers():
        end(pid)
    run.summary()
    expect_same_lines(w.lines("out"), w.lines("calm"), "output after kill -9")
