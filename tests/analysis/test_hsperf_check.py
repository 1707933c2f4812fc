"""Which client can attach to which JVM, and what deviates: pure, so that JDK 8, which no test machine has, is judged as well."""

from __future__ import annotations

import os
import stat
import subprocess

import pytest

from opskit.analysis.finding import Entity
from opskit.analysis.hsperf_check.judge import judge
from opskit.analysis.hsperf_check.repairs import Outcome
from opskit.collect.hsperf_check import Facts, Probe, Request
from opskit.jvm.attach.files import Counters, Entry, Location, Socket, Surroundings, Tmp, Trigger
from opskit.jvm.attach.leftovers import Leftover
from opskit.jvm.attach.target import Stopped
from opskit.jvm.discover import HOTSPOT, Jvm
from opskit.proc.file_id import FileId
from opskit.proc.file_space import Space
from opskit.proc.files.maps import Mapping
from opskit.render.formats import json, markdown, text
from opskit.render.report import About
from opskit.render.views import hsperf_check as view

APP, NOW = 1001, 1_000_000.0
PID = 4242
KINDS = {"socket": stat.S_IFSOCK, "plain file": stat.S_IFREG, "directory": stat.S_IFDIR, "symbolic link": stat.S_IFLNK}
SOCKET, COUNTERS, DIRECTORY = f"/tmp/.java_pid{PID}", f"/tmp/hsperfdata_app/{PID}", "/tmp/hsperfdata_app"


LOCATION = Location(PID, 1, "root", ("tmp",))
FIX = f"opskit hsperf-check {PID} --fix"


def entry(path, kind="socket", uid=APP, gid=APP, mode=0o600, inode=7, size=0, age_s=100.0, links=1, location=LOCATION):
    file = FileId(1, inode, KINDS[kind] | mode, uid, gid, links, size, int((NOW - age_s) * 1e9))
    return Entry(path, path, file, location, tuple(path.split("/")[2:]))


def around(**changes):
    """A JVM of app whose listener runs, with nothing wrong."""
    tmp = Tmp(entry("/tmp", "directory", 0, 0, 0o1777), Space(False, 1 << 30, 1000), shared=True)
    well = {
        "jvm": Jvm(PID, PID, HOTSPOT, APP, 1, "app.jar"),
        "euid": APP,
        "egid": APP,
        "groups": (),
        "java_major": 17,
        "tmp": tmp,
        "socket": Socket(entry(SOCKET), True, PID),
        "listener": True,
        "triggers": (),
        "counters": Counters(
            Mapping("0-1", 9, COUNTERS, deleted=False),
            entry(DIRECTORY, "directory", mode=0o755),
            entry(COUNTERS, "plain file", inode=9, size=32768),
            FileId(1, 9, 0, APP),
        ),
        "disabled": False,
        "reduced": False,
        "perf_flag": None,
        "stopped": None,
        "named": True,
        "user": "app",
    }
    return Surroundings(**{**well, **changes})


def name(number):
    return {0: "root", APP: "app"}.get(number, str(number))


FACTS = Facts(Request(), [], [], {}, False, [], NOW, 4096, True, False, name, name)


def check(sees_all=True, is_copy=False, **changes):
    return judge(FACTS._replace(around=[around(**changes)], sees_all=sees_all, is_copy=is_copy))


def works(result):
    return [client.works for client in result.checked[0].clients]


def codes(result):
    return [finding.code for finding in result.checked[0].findings]


def test_nothing_wrong():
    """Clients in order: JDK 8 as root, 11+ as root, as app, opskit."""
    checked = check()
    assert codes(checked) == []
    assert works(checked) == [False, True, True, True]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"java_major": 8}, [False, False, True, True]),
        ({"java_major": 8, "socket": None, "listener": False}, [False, False, True, True]),
        ({"socket": None, "listener": False}, [False, True, True, True]),
        ({"socket": None}, [False, True, True, True]),
        ({"socket": None, "java_major": 11}, [False, False, False, False]),
        ({"socket": None, "java_major": None}, [False, False, False, False]),
        ({"disabled": True}, [False, False, False, False]),
        ({"stopped": Stopped("is stopped", "kill -CONT 4242", command=True)}, [False, False, False, False]),
        ({"socket": None, "listener": False, "reduced": True}, [False, False, False, False]),
        ({"reduced": True}, [False, True, True, True]),
        ({"tmp": None, "socket": None}, [None, None, None, None]),
        ({"socket": Socket(entry(SOCKET), False, None), "listener": False}, [False, False, False, True]),
        ({"socket": Socket(entry(SOCKET), False, None)}, [False, False, False, False]),
        ({"socket": Socket(entry(SOCKET), True, 99)}, [False, False, False, False]),
        ({"socket": Socket(entry(SOCKET), True, 0)}, [False, False, False, False]),
        ({"socket": Socket(entry(SOCKET, mode=0o660), True, PID)}, [False, False, False, True]),
        ({"socket": Socket(entry(SOCKET, mode=0o611), True, PID)}, [False, True, True, True]),
        ({"socket": Socket(entry(SOCKET, uid=0), True, PID)}, [False, True, False, True]),
        ({"socket": Socket(entry(SOCKET, uid=0, gid=0), True, PID)}, [True, True, False, True]),
        ({"socket": Socket(entry(SOCKET, gid=0), True, PID)}, [False, True, False, True]),
        (
            {"euid": 0, "egid": 0, "socket": Socket(entry(SOCKET, uid=0, gid=0), True, PID)},
            [True, True, True],
        ),
        (
            {"euid": 0, "egid": 0, "socket": Socket(entry(SOCKET, uid=0, gid=5), True, PID)},
            [False, True, True],
        ),
    ],
)  # fmt: skip
def test_who_can_attach(changes, expected):
    """The predicate of each client, the check of each server, and what stops the listener."""
    assert works(check(**changes)) == expected


def test_the_blogs_case():
    """A setgid /tmp under JDK 8 gives the socket root's group: both reasons are reported, and the repair."""
    setgid = Tmp(entry("/tmp", "directory", 0, 0, 0o3777), Space(False, 1 << 30, 1000), shared=True)
    checked = check(java_major=8, tmp=setgid, socket=Socket(entry(SOCKET, gid=0), True, PID))
    assert codes(checked) == ["tmp-setgid", "attach-socket-group"]
    assert [(repair.change, repair.command) for repair in checked.repairs] == [("group app (1001)", FIX)]
    why = checked.checked[0].clients[0].why
    assert "`well-known file is not secure`" in why
    assert f"the group of {SOCKET} is root (0), the JVM runs with group app (1001)" in why


@pytest.mark.parametrize(
    ("uid", "in_cwd", "major", "age_s", "listener", "expected"),
    [
        (0, True, 17, 1, False, []),  # a client of root's at work
        (APP, True, 17, 1, False, []),
        (APP, True, 17, 60, False, [("attach-trigger-left", "warning")]),
        (0, True, 8, 60, False, [("attach-trigger-owner", "error")]),
        (5, True, 17, 1, False, [("attach-trigger-owner", "error")]),
        (5, True, 17, 1, True, [("attach-trigger-owner", "warning")]),
        (5, False, 17, 1, False, [("attach-trigger-owner", "warning")]),
    ],
)
def test_triggers(uid, in_cwd, major, age_s, listener, expected):
    """JDK 8 accepts its own uid, later ones root's too; one in the cwd hides any other."""
    trigger = Trigger(entry(f"/srv/.attach_pid{PID}", "plain file", uid, uid, age_s=age_s), in_cwd)
    checked = check(triggers=(trigger,), java_major=major, listener=listener, socket=None)
    assert [(finding.code, finding.severity) for finding in checked.findings if "trigger" in finding.code] == expected


@pytest.mark.parametrize(
    ("directory", "says"),
    [
        ({"mode": 0o500}, "mode 0500 of /tmp/hsperfdata_app locks out app (1001), who needs rwx"),
        ({"mode": 0o757}, "was not secure when it started"),
        ({"uid": 0, "mode": 0o755}, "was not secure when it started"),
        ({"mode": 0o755}, "the cause is not visible any more"),
    ],
)
def test_why_there_is_no_hsperfdata(directory, says):
    """What keeps HotSpot from creating the file is named: owner, write permission of others, or the user's own rights."""
    counters = Counters(None, entry(DIRECTORY, "directory", **directory), None)
    [finding] = [each for each in check(counters=counters).findings if each.code == "hsperf-file-missing"]
    assert says in finding.summary
    assert finding.entity.name == COUNTERS


def test_a_copy_is_named_as_the_reason():
    """A client's fate is unknown: the copy is the reason, not a /tmp that is closed to us."""
    of_copy, of_closed = check(is_copy=True, tmp=None, socket=None), check(tmp=None, socket=None)
    assert {client.works for client in of_copy.checked[0].clients} == {None}
    assert "a copy does not contain it" in of_copy.checked[0].clients[0].why
    assert "cannot be looked into" in of_closed.checked[0].clients[0].why


@pytest.mark.parametrize(
    ("reason", "severity", "exit_code", "next_"),
    [
        ("timeout", "error", 2, f"opskit safepoints {PID}"),
        ("disabled", "note", None, None),
        ("tmp", "error", None, None),
    ],
)
def test_a_probe_that_failed(reason, severity, exit_code, next_):
    """A timeout leaves the question open: exit code 2, and the command that shows whether the JVM reaches safepoints."""
    result = judge(FACTS._replace(around=[around()], probes={PID: Probe(PID, reason, "why", 12.0)}))
    [finding] = result.findings
    assert (finding.code, finding.severity, finding.next) == ("attach-probe-failed", severity, next_)
    assert result.exit_code == exit_code


def test_findings_name_what_they_are_about():
    """A socket and a file are in their process; a /tmp that several JVMs share is reported once."""
    setgid = Tmp(entry("/tmp", "directory", 0, 0, 0o3777), Space(False, 1 << 30, 1000), shared=True)
    jvms = [
        around(jvm=Jvm(pid, pid, HOTSPOT, APP, pid, "x"), tmp=setgid, socket=Socket(entry(SOCKET, gid=0), True, pid))
        for pid in (PID, PID + 1)
    ]
    findings = judge(FACTS._replace(around=jvms)).findings
    assert [finding.code for finding in findings] == ["attach-socket-group"] * 2 + ["tmp-setgid"]
    entity = findings[0].entity
    assert (entity.kind, entity.id, entity.inside) == ("socket", SOCKET, Entity("process", PID, PID))
    assert findings[2].entity == Entity("file", "/tmp")


def test_a_socket_is_repaired_only_if_its_peer_is_known():
    """Where the listener is unknown, the deviation is reported and the repair refused."""
    checked = check(socket=Socket(entry(SOCKET, gid=0), None, None))
    assert codes(checked) == ["attach-socket-group"]
    assert checked.repairs[0].refused == "the process that listens on it is unknown"
    foreign = check(socket=Socket(entry(SOCKET, gid=0), True, 99))
    assert codes(foreign) == ["attach-socket-foreign"]
    assert foreign.repairs == []


@pytest.mark.parametrize("initial", [True, False])
def test_a_dead_socket_over_a_living_listener(initial):
    """It is removed only from where every process is visible, as all is that is removed."""
    checked = check(sees_all=initial, socket=Socket(entry(SOCKET), False, None))
    assert codes(checked) == ["attach-socket-orphaned"]
    [repair] = checked.repairs
    assert repair.remove
    assert (repair.refused is None) if initial else ("from within a container" in repair.refused)


@pytest.mark.parametrize(
    ("kind", "locked", "mapped", "initial", "refused"),
    [
        ("plain file", False, False, True, None),
        ("plain file", False, False, False, "container"),
        ("plain file", False, None, True, "not every process"),
        ("plain file", None, False, True, "not every process"),
        ("symbolic link", False, False, True, "symbolic link"),
    ],
)
def test_only_what_is_proven_dead_is_removed(kind, locked, mapped, initial, refused):
    """Every doubt keeps a leftover."""
    left = Leftover(PID, "hsperfdata", entry(COUNTERS, kind), locked=locked, mapped=mapped)
    result = judge(FACTS._replace(leftovers=[left], sees_all=initial))
    findings, [repair] = result.findings, result.repairs
    assert [(finding.code, finding.severity) for finding in findings] == [("hsperf-leftover", "note")]
    assert ("cannot be seen from here" in findings[0].summary) is not initial
    assert (repair.refused is None) if refused is None else (refused in repair.refused)


@pytest.mark.parametrize("name", ["a;touch pwn", "$(touch pwn)", "`x`", "'", "a\nb", "-rf", "\udcff"])
def test_a_path_in_a_printed_command_is_one_word(name):
    """A command that reads a path names the path itself; a repair is opskit's own command."""
    place = f"/srv/{name}/tmp"
    there = entry(place, "directory", 0, 0, 0o777)._replace(inside="/tmp")
    tmp = Tmp(there, Space(False, 0, 0), shared=False)
    linked = Counters(
        Mapping("0-1", 9, COUNTERS, deleted=False),
        entry(f"{place}/hsperfdata_app", "directory", mode=0o777),
        entry(f"{place}/hsperfdata_app/{PID}", "plain file", inode=9, size=32768, links=2, mode=0o666, uid=0),
        FileId(1, 9, 0, APP),
    )
    socket = Socket(entry(f"{place}/.java_pid{PID}", uid=0, gid=0, mode=0o666), True, PID)
    findings = check(tmp=tmp, counters=linked, socket=socket).findings
    fixes = {finding.code: finding.fix for finding in findings}
    ran = {finding.code: in_shell(finding.next) for finding in findings if finding.next}
    assert set(ran) == {"tmp-full", "hsperf-file-links"}
    assert ran["tmp-full"] == [b"df", b"-h", os.fsencode(place), b"df", b"-i", os.fsencode(place)]
    assert ran["hsperf-file-links"] == [b"find", os.fsencode(place), b"-xdev", b"-inum", b"9"]
    assert {fixes[code] for code in fixes if code.startswith("attach-socket")} == {FIX}
    for code in ("tmp-not-sticky", "hsperf-file-owner", "hsperf-file-mode", "hsperf-dir-mode"):
        assert fixes[code] == FIX or fixes[code].startswith(("not repaired by --fix: ", "mode 1777 for /tmp in")), code


def in_shell(line):
    """The words that a shell makes of it, of each command of the line."""
    tell = 'df() { printf "%s\\0" df "$@"; }; find() { printf "%s\\0" find "$@"; }; '
    done = subprocess.run(["sh", "-c", tell + line], capture_output=True, check=True, cwd="/")
    return done.stdout.split(b"\0")[:-1]


def test_names_are_escaped_and_the_whole_output(golden):
    """A main class with a terminal escape, an owner without a name: text and markdown, letter for letter."""
    checked = check(
        jvm=Jvm(PID, PID, HOTSPOT, APP, 1, "evil\x1b[31m|x"),
        socket=Socket(entry(SOCKET, uid=77, mode=0o666), True, PID),
    )
    repairs = [Outcome(repair, "would") for repair in checked.repairs]
    checked = checked._replace(facts=checked.facts._replace(probes={PID: Probe(PID, None, "JDK 17", 1.25)}))
    about = About("vm", "2025-11-21T12:00:00Z", "0", "opskit hsperf-check 4242", {"pids": "4242"})
    report = view.report(about, view.Shown(checked, checked.findings, repairs))
    golden("hsperf-check.text", text.render(report))
    golden("hsperf-check.json", json.render(report))
    golden("hsperf-check.markdown", markdown.render(report))
