"""sos reports, a directory or an archive, as a machine; and reports that a stranger has made."""

from __future__ import annotations

import io
import lzma
import tarfile

import pytest

from opskit.collect.compare.collect import collect_side
from opskit.collect.sos.commands import files_said
from opskit.collect.sos.report import is_sos, sos_host
from opskit.errors import BadInput

PS = (
    "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND\n"
    "app 4242 1.0 2.0 100 200 ? Sl 10:00 0:10 /usr/bin/java -Xmx{heap} -Dserver.id={id} -cp /app/lib/guava-{guava}.jar com.example.Main\n"
    "app 1 1.0 2.0 100 200 ? Sl 10:00 0:10 /sbin/init\n"
)
FILES = {
    "version.txt": "sosreport: 4.0\n",
    "sos_commands/kernel/sysctl_-a": "vm.swappiness = {swappiness}\nnet.core.somaxconn = 4096\nkernel.core_modes = file\nkernel.core_modes = pipe\nnonsense\n../x = 1\n",
    "sos_commands/kernel/uname_-a": "Linux {name} 5.14.0-70.el9 #1 SMP\n",
    "sos_commands/process/ps_auxwwwm": PS,
    "proc/meminfo": "MemTotal: 8000000 kB\nSwapTotal: 0 kB\n",
    "etc/os-release": 'PRETTY_NAME="Red Hat Enterprise Linux 9"\n',
}
ONE = {"swappiness": "60", "name": "web-1", "heap": "2g", "id": "1", "guava": "31.1-jre"}
OTHER = {"swappiness": "10", "name": "web-2", "heap": "1g", "id": "2", "guava": "32.0-jre"}


def directory(place, values):
    """A report as a directory."""
    for name, text in FILES.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(**values) if "{" in text else text)
    return str(place)


def archive(place, source, mode="w:xz", more=()):
    """The same as an archive."""
    with tarfile.open(place, mode) as file:
        file.add(source, "sosreport-web-2")
        for member, data in more:
            file.addfile(member, io.BytesIO(data))
    return str(place)


@pytest.fixture
def reports(tmp_path):
    """A directory, and an archive of another machine."""
    one = directory(tmp_path / "sosreport-web-1", ONE)
    return one, archive(tmp_path / "sosreport-web-2.tar.xz", directory(tmp_path / "other", OTHER))


def test_a_report_differs_in_what_differs(reports, inprocess):
    """Flags, a jar, a sysctl; not the name, the ID and the PID."""
    ran = inprocess("compare", *reports, "-f", "text")
    assert ran.code == 1
    rows = [line for line in ran.out.splitlines() if line.startswith(("configured ", "host "))]
    assert [row.partition(":")[0].split()[1] for row in rows] == ["-Xmx", "vm.swappiness", "guava.jar"]
    assert "what is measured is unknown: rates need two samples" in ran.out


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_every_form_says_the_same(reports, tmp_path, mode, inprocess):
    """A directory and its archives are alike: exit 0."""
    name = {"w": "tar", "w:gz": "tar.gz", "w:xz": "tar.xz"}[mode]
    packed = archive(tmp_path / f"sosreport-x.{name}", reports[0], mode)
    ran = inprocess("compare", reports[0], packed, "-f", "text")
    assert ran.code == 0
    assert "are alike" in ran.out


def test_the_facts_of_a_report(reports):
    """What sos copies and what its commands say; what it lacks is not there."""
    side = collect_side(sos_host(reports[0]), "x", "sos report", 1.0)
    facts = side.known.facts
    assert (side.name, side.time_utc, side.window_s) == ("web-1", None, 0.0)
    assert facts["kernel.release"].value == "5.14.0-70.el9"
    assert facts["sysctl.net.core.somaxconn"].value == "4096"
    assert facts["sysctl.kernel.core_modes"].value == "file pipe"
    assert facts["host.os"].value == "Red Hat Enterprise Linux 9"
    assert [jvm.main for jvm in side.jvms] == ["com.example.Main"]
    assert "jvm.collector" not in side.jvms[0].known.facts


def test_what_leads_out_of_an_archive_is_left_out(reports, tmp_path):
    """Links, devices and `..`."""
    link, device, up = (
        tarfile.TarInfo(f"sosreport-web-2/{name}") for name in ("etc/shadow", "proc/x", "../proc/cmdline")
    )
    link.type, link.linkname, device.type, up.size = tarfile.SYMTYPE, "/etc/shadow", tarfile.CHRTYPE, 4
    path = archive(
        tmp_path / "sosreport-h.tar.gz", tmp_path / "other", "w:gz", [(link, b""), (device, b""), (up, b"evil")]
    )
    fs = sos_host(path).fs
    for place in ("/etc/shadow", "/proc/x", "/proc/cmdline"):
        with pytest.raises(FileNotFoundError):
            fs.read_path(place)


@pytest.mark.parametrize(
    "data", [b"", b"x" * 2000, lzma.compress(b"x" * 5000), lzma.compress(b"\0" * 20000)[:60], b"\x1f\x8b" + b"x" * 600]
)
def test_what_is_no_report_is_one_line(tmp_path, data, inprocess):
    """Exit 2."""
    path = tmp_path / "sosreport-x.tar.xz"
    path.write_bytes(data)
    with pytest.raises(BadInput):
        sos_host(str(path))
    ran = inprocess("compare", path, "live")
    assert ran.code == 2
    assert ran.err.count("\n") == 1


def test_is_sos(tmp_path, reports):
    """By the directory's content, or by the archive's name."""
    assert is_sos(reports[0])
    assert is_sos(reports[1])
    assert not is_sos(str(tmp_path / "incident.tar.gz"))
    assert is_sos(archive(tmp_path / "renamed.tar.gz", reports[0], "w:gz"))


def test_commands_that_are_hostile_say_nothing():
    """No path outside of /proc/sys, no process without a number."""
    said = files_said(
        {
            "kernel/sysctl_-a": b"a/../../etc/passwd = 1\n.. = 2\n",
            "process/ps_auxwwwm": b"x\n1 2\na ../.. 1 1 1 1 1 1 1 1 java -jar x\n",
            "kernel/uname_-a": b"\xff",
        }
    )
    assert all(path.startswith("/proc/sys/") and ".." not in path for path in said)
