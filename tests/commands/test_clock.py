"""`opskit clock`: real servers, processes under libfaketime and in time namespaces, a real chronyd, a clock that is set."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jvms
import ntpserver
import promtext
import pytest
from answers import answer, valid
from clockfacts import BARE, CHRONYD, HEALTHY, server
from imports import HEAVY, imported
from nextsteps import try_next
from shells import NOBODY
from stracing import traced
from terminal import on_terminal

from opskit.analysis.clock.judge import judge
from opskit.collect.clock.facts import Source, Step
from opskit.proc.kernel import sntp
from opskit.proc.kernel.clock_reads import ReadCost

WAITS = ["sleep", "600"]
FAKETIME = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)
ZONES = Path("/usr/share/zoneinfo/America/Los_Angeles")


def found(run, *words, code=None):
    """The JSON object, valid by its schema."""
    return answer(run, "clock", *words, codes=(0, 1) if code is None else (code,))


def codes(document):
    return {finding["code"] for finding in document["findings"]}


@contextlib.contextmanager
def sleeping(words=WAITS, **variables):
    """A process with this environment; its PID when it has become the program, with its libraries, and sleeps."""
    process = subprocess.Popen(words, env={"PATH": os.environ["PATH"], **variables}, start_new_session=True)
    try:
        for _ in range(1000):
            if " (sleep) S " in Path(f"/proc/{process.pid}/stat").read_text():
                break
            time.sleep(0.01)
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_this_machine(inprocess):
    """In every format: the kernel's state, the clocksource as it is in /sys, what a read costs."""
    document = found(inprocess)
    current = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text().strip()
    assert document["clocksource"] == current
    assert document["state"] in ("synchronised", "unsynchronised", "stale", "unknown")
    assert document["read_ns"] > 0
    assert document["zone"]["source"] == "/etc/localtime"
    assert (document["server"], document["process"], document["steps"]) == (None, None, None)
    for form in ("table", "text", "markdown", "prometheus"):
        done = inprocess("clock", "-f", form)
        assert done.code in (0, 1)
        assert current in done.out or form == "prometheus"
    assert promtext.value(promtext.parse(done.out), "opskit_clock_read_seconds") > 0


def test_a_clock_that_is_hours_behind_a_server(inprocess):
    """The offset to a millisecond, and the sentence."""
    with ntpserver.right(25200.123) as (port, _):
        for _ in range(3):
            document = found(inprocess, "--server", f"127.0.0.1:{port}", code=1)
            if abs(document["server"]["offset_s"] - 25200.123) < 0.001:
                break
        else:
            pytest.fail(f"{document['server']}")
    assert document["verdict"][0].startswith("The clock is 7 h behind 127.0.0.1: matches a timezone offset (+25200.12")
    assert document["timezone_offset_s"] == 25200
    assert "clock-timezone-offset" in codes(document)
    try_next(document["findings"], "clock-timezone-offset")


def test_a_server_that_agrees(inprocess):
    """IPv6, the exit code of a healthy answer."""
    with ntpserver.right(0.0, "::1") as (port, _):
        document = found(inprocess, "--server", f"[::1]:{port}")
    assert not codes(document) & {"clock-offset", "clock-timezone-offset"}
    assert document["verdict"][0].startswith("The clock agrees with ::1: the offset is ")


@pytest.mark.parametrize(
    ("how", "words", "code"),
    [
        ({"stratum": 0, "reference": b"DENY"}, "it refuses to answer (kiss-o'-death DENY)", 2),
        ({"stratum": 16}, "its stratum 16 means not synchronised", 0),
        ({"leap": 3}, "leap indicator 3", 0),
    ],
)
def test_servers_whose_time_proves_nothing(inprocess, how, words, code):
    """No offset is concluded."""
    with ntpserver.right(25200.0, **how) as (port, _):
        document = found(inprocess, "--server", f"127.0.0.1:{port}", code=code)
    assert words in document["verdict"][0]
    assert not codes(document) & {"clock-offset", "clock-timezone-offset"}
    assert document["timezone_offset_s"] is None


def test_a_server_that_does_not_answer(inprocess, monkeypatch):
    """Exit code 2; the rest is shown."""
    monkeypatch.setattr(sntp, "_TIMEOUT_S", 0.2)
    with ntpserver.serving(lambda _: []) as (port, requests):
        document = found(inprocess, "--server", f"127.0.0.1:{port}", code=2)
    assert len(requests) == 2
    assert document["verdict"][0].startswith("The offset to 127.0.0.1 is unknown: no reply within 0.2 s")
    assert document["kernel"] is not None
    assert document["notes"]


def test_a_watch_does_not_ask_a_server_again_at_once(inprocess):
    """Servers refuse those who ask too often."""
    with ntpserver.right() as (port, requests):
        found(inprocess, "--server", f"127.0.0.1:{port}", "-w", "-c", "4", "-i", "0.1")
    assert len(requests) == 4


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("", "not a server"), ("[::1", "not a server"), ("a b", "not a server"), ("[::1]x", "not a server"), ("host:", "'' is not a port"),
        ("host:0", "'0' is not a port"), ("host:65536", "'65536' is not a port"), ("host:ntp", "'ntp' is not a port"), (":123", "not a server"),
        ("x" * 300, "not a server"),
    ],
)  # fmt: skip
def test_words_that_are_no_server(inprocess, word, message):
    """Exit code 2, one line, before anything is asked."""
    done = inprocess("clock", "--server", word)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.skipif(FAKETIME is None, reason="needs the Debian package libfaketime")
def test_a_process_under_libfaketime(inprocess):
    """What its FAKETIME says; the machine's clock is not to blame."""
    with sleeping(LD_PRELOAD=str(FAKETIME), FAKETIME="-7h") as pid:
        document = found(inprocess, pid, code=1)
    assert document["process"]["faked_by"] == os.path.realpath(FAKETIME)
    assert document["process"]["fake"] == "-7h"
    assert "libfaketime sets its clock 7 h behind (FAKETIME=-7h)" in document["verdict"][0]
    assert "clock-faked" in codes(document)


@pytest.mark.skipif(FAKETIME is None, reason="needs the Debian package libfaketime")
def test_opskit_under_libfaketime(opskit):
    """It knows, and concludes nothing."""
    done = opskit("clock", env={"LD_PRELOAD": str(FAKETIME), "FAKETIME": "-7h"})
    assert done.code == 2
    assert "every time that it reads is false; run env -u LD_PRELOAD opskit clock." in done.out


@pytest.mark.skipif(not ZONES.exists(), reason="needs tzdata")
def test_zones_of_processes(inprocess):
    """TZ of the environment, as the C library of that process has it."""
    with sleeping(TZ="America/Los_Angeles") as pid:
        document = found(inprocess, pid)
        local = subprocess.run(
            ["date", "+%::z"], env={"TZ": "America/Los_Angeles"}, capture_output=True, text=True, check=True
        ).stdout
    hours = int(local[:3])
    assert document["process"]["zone"]["utc_offset_s"] == hours * 3600
    assert f"its local time is UTC{hours} (TZ=America/Los_Angeles)" in document["verdict"][0]
    with sleeping(TZ="America/Los_Angele") as pid:
        assert "clock-zone-missing" in codes(found(inprocess, pid))
    with sleeping() as pid:
        assert not {"clock-zone-differs", "clock-zone-missing"} & codes(found(inprocess, pid))


@pytest.mark.skipif(not ZONES.exists(), reason="needs tzdata")
@pytest.mark.xdist_group("machine")
@pytest.mark.parametrize(
    ("options", "variables", "zone"),
    [
        (("-Duser.timezone=Asia/Tokyo",), {"TZ": "Europe/Berlin"}, ("-Duser.timezone", "Asia/Tokyo", 32400)),
        ((), {"JAVA_TOOL_OPTIONS": "-Duser.timezone=Asia/Kolkata"}, ("-Duser.timezone", "Asia/Kolkata", 19800)),
        ((), {"TZ": "GMT+8"}, ("TZ", "GMT+8", 28800)),  # east for Java
    ],
)
def test_the_zone_of_a_jvm(inprocess, options, variables, zone):
    """An option is above the environment."""
    with jvms.running("sleep=1", version=21, options=("-Xmx32m", *options), env=variables) as jvm:
        document = found(inprocess, jvm.pid)
    read = document["process"]["zone"]
    assert (read["source"], read["name"], read["utc_offset_s"]) == zone


def test_a_time_namespace(inprocess, root_only):
    """Its monotonic clock is shifted, the date is not."""
    words = ["unshare", "-T", "--monotonic", "864000", "--boottime", "-1", *WAITS]
    if subprocess.run([*words[:-2], "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs time namespaces (Linux 5.6) and unshare -T")
    # unshare itself stays in the old namespace of time: what it starts is in the new one.
    words.insert(1, "--fork")
    with sleeping(["sh", "-c", '"$@" & exec sleep 600', "sh", *words]) as outer:
        for _ in range(500):
            pids = subprocess.run(
                ["pgrep", "-s", str(outer), "-f", "^sleep 600"], capture_output=True, text=True, check=False
            ).stdout.split()
            if len(pids) > 1:
                break
            time.sleep(0.01)
        inner = max(map(int, pids))
        document = found(inprocess, inner)
    assert "clock-time-namespace" in codes(document)
    assert document["process"]["monotonic_offset_s"] == 864000


def test_another_users_process(as_user, inprocess, root_only):
    """What cannot be read is said, with the rights that are missing."""
    with sleeping(TZ="Asia/Tokyo") as pid:
        done = as_user(NOBODY, lambda: inprocess("clock", pid, "-f", "json"))
    document = json.loads(done.out)
    assert document["process"]["zone"] is None
    assert any("permission denied" in note for note in document["notes"])
    assert document["verdict"][0].endswith("its time zone and libraries cannot be read.")
    assert document["kernel"] is not None  # everyone may read it


def test_names_from_the_environment(inprocess):
    """Escaped in every format, and cut."""
    with sleeping(TZ="\x1b[31m$(touch pwn)\n" * 50, FAKETIME="\x1b]0;x\a") as pid:
        for form in ("table", "text", "markdown", "prometheus", "json"):
            done = inprocess("clock", pid, "-f", form)
            assert done.code in (0, 1)
            assert (done.out + done.err).replace("\n", "").isprintable()


def test_a_process_that_is_none(inprocess):
    """Exit code 2."""
    done = inprocess("clock", 2**22 - 1)
    assert (done.code, done.out) == (2, "")
    assert "no process 4194303" in done.err


def test_a_copy_has_no_clock(inprocess, tree):
    """--root of a copy: exit code 2, nothing is invented."""
    root = tree({"proc/1/comm": "init\n", "etc/localtime": "x"})
    for words in ((), ("-w",), (1,)):
        done = inprocess("clock", *words, "--root", root)
        assert (done.code, done.out) == (2, "")
        assert "is a copy" in done.err


def test_a_watch(inprocess):
    """Samples until the count; no step on a quiet machine that nobody sets."""
    document = found(inprocess, "-w", "-c", "3", "-i", "0.2")
    assert document["watched_s"] >= 0.4
    assert document["steps"] is not None


def test_a_watch_ends_with_its_process(inprocess, spawn):
    """One line says so; what was seen is shown."""
    short = spawn("import time; print(1, flush=True); time.sleep(0.4)")
    done = inprocess("clock", short.pid, "-w", "-i", "0.1", "-c", "60", "-f", "json")
    assert done.code in (0, 1)
    assert f"opskit: no process {short.pid}" in done.err
    assert json.loads(done.out)["process"]["pid"] == short.pid


@pytest.mark.skipif(
    not os.environ.get("OPSKIT_TEST_HOST"), reason="sets the clock of this machine; OPSKIT_TEST_HOST=1 allows it"
)
def test_a_step_is_shown_at_once(root_only):
    """Long before the next sample is due."""

    def set_by(seconds):
        time.clock_settime_ns(time.CLOCK_REALTIME, time.clock_gettime_ns(time.CLOCK_REALTIME) + round(seconds * 1e9))

    watching = subprocess.Popen(
        [sys.executable, "-u", "-m", "opskit", "clock", "-w", "-i", "30", "-c", "3"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )  # fmt: skip
    try:
        while "zone" not in watching.stdout.readline():
            pass
        time.sleep(0.3)
        set_by(0.01)
        begun_s = time.monotonic()
        while not (line := watching.stdout.readline()).startswith("The clock was set"):
            assert line or watching.poll() is None
        assert time.monotonic() - begun_s < 10
        set_by(-0.01)
        out, _ = watching.communicate(timeout=20)
    finally:
        watching.kill()
        watching.wait()
    assert line.startswith(("The clock was set ahead by 10 ms at 2", "The clock was set ahead by 10.0 ms at 2"))
    assert "2 steps so far" in out
    assert watching.returncode == 1


SUPPORT = os.path.dirname(ntpserver.__file__)


def in_namespaces(script, *words):
    """Run a script that starts a chronyd in network and mount namespaces of its own; skip where that cannot be done."""
    if not shutil.which("chronyd") or not shutil.which("chronyc") or not shutil.which("ip"):
        pytest.skip("needs the Debian package chrony")
    root = os.path.dirname(os.path.dirname(SUPPORT))
    done = subprocess.run(
        ["unshare", "-n", "-m", "sh", "-c", script, "sh", sys.executable, *map(str, words)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": f"{root}:{SUPPORT}"}, timeout=120,
    )  # fmt: skip
    if done.returncode == 9:
        pytest.skip("needs namespaces")
    return done


SERVED = """
mount -t tmpfs none /run && mkdir -p /run/chrony && ip link set lo up || exit 9
printf 'server 127.0.0.1 port 1123 iburst minpoll -2 maxpoll 1\\nuser root\\n' > /run/chrony.conf
"$1" -c "
import socket, ntpserver
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); server.bind(('127.0.0.1', 1123))
while True:
    data, peer = server.recvfrom(2048); server.sendto(ntpserver.reply(data, $2), peer)
" & server=$!
chronyd -x -d -f /run/chrony.conf > /run/log 2>&1 & daemon=$!
trap 'kill $server $daemon; wait' EXIT
for _ in $(seq 100); do chronyc -n tracking | grep -q 'Leap status *: Normal' && break; sleep 0.1; done
"$1" -m opskit clock -f json
"""


@pytest.mark.parametrize(
    ("offset_s", "code"), [(0.0002, None), (25203.0, "clock-timezone-offset"), (3.0, "clock-offset")]
)
def test_a_real_chronyd(root_only, offset_s, code):
    """In namespaces of its own, without touching the clock (-x): found in /proc, asked by chronyc."""
    done = in_namespaces(SERVED, offset_s)
    document = valid("clock", done.stdout)
    [answer] = document["answers"]
    assert (answer["is_synchronised"], answer["reference"], answer["tool"]) == (
        True,
        "127.0.0.1",
        "chronyc -n tracking",
    )
    assert answer["offset_s"] == pytest.approx(offset_s, abs=0.1)
    assert 0 <= answer["age_s"] < 60
    assert answer["interval_s"] < 60
    assert document["daemons"][0]["may_set"]
    assert codes(document) & {"clock-offset", "clock-timezone-offset"} == ({code} if code else set())
    assert document["state"] == "synchronised"


def test_it_reads_only():
    """As its safety table says: no file is written, no signal sent, nobody asked without --server."""
    done = traced(
        "clock",
        os.getpid(),
        "-f",
        "text",
        calls=("open", "openat", "kill", "socket", "connect", "sendto", "clock_settime", "settimeofday"),
    )
    assert done.code in (0, 1)
    assert done.writing() == []
    assert done.of("kill", "clock_settime", "settimeofday") == []
    asked = [call for call in done.of("connect", "sendto") if "AF_INET" in call and "127.0.0.1" not in call]
    assert asked == []  # chronyc asks a daemon of this machine over the loopback device


def test_imports():
    """No heavy module, and none of the parts that were not asked for."""
    modules = imported("clock", "-f", "text")
    assert not modules & (HEAVY - {"ctypes"})
    assert not modules & {
        "opskit.collect.clock.server",
        "opskit.collect.clock.view",
        "opskit.proc.kernel.sntp",
        "_socket",
    }


def test_the_first_screen_of_a_terminal():
    """Verdict, finding and next command are visible."""
    with ntpserver.right(25200.0) as (port, _):
        code, out = on_terminal("clock", "--server", f"127.0.0.1:{port}")
    assert code == 1
    assert "matches a timezone offset" in out
    assert len(out.splitlines()) <= 24


# Next commands


def test_next_commands_of_a_wrong_clock():
    """A server that is seconds ahead; a clock that nobody synchronises, measured against a server."""
    with ntpserver.right(3.2) as (port, _):
        server_ = server(3.2)._replace(port=port)
        try_next(judge(HEALTHY._replace(server=server_)).findings, "clock-offset")
        line = try_next(judge(BARE).findings, "clock-unsynchronised", SERVER=f"127.0.0.1:{port}")
    assert line == "opskit clock --server SERVER"


def test_next_commands_of_a_watch():
    """Who may have set the clock, and whether its rate stays as it is."""
    daemon = CHRONYD._replace(pid=os.getpid())
    stepped = HEALTHY._replace(steps=[Step(1.0, 0.01, "T")], watched_s=2.0, daemons=(daemon,))
    assert try_next(judge(stepped).findings, "clock-stepped") == f"ps -fp {os.getpid()}"
    corrected = HEALTHY._replace(kernel=HEALTHY.kernel._replace(rate_ppm=-500.0))
    assert try_next(judge(corrected).findings, "clock-rate") == "opskit clock -w -i 10s"


def test_next_command_of_a_slow_clocksource(root_only):
    """The kernel's log says why."""
    slow = HEALTHY._replace(source=Source("hpet", ("tsc", "hpet"), ReadCost(1200.0, 180.0)))
    line = next(each.next for each in judge(slow).findings if each.code == "clock-source-slow")
    if not subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False).stdout:
        pytest.skip("needs the kernel's log with its first lines")
    try_next(judge(slow).findings, "clock-source-slow")


def test_two_daemons(inprocess, root_only, initial_pid_namespace, tmp_path):
    """Two programs of these names, both run by root, which may set the clock."""
    with contextlib.ExitStack() as stack:
        pids = []
        for name in ("ntpd", "chronyd"):
            shutil.copy("/usr/bin/sleep", tmp_path / name)
            running = subprocess.Popen([tmp_path / name, "600"])
            stack.callback(running.wait)
            stack.callback(running.kill)
            pids.append(running.pid)
            while Path(f"/proc/{running.pid}/comm").read_text() != f"{name}\n":
                time.sleep(0.01)
        document = found(inprocess, code=1)
        mine = [daemon for daemon in document["daemons"] if daemon["pid"] in pids]
        assert sorted((daemon["name"], daemon["may_set"]) for daemon in mine) == [("chronyd", True), ("ntpd", True)]
        assert "clock-two-daemons" in codes(document)
        assert try_next(document["findings"], "clock-two-daemons").startswith("ps -fp ")


def test_a_daemon_of_a_user_is_none(inprocess, root_only, initial_pid_namespace):
    """A name is no proof: it lacks CAP_SYS_TIME."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)  # noqa: S103  (that user runs it)
        shutil.copy("/usr/bin/sleep", f"{place}/chronyd")
        running = subprocess.Popen([f"{place}/chronyd", "600"], user=NOBODY)
        try:
            while Path(f"/proc/{running.pid}/comm").read_text() != "chronyd\n":
                time.sleep(0.01)
            document = found(inprocess)
        finally:
            running.kill()
            running.wait()
    [daemon] = [each for each in document["daemons"] if each["pid"] == running.pid]
    assert daemon["may_set"] is False
    assert not [each for each in document["answers"] if each["pid"] == running.pid]
    assert document["state"] != "unknown" or len(document["daemons"]) > 1


SERVING = """
mount -t tmpfs none /run && mkdir -p /run/chrony && ip link set lo up || exit 9
printf 'local stratum 8\\nallow 127.0.0.1\\nport 1125\\nuser root\\n' > /run/chrony.conf
chronyd -x -d -f /run/chrony.conf > /run/log 2>&1 & daemon=$!
trap 'kill $daemon; wait' EXIT
for _ in $(seq 100); do chronyc -n tracking | grep -q 'Leap status *: Normal' && break; sleep 0.1; done
"$1" -m opskit clock --server 127.0.0.1:1125 -f json
"""


def test_a_real_chronyd_as_the_server(root_only):
    """Its packets are understood; it serves the clock of this machine."""
    document = json.loads(in_namespaces(SERVING).stdout)
    server_ = document["server"]
    assert (server_["stratum"], server_["leap"], server_["replies"]) == (8, 0, 4)
    assert abs(server_["offset_s"]) <= server_["delay_s"] / 2 + 0.001
    assert not codes(document) & {"clock-offset", "clock-timezone-offset"}
    [answer] = document["answers"]
    assert (answer["is_synchronised"], answer["reference"]) == (False, "its own clock")


ALONE = """
mount -t tmpfs none /run && mkdir -p /run/chrony && ip link set lo up || exit 9
printf 'server 127.0.0.1 port 1124 iburst\\nuser root\\n' > /run/chrony.conf
chronyd -x -d -f /run/chrony.conf > /run/log 2>&1 & daemon=$!
trap 'kill $daemon; wait' EXIT
for _ in $(seq 100); do chronyc -n tracking > /dev/null && break; sleep 0.1; done
"$1" "$2"
"""


def test_a_real_chronyd_without_a_server(root_only):
    """It was just started: a note, and the command that lists its servers, which is run there too."""
    done = in_namespaces(ALONE, f"{SUPPORT}/clocknext.py")
    assert done.stdout == "chronyc -n sources\n", done.stderr
