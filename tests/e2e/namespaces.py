"""Network namespaces as hosts: a hub with a coordinator, and hosts that reach it over a bridge of
their own.  Nothing outside of them is touched; all of it goes with them."""

import contextlib
import ctypes
import glob
import os
import shutil
import subprocess

from harness import Failed, Skip
from processes import are_alive

CLONE_NEWNET = 0x40000000
PREFIX = "weir-e2e-"


def ip(*words):
    done = subprocess.run(["ip", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def sweep():
    """Removes what a test that was killed has left."""
    for path in glob.glob(f"/run/netns/{PREFIX}*"):
        name = os.path.basename(path)
        if not are_alive([int(name[len(PREFIX):].split("-")[0])]):
            ip("netns", "del", name)


@contextlib.contextmanager
def inside(name):
    """The thread is in that namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net", "rb") as ours, \
            open(f"/run/netns/{name}", "rb") as theirs:
        if libc.setns(theirs.fileno(), CLONE_NEWNET) != 0:
            raise Failed(f"setns {name}: {os.strerror(ctypes.get_errno())}")
        try:
            yield
        finally:
            libc.setns(ours.fileno(), CLONE_NEWNET)


class Hosts:
    """`count` hosts and a hub; removed by close()."""

    def __init__(self, count):
        if os.getuid() != 0:
            raise Skip("network namespaces need root")
        if shutil.which("ip") is None:
            raise Skip("no ip here (apt install iproute2)")
        sweep()
        self.names = []
        self.hub = self.add("hub")
        ip("-n", self.hub, "link", "add", "control", "type", "bridge")
        ip("-n", self.hub, "addr", "add", f"{self.address(None)}/24", "dev", "control")
        ip("-n", self.hub, "link", "set", "control", "up")
        self.hosts = []
        for i in range(count):
            host = self.add(str(i))
            self.join(self.hub, f"host{i}", host, "control")
            ip("-n", self.hub, "link", "set", f"host{i}", "master", "control")
            ip("-n", host, "addr", "add", f"{self.address(i)}/24", "dev", "control")
            self.hosts.append(host)

    def add(self, suffix):
        name = f"{PREFIX}{os.getpid()}-{suffix}"
        try:
            ip("netns", "add", name)
        except Failed as failure:
            raise Skip(f"no network namespaces here: {failure}") from None
        self.names.append(name)
        ip("-n", name, "link", "set", "lo", "up")
        return name

    @staticmethod
    def address(host):
        """Where a host, or the hub, is on the bridge."""
        return f"10.99.0.{1 if host is None else host + 2}"

    @staticmethod
    def join(a, interface_a, b, interface_b, mtu=1500):
        """A pair of veths between two namespaces, up and quiet: no neighbour discovery."""
        ip("-n", a, "link", "add", interface_a, "mtu", str(mtu), "type", "veth", "peer", "name",
           interface_b, "mtu", str(mtu), "netns", b)
        for name, interface in ((a, interface_a), (b, interface_b)):
            Hosts.set(name, f"net.ipv6.conf.{interface}.disable_ipv6", 1)
            ip("-n", name, "link", "set", interface, "up")

    @staticmethod
    def set(host, key, value):
        """A kernel parameter of a host."""
        with inside(host), open("/proc/sys/" + key.replace(".", "/"), "w",
                                encoding="ascii") as file:
            file.write(str(value))

    def close(self):
        for name in reversed(self.names):
            ip("netns", "del", name)
        self.names = []
