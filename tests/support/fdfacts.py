"""Facts about file descriptors, as the collectors give them: a process that leaks, a healthy one, the machine, deleted files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.fds.deleted import judge_deleted
from opskit.analysis.fds.host import judge_host
from opskit.analysis.fds.judge import judge
from opskit.collect.fd_threads import FdThread
from opskit.collect.fds.facts import (
    DeletedFacts,
    DeletedFile,
    DeletedHolder,
    Facts,
    FileSystem,
    Group,
    HostFacts,
    Near,
    Unattached,
    User,
)
from opskit.proc.files.limits import UNLIMITED, Rlimit
from opskit.proc.open_files import OpenFiles
from opskit.proc.process import Process

if TYPE_CHECKING:
    from opskit.analysis.fds.result import DeletedResult, HostResult, Result

MIB = 1 << 20
NOW_S = 1_790_000_000.0
ORDERS = Process(4242, "java", 1001, "app", 1, 8675309, "S", 60)
SHELL = Process(77, "bash", 1000, "ann", 1, 700, "S", 1)
READER = FdThread(57, 4271, "http-exec-3", "read", ("sun.nio.ch.SocketDispatcher.read0", "com.shop.Orders.load"))
LEAK = Group("tcp", "CLOSE_WAIT to 10.0.0.9:443", 90, 12, 140, "socket:[9001]", NOW_S - 5400, NOW_S - 3, (READER,))
GROUPS = (
    LEAK,
    Group("tcp", "ESTAB to 10.0.0.7:5432", 20, 141, 160, "socket:[9100]", NOW_S - 86400, NOW_S - 7200),
    Group("file", "/usr/lib/jvm/21/lib", 30, 4, 33, "/usr/lib/jvm/21/lib/modules"),
    Group("eventfd", "", 4, 34, 37, "anon_inode:[eventfd]"),
    Group("deleted", "/var/log", 1, 38, 38, "/var/log/app.log (deleted)"),
)
OPEN = OpenFiles(145, Rlimit(256, 4096))


def facts(**more) -> Facts:
    """The JVM that leaks connections, without a watch."""
    return Facts(ORDERS, OPEN, GROUPS, 0.0, NOW_S, 145, True)._replace(**more)


def orders() -> Result:
    """A JVM with connections that it does not close, seen once."""
    return judge(facts())


def watched() -> Result:
    """The same at the end of a watch of 30 s: 13 more in each look."""
    looks = []
    for number in range(7):
        count = 12 + 13 * number
        groups = (LEAK._replace(fds=count), *GROUPS[1:])
        looks.append(facts(groups=groups, fds=55 + count, at_s=5.0 * number))
    return judge(looks[-1], looks)


def healthy() -> Result:
    """A shell."""
    groups = (Group("device", "/dev/pts/0", 4, 0, 255, "/dev/pts/0"),)
    return judge(Facts(SHELL, OpenFiles(4, Rlimit(1024, UNLIMITED)), groups, 0.0, NOW_S, 4, False))


def unreadable() -> Result:
    """A process whose limit is unknown, of which nothing could be read."""
    missing = ("its descriptors cannot be read: Permission denied; run as root: sudo opskit fds 77",)
    return judge(Facts(SHELL, None, (), 0.0, NOW_S, 0, False, missing))


def host(**more) -> HostResult:
    """A machine with a process near its limit and a user near the one of inotify."""
    return judge_host(
        HostFacts(
            (
                Near(ORDERS, OpenFiles(240, Rlimit(256, 4096)), "prlimit --pid 4242 --nofile=512:4096"),
                Near(SHELL, OpenFiles(4, Rlimit(1024, UNLIMITED))),
                Near(SHELL._replace(pid=78), OpenFiles(4, Rlimit(UNLIMITED, UNLIMITED))),
            ),
            (4352, (1 << 63) - 1),
            (User(1001, "app", 120, ((4242, "java", 100), (4300, "tail", 19), (4301, "tail", 1))),),
            (User(1001, "app", 700, ((4242, "java", 700),)), User(0, "root", 40, ((1, "systemd", 40),))),
            (),
            128, 65536, 5_000_000, complete=True,
        )._replace(**more)
    )  # fmt: skip


def quiet_host() -> HostResult:
    """A machine far from every limit."""
    return host(
        nearest=(Near(SHELL, OpenFiles(4, Rlimit(1024, UNLIMITED))),),
        inotify_instances=(User(0, "root", 1, ((1, "systemd", 1),)),),
        inotify_watches=(),
    )


LOG = DeletedFile(
    2049, 131, "/var/log/app.log", 200 * MIB, 900 * MIB, True,
    (DeletedHolder(ORDERS, (3, 9), False, "orders.service", 3), DeletedHolder(SHELL, (5,), False, None)),
)  # fmt: skip
LIBRARY = DeletedFile(
    2049, 132, "/usr/lib/libx.so", 50 * MIB, 50 * MIB, True, (DeletedHolder(SHELL, (), True, None),)
)  # fmt: skip
MEMFD = DeletedFile(1, 17, "memfd:buffers", 12 * MIB, 12 * MIB, True, (DeletedHolder(ORDERS, (44,), True, None),))
ROOT = FileSystem(2049, "/", "ext4", 1000 * MIB, 40 * MIB, 64000, 60000, (LOG, LIBRARY))
DATA = FileSystem(2050, "/data", "xfs", 1000 * MIB, 900 * MIB, 1000, 0, ())
VAT = FileSystem(2051, "/boot/efi", "vfat", 100 * MIB, 90 * MIB, None, None, ())


def deleted(**more) -> DeletedResult:
    """A full disk: a deleted log, a replaced library, no free inodes elsewhere, a segment that a process has left behind."""
    return judge_deleted(
        DeletedFacts(
            (ROOT, DATA, VAT), (MEMFD,), (Unattached("sysv", "3", 64 * MIB, "ipcrm -m 3"),), ((77, 2),), 5, complete=True,
            missing=("not looked at, since a stat may hang: 5 fds on network file systems",),
        )._replace(**more)
    )  # fmt: skip


def nothing_deleted() -> DeletedResult:
    """No deleted file is held."""
    return deleted(systems=(VAT,), memory=(), unattached=(), in_flight=(), skipped_remote=0, missing=())
