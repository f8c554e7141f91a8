"""What runs inside a guest: hands its two NICs to vfio-pci and runs the job over both.

    guest.py ACT RATE [RESTORE]

Started by guest_init.  ACT is `whole` (the job to its end), `stop` (stopped with a savepoint soon
after its start) or `cut` (goes on until the power goes).  It speaks to the host by lines that
begin with @ on the console:

    @bound DRIVER ADDRESS     a NIC is at vfio-pci; DRIVER is the kernel's that had it
    @found ID                 the newest complete checkpoint on the disk
    @restored ID              the coordinator went on from it
    @completed ID             the coordinator says so
    @writing ID               a checkpoint is in progress
    @done STATUS              `weir run` ended; its output and logs lie in the shared folder
    @failed TEXT
"""

import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import time

DISK, SHARED, JOB = "/disk", "/shared", "flow-metering"
REST = 8081
NETWORK_CLASS = "0x020000"
DISK_NAME = "vda"
SYS = "/sys/bus/pci/devices"
DRIVERS = ("bus_pci", "bus_vdev", "mempool_ring", "net_e1000")


class Failed(Exception):
    """One line for the host."""


def say(*words):
    # One write: the host must not see half a line when the power goes.
    os.write(1, ("@" + " ".join(str(w) for w in words) + "\n").encode())


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def driver_of(device):
    link = f"{SYS}/{device}/driver"
    return os.path.basename(os.readlink(link)) if os.path.islink(link) else "none"


def bind_nics():
    """Both; what dpdk-devbind.py returns says nothing, so the result is looked at."""
    nics = sorted(d for d in os.listdir(SYS) if read(f"{SYS}/{d}/class") == NETWORK_CLASS)
    if len(nics) != 2:
        raise Failed(f"expected two NICs, there are: {nics}")
    groups = {os.path.realpath(f"{SYS}/{d}/iommu_group") for d in nics}
    if len(groups) != 2 or not all("iommu_groups" in g for g in groups):
        raise Failed(f"each NIC must have an IOMMU group of its own: {groups}")
    had = [driver_of(d) for d in nics]
    done = subprocess.run(["/usr/bin/dpdk-devbind.py", "-b", "vfio-pci", *nics], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for device, driver in zip(nics, had):
        if driver_of(device) != "vfio-pci":
            raise Failed(f"{device} is at {driver_of(device)}, not at vfio-pci: {done.stdout}")
        say("bound", driver, device)
    return nics


def ask(path):
    """What the coordinator answers; None while it does not."""
    try:
        with socket.create_connection(("127.0.0.1", REST), timeout=5) as connection:
            connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
            with connection.makefile("rb") as answer:
                head, _, body = answer.read().partition(b"\r\n\r\n")
        return json.loads(body) if b" 200 " in head.split(b"\r\n")[0] else None
    except (OSError, ValueError):
        return None


def look_at_the_disk():
    """What the last run of this disk left."""
    complete = []
    for path in glob.glob(DISK + "/checkpoints/*/chk-*"):
        if os.path.exists(path + "/_metadata"):
            complete.append(int(path.rsplit("-", 1)[1]))
    if complete:
        say("found", max(complete))


def start(nics, rate, restore):
    words = ["/build/weir", "run", "/shared/job.yaml", "--json", "--quiet", "--taskmanagers", "2",
             "--link", "pci:" + ",".join(nics), "--restore", restore]
    settings = json.loads(read(SHARED + "/settings.json"))
    for key, value in {**settings["config"], "rest.bind-port": REST, "jobmanager.rpc.port": 0,
                       "execution.checkpointing.dir": DISK + "/checkpoints",
                       "high-availability.storageDir": DISK + "/ha"}.items():
        words += ["-D", f"{key}={value}"]
    for key, value in {**settings["sets"], "source.path": SHARED + "/in.pcap", "source.rate": rate,
                       "sink.path": DISK + "/out"}.items():
        words += ["--set", f"{key}={value}"]
    with open(SHARED + "/run.out", "w", encoding="utf-8") as out, \
            open(SHARED + "/run.err", "w", encoding="utf-8") as err:
        return subprocess.Popen(words, cwd=DISK, stdin=subprocess.DEVNULL,  # pylint: disable=R1732
                                stdout=out, stderr=err)


class Watch:
    """Follows the checkpoints of the one job and tells what is new."""

    def __init__(self):
        self.job = None
        self.said = {"restored": 0, "completed": 0, "writing": 0}

    def tell(self, word, number):
        if number > self.said[word]:
            self.said[word] = number
            say(word, number)

    def look(self):
        if self.job is None:
            jobs = (ask("/jobs") or {}).get("jobs")
            self.job = jobs[0]["id"] if jobs else None
        if self.job is None:
            return
        answer = ask(f"/jobs/{self.job}/checkpoints")
        if answer is None:
            return
        latest = answer["latest"]
        for word in ("restored", "completed"):
            if latest.get(word):
                self.tell(word, latest[word]["id"])
        for one in answer["history"][:2]:
            if one["status"] == "IN_PROGRESS":
                self.tell("writing", one["id"])


def follow(run, act):
    """Until the run has ended."""
    watch = Watch()
    stop = None
    while run.poll() is None:
        watch.look()
        if act == "stop" and stop is None and watch.said["completed"] >= 3:
            stop = subprocess.Popen(["/build/weir", "stop", JOB,  # pylint: disable=R1732
                                     "--savepoint", DISK + "/savepoints"])
        time.sleep(0.03)
    if stop is not None and stop.wait(60) != 0:
        raise Failed("weir stop --savepoint failed")
    return run.returncode


def share_results():
    """Output, link descriptions and logs, for the host to judge."""
    shutil.rmtree(SHARED + "/out", ignore_errors=True)
    for name in ("out", "logs"):
        if os.path.isdir(f"{DISK}/{name}"):
            shutil.copytree(f"{DISK}/{name}", f"{SHARED}/{name}", dirs_exist_ok=True)


def show_few_drivers():
    """EAL loads every driver of its folder, here a hundred at the speed of an emulated processor:
    of the host's own only those that can be meant lie there."""
    folder = glob.glob("/usr/lib/*/dpdk/pmds-*")[0]
    os.mkdir("/run/drivers")
    for name in DRIVERS:
        for path in glob.glob(f"{folder}/librte_{name}.so*"):
            shutil.copy(path, "/run/drivers", follow_symlinks=False)
    subprocess.run(["/usr/bin/busybox", "mount", "--bind", "/run/drivers", folder], check=True)


def main(act, rate, restore="none"):
    os.environ["PATH"] = "/run/bin:/usr/bin:/usr/sbin"
    os.mkdir("/run/bin")
    os.symlink("/usr/bin/busybox", "/run/bin/which")  # Debian's own lies behind /etc/alternatives
    if "write through" in read(f"/sys/block/{DISK_NAME}/queue/write_cache"):
        raise Failed("the disk says it has no cache: nothing would be flushed")
    show_few_drivers()
    nics = bind_nics()
    look_at_the_disk()
    if restore == "savepoint":
        restore = glob.glob(DISK + "/savepoints/savepoint-*")[0]
    status = follow(start(nics, rate, restore), act)
    share_results()
    say("done", status)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as error:  # pylint: disable=broad-exception-caught
        say("failed", type(error).__name__, str(error).replace("\n", " | "))
    os.sync()
    subprocess.run(["/usr/bin/busybox", "poweroff", "-f"], check=False)
