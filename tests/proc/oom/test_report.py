"""Reports of every kernel in every form of log: the victim, its cgroup, the limit, the table, and what is unknown."""

from __future__ import annotations

import random
import time

import pytest
from eachof import each_of
from kernellogs import (
    CGROUP,
    FORMS,
    JAVA,
    KERNELS,
    OWN,
    PAUSE,
    TAIL,
    Process,
    cgroup_report,
    chosen,
    host_report,
    killed,
    row,
)

from opskit.proc.oom.log import read_log

NOW_S = 1_796_000_000.0  # in November 2026
KIB, MIB = 1024, 1 << 20


def read(text, **options):
    return read_log([text.encode("utf-8", "surrogateescape")], now_s=NOW_S, **options)


def kills_of(text, **options):
    return list(read(text, **options).kills)


@pytest.mark.parametrize("kernel", KERNELS)
@each_of("form", FORMS)
def test_a_kill_at_a_limit(kernel, form):
    """Every kernel in every form: the same victim, cgroup, limit, amounts and table."""
    [kill] = kills_of("<6>[    1.000000] Linux\n" * (form == "kmsg") + FORMS[form](cgroup_report(kernel)))
    assert (kill.pid, kill.name, kill.outcome, kill.scope) == (4242, "java", "killed", "cgroup")
    assert (kill.cgroup, kill.task_cgroup) == (CGROUP, OWN)
    assert kill.memory == (400 * MIB, 400 * MIB, 24)
    assert kill.swap.limit_bytes is None
    assert (kill.invoker, kill.invoker_pid) == ("VM Thread", 4251)
    assert (kill.uid, kill.adj) == (1000, 0)
    assert (kill.anon_bytes, kill.file_bytes) == (400_000 * KIB, 12_000 * KIB)
    assert kill.rss_bytes == 103_000 * 4096
    assert kill.held.anon_bytes == (409_600 - 4000) * KIB
    assert [(task.pid, task.name, task.rss_bytes, task.adj) for task in kill.tasks] == [
        (each.pid, each.name, each.rss * 4096, each.adj) for each in (JAVA, TAIL, PAUSE)
    ]
    assert (kill.tasks_total, kill.is_cut, kill.is_mixed) == (3, False, False)


@pytest.mark.parametrize("kernel", KERNELS)
@each_of("form", ["syslog(2)", "kmsg", "syslog", "journal short", "journal json"])
def test_a_kill_of_the_whole_host(kernel, form):
    """Free memory, swap, what was held, reserved huge pages."""
    [kill] = kills_of(FORMS[form](host_report(kernel)))
    assert (kill.pid, kill.scope, kill.cgroup, kill.memory) == (4242, "host", None, None)
    held = kill.held
    assert (held.free_bytes, held.swap_free_bytes, held.swap_total_bytes) == (32 * MIB, 0, 2_097_148 * KIB)
    assert (held.ram_bytes, held.huge_bytes) == (4 << 30, 1 << 30)
    assert (held.anon_bytes, held.shmem_bytes) == ((972_000 - 4000) * 4096, 4000 * 4096)
    assert kill.invoker == "cp"


def test_pages_of_64_kib():
    """The size of a page follows from the victim's row and its last sentence."""
    big = Process(4242, "java", 6400)
    [kill] = kills_of(FORMS["dmesg"](host_report("5.10", big, page_kib=64)))
    assert kill.page_bytes == 65536
    assert kill.tasks[0].rss_bytes == 6400 * 65536
    assert kill.held.free_bytes == 8192 * 65536


@pytest.mark.parametrize("kernel", KERNELS)
@each_of("cut", range(1, 16))
def test_a_log_whose_beginning_was_overwritten(kernel, cut):
    """The victim and its amounts stay; what was lost is unknown, never another value."""
    lines = FORMS["syslog(2)"](cgroup_report(kernel)).splitlines(keepends=True)
    cut = min(cut, len(lines) - 1)
    [kill] = kills_of("".join(lines[cut:]))
    assert (kill.pid, kill.name, kill.outcome, kill.is_cut) == (4242, "java", "killed", True)
    assert kill.invoker is None
    assert kill.cgroup in (CGROUP, None)
    assert kill.memory in ((400 * MIB, 400 * MIB, 24), None)
    assert {task.pid for task in kill.tasks} <= {4242, 4300, 4200}
    assert all(task.rss_bytes == {4242: 103_000, 4300: 700, 4200: 1}[task.pid] * 4096 for task in kill.tasks)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_log_that_ends_before_the_kill(kernel):
    """The process that was chosen is named as such; before that, nobody."""
    lines = FORMS["dmesg"](cgroup_report(kernel)).splitlines(keepends=True)
    [kill] = kills_of("".join(lines[:-1]))
    assert (kill.pid, kill.outcome, kill.rss_bytes) == (4242, "chosen", 103_000 * 4096)
    [kill] = kills_of("".join(lines[:-2]))
    assert (kill.pid, kill.outcome, kill.memory.limit_bytes) == (None, "unfinished", 400 * MIB)


A = Process(11, "aaa", 25000)
B = Process(22, "bbb", 50000)


def two(kernel):
    one = cgroup_report(kernel, A, (), "/a", "/a/x", 102_400, "aaa", 11)
    return one, cgroup_report(kernel, B, (), "/b", "/b/x", 204_800, "bbb", 22)


def mixed(one, other, seed):
    """The lines of two reports in a random order that keeps each report's own."""
    chance = random.Random(seed)  # noqa: S311
    queues = [list(enumerate(one)), list(enumerate(other))]
    while any(queues):
        queue = chance.choice([each for each in queues if each])
        yield queue is queues[0], queue.pop(0)[1]


@pytest.mark.parametrize("kernel", KERNELS)
@each_of("seed", range(40))
def test_two_mixed_reports_never_give_one_the_values_of_the_other(kernel, seed):
    """Without callers, each value is the right one or unknown; the victims are always right."""
    text = "".join(
        f"[ 1215.612345] {line}\n" for _, message in mixed(*two(kernel), seed) for line in message.split("\n")
    )
    found = {kill.pid: kill for kill in kills_of(text)}
    assert found.keys() == {11, 22}
    for pid, name, path, limit in ((11, "aaa", "/a", 100), (22, "bbb", "/b", 200)):
        kill = found[pid]
        assert (kill.name, kill.outcome, kill.scope) == (name, "killed", "cgroup")
        assert kill.cgroup in (path, None)
        assert kill.memory.limit_bytes == limit * MIB  # of the two, only one is large enough for bbb
        assert kill.invoker in (name, None)
        assert {task.pid for task in kill.tasks} <= {pid}


@pytest.mark.parametrize("kernel", KERNELS)
@each_of("seed", range(40))
def test_two_mixed_reports_whose_beginning_was_overwritten(kernel, seed):
    """Also where the log has the first line of one of them, or of none: a value is the right one or unknown."""
    lines = [line for _, message in mixed(*two(kernel), seed) for line in message.split("\n")]
    text = "".join(f"[ 1215.612345] {line}\n" for line in lines[1 + seed % 10 :])
    found = {kill.pid: kill for kill in kills_of(text)}
    assert found.keys() == {11, 22}
    for pid, name, path, limit in ((11, "aaa", "/a", 100), (22, "bbb", "/b", 200)):
        kill = found[pid]
        assert (kill.name, kill.outcome) == (name, "killed")
        assert kill.scope in ("cgroup", None)
        assert kill.cgroup in (path, None)
        assert kill.memory is None or kill.memory.limit_bytes == limit * MIB
        assert kill.invoker in (name, None)
        assert {task.pid for task in kill.tasks} <= {pid}


def test_a_chosen_thread_of_a_mixed_report_is_no_other_kill():
    """3.10 chooses a thread: its PID is not the victim's."""
    reports = [
        [line.replace(f"Kill process {victim.pid}", f"Kill process {victim.pid + 5}") for line in report]
        for victim, report in zip((A, B), two("el7"))
    ]
    text = "".join(f"[ 1215.612345] {line}\n" for pair in zip(*reports) for line in pair)
    assert [(kill.pid, kill.outcome, kill.scope, kill.memory.limit_bytes) for kill in kills_of(text)] == [
        (11, "killed", "cgroup", 100 * MIB), (22, "killed", "cgroup", 200 * MIB),
    ]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
@each_of("seed", range(10))
def test_two_mixed_reports_with_callers_are_told_apart(kernel, seed):
    """With CONFIG_PRINTK_CALLER every line says whose it is: nothing is unknown."""
    lines = mixed(*two(kernel), seed)
    text = "".join(
        f"[ 1215.612345][{'T11' if first else 'T22':>6}] {line}\n"
        for first, message in lines
        for line in message.split("\n")
    )
    found = {kill.pid: kill for kill in kills_of(text)}
    for pid, name, path, limit in ((11, "aaa", "/a", 100), (22, "bbb", "/b", 200)):
        kill = found[pid]
        assert (kill.name, kill.cgroup, kill.memory.limit_bytes, kill.invoker) == (name, path, limit * MIB, name)
        assert ([task.pid for task in kill.tasks], kill.is_mixed) == ([pid], False)


def test_many_mixed_reports_take_bounded_time():
    """A thousand cgroups of each kind between two reports are not compared with each other."""
    pairs = "".join(
        f"[ 1215.612345] Task in /a{number} killed as a result of limit of /a{number}\n"
        f"[ 1215.612345] Memory cgroup stats for /a{number}: cache:0KB rss:{number}KB\n"
        for number in range(1000)
    )
    begin = "[ 1215.612345] aaa invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=0\n"
    ends = "".join(f"[ 1215.612345] {killed('3.10', each)}\n" for each in (A, B))
    began_s = time.process_time()
    found = kills_of((begin * 2 + pairs + ends) * 40)
    assert time.process_time() - began_s < 3
    assert [(kill.pid, kill.cgroup) for kill in found] == [(11, None), (22, None)] * 40


def test_two_hosts_in_one_log_are_told_apart():
    """A central syslog: each line says whose it is."""
    queues = [[("web1", line) for line in two("5.10")[0]], [("web2", line) for line in two("5.10")[1]]]
    lines = [each for pair in zip(*queues) for each in pair]
    text = "".join(
        f"Nov 24 16:00:00 {host} kernel: {line}\n" for host, message in lines for line in message.split("\n")
    )
    found = {kill.pid: kill for kill in kills_of(text)}
    assert [(pid, kill.cgroup, kill.memory.limit_bytes, kill.invoker, kill.is_mixed) for pid, kill in found.items()] == [
        (11, "/a", 100 * MIB, "aaa", False), (22, "/b", 200 * MIB, "bbb", False),
    ]  # fmt: skip


def test_a_report_whose_end_was_lost_does_not_spoil_the_next_one():
    """Journald drops messages: the next report, seconds later, keeps everything."""
    one, other = two("5.10")
    text = "".join(f"[ 1215.612345] {line}\n" for message in one[:-2] for line in message.split("\n"))
    text += "".join(f"[ 1222.612345] {line}\n" for message in other for line in message.split("\n"))
    lost, kill = kills_of(text)
    assert (lost.pid, lost.outcome, lost.memory.limit_bytes) == (None, "unfinished", 100 * MIB)
    assert (kill.pid, kill.memory.limit_bytes, kill.invoker, kill.is_mixed) == (22, 200 * MIB, "bbb", False)


def test_equal_victims_of_different_limits_leave_the_limits_unknown():
    """Where either limit may be either victim's, none is named; a limit that both share is."""
    one = cgroup_report("4.18", A, (), "/a", "/a/x", 202_400, "aaa", 11)
    other = cgroup_report("4.18", A._replace(pid=22, name="bbb"), (), "/b", "/b/x", 204_800, "bbb", 22)
    text = "".join(f"[ 1215.612345] {line}\n" for pair in zip(one, other) for line in pair)
    assert [(kill.pid, kill.cgroup, kill.memory) for kill in kills_of(text)] == [(11, None, None), (22, None, None)]
    same = text.replace("202400kB", "204800kB")
    assert [(kill.pid, kill.memory.limit_bytes) for kill in kills_of(same)] == [(11, 200 * MIB), (22, 200 * MIB)]


def test_one_after_the_other_is_not_mixed():
    """Two reports in sequence keep everything."""
    one, other = two("5.10")
    first, second = kills_of(FORMS["dmesg"]([*one, "oom_reaper: reaped process 11 (aaa), now anon-rss:0kB", *other]))
    assert (first.invoker, first.memory.limit_bytes, first.is_mixed) == ("aaa", 100 * MIB, False)
    assert (second.invoker, second.memory.limit_bytes, second.is_mixed) == ("bbb", 200 * MIB, False)


def test_a_whole_cgroup_is_killed():
    """memory.oom.group: every process of it, each once."""
    lines = cgroup_report("6.8")
    members = [killed("6.8", each) for each in (JAVA, TAIL, Process(4400, "sh", 100))]
    found = kills_of(
        FORMS["kmsg"]([*lines, f"Tasks in {CGROUP} are going to be killed due to memory.oom.group set", *members])
    )
    assert [(kill.pid, kill.group) for kill in found] == [(4242, CGROUP), (4300, CGROUP), (4400, CGROUP)]
    assert {kill.cgroup for kill in found} == {CGROUP}


def test_a_child_is_killed_instead():
    """Until 5.0 a child could be sacrificed: the victim is who was killed, not who was chosen."""
    child = Process(4300, "worker 2", 9000)
    lines = cgroup_report("4.18", others=(child,))
    [kill] = kills_of(FORMS["dmesg"]([*lines[:-1], killed("4.18", child)]))
    assert (kill.pid, kill.name, kill.score) == (4300, "worker 2", None)


def test_kernels_that_give_up():
    """A panic and a cgroup without a killable process have no victim; sysrq is told."""
    lines = host_report("5.10")
    [kill] = kills_of(
        FORMS["dmesg"]([*lines[:-2], "Kernel panic - not syncing: Out of memory: system-wide panic_on_oom is enabled"])
    )
    assert (kill.pid, kill.outcome) == (None, "panic")
    [kill] = kills_of(FORMS["dmesg"]([*lines[:-2], "Out of memory and no killable processes..."]))
    assert (kill.pid, kill.outcome) == (None, "no victim")
    [kill] = kills_of(FORMS["dmesg"](["sysrq: Manual OOM execution", *host_report("5.10", order=-1)]))
    assert (kill.pid, kill.manual) == (4242, True)
    [kill] = kills_of(FORMS["dmesg"](["SysRq : Manual OOM execution", *host_report("3.10")]))
    assert (kill.pid, kill.manual) == (4242, True)


@pytest.mark.parametrize(
    ("constraint", "scope"),
    [("CONSTRAINT_CPUSET", "cpuset"), ("CONSTRAINT_MEMORY_POLICY", "mempolicy"), ("CONSTRAINT_NEW", None)],
)
def test_what_was_full(constraint, scope):
    """The constraint tells it; one that is not known is not guessed."""
    lines = [line.replace("CONSTRAINT_NONE", constraint) for line in host_report("5.10")]
    [kill] = kills_of(FORMS["dmesg"](lines))
    assert (kill.scope, kill.constraint) == (scope, constraint)


HOSTILE = (
    "a) total-vm:1kB", "(x) (y)", "1 2 3 4 5 6 7 8", "Killed process ", "invoked oom", ",pid=1,uid=0", "task=x,pid=1",
    "a\\x0aOut of mem", "\\x1b[31m\\x0a", " leading", "score 1 or", "]: [ 1] 0 1 2 ",
)  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
@each_of("name", HOSTILE)
def test_names_that_imitate_the_log(kernel, name):
    """A process chooses 15 bytes: it is shown by that name, and nothing else changes."""
    victim = Process(4242, name, 103000)
    for text in (
        FORMS["kmsg"](cgroup_report(kernel, victim, invoker=name)),
        FORMS["syslog"](cgroup_report(kernel, victim, invoker=name)),
    ):
        [kill] = kills_of(text)
        assert (kill.pid, kill.name, kill.uid, kill.cgroup) == (4242, name, 1000, CGROUP)
        assert kill.memory.limit_bytes == 400 * MIB
        assert kill.rss_bytes == 103_000 * 4096
        if name[:1] != " ":
            assert [task.name for task in kill.tasks if task.pid == 4242] == [name]


def test_a_line_feed_in_a_name_makes_no_line():
    """syslog(2) and journalctl begin a new line in a name: 15 bytes are too few for a kill."""
    victim = Process(4242, "x\n[1] 0 1 9 9 9", 103000)
    for form in ("syslog(2)", "journal short", "journal json", "journal export"):
        found = kills_of(FORMS[form](cgroup_report("6.18", victim)))
        assert {kill.pid for kill in found} == {4242}
        assert all(task.pid != 1 for kill in found for task in kill.tasks)


FORGED = "Out of memory: Killed process 1 (init) total-vm:1kB, anon-rss:1kB, file-rss:1kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0"


@pytest.mark.parametrize(
    "line",
    [
        f"<12>[ 1215.612345] {FORGED}",  # written to /dev/kmsg by a process: facility 1
        f"user  :warn  : [ 1215.612345] {FORGED}",
        f"Nov 24 16:00:00 web1 app[77]: {FORGED}",
        f"Nov 24 16:00:00 web1 app: kernel: {FORGED}",
        f"<4>1 2026-11-24T16:00:00Z web1 app 77 - - {FORGED}",
        f'{{"_TRANSPORT":"syslog","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"{FORGED}"}}',
        f'{{"_TRANSPORT":"kernel","SYSLOG_FACILITY":"1","MESSAGE":"{FORGED}"}}',
        f'{{"MESSAGE":"{FORGED}"}}',
    ],
)
def test_what_user_space_writes_is_not_the_kernels(line):
    """Where the log tells who wrote a line, only the kernel is believed."""
    assert kills_of(line + "\n") == []
    assert [kill.pid for kill in kills_of(line + "\n" + FORMS["kmsg"](cgroup_report("6.18")))] == [4242]


def test_a_binary_field_of_the_export_format_forges_no_entry():
    """What is in a field with a length is skipped by its length, also where it is longer than any message."""
    inner = f"\n\n__REALTIME_TIMESTAMP=1\n_TRANSPORT=kernel\nSYSLOG_FACILITY=0\nMESSAGE={FORGED}\n\n"
    for size in (0, 100_000):
        field = (inner * 2 + "x" * size).encode()
        entry = b"__CURSOR=s=1\n_TRANSPORT=syslog\nMESSAGE\n" + len(field).to_bytes(8, "little") + field + b"\n\n"
        log = read_log([entry + FORMS["journal export"](cgroup_report("5.10")).encode()])
        assert [kill.pid for kill in log.kills] == [4242]


@pytest.mark.parametrize(
    "path", ["/a,task_memcg=/b", "/a,oom_memcg=/b,task_memcg=/c", "/a,task=x,pid=1,uid=0", "/a: cache:1KB"]
)
def test_paths_that_imitate_keys(path):
    """A user may name a delegated cgroup: an ambiguous path is unknown, and the victim is right."""
    for kernel in KERNELS:
        [kill] = kills_of(FORMS["kmsg"](cgroup_report(kernel, cgroup=path, own=path)))
        assert (kill.pid, kill.name) == (4242, "java")
        assert kill.cgroup in (path, None)


def test_lines_without_a_table_or_a_header():
    """The kernel limits how often it prints the report; the last line is always there."""
    [kill] = kills_of("[ 1215.612345] " + killed("5.10", JAVA) + "\n")
    assert (kill.pid, kill.scope, kill.cgroup, kill.memory, kill.tasks) == (4242, "cgroup", None, None, ())
    [kill] = kills_of(
        f"[ 1215.612345] {chosen('4.18', JAVA, CGROUP, OWN, 'Out of memory')}\n[ 1215.612346] {killed('4.18', JAVA)}\n"
    )
    assert (kill.pid, kill.scope, kill.score) == (4242, "host", 990)


@pytest.mark.parametrize(
    ("line", "uid", "anon_kib", "file_kib"),
    [
        (
            "Killed process 4242, UID 679, (java) total-vm:11017300kB, anon-rss:7152432kB, file-rss:1232kB",
            679,
            7152432,
            1232,
        ),
        (
            "Killed process 4242 (java), UID 679, total-vm:11017300kB, anon-rss:7152432kB, file-rss:1232kB",
            679,
            7152432,
            1232,
        ),
        ("Killed process 4242 (java) total-vm:10824192kB, anon-rss:8389120kB", None, 8389120, None),
        ("Killed process 4242 (java) total-vm:108", None, None, None),
        ("Killed process 4242 (java", None, None, None),
    ],
)
def test_last_sentences_of_other_kernels_and_cut_ones(line, uid, anon_kib, file_kib):
    """RHEL 6 puts the UID before the name; documents and cut lines have less."""
    [kill] = kills_of(f"[ 1215.612345] {line}\n")
    kib = (None if each is None else each // KIB for each in (kill.anon_bytes, kill.file_bytes))
    assert (kill.pid, kill.name, kill.uid, *kib) == (4242, "java", uid, anon_kib, file_kib)


def test_rows_without_their_header():
    """The columns follow from how many there are."""
    for kernel in ("3.10", "4.4", "4.18", "6.8"):
        text = f"[ 1215.612345] {row(kernel, JAVA)}\n[ 1215.612346] {killed('5.10', JAVA)}\n"
        [kill] = kills_of(text)
        assert [(task.pid, task.rss_bytes, task.adj) for task in kill.tasks] == [(4242, 103_000 * 4096, 0)]


def test_times():
    """A date with a zone is absolute; one without a year is the last before now; uptimes stay uptimes."""
    cases = {
        "dmesg": (None, 1215.612345, None), "rsyslog iso": (1795532400.123456, 1215.612345, 1795536000.123456),
        "dmesg -T": (None, None, 1795536000.0), "journal json": (1764000000.123456, None, 1764000000.123456),
        "syslog": (None, None, 1795536000.0), "rfc 5424": (1795532400.123456, None, 1795536000.123456),
    }  # fmt: skip
    for form, expected in cases.items():
        [kill] = kills_of(FORMS[form](cgroup_report("5.10")))
        assert kill.when[:3] == expected, form
    [kill] = kills_of(FORMS["syslog"](cgroup_report("5.10")).replace("Nov 24", "Dec 24"))
    assert kill.when.local_s == pytest.approx(1795536000.0 - 335 * 86400)  # 2025
    [kill] = kills_of(FORMS["syslog"](cgroup_report("5.10")).replace("Nov 24", "Feb 31"))
    assert kill.when[:3] == (None, None, None)


def test_a_large_log_is_read_in_chunks():
    """A report in the middle of other lines, in chunks of any size."""
    noise = "Nov 24 16:00:00 web1 app[1]: GET /index.html 200\n"
    text = (noise * 20_000 + FORMS["syslog"](cgroup_report("5.10")) + noise * 20_000).encode()
    for size in (1 << 20, 65_536, 1_000):
        log = read_log((text[at : at + size] for at in range(0, len(text), size)), now_s=NOW_S)
        assert [kill.pid for kill in log.kills] == [4242]
        assert (log.kills[0].memory.limit_bytes, log.lines) == (400 * MIB, text.count(b"\n"))
