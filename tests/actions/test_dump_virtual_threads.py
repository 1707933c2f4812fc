"""Reading the file that a JVM wrote, which may be anything."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path

import pytest

from opskit.actions.dump_virtual_threads import _read
from opskit.errors import AttachError, NotPermitted
from opskit.proc.files.stat import parse_stat


def test_what_is_no_plain_file_is_not_opened(tmp_path, spawn):
    """A FIFO in the dump's place: not read, and its writer waits on; the same goes for devices, whose opening may act."""
    os.mkfifo(tmp_path / "dump")
    writer = spawn("import os, sys; print('up'); os.open(sys.argv[1], os.O_WRONLY); print('opened')", tmp_path / "dump")
    while parse_stat(Path(f"/proc/{writer.pid}/stat").read_text()).state != "S":
        time.sleep(0.01)
    tmp = os.open(tmp_path, os.O_PATH)
    try:
        with pytest.raises(NotPermitted, match="is not the file that the JVM was asked to write"):
            _read(tmp, "dump", os.geteuid(), "")
    finally:
        os.close(tmp)
    assert select.select([writer.stdout], [], [], 0.3)[0] == []


def test_what_is_not_the_jvms_alone_is_not_read(tmp_path):
    """A link, a file of another user, a file with two names."""
    (tmp_path / "plain").write_text("x")
    (tmp_path / "link").symlink_to("plain")
    tmp = os.open(tmp_path, os.O_PATH)
    try:
        assert _read(tmp, "plain", os.geteuid(), "") == b"x"
        for name, euid in (("link", os.geteuid()), ("plain", os.geteuid() + 1)):
            with pytest.raises(NotPermitted, match="not read"):
                _read(tmp, name, euid, "")
        os.link(tmp_path / "plain", tmp_path / "again")
        with pytest.raises(NotPermitted, match="not read"):
            _read(tmp, "plain", os.geteuid(), "")
    finally:
        os.close(tmp)


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    """Above 1 GiB nothing is read, and the error has the limit as a fact."""
    (tmp_path / "small").write_bytes(b'{"threadDump": {}}')
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", (1 << 30) + 1)
    (tmp_path / "link").symlink_to("small")
    folder = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)
    try:
        assert _read(folder, "small", os.geteuid(), "") == b'{"threadDump": {}}'
        with pytest.raises(AttachError, match="at most 1024 MiB are read") as raised:
            _read(folder, "large", os.geteuid(), "")
        assert (raised.value.reason, raised.value.facts["limit_bytes"]) == ("reply-too-large", 1 << 30)
        with pytest.raises(NotPermitted):
            _read(folder, "link", os.geteuid(), "")
    finally:
        os.close(folder)
