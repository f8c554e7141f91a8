"""A guest: QEMU's command line, its console, and its end."""

import os
import queue
import signal
import shutil
import subprocess
import threading
import time

import spread
from image import find_program

# Kinds of NIC: the device and options of QEMU's, DPDK's driver for it.  Those of `rss` are those of
# `virtio` with several queues, and one pair is both.
VIRTIO = "virtio-net-pci,disable-legacy=on,iommu_platform=on"
QUEUES = 2
NICS = {"e1000e": ("e1000e", "net_e1000_em"),
        "vmxnet3": ("vmxnet3", "net_vmxnet3"),
        "virtio": (VIRTIO, "net_virtio"),
        "rss": (f"{VIRTIO},mq=on,rss=on,vectors={2 * QUEUES + 2}", "net_virtio")}
# Of QEMU's networks only taps have several queues: in a network namespace of the guest's own, which
# goes with it, joined by a bridge.  All that a guest does not take yet waits in a tap's queue.
# What the kernel says by itself at a new interface is no packet of ours.
WIRE = ("echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6; "
        "ip link add wire0 type bridge && ip link set wire0 up || exit 1; "
        "while [ $1 != -- ]; do ip tuntap add $1 mode tap multi_queue && "
        "ip link set $1 txqueuelen 50000 master wire0 up || exit 1; shift; done; "
        "shift; exec \"$@\"")
BOOT = ("console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off no5lvl nokaslr tsc=reliable "
        "random.trust_cpu=on cryptomgr.notests")
HUGEPAGES = "intel_iommu=on hugepages=128"


class Failed(Exception):
    """What was seen is not what must be."""


def wired(taps, words):
    """The same command where these taps are joined."""
    return ["unshare", "--map-root-user", "--net", "sh", "-c", WIRE, "sh", *taps, "--", *words]


def wire_missing():
    """Why taps cannot be joined here, or None."""
    for name in ("unshare", "ip"):
        if shutil.which(name) is None:
            return f"no {name}"
    done = subprocess.run(wired(["tap0"], ["true"]), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return None if done.returncode == 0 else "no taps in a network namespace: " + \
        done.stdout.strip()


def pairs(nics):
    """The kinds that a guest has two NICs of."""
    return [nic for nic in nics if nic != "virtio" or "rss" not in nics]


class Machine:
    """One boot of a guest with NICs of those kinds and modules beside theirs, until
    power off or a cut."""

    def __init__(self, world, disk, nics, words, modules=()):
        self.lines = queue.Queue()
        self.console = disk + ".console"
        self.begun = time.monotonic()
        self.child = subprocess.Popen(  # pylint: disable=consider-using-with
            self.words(world, disk, nics, words, modules), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    @staticmethod
    def words(world, disk, nics, words, modules):
        line = [find_program("qemu-system-x86_64", "qemu-system-x86"),
                "-machine", "q35", "-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max",
                "-smp", "2", "-m", "1024" if nics or modules else "512",
                "-nodefaults", "-no-user-config",
                "-display", "none", "-no-reboot", "-serial", "stdio",
                *(["-device", "intel-iommu,intremap=on,aw-bits=48"] if nics else []),
                "-kernel", world.vmlinux, "-initrd", world.initramfs.path,
                "-append", f"{BOOT} {HUGEPAGES if nics else ''} "
                           f"weir.modules={','.join(world.initramfs.modules(nics, modules))} "
                           f"weir.run={','.join(words)}",
                "-drive", f"file={world.root},if=none,id=root,format=raw,readonly=on",
                "-device", "virtio-blk-pci,drive=root,addr=8",
                # O_DIRECT on the host, and a cache that the guest must flush.
                "-drive", f"file={disk},if=none,id=disk,format=raw,cache=none,aio=threads",
                "-device", "virtio-blk-pci,drive=disk,addr=9"]
        taps = []
        for hub, nic in enumerate(pairs(nics)):
            for slot, rss_mac in zip((16 + hub * 2, 17 + hub * 2), spread.MACS):
                mac = rss_mac if nic == "rss" else f"02:00:00:00:00:{slot}"
                netdev = f"hubport,hubid={hub}"
                if nic == "rss":
                    taps.append(f"tap{slot}")
                    netdev = (f"tap,ifname={taps[-1]},queues={QUEUES},script=no,downscript=no,"
                              "vhost=off")
                line += ["-netdev", f"{netdev},id=net{slot}",
                         "-device", f"{NICS[nic][0]},netdev=net{slot},"
                                    f"mac={mac},addr={slot:x}.0"]
        return wired(taps, line) if taps else line

    def read(self):
        """Each line of the console, with the time since power on; None at the end."""
        with open(self.console, "ab") as log:
            for line in self.child.stdout:
                log.write(f"{time.monotonic() - self.begun:7.2f} ".encode() + line)
                log.flush()
                self.lines.put(line.decode("utf-8", "replace").strip())
        self.lines.put(None)

    def next(self, seconds):
        """The console's next line; None once the guest is off."""
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            raise Failed(f"the guest said nothing for {seconds} s:\n" + self.tail()) from None
        if line is not None and line.startswith("@failed"):
            raise Failed(f"guest: {line}\n" + self.tail())
        return line

    def tail(self):
        with open(self.console, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-40:])

    def cut(self):
        """As when the plug is pulled: nothing in the guest learns of it."""
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()
        self.reader.join()

    def close(self):
        if self.child.poll() is None:
            self.cut()
        self.reader.join()
