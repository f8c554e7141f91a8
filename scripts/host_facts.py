"""What the kernel says of this host, for scripts/host-setup.

A Host reads and writes below one root, so that tests can give it a made-up /sys and /proc.
"""

import glob
import json
import os
import subprocess

# Their DPDK drivers work beside the kernel's: taking the NIC from it would take its port away.
BIFURCATED = {"mlx4_core", "mlx5_core", "mana"}
FOR_USERS = {"vfio-pci", "igb_uio", "uio_pci_generic"}
NETWORK_CLASS = 0x02
BRIDGE_CLASS = 0x06


class Refusal(Exception):
    """One line: what is not done, why, and what to do instead."""


def parse_list(text):
    """Kernel lists such as 0-3,6.  ValueError names what is none."""
    numbers = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise ValueError(f"expected a list of cores such as 2-9 or 2,4, got {text!r}")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def print_list(numbers):
    """0-3,6 from a set."""
    runs = []
    for n in sorted(numbers):
        if runs and runs[-1][1] == n - 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)


class Host:
    """Files of /sys and /proc below `root`, and the questions host-setup asks of them."""

    def __init__(self, root=""):
        self.root = root

    # ---- the edge: a test replaces these ----

    def read(self, path):
        """The text of a file without its end of line; None if it cannot be read."""
        try:
            with open(self.root + path, encoding="utf-8", errors="replace") as file:
                return file.read().strip()
        except OSError:
            return None

    def write(self, path, text):
        with open(self.root + path, "w", encoding="utf-8") as file:
            file.write(text)

    def link(self, path):
        """Last name of what a link points at, or None."""
        try:
            return os.path.basename(os.readlink(self.root + path))
        except OSError:
            return None

    def names(self, pattern):
        return sorted(path[len(self.root):] for path in glob.glob(self.root + pattern))

    def load_module(self, name):
        """Whether modprobe did it; its word if not."""
        try:
            done = subprocess.run(["modprobe", name], capture_output=True, text=True, check=False)
        except OSError as error:
            return str(error)
        return "" if done.returncode == 0 else done.stderr.strip() or "modprobe failed"

    def addresses(self):
        """Interface of each local address, from `ip`."""
        try:
            text = subprocess.run(["ip", "-json", "address"], capture_output=True, text=True,
                                  check=False).stdout
        except OSError:
            return {}
        return {address.get("local"): link.get("ifname")
                for link in json.loads(text or "[]") for address in link.get("addr_info", [])}

    def environments(self):
        """The environments of this process and all above it: sudo hides SSH_CONNECTION."""
        pid = os.getpid()
        while pid > 1:
            yield dict(word.partition("=")[::2]
                       for word in (self.read(f"/proc/{pid}/environ") or "").split("\0"))
            status = self.read(f"/proc/{pid}/stat") or ""
            fields = status.rpartition(")")[2].split()
            pid = int(fields[1]) if len(fields) > 1 else 0

    # ---- questions ----

    def nodes(self):
        """NUMA nodes that have memory; none on a kernel without NUMA."""
        return [int(path.split("/")[5][len("node"):])
                for path in self.names("/sys/devices/system/node/node[0-9]*/hugepages")]

    def page_file(self, kib, node):
        base = f"/sys/devices/system/node/node{node}" if node is not None else "/sys/kernel/mm"
        return f"{base}/hugepages/hugepages-{kib}kB/nr_hugepages"

    def nics(self):
        """PCI addresses of network devices."""
        found = []
        for path in self.names("/sys/bus/pci/devices/*"):
            if int(self.read(path + "/class") or "0", 16) >> 16 == NETWORK_CLASS:
                found.append(os.path.basename(path))
        return found

    def driver(self, pci):
        return self.link(f"/sys/bus/pci/devices/{pci}/driver")

    def interfaces(self, pci):
        """Interfaces of the device, also below a virtio or VF layer."""
        names = []
        for path in self.names("/sys/class/net/*"):
            device = os.path.realpath(self.root + path + "/device")
            if f"/{pci}/" in device + "/":
                names.append(os.path.basename(path))
        return names

    def mates(self, pci):
        """(address, driver) of others in its IOMMU group that the kernel drives, but bridges."""
        folder = f"/sys/bus/pci/devices/{pci}/iommu_group/devices"
        mates = []
        for path in self.names(folder + "/*"):
            other = os.path.basename(path)
            kind = int(self.read(f"/sys/bus/pci/devices/{other}/class") or "0", 16) >> 16
            driver = self.driver(other)
            if other != pci and kind != BRIDGE_CLASS and driver and driver not in FOR_USERS:
                mates.append((other, driver))
        return mates

    def has_iommu(self, pci):
        return self.link(f"/sys/bus/pci/devices/{pci}/iommu_group") is not None

    def lower(self, interface):
        """The interface and all it stands on: a bond's, bridge's or VLAN's members."""
        seen, ahead = set(), [interface]
        while ahead:
            name = ahead.pop()
            if name in seen:
                continue
            seen.add(name)
            ahead += [path.rpartition("/lower_")[2]
                      for path in self.names(f"/sys/class/net/{name}/lower_*")]
        return seen

    def default_routes(self):
        """Interfaces of the default routes, IPv4 and IPv6, with what they stand on."""
        found = set()
        for line in (self.read("/proc/net/route") or "").splitlines()[1:]:
            words = line.split()
            if len(words) > 7 and words[1] == "00000000" and words[7] == "00000000":
                found.add(words[0])
        for line in (self.read("/proc/net/ipv6_route") or "").splitlines():
            words = line.split()
            if len(words) > 9 and words[0] == "0" * 32 and words[1] == "00":
                found.add(words[9])
        found.discard("lo")
        return set().union(*(self.lower(name) for name in found)) if found else set()

    def session(self):
        """Interfaces that carry the ssh session this runs in; what a terminal that outlived its
        session (tmux) says may be old, so those of all above it count."""
        found = set()
        for environment in self.environments():
            words = environment.get("SSH_CONNECTION", "").split()
            name = self.addresses().get(words[2].partition("%")[0]) if len(words) == 4 else None
            if name:
                found |= self.lower(name)
        return found

    def is_running(self, name):
        """Whether a program of that name runs."""
        return any(self.read(path) == name for path in self.names("/proc/[0-9]*/comm"))

    def routed(self):
        """Interfaces with any route over IPv4."""
        lines = (self.read("/proc/net/route") or "").splitlines()[1:]
        names = {line.split()[0] for line in lines if line.split()}
        return set().union(*(self.lower(name) for name in names)) if names else set()
