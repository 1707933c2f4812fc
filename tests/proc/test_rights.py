"""The advice after a refusal, for each kind of user."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import sys

import pytest
from shells import BARE_ROOT, CONTAINER_ROOT, DEBUG_ROOT, USER_NAMESPACE_ROOT, root_with

from opskit.proc.fs import ProcFS
from opskit.proc.rights import (
    as_owner_or_root,
    how_to_be_allowed,
    missing,
    names_of,
    obstacles,
    read_rights,
)

NOBODY = 65534
FS = ProcFS()
PTRACE = "CAP_SYS_PTRACE"
KUBECTL = "kubectl debug --profile=general …"
HOST = "run opskit on the host, or in a container started with"


@pytest.fixture
def nobodys():
    """The pid of a process of nobody's."""
    process = subprocess.Popen(["sleep", "600"], user=NOBODY, group=NOBODY, extra_groups=[])
    yield process.pid
    process.kill()
    process.wait()


def advised(shell, capabilities, *words, pid=None):
    """The result of how_to_be_allowed() in another kind of shell."""
    code = (
        "import sys\nfrom opskit.proc.fs import ProcFS\nfrom opskit.proc.rights import how_to_be_allowed\n"
        "pid = int(sys.argv[1]) or None\nprint(how_to_be_allowed(ProcFS(), sys.argv[2], *sys.argv[3:], pid=pid))"
    )
    words = [sys.executable, "-c", code, str(pid or 0), capabilities, *map(str, words)]
    done = subprocess.run([*shell, *words], capture_output=True, text=True, check=False)
    if done.returncode and "unshare" in done.stderr:
        pytest.skip(f"user namespaces are not permitted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n")


def test_a_user_is_sent_to_root(as_user):
    """With the command to type, or without one."""
    assert as_user(NOBODY, lambda: how_to_be_allowed(FS, PTRACE, "opskit", "pipes", 42)) == (
        "run as root: sudo opskit pipes 42"
    )
    assert as_user(NOBODY, lambda: how_to_be_allowed(FS, PTRACE)) == "run as root"
    assert as_user(NOBODY, lambda: as_owner_or_root(FS, PTRACE, 1, 7)) == "sudo -u '#7' opskit …, or run as root"
    assert as_user(NOBODY, lambda: as_owner_or_root(FS, PTRACE, 1, 0)) == "run as root: sudo opskit …"
    assert as_user(NOBODY, lambda: as_owner_or_root(FS, PTRACE, 1, 7, 8)) == (
        "sudo -u '#7' -g '#8' opskit …, or run as root"
    )
    # What only the machine's root may do needs no capability, and is the same to a user.
    assert as_user(NOBODY, lambda: how_to_be_allowed(FS, "", "opskit", "dentry")) == "run as root: sudo opskit dentry"


def test_words_are_quoted(as_user):
    """The command is one that a shell takes word by word."""
    said = as_user(NOBODY, lambda: how_to_be_allowed(FS, PTRACE, "opskit", "x", "a b;c"))
    assert shlex.split(said.partition(": ")[2]) == ["sudo", "opskit", "x", "a b;c"]


def test_root_of_a_container_is_told_what_it_lacks(root_only):
    """Not `run as root`: the capability, and how a container gets it."""
    assert advised(CONTAINER_ROOT, PTRACE) == (
        f"root lacks CAP_SYS_PTRACE here; {HOST} {KUBECTL} or docker run --cap-add SYS_PTRACE …"
    )
    assert advised(CONTAINER_ROOT, "CAP_SYS_ADMIN") == (
        f"root lacks CAP_SYS_ADMIN here; {HOST} kubectl debug --profile=sysadmin … or docker run --cap-add SYS_ADMIN …"
    )
    assert advised(BARE_ROOT, "CAP_SETUID CAP_SETGID") == (
        f"root lacks CAP_SETUID and CAP_SETGID here; {HOST} {KUBECTL} or docker run --cap-add SETUID --cap-add SETGID …"
    )


def test_only_what_is_missing_is_named(root_only):
    """A stronger capability is enough."""
    assert "lacks CAP_SYS_PTRACE here" in advised(CONTAINER_ROOT, "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_SETUID")
    assert "lacks CAP_DAC_READ_SEARCH here" in advised(root_with("sys_ptrace"), "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH")


def test_the_processs_own_user_is_the_way_without_a_new_container(nobodys, root_only, as_user):
    """Root that lacks only CAP_SYS_PTRACE may become the process's user, whom the kernel lets look into it."""
    said = advised(CONTAINER_ROOT, PTRACE, "opskit", "pipes", nobodys, pid=nobodys)
    own = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups opskit pipes {nobodys}"
    assert said.startswith(f"root lacks CAP_SYS_PTRACE here; its own user may: {own}; or run opskit on the host")
    with pytest.raises(PermissionError):
        as_user(1, lambda: os.listdir(f"/proc/{nobodys}/fd"))
    before = shlex.split(own)[:4]
    listed = subprocess.run(
        [*CONTAINER_ROOT, *before, "ls", f"/proc/{nobodys}/fd"], capture_output=True, text=True, check=True
    )
    assert listed.stdout.split() == ["0", "1", "2"]


@pytest.mark.parametrize("shell", [BARE_ROOT, root_with("sys_chroot")], ids=["none", "no setuid"])
def test_the_own_user_is_no_way_for_who_cannot_become_it(nobodys, root_only, shell):
    """Without CAP_SETUID and CAP_SETGID the advice leaves it out."""
    assert "setpriv" not in advised(shell, PTRACE, "opskit", "pipes", nobodys, pid=nobodys)


def test_the_own_user_is_no_way_where_the_process_has_capabilities(root_only):
    """Root's own processes with more capabilities than ours are closed to root as well."""
    assert "setpriv" not in advised(CONTAINER_ROOT, PTRACE, "opskit", "pipes", os.getpid(), pid=os.getpid())


def test_a_user_whose_root_has_no_more_is_not_sent_to_sudo(root_only):
    """In a container, sudo gives the capabilities of the container's root."""
    code = "import os; os.setgroups([]); os.setresgid(*[65534] * 3); os.setresuid(*[65534] * 3)\n"
    program = f"{code}from opskit.proc.fs import ProcFS\nfrom opskit.proc.rights import how_to_be_allowed\n"
    program = (
        "import opskit.proc.rights\n" + program + "print(how_to_be_allowed(ProcFS(), 'CAP_SYS_PTRACE', 'opskit', 'x'))"
    )
    done = subprocess.run([*CONTAINER_ROOT, sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"even root lacks CAP_SYS_PTRACE here; {HOST} {KUBECTL}")
    assert "sudo" not in done.stdout


def test_a_user_who_can_become_nobody_else_is_not_sent_to_sudo(as_user):
    """no_new_privs, as Kubernetes sets it by allowPrivilegeEscalation: false."""

    def ask():
        assert ctypes.CDLL(None).prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
        return how_to_be_allowed(FS, PTRACE, "opskit", "pipes"), how_to_be_allowed(FS, "", "opskit", "dentry")

    for said in as_user(NOBODY, ask):
        assert said.startswith("sudo has no effect here (no_new_privs is set); run opskit on the host")
        assert "sudo opskit" not in said


def test_root_of_a_user_namespace_is_sent_out_of_it(nobodys, root_only):
    """It has every capability, and none of them is valid outside."""
    for pid in (None, nobodys):
        said = advised(USER_NAMESPACE_ROOT, PTRACE, "opskit", "pipes", pid=pid)
        assert said.startswith(
            "this is a user namespace (a rootless container?), whose root has no rights outside of it"
        )
        assert said.endswith("; run opskit as root on the host")
    assert "user namespace" in advised(USER_NAMESPACE_ROOT, "", "opskit", "dentry")


def test_full_root_is_not_told_to_become_root(root_only):
    """With the capability the advice names another cause."""
    for shell in ((), DEBUG_ROOT):
        said = advised(shell, PTRACE, "opskit", "pipes", 42, pid=os.getpid())
        assert said.startswith("refused although we have CAP_SYS_PTRACE: ")
        assert not {"sudo", "root", "kubectl"} & set(said.split())
    assert advised((), "").startswith("refused although we are root: ")


def test_a_security_module_is_named(tree):
    """The label under which a process runs, where it has one."""
    root = tree({"proc/42/attr/current": "docker-default (enforce)\n", "proc/43/attr/current": "unconfined\n"})
    fs = ProcFS(str(root / "proc"), str(root))
    [seen] = [line for line in obstacles(fs, 42) if "docker-default" in line]
    assert "docker-default (enforce)" in seen
    assert not any("43" in line for line in obstacles(fs, 43))


def test_our_own_rights_are_the_kernels(as_user):
    """Compared with capsh and id: nobody has none, and the bounding set is what root would have."""
    rights = as_user(NOBODY, read_rights)
    assert (rights.euid, rights.effective) == (NOBODY, 0)
    assert rights.bounding == read_rights().bounding
    assert names_of(0b11) == ["CAP_CHOWN", "CAP_DAC_OVERRIDE"]
    assert names_of(1 << 40 | 1 << 60) == ["CAP_CHECKPOINT_RESTORE", "capability 60"]
    assert missing(1 << 19, "CAP_SYS_PTRACE CAP_KILL") == ["CAP_KILL"]
