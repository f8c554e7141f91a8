#!/usr/bin/env python3
"""scripts/host-setup on made-up hosts: what it changes, what it refuses, and the way back."""

import contextlib
import errno
import importlib.machinery
import importlib.util
import io
import json
import os
import shutil
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "scripts"))

from host_facts import Host, parse_list, print_list  # noqa: E402

PROGRAM = os.path.join(ROOT, "scripts/host-setup")
loader = importlib.machinery.SourceFileLoader("host_setup", PROGRAM)
host_setup = importlib.util.module_from_spec(importlib.util.spec_from_loader("host_setup", loader))
loader.exec_module(host_setup)

NIC, OTHER = "0000:03:00.0", "0000:03:00.1"
PAGES = "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages"


class Kernel(Host):
    """A folder that answers writes as the kernel does."""

    def __init__(self, root):
        super().__init__(root)
        self.pages_max = 1000
        self.refuses = set()  # drivers that take no device
        self.managed = set()  # interrupts that stay
        self.sessions = ["192.0.2.9"]
        self.log = []

    def put(self, path, text):
        os.makedirs(os.path.dirname(self.root + path), exist_ok=True)
        super().write(path, text + "\n")

    def put_link(self, path, target):
        os.makedirs(os.path.dirname(self.root + path), exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.root + path)
        os.symlink(target, self.root + path)

    def add_nic(self, pci, driver, interface, group="7"):
        device = "/sys/bus/pci/devices/" + pci
        self.put(device + "/class", "0x020000")
        self.put(device + "/driver_override", "(null)")
        self.take(pci, driver)
        if group:
            self.put_link(device + "/iommu_group", f"../../../../kernel/iommu_groups/{group}")
            self.put(f"/sys/kernel/iommu_groups/{group}/devices/{pci}/mark", "")
        if interface:
            self.put_link(f"/sys/class/net/{interface}/device", f"../../../bus/pci/devices/{pci}")

    def take(self, pci, driver):
        self.put(f"/sys/bus/pci/drivers/{driver}/unbind", "")
        self.put_link(f"/sys/bus/pci/devices/{pci}/driver", f"../../drivers/{driver}")

    def load_module(self, name):
        return "" if name == "vfio-pci" else "no such module"

    def addresses(self):
        return {"192.0.2.9": "eth0", "192.0.2.10": "eth1"}

    def environments(self):
        return [{"HOME": "/"}] + [{"SSH_CONNECTION": f"192.0.2.1 5000 {address} 22"}
                                  for address in self.sessions]

    def write(self, path, text):
        self.log.append((path, text))
        if path.endswith("nr_hugepages"):
            return super().write(path, str(min(int(text), self.pages_max)))
        if path.endswith("/unbind"):
            os.remove(self.root + path.rpartition("/unbind")[0])
            return None
        if path.endswith("/drivers_probe"):
            wanted = self.read(f"/sys/bus/pci/devices/{text}/driver_override")
            driver = wanted if wanted and wanted != "(null)" else "ixgbe"
            if driver not in self.refuses:
                self.take(text, driver)
            return None
        if path.startswith("/proc/irq/") and path.split("/")[3] in self.managed:
            raise OSError(errno.EIO, "Input/output error")
        return super().write(path, text)


class HostSetup(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="weir-host-")
        self.addCleanup(folder.cleanup)
        self.host = Kernel(os.path.join(folder.name, "root"))
        self.journal = os.path.join(folder.name, "lib", "journal.json")
        self.host.put(PAGES, "3")
        self.host.put("/sys/devices/system/cpu/online", "0-3")
        self.host.add_nic(NIC, "ixgbe", "eth1")
        self.host.put("/proc/net/route", "Iface Destination Gateway\n"
                      "eth0 00000000 0100000A 0003 0 0 0 00000000 0 0 0")

    def run_it(self, *words):
        """Exit status, the object, and standard error."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = host_setup.main(["--json", "--journal", self.journal, *words], self.host)
        return status, json.loads(out.getvalue()), err.getvalue()

    def refused(self, *words):
        status, _, error = self.run_it(*words)
        self.assertEqual(status, 3)
        self.assertEqual(self.host.log, [])
        return error

    def test_check_changes_nothing_and_says_what_it_would(self):
        status, said, _ = self.run_it("--check", "--hugepages", "2M:10", "--bind", NIC)
        self.assertEqual(status, 1)
        self.assertEqual([row["state"] for row in said["rows"]], ["to do", "to do"])
        self.assertEqual(self.host.log, [])
        self.assertFalse(os.path.exists(self.journal))

    def test_done_and_put_back(self):
        status, _, _ = self.run_it("--hugepages", "2M:10@0", "--bind", NIC)
        self.assertEqual(status, 0)
        self.assertEqual(self.host.read(PAGES), "10")
        self.assertEqual(self.host.driver(NIC), "vfio-pci")
        self.assertEqual(self.run_it("--check", "--hugepages", "2M:10", "--bind", NIC)[0], 0)
        self.assertEqual(self.run_it("--undo")[0], 0)
        self.assertEqual(self.host.read(PAGES), "3")
        self.assertEqual(self.host.driver(NIC), "ixgbe")
        self.assertFalse(os.path.exists(self.journal))

    def test_pages_are_reserved_on_each_node_with_memory_or_on_the_one_that_is_named(self):
        other = PAGES.replace("node0", "node1")
        self.host.put(other, "0")
        self.host.put("/sys/devices/system/node/node2/cpulist", "8-15")  # has none
        self.assertEqual(self.run_it("--hugepages", "2M:10")[0], 0)
        self.assertEqual((self.host.read(PAGES), self.host.read(other)), ("10", "10"))
        self.assertEqual(self.run_it("--hugepages", "2M:20@1")[0], 0)
        self.assertEqual((self.host.read(PAGES), self.host.read(other)), ("10", "20"))
        self.host.log.clear()
        self.assertIn("no NUMA node 2; there are: 0, 1", self.refused("--hugepages", "2M:1@2"))
        self.assertIn("1048576 kB on node 0: this kernel has none",
                      self.refused("--hugepages", "1G:1"))
        self.assertEqual(self.run_it("--undo")[0], 0)
        self.assertEqual((self.host.read(PAGES), self.host.read(other)), ("3", "0"))

    def test_a_kernel_without_numa_has_pages_too(self):
        os.remove(self.host.root + PAGES)
        shutil.rmtree(self.host.root + "/sys/devices/system/node")
        pages = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
        self.host.put(pages, "0")
        self.assertEqual(self.run_it("--hugepages", "2M:4")[0], 0)
        self.assertEqual(self.host.read(pages), "4")

    def test_the_governor_of_every_core_is_set_and_put_back(self):
        files = self.add_governors("powersave", "schedutil")
        status, said, _ = self.run_it("--check", "--governor", "performance")
        self.assertEqual((status, len(said["rows"])), (1, 2))
        self.assertEqual(self.run_it("--governor", "performance")[0], 0)
        self.assertEqual([self.host.read(file) for file in files], ["performance"] * 2)
        self.assertEqual(self.run_it("--undo")[0], 0)
        self.assertEqual([self.host.read(file) for file in files], ["powersave", "schedutil"])

    def test_a_governor_that_is_not_to_be_had_is_refused_before_anything_changes(self):
        self.assertIn("sets no clock", self.refused("--hugepages", "2M:9", "--governor", "fast"))
        self.add_governors("powersave", "powersave")
        self.assertIn("no fast; there are: performance powersave schedutil",
                      self.refused("--hugepages", "2M:9", "--governor", "fast"))

    def add_governors(self, *now):
        folders = [f"/sys/devices/system/cpu/cpu{i}/cpufreq/" for i in range(len(now))]
        for folder, name in zip(folders, now):
            self.host.put(folder + "scaling_governor", name)
            self.host.put(folder + "scaling_available_governors",
                          "performance powersave schedutil")
        return [folder + "scaling_governor" for folder in folders]

    def test_undo_with_check_shows_what_it_would_put_back(self):
        self.assertEqual(self.run_it("--undo", "--check")[0], 0)
        self.run_it("--hugepages", "2M:10", "--bind", NIC)
        self.host.log.clear()
        status, said, _ = self.run_it("--undo", "--check")
        self.assertEqual((status, said["state"], self.host.log), (1, "to do", []))
        self.assertEqual([row["is"] for row in said["rows"]],
                         ["would be put back to ixgbe", "would be put back to 3"])
        self.assertEqual(self.run_it("--undo")[0], 0)
        self.assertEqual(self.host.read(PAGES), "3")

    def test_what_cannot_be_put_back_stays_in_the_journal(self):
        self.run_it("--hugepages", "2M:10", "--bind", NIC)
        self.host.refuses = {"ixgbe"}
        status, said, _ = self.run_it("--undo")
        self.assertEqual((status, said["state"]), (1, "failed"))
        self.assertIn("expected driver ixgbe", said["rows"][0]["is"])
        self.assertEqual(self.host.read(PAGES), "3")
        self.host.refuses = set()
        self.assertEqual(self.run_it("--undo")[0], 0)
        self.assertEqual(self.host.driver(NIC), "ixgbe")

    def test_undo_goes_back_to_before_the_first_of_two_runs(self):
        self.run_it("--hugepages", "2M:10")
        self.run_it("--hugepages", "2M:20")
        self.run_it("--undo")
        self.assertEqual(self.host.read(PAGES), "3")

    def test_fewer_pages_than_asked_for_is_a_failure_with_the_number(self):
        self.host.pages_max = 6
        status, said, _ = self.run_it("--hugepages", "2M:10")
        self.assertEqual(status, 1)
        self.assertIn("had memory for 6", said["rows"][0]["state"])
        self.assertEqual(self.run_it("--undo")[0], 0)
        self.assertEqual(self.host.read(PAGES), "3")

    def test_more_pages_than_asked_for_stay(self):
        self.assertEqual(self.run_it("--hugepages", "2M:2")[0], 0)
        self.assertEqual(self.host.read(PAGES), "3")

    def test_a_driver_that_does_not_take_the_nic_is_noticed(self):
        self.host.refuses = {"vfio-pci"}
        status, said, _ = self.run_it("--bind", NIC)
        self.assertEqual(status, 1)
        self.assertIn("did not take it", said["rows"][0]["state"])
        self.assertEqual(self.host.driver(NIC), "ixgbe")

    def test_the_nic_of_the_default_route_is_refused_also_below_a_bond(self):
        self.host.put("/proc/net/route", "Iface Destination Gateway\n"
                      "bond0.7 00000000 0100000A 0003 0 0 0 00000000 0 0 0")
        self.host.put("/sys/class/net/bond0.7/lower_bond0/mark", "")
        self.host.put("/sys/class/net/bond0/lower_eth1/mark", "")
        self.assertIn("eth1 carries the default route", self.refused("--bind", NIC, "--force"))

    def test_the_nic_of_the_ipv6_default_route_is_refused(self):
        nought = "0" * 32
        self.host.put("/proc/net/ipv6_route",
                      f"{nought} 00 {nought} 00 fe80 0400 1 0 3 eth1")
        self.assertIn("eth1 carries the default route", self.refused("--bind", NIC))

    def test_the_nic_of_the_session_is_refused(self):
        self.host.sessions = ["192.0.2.10"]
        self.assertIn("eth1 carries the session", self.refused("--bind", NIC, "--force"))

    def test_the_nic_of_the_session_is_refused_also_in_a_terminal_that_outlived_another(self):
        self.host.sessions = ["198.51.100.7", "192.0.2.10"]
        self.assertIn("eth1 carries the session", self.refused("--bind", NIC, "--force"))

    def test_an_interface_with_routes_needs_force(self):
        self.host.put("/proc/net/route", "Iface Destination Gateway\n"
                      "eth1 0000000A 00000000 0001 0 0 0 00FFFFFF 0 0 0")
        self.assertIn("say --force", self.refused("--bind", NIC))
        self.assertEqual(self.run_it("--bind", NIC, "--force")[0], 0)

    def test_bifurcated_drivers_stay_and_it_says_so(self):
        self.host.add_nic(OTHER, "mlx5_core", "eth2", group="8")
        self.assertIn("mlx5_core stays with the kernel", self.refused("--bind", OTHER))

    def test_mates_of_the_iommu_group_are_named(self):
        self.host.add_nic(OTHER, "igb", "eth2")
        self.assertIn(f"shared with {OTHER} (igb)", self.refused("--bind", NIC))
        self.assertEqual(self.run_it("--bind", NIC, "--bind", OTHER)[0], 0)
        self.assertEqual(self.host.driver(OTHER), "vfio-pci")

    def test_without_iommu_it_has_to_be_said(self):
        self.host.add_nic(OTHER, "ixgbe", "eth2", group=None)
        self.assertIn("no IOMMU", self.refused("--bind", OTHER))
        switch = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
        self.host.put(switch, "N")
        self.assertEqual(self.run_it("--bind", OTHER, "--no-iommu")[0], 0)
        self.assertEqual(self.host.read(switch), "Y")
        self.assertEqual(self.run_it("--undo")[0], 0)
        self.assertEqual(self.host.read(switch), "N")

    def test_an_unknown_address_lists_those_there_are(self):
        self.assertIn(f"there are: {NIC}", self.refused("--bind", "0000:99:00.0"))

    def test_interrupts_leave_the_cores_but_those_their_driver_places(self):
        for number, cores in (("24", "0-3"), ("25", "2"), ("26", "0"), ("27", "2-3")):
            self.host.put(f"/proc/irq/{number}/smp_affinity_list", cores)
        self.host.managed = {"27"}
        status, said, _ = self.run_it("--cores", "2-3")
        self.assertEqual(status, 0)
        self.assertEqual(self.host.read("/proc/irq/24/smp_affinity_list"), "0-1")
        self.assertEqual(self.host.read("/proc/irq/25/smp_affinity_list"), "0-1")
        self.assertIn("stays", said["rows"][2]["state"])
        self.assertIn("isolcpus=2-3", said["note"])
        self.assertEqual(self.run_it("--undo")[0], 0)
        self.assertEqual(self.host.read("/proc/irq/25/smp_affinity_list"), "2")

    def test_what_the_kernel_was_started_with_is_not_advised_again(self):
        for words, advised in (("isolcpus=managed_irq,domain,1-3 nohz_full=2-3 rcu_nocbs=0-3", []),
                               ("isolcpus=1 nohz_full=2-3", ["isolcpus=1-3", "rcu_nocbs=2-3"])):
            self.host.put("/proc/cmdline", "ro quiet " + words)
            note = self.run_it("--check", "--cores", "2-3")[1]["note"]
            self.assertEqual([word for word in note.split() if "=" in word], advised)

    def test_a_daemon_that_moves_interrupts_back_is_named(self):
        self.host.put("/proc/17/comm", "irqbalance")
        note = self.run_it("--check", "--cores", "2-3")[1]["note"]
        self.assertIn("systemctl disable --now irqbalance", note)
        self.assertIn("IRQBALANCE_BANNED_CPULIST=2-3", note)
        self.host.put("/proc/17/comm", "bash")
        self.assertNotIn("irqbalance", self.run_it("--check", "--cores", "2-3")[1]["note"])

    def test_interrupts_need_a_core_to_go_to(self):
        self.assertIn("no core is left beside 0-3", self.refused("--cores", "0-3"))

    def test_what_is_there_is_shown_and_nothing_is_changed(self):
        self.host.add_nic(OTHER, "mlx5_core", "eth0", group="8")
        status, said, _ = self.run_it()
        rows = {row["what"]: row["is"] for row in said["rows"]}
        self.assertEqual((status, self.host.log), (0, []))
        self.assertEqual(rows["hugepages 2048 kB, node 0"], "3")
        self.assertEqual(rows[f"NIC {NIC}"], "driver ixgbe, interface eth1, IOMMU")
        for word in ("default route", "your session", "stays with the kernel"):
            self.assertIn(word, rows[f"NIC {OTHER}"])
        self.assertIn("sets no clock", rows["governor"])

    def test_a_torn_journal_is_refused_and_nothing_changes(self):
        os.makedirs(os.path.dirname(self.journal))
        with open(self.journal, "w", encoding="utf-8") as file:
            file.write('{"version": 1, "wa')
        self.assertIn("not a journal", self.refused("--hugepages", "2M:10"))

    def test_lists_of_cores(self):
        self.assertEqual(parse_list("0-2,5"), {0, 1, 2, 5})
        self.assertEqual(print_list({5, 0, 1, 2}), "0-2,5")
        with self.assertRaises(ValueError):
            parse_list("2-x")


if __name__ == "__main__":
    unittest.main()
