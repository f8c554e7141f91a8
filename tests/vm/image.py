"""The kernel of a guest, its initramfs, and its disks.

Kernel and modules are those of a Debian package, installed or only downloaded and unpacked.  The
initramfs holds a busybox, the modules a guest needs, and `guest_init`.  The root disk holds weir,
what it is linked with, the few drivers of DPDK that are meant, and the job.
"""

import glob
import lzma
import os
import re
import shutil
import struct
import subprocess
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "linux-image-amd64"
CACHE = "~/.cache/weir-vm"
PYTHON = "/usr/bin/python3"

# What a guest loads, each behind what it needs.
DISKS = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")
VFIO = ("vfio_iommu_type1", "vfio-pci")
# Taps, a bridge between them, and what DPDK's rules for a tap are made of.
TAP = ("tun", "bridge", "sch_multiq", "sch_ingress", "cls_flower", "act_skbedit", "act_gact")
NIC_MODULES = {"e1000e": "e1000e", "vmxnet3": "vmxnet3", "virtio": "virtio_net",
               "rss": "virtio_net"}

PROGRAMS = ("weir", "weir-coordinator", "weir-taskmanager")
# EAL loads every driver of its folder, here a hundred at the speed of an emulated processor.
DRIVERS = ("bus_pci", "bus_vdev", "mempool_ring", "net_e1000", "net_vmxnet3", "net_virtio",
           "net_tap")
# (package, its programs that guests need)
TOOLS = {"busybox-static": "busybox", "pciutils": "lspci", "dpdk": "dpdk-devbind.py"}
HOST_TOOLS = {"qemu-system-x86": "qemu-system-x86_64", "e2fsprogs": "mke2fs"}


class Missing(Exception):
    """What is not on this host, and how to get it."""


def find_program(name, package):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        raise Missing(f"no {name} on this host: apt-get install --no-install-recommends {package}")
    return path


def find_programs():
    """All that is missing, in one message."""
    missing = []
    for package, name in {**HOST_TOOLS, **TOOLS}.items():
        try:
            find_program(name, package)
        except Missing:
            missing.append((name, package))
    if missing:
        raise Missing("no " + ", ".join(name for name, _ in missing) + " on this host: apt-get "
                      "install --no-install-recommends " + " ".join(p for _, p in missing))


def cache(*names):
    return os.path.join(os.path.expanduser(os.environ.get("WEIR_VM_CACHE", CACHE)), *names)


class Kernel:
    """A kernel below a root: the host's own, or where its package was unpacked."""

    def __init__(self, root, version):
        self.version = version
        self.image = os.path.join(root, "boot", "vmlinuz-" + version)
        self.modules = os.path.join(root, "lib", "modules", version)

    def has_what_we_need(self):
        return os.access(self.image, os.R_OK) and all(
            self.module_path(name) for name in ("vfio-pci", "virtio_blk", "vmxnet3"))

    def module_path(self, name):
        """Below the folder of modules; the file may be compressed, which busybox cannot load."""
        pattern = "/" + re.sub("[-_]", "[-_]", name) + ".ko"
        found = glob.glob(self.modules + "/kernel/**" + pattern, recursive=True)
        return os.path.relpath(found[0], self.modules) if found else None

    def dependencies(self):
        """Of each module those it needs, as busybox works them out."""
        root = os.path.dirname(os.path.dirname(os.path.dirname(self.modules)))
        text = subprocess.run([find_program("busybox", "busybox-static"), "depmod", "-n", "-b",
                               root, self.version], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        needs = {}
        for line in text.splitlines():
            path, colon, rest = line.partition(":")
            if colon and path.endswith(".ko"):
                needs[path] = rest.split()
        return needs


def find_kernel(roots=None):
    """The newest that fits: one of the host's, or one that `fetch_kernel` unpacked."""
    for root in roots or ("/", cache("kernel")):
        versions = sorted((os.path.basename(p)[len("vmlinuz-"):]
                           for p in glob.glob(os.path.join(root, "boot", "vmlinuz-*-amd64"))),
                          key=lambda v: [int(n) for n in re.findall(r"\d+", v)], reverse=True)
        for version in versions:
            kernel = Kernel(root, version)
            if kernel.has_what_we_need():
                return kernel
    raise Missing(f"no kernel for the guest: apt-get install {PACKAGE}, or `tests/vm/run --fetch` "
                  f"to download that package and unpack it in {cache()}, nothing installed")


def fetch_kernel():
    """Downloads the package of the newest kernel and unpacks it in the cache."""
    folder = cache("kernel")
    text = subprocess.run(["apt-cache", "depends", PACKAGE], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    found = re.search(r"Depends: (linux-image-\S+)", text)
    if found is None:
        raise Missing(f"apt knows no {PACKAGE}: run apt-get update first")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    subprocess.run(["apt-get", "-q", "download", found[1]], cwd=folder, check=True)
    package = glob.glob(os.path.join(folder, "*.deb"))[0]
    subprocess.run(["dpkg", "-x", package, folder], check=True)
    os.unlink(package)
    return find_kernel()


def unpacked(image):
    """The ELF file that a bzImage holds; None when it is packed in a way not known here.

    A guest unpacks its kernel at the speed of an emulated processor; that is half of its boot.
    """
    setup_sectors = image[0x1f1] or 4
    offset, size = struct.unpack_from("<II", image, 0x248)  # payload_offset, payload_length
    begin = (setup_sectors + 1) * 512 + offset
    payload = image[begin:begin + size]
    if payload.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(wbits=31).decompress(payload)
    return None


def vmlinux(kernel):
    """What QEMU is to boot: the unpacked kernel in the cache, else the image as it is."""
    target = cache("vmlinux-" + kernel.version)
    if os.path.exists(target) and os.path.getmtime(target) > os.path.getmtime(kernel.image):
        return target
    with open(kernel.image, "rb") as file:
        elf = unpacked(file.read())
    if elf is None:
        return kernel.image
    os.makedirs(cache(), exist_ok=True)
    with open(target + ".new", "wb") as file:
        file.write(elf)
    os.rename(target + ".new", target)
    return target


def order(kernel, needs, names):
    """Paths of all modules to be loaded for these, each behind those it needs."""
    ordered = []
    for name in names:
        todo = [kernel.module_path(name)]
        while todo and todo[0]:
            path = todo[-1]
            missing = [p for p in needs.get(path, []) if p not in ordered]
            if missing:
                todo.append(missing[-1])
                continue
            if path not in ordered:
                ordered.append(path)
            todo.pop()
    return ordered


class Initramfs:
    """An archive of a few MB in the cache, and which modules it loads for which NICs."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.needs = kernel.dependencies()
        self.path = cache(f"initramfs-{kernel.version}")
        sources = [os.path.join(HERE, "guest_init"), os.path.abspath(__file__), kernel.image]
        if not os.path.exists(self.path) or any(
                os.path.getmtime(self.path) <= os.path.getmtime(source) for source in sources):
            self.make()

    def modules(self, nics, more=()):
        """Names, in the order in which they are loaded."""
        names = DISKS + more + (
            (VFIO + tuple({NIC_MODULES[nic]: 1 for nic in nics})) if nics else ())
        return [os.path.basename(path)[:-len(".ko")]
                for path in order(self.kernel, self.needs, names)]

    def make(self):
        busybox = find_program("busybox", "busybox-static")
        stage = self.path + ".stage"
        shutil.rmtree(stage, ignore_errors=True)
        for name in ("bin", "modules", "dev", "proc", "sys", "new"):
            os.makedirs(os.path.join(stage, name))
        shutil.copy(busybox, os.path.join(stage, "bin", "busybox"))
        shutil.copy(os.path.join(HERE, "guest_init"), os.path.join(stage, "init"))
        os.chmod(os.path.join(stage, "init"), 0o755)
        for path in order(self.kernel, self.needs,
                          DISKS + VFIO + TAP + tuple(NIC_MODULES.values())):
            shutil.copy(os.path.join(self.kernel.modules, path), os.path.join(stage, "modules"))
        with open(self.path + ".new", "wb") as file, \
                subprocess.Popen([busybox, "find", "."], cwd=stage,
                                 stdout=subprocess.PIPE) as listing:
            subprocess.run([busybox, "cpio", "-o", "-H", "newc"], cwd=stage, stdin=listing.stdout,
                           stdout=file, stderr=subprocess.DEVNULL, check=True)
        shutil.rmtree(stage)
        os.rename(self.path + ".new", self.path)


def linked_with(path):
    """Shared objects that the dynamic linker loads with that one."""
    text = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", text)


def python_modules(script):
    """Files of the modules that this script imports, with their compiled forms."""
    code = ("import runpy, sys\n"
            "try: runpy.run_path(sys.argv.pop(1), run_name='__main__')\n"
            "except BaseException: pass\n"
            "for m in list(sys.modules.values()):\n"
            "    for p in (getattr(m, '__file__', None), getattr(m, '__cached__', None)):\n"
            "        if p: print('module', p)\n")
    text = subprocess.run([PYTHON, "-S", "-E", "-B", "-c", code, script, "--status"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=False).stdout
    return [line.split(" ", 1)[1] for line in text.splitlines() if line.startswith("module /")]


def driver_files():
    """Of DPDK's drivers, those that can be meant."""
    return [path for name in DRIVERS
            for path in glob.glob(f"/usr/lib/*/dpdk/pmds-*/librte_{name}.so*")]


class RootDisk:
    """A small Debian of what weir and dpdk-devbind.py need, read-only in guests."""

    def __init__(self, stage):
        self.stage = stage
        for name in ("usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "weir", "disk", "dev", "etc",
                     "proc", "sys", "run", "tmp", "var"):
            os.makedirs(os.path.join(stage, name))
        for name in ("bin", "sbin", "lib", "lib64"):
            os.symlink("usr/" + name, os.path.join(stage, name))
        os.symlink("../run", os.path.join(stage, "var", "run"))

    def add(self, path, name=None):
        """A file of the host at its own place, or as that name; a link is one there too, for a
        library that has two names must not be loaded twice."""
        while name is None and os.path.islink(path):
            self.copy(path, path)
            path = os.path.join(os.path.dirname(path), os.readlink(path))
        self.copy(path, name or path)

    def copy(self, path, name):
        target = self.stage + name
        if not os.path.lexists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(path, target, follow_symlinks=False)

    def add_program(self, path, name=None):
        self.add(path, name)
        for library in linked_with(path):
            self.add(library)

    def fill(self, build):
        for name in PROGRAMS:
            self.add_program(os.path.join(build, name), "/weir/" + name)
        for path in driver_files():
            self.add_program(path)
        self.add_program(PYTHON)
        self.add_program(find_program("lspci", "pciutils"))
        self.add(find_program("busybox", "busybox-static"), "/usr/bin/busybox")
        devbind = find_program("dpdk-devbind.py", "dpdk")
        self.add(devbind, "/usr/bin/dpdk-devbind.py")
        for path in python_modules(devbind):
            if os.path.exists(path):
                self.add_program(path) if path.endswith(".so") else self.add(path)
        self.add(os.path.join(HERE, "guest"), "/weir/guest")


def make_disk(path, mib, content=None):
    """An ext4, fully allocated: what the guest syncs is then data and nothing else."""
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, mib << 20)
    subprocess.run([find_program("mke2fs", "e2fsprogs"), "-q", "-F", "-t", "ext4",
                    *(["-d", content] if content else []), path], check=True)


def copy_out(disk, folder, target):
    """A folder of an ext4 that nobody has mounted; an empty one where there is none."""
    os.makedirs(target, exist_ok=True)
    subprocess.run([find_program("debugfs", "e2fsprogs"), "-R", f"rdump {folder} {target}", disk],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return os.path.join(target, os.path.basename(folder))
