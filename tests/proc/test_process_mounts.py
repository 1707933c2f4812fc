"""The mounts of processes: those in a chroot see a part of their namespace's."""

from __future__ import annotations

import os
import sys

from ownmounts import own_mounts

from opskit.proc.fs import ProcFS
from opskit.proc.process_mounts import ProcessMounts

# The file is on a tmpfs outside of the new root, below which another one is mounted.
CHROOT = """
import os, time
held = os.open("{0}/outside/file", os.O_CREAT | os.O_WRONLY)
os.close(1); os.close(2); os.chroot("{0}/root")
os.mkdir("/ready"); time.sleep(60)
"""
MOUNTS = """
mkdir {0}/outside {0}/root
mount -t tmpfs none {0}/outside; mount -t tmpfs none {0}/root; mkdir {0}/root/inner; mount -t tmpfs none {0}/root/inner
{1} -c '{2}' & echo $! >{0}/pid
while ! test -e {0}/root/ready; do sleep 0.05; done
"""


def test_a_file_outside_of_a_chroot(root_only, tmp_path):
    """Its mount is found with another process of the namespace, although the chroot's own list lacks it."""
    script = MOUNTS.format(tmp_path, sys.executable, CHROOT.format(tmp_path))
    with own_mounts(script):
        pid = int((tmp_path / "pid").read_text())
        try:
            links = {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
            [held] = [fd for fd, link in links.items() if link.endswith("/outside/file")]
            found = ProcessMounts(ProcFS()).of_fd((pid,), held)
        finally:
            os.kill(pid, 9)
    assert found is not None
    assert (found.fs_type, found.mount_point) == ("tmpfs", f"{tmp_path}/outside")
