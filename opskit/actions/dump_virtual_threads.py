"""Let a JVM write all of its threads, including virtual ones, to a file of its own; read and remove the file.

`Thread.dump_to_file` (JDK 21+, src/java.base/share/classes/jdk/internal/vm/ThreadDumper.java) is the only dump with every
virtual thread. The JVM writes the file as its own user, in its own mount namespace, under a random name: it overwrites no
file. The file is always removed, also on signals; the next run removes what SIGKILL left.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from opskit.actions import leftovers
from opskit.errors import AttachError, NotPermitted, NotSupported
from opskit.interrupts import Guard, Interruptible
from opskit.jvm.attach.listener import open_tmp
from opskit.jvm.attach.wire import LARGEST_DUMP_FILE_BYTES
from opskit.proc.fs import GONE, READ_ONLY, ProcFS
from opskit.proc.rights import how_to_be_allowed

if TYPE_CHECKING:
    from opskit.host import Host
    from opskit.jvm.attach.client import AttachClient

FIRST_JDK = 21
_LEAST_ROOM_BYTES = 64 << 20
_HEAP_PER_DUMPED_BYTE = 8  # a parked virtual thread takes some KiB of heap, and less than 2 KiB of the dump
_CREATED = "Created "  # begins the reply after success
_LAST_LOOKS, _LOOK_PAUSE_S = 40, 0.05


def dump_virtual_threads(host: Host, client: AttachClient, heap_used_bytes: int | None) -> bytes:
    """The dump as JSON; as plain text if the JVM cannot write JSON.

    Raises NotSupported before JDK 21, NotPermitted, AttachError.
    """
    target = client.target
    if target.java_major is not None and target.java_major < FIRST_JDK:
        raise NotSupported(
            f"--virtual: {target.pid} ({target.jvm.main}) is JDK {target.java_major}, which has no virtual threads "
            f"(JDK {FIRST_JDK} and later have them); leave --virtual out"
        )
    tmp = open_tmp(host.fs, target)
    try:
        leftovers.remove_abandoned(tmp, target.euid)
        _check_room(tmp, target.pid, heap_used_bytes)
        answer, dump = _dump(host, client, tmp, "json")
        if _CREATED not in answer:  # JDK 21 to 25 stop within their JSON at a thread name with a control character
            _, dump = _dump(host, client, tmp, "plain")
        # The JVM may have written the file of a killed run in the meantime.
        leftovers.remove_abandoned(tmp, target.euid)
        return dump
    finally:
        os.close(tmp)


def _dump(host: Host, client: AttachClient, tmp: int, form: str) -> tuple[str, bytes]:
    """The reply of the JVM, and the file that it wrote."""
    name, euid, answer = leftovers.new_name(f".{form}"), client.target.euid, None
    with Guard():
        try:
            with Interruptible():
                answer = client.jcmd(f"Thread.dump_to_file -format={form} /tmp/{name}")
                return answer, _read(tmp, name, euid, answer)
        finally:
            _remove(host, tmp, name, euid, may_still_come=answer is None)


def _check_room(tmp: int, pid: int, heap_used_bytes: int | None) -> None:
    room = os.statvfs(f"/proc/self/fd/{tmp}")
    free = room.f_bavail * room.f_frsize
    wanted = max(_LEAST_ROOM_BYTES, (heap_used_bytes or 0) // _HEAP_PER_DUMPED_BYTE)
    if free < wanted:
        why = f"{free >> 20} MiB are free, and the dump of its virtual threads may need {wanted >> 20} MiB"
        raise AttachError("tmp", pid, why=why, advice="make room there. Nothing was asked")


def _read(tmp: int, name: str, euid: int, answer: str) -> bytes:
    try:
        # Opening a device or FIFO has side effects: look at the file before opening that same file.
        seen = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=tmp)
        try:
            found = os.fstat(seen)
            expected = stat.S_ISREG(found.st_mode) and found.st_uid == euid and found.st_nlink == 1
            fd = os.open(f"/proc/self/fd/{seen}", READ_ONLY) if expected else -1
        finally:
            os.close(seen)
    except FileNotFoundError:
        advice = f"it said: {answer.strip()[:300]}"
        raise AttachError("tmp", "the JVM", why="it wrote no dump of its virtual threads", advice=advice) from None
    except OSError as error:
        denied = isinstance(error, PermissionError)
        advice = how_to_be_allowed(ProcFS(), "CAP_DAC_READ_SEARCH") if denied else "try again"
        raise NotPermitted(f"cannot read /tmp/{name}, which the JVM wrote: {error.strerror}; {advice}") from None
    if fd < 0:
        why = f"is not the file that the JVM was asked to write (uid {found.st_uid}): not read"
        raise NotPermitted(f"/tmp/{name} {why}")
    with open(fd, "rb") as file:
        if found.st_size > LARGEST_DUMP_FILE_BYTES:
            limit, dump = LARGEST_DUMP_FILE_BYTES, f"/tmp/{name}, the dump of its virtual threads"
            what = f"{dump}, has {found.st_size >> 20} MiB, and at most {limit >> 20} MiB are read"
            raise AttachError("reply-too-large", "the JVM", what=what, advice="it was removed", limit_bytes=limit)
        return file.read(found.st_size)


def _remove(host: Host, tmp: int, name: str, euid: int, *, may_still_come: bool) -> None:
    """Remove the file. If the JVM has not replied, it may still create it: look for it for 2 s."""
    for _ in range(_LAST_LOOKS if may_still_come else 1):
        try:
            found = os.lstat(name, dir_fd=tmp)
        except GONE:
            if may_still_come:
                host.sleep(_LOOK_PAUSE_S)
            continue
        if found.st_uid == euid and stat.S_ISREG(found.st_mode):
            os.unlink(name, dir_fd=tmp)
        return
