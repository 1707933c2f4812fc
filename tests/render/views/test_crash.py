"""How crashes are shown: goldens in every format, the first screen, several by cause, places, hostile names."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import pytest
from crashreports import APPLICATION, ENTRY, facts, method, native, read, report, signal, vm
from schemafiles import keeps_to_schema
from shellwords import HOSTILE, check_syntax

from opskit.analysis.crash.judge import judge
from opskit.collect.crash.facts import Core, Facts, Place, Read, Unread
from opskit.jvm.logs.crashes.record import CrashReport, Event, Frame, Heap, Machine, Thread
from opskit.jvm.logs.crashes.report import parse
from opskit.render.formats import json as as_json
from opskit.render.formats import markdown, table, text
from opskit.render.report import About
from opskit.render.views.crash import document
from opskit.render.views.crash.document import complete
from opskit.render.views.crash.report import Shown
from opskit.render.views.crash.report import report as view

CRASHES = Path(__file__).resolve().parents[2] / "fixtures" / "crashes"
WRITERS = {"json": as_json, "markdown": markdown, "table": table, "text": text}
ABOUT = About("HOST", "2026-01-02T03:04:05Z", "VERSION", "opskit crash")
NOW_S = 1_800_000_000.0
SCREENS = (
    "jdk17-unsafe",
    "jdk25-native",
    "jdk11-gc-g1",
    "jdk17-full-tmpfs",
    "jdk21-kill-segv",
    "jdk8-compiled-method",
    "jdk17-java-heap",
    "jdk25-mappings",
)


@lru_cache
def of_file(name):
    path = CRASHES / f"{name}.log"
    return Read(f"hs_err_{name}.log", parse(path.read_bytes(), str(path)), modified_s=NOW_S - 3600)


def made(given, **shown):
    result = judge(given)
    return complete(view(ABOUT, result, Shown(now_s=NOW_S, **shown)), result)


def written(given, format_, **shown):
    return WRITERS[format_].render(made(given, **shown))


def several():
    """Eleven crashes in one library, of three unpacked copies; one in the compiler; a file that is no report."""
    alike = [
        read(
            report(signal(), native(f"libfoo{100_000_000 + number % 3}.so", "parse"), APPLICATION, *ENTRY),
            f"hs_err_pid{number}.log",
            modified_s=NOW_S - 60 * number,
        )
        for number in range(1, 12)
    ]
    compiler = report(
        signal(address=16),
        vm("PhaseIdealLoop::build"),
        thread=Thread("CompilerThread", "C2 CompilerThread0"),
        compile_task="C2: 12 4 com.acme.Order::total (23 bytes)",
    )
    return facts(read(compiler, "hs_err_pid99.log", modified_s=NOW_S - 5000), *alike, unread=[Unread("readme.txt", "is not a JVM crash report")])  # fmt: skip


def found():
    """Two reports in two places, of three; the third cannot be read."""
    first = read(
        report(signal(address=24), native("libfoo.so", "parse"), APPLICATION),
        "/srv/shop/hs_err_pid7.log",
        modified_s=NOW_S - 60,
    )
    second = read(
        report(signal(), method("com.acme.Order.total", "J", "c2")), "/tmp/hs_err_pid42.log", modified_s=NOW_S - 86_400
    )
    return facts(first, second, places=PLACES)


PLACES = [
    Place("/srv/shop", "working directory of 4242 (com.acme.Main)", ["/srv/shop/hs_err_pid7.log"]),
    Place("/tmp", "/tmp", ["/tmp/hs_err_pid42.log"]),
    Place("/proc/77/cwd", "working directory of 77 (app.jar)", (), "permission denied; run as root"),
]
NOTHING = Facts((), places=[place._replace(found=()) for place in PLACES], has_coredumpctl=True)


def rows_on(out, width):
    return sum(-(-max(len(line), 1) // width) for line in out.splitlines())


@pytest.mark.parametrize("format_", WRITERS)
@pytest.mark.parametrize("name", ["jdk17-unsafe", "jdk25-native"])
def test_goldens(name, format_, golden):
    """A report with its stack and details, in every format."""
    golden(f"crash-{name}.{format_}", written(Facts([of_file(name)]), format_, verbose=True))


@pytest.mark.parametrize("format_", WRITERS)
@pytest.mark.parametrize("given", [several, found], ids=lambda function: function.__name__)
def test_goldens_of_several(given, format_, golden):
    """Named ones by cause, found ones a row each."""
    golden(f"crash-{given.__name__}.{format_}", written(given(), format_))


def test_golden_of_nothing(golden):
    """The places, exit statuses, and what to type; with -v a row each place."""
    golden("crash-nothing.text", written(NOTHING, "table"))
    golden("crash-nothing-verbose.text", written(NOTHING, "table", verbose=True))


@pytest.mark.parametrize("name", SCREENS)
def test_the_first_screen(name, golden):
    """On 80 x 24 who is to blame, the reason and the next command are seen without scrolling."""
    out = table.render(made(Facts([of_file(name)])), 80, 24)
    golden(f"crash-screen-{name}.txt", out)
    assert rows_on(out, 80) <= 24


@pytest.mark.parametrize("is_compiling", [False, True], ids=["native", "compiler"])
def test_the_first_screen_with_a_long_name(is_compiling):
    """A method of 300 characters fits; its whole name is in the rows."""
    name = f"com.acme.{'VeryLongName' * 24}.total"
    made_report = report(signal(), native("libfoo.so", "parse"), method(name), *ENTRY, uptime_s=1.0)
    if is_compiling:
        task = f"C2: 1 4 {name.replace('.total', '::total')} (2 bytes)"
        made_report = report(signal(), vm("Node::in"), thread=Thread("JavaThread", "C2 CompilerThread0"), compile_task=task)  # fmt: skip
    out = table.render(made(facts(made_report)), 80, 24)
    assert rows_on(out, 80) <= 24
    assert "  next: " in out
    assert name[-30:] in out
    assert name.replace(".total", "") in table.render(made(facts(made_report)), 400).replace("/", ".")


@pytest.mark.parametrize(
    ("machine", "row"),
    [
        (Machine(container="cgroupv1", container_used_bytes=1 << 30), "cgroup cgroupv1, no memory limit, used 1 GiB"),
        (Machine(container="cgroupv2", container_memory_bytes=2 << 30), "container cgroupv2, limit 2 GiB"),
        (Machine(container="cgroupv2", container_cpus="1.5"), "container cgroupv2, no memory limit, CPUs 1.5"),
    ],
    ids=["none", "memory", "cpus"],
)  # fmt: skip
def test_a_container_is_named_by_its_limits(machine, row):
    """A JVM outside of a container is in a cgroup too."""
    out = written(facts(report(signal(), APPLICATION, machine=machine)), "table")
    assert row in [" ".join(line.split()) for line in out.splitlines()]


@pytest.mark.parametrize("given", [several, found], ids=lambda function: function.__name__)
def test_the_first_screen_of_several(given, golden):
    """The most frequent cause, with its command, and the table."""
    out = table.render(made(given()), 80, 24)
    golden(f"crash-screen-{given.__name__}.txt", out)
    assert rows_on(out, 80) <= 24


def test_verdicts_of_several():
    """How many are alike, and where; the command for the newest of those that were found."""
    assert made(several()).verdict == ["12 crashes of 2 causes; 11 alike in libfoo100000001.so+0x1234"]
    assert (
        made(found())
        .verdict[0]
        .endswith("to blame: native library libfoo.so; next: opskit crash /srv/shop/hs_err_pid7.log")
    )
    same = facts(*(read(report(signal(), native("libfoo.so"), APPLICATION), f"hs_err_pid{pid}.log") for pid in (1, 2)))
    assert made(same).verdict == ["2 crashes, all alike in libfoo.so+0x1234"]
    copies = [report(signal(), native("libc.so.6", "memcpy"), native("libfoo.so"), APPLICATION)] * 2
    assert made(facts(*copies)).verdict == ["2 crashes, all alike, to blame: native library libfoo.so"]


def test_named_directories_without_reports():
    """They are named, with the core files in them."""
    places = [Place("/srv", "directory with 1 core file: core.7 (1 GiB)"), Place("/var/x", "directory")]
    assert made(Facts((), places=places), named=True).verdict == [
        "no crash report in /srv, a directory with 1 core file: core.7 (1 GiB), /var/x"
    ]


def test_crashes_in_other_places_each():
    """Three of one application, in the compiler and the collector: the memory is suspected. The same place three times is no sign of that."""
    tasks = [f"C2: 12 4 com.acme.Order::total{number} (23 bytes)" for number in range(2)]
    compiling = [
        report(signal(), vm("Node::in"), thread=Thread("CompilerThread", "C2 CompilerThread0"), compile_task=task)
        for task in tasks
    ]
    collecting = report(signal(), vm("G1::trim"), thread=Thread("GCTaskThread", "GC Thread#0"))
    assert any(note.startswith("3 crashes of one application") for note in made(facts(*compiling, collecting)).footer)
    assert not any("bad memory" in note for note in made(facts(*compiling, *compiling)).footer)


def test_a_core_file_and_a_cut_report():
    """What the core file has, and what the report lacks, is said."""
    given = Facts(
        [
            read(
                report(signal(), native("libfoo.so"), APPLICATION, complete=False, is_error_in_error_handler=True),
                core=Core("/srv/core.42", 1 << 30, None),
            )
        ]
    )
    notes = "\n".join(made(given).footer)
    assert "the report is cut off" in notes
    assert "crashed again while it wrote the report" in notes
    assert "jhsdb jstack --exe /opt/jdk-17/bin/java --core /srv/core.42" in notes
    assert "/srv/core.42 (1 GiB)" in written(given, "table")


@pytest.mark.parametrize("format_", WRITERS)
def test_hostile_names(format_):
    """Names of files, libraries, threads, methods and variables: no control character is written, and commands are quoted."""
    for name in HOSTILE[::2]:
        frames = (
            Frame("C", f"[{name}+0x10]", f"/opt/{name}.so", None, 0x10, library_offset=0x10),
            method(f"com.{name}.run"),
            *ENTRY,
        )
        hostile = report(
            signal(), *frames, thread=Thread("JavaThread", name, name), java_command=name, environment={name: name}, at=name, core=name,
            compile_task=name, last_events=(name,), libraries=(f"/opt/{name}.so",), java_home=f"/{name}", memory_at_address=name,
        )  # fmt: skip
        given = Facts([read(hostile, name)])
        out = written(given, format_, verbose=True)
        assert all(line.isprintable() for line in out.split("\n"))
        for finding in judge(given).findings:
            for command in (finding.fix, finding.next):
                assert command is None or check_syntax(command) is None


@pytest.mark.parametrize(
    "given", [several(), found(), NOTHING, Facts([of_file("jdk17-unsafe")])], ids=["several", "found", "nothing", "one"]
)
def test_json_keeps_to_its_schema(given):
    """Of one, several, found and no reports."""
    written_one = json.loads(written(given, "json"))
    keeps_to_schema(written_one, "crash")
    assert len(written_one["crashes"]) == len(given.read)


def test_json_has_the_whole_record():
    """Each field of each record is in the object."""
    for fields, kind in (
        (document.REPORT, CrashReport),
        (document.EVENT, Event),
        (document.THREAD, Thread),
        (document.HEAP, Heap),
        (document.MACHINE, Machine),
        (document.FRAME, Frame),
    ):
        assert {field.name for field in fields} == set(kind._fields)


SECRETS = [f"s3cr3t-{number}-{name}" for name in ("opt", "env", "url", "arg", "event") for number in range(20)]


def with_secrets():
    """A hundred of them: in options, variables, URLs, arguments and the messages of exceptions."""
    each = {
        name: [secret for secret in SECRETS if secret.endswith(name)] for name in ("opt", "env", "url", "arg", "event")
    }
    options = " ".join(f"-Dapp{number}.password={secret}" for number, secret in enumerate(each["opt"]))
    urls = " ".join(
        f"-Ddb{number}.url=jdbc:postgresql://app:{secret}@db/x" for number, secret in enumerate(each["url"])
    )
    command = "com.acme.Main " + " ".join(f"--api-token={secret}" for secret in each["arg"])
    return Facts([read(report(
        signal(), native("libfoo.so"), APPLICATION, jvm_arguments=f"{options} {urls}", command_line=f"{options} {urls} {command}", java_command=command,
        environment={f"DB_PASSWORD_{number}": secret for number, secret in enumerate(each["env"])},
        last_events=[f"Exception <a 'java/lang/Error': login failed: password={secret}>" for secret in each["event"]],
    ))])  # fmt: skip


@pytest.mark.parametrize("format_", WRITERS)
def test_no_secret_is_shown(format_):
    """In no format; --no-redact shows them."""
    out = written(with_secrets(), format_, verbose=True)
    assert not [secret for secret in SECRETS if secret in out]
    assert "com.acme.Main" in out
    result = judge(with_secrets(), redact=False)
    bare = WRITERS[format_].render(complete(view(ABOUT, result, Shown(verbose=True)), result))
    assert all(secret in bare for secret in SECRETS if not secret.endswith("event"))
