"""`opskit tcp` on states of the TCP host that are really staged, each in a network namespace of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time

import inprocess
import netlab
import pytest
from atonce import AtOnce
from netstage import stage
from nextsteps import try_next
from users import reserved_user

at_once = AtOnce()
outcomes = at_once.fixture()


def started(*words):
    """Run opskit outside of any case's namespace."""
    words = [sys.executable, "-m", "opskit", *map(str, words)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, cwd="/")
    return inprocess.Ran(done.returncode, done.stdout, done.stderr)


def looked(staged, *options, code=None, user=None, inside=True):
    """The findings of one window in the namespace, by their codes, and the whole answer."""
    done = staged.run("tcp", "-i", "0.5", "-f", "json", *options, user=user, inside=inside)
    # On a busy machine a watch of a few tenths of a second is late.
    assert [line for line in done.stderr.splitlines() if " came late: " not in line] == []
    answer = json.loads(done.stdout)
    found = {each["code"]: each for each in answer["findings"]}
    assert done.returncode == any(each["severity"] != "note" for each in answer["findings"]), found
    if code is not None:
        assert code in found, found
    return found, answer


@at_once.test
def test_a_server_that_does_not_accept():
    """Recv-Q 5 above a backlog of 4, with the drops of the window: an error that names the process."""
    with stage("unaccepted", backlog=4, clients=12, again=8) as staged:
        found, _ = looked(staged, code="tcp-listen-queue-full")
        full = found.pop("tcp-listen-queue-full")
        assert full["severity"] == "error"
        assert (
            "the listen queue of 127.0.0.1:7100 is full: 5 connections wait for accept(), its backlog is 4"
            in full["summary"]
        )
        assert f"({staged.pid}) does not accept them in time" in full["summary"]
        assert full["next"] == f"opskit tcp {staged.pid}"
        assert not found, "its clients in SYN_SENT are explained"
        listed = staged.run("tcp", "--listen", "-i", "0.2").stdout
        assert "127.0.0.1:7100" in listed
        assert "The queue of 127.0.0.1:7100 is full" in listed


@at_once.test
def test_by_another_user():
    """The queue is known to everyone, its process is not."""
    with stage("unaccepted", backlog=4, clients=12) as staged, reserved_user() as user:
        if user is None:
            pytest.skip("needs a user without rights")
        found, _ = looked(staged, user=user.pw_uid, code="tcp-listen-queue-full")
        assert "an unknown process does not accept" in found["tcp-listen-queue-full"]["summary"]


@at_once.test
def test_a_process_in_another_network_namespace():
    """Root enters it, and reads its queues, counters and sysctls; none of ours stand for them."""
    with stage("ports", used=100) as staged:
        found, answer = looked(staged, staged.pid, inside=False, code="tcp-ports-exhausted")
        assert "all 100 local ports" in found["tcp-ports-exhausted"]["summary"]
        (space,) = answer["spaces"]
        assert space["namespace"] == os.readlink(f"/proc/{staged.pid}/ns/net")
        assert space["host"]["counters"]["Tcp.ActiveOpens"] == 100
    with stage("unaccepted", backlog=4, clients=12) as staged:
        found, _ = looked(staged, staged.pid, inside=False, code="tcp-listen-queue-full")
        assert f"({staged.pid}) does not accept them in time" in found["tcp-listen-queue-full"]["summary"]


@at_once.test
def test_drops_of_another_process():
    """Who asks about one process is told of the drops of the others in a note."""
    with stage("bursts") as staged:
        bystander = subprocess.Popen(["nsenter", f"--net=/proc/{staged.pid}/ns/net", "sleep", "60"])
        try:
            found, _ = looked(staged, bystander.pid, "-i", "0.8", code="tcp-listen-overflows")
            assert found["tcp-listen-overflows"]["severity"] == "note"
            assert "was dropped, of another process" in found["tcp-listen-overflows"]["summary"]
            assert try_next(found.values(), "tcp-listen-overflows", run=started) == "opskit tcp --listen"
        finally:
            bystander.kill()
            bystander.wait()


@at_once.test
def test_bursts():
    """A server that accepts, and loses some of each burst: its own drops, and none of the other's."""
    with stage("bursts") as staged:
        found, _ = looked(staged, "-i", "0.8", code="tcp-listen-queue-full")
        full = found["tcp-listen-queue-full"]
        assert "the listen queue of 127.0.0.1:7100" in full["summary"]
        assert ":7107" not in full["summary"]
        assert "a new connection was dropped" in full["summary"]
        listed = json.loads(staged.run("tcp", "--listen", "-i", "0.5", "-f", "json").stdout)["listeners"]
        dropped = {each["port"]: each["dropped"] for each in listed}
        assert dropped[7100] > 0 == dropped[7107]


@at_once.test
def test_what_happened_before():
    """Overflows of the past are a note."""
    with stage("overflowed") as staged:
        found, _ = looked(staged)
        assert [(each["severity"], code) for code, each in found.items()] == [("note", "tcp-drops-counted")]
        assert "connections dropped at full listen queues" in found["tcp-drops-counted"]["summary"]


@at_once.test
def test_connections_that_a_server_does_not_close():
    """300 in CLOSE_WAIT, with owner, age and descriptors, among 20 that work."""
    leaks(inbound=True, place="on port 7101")


@at_once.test
def test_connections_that_a_client_does_not_close():
    """The same, by the address of the server."""
    leaks(inbound=False, place="to 127.0.0.1:7101")


def leaks(*, inbound, place):
    with stage("close_wait", number=300, inbound=inbound, working=20, age_s=0.6) as staged:
        found, _ = looked(staged, code="tcp-close-wait")
        leak = found["tcp-close-wait"]
        assert leak["severity"] == "warning"
        assert (
            f"({staged.pid}) has 300 connections {place} that their peers closed and it has not (CLOSE_WAIT)"
            in leak["summary"]
        )
        assert re.search(r", the oldest at least [1-9][0-9.]* s ago", leak["summary"])
        assert "300 the same; fds " in leak["evidence"]
        assert try_next([leak], "tcp-close-wait", run=started) == f"opskit fds {staged.pid} -w"


@at_once.test
def test_connections_that_leak_slowly():
    """12 are a note; under a watch they grow, and are a warning with the rate."""
    with stage("close_wait", number=12, more_each=0.05) as staged:
        assert looked(staged, staged.pid, code="tcp-close-wait")[0]["tcp-close-wait"]["severity"] == "note"
        staged.go_on()
        found, _ = looked(staged, staged.pid, "-w", "-i", "0.3", "-c", "6", code="tcp-close-wait")
        assert found["tcp-close-wait"]["severity"] == "warning"
        assert "; they grew from " in found["tcp-close-wait"]["summary"]
        assert found["tcp-close-wait"]["summary"].endswith(" a minute")


@at_once.test
def test_ports_that_run_out():
    """connect() fails there, no counter moves, and the finding names the destination, the process and the range."""
    with stage("ports", used=100) as staged:
        assert staged.said["connect"] == 99  # EADDRNOTAVAIL
        found, _ = looked(staged, code="tcp-ports-exhausted")
        full = found["tcp-ports-exhausted"]
        assert full["severity"] == "error"
        assert "all 100 local ports for connections from 127.0.0.1 to 127.0.0.1:7102 are used" in full["summary"]
        assert f"({staged.pid})" in full["summary"]
    with stage("ports", used=93) as staged:
        assert staged.said["connect"] is None
        found, _ = looked(staged, code="tcp-ports-nearly-exhausted")
        assert "94 of 100 local ports" in found["tcp-ports-nearly-exhausted"]["summary"]


@at_once.test
def test_ports_in_time_wait():
    """To another host they are used; to this one connect() may take them again."""
    with stage("ports", used=100, closed=True, address="10.77.0.1") as staged:
        assert staged.said["connect"] == 99
        found, _ = looked(staged, code="tcp-ports-exhausted")
        assert "100 of them are in TIME_WAIT" in found["tcp-ports-exhausted"]["summary"]
        assert found["tcp-ports-exhausted"]["fix"] == "sysctl net.ipv4.tcp_tw_reuse=1"
    with stage("ports", used=100, closed=True, settled_s=1.2) as staged:
        assert staged.said["connect"] is None
        assert looked(staged)[0] == {}


@at_once.test
def test_a_host_that_does_not_answer():
    """A pile of SYN_SENT with the process and the address."""
    with stage("unanswered", number=8) as staged:
        found, _ = looked(staged, code="tcp-connect-unanswered")
        assert found["tcp-connect-unanswered"]["severity"] == "warning"
        assert (
            f"({staged.pid}) to 10.77.0.9:443 get no answer to their SYNs (SYN_SENT)"
            in found["tcp-connect-unanswered"]["summary"]
        )
        assert try_next(found.values(), "tcp-connect-unanswered", run=started) == f"opskit tcp {staged.pid}"


@at_once.test
def test_half_open_connections():
    """SYN cookies that nobody returns."""
    with stage("half_open") as staged:
        found, _ = looked(staged, code="tcp-syn-queue-full")
        assert found["tcp-syn-queue-full"]["severity"] == "warning"
        assert " SYN cookies in " in found["tcp-syn-queue-full"]["summary"]
        assert ", 0 came back: a SYN flood" in found["tcp-syn-queue-full"]["summary"]
        assert try_next(found.values(), "tcp-syn-queue-full", run=started) == "opskit tcp --listen"


@at_once.test
def test_a_full_connection_tracking_table():
    """Entries, limit and drops; nearly full is a warning."""
    with stage("tracked") as staged:
        limit = staged.said["limit"]
        found, _ = looked(staged, code="conntrack-nearly-full")
        assert "is 93 % full" in found["conntrack-nearly-full"]["summary"]
        staged.go_on()
        found, _ = looked(staged, code="conntrack-full")
        assert found["conntrack-full"]["severity"] == "error"
        assert (
            f"the connection tracking table is full: {limit:,} of {limit:,} entries"
            in found["conntrack-full"]["summary"]
        )
        assert "packets of new connections dropped in 5" in found["conntrack-full"]["summary"]


@at_once.test
def test_too_many_in_time_wait():
    """A note with the limit."""
    with stage("time_wait", limit=10) as staged:
        found, _ = looked(staged)
        assert [(code, each["severity"]) for code, each in found.items()] == [("tcp-time-wait-full", "note")]
        assert "10 of 10" in found["tcp-time-wait-full"]["summary"]


@at_once.test
def test_loss_of_the_host():
    """Of all data segments, within half a percent."""
    with stage("lossy", one_in=25) as staged:
        found, _ = looked(staged, "-i", "1.5", code="tcp-host-retransmits")
        assert found["tcp-host-retransmits"]["share"] == pytest.approx(0.04, abs=0.005)
        assert "tcp-host-out-of-order" in found
        assert try_next(found.values(), "tcp-host-retransmits", run=started) == "ip -s link"


@at_once.test
def test_a_small_receive_buffer():
    """A round trip of 40 ms fills it."""
    small_buffers(1, "the program or the kernel set it (SO_RCVBUF)", None, rcvbuf=65536)


@at_once.test
def test_a_small_send_buffer():
    """The host allows no larger one: the sysctl is the fix."""
    fix = "sysctl 'net.ipv4.tcp_wmem=4096 16384 524288'"
    small_buffers(0, "net.ipv4.tcp_wmem allows 128 KiB", fix, sysctl=("tcp_wmem", "4096 16384 131072"))


def small_buffers(side, words, fix, sysctl=None, **reader):
    with netlab.line(forth={"delay_ms": 20}, back={"delay_ms": 20}) as line:
        if sysctl is not None:
            command = ["python3", "-c", "open('/proc/sys/net/ipv4/{}', 'w').write('{}')".format(*sysctl)]
            assert line.run(0, *command).returncode == 0
        line.there("read", listen=7000, **reader)
        line.here("write", connect=7000, size=65536)
        time.sleep(0.8)
        found = {}
        for _ in range(3):  # on a crowded machine the line itself may be the limit for a second
            done = line.run(side, sys.executable, "-m", "opskit", "tcp", "-f", "json", "-i", "1")
            found = {each["code"]: each for each in json.loads(done.stdout)["findings"]}
            if "tcp-buffers-small" in found:
                break
        assert found["tcp-buffers-small"]["summary"].endswith(words)
        assert found["tcp-buffers-small"]["fix"] == fix


@at_once.test
def test_a_healthy_server():
    """Thousands of short connections a second, and TIME_WAIT by the thousand: no finding."""
    with stage("accepted") as staged:
        found, answer = looked(staged)
        assert found == {}
        assert answer["spaces"][0]["states"]["TIME-WAIT"] > 2000
