"""FIFOs of real processes."""

from __future__ import annotations

import os
import sys

from ownmounts import own_mounts

from opskit.proc.fs import ProcFS
from opskit.proc.pipe_scan import PipeScanner


def test_a_fifo_of_a_detached_mount_is_not_looked_at(root_only, tmp_path):
    """It may be on a network file system whose server is gone: it is counted among what was skipped. A memfd is not."""
    there, held = tmp_path / "m", tmp_path / "held"
    code = (
        f"import os, time; os.mkfifo('{there}/x'); os.open('{there}/x', os.O_RDWR); os.memfd_create('x'); "
        f"os.mkfifo('{tmp_path}/y'); os.open('{tmp_path}/y', os.O_RDWR); os.mkdir('{held}'); time.sleep(60)"
    )
    script = (
        f'mkdir {there}; mount -t tmpfs none {there}; {sys.executable} -c "{code}" </dev/null >/dev/null 2>&1 & '
        f"while ! test -e {held}; do sleep 0.05; done; umount -l {there}; echo $! >{tmp_path}/pid"
    )
    with own_mounts(script):
        pid = int((tmp_path / "pid").read_text())
        try:
            scan = PipeScanner(ProcFS(), fifos=True).scan([pid])
            assert [*scan.fifo_paths.values()] == [os.fsencode(tmp_path / "y")]
            assert scan.remote_skipped == 1
        finally:
            os.kill(pid, 9)
