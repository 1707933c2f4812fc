"""The core file of a crash: where it is, whether it is there, whether it is of this process."""

from __future__ import annotations

import os

import pytest
from corefiles import core_bytes, real_core

from opskit.collect.crash.cores import Around, core_of, integer_at, is_core_name, said_paths
from opskit.jvm.logs.crashes.record import CrashReport, Event
from opskit.proc.elf.core_notes import notes_at, pid_in
from opskit.proc.fs import ProcFS

FS = ProcFS()
WILL = "Core dump will be written. Default location: "


def core(place, line, pid=42, pattern=None, written_s=None, java_home=None, root=""):
    report = CrashReport("hotspot", Event("signal", "SIGSEGV"), pid, core=line, java_home=java_home)
    return core_of(report, Around(FS, str(place), FS, [str(root)], pattern), written_s)


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        (f"{WILL}/srv/shop/core.42", ["/srv/shop/core.42"]),
        (f"{WILL}/srv/my shop/core.42 (max size 1024 k). To ensure a full core dump, try …", ["/srv/my shop/core.42"]),
        (f'{WILL}Core dumps may be processed with "/usr/share/apport/apport -p%p" (or dumping to /srv/core.42)', ["/srv/core.42"]),
        (f'{WILL}Determined by the following: "/cores/%e"', []),
        (f'{WILL}Determined by the following: "/usr/share/apport/apport -p%p" (alternatively, falling back to /srv/core.42)', ["/srv/core.42"]),
        ("Core dump written. Default location: /srv/shop/core or core.42", ["/srv/shop/core", "/srv/shop/core.42"]),
        (r"Core dump will be written. Default location: C:\app\hs_err_pid42.mdmp", []),
        ("No core dump will be written. Core dumps have been disabled.", []),
        ("", []),
    ],
)  # fmt: skip
def test_the_path_in_a_report(line, paths):
    """As JDK 8 to 25 write it, with a limit, and with a program that gets the core file."""
    assert said_paths(line) == paths


def test_a_core_file_that_is_there(tmp_path):
    """By the path in the report, with its size."""
    (tmp_path / "core.42").write_bytes(core_bytes(42))
    found = core(tmp_path / "elsewhere", f"{WILL}{tmp_path}/core.42")
    assert (found.path, found.size_bytes) == (f"{tmp_path}/core.42", (tmp_path / "core.42").stat().st_size)


def test_a_core_file_beside_a_copied_report(tmp_path):
    """The directory in the report is of another machine."""
    (tmp_path / "core.42").write_bytes(core_bytes(42))
    assert core(tmp_path, f"{WILL}/srv/shop/core.42").path == f"{tmp_path}/core.42"


def test_a_core_file_of_another_process(tmp_path):
    """It has the name, but the PID in it is another."""
    (tmp_path / "core").write_bytes(core_bytes(41))
    found = core(tmp_path, f"{WILL}{tmp_path}/core")
    assert found.path is None
    assert found.said.endswith(f"{tmp_path}/core is a core file of process 41")


@pytest.mark.parametrize(("content", "why"), [(b"", "is empty"), (b"hallo", "is not a core file")])
def test_what_is_no_core_file(tmp_path, content, why):
    """Empty, or other content."""
    (tmp_path / "core.42").write_bytes(content)
    found = core(tmp_path, f"{WILL}{tmp_path}/core.42")
    assert (found.path, why in found.said) == (None, True)


def test_a_core_file_that_is_gone(tmp_path):
    """The sentence of the report, and that the file is not here."""
    found = core(tmp_path, f"{WILL}{tmp_path}/core.42")
    assert found.path is None
    assert f"{tmp_path}/core.42 does not exist here" in found.said


def test_disabled_core_files(tmp_path):
    """The sentence of the report alone."""
    line = "No core dump will be written. Core dumps have been disabled."
    assert core(tmp_path, line) == (None, None, line)
    assert core(tmp_path, None) is None


def test_hostile_core_files(tmp_path):
    """A FIFO, a link, and damaged notes: nothing hangs, nothing is opened."""
    os.mkfifo(tmp_path / "core.42")
    assert core(tmp_path, f"{WILL}{tmp_path}/core.42").path is None
    os.symlink("/dev/zero", tmp_path / "core.43")
    assert core(tmp_path, f"{WILL}{tmp_path}/core.43").path is None


def test_a_core_file_by_the_kernels_pattern(tmp_path):
    """kernel.core_pattern with %p names it in its directory; one without may be of any process."""
    cores = tmp_path / "cores"
    cores.mkdir()
    (cores / "java-42-1700000000.core").write_bytes(core_bytes(42))
    found = core(tmp_path, None, pattern=f"{cores}/%e-%p-%t.core")
    assert found.path == f"{cores}/java-42-1700000000.core"
    assert core(tmp_path, None, pattern=f"{cores}/%e.core") is None
    (tmp_path / "c.42").write_bytes(core_bytes(42))
    assert core(tmp_path, None, pattern="c.%p").path == f"{tmp_path}/c.42"


def test_a_core_file_whose_name_the_jvm_knew_in_part(tmp_path):
    """It replaces %p alone; the kernel has written the program's name, too."""
    (tmp_path / "core.java.42").write_bytes(core_bytes(42))
    (tmp_path / "core.java.43").write_bytes(core_bytes(43))
    assert core(tmp_path / "elsewhere", f"{WILL}{tmp_path}/core.%e.42").path == f"{tmp_path}/core.java.42"


def test_a_core_file_that_systemd_has(tmp_path):
    """It is compressed, and coredumpctl gives it."""
    place = tmp_path / "var" / "lib" / "systemd" / "coredump"
    place.mkdir(parents=True)
    name = "core.java.1000.5bd0aa1c7d0f4b4c.42.1700000000000000.zst"
    (place / name).write_bytes(b"\x28\xb5\x2f\xfd")
    line = f'{WILL}Core dumps may be processed with "/lib/systemd/systemd-coredump %P %u" (or dumping to /srv/core.42)'
    assert core(tmp_path, line, root=tmp_path).said.endswith(f"systemd-coredump has kept it: {place}/{name}")
    assert "the kernel gave it to /lib/systemd/systemd-coredump" in core(tmp_path, line, pid=43, root=tmp_path).said


def test_a_core_file_that_apport_has(tmp_path):
    """By the path of the program."""
    place = tmp_path / "var" / "crash"
    place.mkdir(parents=True)
    (place / "_opt_jdk_bin_java.1000.crash").write_text("ProblemType: Crash\n")
    line = f'{WILL}Core dumps may be processed with "/usr/share/apport/apport -p%p" (or dumping to /srv/core.42)'
    assert core(tmp_path, line, java_home="/opt/jdk", root=tmp_path).said.endswith("_opt_jdk_bin_java.1000.crash")


def test_names_of_core_files():
    """The usual ones; the PID in those of systemd."""
    assert all(map(is_core_name, ("core", "core.42", "core-java-42", "core.java.42", "java.core", "vgcore.1")))
    assert not any(map(is_core_name, ("cores", "score.1", "core/", "hs_err_pid1.log", "")))
    assert integer_at("core.java.1000.5bd0aa1c.42.1700000000000000.lz4") == 42
    assert integer_at("core.java.1000.5bd0aa1c.42.1700000000000000") == 42
    assert integer_at("core.42") is None


def test_the_pid_in_a_real_core_file(tmp_path):
    """As the kernel writes it."""
    with real_core(tmp_path) as (pid, file):
        content = file.read_bytes()
        assert pid_in(content[notes_at(content[:4096]) :]) == pid
        assert core(tmp_path, f"{WILL}{file}", pid=pid).path == str(file)
        assert core(tmp_path, f"{WILL}{file}", pid=pid + 1).path is None
