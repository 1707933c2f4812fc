"""opskit.collect.host.kernel: the ring, the log file for those who may not read it, and what is still there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import datetime, timezone

import pytest
from cgroups import new_cgroup

from opskit.analysis.host.kernel import judge
from opskit.collect.host import kernel
from opskit.host import Host
from opskit.proc.files.tainted import parse_tainted
from opskit.proc.fs import ProcFS
from opskit.proc.kernel_messages import read_message
from opskit.proc.rights import Rights

DENIED = PermissionError("denied")
UNTIL_S = 20.0


def test_the_ring_of_this_machine(root_only):
    """Root reads it, and how far back it reaches."""
    facts = kernel.collect(Host(ProcFS()))
    assert (facts.source, facts.problem) == (kernel.RING, None)
    assert facts.taints is not None
    assert facts.covers_s is None or facts.covers_s > 0


def test_a_real_message_of_the_kernel(root_only):
    """pids.max of a cgroup stops a fork: seconds ago, of a cgroup that exists, which is a note when it is gone."""
    with new_cgroup("pids", f"opskit-test-kernel-{os.getpid()}", "pids.max") as place:
        (place / "pids.max").write_text("1")
        fork = f"open('{place}/cgroup.procs', 'w').write('0')\nimport os\ntry: os.fork()\nexcept OSError: pass"
        subprocess.run([sys.executable, "-c", fork], check=True)
        host = Host(ProcFS())
        deadline = time.monotonic() + UNTIL_S
        found = []
        while not found:
            assert time.monotonic() < deadline
            found = [each for each in kernel.collect(host).told if (each.message.subject or "").endswith(place.name)]
        assert found[0].is_ours
        assert found[0].ago_s is not None
        assert found[0].ago_s < UNTIL_S
        assert judge(kernel.collect(host)._replace(told=found))[0].severity == "warning"
    gone = [each for each in kernel.collect(host).told if (each.message.subject or "").endswith(place.name)]
    assert [each.is_ours for each in gone] == [False] * len(gone)
    assert gone


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A machine that runs for eleven days, whose ring may not be read, and whose kern.log has this text."""
    monkeypatch.setattr(kernel, "parse_uptime", lambda _: 1e6)
    monkeypatch.setattr(kernel, "_read_ring", lambda *_: (_ for _ in ()).throw(DENIED))

    def make(text):
        if text is not None:
            (tmp_path / "var" / "log").mkdir(parents=True)
            (tmp_path / "var" / "log" / "kern.log").write_text(text)
        return kernel.collect(Host(ProcFS("/proc", str(tmp_path))))

    return make


def test_without_rights_the_log_file_is_read(log):
    """Lines of the kernel, by their dates; those that a program wrote under another name are none, nor those before the boot."""
    stamp = datetime.fromtimestamp(time.time() - 3600, timezone.utc).astimezone().strftime("%b %e %H:%M:%S")
    lines = [
        f"{stamp} web1 kernel: [ 1215.612345] I/O error, dev sdb, sector 1 op 0x0:(READ)",
        f"{stamp} web1 app[77]: I/O error, dev sdc, sector 1 op 0x0:(READ)",
        f"{stamp} web1 kernel: usual",
        "2001-01-01T00:00:00+00:00 web1 kernel: [ 1215.612345] BUG: kernel NULL pointer dereference, address: 0",
    ]
    facts = log("\n".join(lines) + "\n")
    assert (facts.source, facts.problem) == (kernel.LOG_FILE, None)
    assert [each.message.subject for each in facts.told] == ["sdb"]
    assert 3500 < facts.told[0].ago_s < 3700


def test_the_end_of_a_large_log_is_read(log, monkeypatch):
    """The first line of what is read is cut, and left out."""
    monkeypatch.setattr(kernel, "_TAIL_BYTES", 100)
    line = f"{datetime.now(timezone.utc).isoformat(timespec='seconds')} web1 kernel: PM: suspend exit\n"
    assert len(log(line * 5).told) == 1


@pytest.mark.parametrize(
    ("euid", "effective", "why"),
    [
        (1000, 0, "permission denied: run as root"),
        (0, 0, "root lacks CAP_SYSLOG here: run opskit on the host"),
        (0, ~0, "/dev/kmsg cannot be opened here: run opskit on the host"),
    ],
)
def test_without_rights_and_log(log, monkeypatch, euid, effective, why):
    """What to do is said: root of a container is root."""
    rights = Rights(euid, effective, effective, no_new_privs=False, in_initial_user_namespace=True, groups=frozenset())
    monkeypatch.setattr("opskit.proc.rights.read_rights", lambda: rights)
    facts = log(None)
    assert (facts.source, facts.problem) == (None, why)


def test_a_suspended_machine(monkeypatch):
    """A message from before the last suspend is older by up to all of it; one from after it is not."""
    text = "<4>[  100.000000] PM: suspend exit\n<3>[  200.000000] PM: suspend exit"
    text = (
        "<3>[   50.000000] I/O error, dev sda, sector 1\n" + text + "\n<3>[  250.000000] I/O error, dev sdb, sector 1"
    )
    monkeypatch.setattr(
        "opskit.collect.host.kernel.kernel_log", lambda _: type("Log", (), {"text": text, "is_whole": True})
    )
    host = Host(ProcFS())
    host.monotonic = lambda: 300.0
    messages, covers_s = kernel._read_ring(host, 300.0 + 7 * 86_400)
    assert [round(ago_s) for message, ago_s in messages if message.kind == "io-error"] == [250 + 7 * 86_400, 50]
    assert covers_s == 300.0 + 7 * 86_400


def test_a_copy_has_taints_alone(tmp_path):
    """The rest is a gap."""
    for name, text in (("sys/kernel/tainted", "4608\n"), ("uptime", "100.0 1.0\n"), ("1/stat", "1 (init) S 0")):
        place = tmp_path / "proc" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    facts = kernel.collect(Host.at(str(tmp_path), None))
    assert facts.taints == (9, 12)
    assert facts.problem.startswith("this is a copy")


@pytest.mark.parametrize(
    ("text", "errors", "is_ours"),
    [
        ("EXT4-fs error (device sda1): ext4_lookup:1602: inode #2", 0, False),
        ("EXT4-fs (sda1): Remounting filesystem read-only", 0, False),
        ("EXT4-fs error (device sda1): ext4_lookup:1602: inode #2", 3, True),
        ("JBD2: Detected IO errors while flushing file data on sda1-8", 0, True),
        ("EXT4-fs error (device sdb1): ext4_lookup:1602: inode #2", 3, False),
    ],
)
def test_a_file_system_that_was_repaired(tree, text, errors, is_ours):
    """Or another one on a device of the same name: ext4 counts no error then. What is not mounted is nobody's."""
    root = tree({
        "proc/1/mountinfo": "36 25 8:1 / /data rw - ext4 /dev/sda1 rw\n", "sys/fs/ext4/sda1/errors_count": f"{errors}\n",
        "sys/block/sda/dev": "8:0\n",
    })  # fmt: skip
    [told] = kernel._placed(Host.at(str(root), None), [(read_message(text), 60.0)])
    assert told.is_ours is is_ours
    assert told.chain == (("sda1", "sda") if "sda1" in text else ("sdb1",))


@pytest.mark.parametrize(("uuid", "is_ours"), [("mpath-3600a0b80", False), ("LVM-aBcD", True)])
def test_a_path_of_a_multipath_device(tree, uuid, is_ours):
    """A path that is passive refuses each request, and another one is taken."""
    root = tree({
        "proc/meminfo": "", "sys/block/sdc/holders/dm-0/x": "", "sys/block/dm-0/dm/uuid": f"{uuid}\n", "sys/class/block/sdc/dev": "8:32\n",
    })  # fmt: skip
    message = read_message("I/O error, dev sdc, sector 0 op 0x0:(READ)")
    assert [each.is_ours for each in kernel._placed(Host.at(str(root), None), [(message, 60.0)])] == [is_ours]


def test_the_mask_of_taints():
    """Bits in their order."""
    assert parse_tainted("0\n") == ()
    assert parse_tainted("536576\n") == (12, 13, 19)
