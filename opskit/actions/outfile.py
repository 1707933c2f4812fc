"""Write an output file completely or not at all, and never to a place that another user chose.

The path is walked name by name with fds (O_PATH, O_NOFOLLOW): no races with symbolic links. In a directory that others may
write to, a link, FIFO or file is trusted only if we own it, or if root owns it and the directory: the rules of
fs.protected_symlinks, _fifos and _regular (proc_sys_fs(5)). Root follows no symbolic link of another user.

A file is written under a temporary name in the same directory (mode 0600) and renamed. A replaced file keeps its owner,
group, permission bits, ACL, SELinux label and user.* attributes; its other hard links keep the old content. Where the
owner cannot be kept, the directory is not writable, or the file is a mount point, the finished content is copied into the
file itself, after its space is allocated; never through a hard link that another user may have made.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, cast

from opskit.actions import leftovers
from opskit.errors import CannotWrite
from opskit.interrupts import Guard, Interruptible
from opskit.proc.fs import optional
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_MAX_LINKS = 40
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_ACL = "system.posix_acl_access"
_KEPT = ("security.selinux",)  # and user.*; IMA and capabilities describe the old content
_looked_through: set[tuple[int, int]] = set()  # directories
_IS_DIRECTORY = "it is a directory; name a file in it"
_IN_PLACE_INSTEAD = (errno.EPERM, errno.EACCES, errno.EBUSY)


class _Spot(NamedTuple):
    """The target of a path: the directory (an fd), the last name in it, and an O_PATH fd of what exists there (-1: nothing).

    `own_fd`: the number of our own fd that the path names, as /dev/fd/3 does.
    """

    directory: int
    name: str
    handle: int = -1
    own_fd: int | None = None

    @property
    def found(self) -> os.stat_result | None:
        return None if self.handle < 0 else os.fstat(self.handle)


def check(path: str, option: str = "-o") -> None:
    """Raise CannotWrite if it is clear in advance that a file cannot be written. `option`: which named it."""
    with _cannot_write(f"cannot write {path}", f"choose another place with {option}"), _walked(path) as spot:
        found = _target(spot)
        if spot.own_fd is None and not _can_replace(spot, found):
            if found is None or not _may_write(spot.handle):
                raise CannotWrite(f"no permission on {_shown(spot.directory, '' if found is None else spot.name)}")
            if stat.S_ISREG(found.st_mode):
                _check_names(spot, found)


def write_file(
    path: str, data: bytes | Iterable[bytes], mode: int = 0o666, option: str = "-o", kept: int = 0o777
) -> None:
    """Write a file completely or not at all. Devices, FIFOs and our own fds (/dev/fd/3) are written directly.

    `mode`: of a new file, before the umask. `option`: which named the file. `kept`: permission bits that an existing file keeps.

    Raises CannotWrite, and an existing file then keeps its content. Only a kill (SIGKILL, a crash) while content is copied
    into a file that cannot be replaced leaves a partial file.
    """
    parts = [data] if isinstance(data, bytes) else data
    with _cannot_write(f"cannot write {path}", f"choose another place with {option}"), _walked(path) as spot:
        found = _target(spot)
        if spot.own_fd is None and (found is None or stat.S_ISREG(found.st_mode)):
            _write_regular(spot, found, parts, mode, kept)
        else:
            fd = _reopened(spot) if spot.own_fd is None else spot.own_fd
            with open(fd, "wb", closefd=spot.own_fd is None) as file:
                file.writelines(parts)


def make_directory(path: str, option: str = "--save") -> None:
    """Make the directory of an option with its parents if needed, and check that it is writable. Raises CannotWrite."""
    with _cannot_write(f"{option} {path}", "choose another place"), _walked(path, make=True) as spot:
        if not _can_replace(spot, None):
            raise CannotWrite("no permission to write there")


def dump_saver(folder: str, name: str) -> Callable[[int, bytes], None]:
    """Make the folder (--save); a function of number and dump that writes `folder/name-0001.txt`. Raises CannotWrite."""
    make_directory(folder)

    def save(number: int, dump: bytes) -> None:
        write_file(os.path.join(folder, f"{name}-{number:04d}.{'json' if dump.startswith(b'{') else 'txt'}"), dump)

    return save


def _target(spot: _Spot) -> os.stat_result | None:
    """What exists there. Raises CannotWrite for a directory, and for an fd of ours that cannot be written to."""
    found = spot.found
    if spot.own_fd is not None:
        _check_own_fd(spot.own_fd)
    elif found is not None and stat.S_ISDIR(found.st_mode):
        raise CannotWrite(_IS_DIRECTORY)
    return found


@contextmanager
def _cannot_write(what: str, advice: str) -> Iterator[None]:
    try:
        yield
    except (CannotWrite, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise CannotWrite(f"{what}: {why}; {advice}") from None


@contextmanager
def _walked(path: str, *, make: bool = False) -> Iterator[_Spot]:
    """Walk a path. `make`: it names a directory, which is made; the spot's name is then empty."""
    walk = _Walk(path, make=make)
    try:
        yield walk.spot()
    finally:
        walk.drop_handle()
        os.close(walk.at)


class _Walk:
    def __init__(self, path: str, *, make: bool) -> None:
        self.todo, self.make, self.links = path.split("/")[::-1], make, 0
        self.at, self.handle = os.open("/" if path.startswith("/") else ".", _DIRECTORY), -1

    def spot(self) -> _Spot:
        """Walk to the end. Raises OSError, CannotWrite."""
        while self.todo:
            name = self.todo.pop()
            if name in ("", "."):
                continue
            last = not self.todo and not self.make
            own_fd = self._own_fd(name) if last else None
            if own_fd is not None:
                return _Spot(self.at, name, own_fd=own_fd)
            found = self._look(name)
            if found is not None and stat.S_ISLNK(found.st_mode):
                self._follow(name, found)
                if self.handle >= 0 and last:  # the kernel followed it
                    return _Spot(self.at, name, self.handle)
            elif last:
                if found is not None and not stat.S_ISDIR(found.st_mode):
                    self._check_trusted(name, found, "a file")
                return _Spot(self.at, name, self.handle)
            else:
                self._descend(name, found)
        if self.make:
            return _Spot(self.at, "")
        raise IsADirectoryError(errno.EISDIR, _IS_DIRECTORY)

    def _enter(self, directory: int) -> None:
        os.close(self.at)
        self.at = directory

    def _look(self, name: str) -> os.stat_result | None:
        """Stat a name and keep an fd of it in `handle`; None if it does not exist."""
        self.drop_handle()
        try:
            self.handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.at)
        except FileNotFoundError:
            return None
        return os.fstat(self.handle)

    def drop_handle(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    def _descend(self, name: str, found: os.stat_result | None) -> None:
        if found is None:
            if not self.make:
                raise CannotWrite(f"there is no directory {_shown(self.at, name)}")
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.at)
        elif not stat.S_ISDIR(found.st_mode):
            raise CannotWrite(f"{_shown(self.at, name)} is not a directory")
        self._enter(os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=self.at))

    def _own_fd(self, name: str) -> int | None:
        """The number of our own fd that a name in this directory refers to."""
        number = integer(name)
        named = number is not None and self._is_in_proc()
        return number if named and os.path.samestat(os.fstat(self.at), os.stat("/proc/self/fd")) else None

    def _follow(self, name: str, found: os.stat_result) -> None:
        """Follow the link in `handle`: through the kernel in /proc, whose magic links may have no path."""
        self._check_trusted(name, found, "a symbolic link")
        self.links += 1
        if self.links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if self._is_in_proc():
            self.drop_handle()
            self.handle = os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=self.at)
            if self.todo or self.make:
                self._enter(self.handle)
                self.handle = -1
            return
        target = os.readlink("", dir_fd=self.handle)
        self.drop_handle()
        if target.startswith("/"):
            self._enter(os.open("/", _DIRECTORY))
        self.todo += target.split("/")[::-1]

    def _is_in_proc(self) -> bool:
        try:
            return os.fstat(self.at).st_dev == os.lstat("/proc/self").st_dev
        except OSError:
            return False

    def _check_trusted(self, name: str, found: os.stat_result, kind: str) -> None:
        """Raise CannotWrite for what another user may have put there."""
        me, directory = os.geteuid(), os.fstat(self.at)
        if found.st_uid == me:
            return
        mode = directory.st_mode
        shared = mode & stat.S_IWOTH or (mode & stat.S_ISVTX and mode & stat.S_IWGRP)  # others may create entries in it
        if shared and (found.st_uid, directory.st_uid) != (0, 0):
            where = "in a directory that others may write to"
        elif stat.S_ISLNK(found.st_mode) and me == 0:
            where = "which root does not follow"
        else:
            return
        raise CannotWrite(f"{_shown(self.at, name)} is {kind} of uid {found.st_uid} {where}")


def _shown(directory: int, name: str = "") -> str:
    try:
        place = os.readlink(f"/proc/self/fd/{directory}")
    except OSError:
        return name or "the directory"
    return f"{place.rstrip('/')}/{name}" if name else place


def _check_own_fd(number: int) -> None:
    """Raise CannotWrite unless our caller passed that fd: those that we opened are close-on-exec."""
    try:
        given = not fcntl.fcntl(number, fcntl.F_GETFD) & fcntl.FD_CLOEXEC
        writable = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except (OSError, OverflowError):
        given = writable = False
    if not (given and writable):
        raise CannotWrite(f"file descriptor {number} is not open{' for writing' if given else ''}")


def _may_write(fd: int, mode: int = os.W_OK) -> bool:
    return os.access(f"/proc/self/fd/{fd}", mode, effective_ids=True)


def _reopened(spot: _Spot) -> int:
    """Open the file that was found, not one that replaced it since."""
    return os.open(f"/proc/self/fd/{spot.handle}", os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY)


def _can_replace(spot: _Spot, found: os.stat_result | None) -> bool:
    """Whether we may replace it and keep its owner."""
    return _may_write(spot.directory, os.W_OK | os.X_OK) and (found is None or os.geteuid() in (0, found.st_uid))


def _write_regular(spot: _Spot, found: os.stat_result | None, parts: Iterable[bytes], mode: int, kept: int) -> None:
    beside = found is None or _can_replace(spot, found)
    if beside:
        _remove_abandoned(spot.directory)
    with Guard():
        name = leftovers.new_name() if beside else None
        file = _temporary(spot.directory, name)
        try:
            with Interruptible():
                file.writelines(parts)
                file.flush()
                os.close(os.dup(file.fileno()))  # NFS reports a full disk on close
            if name is not None and _renamed(file, name, spot, found, mode, kept):
                name = None
            else:
                _copy_into(spot, file, kept)
        finally:
            if name is not None:
                with suppress(OSError):
                    os.unlink(name, dir_fd=spot.directory)
            with suppress(OSError):  # close() retries a failed write
                file.close()


def _remove_abandoned(directory: int) -> None:
    """Remove what killed runs left there, once per directory: --save writes many files."""
    found = os.fstat(directory)
    if (found.st_dev, found.st_ino) not in _looked_through:
        _looked_through.add((found.st_dev, found.st_ino))
        leftovers.remove_abandoned(directory, os.geteuid())


def _temporary(directory: int, name: str | None) -> BinaryIO:
    """A new file by that name in the directory; without a name one elsewhere."""
    if name is None:
        import tempfile

        return cast("BinaryIO", tempfile.TemporaryFile(prefix="opskit-"))
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return open(os.open(name, flags, 0o600, dir_fd=directory), "w+b")


def _renamed(file: BinaryIO, name: str, spot: _Spot, found: os.stat_result | None, mode: int, kept: int) -> bool:
    """Rename the finished file; False if that is refused and the existing file can be written to instead."""
    try:
        if found is None:
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(file.fileno(), mode & ~mask)
        else:
            _take_on(file.fileno(), spot.handle, found, kept)
        os.rename(name, spot.name, src_dir_fd=spot.directory, dst_dir_fd=spot.directory)
    except OSError as error:
        if found is None or error.errno not in _IN_PLACE_INSTEAD or not _may_write(spot.handle):
            raise
        return False
    return True


def _take_on(fd: int, old: int, found: os.stat_result, kept: int) -> None:
    """Copy owner, group, permission bits, ACL and attributes of the old file. Raises OSError if the new one would be more open."""
    made = os.fstat(fd)
    if (made.st_uid, made.st_gid) != (found.st_uid, found.st_gid):
        os.fchown(fd, found.st_uid, found.st_gid)
    path = f"/proc/self/fd/{old}"
    names = optional(os.listxattr, path, default=[])  # not every file system supports them
    for name in names:
        if name in _KEPT or name.startswith("user."):
            with suppress(OSError):
                os.setxattr(fd, name, os.getxattr(path, name))
    keeps_acl = _ACL in names and kept == 0o777
    if not keeps_acl:
        with suppress(OSError):  # the directory's default ACL
            os.removexattr(fd, _ACL)
    os.fchmod(fd, found.st_mode & (kept | stat.S_ISVTX))
    if keeps_acl:
        os.setxattr(fd, _ACL, os.getxattr(path, _ACL))


def _check_names(spot: _Spot, found: os.stat_result) -> None:
    """Raise CannotWrite for a file with hard links that another user may have made."""
    directory = os.fstat(spot.directory)
    shared = directory.st_uid not in (0, os.geteuid()) or directory.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if found.st_nlink > 1 and shared:
        path = _shown(spot.directory, spot.name)
        raise CannotWrite(f"{path} has {found.st_nlink} hard links, and others may make them in its directory")


def _copy_into(spot: _Spot, file: BinaryIO, kept: int) -> None:
    """Copy the finished content into the existing file, which stays unchanged if there is no space."""
    _check_names(spot, cast("os.stat_result", spot.found))
    length = file.seek(0, os.SEEK_END)
    file.seek(0)
    with open(_reopened(spot), "wb", buffering=0) as target:
        before, before_mode = os.fstat(target.fileno()).st_size, os.fstat(target.fileno()).st_mode
        try:
            if length:
                os.posix_fallocate(target.fileno(), 0, length)
        except OSError as error:
            os.ftruncate(target.fileno(), before)
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
        if before_mode & 0o777 & ~kept:
            os.fchmod(target.fileno(), before_mode & kept)
        while chunk := file.read(1 << 20):
            view = memoryview(chunk)
            while view:
                view = view[target.write(view) :]
        os.ftruncate(target.fileno(), length)
