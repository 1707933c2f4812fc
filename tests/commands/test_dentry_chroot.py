"""`opskit dentry --culprit` where the root directory is not a mount point, and on kernels without detached mounts."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest
from hostcaches import needs_tracefs

# A chroot into a plain directory: everything of / is mounted below it, and it is no mount point itself.
CHROOT = """
set -e
mount -t tmpfs none "$1"
mkdir "$1/root"
for path in /*; do
    name=${path#/}
    if [ -L "$path" ]; then cp -a "$path" "$1/root/"
    elif [ -d "$path" ]; then mkdir "$1/root/$name"; mount --rbind "$path" "$1/root/$name"
    fi
done
root=$1; shift
exec chroot "$root/root" "$@"
"""
# Linux before 5.2 has no fsopen(2).
OLD_KERNEL = """
import ctypes, os, sys
class Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint))
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(Instruction)))
code = (Instruction * 4)(
    Instruction(0x20, 0, 0, 0), Instruction(0x15, 0, 1, 430), Instruction(0x06, 0, 0, 0x50000 | 38), Instruction(0x06, 0, 0, 0x7FFF0000)
)
libc = ctypes.CDLL(None)
assert libc.prctl(22, 2, ctypes.byref(Program(4, code)), 0, 0) == 0
os.execv(sys.executable, [sys.executable, "-m", "opskit", *sys.argv[1:]])
"""
CULPRIT = ("dentry", "--culprit", "0.2", "-f", "json")


@pytest.fixture(autouse=True)
def tracer(root_only, initial_pid_namespace):
    """Skip where the kernel's tracer is not ours to use."""
    needs_tracefs()


def run(*words, directory=None):
    """A command, in a chroot where a directory to build it in is given."""
    before = ["unshare", "--mount", "sh", "-c", CHROOT, "sh", str(directory)] if directory else []
    done = subprocess.run([*before, *words], capture_output=True, text=True, check=False, cwd="/", timeout=120)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def trees_mounts():
    """The mounts that every process sees: nothing may be added to them."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return file.read()


def test_the_culprit_is_named_in_a_chroot(tmp_path):
    """mount(MS_PRIVATE) of a root that is no mount point fails with EINVAL: nothing has to be mounted at a path at all."""
    before = trees_mounts()
    done = run(sys.executable, "-m", "opskit", *CULPRIT, directory=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"culprits"' in done.stdout
    assert trees_mounts() == before


def test_an_old_kernel_mounts_in_a_namespace_of_its_own():
    """Without fsopen(2) tracefs is mounted at its usual place, in a mount namespace of our own."""
    before = trees_mounts()
    done = run(sys.executable, "-c", OLD_KERNEL, *CULPRIT)
    assert done.returncode == 0, done.stderr
    assert trees_mounts() == before


def test_an_old_kernel_in_a_chroot_is_told_as_what_it_is(tmp_path):
    """Not as a capability that is missing."""
    done = run(sys.executable, "-c", OLD_KERNEL, *CULPRIT, directory=tmp_path)
    assert done.returncode == 2
    assert "the root directory here is not a mount point (a chroot)" in done.stderr
    assert "outside of the chroot" in done.stderr
    assert "CAP_" not in done.stderr


def test_a_detached_mount_is_seen_by_nobody_and_ends_with_its_fd():
    """A root of tracefs by an fd; EPERM without CAP_SYS_ADMIN, ENODEV for what this kernel has not."""
    code = (
        "import os, sys\nfrom opskit.proc.kernel.syscalls import mount_detached\n"
        "try:\n    fd = mount_detached(sys.argv[1])\nexcept OSError as error:\n    print(error.errno)\n    sys.exit()\n"
        "assert 'instances' in os.listdir(f'/proc/self/fd/{fd}'), os.listdir(f'/proc/self/fd/{fd}')\n"
        "assert not os.get_inheritable(fd)\n"
        "print('tracefs' in [line.split()[line.split().index('-') + 1] for line in open('/proc/self/mountinfo')])\n"
    )
    words = (sys.executable, "-c", code)
    here = run(*words, "tracefs").stdout
    assert here == f"{' - tracefs ' in trees_mounts()}\n"
    assert run("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin", *words, "tracefs").stdout == (
        f"{errno.EPERM}\n"
    )
    assert run(*words, "no-such-fs").stdout == f"{errno.ENODEV}\n"
