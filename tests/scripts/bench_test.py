#!/usr/bin/env python3
"""scripts/bench counts what is due and missed, judges its bounds, and says what it can measure."""

import math
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
sys.dont_write_bytecode = True
sys.path.insert(0, ROOT)

from bench import (backpressure, barrier, harness, keyed_count, link, recovery,  # noqa: E402
                   rfc2544, tuning)


class HistoryOf:
    """A job that only knows its checkpoints."""

    def __init__(self, *rows):
        self.rows = rows

    def ask(self, _path):
        return {"history": [{"id": i, "trigger_timestamp": at, "status": status,
                             "end_to_end_duration": 7, "state_size": 1000}
                            for i, (at, status) in enumerate(self.rows)]}


def account(phases, *rows):
    """What Checkpoints makes of a history."""
    checkpoints = keyed_count.Checkpoints(HistoryOf(*rows))
    checkpoints.phases = phases
    return checkpoints.account()


class Due(unittest.TestCase):
    def test_one_each_interval_from_the_first_on(self):
        a = account([[0, 400]], *[(30 + 100 * i, "COMPLETED") for i in range(4)])
        self.assertEqual((a["due"], a["completed"], a["missed"]), (4, 4, 0))
        self.assertEqual((a["bytes_each"], a["p50_ms"]), (1000, 7))

    def test_one_that_was_not_triggered_is_missed(self):
        a = account([[0, 400]], (30, "COMPLETED"), (230, "COMPLETED"), (330, "COMPLETED"))
        self.assertEqual((a["due"], a["missed"]), (4, 1))

    def test_one_that_failed_is_missed(self):
        a = account([[0, 300]], (30, "COMPLETED"), (130, "FAILED"), (230, "COMPLETED"))
        self.assertEqual((a["due"], a["missed"]), (3, 1))

    def test_what_the_switch_met_is_not_due(self):
        a = account([[0, 400]], (95, "COMPLETED"), (195, "COMPLETED"), (295, "COMPLETED"),
                    (396, "FAILED"))
        self.assertEqual((a["due"], a["missed"]), (3, 0))

    def test_a_phase_without_any_has_missed_all(self):
        self.assertEqual(account([[0, 400]])["missed"], 4)

    def test_each_phase_has_its_own_beginning(self):
        a = account([[0, 200], [1000, 1200]], (80, "COMPLETED"), (180, "COMPLETED"),
                    (1020, "COMPLETED"), (1120, "COMPLETED"))
        self.assertEqual((a["due"], a["missed"]), (4, 0))


class Statistics(unittest.TestCase):
    def test_the_interval_is_that_of_the_mean(self):
        mean, (low, high) = harness.mean_interval([1, 3, 1, 3])
        self.assertEqual(mean, 2)
        self.assertAlmostEqual(high - mean, 1.96 * (4 / 3) ** 0.5 / 2)
        self.assertAlmostEqual(mean - low, high - mean)

    def test_a_loss_is_none_where_both_are_the_same_but_for_noise(self):
        noisy = [90, 100, 110, 95]
        loss, (low, high) = harness.mean_loss(noisy, noisy[::-1])
        self.assertAlmostEqual(loss, 0)
        self.assertLess(low, 0)
        self.assertGreater(high, 0)

    def test_a_loss_is_what_is_missing(self):
        loss, (low, high) = harness.mean_loss([97, 194], [100, 200])
        for value in (loss, low, high):
            self.assertAlmostEqual(value, 0.03)

    def test_a_loss_of_one_pair_may_be_anything(self):
        self.assertEqual(harness.mean_loss([97], [100])[1], (-math.inf, 1))

    def test_percentiles_are_values_that_were_there(self):
        self.assertEqual(harness.percentile([5, 1, 9], 50), 5)
        self.assertEqual(harness.percentile(list(range(1, 101)), 99), 99)
        self.assertIsNone(harness.percentile([], 50))


class Bounds(unittest.TestCase):
    def breaches(self, **changes):
        d = {"keys": 16384, "raw_to_count": 0.5, "ratio": 0.7, "loss_100ms": 0.02,
             "loss_100ms_interval_95": (0.01, 0.03), "checkpoints": {"missed": 0}}
        d.update(changes)
        return list(keyed_count.breaches_of(d))

    def test_within_them_nothing_is_said(self):
        self.assertEqual(self.breaches(), [])

    def test_a_raw_loop_that_is_no_ceiling_fails_the_bench(self):
        self.assertIn("no ceiling", self.breaches(raw_to_count=0.24)[0])

    def test_each_bound_is_one(self):
        self.assertEqual(len(self.breaches(ratio=0.49)), 1)
        self.assertEqual(len(self.breaches(loss_100ms=0.05,
                                           loss_100ms_interval_95=(0.04, 0.06))), 1)
        self.assertEqual(len(self.breaches(checkpoints={"missed": 1})), 1)


class Recovery(unittest.TestCase):
    def test_a_part_tells_the_checkpoint_that_committed_it(self):
        self.assertEqual(recovery.part_id("part-sink-0-0000000012.csv"), 12)
        self.assertEqual(recovery.part_id("part-a-1-x-1-0000000003.csv"), 3)
        self.assertGreater(recovery.part_id("part-sink-1-final.csv"), 1 << 60)

    def test_only_what_a_log_says_after_the_kill_counts(self):
        with tempfile.TemporaryDirectory() as directory:
            os.makedirs(os.path.join(directory, "state/logs"))
            with open(os.path.join(directory, "state/logs/coordinator.log"), "w",
                      encoding="utf-8") as log:
                for second in ("10.001", "11.002"):
                    log.write(f"2026-01-02 03:04:{second} INFO  [x] m: all 8 tasks run\n")
            when = recovery.stamp_of("2026-01-02 03:04:10.500 ")
            stamp, count = recovery.told(directory, "coordinator.log", r"all (\d+) tasks", when)
            self.assertEqual((round(stamp - when, 3), count), (0.502, "8"))
            self.assertIsNone(recovery.told(directory, "coordinator.log", r"no (\d+)", when))


class Staged:
    """A checkpoint as bench.staged reads it: each subtask's moments in microseconds."""

    def __init__(self, triggered, stages, persisted_bytes=0):
        names = ("heard", "began", "ended", "sent", "received")
        self.triggered_ns = 1000 * triggered
        self.persisted_bytes = persisted_bytes
        self.stages = [[dict(zip(names, (1000 * us for us in one))) for one in stage]
                       for stage in stages]
        self.last = max((at for s in self.stages for at in s), key=lambda at: at["received"])

    def duration_ms(self):
        return (self.last["received"] - self.triggered_ns) / 1e6


class Steps(unittest.TestCase):
    def test_they_add_up_on_the_way_to_the_last_acknowledgement(self):
        c = Staged(1000, [[(1010, 1015, 1020, 1100, 1130), (1012, 1030, 1031, 1100, 1130)],
                          [(0, 1040, 1041, 1100, 1130), (0, 1045, 1050, 1100, 1130)],
                          [(0, 1060, 1070, 1100, 1130), (0, 1055, 1080, 1110, 1150)]])
        self.assertEqual(barrier.steps_of(c), [12, 18, 15, 10, 25, 30, 40])
        self.assertEqual(sum(barrier.steps_of(c)), 1000 * c.duration_ms())

    def test_another_task_may_be_the_last(self):
        c = Staged(0, [[(1, 2, 90, 91, 99)], [(0, 5, 6, 7, 8)], [(0, 9, 10, 11, 12)]])
        self.assertEqual(sum(barrier.steps_of(c)), 99)
        self.assertGreaterEqual(min(barrier.steps_of(c)), 0)


class Backpressure(unittest.TestCase):
    def tally(self, **ms):
        """All rows take 1 ms but those named, over a drain of 3 ms."""
        t = backpressure.Tally()
        t.drains = {row: [3.0] for row in t.drains}
        for row in backpressure.ROWS:
            took = ms.get(row.replace(", ", "_").replace(" us", "").replace(",", ""), 1)
            moment = [(0, 0, 0, 0, 1000 * took)]
            t.rounds[row] = [[Staged(0, [moment] * 3, 100)]]
        return list(backpressure.breaches_of(backpressure.describe(t)))

    def test_all_within_their_bounds(self):
        self.assertEqual(self.tally(), [])
        self.assertEqual(self.tally(unaligned_200=5, unaligned_2000=5), [])

    def test_unaligned_may_not_take_longer_than_its_bytes(self):
        self.assertIn("p95 6.00 ms, 5.00 at most", "".join(self.tally(unaligned_200=6)))

    def test_nor_follow_the_sink(self):
        found = self.tally(unaligned_200=4, unaligned_2000=4.5)
        self.assertEqual(len(found), 1)
        self.assertIn("12 % longer", found[0])

    def test_a_timeout_may_only_be_a_little_late(self):
        self.assertEqual(self.tally(timeout_200=21.4), [])
        self.assertIn("21.50 at most", "".join(self.tally(timeout_200=21.6)))


def link_round(peer, weir, tcp, name="1518, 32 KiB"):
    """What one round of a link's row was: frames, and bytes of TCP as frames."""
    size = link.frame_bytes(next(r for r in link.ROWS if r[0] == name))
    each = (("raw", 2 * weir), ("testpmd", peer), ("weir", weir), ("tcp", tcp))
    return {who: {"frames": n, "bytes": n * size, "resent": 0, "rtt_us": 100}
            for who, n in each if n is not None}


class Link(unittest.TestCase):
    def breaches(self, rounds, name="1518, 32 KiB", lossy=95):
        row = {"kind": "memif", "frames": name, **link.describe(rounds)}
        loss = link.describe_loss({0: [{"bytes": 100, "resent": 0}],
                                   0.001: [{"bytes": lossy, "resent": 3}]})
        return list(link.breaches_of({"rows": [row], "loss": loss}))

    def test_a_round_is_compared_with_itself(self):
        d = link.describe([link_round(100, 95, 40), link_round(50, 47, 20),
                           link_round(10, 4, 8)])
        self.assertEqual(d["testpmd_ratio"], {"min": 0.4, "median": 0.94, "max": 0.95})
        self.assertEqual(d["raw_ratio"]["median"], 0.5)
        self.assertEqual(d["tcp_ratio"]["min"], 0.5)

    def test_within_its_bounds_nothing_is_said(self):
        self.assertEqual(self.breaches([link_round(100, 90, 90)]), [])
        self.assertEqual(self.breaches([link_round(None, 90, 45, "32868, 32 KiB")],
                                       "32868, 32 KiB"), [], "the peer is not asked for those")

    def test_each_bound_is_one(self):
        self.assertIn("0.89 of dpdk-testpmd", self.breaches([link_round(100, 89, 10)])[0])
        self.assertIn("1.9 times TCP", self.breaches([link_round(None, 95, 50, "32868, 32 KiB")],
                                                     "32868, 32 KiB")[0])
        self.assertIn("3.9 times TCP",
                      self.breaches([link_round(100, 39, 10, "1518")], "1518")[0])
        self.assertIn("0.59 of dpdk-testpmd", self.breaches([link_round(100, 59, 1, "64")],
                                                            "64")[0])
        self.assertIn("costs 11 %", self.breaches([link_round(100, 90, 45)], lossy=89)[0])

    def test_without_the_peer_it_does_not_pass(self):
        rounds = [link_round(None, 1, 1, "64")]
        self.assertIn("not judged", self.breaches(rounds, "64")[0])
        self.assertIn("     -   ", link.line("memif", "64", link.describe(rounds)))

    def test_a_buffer_fills_its_frames(self):
        for row in link.ROWS[1:]:
            self.assertEqual(link.flush_bytes(row) % row[2], 0)
            self.assertEqual(link.flush_bytes(row) // row[2] + link.HEADERS + link.CHECK_BYTES,
                             row[1])


class Rfc2544(unittest.TestCase):
    def row(self, rate=1000.0, peer=None):
        trial = {name: 7.0 for name in ("p50_us", "p99_us", "max_us", "behind_us")}
        flood = {"got_rate": 2000.0, "rate": 9000.0}
        return rfc2544.describe(64, (rate, trial if rate > 0 else None, flood), peer)

    def test_a_size_without_a_lossless_rate_is_a_breach(self):
        self.assertEqual(list(rfc2544.breaches_of([self.row()])), [])
        self.assertIn("no rate without", list(rfc2544.breaches_of([self.row(0.0)]))[0])

    def test_so_is_one_whose_packets_do_not_all_come_round(self):
        peer = {"round_frames": 5e6, "round_packets": 128, "flood_frames": 6e6}
        self.assertEqual(list(rfc2544.breaches_of([self.row(peer=peer)])), [])
        peer = {**peer, "round_frames": 0, "round_packets": None}
        self.assertIn("did not come back", list(rfc2544.breaches_of([self.row(peer=peer)]))[0])

    def test_without_the_peer_its_columns_are_dashes(self):
        self.assertEqual(rfc2544.line(self.row()).split()[:4], ["64", "-", "-", "-"])

    def test_what_is_missing_is_what_was_sent_and_is_not_back(self):
        self.assertEqual(rfc2544.Peer.missing({"tx": 10, "rx": 4}, {"tx": 30, "rx": 23}), 1)


class Tuning(unittest.TestCase):
    def test_what_the_host_lacks_says_so_in_its_row(self):
        row = tuning.measure_row("build", ("pages of 3 GiB", lambda: tuning.pages_settings(3, "3G"),
                                           {}), 1)
        self.assertIn("not here: 0 free pages", tuning.line(row))
        self.assertIn("scripts/host-setup --hugepages 3G:", tuning.line(row))

    def test_what_all_are_compared_with_has_a_row(self):
        late = {"p50_us": {"median": 3.0}, "p99_us": {"median": 9.0}}
        rows = [{"than": tuning.plain(*harness.two_cores()), "slow_cores": {"without": 2.0},
                 "records_per_s": {"without": {"median": rate}}, "paced": {"without": late}}
                for rate in (40e6, 42e6)] + [{"skipped": "it is not here"}]
        self.assertEqual(tuning.as_it_comes(rows)[0].split(),
                         ["as", "it", "comes", "41.0", "2.00", "3.0", "9.0"])
        self.assertEqual(tuning.as_it_comes(rows[2:]), [])

    def test_paced_is_compared_where_both_were_measured(self):
        late = {"p50_us": {"median": 3.0}}
        self.assertEqual(tuning.late({"with": late, "without": late}, "with", "p50_us").strip(),
                         "3.0")
        self.assertEqual(tuning.late({"with": None, "without": late}, "without", "p50_us").strip(),
                         "-")


class Command(unittest.TestCase):
    def run_bench(self, *arguments):
        return subprocess.run([os.path.join(ROOT, "scripts/bench"), *arguments], text=True,
                              capture_output=True, check=False)

    def test_the_list_names_each_bench_and_what_it_needs(self):
        done = self.run_bench("--list")
        self.assertEqual(done.returncode, 0)
        for word in ("keyed-count", "flow-metering", "recovery", "coordinator-scale", "barrier",
                     "backpressure", "link", "needs: "):
            self.assertIn(word, done.stdout)

    def test_an_unknown_name_is_refused(self):
        self.assertEqual(self.run_bench("keyed-cuont").returncode, 2)
        self.assertEqual(self.run_bench().returncode, 2)
        self.assertEqual(self.run_bench("keyed-count", "--seconds", "0").returncode, 2)


if __name__ == "__main__":
    unittest.main()
