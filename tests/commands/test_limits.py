"""opskit limits on captured trees: what this machine cannot do, and every bad input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from terminal import on_terminal
from trees import Link, steady

GIB = 1 << 30
LABELS = {
    "CPU": ("cpu time", "seconds"),
    "FSIZE": ("file size", "bytes"),
    "DATA": ("data size", "bytes"),
    "STACK": ("stack size", "bytes"),
    "CORE": ("core file size", "bytes"),
    "NPROC": ("processes", "processes"),
    "NOFILE": ("open files", "files"),
    "MEMLOCK": ("locked memory", "bytes"),
    "AS": ("address space", "bytes"),
    "SIGPENDING": ("pending signals", "signals"),
}
USUAL = {"STACK": 8 << 20, "CORE": 0, "NPROC": 96000, "NOFILE": 1024, "MEMLOCK": 8 << 20, "SIGPENDING": 96000}
MAPS = """\
55f0c8a00000-55f0c8a02000 r--p 00000000 fe:00 1310                       /usr/bin/app
7f1200000000-7f1200200000 r-xp 00000000 fe:00 1311                       /usr/lib/libc.so.6
7ffd3c1e0000-7ffd3c201000 rw-p 00000000 00:00 0                          [stack]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
"""
V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
V1_PIDS = "35 31 0:32 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"


def limits_text(**soft):
    """A /proc/PID/limits with these soft limits, the usual ones otherwise."""
    lines = [f"{'Limit':<25} {'Soft Limit':<20} {'Hard Limit':<20} {'Units':<10}"]
    for name, (label, unit) in LABELS.items():
        value = {**USUAL, **soft}.get(name, "unlimited")
        lines.append(f"{'Max ' + label:<25} {value!s:<20} {value!s:<20} {unit:<10}")
    return "\n".join(lines) + "\n"


def status_text(name="app", pid=4242, ppid=1, uid=1001, gid=1001, threads=1, **fields):
    """A /proc/PID/status."""
    known = {
        "Name": name, "PPid": ppid, "Uid": f"{uid}\t{uid}\t{uid}\t{uid}", "Gid": f"{gid}\t{gid}\t{gid}\t{gid}", "Groups": gid,
        "NSpid": pid, "VmSize": "20000 kB", "VmLck": "0 kB", "VmData": "4000 kB", "VmStk": "132 kB", "Threads": threads,
        "SigQ": "0/96000", "CapEff": "0000000000000000", "Seccomp": 0, "Cpus_allowed": "3",
    }  # fmt: skip
    return "".join(f"{key}:\t{value}\n" for key, value in {**known, **fields}.items())


def stat_text(pid, name, ppid=1, state="S", flags=0):
    """A /proc/PID/stat."""
    return f"{pid} ({name}) {state} {ppid} {pid} {pid} 0 -1 {flags} 0 0 0 0 310 45 0 0 20 0 1 0 8675309 0 0\n"


def machine(**changes):
    """The files of a quiet machine with one process, 4242, of app (uid 1001); `changes` by path, None takes one away."""
    files = {
        "proc/loadavg": "0.20 0.18 0.12 1/400 5000\n",
        "proc/meminfo": f"MemTotal: {24 * GIB // 1024} kB\nSwapTotal: 0 kB\nCommitLimit: 1000000 kB\nCommitted_AS: 900000 kB\n",
        "proc/sys/kernel/threads-max": "192000\n",
        "proc/sys/kernel/pid_max": "4194304\n",
        "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
        "proc/sys/kernel/hostname": "web1\n",
        "proc/sys/vm/max_map_count": "65530\n",
        "proc/sys/vm/overcommit_memory": "0\n",
        "proc/1/status": status_text("systemd", 1, 0, 0, 0),
        "proc/1/stat": stat_text(1, "systemd", 0),
        "proc/1/limits": limits_text(),
        "proc/1/comm": "systemd\n",
        "proc/1/mountinfo": V2,
        "proc/1/cgroup": "0::/init.scope\n",
        "proc/1/ns/pid": Link("pid:[4026531836]"),
        "proc/4242/status": status_text(),
        "proc/4242/stat": stat_text(4242, "app"),
        "proc/4242/comm": "app\n",
        "proc/4242/limits": limits_text(),
        "proc/4242/maps": MAPS,
        "proc/4242/environ": "",
        "proc/4242/cmdline": "app\0",
        "proc/4242/cgroup": "0::/system.slice/app.service\n",
        "proc/4242/ns/user": Link("user:[4026531837]"),
        "proc/4242/fd/0": Link("/dev/null"),
        "proc/4242/fd/1": Link("/var/log/app.log"),
        "proc/4242/fdinfo/1": "pos:\t900\nflags:\t0100001\n",
        "sys/devices/system/cpu/online": "0-1\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory pids\n",
        "sys/fs/cgroup/cgroup.procs": "",
        "sys/fs/cgroup/system.slice/cgroup.type": "domain\n",
        "sys/fs/cgroup/system.slice/pids.max": "max\n",
        "sys/fs/cgroup/system.slice/pids.current": "100\n",
        "sys/fs/cgroup/system.slice/memory.max": "max\n",
        "sys/fs/cgroup/system.slice/memory.current": "100\n",
        "sys/fs/cgroup/system.slice/app.service/cgroup.type": "domain\n",
        "sys/fs/cgroup/system.slice/app.service/cgroup.procs": "4242\n",
        "sys/fs/cgroup/system.slice/app.service/pids.max": "512\n",
        "sys/fs/cgroup/system.slice/app.service/pids.current": "394\n",
        "sys/fs/cgroup/system.slice/app.service/memory.max": "max\n",
        "sys/fs/cgroup/system.slice/app.service/memory.current": "100\n",
        "etc/passwd": "root:x:0:0::/root:/bin/sh\napp:x:1001:1001::/:/bin/sh\n",
        "etc/group": "root:x:0:\napp:x:1001:\nweb:x:2001:app\n",
        "etc/os-release": "ID=debian\n",
    }
    files.update(changes)
    return {name: content for name, content in files.items() if content is not None}


@pytest.fixture
def look(inprocess, tree, tmp_path):
    """Run `opskit limits 4242` on a machine; gives the JSON object, with the exit code as "code"."""

    def run(*options, pid=4242, **changes):
        for left in tmp_path.iterdir():
            shutil.rmtree(left)
        root = tree(machine(**changes))
        done = inprocess("limits", *([] if pid is None else [pid]), "--root", root, "-f", "json", *options)
        assert done.out, done.err
        return {**json.loads(done.out), "code": done.code}

    return run


def row(document, name, cgroup=None):
    """The first row of a limit."""
    return next(r for r in document["limits"] if r["name"] == name and cgroup in (None, r["cgroup"]))


SESSION = {"proc/4242/cgroup": "0::/user.slice/user-1001.slice/session-3.scope\n"}
BLOG = {
    **SESSION,
    "proc/4242/limits": limits_text(STACK=17179869184 * 1024),
    "etc/security/limits.conf": "#\n" * 50 + "* - stack 17179869184\n",
}


def test_the_verdict_of_a_cgroup_that_binds(inprocess, tree):
    """The sentence of the manual, the line about open files, and who set it."""
    root = tree(
        machine(
            **{"etc/systemd/system/app.service": "[Service]\nExecStart=/usr/bin/app\nTasksMax=512\nLimitNPROC=96000\n"}
        )
    )
    assert len(inprocess("limits", 4242, "--root", root).out.splitlines()) == 2  # nothing is wrong: no table
    done = inprocess("limits", 4242, "-v", "--root", root)
    lines = done.out.splitlines()
    assert done.code == 0
    assert lines[0] == (
        "4242 (app, user app) can start 118 more threads; then pids.max of /system.slice/app.service (512, 394 in use) stops it."
    )
    assert lines[1] == "open files: 2 of 1,024 (RLIMIT_NOFILE), 0.2 %"
    assert lines[2].split()[:4] == ["LIMIT", "VALUE", "IN_USE", "THREADS_LEFT"]
    assert lines[3].split()[:4] == ["pids.max", "512", "394", "118"]
    document = json.loads(inprocess("limits", 4242, "--root", root, "-f", "json").out)
    assert row(document, "pids.max")["set_by"] == "/etc/systemd/system/app.service line 3: `TasksMax=512`"
    assert row(document, "pids.max")["fix"] == "systemctl set-property app.service TasksMax=1024"
    assert row(document, "RLIMIT_NPROC")["set_by"] == "/etc/systemd/system/app.service line 4: `LimitNPROC=96000`"


def test_the_stack_that_a_line_of_limits_conf_made(inprocess, tree):
    """16 TiB where 16 GB were meant: the line is named, with its unit, and what to type."""
    done = inprocess("limits", 4242, "--root", tree(machine(**BLOG)))
    assert done.code == 1
    assert done.out.startswith(
        "4242 (app, user app) can start 0 more threads: each needs a stack of 16 TiB (RLIMIT_STACK), more than RAM + swap "
        "(24 GiB). Set by /etc/security/limits.conf line 51: `* - stack 17179869184` (the unit there is KB).\n"
    )
    assert "\n  fix: ulimit -s 8192, then start it anew; for good: /etc/security/limits.conf line 51" in done.out
    assert "\n  next: opskit limits 4242 --probe\n" in done.out


@pytest.mark.parametrize("format_", ["text", "table", "markdown", "json"])
def test_whole_outputs(inprocess, tree, golden, format_):
    """The blog's machine in all four formats."""
    root = tree(machine(**BLOG))
    done = inprocess("limits", 4242, "--all", "--root", root, "-f", format_)
    golden(f"limits-captured.{format_}", steady(done.out))


def test_json_has_the_keys_that_are_documented(look):
    """threads_left, binding, and a row a limit."""
    document = look()
    assert document["code"] == 0
    assert (document["threads_left"], document["binding"]) == (118, "pids.max")
    for found in document["limits"]:
        assert list(found)[:7] == ["name", "value", "in_use", "threads_left", "source", "set_by", "fix"]
    assert row(document, "RLIMIT_AS")["value"] == "unlimited"
    assert row(document, "RLIMIT_AS")["threads_left"] is None


def test_findings_have_stable_codes(look):
    """What was found, with evidence and fix; none where there is headroom."""
    assert look()["findings"] == []
    [stack] = look(**BLOG)["findings"]
    assert (stack["code"], stack["severity"]) == ("stack-above-ram", "error")
    assert stack["fix"].startswith("ulimit -s 8192")
    current = "sys/fs/cgroup/system.slice/app.service/pids.current"
    [full] = look(**{current: "512\n"})["findings"]
    assert full["code"] == "threads-none-left"
    assert "pids.max of /system.slice/app.service" in full["summary"]
    [nearly] = look(**{current: "500\n"})["findings"]
    assert (nearly["code"], nearly["severity"]) == ("threads-nearly-none-left", "warning")
    [used] = look("--all", **{"proc/4242/limits": limits_text(NOFILE=2)})["findings"]
    assert (used["code"], used["subject"]) == ("rlimit-nearly-used", "4242")


def test_less_than_a_tenth_is_a_finding(look):
    """Exit code 1 below 10 % of the binding limit's value, and at 0; 0 at 10 %."""
    current = "sys/fs/cgroup/system.slice/app.service/pids.current"
    maximum = {"sys/fs/cgroup/system.slice/app.service/pids.max": "500\n"}
    assert look(**{current: "450\n"}, **maximum)["code"] == 0
    assert look(**{current: "451\n"}, **maximum)["code"] == 1
    full = look(**{current: "520\n"}, **maximum)
    assert (full["code"], full["threads_left"]) == (1, 0)


def test_a_full_heap_is_no_finding_about_threads(look):
    """A JVM uses 95 % of its memory limit: there is room for 4,654 threads, and a warning below 100."""
    service = "sys/fs/cgroup/system.slice/app.service"
    files = {f"{service}/pids.max": "max\n", f"{service}/memory.max": f"{4 * GIB}\n"}
    document = look(**files, **{f"{service}/memory.current": f"{4 * GIB - (200 << 20)}\n"})
    assert (document["binding"], document["threads_left"], document["code"]) == ("memory.max", 4654, 0)
    document = look(**files, **{f"{service}/memory.current": f"{4 * GIB - (4 << 20)}\n"})
    assert ([each["code"] for each in document["findings"]], document["code"]) == (["threads-nearly-none-left"], 1)


def test_a_full_address_space_is_named_with_its_stacks(look):
    """As many stacks as the addresses hold: the use of RLIMIT_STACK itself is unknown, and is not printed as None."""
    text = status_text(VmSize=f"{(1 << 47) * 995 // 1000 >> 10} kB")
    changes = {"proc/4242/limits": limits_text(STACK=16 * GIB), "proc/4242/status": text}
    [finding] = look("--stack", "16G", **changes)["findings"]
    assert finding["code"] == "threads-nearly-none-left"
    assert finding["summary"].endswith(" more threads can start until the address space is used up")
    assert "None" not in finding["evidence"]


def test_a_limit_that_does_not_hold_is_no_finding(look):
    """Root's daemons lock more than RLIMIT_MEMLOCK with CAP_IPC_LOCK."""
    limits = {"proc/4242/limits": limits_text(MEMLOCK=64 << 10)}
    over = {"VmLck": "60 kB", "VmSize": "20000 kB"}
    assert look("--all", **limits, **{"proc/4242/status": status_text(**over)})["code"] == 1
    exempt = look("--all", **limits, **{"proc/4242/status": status_text(CapEff="0000000000004000", **over)})
    assert (exempt["findings"], exempt["code"]) == ([], 0)


def test_v1_v2_and_hybrid(look):
    """The controller's own hierarchy is found: v1's where it is in v1, v2's otherwise."""
    v1 = {
        "proc/1/mountinfo": V1_PIDS,
        "proc/4242/cgroup": "8:pids:/a/b\n1:name=systemd:/system.slice/app.service\n",
        "sys/fs/cgroup/pids/release_agent": "",
        "sys/fs/cgroup/pids/a/pids.max": "40\n",
        "sys/fs/cgroup/pids/a/pids.current": "30\n",
        "sys/fs/cgroup/pids/a/b/pids.max": "max\n",
        "sys/fs/cgroup/pids/a/b/pids.current": "3\n",
    }
    assert row(look(**v1), "pids.max", "/a")["threads_left"] == 10
    hybrid = v1 | {
        "proc/1/mountinfo": V1_PIDS + "36 31 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        "proc/4242/cgroup": "8:pids:/a/b\n0::/system.slice/app.service\n",
        "sys/fs/cgroup/unified/cgroup.controllers": "memory\n",
        "sys/fs/cgroup/unified/system.slice/app.service/memory.max": "1073741824\n",
        "sys/fs/cgroup/unified/system.slice/app.service/memory.current": "1073741000\n",
        "sys/fs/cgroup/unified/system.slice/app.service/memory.stat": "inactive_file 104857600\n",
    }
    document = look(**hybrid)
    assert document["binding"] == "pids.max"
    assert row(document, "memory.max")["cgroup"] == "/system.slice/app.service"
    assert row(document, "memory.max")["threads_left"] == (1073741824 - 1073741000 + 104857600) // (44 << 10)


def test_above_a_cgroup_namespace_is_unknown_with_the_reason(look):
    """In a container the top of the tree has a type: what is above it cannot be seen."""
    document = look(
        **{
            "proc/4242/cgroup": "0::/\n",
            "sys/fs/cgroup/cgroup.type": "domain\n",
            "sys/fs/cgroup/pids.max": "200\n",
            "sys/fs/cgroup/pids.current": "150\n",
        }
    )
    known, unknown = [found for found in document["limits"] if found["name"] == "pids.max"]
    assert (known["threads_left"], document["binding"]) == (50, "pids.max")
    assert (unknown["state"], unknown["threads_left"], unknown["value"]) == ("unknown", None, None)
    assert "above /, the root of the cgroup namespace" in unknown["note"]
    assert any("is unknown and may stop it sooner" in line for line in document["verdict"])


def test_a_container_without_proc_sys(look):
    """What cannot be read is unknown, not 0 and not unlimited; the rest is shown."""
    gone = dict.fromkeys(
        [f"proc/sys/{name}" for name in (
            "kernel/threads-max", "kernel/pid_max", "kernel/osrelease", "kernel/hostname", "vm/max_map_count", "vm/overcommit_memory"
        )]
    )  # fmt: skip
    document = look(**gone)
    assert document["binding"] == "pids.max"
    for name in ("kernel.threads-max", "kernel.pid_max", "vm.max_map_count", "vm.overcommit_memory"):
        assert (row(document, name)["state"], row(document, name)["value"]) == ("unknown", None)


def test_an_unknown_headroom_is_exit_2(look):
    """No limit could be read at all."""
    gone = [
        name
        for name in machine()
        if name.startswith(("proc/sys", "sys/", "proc/1/mountinfo", "proc/loadavg", "proc/meminfo"))
    ]
    document = look(**dict.fromkeys([*gone, "proc/4242/limits", "proc/4242/maps", "proc/4242/cgroup"]))
    assert (document["code"], document["threads_left"], document["binding"]) == (2, None, None)
    assert "how many more threads can start is unknown" in document["verdict"][0]


def test_overcommit_2_counts_every_stack(look):
    """(CommitLimit - Committed_AS) / stack, less what is kept for root and for a user to recover with."""
    document = look(
        **{
            "proc/sys/vm/overcommit_memory": "2\n",
            "proc/sys/vm/admin_reserve_kbytes": "8192\n",
            "proc/sys/vm/user_reserve_kbytes": "131072\n",
        }
    )
    left = (100_000 * 1024 - 8192 * 1024 - 20000 * 1024 // 32) // (8 << 20)
    assert (document["binding"], document["threads_left"]) == ("vm.overcommit_memory", left)


def test_a_large_stack_is_refused_in_mode_0_alone(look):
    """Mode 1 refuses nothing; in mode 2 CommitLimit does."""
    large = {"proc/4242/limits": limits_text(STACK=64 * GIB)}
    assert look(**large)["threads_left"] == 0
    assert row(look(**large, **{"proc/sys/vm/overcommit_memory": "1\n"}), "RLIMIT_STACK")["threads_left"] == 2047
    assert look("--stack", "64G")["threads_left"] == 0


def test_unlimited_stack_means_2_mib(look):
    """It is glibc's own default."""
    document = look(**{"proc/4242/limits": limits_text(STACK="unlimited")})
    assert document["stack_bytes"] == 2 << 20
    assert row(document, "RLIMIT_STACK")["value"] == "unlimited"


@pytest.mark.parametrize(
    ("options", "environ", "stack", "words"),
    [
        ("", "", 1 << 20, "the JVM's default of 1 MiB"),
        ("-Xss512k", "", 512 << 10, "-Xss512k"),
        ("-Xss512k -XX:ThreadStackSize=2048", "", 2 << 20, "-XX:ThreadStackSize=2048"),
        ("-cp x Main -Xss9m", "JAVA_TOOL_OPTIONS=-Xss4m", 4 << 20, "-Xss4m"),
        ("-Xss1m Main", "_JAVA_OPTIONS=-Xss256k", 256 << 10, "-Xss256k"),
    ],
)
def test_a_jvm_does_not_follow_rlimit_stack(look, options, environ, stack, words):
    """-Xss, its flag, the variables in the JVM's order, the default; and it says so."""
    document = look(
        **{
            "proc/4242/maps": MAPS + "7fffffff0000-7fffffff1000 r-xp 0 fe:00 9 /jdk/lib/server/libjvm.so\n",
            "proc/4242/cmdline": "\0".join(["java", *options.split()]) + "\0",
            "proc/4242/environ": environ + "\0",
            "proc/4242/limits": limits_text(STACK=64 * GIB),
        }
    )
    assert document["stack_bytes"] == stack
    assert document["threads_left"] == 118
    note = row(document, "RLIMIT_STACK")["note"]
    assert "a JVM's threads do not follow it" in note
    assert words in note
    assert "compiler threads have 1 MiB of their own" in note


def test_root_is_exempt_from_nproc_and_so_are_two_capabilities(look):
    """kernel/fork.c: root of the initial namespace, CAP_SYS_RESOURCE, CAP_SYS_ADMIN; the row says why."""
    for fields in ({"uid": 0}, {"CapEff": f"{1 << 24:016x}"}, {"CapEff": f"{1 << 21:016x}"}):
        found = row(
            look(**{"proc/4242/status": status_text(**fields), "proc/4242/limits": limits_text(NPROC=1)}),
            "RLIMIT_NPROC",
        )
        assert (found["state"], found["threads_left"]) == ("exempt", None)
        assert "does not hold for" in found["note"]
    bound = look(**{"proc/4242/limits": limits_text(NPROC=10)})
    assert (bound["binding"], bound["threads_left"]) == ("RLIMIT_NPROC", 9)
    assert row(bound, "RLIMIT_NPROC")["in_use"] == 1


def test_in_a_user_namespace_capabilities_do_not_help(look):
    """Root there is an ordinary user of the host; the namespace above has a limit too, which a captured tree lacks."""
    document = look(
        **{
            "proc/4242/ns/user": Link("user:[4026532999]"),
            "proc/4242/status": status_text(CapEff="000001ffffffffff"),
            "proc/4242/limits": limits_text(NPROC=10),
        }
    )
    assert (document["binding"], document["threads_left"]) == ("RLIMIT_NPROC", 9)
    above = [found for found in document["limits"] if found["name"] == "RLIMIT_NPROC"][1]
    assert above["state"] == "unknown"


def test_the_processes_of_a_uid_count_together(look):
    """Threads of the same real uid, in the same user namespace."""
    others = {}
    for pid, uid, namespace in ((500, 1001, 4026531837), (501, 1001, 4026532999), (502, 7, 4026531837)):
        others |= {
            f"proc/{pid}/status": status_text("x", pid, uid=uid, threads=20),
            f"proc/{pid}/ns/user": Link(f"user:[{namespace}]"),
        }
    document = look(**others, **{"proc/4242/limits": limits_text(NPROC=100)})
    assert row(document, "RLIMIT_NPROC")["in_use"] == 21
    old = look(**others, **{"proc/4242/limits": limits_text(NPROC=100), "proc/sys/kernel/osrelease": "5.10.0\n"})
    assert row(old, "RLIMIT_NPROC")["in_use"] == 41, "before Linux 5.14 namespaces did not count"


def test_locked_memory_without_a_sign_of_mlockall_is_unknown(look):
    """A buffer may be locked, or all new memory: the number is in the note, and does not bind."""
    smaps = "7f1200000000-7f1200021000 rw-p 00000000 00:00 0\nVmFlags: rd wr lo\n"
    document = look(**{"proc/4242/status": status_text(VmLck="132 kB"), "proc/4242/smaps": smaps})
    found = row(document, "RLIMIT_MEMLOCK")
    assert (found["state"], found["threads_left"], document["binding"]) == ("unknown", None, "pids.max")
    locked = smaps.replace("rw-p", "---p")
    document = look("--stack", "128K", **{"proc/4242/status": status_text(VmLck="132 kB"), "proc/4242/smaps": locked})
    assert (document["binding"], document["threads_left"]) == ("RLIMIT_MEMLOCK", (8192 - 132) // 132)


def test_inside_a_pid_namespace_numbers_are_bounds(look):
    """Others of the same uid, and the ids of the namespaces above, cannot be seen from there."""
    document = look(**{"proc/1/ns/pid": Link("pid:[4026532777]"), "proc/4242/limits": limits_text(NPROC=100)})
    assert row(document, "RLIMIT_NPROC")["note"].startswith("at most: threads of the same uid outside")
    assert row(document, "kernel.pid_max")["note"].startswith("at most: the pid namespaces above")
    assert row(document, "kernel.pid_max")["in_use"] == 2


def test_pid_max_counts_free_ids(look):
    """Ids below 300 are given out only until the first wrap."""
    small = {"proc/sys/kernel/pid_max": "1000\n", **SESSION}
    wrapped = look(**small, **{"proc/loadavg": "0 0 0 1/2 5000\n"})
    assert (wrapped["binding"], wrapped["threads_left"]) == ("kernel.pid_max", 1000 - 300 - 1)
    fresh = look(**small, **{"proc/loadavg": "0 0 0 1/2 100\n"})
    assert fresh["threads_left"] == 1000 - 300 - 1 + 199


def test_a_copy_of_some_processes_counts_those_that_it_lacks(look):
    """400 tasks ran, two were copied: the others have ids too, and may be of the same user."""
    document = look(**{"proc/sys/kernel/pid_max": "1000\n", "proc/loadavg": "0 0 0 1/400 5000\n", **SESSION})
    assert row(document, "kernel.pid_max")["threads_left"] == 1000 - 300 - 400
    assert row(document, "RLIMIT_NPROC")["note"].startswith("at most: some processes are hidden")


def test_the_fix_changes_the_line_that_set_it_or_adds_one_for_the_user(look):
    """A line for the user beats those for groups and for all; a service has its unit."""
    small = {"proc/4242/limits": limits_text(NPROC=50)}
    line = {"etc/security/limits.d/90.conf": "\n@web soft nproc 50\n"}
    assert (
        "/etc/security/limits.d/90.conf line 2: `@web soft nproc 100`"
        in row(look(**small, **line, **SESSION), "RLIMIT_NPROC")["fix"]
    )
    assert "/etc/security/limits.conf: `app - nproc 100`" in row(look(**small, **SESSION), "RLIMIT_NPROC")["fix"]
    assert "systemctl edit app.service: [Service] LimitNPROC=100" in row(look(**small), "RLIMIT_NPROC")["fix"]


def test_who_set_it_several_candidates_are_all_named(look):
    """limits.conf gives the value, but the parent has another: both may have set it."""
    document = look(
        **SESSION,
        **{
            "etc/security/limits.conf": "app soft nproc 50\n",
            "proc/4242/limits": limits_text(NPROC=50),
            "proc/4242/status": status_text(ppid=600),
            "proc/600/status": status_text("bash", 600),
            "proc/600/comm": "bash\n",
            "proc/600/limits": limits_text(NPROC=70),
        },
    )
    assert row(document, "RLIMIT_NPROC")["set_by"] == (
        "/etc/security/limits.conf line 1: `app soft nproc 50`; or the process itself or prlimit (600 (bash) above has 70)"
    )


def test_who_set_it_the_process_on_the_way_up_that_first_has_it(look):
    """No file has the value: the ancestor where it begins."""
    document = look(
        **SESSION,
        **{
            "proc/4242/limits": limits_text(NPROC=50),
            "proc/4242/status": status_text(ppid=600),
            "proc/600/status": status_text("bash", 600, ppid=500),
            "proc/600/comm": "bash\n",
            "proc/600/limits": limits_text(NPROC=50),
            "proc/500/status": status_text("sshd", 500),
            "proc/500/comm": "sshd\n",
            "proc/500/limits": limits_text(),
        },
    )
    assert row(document, "RLIMIT_NPROC")["set_by"] == "its parent 600 (bash) (500 (sshd) above has 96000)"


def test_a_service_does_not_read_limits_conf(look):
    """The same value in limits.conf is no candidate for a process of a service."""
    line = {"etc/security/limits.conf": "* - nproc 50\n", "proc/4242/limits": limits_text(NPROC=50)}
    assert "limits.conf" not in row(look(**line), "RLIMIT_NPROC")["set_by"]
    assert "limits.conf line 1" in row(look(**line, **SESSION), "RLIMIT_NPROC")["set_by"]


def test_a_service_of_a_users_own_systemd(look):
    """Its rlimits are those of a PAM session; its cgroup is changed with its user's systemctl --user, the one above without."""
    place = "user.slice/user-1001.slice/user@1001.service"
    below = f"{place}/app.slice/web.service"
    changes = {
        "proc/4242/cgroup": f"0::/{below}\n",
        "etc/security/limits.conf": "* - nproc 50\n",
        "proc/4242/limits": limits_text(NPROC=50),
        f"sys/fs/cgroup/{below}/cgroup.procs": "4242\n",
    }
    for folder in (below, place):
        changes[f"sys/fs/cgroup/{folder}/cgroup.type"] = "domain\n"
        changes[f"sys/fs/cgroup/{folder}/pids.max"] = "40\n"
        changes[f"sys/fs/cgroup/{folder}/pids.current"] = "4\n"
    document = look(**changes)
    assert "limits.conf line 1" in row(document, "RLIMIT_NPROC")["set_by"]
    assert "limits.conf line 1" in row(document, "RLIMIT_NPROC")["fix"]
    assert row(document, "pids.max", f"/{below}")["fix"] == (
        "sudo -u '#1001' XDG_RUNTIME_DIR=/run/user/1001 systemctl --user set-property web.service TasksMax=80"
    )
    assert row(document, "pids.max", f"/{place}")["fix"] == "systemctl set-property user@1001.service TasksMax=80"


def test_sysctl_d_is_named_by_file_and_line(look):
    """The last file by name wins, /etc hides /usr/lib; a value that is no longer in force is marked."""
    files = {
        "usr/lib/sysctl.d/50-a.conf": "kernel.threads-max = 1\n",
        "etc/sysctl.d/60-b.conf": "# ours\nkernel/threads-max=500\n",
        "proc/sys/kernel/threads-max": "500\n",
    }
    document = look(**files)
    assert (document["binding"], document["threads_left"]) == ("kernel.threads-max", 100)
    assert row(document, "kernel.threads-max")["set_by"] == "/etc/sysctl.d/60-b.conf line 2: `kernel/threads-max=500`"
    changed = look(**files | {"proc/sys/kernel/threads-max": "600\n"})
    assert row(changed, "kernel.threads-max")["set_by"].startswith(
        "sysctl -w or a program, since boot (/etc/sysctl.d/60-b.conf"
    )


def test_an_unreadable_file_of_limits_d_is_named_and_the_rest_goes_on(inprocess, tree):
    """A file that cannot be read: a note, and the line of the other file is still found."""
    files = machine(
        **SESSION, **{"etc/security/limits.d/20-b.conf": "app - nproc 50\n", "proc/4242/limits": limits_text(NPROC=50)}
    )
    files["etc/security/limits.d/10-a.conf/x"] = ""  # a directory: not even root can read it
    done = inprocess("limits", 4242, "--root", tree(files), "-f", "json")
    document = json.loads(done.out)
    assert done.code == 0
    assert document["notes"] == ["could not read /etc/security/limits.d/10-a.conf: a directory, not a regular file"]
    assert row(document, "RLIMIT_NPROC")["set_by"].startswith("/etc/security/limits.d/20-b.conf line 1")


def test_all_marks_what_is_over_80_percent(inprocess, tree):
    """Open files, signals, file size …: used, limit, and a mark."""
    root = tree(
        machine(
            **{
                "proc/4242/limits": limits_text(NOFILE=2, FSIZE=1000, SIGPENDING=10),
                "proc/4242/status": status_text(SigQ="8/10"),
            }
        )
    )
    uses = {
        use["name"]: use
        for use in json.loads(inprocess("limits", 4242, "--all", "--root", root, "-f", "json").out)["all"]
    }
    assert uses["RLIMIT_NOFILE"]["over_80_percent"]
    assert (uses["RLIMIT_SIGPENDING"]["in_use"], uses["RLIMIT_SIGPENDING"]["over_80_percent"]) == (8, False)
    assert uses["RLIMIT_CPU"]["in_use"] == 3.55
    assert uses["RLIMIT_CORE"]["in_use"] is None
    shown = inprocess("limits", 4242, "--all", "--root", root)
    assert "over 80 %" in next(line for line in shown.out.splitlines() if line.startswith("RLIMIT_NOFILE"))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["999999999"], "no process 999999999"),
        (["0"], "'0' is not a PID"),
        (["no-such-program"], "'no-such-program'"),
        (["1", "--stack", "0"], "--stack 0"),
        (["1", "--stack", "many"], "'many' is not a size"),
        (["1", "--stack", "-3"], "is not a size"),
        (["1", "-c", "3"], "-c/--count goes with -w"),
        (["1", "--yes"], "--yes goes with --probe"),
        (["1", "--in-cgroup"], "--in-cgroup goes with --probe"),
        (["1", "--probe", "-w"], "exclude each other"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(inprocess, words, complaint):
    """Nothing on stdout, what was wrong and what to do on stderr."""
    done = inprocess("limits", *words)
    assert done.code == 2
    assert done.out == ""
    assert complaint in done.err


def test_a_kernel_thread_has_no_limits(inprocess):
    """The pid of kthreadd is 2 wherever it is seen at all, which is not in a container."""
    comm = Path("/proc/2/comm")
    if not comm.exists() or comm.read_text() != "kthreadd\n":
        pytest.skip("the kernel's threads are not seen from within a container")
    done = inprocess("limits", "2")
    assert done.code == 2
    assert done.out == ""
    assert "kernel thread" in done.err


def test_a_zombie_has_ended(inprocess):
    """It is there, and it is not."""
    process = subprocess.Popen(["true"])
    deadline = time.monotonic() + 30
    while ") Z " not in Path(f"/proc/{process.pid}/stat").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    done = inprocess("limits", process.pid)
    process.wait()
    assert done.code == 2
    assert "zombie" in done.err


FIRST_THREAD_ENDS = """
import ctypes, threading, time
for _ in range(2): threading.Thread(target=time.sleep, args=(600,)).start()
print(flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_whose_first_thread_has_ended(inprocess, spawn):
    """It looks like a zombie, and runs: another thread's number gives the answer."""
    process = spawn(FIRST_THREAD_ENDS)
    deadline = time.monotonic() + 30
    while ") Z " not in Path(f"/proc/{process.pid}/stat").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    done = inprocess("limits", process.pid)
    assert done.code == 2
    assert "has ended and 2 others run on" in done.err
    tid = done.err.split()[-1]
    assert inprocess("limits", tid).code in (0, 1)


def test_a_malformed_limits_file_is_named_with_its_line(inprocess, tree):
    """Not a traceback, and no number made up."""
    text = limits_text().replace(
        "8388608              8388608              bytes", "lots                 8388608              bytes", 1
    )
    done = inprocess("limits", 4242, "--root", tree(machine(**{"proc/4242/limits": text})), "-f", "json")
    assert row(json.loads(done.out), "RLIMIT_STACK")["state"] == "unknown"
    assert "neither a number nor" in row(json.loads(done.out), "RLIMIT_STACK")["note"]


def test_nothing_is_probed_in_another_machines_tree(inprocess, tree):
    """A pid there is not that process here."""
    done = inprocess("limits", 4242, "--probe", "--yes", "--root", tree(machine()))
    assert done.code == 2
    assert "4242 there is not 4242 here. Nothing was sent." in done.err


def test_a_process_by_its_name(inprocess, tree):
    """An exact process name may replace its PID; of several, the list is printed and none is chosen."""
    root = tree(machine())
    done = inprocess("limits", "app", "--root", root)
    assert done.out.startswith("4242 (app, user app) can start 118 more threads")
    again = {path.replace("4242", "4243"): content for path, content in machine().items() if "proc/4242" in path}
    tree(again)
    done = inprocess("limits", "app", "--root", root)
    assert (done.code, done.out) == (2, "")
    assert "2 processes match 'app'; give the PID of one" in done.err
    assert "4243" in done.err
    none = inprocess("limits", "apple", "--root", root)
    assert none.code == 2
    assert "'apple' is not a PID, a part of a running JVM's main class or jar or the name of a process" in none.err


def test_a_tree_without_a_process_of_ours_wants_a_pid(inprocess, tree):
    """This shell is not in there."""
    done = inprocess("limits", "--root", tree(machine()))
    assert done.code == 2
    assert "name a PID" in done.err


GROW = """
import os, threading, time
print(os.getpid(), flush=True)
input()
for _ in range(2000):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    time.sleep(0.05)
"""


def test_watch_shows_how_fast_headroom_shrinks(inprocess, spawn):
    """A process that keeps starting threads under an address space limit: the slope is negative, and 0 is foreseen."""
    code = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))\n" + GROW
    process = spawn(code, stdin=subprocess.PIPE)
    process.stdin.write("go\n")
    process.stdin.flush()
    done = inprocess("limits", process.line, "-w", "-i", "0.3", "-c", "4", "-f", "json")
    document = json.loads(done.out)
    assert [sample["binding"] for sample in document["samples"]] == ["RLIMIT_AS"] * 4
    assert document["samples"][0]["threads_left"] > document["samples"][-1]["threads_left"]
    assert document["threads_left_per_min"] < 0
    assert document["zero_in_s"] > 0
    shown = inprocess("limits", process.line, "-w", "-i", "0.3", "-c", "2")
    assert "none left in" in shown.out
    process.stdin.close()


def watching(pid, *options):
    """A real `opskit limits PID -w`, after its first line."""
    process = subprocess.Popen(
        [sys.executable, "-m", "opskit", "limits", str(pid), "-w", "-i", "0.1", "-f", "text", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd="/",
    )
    return process, process.stdout.readline()


def test_a_process_that_ends_ends_the_watch(spawn):
    """What was gathered stays, a line says that it ended."""
    child = spawn("import time; print(flush=True); time.sleep(600)")
    process, first = watching(child.pid)
    assert first.startswith(f"{child.pid} (")
    child.kill()
    child.wait()
    _, err = process.communicate(timeout=60)
    assert "ended" in err


def test_ctrl_c_ends_a_watch():
    """Exit code 130."""
    process, first = watching(os.getpid())
    assert first
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_ctrl_c_in_a_watch_prints_what_was_gathered(inprocess, monkeypatch):
    """JSON, which is written at the end, has the samples so far."""

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    done = inprocess("limits", os.getpid(), "-w", "-f", "json")
    assert done.code == 130
    assert len(json.loads(done.out)["samples"]) == 1


def wrapped(shown, columns=80):
    """How many lines of a terminal the output takes."""
    return sum(max(1, -(-len(line) // columns)) for line in shown.splitlines())


def test_the_first_screen_has_verdict_reason_and_next_command(tree):
    """On 80 x 24 nothing scrolls: the answer, who set the limit, the fix, the closer look, and the first limits."""
    code, shown = on_terminal("limits", "4242", "--root", str(tree(machine(**BLOG))), env={"NO_COLOR": "1"})
    assert code == 1
    assert wrapped(shown) < 24
    assert "can start 0 more threads" in shown
    assert "fix: ulimit -s 8192" in shown
    assert "next: opskit limits 4242 --probe" in shown
    assert "-v shows all 12 limits" in shown


def test_a_healthy_answer_is_three_lines(tree):
    """Head, verdict, open files; the limits are there with -v."""
    code, shown = on_terminal("limits", "4242", "--root", str(tree(machine())), env={"NO_COLOR": "1"})
    assert code == 0
    assert len(shown.splitlines()) == 3
    assert "can start 118 more threads" in shown


@pytest.mark.parametrize("format_", ["text", "table", "markdown"])
def test_the_table_of_a_healthy_process_is_behind_verbose_and_all(inprocess, tree, format_):
    """Off a terminal too: the answer and the open files, with what shows the rest."""
    root = tree(machine())
    short = inprocess("limits", 4242, "--root", root, "-f", format_).out
    assert "RLIMIT_STACK" not in short
    assert "open files: 2 of 1,024" in short
    assert "-v shows all 12 limits" in short
    for option in ("-v", "--all"):
        assert "RLIMIT" in inprocess("limits", 4242, option, "--root", root, "-f", format_).out


def test_a_watch_on_a_terminal_redraws_one_screen(tree):
    """Each sample clears the screen and fits on it."""
    process = subprocess.Popen(["sleep", "60"])
    try:
        code, shown = on_terminal("limits", str(process.pid), "-w", "-i", "0.1", "-c", "3", env={"NO_COLOR": "1"})
    finally:
        process.kill()
        process.wait()
    assert code == 0
    nothing, *screens = shown.split("\x1b[H\x1b[2J")
    assert nothing == ""
    assert len(screens) == 3
    assert all(wrapped(screen) < 24 and f"{process.pid} (sleep" in screen for screen in screens)


def test_on_a_terminal_all_limits_fit(tree):
    """Tables no wider than the screen; sentences, and each command, are a line that the terminal itself wraps."""
    code, shown = on_terminal(
        "limits", "4242", "-v", "--root", str(tree(machine(**BLOG))), columns=100, env={"NO_COLOR": "1"}
    )
    assert code == 1
    assert "RLIMIT_STACK" in shown
    lines = shown.splitlines()
    tables = [line for line in lines if "   " in line or "──" in line]
    assert len(tables) > 10
    assert max(map(len, tables)) <= 100
    fix = "sysctl -w kernel.pid_max=4194304; for good: echo 'kernel.pid_max = 4194304' > /etc/sysctl.d/90-threads.conf"
    assert f"fix kernel.pid_max: {fix}" in lines


@pytest.mark.parametrize(("typed", "made"), [(b"yes\n", True), (b"no\n", False), (b"\x04", False)])
def test_a_probe_asks_on_a_terminal(typed, made):
    """Only a typed yes starts it."""
    code, shown = on_terminal("limits", str(os.getpid()), "--probe", question="Type yes", answer=typed, columns=200)
    assert code == 0
    assert ("really started" in shown) == made
    assert ("Nothing was changed; add --yes" in shown) != made


def test_names_are_shown_escaped(inprocess, tree):
    """A process may call itself anything."""
    root = tree(machine(**{"proc/4242/comm": "a\x1b[31mb\n"}))
    done = inprocess("limits", 4242, "--root", root)
    assert "\x1b" not in done.out
    assert r"a\x1b[31mb" in done.out
