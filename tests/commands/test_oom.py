"""`opskit oom`: whole outputs, real kills in a cgroup, files of every kind, copies, and what is unknown."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import hsperf
import pytest
from cgroups import new_cgroup
from kernellogs import CGROUP, FORMS, JAVA, KERNELS, NO_LIMIT_KIB, Process, cgroup_report, export, host_report, killed
from nextsteps import try_next
from stracing import ACTS, OPENS, traced

from opskit.analysis.moments import moment_of
from opskit.analysis.oom import Span, judge, limit_of, missing_kills, outside_heap_bytes
from opskit.collect import oom as collect_oom
from opskit.collect.kernel_log import Left, left_counters
from opskit.collect.oom import Facts, Known, Source, _owner
from opskit.collect.oom_counters import Counted, CrashLog
from opskit.host import Host
from opskit.jvm.perfdata.counters import Heap
from opskit.proc.cgroup.owner import CgroupOwner
from opskit.proc.fs import ProcFS
from opskit.proc.oom.lines import When
from opskit.proc.oom.log import read_log
from opskit.proc.oom.records import Held, Task
from opskit.render.formats.table import render
from opskit.render.report import About
from opskit.render.views.oom import Shown, details, report, sentence

LOGS = Path(__file__).resolve().parent.parent / "fixtures" / "kernel-logs"
MIB = 1 << 20
DAY_S = 86400.0
DMESG = FORMS["dmesg"]
ALLOCATE = """
import sys
mib = int(sys.argv[1])
kept = bytearray(mib << 20)
for at in range(0, len(kept), 4096):
    kept[at] = 1
print(len(kept))
"""


def masked(text):
    """Without host, time, version and the folder of the logs."""
    text = text.replace(str(LOGS), "LOGS")
    text = re.sub(
        r'"(host|time_utc|version|command_line)": "[^"]*"(?=,\n "(?:time_utc|version|command_line|target)")',
        r'"\1": "…"',
        text,
    )
    text = re.sub(r"^\S+  \S+Z  opskit \S+$", "…", text, flags=re.MULTILINE)
    text = re.sub(r"^- (host|time|opskit): .*$", r"- \1: …", text, flags=re.MULTILINE)
    return re.sub(r"^    \$ .*$", "    $ …", text, flags=re.MULTILINE)


@pytest.fixture
def saved(tmp_path):
    """A function that saves a text or bytes to a file; its path."""

    def save(content, name="kern.log"):
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return str(path)

    return save


def document(done):
    assert done.code in (0, 1), done.err
    return json.loads(done.out)


@pytest.mark.parametrize("format_", ["text", "table", "markdown", "json", "csv"])
@pytest.mark.parametrize(
    "name", ["6.18-cgroup-v1.raw", "el7-pod.messages", "4.4-host.dmesg", "5.10-journal.json", "two-mixed.raw"]
)
def test_whole_output(inprocess, golden, name, format_):
    """What is printed, in every format."""
    done = inprocess("oom", LOGS / name, "-v", "-f", format_)
    assert done.code == 1
    golden(f"oom-{name.rpartition('.')[0]}.{format_}", masked(done.out))


def test_a_real_log(inprocess):
    """The sentence, from a kill on a real kernel."""
    done = inprocess("oom", LOGS / "6.18-cgroup-v1.raw")
    assert done.out.startswith(
        "killed 8125 (java, orders.service): its cgroup /shop is at its limit of 400 MiB; it had 418 MiB resident; 53668.371263 s after "
        "boot; next: opskit mem\n"
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_by_standard_input(inprocess, kernel):
    """One sentence a kill; exit code 1."""
    done = inprocess("oom", "-", stdin=DMESG(cgroup_report(kernel)))
    assert done.code == 1
    assert done.out.startswith(
        f"killed 4242 (java, orders.service): its cgroup {CGROUP} is at its limit of 400 MiB; it had 402 MiB resident"
    )
    done = inprocess("oom", "-", stdin=DMESG(host_report(kernel)))
    assert done.out.startswith(
        "killed 4242 (java): the whole host was out of memory, 32 MiB free, 0 B of 2 GiB swap free; it had 402 MiB"
    )


# --- real kills ---


@pytest.fixture
def kernel_log_readable():
    """Skip where the kernel's log cannot be read, or is not of this machine's PIDs."""
    try:
        os.close(os.open("/dev/kmsg", os.O_RDONLY))
    except OSError:
        pytest.skip("needs to read /dev/kmsg")


def limited(place, mib):
    """Set the memory limit, without swap."""
    for name, limit in (
        ("memory.limit_in_bytes", mib << 20), ("memory.max", mib << 20), ("memory.memsw.limit_in_bytes", mib << 20), ("memory.swap.max", 0),
    ):  # fmt: skip
        if (place / name).exists():
            (place / name).write_text(str(limit))


def start_inside(place, *words):
    return subprocess.Popen(
        ["sh", "-c", f'echo $$ > {place}/cgroup.procs; exec "$@"', "sh", *words], stdout=subprocess.DEVNULL
    )


def test_a_process_that_the_kernel_kills(inprocess, root_only, initial_pid_namespace, kernel_log_readable):
    """A child cgroup's process at the limit of the one above: victim, both paths, limit, amounts, age, exit code; then --since."""
    with new_cgroup("memory", f"opskit-test-oom-{os.getpid()}", "memory.limit_in_bytes memory.max") as place:
        limited(place, 40)
        own = place / "orders.service"
        own.mkdir()
        try:
            process = start_inside(own, sys.executable, "-c", ALLOCATE, "200")
            assert process.wait(60) == -9
        finally:
            own.rmdir()
    found = document(inprocess("oom", "--since", "2m", "-f", "json"))
    [kill] = [each for each in found["kills"] if each["pid"] == process.pid]
    path = f"/{place.name}"
    assert (kill["scope"], kill["cgroup"], kill["task_cgroup"], kill["unit"]) == (
        "cgroup",
        path,
        f"{path}/orders.service",
        "orders.service",
    )
    assert (kill["limit_bytes"], kill["outcome"], kill["user"]) == (40 * MIB, "killed", "root")
    assert 35 * MIB < kill["anon_bytes"] <= 41 * MIB
    assert 0 <= kill["ago_s"] < 120
    assert 0 <= kill["held"]["anon_bytes"] < 42 * MIB  # the kernel's statistics may lag
    row = next(task for task in kill["tasks"] if task["pid"] == process.pid)
    assert abs(row["rss_bytes"] - kill["rss_bytes"]) < MIB
    finding = next(each for each in found["findings"] if each["code"] == "oom-killed")
    assert finding["severity"] == "error"
    try_next(found["findings"], "oom-killed")
    done = inprocess("oom", "-n", "0", "-f", "text")
    assert done.code == 1
    assert f"\nkilled {process.pid} (" in f"\n{done.out}"
    time.sleep(1.1)
    later = document(inprocess("oom", "--since", "1s", "-f", "json"))
    assert process.pid not in {each["pid"] for each in later["kills"]}


def test_the_same_kill_by_dmesg_is_the_same(inprocess, root_only, initial_pid_namespace, kernel_log_readable):
    """Forms of dmesg that this machine prints give the victims that /dev/kmsg gives."""
    with new_cgroup("memory", f"opskit-test-oom2-{os.getpid()}", "memory.limit_in_bytes memory.max") as place:
        limited(place, 30)
        process = start_inside(place, sys.executable, "-c", ALLOCATE, "100")
        assert process.wait(60) == -9
    tried = 0
    for options in (["-r"], [], ["-T"], ["-x"], ["--time-format=iso"], ["--time-format=raw"]):
        made = subprocess.run(["dmesg", *options], capture_output=True, check=False)
        if made.returncode == 0 and made.stdout:
            found = document(inprocess("oom", "-", "-f", "json", stdin=made.stdout.decode("utf-8", "replace")))
            [kill] = [each for each in found["kills"] if each["pid"] == process.pid]
            assert (kill["cgroup"], kill["limit_bytes"], kill["invoker_pid"]) == (
                f"/{place.name}",
                30 * MIB,
                process.pid,
            ), options
            tried += 1
    assert tried >= 3


def test_a_jvm_that_leaves_its_counters(inprocess, workload, root_only, initial_pid_namespace, kernel_log_readable):
    """How much of its heap was committed, and how much was outside of it."""
    with new_cgroup("memory", f"opskit-test-oom3-{os.getpid()}", "memory.limit_in_bytes memory.max") as place:
        limited(place, 120)
        running = workload(
            "sleep=1", options=("-Xmx512m", "-Xms400m", "-Xmn300m", "-XX:+UseSerialGC"),
            wrapper=("sh", "-c", f'echo $$ > {place}/cgroup.procs; exec "$@"', "sh"),
        )  # fmt: skip
        running.process.stdin.write(b"+" * 8000)  # 192 MB of objects
        running.process.stdin.flush()
        running.process.wait(60)
        found = document(inprocess("oom", "--since", "2m", "-f", "json"))
    [kill] = [each for each in found["kills"] if each["pid"] == running.pid]
    if kill["main"] is None:
        pytest.skip("another JVM of this user has removed the file meanwhile")
    assert kill["main"] == "Workload"
    assert kill["heap_max_bytes"] >= 480 * MIB  # Serial: without one survivor space
    assert kill["outside_heap_bytes"] is None  # less was resident than the heap had committed
    sentence = next(line for line in found["verdict"] if line.startswith(f"killed {running.pid} (java"))
    assert f"; its heap was {round(kill['heap_committed_bytes'] / MIB)} of -Xmx" in sentence


def test_the_age_of_a_kill_is_by_the_clock_of_the_log():
    """Since boot without the time in which the machine was suspended, which /proc/uptime includes."""
    host = Host(ProcFS())
    host.monotonic = lambda: 1234.5
    found = collect_oom.collect(host, collect_oom.Request())
    assert found.end.uptime_s == 1234.5
    assert found.uptime_s != 1234.5


def test_counters_of_another_user_are_not_the_victims(tree):
    """Anybody may make a directory in /tmp whose name begins as a JVM's."""
    tmp = "tmp/hsperfdata_app/4242"
    root = tree(
        {
            "proc/uptime": "1 1\n",
            "proc/1/comm": "a\n",
            tmp: hsperf.build({"sun.rt.createVmBeginTime": 1000, "sun.rt.javaCommand": "orders.Main x"}),
        }
    )
    host, uid = Host.at(str(root), None), os.stat(f"{root}/{tmp}").st_uid
    for owner, expected in ((uid, "orders.Main"), (None, "orders.Main"), (uid + 1, None)):
        left = left_counters(host, 4242, 2000.0, owner)
        assert (left and left.main) == expected


def test_a_name_that_imitates_the_log_on_a_real_kernel(
    inprocess, root_only, initial_pid_namespace, kernel_log_readable
):
    """A line feed and a bracket in a name: /dev/kmsg escapes it, and it stays a name."""
    code = "import ctypes\nctypes.CDLL(None).prctl(15, b'x\\n(a) tot:\\x1b[1m')\n" + ALLOCATE
    with new_cgroup("memory", f"opskit-test-oom4-{os.getpid()}", "memory.limit_in_bytes memory.max") as place:
        limited(place, 30)
        process = start_inside(place, sys.executable, "-c", code, "100")
        assert process.wait(60) == -9
    found = document(inprocess("oom", "--since", "2m", "-f", "json"))
    [kill] = [each for each in found["kills"] if each["pid"] == process.pid]
    assert kill["name"] == "x\\x0a(a) tot:\\x1b[1m"
    assert kill["cgroup"] == f"/{place.name}"
    shown = inprocess("oom", "--since", "2m", "-f", "table").out
    assert "\x1b" not in shown
    assert f"killed {process.pid} (x\\x0a(a) tot:\\x1b[1m)" in shown


def test_what_a_process_writes_to_kmsg_is_no_kill(inprocess, root_only, kernel_log_readable):
    """Its facility is that of user space."""
    try:
        Path("/dev/kmsg").write_text(f"<3>{killed('6.18', Process(3, 'opskit-forged', 5000))}\n")
    except OSError:
        pytest.skip("needs to write to /dev/kmsg")
    found = document(inprocess("oom", "--since", "2m", "-f", "json"))
    assert "opskit-forged" not in {each["name"] for each in found["kills"]}


# --- files ---


def test_files_of_every_kind(inprocess, saved):
    """Plain, gzip, UTF-16, several at once: each kill once."""
    one, other = DMESG(cgroup_report("5.10")), DMESG(cgroup_report("5.10", Process(77, "python3", 50000)))
    plain, packed = saved(one), saved(other, "kern.log.1.gz")
    wide = saved(one.encode("utf-16"), "wide.log")
    assert [each["pid"] for each in document(inprocess("oom", plain, packed, "-f", "json"))["kills"]] == [4242, 77]
    assert [each["pid"] for each in document(inprocess("oom", wide, plain, "-f", "json"))["kills"]] == [4242]


def test_a_log_without_a_kill(inprocess, saved):
    """One line: what was read; exit code 0."""
    path = saved("Nov 24 16:00:00 web1 kernel: eth0: link up\n" * 1000)
    done = inprocess("oom", path)
    assert (done.code, done.out) == (0, f"no OOM kill in {path}: 1,000 lines read\n")
    assert inprocess("oom", "-", stdin="").out == "no OOM kill in standard input: 0 lines read\n"


def test_since_and_until(inprocess, saved):
    """A date, and a duration before the last line; kills outside are counted, kills without a time are shown."""
    text = "".join(
        f"2026-11-2{day}T10:00:00+00:00 web1 kernel: {line}\n"
        for day in (1, 2, 3)
        for line in cgroup_report("6.8", Process(day, "java", 50000))
    )
    path = saved(text + "2026-11-23T11:00:00+00:00 web1 kernel: eth0: link up\n")
    cases = {
        ("--since", "2026-11-22"): [2, 3], ("--until", "2026-11-22T12:00"): [1, 2], ("--since", "26h"): [2, 3], ("--since", "2h"): [3],
        ("--since", "26h", "--until", "24h"): [2], ("--since", "30m"): [], ("--since", "2026-11-22T11:30+0200"): [2, 3],
        ("--since", "2026-11-22T10:30Z"): [3],
    }  # fmt: skip
    for options, expected in cases.items():
        done = inprocess("oom", path, *options, "-f", "json")
        assert [each["pid"] for each in json.loads(done.out)["kills"]] == expected, options
        assert done.code == bool(expected)
        assert json.loads(done.out)["left_out"] == 3 - len(expected)
    done = inprocess("oom", path, "--since", "30m")
    assert (
        done.out
        == f"no OOM kill in {path}: {text.count(chr(10)) + 1} lines read; 3 kills outside of --since and --until\n"
    )
    undated = inprocess("oom", "-", "--since", "2h", stdin=FORMS["bare"](cgroup_report("6.8")))
    assert undated.code == 1
    assert "1 kill without a time that can be compared with --since and --until: they are shown" in undated.err


@pytest.mark.parametrize(
    ("since", "until"),
    [("2h", "3h"), ("2026-11-22", "2026-11-21T23:59"), ("2026-11-22T10:00Z", "2026-11-22T10:30+0100")],
)
def test_a_span_without_time(inprocess, since, until):
    """Invalid usage; the other order is none."""
    done = inprocess("oom", "--since", since, "--until", until)
    assert (done.code, done.err.splitlines()[0]) == (2, "opskit: --since is after --until: no time is between them")
    assert inprocess("oom", "-", "--since", until, "--until", since, stdin="").code == 0


@pytest.mark.parametrize("word", ["yesterday", "-1", "2026-13-01", "1x"])
def test_times_that_are_none(inprocess, word):
    """Invalid usage."""
    done = inprocess("oom", f"--since={word}")
    assert done.code == 2
    assert "is not a time; write a date" in done.err


def test_a_binary_journal(inprocess, saved):
    """The command that reads it."""
    path = saved(b"LPKSHHRH" + bytes(5000), "system.journal")
    done = inprocess("oom", path)
    assert done.code == 2
    assert (
        done.err
        == f"opskit: {path}: is a binary journal; read it with: journalctl --file {path} -o json --no-pager | opskit oom -\n"
    )


def test_files_that_cannot_be_read(inprocess, tmp_path):
    """One line each, exit code 2."""
    for path in (tmp_path, tmp_path / "none"):
        done = inprocess("oom", path)
        assert done.code == 2
        assert done.err.startswith("opskit: ")
        assert done.err.count("\n") == 1
    assert inprocess("oom", "-", "-").code == 2


def test_csv_has_a_row_each_kill(inprocess, saved):
    """With the fields of the JSON object."""
    path = saved(DMESG([*cgroup_report("6.8"), *cgroup_report("6.8", Process(77, "b,c", 50000))]))
    rows = list(csv.DictReader(io.StringIO(inprocess("oom", path, "-f", "csv").out)))
    assert [(row["pid"], row["name"], row["limit_bytes"]) for row in rows] == [
        ("4242", "java", "419430400"),
        ("77", "b,c", "419430400"),
    ]


def test_many_kills_fit_on_a_screen(inprocess, saved):
    """The last ones first, three sentences, three findings; -n 0 shows all."""
    text = "".join(
        DMESG(cgroup_report("6.8", Process(100 + n, f"p{n % 9}", 50000), cgroup=f"/c{n % 7}")) for n in range(60)
    )
    done = inprocess("oom", saved(text), "-f", "text")
    assert done.out.count("\nkilled ") + done.out.startswith("killed ") == 3
    assert done.out.startswith("killed 159 (p5")
    assert "… 57 earlier kills (-n 0)" in done.out
    assert done.out.count("\nerror oom-killed") == 4
    assert inprocess("oom", saved(text), "-n", "0").out.count("killed 1") == 60


# --- what other programs write ---

SIGNS = {
    "systemd-oomd[612]: Killed /system.slice/batch.service due to memory pressure for /system.slice being 85.03% > 60.00% for > 20s": (
        "oom-killed-by-daemon", "error", "systemd-oomd killed /system.slice/batch.service"),
    'earlyoom[613]: sending SIGTERM to process 2119 uid 1000 "chrome": badness 305, VmRSS 120 MiB': (
        "oom-killed-by-daemon", "error", 'earlyoom killed 2119 uid 1000 "chrome"'),
    "systemd[1]: app.service: A process of this unit has been killed by the OOM killer.": ("oom-reported", "error", "app.service"),
    "systemd[1]: app.service: Failed with result 'oom-kill'.": ("oom-reported", "error", "app.service"),
    "systemd[1]: app.service: Main process exited, code=killed, status=9/KILL": ("exit-137", "note", "app.service ended by SIGKILL"),
    "dockerd[7]: container=web1 exited with code 137": ("exit-137", "note", "web1 ended by SIGKILL"),
    'kubelet[7]: {"reason":"OOMKilled","exitCode":137}': ("oom-reported", "error", "a container"),
    '"OOMKilled": true,': ("oom-reported", "error", "a container"),
    "memory-demo-2   0/1   OOMKilled   1   37s": ("oom-reported", "error", "a container"),
    "Last State: Terminated (OOMKilled, Exit Code 137)": ("oom-reported", "error", "a container"),
    "Warning OOMKilling Memory cgroup out of memory: Kill process 4481 (stress) score 1994": ("oom-reported", "error", "a container"),
    'kubelet[7]: "Generic (PLEG): container finished" containerID=3f2a exitCode=137': ("exit-137", "note", "3f2a ended by SIGKILL"),
    "dockerd[7]: container 3f2a9c01d2e4 exited with exit code 137": ("exit-137", "note", "3f2a9c01d2e4 ended by SIGKILL"),
    "kubelet[7]: the container finished with exit code 137": ("exit-137", "note", "a process ended by SIGKILL"),
    'containerd[8]: level=info msg="TaskOOM event container_id:\\"3f2a9c01d2e4\\""': ("oom-reported", "error", "3f2a9c01d2e4"),
    'kubelet[7]: "System OOM encountered, victim process: java, pid: 4242"': ("oom-reported", "error", "of java"),
    '"exitCode": 137,': ("exit-137", "note", "a process ended by SIGKILL"),
    "# There is insufficient memory for the Java Runtime Environment to continue.": (
        "jvm-native-memory-refused", "warning", "no OOM kill"),
    "Terminating due to java.lang.OutOfMemoryError: Java heap space": ("java-heap-exhausted", "note", "no OOM kill"),
}  # fmt: skip


@pytest.mark.parametrize("line", SIGNS)
def test_signs_of_user_space(inprocess, line):
    """What each is taken for; only kills, and refused memory, are exit code 1."""
    code, severity, words = SIGNS[line]
    text = line if line[0] in '"#TmLW' else f"Nov 24 16:00:00 web1 {line}"
    done = inprocess("oom", "-", "-f", "json", stdin=f"{text}\n")
    [finding] = json.loads(done.out)["findings"]
    assert (finding["code"], finding["severity"]) == (code, severity)
    assert words in finding["summary"]
    assert done.code == (severity != "note")
    assert json.loads(done.out)["kills"] == []
    reported = code in ("oom-killed-by-daemon", "oom-reported")
    assert json.loads(done.out)["verdict"] == [
        f"no OOM kill in standard input: 1 line read{'; other programs report kills' * reported}"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "app[1]: systemd-oomd killed nothing", "app[1]: Killed /system.slice/x.service due to memory pressure for /",
        'app[1]: sending SIGTERM to process 1 uid 0 "init": x', "app[1]: x.service: Failed with result 'oom-kill'.",
        "app[1]: 'OOMKilled': false", "app[1]: handler of OOMKilled pods", "kubelet[1]: OOMKilled:false", 'app[1]: "OOMKilled":false', 'app[1]: "exitCode":0', "app[1]: port 137 is open", "app[1]: code 1370",
    ],
)  # fmt: skip
def test_what_is_no_sign(inprocess, line):
    """Programs that are not the named ones, and other numbers."""
    done = inprocess("oom", "-", "-f", "json", stdin=f"Nov 24 16:00:00 web1 {line}\n")
    assert (done.code, json.loads(done.out)["findings"]) == (0, [])


def test_an_hs_err_file(inprocess, saved):
    """What the JVM asked for is in the evidence; it is no kill."""
    text = (
        "#\n# There is insufficient memory for the Java Runtime Environment to continue.\n"
        "# Native memory allocation (mmap) failed to map 65536 bytes for committing reserved memory.\n# Possible reasons:\n"
    )
    [finding] = document(inprocess("oom", saved(text, "hs_err_pid7.log"), "-f", "json"))["findings"]
    assert finding["code"] == "jvm-native-memory-refused"
    assert "failed to map 65536 bytes" in finding["evidence"]
    try_next([finding], "jvm-native-memory-refused")


def test_hs_err_files_of_this_machine(inprocess, workload, tmp_path):
    """In the working directory of a JVM that runs: once, though two run there; a crash for another reason is left alone."""
    text = "# There is insufficient memory for the Java Runtime Environment to continue.\n# Native memory allocation (malloc) failed to allocate 5 bytes\n"
    (tmp_path / "hs_err_pid77.log").write_text(text)
    (tmp_path / "hs_err_pid78.log").write_text("# A fatal error has been detected by the Java Runtime Environment:\n")
    (tmp_path / "hs_err_pid79.log").symlink_to("hs_err_pid77.log")
    for _ in range(2):
        workload("sleep=1", cwd=str(tmp_path))
    found = document(inprocess("oom", "-f", "json"))
    [crash] = [each for each in found["crash_logs"] if "hs_err_pid77" in each["path"]]
    assert crash["line"] == "Native memory allocation (malloc) failed to allocate 5 bytes"
    assert not [
        each for each in found["crash_logs"] if "hs_err_pid78" in each["path"] or "hs_err_pid79" in each["path"]
    ]
    [finding] = [each for each in found["findings"] if "hs_err_pid77" in str(each["entity"]["id"])]
    assert (finding["code"], finding["severity"]) == ("jvm-native-memory-refused", "warning")
    assert try_next([finding], "jvm-native-memory-refused").startswith("opskit crash ")


def test_many_hs_err_files_are_four_findings():
    """The last three, and one for the others: a note where these are old."""
    crashes = [CrashLog(f"/tmp/hs_err_pid{day}.log", "no memory", (day + 0.5) * DAY_S) for day in (3, 1, 0, 2, 4)]
    found = judge(facts(None, counted=0, crashes=crashes)).findings
    assert [(each.severity, each.entity.id) for each in found] == [
        ("warning", "/tmp/hs_err_pid0.log"), ("note", None), ("note", "/tmp/hs_err_pid1.log"), ("note", "/tmp/hs_err_pid2.log"),
    ]  # fmt: skip
    assert found[1].summary == "2 more JVMs got no native memory and ended: no OOM kill"


def test_systemd_says_what_the_kernel_says(inprocess):
    """No second finding for the unit whose kill the kernel's log has."""
    unit = (
        "Nov 24 16:00:00 web1 systemd[1]: orders.service: A process of this unit has been killed by the OOM killer.\n"
    )
    other = unit.replace("orders", "billing")
    report = FORMS["syslog"](cgroup_report("6.8"))
    found = document(inprocess("oom", "-", "-f", "json", stdin=report + unit))
    assert [each["code"] for each in found["findings"]] == ["oom-killed"]
    found = document(inprocess("oom", "-", "-f", "json", stdin=report + other))
    assert [each["code"] for each in found["findings"]] == ["oom-killed", "oom-reported"]


def test_a_log_that_names_no_victim(inprocess):
    """A finding of its own, and no kill."""
    lines = host_report("5.10")
    done = inprocess(
        "oom",
        "-",
        "-f",
        "json",
        stdin=DMESG([*lines[:-2], "Kernel panic - not syncing: Out of memory: compulsory panic_on_oom"]),
    )
    found = document(done)
    assert (done.code, found["kills"], found["others"][0]["outcome"]) == (1, [], "panic")
    try_next(found["findings"], "oom-no-victim")


# --- copies ---


def copy_of(tree, files):
    """A captured tree with these files below var/log."""
    return tree({"proc/1/comm": "init\n", "proc/uptime": "200000.0 1.0\n", "proc/version": "Linux\n", **files})


def test_logs_of_another_root(inprocess, tree):
    """kern.log and messages, rotated and packed, each kill once; other files are left alone."""
    report, other = (
        FORMS["syslog"](cgroup_report("5.10")),
        FORMS["syslog"](cgroup_report("5.10", Process(77, "b", 50000))),
    )
    root = copy_of(tree, {
        "var/log/kern.log": report, "var/log/messages-20261101.gz": gzip.compress(other.encode()), "var/log/syslog.1": report,
        "var/log/mail.log": report.replace("4242", "4343"), "var/log/messages.bad.gz": b"x",
    })  # fmt: skip
    done = inprocess("oom", "--root", root, "-f", "json")
    assert sorted(each["pid"] for each in document(done)["kills"]) == [77, 4242]
    assert done.code == 1


def test_the_logs_of_an_sos_report(inprocess, tree):
    """Its dmesg, and the journal as text."""
    root = copy_of(tree, {
        "sos_commands/kernel/dmesg": DMESG(cgroup_report("5.10")),
        "sos_commands/logs/journalctl_--no-pager_--boot": FORMS["journal short"](cgroup_report("5.10", Process(77, "b", 50000))),
    })  # fmt: skip
    assert sorted(each["pid"] for each in document(inprocess("oom", "--root", root, "-f", "json"))["kills"]) == [
        77,
        4242,
    ]


def test_logs_of_another_root_are_read_to_a_bound(inprocess, tree, monkeypatch):
    """Text that a small gzip file unpacks to, and large files: they are named, smaller ones are read."""
    monkeypatch.setattr(collect_oom, "_MOST_TEXT_BYTES", 1 << 20)
    monkeypatch.setattr(collect_oom, "_MOST_BYTES", 100_000)
    root = copy_of(tree, {
        "var/log/kern.log": b"x\n" * 60_000, "var/log/messages": FORMS["syslog"](cgroup_report("5.10")), "var/log/syslog.1.gz": gzip.compress(b"x\n" * (1 << 20)),
    })  # fmt: skip
    found = document(inprocess("oom", "--root", root, "-f", "json"))
    assert [each["pid"] for each in found["kills"]] == [4242]
    assert (
        f"could not read /var/log/kern.log: more than 0 MiB of logs; name it: opskit oom {root}/var/log/kern.log"
        in found["notes"]
    )
    assert any("could not read /var/log/syslog.1.gz: more than" in line for line in found["notes"])


def test_boot_messages_are_read_in_copies_alone(tree, monkeypatch):
    """The stamps of /var/log/dmesg are uptimes of any boot."""
    root = copy_of(tree, {"var/log/dmesg.0": "x\n", "var/log/dmesg": "x\n", "var/log/kern.log": "x\n"})
    host = Host.at(str(root), None)
    names = ["/var/log/dmesg", "/var/log/dmesg.0", "/var/log/kern.log"]
    assert sorted(collect_oom._log_files(host)) == names
    monkeypatch.setattr(host.fs, "is_own", lambda: True)
    assert [*collect_oom._log_files(host)] == names[-1:]


def test_a_damaged_log_of_another_root(inprocess, tree):
    """It is named; the others are read."""
    packed = gzip.compress(FORMS["syslog"](cgroup_report("5.10")).encode())
    root = copy_of(
        tree, {"var/log/kern.log": DMESG(cgroup_report("5.10")), "var/log/kern.log.1.gz": packed[: len(packed) // 2]}
    )
    done = inprocess("oom", "--root", root)
    assert done.code == 1
    assert "could not read /var/log/kern.log.1.gz: truncated gzip" in done.err


def test_a_copy_without_logs(inprocess, tree):
    """Its counters are shown; a journal is binary; nothing at all is exit code 2."""
    counted = {"proc/vmstat": "pgfault 1\noom_kill 3\n"}
    done = inprocess("oom", "--root", copy_of(tree, counted))
    assert done.code == 0
    assert (
        "note oom-counted (host): 3 OOM kills since boot are in no log that could be read; when is unknown" in done.out
    )


def test_a_copy_with_a_journal_alone(inprocess, tree):
    """The command that reads it."""
    root = copy_of(tree, {"var/log/journal/0123/system.journal": b"LPKSHHRH", "proc/vmstat": "oom_kill 1\n"})
    done = inprocess("oom", "--root", root)
    assert f"journalctl -D {root}/var/log/journal -o json --no-pager | opskit oom -" in done.out + done.err


def test_a_copy_with_nothing_at_all(inprocess, tree):
    """Whether something was killed is unknown: exit code 2."""
    done = inprocess("oom", "--root", copy_of(tree, {}))
    assert done.code == 2
    assert done.out == "no log of the kernel is there: whether it killed a process is unknown\n"


V1 = {
    "proc/1/mountinfo": "25 20 0:22 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
    "sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
    "sys/fs/cgroup/memory/a/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n",
    "sys/fs/cgroup/memory/a/b/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
}
V2 = {
    "proc/1/mountinfo": "25 20 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "sys/fs/cgroup/cgroup.controllers": "memory\n",
    "sys/fs/cgroup/a/memory.events": "low 0\nhigh 0\nmax 5\noom 2\noom_kill 2\n",
    "sys/fs/cgroup/a/b/memory.events": "low 0\nhigh 0\nmax 5\noom 2\noom_kill 2\n",
    "sys/fs/cgroup/c/memory.events": "low 0\nhigh 0\nmax 5\noom 0\noom_kill 0\n",
}


@pytest.mark.parametrize("files", [V1, V2], ids=["v1", "v2"])
def test_counters_of_cgroups(inprocess, tree, files):
    """Both versions: the cgroup in which the processes were, once."""
    found = document(inprocess("oom", "--root", copy_of(tree, {**files, "proc/vmstat": "oom_kill 2\n"}), "-f", "json"))
    assert found["cgroups"] == [{"path": "/a/b", "kills": 2}]
    assert found["counted"] == 2
    try_next(found["findings"], "oom-counted")


# --- judgement ---


def facts(ago_s, *, uptime_s=30 * DAY_S, **more):
    [kill] = read_log([DMESG(cgroup_report("6.8")).encode()]).kills
    end = When(1_800_000_000.0, uptime_s, 1_800_000_000.0, "now")
    when = When(end.time_s - ago_s, None, end.time_s - ago_s, "then") if ago_s is not None else When()
    kills = [Known(kill._replace(when=when), "log", ago_s)] if ago_s is not None else []
    return Facts(kills, [], [], is_live=True, end=end, uptime_s=uptime_s, **more)


@pytest.mark.parametrize(("ago_s", "severity"), [(60.0, "error"), (DAY_S - 1, "error"), (DAY_S + 1, "note")])
def test_old_kills_are_notes(ago_s, severity):
    """After 24 hours, on this machine."""
    [finding] = judge(facts(ago_s)).findings
    assert (finding.code, finding.severity) == ("oom-killed", severity)


@pytest.mark.parametrize(
    ("uptime_s", "severity"), [(3600.0, "warning"), (DAY_S - 1, "warning"), (30 * DAY_S, "note")]
)  # fmt: skip
def test_counted_kills_are_a_warning_where_they_are_recent(uptime_s, severity):
    """A machine that has run for less than a day; otherwise when they were is unknown."""
    [finding] = judge(facts(None, uptime_s=uptime_s, counted=2, cgroups=[Counted("/a", 2)])).findings
    assert (finding.code, finding.severity, finding.entity.id) == ("oom-counted", severity, "/a")
    assert missing_kills(facts(None, counted=2, is_whole=True)) == 0


def test_old_kills_are_shown_with_their_date():
    """The age alone where it was today."""
    assert sentence(facts(5 * DAY_S).kills[0]).endswith("; then, 5 days ago; next: opskit mem")
    assert sentence(facts(60.0).kills[0]).endswith("; 60.0 s ago; next: opskit mem")


def test_since_leaves_out_what_was_before():
    """Crash logs by their age; kills that the logs lack, where the logs reach back to --since."""
    crash = CrashLog("/tmp/hs_err_pid7.log", "no memory", 7200.0)
    machine = facts(None, uptime_s=36_000.0, counted=2, covers_s=5400.0, crashes=[crash])
    found = {since: judge(machine, Span(moment_of(since))) for since in ("3h", "90m", "1h")}
    codes = {since: sorted(finding.code for finding in result.findings) for since, result in found.items()}
    assert codes == {"3h": ["jvm-native-memory-refused", "oom-counted"], "90m": ["oom-counted"], "1h": []}
    assert (found["3h"].facts.crashes, found["1h"].facts.crashes) == ([crash], [])


@pytest.mark.parametrize("swap_kib", [0, 102_400])
def test_a_limit_of_swap_in_v2_is_not_what_was_full(swap_kib):
    """Its swap is often used up or forbidden; v1 counts memory and swap together."""
    text = (
        DMESG(cgroup_report("5.10"))
        .replace("usage 409600kB", "usage 399000kB")
        .replace(f"swap: usage 0kB, limit {NO_LIMIT_KIB}kB", f"swap: usage {swap_kib}kB, limit {swap_kib}kB")
    )
    [kill] = read_log([text.encode()]).kills
    assert kill.swap.limit_bytes == swap_kib << 10
    assert limit_of(Known(kill, "log")) == ("limit", 400 * MIB)


@pytest.mark.parametrize(
    ("form", "when"),
    [("rfc 5424", "2026-11-24T16:00:00 "), ("dmesg -T", "Nov 24 16:00:00 2026 "), ("journal json", "2025-11-24T16:00:00Z "), ("dmesg", "1215.612 s ")],
)  # fmt: skip
def test_a_table_of_80_columns(form, when):
    """Each kill has one line, with whole times, PIDs and sizes; names are shortened."""
    pod = "/kubepods/burstable/podd5b1f6a4-1c1a-11ec-9f0c-0a58a9feac02"
    text = FORMS[form](
        cgroup_report(
            "6.8", Process(4194303, "x\\x0a(a) tot: 15", 103000, adj=968), cgroup=pod, own=f"{pod}/{'3f' * 32}"
        )
    )
    found = judge(
        Facts(
            [Known(kill, "log", owner=_owner(kill)) for kill in read_log([text.encode()]).kills],
            [],
            [],
            is_live=False,
            end=When(),
        )
    )
    lines = render(report(About("", "", "", ""), found, Shown()), 80, 24).splitlines()
    [row] = [line for line in lines if line.startswith(when)]
    assert " 4194303 " in row
    assert " 402 MiB   400 MiB " in row
    assert lines[lines.index(row) + 1].startswith("largest processes")


def test_the_heap_of_a_jvm():
    """What was surely outside of it: anonymous memory above what the heap had committed."""
    [known] = facts(60.0).kills
    kill = known.kill._replace(
        pid=23345, cgroup="/orders", tasks=(), anon_bytes=276 * MIB, task_cgroup="/orders/orders.service"
    )
    owner = CgroupOwner("/orders/orders.service", unit="orders.service")
    left = Left("Orders", Heap(40 * MIB, 96 * MIB, 256 * MIB), "/tmp/hsperfdata_app/23345")
    known = known._replace(kill=kill, left=left, owner=owner)
    assert sentence(known) == (
        "killed 23345 (java, orders.service): its cgroup /orders is at its limit of 400 MiB; its heap was 96 of -Xmx256m, "
        "180 MiB were outside the heap; 60.0 s ago; next: opskit mem"
    )
    known = known._replace(kill=kill._replace(anon_bytes=90 * MIB))
    assert outside_heap_bytes(known) is None


def test_statistics_that_lag():
    """The kernel updates them later than what it charges: the rest is named."""
    [known] = facts(60.0).kills
    late = known._replace(kill=known.kill._replace(held=Held(anon_bytes=100 * MIB, shmem_bytes=0)))
    first = next(iter(details(late)))
    assert first == f"{CGROUP} held: anonymous 100 MiB, shared (tmpfs) 0 B, not yet in its statistics 300 MiB"
    assert "not yet" not in next(iter(details(known)))


def test_what_held_the_memory_where_it_was_not_the_victim():
    """Shared memory, the kernel, another process."""
    [known] = facts(60.0).kills
    held = Held(anon_bytes=20 * MIB, shmem_bytes=370 * MIB)
    shared = sentence(known._replace(kill=known.kill._replace(held=held)))
    assert "; 370 MiB of it was shared memory (tmpfs, /dev/shm); " in shared
    tasks = (Task(9, 1, "postgres", 500 * MIB, 0, 0), *known.kill.tasks)
    larger = sentence(known._replace(kill=known.kill._replace(tasks=tasks)))
    assert "; the largest was 9 (postgres) with 500 MiB; " in larger


def test_spans():
    """On each clock; None where a stamp lacks it."""
    end = When(1000.0, 500.0, 4600.0)
    assert Span(moment_of("100s")).holds(When(950.0), end) is True
    assert Span(moment_of("100s")).holds(When(850.0), end) is False
    assert Span(moment_of("100s")).holds(When(None, 450.0), end) is True
    assert Span(None, moment_of("100s")).holds(When(None, 450.0), end) is False
    assert Span(moment_of("100s")).holds(When(), end) is None
    assert Span(moment_of("2026-01-31")).holds(When(None, 450.0), end) is None
    assert Span().holds(When(), end) is True


def test_export_of_another_transport_is_not_the_kernels(inprocess, saved):
    """A binary field of user space in the journal's export format."""
    text = export([f"x\n{killed('6.8', JAVA)}"], "syslog") + export(cgroup_report("6.8"))
    assert [each["pid"] for each in document(inprocess("oom", saved(text), "-f", "json"))["kills"]] == [4242]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"counted": 0}, "no OOM kill in the kernel's log since boot (30 days ago): its counter is 0"),
        ({"is_whole": True}, "no OOM kill in the kernel's log since boot (30 days ago)"),
        ({"covers_s": 7200.0}, "no OOM kill in the kernel's log, which begins 2 h 0 min ago"),
    ],
)
def test_a_healthy_machine(more, said):
    """One line, and no finding."""
    source = Source("the kernel's log", 10, When(), When())
    healthy = judge(facts(None)._replace(sources=[source], **more))
    assert healthy.findings == []
    shown = report(About("", "", "", ""), healthy, Shown())
    assert (shown.verdict, shown.footer, shown.blocks, shown.exit_code) == ([said], [], [], None)


def test_a_log_that_cannot_be_read():
    """The counter tells how many; without one it is unknown, and exit code 2."""
    denied = [("the kernel's log", "permission denied; run as root")]
    shown = report(About("", "", "", ""), judge(facts(None, counted=2)._replace(unread=denied)), Shown())
    assert shown.verdict == [
        "the kernel's log could not be read: its counter tells of 2 OOM kills since boot (30 days ago), and not of whom"
    ]
    assert shown.footer == ["could not read the kernel's log: permission denied; run as root"]
    shown = report(About("", "", "", ""), judge(facts(None)._replace(unread=denied)), Shown())
    assert shown.verdict == ["the kernel's log could not be read: whether it killed a process is unknown"]
    assert shown.exit_code == 2


def test_logs_that_cannot_be_read_are_one_line():
    """Those with the same reason."""
    unread = [
        ("/var/log/kern.log", "permission denied"),
        ("/var/log/syslog.1", "permission denied"),
        ("/var/log/messages", "damaged"),
    ]
    shown = report(About("", "", "", ""), judge(facts(60.0)._replace(unread=unread)), Shown())
    assert shown.footer == [
        "could not read /var/log/kern.log and 1 more log: permission denied",
        "could not read /var/log/messages: damaged",
    ]


def test_where_the_kills_of_systemd_oomd_are(inprocess, tree, monkeypatch):
    """The kernel's log lacks them: the command is shown where that daemon runs."""
    host = Host.at(
        str(
            tree(
                {
                    "proc/uptime": "1 1\n",
                    "proc/1/comm": "a\n",
                    "sys/fs/cgroup/system.slice/systemd-oomd.service/cgroup.procs": "",
                }
            )
        ),
        None,
    )
    command = collect_oom._journal_of_oomd(host)
    assert command == "journalctl -u systemd-oomd -o json --no-pager | opskit oom -"
    healthy = judge(facts(None)._replace(counted=0, oomd=command))
    shown = report(About("", "", "", ""), healthy, Shown())
    assert shown.footer == [f"systemd-oomd runs here; what it killed is in the journal: {command}"]
    entry = {
        "_TRANSPORT": "journal",
        "SYSLOG_IDENTIFIER": "systemd-oomd",
        "MESSAGE": "Killed /a/b due to memory used (1) / total (2)",
    }
    done = inprocess("oom", "-", stdin=json.dumps(entry) + "\n")
    assert (done.code, "systemd-oomd killed /a/b" in done.out) == (1, True)


def test_another_user(as_nobody):
    """Where the kernel's log is for root only, the counter answers; a file needs no rights."""
    if (
        Path("/proc/sys/kernel/dmesg_restrict").read_text().strip() != "1"
        or "\noom_kill " not in Path("/proc/vmstat").read_text()
    ):
        pytest.skip("everybody may read the kernel's log here")
    done = as_nobody("oom", "-f", "json")
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert (found["kills"], found["counted"] is None) == ([], False)
    assert {each["code"] for each in found["findings"]} <= {"oom-counted", "jvm-native-memory-refused"}
    if found["counted"]:
        assert any("could not read the kernel's log: permission denied; run as root" in line for line in found["notes"])


def test_it_only_reads():
    """The page's safety table against strace: nothing is written, no process is signalled."""
    done = traced("oom", "-f", "json", calls=(*OPENS, *ACTS, "connect", "socket", "pidfd_open", "flock"))
    assert done.code in (0, 1)
    assert [call for call in done.acting() if "nscd" not in call and "AF_UNIX" not in call] == []
    done = traced("oom", LOGS / "el7-pod.messages", "-f", "json", calls=OPENS)
    assert done.writing() == []
    assert not [call for call in done.of(*OPENS) if "kmsg" in call or "/var/log" in call]


def test_a_killed_jvm_is_named_by_jvms_too():
    """Both use one parser: the victim by its name, not the invoker."""
    text = DMESG(cgroup_report("3.10", invoker="VM Thread"))
    [kill] = read_log([text.encode()]).kills
    assert (kill.name, kill.at_s, kill.by_cgroup) == ("java", 1215.612345, True)


def test_clocks_that_no_machine_has():
    """A capture may say that its machine runs for 30,000 years: a stamp is shown as it is."""
    stamp = When(None, 5.0, None, "5.0")
    assert collect_oom._on_host(stamp, When(1.8e9, 1e12, 1.8e9, "now")) == stamp
