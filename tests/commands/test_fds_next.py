"""The commands that `opskit fds` advises are typed in the state that made it advise them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import fdfacts
from nextsteps import try_next
from ownmounts import own_mounts
from shellwords import words_of

from opskit.collect.fds.facts import Near, User
from opskit.host import Host
from opskit.proc.open_files import open_files


def findings(pid, place):
    """What `opskit fds --deleted` finds about a file system, in the mount namespace of this process; by code."""
    entered = ("nsenter", "-t", str(pid), "-m", f"--wd={ROOT}", sys.executable, "-m", "opskit")
    done = subprocess.run([*entered, "fds", "--deleted", "-f", "json"], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)["findings"]
    return {each["code"]: each for each in found if each["subject"] == str(place)}


ROOT = Path(__file__).resolve().parents[2]
# The process keeps fd 3 of a deleted file that fills its tmpfs.
FULL = """
mount -t tmpfs -o size=24M,nr_inodes=64 none {0}
exec 3>>{0}/app.log
dd if=/dev/zero bs=1M count=30 >&3 2>/dev/null || true
rm {0}/app.log
"""
NO_INODES = """
mount -t tmpfs -o size=64M,nr_inodes=40 none {0}
seq -f {0}/%g 60 | xargs touch 2>/dev/null || true
"""


def test_a_full_disk_and_the_deleted_log(root_only, tmp_path):
    """The closer looks, and the truncate(1) of the summary, which gives the space back."""
    with own_mounts(FULL.format(tmp_path)) as pid:
        found = findings(pid, tmp_path)
        assert set(found) == {"disk-full", "deleted-files-held"}
        assert try_next(found.values(), "deleted-files-held") == f"opskit fds {pid}"
        assert try_next(found.values(), "disk-full").startswith("du -xd1 ")
        command = re.search(r"content is lost then: (truncate .*)$", found["deleted-files-held"]["summary"])[1]
        assert words_of(f"x {command}") == ["truncate", "-s", "0", f"/proc/{pid}/fd/3"]
        subprocess.run(words_of(f"x {command}"), check=True)
        assert findings(pid, tmp_path) == {}


def test_a_disk_without_inodes(root_only, tmp_path):
    """Space is left, and no file can be made."""
    with own_mounts(NO_INODES.format(tmp_path)) as pid:
        found = findings(pid, tmp_path)
        assert set(found) == {"disk-inodes-used-up"}
        assert try_next(found.values(), "disk-inodes-used-up").startswith("du --inodes -xd1 ")


def test_limits_of_the_machine(inprocess):
    """fs.file-max and the limits of users belong to the whole machine, and are not lowered for a test."""
    host = Host.at(None, None)
    near = Near(host.process(os.getpid()), open_files(host.fs, os.getpid()))
    user = User(0, "root", 127, ((os.getpid(), "python", 127),))
    judged = fdfacts.host(nearest=(near,), file_nr=(97, 100), inotify_instances=(user,), inotify_watches=())
    closer = f"opskit fds {os.getpid()}"
    assert try_next(judged.findings, "file-max-nearly-used") == closer
    assert try_next(judged.findings, "inotify-instances-nearly-used") == closer
    assert [finding.severity for finding in judged.findings] == ["warning", "warning"]
