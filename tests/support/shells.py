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


def opskit_as(uid: int, *words: object, draws: bool = False) -> list[str]:
    """The words of opskit as an unprivileged user. It imports all modules first: only root may be able to read this Python.

    The process of a former root is closed even to its own user. prctl opens it, as after an ordinary login.
    """
    unwanted = (
        ("opskit.__main__",) if draws else ("opskit.__main__", "opskit.render.pictures.plot")
    )  # matplotlib takes long
    code = (
        "import ctypes, difflib, grp, json, os, shlex, sys, pkgutil, importlib, opskit, pwd, tempfile\n"
        "for m in pkgutil.walk_packages(opskit.__path__, 'opskit.'):\n"
        f"    if m.name not in {unwanted!r}: importlib.import_module(m.name)\n"
        f"os.setgroups([]); os.setgid({uid}); os.setuid({uid})\n"
        "ctypes.CDLL(None).prctl(4, 1)\n"  # PR_SET_DUMPABLE
        "from opskit import cli\n"
        "sys.exit(cli.run(sys.argv[1:]))"
    )
    return [sys.executable, "-c", code, *map(str, words)]


def opskit_in(shell: tuple[str, ...], *words: object) -> subprocess.CompletedProcess[str]:
    """Run opskit behind these words."""
    done = subprocess.run(
        [*shell, sys.executable, "-m", "opskit", *map(str, words)],
        capture_output=True, text=True, check=False, cwd="/", timeout=120,
    )  # fmt: skip
    assert "Traceback" not in done.stderr, done.stderr
    return done
