"""dpdk-testpmd as a peer: Debian's package dpdk-dev has it, or TESTPMD names another.

It is driven at its prompt, for three reasons.  What it says of a window is by its own clock.
Between windows both ends stand still, and take nothing from whom they are compared with.  And it
forwards nothing any more when its peer goes: net_memif unmaps the other side's memory as soon as
that hangs up, on a thread of its own, and a receive or transmit burst that is under way dies of it.
"""

import os
import re
import select
import shutil
import subprocess
import time

from bench.harness import BenchError

MISSING = "dpdk-testpmd is not here: apt-get install dpdk-dev, or name one by TESTPMD"
PROMPT = b"testpmd> "
ANSWER_TIMEOUT_S = 20
END_TIMEOUT_S = 5
POLL_S, REDIAL_S = 0.02, 0.5
WARM_UP_S, DRAIN_S = 0.06, 0.02
MEMORY_MB = 512
DESCRIPTORS = 1024
MBUFS = 8192
HEADROOM_BYTES = 128
ROOM_BYTES, JUMBO_ROOM_BYTES = 2048, 9600
CHECK_BYTES = 4


def find():
    """Its path, or None."""
    return shutil.which(os.environ.get("TESTPMD") or "dpdk-testpmd")


def memif(socket, role, slot_bytes=2048):
    """What the EAL hears of one end of a memif."""
    return [f"--vdev=net_memif0,role={role},bsize={slot_bytes},socket-abstract=no,socket={socket}"]


def virtio_user(socket, is_server):
    """The end of a vhost-user socket whose memory both use; a server waits in its start."""
    return [f"--vdev=net_virtio_user0,path={socket},server={int(is_server)},"
            f"queue_size={DESCRIPTORS}", "--single-file-segments"]


def vhost(socket, is_server):
    """The other end."""
    return [f"--vdev=net_vhost0,iface={socket},client={int(not is_server)}"]


class Testpmd:
    """One process with one port, which stands still until it is told to forward.  Use it with
    `with`, and know where its output went when it fails: DIRECTORY/testpmd-MODE.err."""

    def __init__(self, program, directory, core, device, mode, frame_bytes, more=()):
        self.errors = os.path.join(directory, f"testpmd-{mode}.err")
        self.frame_bytes = frame_bytes  # without its check sequence
        room = ROOM_BYTES if frame_bytes <= ROOM_BYTES else JUMBO_ROOM_BYTES
        # --mbuf-size goes first: what does not fit the size so far is passed over without a word.
        command = [program, "--lcores", f"0@{core},1@{core}", "--no-huge",
                   "-m", MEMORY_MB, "--no-pci", "--no-telemetry", "--no-shconf",
                   f"--file-prefix=testpmd-{os.getpid()}-{mode}", *device, "--", "-i",
                   f"--mbuf-size={room + HEADROOM_BYTES}", f"--txpkts={frame_bytes}",
                   f"--forward-mode={mode}", f"--total-num-mbufs={MBUFS}",
                   f"--rxd={DESCRIPTORS}", f"--txd={DESCRIPTORS}", "--disable-link-check", *more]
        self.command = " ".join(str(word) for word in command)
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen(["stdbuf", "-oL", *(str(word) for word in command)],
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=errors)
        self.is_greeted = False
        self.is_caller = any("role=client" in word for word in device)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.halt()
        try:
            self.process.communicate(b"quit\n", END_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.communicate()

    def halt(self):
        """Forwards no more; harmless when it does not, or has ended."""
        try:
            if self.is_greeted:
                self.ask("stop")
        except BenchError:
            pass

    def read_prompt(self, after):
        """What it says between `after` and its prompt; events of the port may follow that."""
        said, until = b"", time.monotonic() + ANSWER_TIMEOUT_S
        while PROMPT not in said[max(0, said.find(after)):] or after not in said:
            ready, _, _ = select.select([self.process.stdout], [], [], POLL_S)
            chunk = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if (ready and not chunk) or time.monotonic() > until:
                with open(self.errors, encoding="utf-8", errors="replace") as errors:
                    tail = (said.decode(errors="replace") + errors.read())[-1500:]
                raise BenchError(f"dpdk-testpmd {'ended' if ready else 'does not answer'}: {tail}")
            said += chunk
        return said.decode(errors="replace")

    def ask(self, command):
        """Its answer to a command."""
        if not self.is_greeted:
            self.read_prompt(b"")
            self.is_greeted = True
        try:
            self.process.stdin.write(command.encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise BenchError(f"dpdk-testpmd ended: {error}") from error
        return self.read_prompt(command.encode())

    def await_link(self):
        """Until both ends of the port are there.  A memif client asks once, when its port starts,
        and is sent away by a server whose port has not."""
        until, again = time.monotonic() + ANSWER_TIMEOUT_S, time.monotonic() + REDIAL_S
        while "Link status: up" not in self.ask("show port info 0"):
            if time.monotonic() > until:
                raise BenchError("the other end of dpdk-testpmd's port did not come")
            time.sleep(POLL_S)
            if self.is_caller and time.monotonic() > again:
                self.ask("port stop 0")
                self.ask("port start 0")
                again = time.monotonic() + REDIAL_S

    def counters(self):
        """Of its port since the start: rx and tx in packets and bytes; packets a second since the
        last time it was asked."""
        said = self.ask("show port stats 0")
        found = {}
        for name, pattern in (("rx", r"RX-packets:\s+(\d+).*RX-bytes:\s+(\d+)"),
                              ("tx", r"TX-packets:\s+(\d+).*TX-bytes:\s+(\d+)"),
                              ("rx_rate", r"Rx-pps:\s+(\d+)"), ("tx_rate", r"Tx-pps:\s+(\d+)")):
            got = re.search(pattern, said)
            if got is None:
                raise BenchError(f"dpdk-testpmd's counters are not read: {said}")
            numbers = [int(n) for n in got.groups()]
            found[name] = numbers[0]
            if len(numbers) > 1:
                found[name + "_bytes"] = numbers[1]
        return found


class Pair:
    """One in txonly mode that sends to one in rxonly mode, a core each."""

    def __init__(self, program, directory, kind, frame_bytes, cores):
        socket = os.path.join(directory, f"testpmd-{kind}.sock")
        if os.path.exists(socket):
            os.unlink(socket)
        slot_bytes = 9216 if frame_bytes > ROOM_BYTES else 2048
        ends = ((memif(socket, "server", slot_bytes), memif(socket, "client", slot_bytes))
                if kind == "memif" else (virtio_user(socket, True), vhost(socket, False)))
        self.receiver = Testpmd(program, directory, cores[1], ends[0], "rxonly", frame_bytes)
        try:
            until = time.monotonic() + ANSWER_TIMEOUT_S
            while not os.path.exists(socket) and time.monotonic() < until:
                time.sleep(POLL_S)
            self.sender = Testpmd(program, directory, cores[0], ends[1], "txonly", frame_bytes)
        except BaseException:
            self.receiver.__exit__()
            raise

    def __enter__(self):
        try:
            for end in (self.receiver, self.sender):
                end.await_link()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for end in (self.sender, self.receiver):
            end.halt()
        for end in (self.sender, self.receiver):
            end.__exit__()

    def measure(self, window_ms):
        """Frames and their bytes a second, as the receiver's port counts them."""
        self.receiver.ask("start")
        self.sender.ask("start")
        time.sleep(WARM_UP_S)
        self.receiver.counters()
        time.sleep(window_ms / 1000)
        rate = self.receiver.counters()["rx_rate"]
        self.sender.ask("stop")
        time.sleep(DRAIN_S)
        self.receiver.ask("stop")
        size, still = self.sender.frame_bytes, self.receiver.counters()
        if still["rx_bytes"] != still["rx"] * size:
            raise BenchError(f"dpdk-testpmd did not send frames of {size} bytes: {still}")
        return {"frames": rate, "bytes": rate * size}
