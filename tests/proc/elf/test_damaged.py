"""ELF files that are cut off or damaged: no exception, no long time."""

from __future__ import annotations

import os
import random
import struct
import time

import nativeprograms
import pytest

from opskit.proc.elf.call_frames import CallFrames
from opskit.proc.elf.debug_files import debug_file
from opskit.proc.elf.file import elf_of
from opskit.proc.elf.symbols import Symbols, complete_source, debug_data, dynamic_source, dynamic_symbols
from opskit.proc.fs import ProcFS

FS = ProcFS()


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """Small ELF files: with and without a search table, with .debug_frame, compressed."""
    place = tmp_path_factory.mktemp("damaged")
    options = [
        ("-nostdlib",),
        ("-nostdlib", "-Wl,--no-eh-frame-hdr"),
        ("-nostdlib", "-g", "-gz=zlib", "-Wl,--build-id"),
    ]
    return [
        nativeprograms.build("rules.s", place / str(number), *each).read_bytes() for number, each in enumerate(options)
    ]


def read_all(data, addresses):
    """Everything that is asked of a file."""
    image = elf_of(data)
    if image is None:
        return
    frames = CallFrames(image)
    for address in addresses:
        frames.rule(address)
    sources = [complete_source(image), dynamic_source(image)]
    symbols = Symbols([each for each in sources if each is not None])
    for address in addresses:
        symbols.name(address)
    dynamic_symbols(image, frozenset((b"plain",)))
    debug_data(image)
    debug_file(FS, os.getpid(), image, "/no/such/file")
    image.address_of(0x1000)


def test_a_file_that_is_cut_off_anywhere(samples):
    """Every 97th length."""
    for data in samples:
        for size in range(0, len(data), 97):
            read_all(data[:size], (0x1000, 0x1001, 0x1234))


def test_a_damaged_file(samples):
    """Random bytes, words and large numbers in the headers, sections and entries; each file is read in a second of CPU."""
    choose = random.Random(11)  # noqa: S311
    slowest = 0.0
    for number in range(1500):
        data = bytearray(samples[number % len(samples)])
        for _ in range(choose.randint(1, 8)):
            size = choose.choice((1, 2, 4, 8))
            # Most of what is read lies in the headers, and at the end: sections.
            at = choose.choice((choose.randrange(64, 1024), choose.randrange(64, len(data) - 8), len(data) - choose.randrange(8, 2048)))  # fmt: skip
            value = choose.choice(
                (0, 1, 0x7F, 0xFF, (1 << 8 * size) - 1, 1 << (8 * size - 1), choose.getrandbits(8 * size))
            )
            data[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        begin = time.process_time()
        read_all(bytes(data), (0x1000, 0x1001, 0x1234, choose.getrandbits(64)))
        slowest = max(slowest, time.process_time() - begin)
    assert slowest < 1


def test_a_section_of_a_million_entries_takes_seconds_at_most(samples):
    """An .eh_frame without a search table, and an entry whose instructions copy many registers' rules again and again."""
    data = bytearray(samples[1])
    image = elf_of(bytes(data))
    number = next(number for number, each in enumerate(image.sections) if each.name == ".eh_frame")
    (sections_at,) = struct.unpack_from("<Q", data, 0x28)
    cie = struct.pack("<II", 16, 0) + b"\x01\0\x01\x78\x10".ljust(12, b"\0")
    registers = b"".join(b"\x05" + bytes((0x80 | low, high, 1)) for high in (0, 1) for low in range(128))
    long = registers + b"\x0a\x0b" * ((60_000 - len(registers)) // 2)
    entries = struct.pack("<IIQQ", 20 + len(long), 24, 0x1000, 0x1000) + long
    at = len(cie) + len(entries)
    small = b"".join(struct.pack("<IIQQ", 20, at + 24 * each + 4, 0x9000, 1) for each in range(700_000))
    blob = cie + entries + small
    header = sections_at + 64 * number
    struct.pack_into("<QQ", data, header + 24, len(data), len(blob))
    begin = time.process_time()
    read_all(bytes(data) + blob, (0x1000, 0x1001, 0x1234, 0x9000))
    assert time.process_time() - begin < 8


def section_of(data, name):
    """Where a section's content is."""
    image = elf_of(data)
    return image.section(name)


def test_entries_that_are_malformed_give_no_rule(samples):
    """A CIE that is its own FDE, an endless length, an unknown instruction."""
    data = bytearray(samples[0])
    section = section_of(bytes(data), ".eh_frame")
    header = section_of(bytes(data), ".eh_frame_hdr")
    first = struct.unpack_from("<i", data, header.offset + 12)[0] + header.address
    assert CallFrames(elf_of(bytes(data))).rule(first) is not None
    for at, value in ((0, 0xFFFFFFFF), (0, 0x7FFFFFFF), (0, 3), (4, 1)):
        damaged = bytearray(data)
        struct.pack_into("<I", damaged, section.offset + at, value)
        CallFrames(elf_of(bytes(damaged))).rule(first)
    for at in range(0, section.size - 4, 4):
        damaged = bytearray(data)
        struct.pack_into("<I", damaged, section.offset + at, 0x3F3F3F3F)
        CallFrames(elf_of(bytes(damaged))).rule(first)
