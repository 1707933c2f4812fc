"""A FUSE file system with two files, whose server stops to answer, or is slow: what a dead NFS server does to who asks about a file."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
import threading

_IN, _OUT = struct.Struct("=IIQQIIII"), struct.Struct("=IiQ")
_ATTRIBUTES = struct.Struct("=6Q10I")
_LOOKUP, _FORGET, _GETATTR, _UNLINK, _OPEN, _READ, _WRITE, _STATFS, _INIT, _CREATE = 1, 2, 3, 10, 14, 15, 16, 17, 26, 35
_ENOENT, _ENOSYS = 2, 38
_ROOT, _FILE, _DATA = 1, 2, 3
_DATA_BYTES = 1 << 30  # of the file `data`, which can be read and written


class SilentFuse:
    """Mounted on a directory by root; answers until `silent` is set. A read or a write takes `delay_s`, until `hurry` is set."""

    def __init__(self, directory: str) -> None:
        self.silent, self.hurry = threading.Event(), threading.Event()
        self.delay_s = 0.0
        self._directory = directory
        self._device = os.open("/dev/fuse", os.O_RDWR)
        libc = ctypes.CDLL(None, use_errno=True)
        options = f"fd={self._device},rootmode=40000,user_id=0,group_id=0".encode()
        if libc.mount(b"silent", directory.encode(), b"fuse", ctypes.c_ulong(0), options):
            raise OSError(ctypes.get_errno(), "mount -t fuse")
        threading.Thread(target=self._serve, daemon=True).start()

    def deleted_file(self) -> int:
        """The fd of a file there that has no name any more."""
        path = f"{self._directory}/file"
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        # The kernel learns that there is no flush(). Otherwise the end of a process that has the file open would wait for one.
        os.close(os.dup(fd))
        os.unlink(path)
        return fd

    def _serve(self) -> None:
        while True:
            try:
                message = os.read(self._device, 1 << 17)
            except OSError:  # it was unmounted
                return
            if self.silent.is_set():
                continue
            _, operation, unique, node, *_ = _IN.unpack_from(message)
            if operation == _FORGET:
                continue
            if operation in (_READ, _WRITE) and self.delay_s:
                self.hurry.wait(self.delay_s)
            error, body = self._answer(operation, node, message)
            with contextlib.suppress(FileNotFoundError):  # the request was interrupted meanwhile
                os.write(self._device, _OUT.pack(_OUT.size + len(body), -error, unique) + body)

    def _answer(self, operation: int, node: int, message: bytes) -> tuple[int, bytes]:
        if operation == _INIT:
            return 0, struct.pack("=IIIIHHIIHHI7I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, 0, *[0] * 7)
        if operation == _LOOKUP:
            if message[_IN.size :] != b"data\0":
                return _ENOENT, b""
            return 0, struct.pack("=QQQQII", _DATA, 0, 3600, 3600, 0, 0) + _attributes(_DATA)
        if operation == _OPEN:
            return 0, bytes(16)
        if operation == _READ:
            return 0, bytes(struct.unpack_from("=QQI", message, _IN.size)[2])
        if operation == _WRITE:
            return 0, struct.pack("=II", struct.unpack_from("=QQI", message, _IN.size)[2], 0)
        if operation == _GETATTR:
            return 0, struct.pack("=QII", 0, 0, 0) + _attributes(node)
        if operation == _CREATE:
            entry = struct.pack("=QQQQII", _FILE, 0, 3600, 0, 0, 0) + _attributes(_FILE)
            return 0, entry + struct.pack("=QII", 0, 0, 0)
        if operation == _STATFS:
            return 0, bytes(80)
        return (0, b"") if operation == _UNLINK else (_ENOSYS, b"")


def _attributes(node: int) -> bytes:
    mode = stat.S_IFDIR | 0o755 if node == _ROOT else stat.S_IFREG | 0o600
    size = _DATA_BYTES if node == _DATA else 0
    return _ATTRIBUTES.pack(node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
