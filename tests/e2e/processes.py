"""Processes of this host: who is below whom, and ending them, each by its id."""

import ctypes
import glob
import os
import signal
import socket
import time

PR_SET_CHILD_SUBREAPER = 36


def become_subreaper():
    """Orphans among our descendants become our children, so that we can find and end them."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def parents():
    """Parent of each living process."""
    result = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        fields = text[text.rindex(")") + 2:].split()
        if fields[0] != "Z":
            result[int(text.split()[0])] = int(fields[1])
    return result


def descendants(pid):
    """All living processes below `pid`."""
    by_parent = {}
    for child, parent in parents().items():
        by_parent.setdefault(parent, []).append(child)
    found, todo = [], [pid]
    while todo:
        children = by_parent.get(todo.pop(), [])
        found += children
        todo += children
    return found


def are_alive(pids):
    living = parents()
    return [pid for pid in pids if pid in living]


def program_of(pid):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return ""


def rss_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def end(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def end_descendants(pid, is_reaping=True):
    """Ends all processes below `pid`, each by its id, and takes the status of orphans."""
    for _ in range(20):
        found = descendants(pid)
        if not found:
            return
        for child in found:
            end(child)
        if is_reaping:
            reap()
        time.sleep(0.05)


def reap():
    """Takes the status of orphans that became ours and ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


def free_port():
    """A TCP port that nothing listens on just now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def processor_ticks(pid):
    """Processor time that a process has used."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])
