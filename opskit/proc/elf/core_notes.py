"""Which process a core file is of (core(5), elf(5)): its note NT_PRPSINFO, of a 64-bit little-endian machine.

A core file of Linux begins with the ELF header and the program headers; one of them, as a rule the first, is PT_NOTE. The notes are

    namesz descsz type name desc      4 bytes each; name and desc are padded to 4

with NT_PRSTATUS of the thread that crashed, then NT_PRPSINFO (struct elf_prpsinfo), whose pr_pid is at offset 24.
"""

from __future__ import annotations

import struct

HEAD_BYTES = 4096  # of the file, for notes_at; of the notes, for pid_in
_CORE = struct.Struct("<HH")  # e_type, e_machine at 16
_PROGRAM_HEADERS = struct.Struct("<Q14xHH")  # e_phoff at 32, e_phentsize, e_phnum
_PROGRAM_HEADER = struct.Struct("<I4xQ")  # p_type, p_flags, p_offset
_NOTE = struct.Struct("<III")
_ET_CORE, _PT_NOTE, _NT_PRPSINFO = 4, 4, 3
_PID_AT = 24


def is_core(head: bytes) -> bool:
    """Whether a file's first bytes are those of a core file."""
    return head.startswith(b"\x7fELF\x02\x01") and len(head) >= 64 and _CORE.unpack_from(head, 16)[0] == _ET_CORE


def notes_at(head: bytes) -> int | None:
    """Where in the file its notes are; None: not within these bytes, or no core file of a 64-bit machine."""
    if not is_core(head):
        return None
    at, size, number = _PROGRAM_HEADERS.unpack_from(head, 32)
    for _ in range(min(number, HEAD_BYTES // 56)):
        if size < _PROGRAM_HEADER.size or at + _PROGRAM_HEADER.size > len(head):
            return None
        kind, offset = _PROGRAM_HEADER.unpack_from(head, at)
        if kind == _PT_NOTE:
            return int(offset)  # a number: of eight bytes
        at += size
    return None


def pid_in(notes: bytes) -> int | None:
    """The PID of the process, in its own PID namespace; None where these bytes do not hold it."""
    at = 0
    while at + _NOTE.size <= len(notes):
        name_bytes, size, kind = _NOTE.unpack_from(notes, at)
        at += _NOTE.size + (name_bytes + 3) // 4 * 4
        if kind == _NT_PRPSINFO and size >= _PID_AT + 4 and at + _PID_AT + 4 <= len(notes):
            pid = struct.unpack_from("<i", notes, at + _PID_AT)[0]
            return pid if pid > 0 else None
        at += (size + 3) // 4 * 4
    return None
