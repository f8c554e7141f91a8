"""What scripts/host-setup changes: each change knows what is, what is wanted, and the way back.

A change is done by `make`, which looks at the result itself: the kernel answers a write with
success and gives fewer pages, and drivers refuse a device without an error.
"""

import errno
import json
import os

from host_facts import BIFURCATED, FOR_USERS, Refusal, parse_list, print_list

VFIO = "vfio-pci"
NOIOMMU = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"


class Setting:
    """One file with one value."""

    def __init__(self, host, what, path, wanted):
        self.host, self.what, self.path, self.wanted = host, what, path, wanted
        self.key = "file " + path

    def now(self):
        return self.host.read(self.path)

    def is_done(self):
        return self.now() == self.wanted

    def make(self):
        put(self.host, self.what, self.path, self.wanted)


def put(host, what, path, text):
    """Writes and reads back."""
    try:
        host.write(path, text)
    except OSError as error:
        raise Refusal(f"{what}: {path}: {error.strerror}") from error
    found = host.read(path)
    if found != text:
        raise Refusal(f"{what}: wrote {text}, the kernel keeps {found}")


class Pages(Setting):
    """Hugepages of one size on one node.  More than asked for is fine: others may use them."""

    def __init__(self, host, kib, node, count):
        where = "" if node is None else f" on node {node}"
        super().__init__(host, f"hugepages of {kib} kB{where}", host.page_file(kib, node),
                         str(count))
        if self.now() is None:
            raise Refusal(f"{self.what}: this kernel has none ({self.path} is not there)")
        self.kib = kib

    def is_done(self):
        return int(self.now() or 0) >= int(self.wanted)

    def make(self):
        self.host.write(self.path, self.wanted)
        if not self.is_done():
            raise Refusal(
                f"{self.what}: asked for {self.wanted}, the kernel had memory for {self.now()}: "
                f"free memory, or reserve them at boot (hugepagesz={self.kib}K "
                f"hugepages={self.wanted} on the kernel's command line)")


class Kept(Refusal):
    """The kernel keeps it, and that is no failure."""


class Interrupt(Setting):
    """Where one interrupt goes."""

    def __init__(self, host, number, wanted):
        super().__init__(host, f"interrupt {number}", f"/proc/irq/{number}/smp_affinity_list",
                         wanted)

    def make(self):
        try:
            self.host.write(self.path, self.wanted)
        except OSError as error:
            if error.errno == errno.EIO:
                raise Kept("its driver places it") from error
            raise


class NoIommu(Setting):
    """vfio where no IOMMU keeps a device to its own memory."""

    def __init__(self, host):
        super().__init__(host, "vfio without IOMMU", NOIOMMU, "Y")

    def now(self):
        return super().now() or "N"  # the switch is there once the module is

    def make(self):
        load(self.host, self.what)
        super().make()


class Binding:
    """A NIC at vfio-pci."""

    def __init__(self, host, pci, together=(), no_iommu=False, force=False):
        self.host, self.pci = host, pci
        self.key, self.what, self.wanted = "bind " + pci, f"NIC {pci}", VFIO
        check_nic(host, pci, no_iommu, force)
        check_group(host, pci, together)

    def now(self):
        return self.host.driver(self.pci) or "none"

    def is_done(self):
        return self.now() == VFIO

    def make(self):
        was = self.now()
        load(self.host, self.what)
        rebind(self.host, self.pci, VFIO, override=VFIO)
        if not self.is_done():
            rebind(self.host, self.pci, was, override="\n")
            raise Refusal(f"{self.what}: vfio-pci did not take it (dmesg says why); "
                          f"it is back at {self.now()}")


def load(host, what):
    error = host.load_module(VFIO)
    if error:
        raise Refusal(f"{what}: vfio-pci cannot be loaded: {error}")


def rebind(host, pci, driver, override):
    """Takes the device from its driver and hands it to another; "none" leaves it without."""
    device = f"/sys/bus/pci/devices/{pci}"
    try:
        if host.driver(pci):
            host.write(device + "/driver/unbind", pci)
        host.write(device + "/driver_override", override)
        if driver != "none":
            host.write("/sys/bus/pci/drivers_probe", pci)
    except OSError as error:
        raise Refusal(f"NIC {pci}: {error.filename or device}: {error.strerror}") from error


def check_nic(host, pci, no_iommu, force):
    """Refuses a NIC that this host or this session needs, and those that vfio cannot have."""
    if pci not in host.nics():
        raise Refusal(f"NIC {pci}: no network device has this address; there are: "
                      f"{', '.join(host.nics()) or 'none'}")
    driver, names = host.driver(pci), set(host.interfaces(pci))
    if driver in FOR_USERS:
        return
    if driver in BIFURCATED:
        raise Refusal(f"NIC {pci}: {driver} stays with the kernel: its DPDK driver works beside "
                      f"it; name the address in weir.link.port as it is")
    for kind, carrying in (("the default route", host.default_routes()),
                           ("the session you are in", host.session())):
        if names & carrying:
            raise Refusal(f"NIC {pci}: {', '.join(sorted(names & carrying))} carries {kind}; "
                          f"use another NIC")
    if names & host.routed() and not force:
        raise Refusal(f"NIC {pci}: {', '.join(sorted(names & host.routed()))} is in use: it has "
                      f"routes; take them away, or say --force")
    if not host.has_iommu(pci) and not no_iommu:
        raise Refusal(f"NIC {pci}: no IOMMU: boot with intel_iommu=on or amd_iommu=on, or say "
                      f"--no-iommu: then the NIC can write to all of memory")


def check_group(host, pci, together):
    """vfio gives out whole IOMMU groups: its others have to leave the kernel as well."""
    rest = [f"{mate} ({driver})" for mate, driver in host.mates(pci) if mate not in together]
    if rest:
        raise Refusal(f"NIC {pci}: its IOMMU group is shared with {', '.join(rest)}: "
                      f"bind those too, or use another slot")


def away(host, cores):
    """Keeps interrupts off the cores."""
    online = parse_list(host.read("/sys/devices/system/cpu/online") or "0")
    rest = online - cores
    if not rest:
        raise Refusal(f"interrupts: no core is left beside {print_list(cores)}")
    found = []
    for path in host.names("/proc/irq/[0-9]*/smp_affinity_list"):
        now = parse_list(host.read(path) or "")
        if now & cores:
            found.append(Interrupt(host, path.split("/")[3], print_list(now - cores or rest)))
    return found


GOVERNORS = "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"


def governors(host, wanted):
    """Of each core that has one.  Refuses a governor that the kernel does not have."""
    paths = host.names(GOVERNORS)
    if not paths:
        raise Refusal("governor: this kernel sets no clock (a guest, or no cpufreq driver)")
    for path in paths:
        known = host.read(os.path.dirname(path) + "/scaling_available_governors")
        if known is not None and wanted not in known.split():
            raise Refusal(f"governor: this kernel has no {wanted}; there are: {known}")
    return [Setting(host, f"governor of core {path.split('/')[5][3:]}", path, wanted)
            for path in paths]


class Journal:
    """What was before, written down before each change, so that --undo finds it after a crash."""

    def __init__(self, path):
        self.path = path
        self.entries = {}
        try:
            with open(path, encoding="utf-8") as file:
                self.entries = dict(json.load(file)["was"])
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Refusal(f"{path}: not a journal of host-setup ({error}); "
                          f"move it away, then --undo cannot know what was") from error

    def save(self):
        if not self.entries:
            if os.path.exists(self.path):
                os.remove(self.path)
            return
        os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump({"version": 1, "was": self.entries}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(self.path + ".new", self.path)

    def make(self, change):
        """Notes what was, unless an earlier run did, and changes it."""
        if change.key not in self.entries:
            self.entries[change.key] = change.now()
            self.save()
        try:
            change.make()
        except Kept:
            del self.entries[change.key]
            self.save()
            raise

    def ahead(self):
        """What undo puts back, in its order: (what, what it was)."""
        return list(reversed(list(self.entries.items())))

    def undo(self, host):
        """Puts everything back, last first; yields (what, error or None)."""
        for key, was in self.ahead():
            try:
                put_back(host, key, was)
            except (Refusal, OSError) as error:
                yield key, str(error)
                continue
            del self.entries[key]
            self.save()
            yield key, None


def put_back(host, key, was):
    kind, _, name = key.partition(" ")
    if kind == "file":
        put(host, name, name, was)
        return
    rebind(host, name, was, override="\n")
    if (host.driver(name) or "none") != was:
        raise Refusal(f"NIC {name}: expected driver {was}, it is at {host.driver(name) or 'none'}")
