"""How file descriptors are shown: goldens, the first screen, the verdict's sentences, what is unknown, metrics."""

from __future__ import annotations

import json

import fdfacts
import promtext
import pytest
from schemafiles import keeps_to_schema

from opskit.analysis.fds.of_process import held_by
from opskit.render.formats import csv, markdown, prometheus, table, text
from opskit.render.formats import json as as_json
from opskit.render.report import About
from opskit.render.shown import Shown
from opskit.render.views.fds import deleted, host, process
from opskit.render.views.fds.document import Answer, complete

WRITERS = {
    "csv": csv, "json": as_json, "markdown": markdown, "prometheus": prometheus, "table": table, "text": text,
}  # fmt: skip
PROCESSES = ("orders", "watched", "healthy", "unreadable")
OTHERS = ("host", "quiet_host", "deleted", "nothing_deleted")


def made(name, format_="table", top=None, **shown):
    result, is_text = getattr(fdfacts, name)(), format_ == "text"
    about = About("HOST", "2026-01-02T03:04:05Z", "VERSION", "opskit fds")
    if name in PROCESSES:
        shown = Shown(**{"text": is_text, "watching": result.total is not None, "top": top, **shown})
        about = about._replace(target=process.target(result))
        return complete(process.report(about, result, shown), Answer(process=result))
    view, answer = (deleted, "deleted") if "deleted" in name else (host, "host")
    return complete(view.report(about, result, top, is_text=is_text), Answer(**{answer: result}))


def written(name, format_="table", **shown):
    return WRITERS[format_].render(made(name, format_, **shown))


def rows_on(out, width):
    return sum(-(-max(len(line), 1) // width) for line in out.splitlines())


@pytest.mark.parametrize("format_", WRITERS)
@pytest.mark.parametrize("name", ["watched", "host", "deleted"])
def test_goldens(name, format_, golden):
    """A process that leaks, the machine, deleted files, in every format."""
    golden(f"fds-{name}.{format_}", written(name, format_))


@pytest.mark.parametrize("name", [*PROCESSES, *OTHERS])
def test_the_first_screen(golden, name):
    """On 80 x 24 the verdict and the largest rows are seen without scrolling."""
    is_live = name == "watched"
    out = table.render(made(name, **({"on_screen": True} if is_live else {})), 80, 24, screen=is_live)
    assert not is_live or "\nnext: opskit fds 4242 --ask\n" in out
    golden(f"fds-screen-{name}.txt", out)
    assert rows_on(out, 80) <= 24


@pytest.mark.parametrize("name", ["healthy", "quiet_host", "nothing_deleted"])
def test_a_healthy_answer_takes_three_lines_at_most(name):
    """Nothing is wrong: the reader goes on."""
    said = made(name).verdict
    assert sum(-(-len(line) // 80) for line in said) <= 3


@pytest.mark.parametrize("name", [*PROCESSES, *OTHERS])
def test_json_keeps_to_its_schema(name):
    """Each answer in one schema; what was not asked for is null, and so is what is unknown."""
    document = json.loads(written(name, "json"))
    keeps_to_schema(document, "fds")
    assert (document["groups"] is None) is (name in OTHERS)
    assert (document["nearest"] is None) is ("host" not in name)
    assert (document["deleted_files"] is None) is ("deleted" not in name)
    if name in ("orders", "watched"):
        assert sum(group["fds"] for group in document["groups"]) == document["fd_count"] == 145
        assert document["open_files"] == {"taken": 145, "soft_limit": 256, "hard_limit": 4096, "left": 111}


def test_a_limit_that_there_is_not_is_null():
    """JSON has no infinity."""
    nearest = json.loads(written("host", "json"))["nearest"]
    assert [(row["soft_limit"], row["left"], row["share"]) for row in nearest] == [
        (256, 16, 0.9375), (1024, 1020, 4 / 1024), (None, None, None),
    ]  # fmt: skip


def test_the_verdict_of_a_leak():
    """What is open, what most of it is, when the limit is reached, and which group grows first."""
    said = made("watched").verdict
    assert said[0] == "4242 (java): 145 of 256 file descriptors (RLIMIT_NOFILE), 111 left."
    assert said[1].startswith("Most: 90 CLOSE_WAIT to 10.0.0.9:443 (62 %), 30 file /usr/lib/jvm/21/lib, ")
    assert said[2] == (
        "In 30.0 s it grew from 67 to 145: +156 a minute, limit reached in 42.7 s; "
        "first CLOSE_WAIT to 10.0.0.9:443 grew from 12 to 90."
    )
    assert len(made("orders").verdict) == 2


def growth(first, last, per_min=60.0, *, steady=True, full_s=None, groups=()):
    facts = fdfacts.facts(at_s=30.0)
    result = fdfacts.watched()
    total = result.total._replace(first=first, last=last, per_min=per_min, is_steady=steady, full_s=full_s)
    return [*process.verdict(result._replace(facts=facts, total=total, growth=groups), watching=True)][-1]


def test_sentences_of_growth():
    """No growth, growth that comes and goes, growth within a process that stays the same."""
    assert growth(145, 145, 0.0) == "In 30.0 s it did not grow: 145 to 145."
    assert growth(145, 120, -50.0) == "In 30.0 s it did not grow: 145 to 120."
    assert growth(100, 130, steady=False) == "In 30.0 s it grew from 100 to 130: +60 a minute, but not steadily."
    leading = fdfacts.watched().growth
    second = leading[0]._replace(group=fdfacts.GROUPS[1], first=3, last=20)
    said = growth(145, 145, 0.0, groups=(*leading, second))
    assert said == (
        "In 30.0 s it went from 145 to 145; first CLOSE_WAIT to 10.0.0.9:443 grew from 12 to 90, then 1 other group."
    )


def test_what_grows_comes_first_in_the_rows():
    """Before larger groups that stay."""
    result = fdfacts.watched()
    result = result._replace(growth=(result.growth[0]._replace(group=fdfacts.GROUPS[3], first=1, last=4),))
    assert [row.group.kind for row in process.rows_of(result)] == ["eventfd", "tcp", "file", "tcp", "deleted"]


def test_the_threads_that_wait_are_shown_on_request():
    """With --ask their Java stacks; text has them as columns."""
    assert "SocketDispatcher.read0, from Orders.load" in written("orders", asked=True)
    assert "threads that wait on a descriptor" not in written("healthy", asked=True)
    assert "4271" in written("orders", "text", asked=True)
    bare = fdfacts.LEAK._replace(threads=(fdfacts.READER._replace(frames=()),))
    result = fdfacts.orders()._replace(facts=fdfacts.facts(groups=(bare,)))
    about, shown = About("HOST", "T", "V", "opskit fds"), Shown(verbose=True)
    assert [field.title for field in process.report(about, result, shown).blocks[-1].columns][-1] == "thread"
    frames = json.loads(written("orders", "json"))["groups"][0]["threads"][0]["frames"]
    assert frames == ["sun.nio.ch.SocketDispatcher.read0", "com.shop.Orders.load"]


def test_ask_without_a_jvm_is_said():
    """Its threads have no Java stacks."""
    assert made("healthy", asked=True).footer == ["--ask: 77 is not a JVM: its threads are shown without stacks"]


def test_text_has_the_same_columns_for_awk_in_every_state():
    """A row a group; blanks only in the last column."""
    for name in ("orders", "healthy"):
        lines = written(name, "text").splitlines()
        head = next(line for line in lines if line.split()[:1] == ["FDS"])
        assert head.split() == ["FDS", "KIND", "LOWEST", "HIGHEST", "OLDEST", "NEWEST", "WHAT"]
        for line in lines[lines.index(head) + 1 :]:
            if line.split()[:1] == ["FD"]:  # the threads
                break
            assert [cell.isdigit() or cell == "-" for cell in line.split()[2:6]] == [True] * 4


def test_more_groups_than_rows_are_counted():
    """-n 0 and text show all."""
    groups = tuple(fdfacts.LEAK._replace(detail=f"ESTAB to 10.0.0.9:{port}", fds=1) for port in range(1000))
    result = fdfacts.orders()._replace(facts=fdfacts.facts(groups=groups, fds=1000))
    about = About("HOST", "T", "V", "opskit fds")
    for shown, rows in (((), 20), ((True,), 1000), ((False, False, True), 1000)):
        [block, *_] = process.report(about, result, Shown(*shown)).blocks
        assert (len(block.rows), block.total) == (rows, 1000)
    assert len(process.report(about, result, Shown(top=7)).blocks[0].rows) == 7


def test_the_disk_that_is_full_of_deleted_files():
    """How much, of which file system, by whom: descriptor and path."""
    [said, *_] = deleted.verdict(fdfacts.deleted()._replace(findings=()))
    assert said == (
        "250 MiB of / are deleted but held (96 % used, 40.0 MiB free): 4242 (java) and 1 other process 200 MiB fd 3, 9 "
        "/var/log/app.log; 77 (bash) 50.0 MiB mapped /usr/lib/libx.so."
    )
    assert "remove 3: ipcrm -m 3" in table.render(made("deleted"), 100, None)


def test_a_machine_where_nothing_is_deleted():
    """One line; a lower bound where not all processes could be read."""
    result = fdfacts.nothing_deleted()
    assert [*deleted.verdict(result)] == ["No deleted file takes space on 1 local file system."]
    partly = result._replace(facts=result.facts._replace(complete=False))
    assert [*deleted.verdict(partly)] == ["No deleted file that could be seen takes space on 1 local file system."]


def test_what_one_process_holds():
    """With a PID: its files alone, itself as the first holder, also of a file that others hold."""
    facts = held_by(fdfacts.deleted().facts, 77)
    assert [(system.mount, [file.path for file in system.files]) for system in facts.systems] == [
        ("/", ["/var/log/app.log", "/usr/lib/libx.so"])
    ]
    assert [holder.process.pid for holder in facts.systems[0].files[0].holders] == [77, 4242]
    assert (facts.memory, facts.unattached, facts.in_flight) == ((), (), ((77, 2),))
    none = fdfacts.deleted()._replace(facts=held_by(facts, 1))
    assert [*deleted.verdict(none)] == ["No deleted file of 1 takes space."]


def test_little_is_said_in_one_line():
    """Every machine has some kilobytes, and a library that an update has replaced."""
    system = fdfacts.ROOT._replace(files=(fdfacts.LIBRARY._replace(bytes=4096),))
    result = fdfacts.deleted(systems=(system,), memory=(fdfacts.MEMFD,), unattached=())
    assert [*deleted.verdict(result)] == ["Deleted files take little of the local file systems: 4.0 KiB."]


def test_what_a_finding_says_is_not_repeated():
    """It names the holders and what to do; without one both are here."""
    judged = fdfacts.deleted()
    bare = judged._replace(findings=())
    assert [finding.code for finding in judged.findings if finding.entity.id == "/"] == ["deleted-files-held"]
    assert next(deleted.verdict(judged)) == "250 MiB of / are deleted but held (96 % used, 40.0 MiB free)."
    footers = [deleted.report(About("H", "T", "V", "x"), each, None, is_text=False).footer for each in (bare, judged)]
    assert len(footers[0]) == len(footers[1]) + 1
    assert footers[0][0].startswith("space of /var/log/app.log: Restart java (4242) in orders.service")


def test_files_that_take_little_are_shown_on_request():
    """A memfd of a service and a library that an update has replaced are no news; of one process they are the answer."""
    system = fdfacts.ROOT._replace(
        files=(fdfacts.LIBRARY._replace(bytes=4096),), free_bytes=200 << 30, size_bytes=250 << 30
    )
    result = fdfacts.deleted(systems=(system,), memory=(fdfacts.MEMFD._replace(bytes=1 << 20),), unattached=())
    about = About("HOST", "T", "V", "x")
    report = deleted.report(about, result, None, is_text=False)
    assert "deleted files that are held" not in [block.title for block in report.blocks]
    assert "deleted files that take little are not shown; -v shows all" in report.footer
    of_one = result._replace(facts=result.facts._replace(of_pid=4242))
    for shown, top in ((result, 0), (of_one, None)):
        assert len(deleted.report(about, shown, top, is_text=False).blocks[0].rows) == 2


def test_what_cannot_be_seen_is_said():
    """Descriptors in flight, then what the collector could not read."""
    assert made("deleted").footer == [
        "2 file descriptors in flight over unix sockets of 77: their files cannot be seen",
        "not looked at, since a stat may hang: 5 fds on network file systems",
    ]


def test_a_file_system_that_is_not_mounted():
    """Its sizes are unknown, and so may be those of a file of which mappings alone are seen."""
    file = fdfacts.LIBRARY._replace(bytes=None, size_bytes=None)
    gone = fdfacts.ROOT._replace(mount="", type="", size_bytes=None, free_bytes=None, inodes=None, free_inodes=None)
    result = fdfacts.deleted(systems=(gone._replace(files=(fdfacts.LOG, file)),), memory=(), unattached=())
    assert [*deleted.verdict(result)] == ["200 MiB of a file system that is not mounted are deleted but held."]
    report = deleted.report(About("HOST", "T", "V", "x"), result, None, is_text=False)
    document = json.loads(as_json.render(complete(report, Answer(deleted=result))))
    assert [row["bytes"] for row in document["deleted_files"]] == [200 << 20, None]
    assert document["file_systems"][0]["used_share"] is None


def test_many_processes_near_their_limit_fit_the_first_screen():
    """A family of forks: three are findings with their commands, the others are counted and listed."""
    near = fdfacts.host().facts.nearest[0]
    result = fdfacts.host(nearest=tuple(near._replace(process=near.process._replace(pid=pid)) for pid in range(1, 60)))
    assert next(host.verdict(result)).endswith("(94 %). 59 processes use more than 80 % of theirs.")
    assert [finding.entity.id for finding in result.findings if finding.code == "rlimit-nearly-used"] == [1, 2, 3]
    out = table.render(host.report(About("HOST", "T", "V", "x"), result, None, is_text=False), 80, 24)
    assert rows_on(out, 80) <= 24


def test_lower_bounds_of_users_are_said():
    """Without the right to read every process."""
    result = fdfacts.host(complete=False)
    assert [*host.verdict(result)][-1] == "app is nearest to fs.inotify.max_user_instances: at least 120 of 128 (94 %)."


def test_metrics_are_read_by_prometheus():
    """Names in base units; no sample for what is unknown or without a limit."""
    samples = promtext.parse(written("watched", "prometheus"))
    assert promtext.value(samples, "opskit_fds_taken", pid=4242, command="java") == 145
    assert promtext.value(samples, "opskit_fds_soft_limit", pid=4242) == 256
    assert promtext.value(samples, "opskit_fds_growth_limit_in_seconds") == 43
    assert promtext.value(samples, "opskit_fds_group_fds", kind="tcp", detail="CLOSE_WAIT to 10.0.0.9:443") == 90
    samples = promtext.parse(written("host", "prometheus"))
    assert promtext.value(samples, "opskit_fds_nearest_share", pid=4242) == 0.9375
    assert not [
        labels for name, labels in samples if name == "opskit_fds_nearest_soft_limit" and ("pid", "78") in labels
    ]
    assert promtext.value(samples, "opskit_fds_user_used", limit="fs.inotify.max_user_instances", user="app") == 120
    samples = promtext.parse(written("deleted", "prometheus"))
    assert promtext.value(samples, "opskit_fds_file_system_deleted_bytes", mount="/") == 250 << 20
    assert promtext.value(samples, "opskit_fds_unattached_bytes", kind="sysv") == 64 << 20


@pytest.mark.parametrize("format_", WRITERS)
@pytest.mark.parametrize("evil", ['a\n"}\x1b[31m| <b>', "\udcff\x85\u2028 ,x", "'; touch pwn; '"])
def test_hostile_names_are_escaped_everywhere(evil, format_):
    """Commands, paths and mount points from the machine add no line, no column and no sample."""
    process_ = fdfacts.ORDERS._replace(command=evil, user=evil)
    group = fdfacts.LEAK._replace(detail=evil, example=evil, threads=(fdfacts.READER._replace(name=evil),))
    result = fdfacts.watched()._replace(facts=fdfacts.facts(process=process_, groups=(group,)))
    about = About("HOST", "T", "V", "opskit fds", process.target(result))
    shown = Shown(format_ == "text", True, True, None, True)
    reports = [complete(process.report(about, result, shown), Answer(process=result))]
    holder = fdfacts.LOG.holders[0]._replace(process=process_, unit=evil)
    file = fdfacts.LOG._replace(path=evil, holders=(holder,))
    held = fdfacts.deleted(systems=(fdfacts.ROOT._replace(mount=evil, files=(file,)),))
    reports.append(complete(deleted.report(about, held, 0, is_text=False), Answer(deleted=held)))
    near = fdfacts.host().facts.nearest[0]._replace(process=process_)
    machine = fdfacts.host(nearest=(near,), inotify_watches=(fdfacts.User(1, evil, 60000, ((1, evil, 9),)),))
    reports.append(complete(host.report(about, machine, 0, is_text=False), Answer(host=machine)))
    for report in reports:
        out = WRITERS[format_].render(report)
        assert all(line.isprintable() for line in out.split("\n"))
        assert not [line for line in out.split("\n") if line.startswith('"}')]
        if format_ == "prometheus":
            promtext.parse(out)
