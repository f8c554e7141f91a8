"""The kernel of a guest, its initramfs, and its disk.

Kernel and modules are those of a Debian package, installed or only downloaded and unpacked.  The
initramfs holds a busybox, the modules a guest needs, and `guest_init`; all else comes from the
host's own /usr, which guests see read-only.
"""

import glob
import os
import re
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "linux-image-amd64"
CACHE = "~/.cache/weir-vm"

# In the order in which they are loaded, each behind what it needs.
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "virtio_blk", "crc32c_generic", "ext4",
           "vfio_iommu_type1", "vfio-pci", "e1000e")


class Missing(Exception):
    """What is not on this host, and how to get it."""


def find_program(name, package):
    path = shutil.which(name)
    if path is None:
        raise Missing(f"no {name} on this host: apt-get install --no-install-recommends {package}")
    return path


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
            self.module_path(name) for name in ("vfio-pci", "9p", "virtio_blk"))

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


def find_kernel():
    """The newest that fits: one of the host's, or one that `fetch_kernel` unpacked."""
    for root in ("/", cache("kernel")):
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


def order(kernel, needs):
    """Paths of all modules to be loaded, each behind those it needs."""
    ordered = []
    for name in MODULES:
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


def make_initramfs(kernel, target):
    """A compressed archive of a few MB at `target`."""
    busybox = find_program("busybox", "busybox-static")
    stage = target + ".stage"
    shutil.rmtree(stage, ignore_errors=True)
    for name in ("bin", "modules", "dev", "proc", "sys", "new"):
        os.makedirs(os.path.join(stage, name))
    shutil.copy(busybox, os.path.join(stage, "bin", "busybox"))
    shutil.copy(os.path.join(HERE, "guest_init"), os.path.join(stage, "init"))
    os.chmod(os.path.join(stage, "init"), 0o755)
    names = order(kernel, kernel.dependencies())
    with open(os.path.join(stage, "modules", "order"), "w", encoding="ascii") as file:
        file.write("".join(os.path.basename(path) + "\n" for path in names))
    for path in names:
        shutil.copy(os.path.join(kernel.modules, path), os.path.join(stage, "modules"))
    with open(target + ".new", "wb") as file, \
            subprocess.Popen([busybox, "find", "."], cwd=stage, stdout=subprocess.PIPE) as listing:
        subprocess.run([busybox, "cpio", "-o", "-H", "newc"], cwd=stage, stdin=listing.stdout,
                       stdout=file, stderr=subprocess.DEVNULL, check=True)
    shutil.rmtree(stage)
    os.rename(target + ".new", target)
    return target


def initramfs(kernel):
    """That of the cache, made again when what it is made of is newer."""
    target = cache(f"initramfs-{kernel.version}")
    os.makedirs(cache(), exist_ok=True)
    sources = [os.path.join(HERE, "guest_init"), os.path.abspath(__file__), kernel.image]
    if os.path.exists(target) and all(os.path.getmtime(target) > os.path.getmtime(source)
                                      for source in sources):
        return target
    return make_initramfs(kernel, target)


def make_disk(path, mib):
    """An empty ext4, fully allocated: what the guest syncs is then data and nothing else."""
    with open(path, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, mib << 20)
    subprocess.run([find_program("mke2fs", "e2fsprogs"), "-q", "-F", "-t", "ext4", path],
                   check=True)
    return path
