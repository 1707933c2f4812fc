"""Call frame information: the same rows as binutils' readelf prints."""

from __future__ import annotations

import jvms
import nativeprograms
import pytest
from frametables import printed, rows_of

from opskit.proc.elf.call_frames import CallFrames
from opskit.proc.elf.file import open_elf
from opskit.proc.fs import ProcFS


def differences(path, every=1):
    """Compare at the first, the middle or the last address of each row, in turn; also how many were compared."""
    image = open_elf(ProcFS(), str(path))
    frames = CallFrames(image)
    found, count = [], 0
    for count, row in enumerate(rows_of(str(path), every), 1):
        wanted = row.cfa, {name: text for name, text in row.columns.items() if text != "u"}
        address = (row.begin, (row.begin + row.end) // 2, row.end - 1)[count % 3]
        rule = frames.rule(address)
        cfa, columns = printed(rule) if rule else ("", {})
        if (cfa, {name: text for name, text in columns.items() if text != "u"}) != wanted:
            found.append((hex(address), cfa, columns, wanted))
    return found[:5], count


@pytest.fixture(scope="module", autouse=True)
def binutils():
    """Skip without readelf."""
    nativeprograms.tool("readelf")


@pytest.mark.parametrize("mapped", ["/libc.so.6", "/ld-linux-x86-64.so.2"])
def test_the_whole_c_library_has_the_rows_of_readelf(mapped):
    """Each row of each function of libc and of the dynamic linker, with its expressions and hand-written rules."""
    with open("/proc/self/maps") as maps:
        path = next((line.split()[-1] for line in maps if line.rstrip().endswith(mapped)), None)
    if path is None:
        pytest.skip(f"this Python has no {mapped}")
    found, count = differences(path)
    assert found == []
    assert count > 1000


def test_a_large_library_has_the_rows_of_readelf():
    """A sample of the 50,000 functions of libjvm."""
    library = jvms.java(21).replace("bin/java", "lib/server/libjvm.so")
    found, count = differences(library, every=13)
    assert found == []
    assert count > 10_000


@pytest.mark.parametrize(
    "options",
    [
        ("-nostdlib",),
        ("-nostdlib", "-Wl,--no-eh-frame-hdr"),
        ("-nostdlib", "-no-pie", "-static"),
    ],
    ids=["table", "no table", "static"],
)
def test_all_instructions_have_the_rows_of_readelf(tmp_path, options):
    """Every call frame instruction, also without .eh_frame_hdr's search table."""
    found, count = differences(nativeprograms.build("rules.s", tmp_path / "rules", *options))
    assert found == []
    assert count > 20


@pytest.mark.parametrize("compression", ["none", "zlib"])
def test_debug_frame_is_used_where_there_is_no_eh_frame(tmp_path, compression):
    """The section for debuggers, compressed or not: its addresses are absolute, its CIEs are found by their offsets."""
    program = nativeprograms.build(
        "stacks.c", tmp_path / "stacks", "-g", "-O2", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables",
        f"-gz={compression}",
    )  # fmt: skip
    address = next(
        int(line.split()[0], 16) for line in nativeprograms.run("nm", program).splitlines() if line.endswith(" deep")
    )
    image = open_elf(ProcFS(), str(program))
    assert image.section(".debug_frame") is not None
    rule = CallFrames(image).rule(address)
    assert (rule.register, rule.offset, rule.saved[16]) == (7, 8, ("offset", -8))
    found, count = differences(program)
    assert found == []
    assert count > 10


def test_signal_frames_and_the_entry_of_a_thread_are_marked(tmp_path):
    """`.cfi_signal_frame` and an undefined return address."""
    program = nativeprograms.build("rules.s", tmp_path / "rules", "-nostdlib")
    symbols = {line.split()[-1]: line.split()[0] for line in nativeprograms.run("nm", program).splitlines()}
    frames = CallFrames(open_elf(ProcFS(), str(program)))
    rule = frames.rule(int(symbols["handled"], 16))
    assert rule.is_signal
    assert rule.saved[16][0] == "undefined"
    assert not frames.rule(int(symbols["plain"], 16)).is_signal
    assert frames.rule(int(symbols["_start"], 16)) is None
    assert frames.rule(0) is None
    assert frames.rule((1 << 64) - 1) is None
