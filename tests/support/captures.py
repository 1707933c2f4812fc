"""Tapes with an answer of each kind, and archives that no opskit wrote."""

from __future__ import annotations

import gzip
import io
import tarfile

from opskit.proc.file_id import FileId
from opskit.proc.file_space import Space
from opskit.proc.recorded import tape as kinds
from opskit.proc.recorded.packing import capture_chunks
from opskit.proc.recorded.tape import KINDS, Failure, Mark, Origin, Tape

MARKS = Mark(1_700_000_000.25, 100.5), Mark(1_700_000_001.25, 101.5)
STAT = FileId(4, 4026531836, 0o100444, 0, 0, 1, 0, 1_700_000_000_123_456_789, 0, -5)


def full_tape() -> Tape:
    """Two samples with an answer of each kind; names with bytes that no archive should hold."""
    tape = Tape(Origin(root="/srv/copy\udcff", node_name="web-1", words=("shop", "a\nb"), hidden=3), MARKS)
    for key, data in {
        "/proc/1/stat": b"1 (systemd) S", "/proc/1/cmdline": b"", "/proc/1/root/../x": b"1", "/a": b"2", "/a/b": b"3", "/new\nline\udcff": b"4",
        "relative": b"5", "//etc/x": b"6", "/etc/x/": b"7", "/sys/fs/cgroup/a-b\\x2dc.slice/cpu.max": b"max 100000\n", "/..\\..\\x": b"8",
        f"/proc/{'d/' * 150}stat": b"9", f"/{'y' * 190}/{'z' * 180}": b"10", f"/{'n' * 256}": b"11", "/proc/sys/kernel/osrelease": b"5.14.0\n",
        "": b"12", "/": b"13", "/.": b"14",
    }.items():  # fmt: skip
        tape.keep(kinds.FILE, key, data)
    tape.keep(kinds.FILE, "/proc/1/stat", b"1 (systemd) R", 1)
    tape.keep(kinds.FILE, "/odd\t", b"15", 1)
    tape.keep(kinds.FILE, "/etc/shadow", Failure(13))
    tape.keep(kinds.FILE, "/proc/2/stat", Failure(2), 1)
    tape.keep(kinds.LINK, "/proc/1/exe", b"/bin/\xff\tx\\n")
    tape.keep(kinds.LINK, "/proc/self/ns/pid", b"pid:[4026531836]")
    tape.keep(kinds.STAT, "/x", STAT)
    tape.keep(kinds.LSTAT, "/x", Failure(27, "larger than\n1 MiB", is_refused=True, is_counted=True))
    tape.keep(kinds.NAMES, "/proc", ("1", "", "a\tb", "\udcfe", "\x85\u2028"))
    tape.keep(kinds.NAMES, "", ())
    tape.keep(kinds.SOME, "/tmp", ("x",))
    tape.keep(kinds.PAGES, "/x", 7)
    tape.keep(kinds.ENTRIES, "/d", (("a", True, False), ("", False, True), ("f", False, False)))
    tape.keep(kinds.FDS, "/proc/1/fd", ((b"1", b"pipe:[1]", 0o120700), (b"2", b"\xff", 1)))
    tape.keep(kinds.FDS, "/proc/2/fd", ())
    tape.keep(kinds.SPACE, "/", Space(False, 1, None, 2, 3, None, 4))
    tape.keep(kinds.WRITABLE, "/x", False, 1)
    tape.keep(kinds.OPENED, "/proc/1/mem", True)
    tape.keep(kinds.UNTRUSTED, "/tmp/x", True)
    tape.keep(kinds.RANGES, "/proc/1/mem", {0: b"abc", (1 << 64) - 4096: b"d", 7: Failure(5, "why")})
    tape.keep(kinds.RANGES, "/e", {})
    tape.keep(kinds.CALL, "f(1)", ["answer", {"a": [1, None, 2.5, "\udc80é"]}])
    tape.keep(kinds.CALL, "g()", Failure(1))
    tape.keep(kinds.REPLY, "42/threads", b"Full thread dump")
    tape.keep(kinds.REPLY, "42/\n", b"odd")
    tape.keep(kinds.REPLY, "42/threads", b"later", 1)
    return tape


def capture_bytes(tape: Tape) -> bytes:
    """The archive of a tape."""
    return b"".join(capture_chunks(tape))


def content(tape: Tape) -> dict[str, object]:
    """What a tape holds, in a form that can be compared."""
    held = {}
    for kind in KINDS:
        by_mark = list(tape.answers[kind])
        while by_mark and not by_mark[-1]:
            by_mark.pop()
        held[kind] = by_mark
    return {"origin": tape.origin, "marks": tape.marks, **held}


def entry(
    name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, **fields: object
) -> tuple[tarfile.TarInfo, bytes]:
    """An entry for archive_of."""
    made = tarfile.TarInfo(name)
    made.type, made.size = kind, len(data)
    for field, value in fields.items():
        setattr(made, field, value)
    return made, data


def plain_tar(*entries: tuple[tarfile.TarInfo, bytes], form: int = tarfile.GNU_FORMAT) -> bytes:
    """A .tar with these entries, as Python writes it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for made, data in entries:
            archive.addfile(made, io.BytesIO(data))
    return buffer.getvalue()


def archive_of(*entries: tuple[tarfile.TarInfo, bytes], form: int = tarfile.GNU_FORMAT) -> bytes:
    """The same as .tar.gz."""
    return gzip.compress(plain_tar(*entries, form=form), 1, mtime=0)
