"""Reading back what a JVM has written of its virtual threads."""

from __future__ import annotations

import os

import pytest

from opskit.actions.dump_virtual_threads import _read
from opskit.errors import AttachError, NotPermitted


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    """A JVM may write what it likes: above 1 GiB nothing is read, and the error knows the limit."""
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
