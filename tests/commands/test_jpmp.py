"""`opskit jpmp` on saved dumps: the shell script's answer to the letter, and what the script cannot read."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import jsonschema
import pytest
from awkjpmp import folded, script
from imports import HEAVY, imported
from stracing import ACTS, OPENS, traced
from twodumps import DUMP, LATER

from opskit.cli import run

ROOT = Path(__file__).resolve().parents[2]
PARKED = "jdk.internal.misc.Unsafe.park,j.util.concurrent.ThreadPoolExecutor.getTask"
HOT = "j.util.HashMap.get,com.example.Main$$Lambda.run,com.example.Main.main"


@pytest.fixture
def saved(tmp_path):
    """A function that saves a text to a file; its path."""

    def save(content, name="x.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return save


def test_text_is_the_scripts_line_a_stack(opskit, inprocess, saved):
    """Count in 7 columns, a space, the stack; most first; nothing else on stdout. stderr names the dialect."""
    done = opskit("jpmp", saved(DUMP))
    assert (done.code, done.out) == (0, f"      2 {PARKED}\n      1 {HOT}\n")
    assert done.err.startswith("1 dump, 4 threads; read as HotSpot. ")
    assert inprocess("jpmp", "-", stdin=DUMP).out == done.out
    assert inprocess("jpmp", saved(DUMP, "a"), saved(DUMP, "b")).out == f"      4 {PARKED}\n      2 {HOT}\n"


# Those without virtual threads, deadlocks, prefixes, cut-off ends and foreign encodings: there the script goes wrong.
SCRIPTABLE = [
    "hpux-jdk1.x-no-version-3dumps.txt",
    "jdk11-liberica-highcpu-3dumps.txt",
    "jdk11-threadinfo-tostring-fragment.txt",
    "jdk11-windows-swt-hang.txt",
    "jdk14-kotlin-coroutines-kotest.txt",
    "jdk17-actuator-text-appprefix.txt",
    "jdk17-blocker-3dumps.txt",
    "jdk17-eclipse-quotes-and-comma.txt",
    "jdk21-macos-jstack.txt",
    "jdk5-apple-blocked-3dumps.txt",
    "jdk5-weblogic90-console-japanese.txt",
    "jdk6-nutch-crawler-linux.txt",
    "jdk7-torquebox-jruby-conc.txt",
    "jdk8-clojure-agent-pool-fragment.txt",
    "jdk8-jvmtools-sample.txt",
    "jdk8-swing-heap-section.txt",
]


@pytest.mark.parametrize("name", SCRIPTABLE)
def test_real_dumps_count_as_the_script_counts_them(inprocess, samples, name):
    """The real awk, sort and uniq on the same file: the same stacks, as often."""
    path = samples / "thread-dumps" / name
    assert folded(inprocess("jpmp", path).out) == folded(script(path))


def test_where_the_script_goes_wrong(inprocess, samples):
    """Deadlock sections are counted once, other encodings and prefixes are read."""
    folder = samples / "thread-dumps"
    deadlocks = folder / "jdk1.4-sun-deadlock-7dumps.txt"
    mine, theirs = folded(inprocess("jpmp", deadlocks).out), folded(script(deadlocks))
    blocked = "net.homeip.yusuke.samurai.test.AThread.run"
    assert (mine[blocked], theirs[blocked]) == (14, 28)
    for name in ("jdk21-minecraft-jcmd-utf16-crlf.txt", "jdk7-markdown-quoted-dump-fragment.txt"):
        assert inprocess("jpmp", folder / name).out
        assert not script(folder / name)


def test_names(inprocess, saved):
    """--full-names keeps them, --lines adds the place, --depth cuts."""
    path = saved(DUMP)
    assert inprocess("jpmp", path, "--full-names").out.splitlines()[1] == (
        "      1 java.util.HashMap.get,com.example.Main$$Lambda$14/0x0000000800c03000.run,com.example.Main.main"
    )
    assert (
        "j.util.HashMap.get(HashMap.java:552),com.example.Main$$Lambda.run(Unknown Source),"
        in inprocess("jpmp", path, "--lines").out
    )
    assert (
        inprocess("jpmp", path, "--depth", 1).out
        == "      2 jdk.internal.misc.Unsafe.park\n      1 j.util.HashMap.get\n"
    )


def test_selection(inprocess, saved):
    """--state, --include, --exclude, --no-idle, -n."""
    path = saved(DUMP)
    for options in (
        ["--state", "runnable"],
        ["--include", r"HashMap"],
        ["--exclude", r"^jdk\.internal"],
        ["--no-idle"],
        ["--include", "j.util.HashMap"],
    ):
        assert inprocess("jpmp", path, *options).out == f"      1 {HOT}\n", options
    assert inprocess("jpmp", path, "-n", 1).out == f"      2 {PARKED}\n"
    assert inprocess("jpmp", path, "-n", 0).out.count("\n") == 2
    assert inprocess("jpmp", path, "--state", "BLOCKED", "--state", "WAITING").out == f"      2 {PARKED}\n"


def test_a_pattern_with_two_brackets_is_a_pattern(opskit, saved):
    """`[[` may become a nested set in a later Python: its warning is not the user's."""
    done = opskit("jpmp", saved(DUMP), "--include", "[[a-z]ashMap", env={"PYTHONWARNINGS": "default"})
    assert (done.code, "FutureWarning" in done.err) == (0, False)


def test_roots(inprocess, saved):
    """--by-thread and --by-pool; a `;` in a name does not make a frame."""
    path = saved(DUMP)
    assert inprocess("jpmp", path, "--by-thread", "-f", "folded").out == (
        "main;com.example.Main.main;com.example.Main$$Lambda.run;java.util.HashMap.get 1\n"
        "pool-1-thread-1;java.util.concurrent.ThreadPoolExecutor.getTask;jdk.internal.misc.Unsafe.park 1\n"
        "pool-1-thread-2: x;java.util.concurrent.ThreadPoolExecutor.getTask;jdk.internal.misc.Unsafe.park 1\n"
    )
    assert f"      1 {PARKED},pool-1-thread-*\n" in inprocess("jpmp", path, "--by-pool").out
    nameless = saved(DUMP.replace('"main"', '""'), "nameless")
    assert f'      1 {HOT},""\n' in inprocess("jpmp", nameless, "--by-thread").out


def test_on_cpu_of_saved_dumps(inprocess, saved):
    """The weight is CPU ms from the first dump to the last; what ran is not what was RUNNABLE."""
    done = inprocess("jpmp", saved(DUMP + LATER), "--on-cpu")
    assert (done.code, done.out) == (0, f"    100 {HOT}\n     10 [GC Thread]\n")


def test_folded_is_read_back(inprocess, saved):
    """Its own, and what other profilers write; the sums stay."""
    first = inprocess("jpmp", saved(DUMP), "-f", "folded").out
    assert inprocess("jpmp", saved(first, "a.folded"), "-f", "folded").out == first
    assert inprocess("jpmp", saved(first, "a.folded")).out == inprocess("jpmp", saved(DUMP)).out
    other = "java;[libjvm.so];java/util/HashMap.get_[j];do_syscall_64_[k] 7\nmain;std::map<a b>::at(int) 3\n\n"
    assert inprocess("jpmp", saved(other, "perf.txt"), "-f", "folded").out == (
        "java;[libjvm.so];java/util/HashMap.get_[j];do_syscall_64_[k] 7\nmain;std::map<a b>::at(int) 3\n"
    )


def test_json_has_everything_and_is_read_back(inprocess, saved):
    """Frameless threads included; what is read back gives the same lines."""
    done = inprocess("jpmp", saved(DUMP + LATER), "-f", "json")
    document = json.loads(done.out)
    by_frame = {entry["frames"][0] if entry["frames"] else "": entry for entry in document["stacks"]}
    assert by_frame["java.util.HashMap.get"] == {
        "frames": ["java.util.HashMap.get", "com.example.Main$$Lambda.run", "com.example.Main.main"],
        "samples": 2,
        "cpu_ms": 100.0,
        "off_cpu_ms": None,
        "kinds": None,
        "state": "RUNNABLE",
        "threads": 1,
        "pools": {"main": 1},
        "container": None,
        "idle": False,
        "deadlocked": False,
    }
    assert by_frame[""]["samples"] == 2
    assert (document["sample_count"], document["threads"], document["weight"]) == (2, 4, "samples")
    assert (document["samples"], document["locks"], document["ended"]) == (None, None, None)
    schema = json.loads((ROOT / "docs" / "schemas" / "jpmp.json").read_text(encoding="utf-8"))
    jsonschema.validate(document, schema)
    jsonschema.validate(json.loads(inprocess("jpmp", saved(DUMP), "--locks", "-f", "json").out), schema)
    path = saved(done.out, "x.json")
    assert inprocess("jpmp", path).out == inprocess("jpmp", saved(DUMP + LATER)).out
    assert inprocess("jpmp", path, "--on-cpu").out == f"    100 {HOT}\n"


def test_the_table_hides_the_idle_and_says_so(inprocess, saved, golden):
    """Hot stacks, the largest group, and the number of other idle stacks; the same in Markdown."""
    path = saved(DUMP + LATER)
    for format_ in ("table", "markdown"):
        out = inprocess("jpmp", path, "-f", format_).out
        assert out.index("HashMap.get") < out.index("ThreadPoolExecutor.getTask")
        assert "1 idle stack hidden; --idle shows it" in re.sub(r"\\", "", out)
        cleaned = out.replace(path, "dumps.txt").replace(path.replace("_", "\\_"), "dumps.txt")
        cleaned = re.sub(r"^.*opskit \S+  (?:files)", "HOST  TIME  opskit VERSION  files", cleaned, flags=re.MULTILINE)
        golden(
            f"jpmp-{format_}.txt", re.sub(r"^    \$ .*$", "    $ opskit jpmp dumps.txt", cleaned, flags=re.MULTILINE)
        )
    assert "idle stack" not in inprocess("jpmp", path, "-f", "table", "--idle").out
    assert "idle stack" not in inprocess("jpmp", path, "-f", "table", "--include", "HashMap").out


def test_a_deadlock_comes_first(inprocess, samples):
    """The verdict names its threads, the table begins with their stacks, text has it on stderr."""
    path = samples / "thread-dumps" / "jdk25-three-way-deadlock.txt"
    done = inprocess("jpmp", path, "-f", "table")
    assert done.code == 1
    table = done.out.splitlines()
    assert table[1].startswith(
        'deadlock of 2 threads: "DeadlockThread-A" waits for java.lang.Object held by "DeadlockThread-B";'
    )
    assert "DEADLOCK" in next(line for line in table if "RUNNABLE" in line or "DEADLOCK" in line)
    assert any(line == f"  next: opskit jpmp --locks {path}" for line in table)
    for format_ in ("text", "folded", "svg"):
        done = inprocess("jpmp", path, "-f", format_)
        assert (done.code, done.err.count("deadlock of"), done.err.count("error jvm-deadlock (")) == (1, 3, 3)
        assert "jvm-deadlock" not in done.out
    findings = json.loads(inprocess("jpmp", path, "-f", "json").out)["findings"]
    assert [(one["code"], one["severity"], one["class"]) for one in findings] == [
        ("jvm-deadlock", "error", "stuck")
    ] * 3
    assert findings[0]["entity"]["kind"] == "file"
    assert findings[0]["evidence"] == "reported by the JVM in 1 of 1 dump"


def test_a_cut_off_dump_is_said(inprocess, saved):
    """Whole stacks are shown, their number goes to stderr, exit code 0."""
    path = saved(DUMP[: DUMP.index("ThreadPoolExecutor.java:1062", 900)])
    done = inprocess("jpmp", path)
    assert done.code == 0
    assert done.out == f"      1 {HOT}\n      1 {PARKED}\n"
    said = f"opskit: {path}: the dump is cut off: 2 whole stacks, the rest is missing"
    assert done.err.splitlines()[0] == said


@pytest.mark.parametrize(("content", "name"), [
    (DUMP, "x.txt"),
    ("a;b;c 4\na;d 2\n", "x.folded"),
    ('{"stacks": [{"frames": ["c.d", "a.b"], "samples": 3}]}', "x.json"),
])  # fmt: skip
def test_gzip_files_are_read(inprocess, saved, content, name):
    """Dumps and profiles, by what is in them; x.folded.gz is a profile by its name."""
    plain = inprocess("jpmp", saved(content, name))
    assert inprocess("jpmp", saved(gzip.compress(content.encode()), f"{name}.gz")).out == plain.out != ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "{}: empty: no thread dump in it"),
        (b"line\n" * 812, "no thread dump in {}: 812 lines read"),
        (b"\x7fELF\0\1\2\3\0\0\0", "{}: no thread dump: it is a binary (ELF)"),
        (b"\x1f\x8b\x08\0\1\2\3", "{}: truncated gzip"),
        (b"\1\2\3\0\0\0\xff", "{}: no thread dump: it is binary data"),
        (b"a;b 1\na;c 2\nnonsense\na;d 4\n", "{}:3: not `frame;frame;… count`: 'nonsense'"),
        (b"a;b 1\na;c -2\n", "{}:2: a negative count: 'a;c -2'"),
        (b'{"stacks": [{"frames": "a", "samples": 1}]}', "{}: stacks[0]: frames is not a list of strings"),
        (b'{"stacks": [{"frames": ["a"], "samples": -1}]}', "{}: stacks[0]: samples is not a number >= 0: '-1'"),
        (b'{"stacks": [7]}', "{}: stacks[0]: not an object"),
        (b'{"threads": []}', "no thread dump in {}: 1 line read"),
        (b'{"stacks": [', "no thread dump in {}: 1 line read"),
    ],
)
def test_bad_files_are_one_clear_line(inprocess, saved, content, message):
    """Place, what was found, exit code 2."""
    path = saved(content, "x.log")
    done = inprocess("jpmp", path)
    assert (done.code, done.out) == (2, "")
    assert message.format(path) in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["./no-such-file"], "./no-such-file: cannot be read: No such file or directory"),
        (["/tmp"], "/tmp: is a directory; name the files in it: /tmp/*"),
        (["FILE", "--by-thread", "--by-pool"], "--by-thread and --by-pool exclude each other"),
        (["FILE", "--on-cpu"], "--on-cpu needs two dumps or more"),
        (["FILE", "--include", "("], "'(' is not a regular expression"),
        (["FILE", "--state", "SLEEPING"], "'SLEEPING' is not one of"),
        (["FILE", "--depth", "0"], "--depth"),
        (["FILE", "-5"], "-5… is negative"),
        (["FILE", "-o", "x.bmp"], "unknown suffix '.bmp'"),
        (["FILE", "-o", "folded"], "did you mean -f folded"),
    ],
)
def test_bad_words_are_one_clear_line(inprocess, saved, arguments, message):
    """One line about the invalid usage, exit code 2."""
    path = saved(DUMP)
    done = inprocess("jpmp", *(path if word == "FILE" else word for word in arguments))
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_on_cpu_without_readings_is_refused(inprocess, saved):
    """JDK 8 has no cpu=, collapsed stacks have no CPU time."""
    done = inprocess("jpmp", saved(re.sub(r"cpu=\S+ ", "", DUMP * 2)), "--on-cpu")
    assert done.code == 2
    assert "no cpu=" in done.err
    done = inprocess("jpmp", saved("a;b 1\n", "x.folded"), "--on-cpu")
    assert done.code == 2
    assert "collapsed stacks say nothing about CPU" in done.err


def test_names_cannot_act_on_the_terminal(inprocess, saved):
    """Escapes and newlines in thread names are shown, never sent."""
    path = saved(DUMP.replace("pool-1-thread-1", "evil\x1b[31m\u202e"))
    for format_ in ("table", "text", "folded", "markdown"):
        out = inprocess("jpmp", path, "--by-thread", "--idle", "-f", format_).out
        assert "\x1b" not in out
        assert "\u202e" not in out


def test_text_imports_nothing_heavy(saved):
    """A file of dumps needs no rich, json or socket: the machine may be overloaded."""
    assert not imported("jpmp", saved(DUMP)) & HEAVY


def test_files_are_read_and_nobody_is_touched(saved):
    """As the page's table says, and as strace sees it: nothing written but its own oom_score_adj, no signal, no socket."""
    done = traced("jpmp", saved(DUMP), "-f", "json", calls=(*OPENS, *ACTS, "connect"))
    assert done.code == 0
    assert done.acting() == []
    assert sum("x.txt" in call for call in done.calls) == 1


def test_long_help_is_grouped_by_topic(inprocess):
    """Each option once, below what it is about."""
    out = inprocess("jpmp", "--help").out
    topics = re.findall(r"^([A-Z]\w+):$", out, re.MULTILINE)
    assert topics[:5] == ["Sampling", "Show", "Locks", "Pictures", "Output"]
    assert out.index("--max-stop") < out.index("Show:") < out.index("--depth") < out.index("Pictures:")


def test_options_of_a_live_jvm_are_refused_for_files(inprocess, saved):
    """The schedule too."""
    for words in (["-c", "3"], ["-i", "1"], ["--max-stop", "5"], ["--virtual"], ["--save", "/tmp/x"]):
        done = inprocess("jpmp", saved(DUMP), *words)
        assert (done.code, done.out) == (2, "")
        assert "goes with a live JVM, not with files" in done.err


def test_output_goes_to_a_file_by_its_suffix(saved, tmp_path):
    """-o x.folded."""
    target = tmp_path / "x.folded"
    assert run(["jpmp", saved(DUMP), "-o", str(target)]) == 0
    assert target.read_text().startswith(
        "java.util.concurrent.ThreadPoolExecutor.getTask;jdk.internal.misc.Unsafe.park 2\n"
    )
