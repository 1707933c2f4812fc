"""Programs that read and write in one way each, for ever: python ioprograms.py CASE DIRECTORY. Each prints its PID when it has begun.

Those that count tell how many calls they have made and when (CLOCK_MONOTONIC), in the file DIRECTORY/count: two doubles.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import socket
import struct
import sys
import threading
import time

PAGE = 4096
_EVERY = 64


class Counter:
    """What the program knows of itself."""

    def __init__(self, path):
        with open(path, "wb") as file:
            file.write(bytes(16))
        fd = os.open(path, os.O_RDWR)
        self._memory = mmap.mmap(fd, 16)
        os.close(fd)

    def tell(self, calls):
        """So many calls were made by now."""
        struct.pack_into("=dd", self._memory, 0, calls, time.monotonic())


def lines(path, size):
    """A file that is long enough."""
    if not os.path.exists(path):
        with open(path, "wb") as file:
            file.writelines(b"0123456789abcde\n" * 65536 for _ in range(size >> 20))
    return path


def read_bytes(there):
    """One byte a call."""
    fd, counter, calls = os.open(f"{there}/lines.txt", os.O_RDONLY), Counter(f"{there}/count"), 0
    while True:
        for _ in range(_EVERY):
            os.read(fd, 1)
        calls += _EVERY
        counter.tell(calls)


def small_file(there):
    """A file of 16 KiB from begin to end, a byte a call, again and again."""
    with open(f"{there}/small", "wb") as file:
        file.write(b"0123456789abcde\n" * 1024)
    fd = os.open(f"{there}/small", os.O_RDONLY)
    while True:
        if not os.read(fd, 1):
            os.lseek(fd, 0, os.SEEK_SET)


def pread_bytes(there):
    """The same without a position, from the page cache."""
    fd, at = os.open(f"{there}/lines.txt", os.O_RDONLY), 0
    while True:
        os.pread(fd, 1, at % (16 << 20))
        at += 1


def pipe_bytes(there):
    """One byte a call from a pipe, whose writer gives large parts."""
    receive, send = os.pipe()
    if not os.fork():
        while True:
            os.write(send, b"x" * 512)
            time.sleep(0.0002)
    while True:
        os.read(receive, 1)


def write_bytes(there):
    """One byte a call."""
    fd, at = os.open(f"{there}/out", os.O_CREAT | os.O_WRONLY), 0
    while True:
        os.write(fd, b"x")
        at += 1
        if at % (8 << 20) == 0:
            os.lseek(fd, 0, os.SEEK_SET)


def sync_records(there):
    """100 bytes, then fsync."""
    fd = os.open(f"{there}/wal", os.O_CREAT | os.O_WRONLY)
    while True:
        os.write(fd, b"x" * 100)
        os.fsync(fd)


def synchronous(there):
    """100 bytes to a file that is opened with O_SYNC."""
    fd = os.open(f"{there}/wal", os.O_CREAT | os.O_WRONLY | os.O_SYNC)
    while True:
        os.write(fd, b"x" * 100)


def copy(there):
    """A large file, in parts of 1 MiB."""
    target = os.open(f"{there}/target", os.O_CREAT | os.O_WRONLY)
    with open(f"{there}/source", "rb", buffering=0) as source:
        while True:
            source.seek(0)
            os.lseek(target, 0, os.SEEK_SET)
            while part := source.read(1 << 20):
                os.write(target, part)


def pages(there):
    """A database: 8 KiB at random places, cached or not."""
    fd = os.open(f"{there}/table", os.O_RDONLY)
    while True:
        os.pread(fd, 2 * PAGE, random.randrange(4096) * 2 * PAGE)  # noqa: S311
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def direct(there):
    """O_DIRECT, 64 KiB at random places."""
    fd, memory = os.open(f"{there}/table", os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 16 * PAGE)
    while True:
        os.preadv(fd, [memory], random.randrange(512) * 16 * PAGE)  # noqa: S311


def asynchronous(there):
    """Linux AIO with O_DIRECT, 64 KiB at random places: io_submit(2) and io_getevents(2) are in no counter of calls."""
    setup, submit, get = (206, 209, 208) if os.uname().machine == "x86_64" else (0, 2, 4)
    libc, fd = ctypes.CDLL(None, use_errno=True), os.open(f"{there}/table", os.O_RDONLY | os.O_DIRECT)
    memory, context = mmap.mmap(-1, 16 * PAGE), ctypes.c_ulong()
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if libc.syscall(setup, 8, ctypes.byref(context)):
        raise OSError(ctypes.get_errno(), "io_setup")
    block, event = ctypes.create_string_buffer(64), ctypes.create_string_buffer(32)
    blocks = (ctypes.c_void_p * 1)(ctypes.addressof(block))
    while True:
        at = random.randrange(512) * 16 * PAGE  # noqa: S311
        struct.pack_into("=QIiHhIQQqQII", block, 0, 0, 0, 0, 0, 0, fd, address, 16 * PAGE, at, 0, 0, 0)
        if libc.syscall(submit, context, 1, blocks) != 1:
            raise OSError(ctypes.get_errno(), "io_submit")
        libc.syscall(get, context, 1, 1, event, None)


def mapped(there):
    """A mapped file whose pages are fetched again and again."""
    fd = os.open(f"{there}/table", os.O_RDONLY)
    memory = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
    memory.madvise(mmap.MADV_RANDOM)
    while True:
        for at in range(0, len(memory), 7 * PAGE):
            memory[at]
        memory.madvise(mmap.MADV_DONTNEED)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def log(there):
    """Lines, one a call, as loggers do."""
    with open(f"{there}/app.log", "a", buffering=1) as file:
        while True:
            file.write("2026-11-23 10:00:00 INFO some.logger.Name a message about something that has happened\n")
            time.sleep(0.0002)


def answer(there):
    """A server of small requests by read(2) and write(2) on a socket, with large buffers."""
    ours, theirs = socket.socketpair()
    if not os.fork():
        while True:
            os.write(theirs.fileno(), b"GET key\r\n")
            os.read(theirs.fileno(), 65536)
    while True:
        os.read(ours.fileno(), 65536)
        os.write(ours.fileno(), b"value\r\n")


def receive(there):
    """A socket's recv(2), which the counters do not have."""
    ours, theirs = socket.socketpair()
    if not os.fork():
        while True:
            theirs.sendall(b"x" * 4096)
    while True:
        ours.recv(65536)


def wake(there):
    """Threads that wake each other by a pipe, one byte a time."""
    to, back = os.pipe(), os.pipe()

    def echo():
        while True:
            os.write(back[1], os.read(to[0], 64))

    threading.Thread(target=echo, daemon=True).start()
    while True:
        os.write(to[1], b"x")
        os.read(back[0], 64)


def temporary(there):
    """Files that are deleted at once."""
    while True:
        with open(f"{there}/temporary", "wb") as file:
            file.write(b"x" * (4 << 20))
        os.unlink(f"{there}/temporary")
        time.sleep(0.05)


def again(there):
    """Reads a file from begin to end, again and again."""
    fd = os.open(f"{there}/again", os.O_RDONLY)
    while True:
        while os.read(fd, 1 << 16):
            pass
        os.lseek(fd, 0, os.SEEK_SET)


def seek(there):
    """Small records at random places of a file, by lseek and read."""
    fd = os.open(f"{there}/records", os.O_RDONLY)
    while True:
        os.lseek(fd, random.randrange(1 << 20) * 16, os.SEEK_SET)  # noqa: S311
        os.read(fd, 16)


def proc_files(there):
    """An agent that reads small files of /proc all the time."""
    while True:
        for name in ("loadavg", "uptime", "sys/kernel/pid_max", "self/stat"):
            with open(f"/proc/{name}", "rb") as file:
                file.read()


def children(there):
    """Children that read a file, one after the other."""
    while True:
        child = os.fork()
        if not child:
            with open(f"{there}/source", "rb", buffering=0) as file:
                while file.read(4096):
                    pass
            os._exit(0)
        os.waitpid(child, 0)


def idle(there):
    """Nothing."""
    time.sleep(600)


# What is made before a program begins: the file, and its size in MiB.
FILES = {
    **dict.fromkeys(("read_bytes", "pread_bytes"), ("lines.txt", 32)), **dict.fromkeys(("pages", "direct", "mapped", "asynchronous"), ("table", 32)),
    "copy": ("source", 32), "children": ("source", 4), "again": ("again", 128), "seek": ("records", 32),
}  # fmt: skip


def main():
    """Run one."""
    case, there = sys.argv[1:]
    if case in FILES:
        lines(f"{there}/{FILES[case][0]}", FILES[case][1] << 20)
    print(os.getpid(), flush=True)
    globals()[case](there)


if __name__ == "__main__":
    main()
