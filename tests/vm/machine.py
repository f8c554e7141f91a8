"""A guest: QEMU's command line, its console, and its end."""

import os
import queue
import signal
import subprocess
import threading
import time

from image import find_program

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))

NICS = {"e1000e": "e1000e"}  # kinds of NIC, as QEMU calls their devices
BOOT = ("console=ttyS0 quiet loglevel=4 panic=-1 intel_iommu=on hugepages=256 mitigations=off "
        "no5lvl nokaslr random.trust_cpu=on cryptomgr.notests")


class Failed(Exception):
    """What was seen is not what must be."""


class Machine:
    """One boot of a guest with that kind of NIC, from power on to power off or to a cut."""

    def __init__(self, world, nic, words):
        self.lines = queue.Queue()
        self.console = world.path("console.log")
        self.begun = time.monotonic()
        self.child = subprocess.Popen(  # pylint: disable=consider-using-with
            self.words(world, nic, words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    @staticmethod
    def words(world, nic, words):
        kernel = world.kernel
        line = [find_program("qemu-system-x86_64", "qemu-system-x86"),
                "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
                "-m", "1536", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-serial", "stdio", "-device", "intel-iommu,intremap=on,aw-bits=48",
                "-kernel", kernel.image, "-initrd", world.initramfs,
                "-append", f"{BOOT} weir.run={','.join(words)}",
                # O_DIRECT on the host, and a cache that the guest must flush.
                "-drive", f"file={world.disk},if=none,id=disk,format=raw,cache=none,aio=threads",
                "-device", "virtio-blk-pci,drive=disk"]
        for tag, path, more in (("usr", "/usr", ",readonly=on,multidevs=remap"),
                                ("weir", ROOT, ",readonly=on,multidevs=remap"),
                                ("build", world.build, ",readonly=on,multidevs=remap"),
                                ("shared", world.shared, "")):
            line += ["-virtfs", f"local,path={path},mount_tag={tag},security_model=none{more}"]
        for i in (1, 2):
            line += ["-netdev", f"hubport,hubid=0,id=net{i}",
                     "-device", f"{NICS[nic]},netdev=net{i},mac=02:00:00:00:00:0{i},addr=1{i}.0"]
        return line

    def read(self):
        """Each line of the console, with the time since power on; None at the end."""
        with open(self.console, "ab") as log:
            for line in self.child.stdout:
                log.write(f"{time.monotonic() - self.begun:7.2f} ".encode() + line)
                log.flush()
                text = line.decode("utf-8", "replace").strip()
                if "@" in text:
                    self.lines.put(text[text.index("@") + 1:].split())
        self.lines.put(None)

    def next(self, seconds):
        """What the guest says next; None once it is off."""
        try:
            words = self.lines.get(timeout=seconds)
        except queue.Empty:
            raise Failed(f"the guest said nothing for {seconds} s:\n" + self.tail()) from None
        if words is not None and words[:1] == ["failed"]:
            raise Failed("guest: " + " ".join(words[1:]) + "\n" + self.tail())
        return words

    def tail(self):
        with open(self.console, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-30:])

    def cut(self):
        """As when the plug is pulled: nothing in the guest learns of it."""
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()
        self.reader.join()

    def close(self):
        if self.child.poll() is None:
            self.cut()
