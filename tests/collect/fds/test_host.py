"""The machine's limits on open files: of processes, of users' inotify instances, watches and epolls, with real ones."""

from __future__ import annotations

import ctypes
import os
import select
import time

import pytest
from lesser import call
from users import reserved_user

from opskit.analysis.fds.host import judge_host
from opskit.collect.fds.host import collect_host
from opskit.host import Host
from opskit.proc import watches

# A user's process that makes inotify instances and epolls, in a user namespace of its own if asked to, and forks once.
HOLDER = """
import ctypes, os, select, sys, time
uid, instances, watched, epolls, polled, in_namespace = map(int, sys.argv[1:7])
libc = ctypes.CDLL(None, use_errno=True)
os.setgroups([]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: its files in /proc are its own again
if in_namespace:
    if libc.unshare(0x10000000):  # CLONE_NEWUSER
        print("no user namespaces"); sys.exit()
    for name, line in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {uid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(line)
for number in range(instances):
    fd = libc.inotify_init1(0)
    assert fd >= 0, ctypes.get_errno()
    for name in ("stat", "meminfo", "uptime", "loadavg", "version")[:watched]:
        assert libc.inotify_add_watch(fd, f"/proc/{name}".encode(), 2) > 0
pipes = [os.pipe() for _ in range(polled)]
kept = []
for number in range(epolls):
    kept.append(select.epoll())
    for read, _ in pipes:
        kept[-1].register(read)
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
print(child)
time.sleep(60)
"""
NEARLY_FULL = """
import os, resource, sys, time
held = [os.dup(0) for _ in range(int(sys.argv[2]) - len(os.listdir("/proc/self/fd")) + 1)]
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), 4096))
print("ready")
time.sleep(60)
"""


@pytest.fixture
def user(root_only):
    """A system user that no other test uses now."""
    with reserved_user() as entry:
        if entry is None:
            pytest.skip("no free system user")
        until = time.monotonic() + 10
        while any(_uid(name) == entry.pw_uid for name in os.listdir("/proc")) and time.monotonic() < until:
            time.sleep(0.05)  # the killed child of a test before
        yield entry


def _uid(pid):
    try:
        return os.stat(f"/proc/{pid}").st_uid if pid.isdigit() else None
    except FileNotFoundError:
        return None


def used(facts, kind, uid):
    return next((one for one in getattr(facts, kind) if one.uid == uid), None)


def test_users_watches(user, spawn):
    """Instances, watches and epoll watches of a user; those that a fork shares count once, as the kernel counts them."""
    process = spawn(HOLDER, user.pw_uid, 7, 5, 3, 4, 0)
    facts = collect_host(Host.at(None, None))
    found = {kind: used(facts, kind, user.pw_uid) for kind in ("inotify_instances", "inotify_watches", "epoll_watches")}
    assert {kind: one.used for kind, one in found.items()} == {
        "inotify_instances": 7, "inotify_watches": 35, "epoll_watches": 12,
    }  # fmt: skip
    assert [(pid, amount) for pid, _, amount in found["inotify_watches"].processes] == [(process.pid, 35)]
    assert found["inotify_instances"].name == user.pw_name


def test_the_kernel_counts_the_same(user):
    """At the limit that this finds, the kernel refuses the next instance: Too many open files."""
    limit = Host.at(None, None).sysctl("fs", "inotify", "max_user_instances")
    if limit is None or limit > 1000:
        pytest.skip("the limit is too high to reach")

    def fill():
        libc = ctypes.CDLL(None, use_errno=True)
        fds = []
        until = time.monotonic() + 10
        while (
            len(fds) < limit and time.monotonic() < until
        ):  # the kernel gives those of ended processes back with a delay
            while (fd := libc.inotify_init1(0)) >= 0:
                fds.append(fd)
        return len(fds), os.strerror(ctypes.get_errno()), collect_host(Host.at(None, None))

    made, error, facts = call(fill, uid=user.pw_uid)
    assert error == "Too many open files"
    one = used(facts, "inotify_instances", user.pw_uid)
    assert one.used == made == limit
    assert not facts.complete
    [finding] = [
        each
        for each in judge_host(facts).findings
        if each.code == "inotify-instances-nearly-used" and each.entity.id == user.pw_name
    ]
    assert finding.severity == "warning"
    assert f"at least {made:,} of {limit:,} inotify instances" in finding.summary
    assert "the next one fails (inotify_init: Too many open files)" in finding.summary
    assert finding.fix == f"sysctl -w fs.inotify.max_user_instances={limit * 2}"


def test_a_user_namespace_counts_for_who_made_it(user, spawn):
    """An instance of root in a container without root counts for the user who started it, at the machine's limit."""
    process = spawn(HOLDER, user.pw_uid, 4, 2, 1, 1, 1)
    if not process.line.isdigit():
        pytest.skip(process.line)
    facts = collect_host(Host.at(None, None))
    assert used(facts, "inotify_instances", user.pw_uid).used == 4
    assert used(facts, "inotify_watches", user.pw_uid).used == 8


def test_without_kcmp(user, spawn, monkeypatch):
    """Where open files cannot be compared, equal ones count once and the counts are lower bounds."""
    monkeypatch.setattr(watches.syscalls, "_KCMP", {})
    spawn(HOLDER, user.pw_uid, 2, 1, 0, 0, 0)
    facts = collect_host(Host.at(None, None))
    assert used(facts, "inotify_instances", user.pw_uid).used == 2
    assert not facts.complete
    assert any("could not be told apart" in line for line in facts.missing)


def test_processes_near_their_limit(root_only, spawn):
    """90 % is a warning with the command that raises the limit, none left an error; half of it, and a sandbox's, are nothing."""
    some, none, half, sandbox = (spawn(NEARLY_FULL, *numbers) for numbers in ((100, 90), (64, 64), (100, 50), (8, 8)))
    facts = collect_host(Host.at(None, None))
    near = {one.process.pid: one for one in facts.nearest}
    assert (near[some.pid].open.taken, near[some.pid].open.limit.soft) == (90, 100)
    found = {each.entity.id: each for each in judge_host(facts).findings if each.code == "rlimit-nearly-used"}
    assert found[some.pid].severity == "warning"
    assert "10 more files can be opened, 90 of 100 open files are used" in found[some.pid].summary
    assert found[some.pid].fix == f"prlimit --pid {some.pid} --nofile=200:4096"
    assert found[none.pid].severity == "error"
    assert not {half.pid, sandbox.pid} & {*found}
    shares = [one.open.taken / max(one.open.limit.soft, 1) for one in facts.nearest]
    assert shares == sorted(shares, reverse=True)


def test_a_thread_with_a_table_of_its_own(root_only, spawn):
    """Instances of a process whose main thread has exited are found in the table of a thread."""
    code = """
import ctypes, threading, time
libc = ctypes.CDLL(None)
libc.inotify_init1(0)
def run():
    time.sleep(0.2)
    print("ready")
    time.sleep(60)
threading.Thread(target=run).start()
libc.pthread_exit(None)
"""
    process = spawn(code)
    facts = collect_host(Host.at(None, None))
    tids = {int(name) for name in os.listdir(f"/proc/{process.pid}/task")}
    assert tids & {pid for user in facts.inotify_instances for pid, *_ in user.processes}


def test_open_files_of_the_machine():
    """What the kernel counts, and its limits."""
    facts = collect_host(Host.at(None, None))
    used_files, most = facts.file_nr
    assert 0 < used_files <= most
    with open("/proc/sys/fs/epoll/max_user_watches", encoding="ascii") as file:
        assert facts.max_epoll == int(file.read())


def test_a_large_epoll(root_only):
    """The watches of one epoll by the thousand."""
    pipes = [os.pipe() for _ in range(200)]
    try:
        with select.epoll() as epoll:
            for each in pipes:
                epoll.register(each[0])
                epoll.register(each[1])
            facts = collect_host(Host.at(None, None))
            ours = [amount for user in facts.epoll_watches for pid, _, amount in user.processes if pid == os.getpid()]
            assert ours == [400]
    finally:
        for fd in (fd for pair in pipes for fd in pair):
            os.close(fd)
