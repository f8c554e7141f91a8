#!/usr/bin/env python3
"""tests/vm/run without a guest: its arguments, how it skips, and what it makes of a console."""

import contextlib
import importlib.machinery
import importlib.util
import io
import lzma
import os
import struct
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
PROGRAM = os.path.join(ROOT, "tests/vm/run")
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("vm_run", PROGRAM)
vm_run = importlib.util.module_from_spec(importlib.util.spec_from_loader("vm_run", loader))
loader.exec_module(vm_run)
image = vm_run.image
LOG = "2026-01-01 00:00:00.000 DEBUG [weir-coordinator] job_master: job flow-metering"


def call(*words, path=None):
    env = {**os.environ, **({"PATH": path} if path else {})}
    return subprocess.run([sys.executable, PROGRAM, *words], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)


class Folder(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="weir-vm-test-")
        self.addCleanup(vm_run.shutil.rmtree, self.dir)

    def put(self, name, content=b"", mode=0o644):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, mode)
        return path


class Arguments(Folder):
    def programs(self):
        for name in image.PROGRAMS:
            self.put("build/" + name, mode=0o755)
        return os.path.join(self.dir, "build")

    def test_help_names_phases_and_exit_codes(self):
        done = call("--help")
        self.assertEqual(done.returncode, 0)
        for word in (*vm_run.PHASES, "77", "--fetch", "examples"):
            self.assertIn(word, done.stdout)

    def test_what_cannot_be_meant_is_refused(self):
        for words in (["floppy"], ["power", "--cuts", "0"], ["--build", self.dir]):
            done = call("--build", self.programs(), *words)
            self.assertEqual(done.returncode, 2, done.stdout)

    def test_without_qemu_it_skips_loudly(self):
        done = call("--build", self.programs(), path=self.dir)
        self.assertEqual(done.returncode, vm_run.SKIPPED, done.stdout)
        self.assertTrue(done.stdout.startswith("SKIP tests/vm: "), done.stdout)
        self.assertIn("qemu-system-x86", done.stdout)

    def test_without_a_kernel_it_says_how_to_get_one(self):
        with self.assertRaises(image.Missing) as caught:
            image.find_kernel([self.dir])
        self.assertIn("--fetch", str(caught.exception))


class Image(Folder):
    def bz_image(self, payload):
        head = bytearray(5 * 512)
        head[0x1f1] = 4
        struct.pack_into("<II", head, 0x248, 32, len(payload))
        return bytes(head) + bytes(32) + payload + bytes(64)

    def test_a_kernel_is_unpacked(self):
        self.assertEqual(image.unpacked(self.bz_image(lzma.compress(b"\x7fELF and more"))),
                         b"\x7fELF and more")

    def test_one_that_is_packed_in_another_way_is_left_as_it_is(self):
        self.assertIsNone(image.unpacked(self.bz_image(b"\x28\xb5\x2f\xfd zstd")))

    def test_modules_come_behind_what_they_need(self):
        for name in ("a/virtio_pci", "a/virtio", "b/virtio-ring"):
            self.put(f"lib/modules/6.1.0/kernel/{name}.ko")
        kernel = image.Kernel(self.dir, "6.1.0")
        needs = {"kernel/a/virtio_pci.ko": ["kernel/a/virtio.ko", "kernel/b/virtio-ring.ko"],
                 "kernel/a/virtio.ko": ["kernel/b/virtio-ring.ko"]}
        self.assertEqual(image.order(kernel, needs, ["virtio_pci", "virtio"]),
                         ["kernel/b/virtio-ring.ko", "kernel/a/virtio.ko",
                          "kernel/a/virtio_pci.ko"])


class Guest(Folder):
    def words(self, nics):
        initramfs = types.SimpleNamespace(path="initramfs", modules=lambda *_: [])
        world = types.SimpleNamespace(vmlinux="vmlinux", root="root", initramfs=initramfs)
        self.put("bin/qemu-system-x86_64", mode=0o755)
        with unittest.mock.patch.dict(os.environ, {"PATH": os.path.join(self.dir, "bin")}):
            return vm_run.Machine.words(world, "disk", nics, [], ())

    def test_two_nics_of_a_kind_are_joined(self):
        words = " ".join(self.words(["e1000e", "vmxnet3"]))
        for hub, kind in enumerate(("e1000e", "vmxnet3")):
            self.assertEqual(words.count(f"hubport,hubid={hub},"), 2)
            self.assertEqual(words.count(f"-device {kind},"), 2)
        self.assertNotIn("unshare", words)

    def test_nics_with_queues_are_those_of_virtio_and_hang_on_taps(self):
        words = self.words(["virtio", "rss"])
        self.assertEqual(words[0], "unshare")
        self.assertEqual(sum(word.startswith("virtio-net-pci") for word in words), 2)
        self.assertEqual(sum(word.startswith("tap,ifname=tap1") for word in words), 2)
        self.assertFalse(any(word.startswith("hubport") for word in words))
        self.assertLess(words.index("tap17"), words.index("--"))


class Nics(unittest.TestCase):
    STORE = "x taskmanager: memory: storage         storage by io_uring, buffers registered"
    ONE = "frames to 1514 bytes, one queue pair of 1024 descriptors"
    RSS = "frames to 1514 bytes, 2 queue pairs, to which frames come by RSS and, where it errs"
    DEVICE = "frames to 1514 bytes, 2 queue pairs, to which frames come by ring"

    HANDED = "link          1331 frames, 2 pieces sent again, 0 frames handed over between queues"

    def hear(self, driver, store=STORE, status=0, nic="e1000e", queues=ONE, handed=HANDED):
        nics = vm_run.Nics([nic])
        with contextlib.redirect_stdout(io.StringIO()):
            for line in (f"@bound {nic} {nic} 0000:00:10.0", store, store,
                         f"x link: 0000:00:10.0 ({driver}): {queues}",
                         f"x link: 0000:00:11.0 ({driver}): {queues}", handed,
                         f"@done {nic} {status}"):
                nics.hear(line)
        return nics

    def test_two_links_over_the_driver_are_good(self):
        self.assertEqual(self.hear("net_e1000_em").done, ["e1000e"])

    def test_several_queues_are_good_where_they_are_meant_and_the_device_spreads(self):
        rss = self.hear("net_virtio", nic="rss", queues=self.RSS)
        self.assertEqual(rss.done, ["rss"])
        for nic, queues in (("rss", self.ONE), ("rss", self.DEVICE), ("virtio", self.RSS)):
            with self.subTest(nic), self.assertRaises(vm_run.Failed):
                self.hear("net_virtio", nic=nic, queues=queues)

    def test_another_driver_or_a_copying_store_or_a_failed_job_is_not(self):
        for case in ({"driver": "net_memif"}, {"driver": "net_e1000_em", "status": 1},
                     {"driver": "net_e1000_em", "store": "memory: storage buffers not registered"},
                     {"driver": "net_e1000_em", "handed": "no word of frames"},
                     {"driver": "net_e1000_em",
                      "handed": self.HANDED.replace(" 0 frames", " 3 frames")}):
            with self.subTest(case), self.assertRaises(vm_run.Failed):
                self.hear(**case)


class Power(unittest.TestCase):
    @staticmethod
    def boot(*lines):
        boot = vm_run.Boot()
        for line in lines:
            boot.hear(line)
        return boot

    def restored(self, boot, last):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            vm_run.check_restored(boot, last)
        return out.getvalue()

    def before(self):
        return self.boot(f"{LOG}: checkpoint 7 is triggered", f"{LOG}: checkpoint 7 is complete",
                         f"{LOG}: checkpoint 8 is triggered")

    def test_a_boot_says_what_is_complete_and_what_is_not(self):
        boot = self.before()
        self.assertEqual((boot.newest["complete"], boot.newest["begun"]), (7, 8))
        self.assertFalse(boot.died)

    def test_the_death_of_a_process_is_heard(self):
        self.assertTrue(self.boot("coordinator ended (signal 9 (Killed)); starting it again").died)

    def test_what_is_left_of_a_checkpoint_is_told(self):
        for files, word in (("", "0 of its files"), (" task-1", "1 of its files"),
                            (" task-1 _metadata", "its _metadata is there"),
                            (" task-1 _metadata.spare", "1 of its files are there, and a spare")):
            after = self.boot(f"@disk chk-8{files}", f"{LOG} restores /disk/x/chk-7")
            self.assertIn(word, self.restored(after, self.before()))
        after = self.boot(f"{LOG} restores /disk/x/chk-8")
        self.assertIn("durable", self.restored(after, self.before()))

    def test_a_complete_checkpoint_that_is_gone_is_a_failure(self):
        for restored in (6, 9):
            with self.assertRaises(vm_run.Failed):
                self.restored(self.boot(f"{LOG} restores /disk/x/chk-{restored}"), self.before())


if __name__ == "__main__":
    unittest.main()
