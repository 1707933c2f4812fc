"""Shells as in containers: root with fewer capabilities, root of a user namespace, unprivileged users."""

from __future__ import annotations

import subprocess
import sys

NOBODY = 65534
# The default capabilities of root in a container (Docker, containerd, CRI-O).
CONTAINER = (
    "chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap", "net_bind_service", "net_raw",
    "sys_chroot", "mknod", "audit_write", "setfcap",
)  # fmt: skip


def root_with(*capabilities: str) -> tuple[str, ...]:
    """The words before a command that restrict root to these capabilities."""
    return (
        "setpriv",
        "--inh-caps",
        "-all",
        "--bounding-set",
        ",".join(["-all", *(f"+{name}" for name in capabilities)]),
    )


CONTAINER_ROOT = root_with(*CONTAINER)
DEBUG_ROOT = root_with(*CONTAINER, "sys_ptrace")  # kubectl debug --profile=general, docker run --cap-add SYS_PTRACE
BARE_ROOT = root_with()
USER_NAMESPACE_ROOT = ("unshare", "--user", "--map-root-user")


def opskit_in(shell: tuple[str, ...], *words: object) -> subprocess.CompletedProcess[str]:
    """Run opskit behind these words."""
    done = subprocess.run(
        [*shell, sys.executable, "-m", "opskit", *map(str, words)],
        capture_output=True, text=True, check=False, cwd="/", timeout=120,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done
