"""Copy a running machine's /proc, or a part of it, into a tree, as `cp -r` of the files and links does."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

MACHINE_FILES = (
    "loadavg", "stat", "uptime", "meminfo", "vmstat", "slabinfo", "locks", "sys/kernel/hostname", "sys/kernel/osrelease",
    "sys/kernel/threads-max", "sys/kernel/pid_max", "sys/vm/max_map_count", "sys/vm/overcommit_memory", "sys/fs/dentry-state",
    "pressure/cpu", "pressure/memory", "pressure/io",
)  # fmt: skip
PROCESS_FILES = (
    "stat", "status", "comm", "cmdline", "environ", "limits", "cgroup", "mountinfo", "uid_map", "maps", "smaps", "syscall",
    "schedstat",
)  # fmt: skip
THREAD_FILES = ("stat", "status", "comm", "schedstat", "syscall")
LINKS = ("exe", "cwd", "root", "ns/pid", "ns/mnt", "ns/user", "ns/cgroup")


def copy_machine(root: Path, pids: list[int], *, without: tuple[str, ...] = (), empty: tuple[str, ...] = ()) -> Path:
    """A tree of these processes and the machine's files; gives ROOT.

    `without` leaves out files or directories of a process by name (fd, maps, task, …), `empty` makes files empty, as tar and
    rsync do with those whose size the kernel says is 0.
    """
    for name in MACHINE_FILES:
        _copy(Path("/proc") / name, root / "proc" / name, name in empty)
    for pid in pids:
        _copy_process(Path(f"/proc/{pid}"), root / "proc" / str(pid), without, empty)
    (root / "etc").mkdir(parents=True, exist_ok=True)
    for name in ("passwd", "group"):
        shutil.copy(f"/etc/{name}", root / "etc" / name)
    return root


def copy_hsperfdata(root: Path, pid: int) -> None:
    """The JVM's counters, as a copied /tmp has them: another inode, owner and time."""
    [file] = Path("/tmp").glob(f"hsperfdata_*/{pid}")
    _copy(file, root / "tmp" / file.parent.name / file.name, empty=False)


def _copy_process(source: Path, target: Path, without: tuple[str, ...], empty: tuple[str, ...]) -> None:
    target.mkdir(parents=True)
    for name in PROCESS_FILES:
        if name not in without:
            _copy(source / name, target / name, name in empty)
    for name in LINKS:
        if name not in without:
            _link(source / name, target / name)
    for name in ("fd", "fdinfo"):
        if name not in without:
            (target / name).mkdir()
            for fd in _names(source / name):
                if name == "fd":
                    _link(source / name / fd, target / name / fd)
                else:
                    _copy(source / name / fd, target / name / fd, name in empty)
    if "task" not in without:
        for tid in _names(source / "task"):
            for name in THREAD_FILES:
                _copy(source / "task" / tid / name, target / "task" / tid / name, name in empty)


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:  # not even root may list those of some processes
        return []


def _copy(source: Path, target: Path, empty: bool) -> None:
    try:
        content = source.read_bytes()
    except OSError:  # this kernel has no such file, or the process has ended
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(b"" if empty else content)


def _link(source: Path, target: Path) -> None:
    try:
        place = os.readlink(source)
    except OSError:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(place)
