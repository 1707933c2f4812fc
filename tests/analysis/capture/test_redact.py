"""A capture holds the names of what it saw, and none of the secrets; what the commands read of it stays as it was."""

from __future__ import annotations

import subprocess
import time

import jvms
import pytest
from hsperf import build
from secrets_planted import PLANTED, forms_of, leaks

from opskit.analysis.capture.redact import redact
from opskit.collect.found_jvms import found_jvms
from opskit.jvm.perfdata.hsperfdata import parse_hsperfdata, text_places
from opskit.proc.fs import ProcFS
from opskit.proc.recorded.packing import pack
from opskit.proc.recorded.tape import CALL, FDS, FILE, LINK, NAMES, RANGES, REPLY, Mark, Origin, Tape
from opskit.recorded_host import RecordedHost
from opskit.redact import noting, redact_environment, redact_value

SECRET = "Tr0ub4dor-Xy7"  # noqa: S105
CMDLINE = f"shop\0-Ddb.password={SECRET}\0".encode()


def _tape(**files: bytes) -> Tape:
    tape = Tape(Origin(), (Mark(0, 0),))
    for path, data in files.items():
        tape.keep(FILE, path, data)
    return tape


def _redacted(path: str, data: bytes, *, cmdline: bytes = CMDLINE) -> bytes:
    """A file beside a command line."""
    tape = _tape(**{"/proc/7/cmdline": cmdline, path: data})
    redact(tape)
    return tape.find(FILE, path, 0)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _planted() -> Tape:
    tape = _tape()
    for pid, each in enumerate(PLANTED, 100):
        if each.words:
            tape.keep(FILE, f"/proc/{pid}/cmdline", _encoded("\0".join(("sh", "-c", "read x", *each.words, ""))))
        elif each.variables:
            entries = [f"{name}={value}\0" for name, value in each.variables.items()]
            tape.keep(FILE, f"/proc/{pid}/environ", _encoded("".join(entries)))
        else:
            tape.keep(FILE, f"/etc/systemd/system/{pid}.conf", _encoded(f"[Service]\n{each.text}\n"))
    return tape


@pytest.fixture(scope="module")
def planted():
    """A tape with every planted secret, redacted, and what was hidden."""
    tape = _planted()
    return tape, redact(tape)


def _archive(tape: Tape) -> bytes:
    return b"".join(part for name, data in pack(tape) for part in (name.encode(), data))


def test_no_planted_secret_is_in_the_archive(planted):
    """In no form: raw, UTF-16, escaped for URLs, JSON and TSV, base64. Without redaction each is there."""
    tape, hidden = planted
    assert len(PLANTED) >= 100
    assert len({each.kind for each in PLANTED}) >= 12
    assert leaks(_archive(tape), PLANTED) == []
    assert hidden.total >= len(PLANTED)
    assert tape.origin.hidden == hidden.total
    assert tape.origin.is_redacted
    assert sum(int(each.split()[0]) for each in tape.origin.hidden_kinds) == hidden.total
    plain = _archive(_planted())
    assert all(any(form in plain for form in forms_of(each.secret).values()) for each in PLANTED)


def test_redacting_again_changes_nothing(planted):
    """What is hidden already is neither hidden nor counted again."""
    tape, _ = planted
    before = [data for _, _, data in tape.all_of(FILE)]
    assert redact(tape).total == 0
    assert [data for _, _, data in tape.all_of(FILE)] == before


def test_counters_of_a_jvm_keep_their_length_and_entries():
    """The file parses as before, with as many `*` as the value had bytes; a value with blanks is hidden whole."""
    data = build({
        "sun.rt.javaCommand": "com.acme.Main --token abc9def8 -p pässw0rd serve",
        "java.rt.vmArgs": f"-Xmx1g -Ddb.password={SECRET} -Dx.password=a b c -Xlog:gc:file=/var/log/gc.log",
        "java.property.java.version": "17.0.9", "sun.rt.safepointTime": 5,
    })  # fmt: skip
    shown = _redacted("/tmp/hsperfdata_root/7", data)
    assert len(shown) == len(data)
    before, after = parse_hsperfdata(data, "x").counters, parse_hsperfdata(shown, "x").counters
    assert before.keys() == after.keys()
    assert after["sun.rt.javaCommand"].value == "com.acme.Main --token ******** -p ********* serve"
    options = f"-Xmx1g -Ddb.password={'*' * len(SECRET)} -Dx.password=***** -Xlog:gc:file=/var/log/gc.log"
    assert after["java.rt.vmArgs"].value == options
    assert after["java.property.java.version"] == before["java.property.java.version"]
    assert [name for name, _, _ in text_places(shown)][-1] == "java.property.java.version"


def test_a_cut_text_of_a_jvm_hides_the_beginning_of_a_value():
    """HotSpot cuts its texts at 1,023 bytes."""
    text = ("x" * 1016 + " " + SECRET)[:1023]
    shown = _redacted("/tmp/hsperfdata_root/7", build({"sun.rt.javaCommand": text}))
    assert parse_hsperfdata(shown, "x").counters["sun.rt.javaCommand"].value == "x" * 1016 + " " + "*" * 6


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("secret", [SECRET, "пароль密码42"])
def test_memory_of_a_jvm(encoding, secret):
    """At equal length, also over the border of two ranges that were read one after the other."""
    data = b"\1\2\0\0" + secret.encode(encoding) + b"\0\0\3\4"
    tape = _tape(**{"/proc/7/cmdline": f"x\0--password\0{secret}\0".encode()})
    tape.keep(RANGES, "/proc/7/mem", {4096: data[:9], 4105: data[9:], 9000: b"\1\2\3"})
    redact(tape)
    ranges = tape.find(RANGES, "/proc/7/mem", 0)
    whole = ranges[4096] + ranges[4105]
    assert len(whole) == len(data)
    assert secret.encode(encoding) not in whole
    assert whole[:4] == data[:4]
    assert whole[-4:] == data[-4:]
    assert ranges[9000] == b"\1\2\3"


@pytest.mark.parametrize("secret", [SECRET, "a\nb c\\d", "83925713", "pässw0rd"])
def test_a_property_that_was_set_at_run_time(secret):
    """Its name and its value are two objects in the memory of the JVM: the value is known from the report that hid it."""
    tape = _tape()
    tape.keep(RANGES, "/proc/7/mem", {64: b"db.password\0", 4096: b"\1\0" + secret.encode("latin-1") + b"\0\3"})
    with noting() as secrets:
        redact_value("db.password", secret)
        redact_environment({"SHOP": "eu"})
    assert secrets == {secret}
    redact(tape, secrets)
    stars = b"*" * len(secret)
    assert tape.find(RANGES, "/proc/7/mem", 0) == {64: b"db.password\0", 4096: b"\1\0" + stars + b"\0\3"}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (b"https://u:p%40ss%2Fw0rd@h", "p@ss/w0rd"),
        (b'{"password":"ab\\"cdef"}', 'ab"cdef'),
        (b"-Dx.password=a\\:bcdef\\u00e9\\ud83d\\ude00", "a:bcdefé😀"),
        ("--password\0ключ-42".encode(), "\\u043A\\u043B\\u044E\\u0447-42"),
        (b"--password\0\\ud83d-abcdef", "\\ud83d-abcdef"),
    ],
)
def test_a_value_without_its_escapes(words, text):
    """A program reads `p@ss` of a URL with `p%40ss`, and shows that elsewhere; properties have upper-case escapes."""
    assert (
        _redacted("/var/log/shop.log", f"has {text} in it\n".encode(), cmdline=b"shop\0" + words + b"\0")
        == "has … in it\n".encode()
    )


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/var/log/shop.log", "started with @@, then\n"),
        ("/proc/7/maps", "7f00-7f01 r--s 00000000 08:01 12 /tmp/@@/x.so\n"),
        ("/proc/7/mountinfo", "1 2 0:3 / /mnt/@@ rw - cifs //h/x rw\n"),
        ("/proc/7/task/8/comm", "@@\n"),
        ("/proc/7/task/8/stat", "8 (@@) S 1 2 3\n"),
        ("/proc/7/task/8/status", "Name:\t@@\nState:\tS\n"),
        ("/proc/net/unix", "0: 2 0 0 1 1 5 /run/@@.sock\n"),
        ("/sys/kernel/slab/x/y", "@@\n"),
    ],
)
def test_a_value_that_was_hidden_once_is_hidden_elsewhere(path, text):
    """In each file but those of numbers."""
    shown = _redacted(path, text.replace("@@", SECRET).encode())
    assert shown.decode() == text.replace("@@", "…")


def test_a_value_in_names_links_answers_and_replies():
    """Paths are renamed alike where they are listed and where they are asked for."""
    tape = _tape(**{"/proc/7/cmdline": CMDLINE, f"/srv/{SECRET}/x": b"1"})
    tape.keep(NAMES, "/srv", (SECRET, "other"))
    tape.keep(LINK, "/proc/7/cwd", f"/srv/{SECRET}".encode())
    tape.keep(FDS, "/proc/7/fd", ((b"3", f"/srv/{SECRET}/x".encode(), 0), (b"4", b"pipe:[1234]", 0)))
    tape.keep(CALL, "q(1)", ["answer", [1, SECRET, "token=abcdef9x", {"base64": "VHIwdWI0ZG9yLVh5Nw=="}]])
    tape.keep(REPLY, "7/properties", f"db.password=a b c\nx={SECRET}\njava.home=/opt/jdk\n".encode())
    redact(tape)
    assert tape.find(FILE, "/srv/…/x", 0) == b"1"
    assert tape.find(NAMES, "/srv", 0) == ("…", "other")
    assert tape.find(LINK, "/proc/7/cwd", 0) == "/srv/…".encode()
    assert tape.find(FDS, "/proc/7/fd", 0)[1] == (b"4", b"pipe:[1234]", 0)
    assert SECRET not in str(tape.answers)
    assert tape.find(CALL, "q(1)", 0)[1][:3] == [1, "…", "token=…"]
    assert tape.find(REPLY, "7/properties", 0) == "db.password=…\nx=…\njava.home=/opt/jdk\n".encode()


@pytest.mark.parametrize(
    "value",
    ["root", "8080", "1234", "true", "shop", "kafka", "/etc/shop/db.pem", "/opt/jdk/bin/java", "--verbose", "java"],
)
def test_a_common_value_is_hidden_in_its_own_place_alone(value):
    """The name of a user or a process, a port, a path: replaced everywhere it would spoil the reports."""
    text = f"{value} x={value} /{value}/x\n".encode()
    files = {"/proc/7/cmdline": f"shop\0--password={value}\0".encode(), "/proc/7/comm": b"shop\n", "/var/x.log": text}
    tape = _tape(**files)
    redact(tape)
    assert tape.find(FILE, "/var/x.log", 0) == text


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/proc/7/stat", b"7 (shop) S 1 83925713 3\n"),
        ("/proc/7/io", b"rchar: 83925713\n"),
        ("/proc/7/limits", b"Max processes 83925713\n"),
        ("/proc/7/maps", b"83925713-83925714 r-xp 00000000 08:01 83925713 /lib/x.so\n"),
        ("/sys/fs/cgroup/a/memory.current", b"83925713\n"),
        ("/proc/7/cgroup", b"0::/docker/" + b"0123456789abcdef" * 4 + b"\n"),
        ("/proc/sys/kernel/random/boot_id", b"6f1e6bb1-4b6f-4b62-8f5e-0d7ac1f5a3c1\n"),
        ("/etc/passwd", b"root:x:0:0:root:/root:/bin/bash\n"),
        ("/etc/security/limits.conf", b"* soft nofile 83925713\n"),
        ("/var/log/gc.log", b"[0.1s][info][gc,heap,exit] Metaspace used 83925713K, committed 1K\n"),
    ],
)
def test_what_the_commands_read_stays(path, data):
    """Numbers, identities and paths, even where a password has the same digits."""
    assert _redacted(path, data, cmdline=b"shop\0--password=83925713\0") == data


def test_numbers_of_a_histogram_stay():
    """A password of digits may be a size there."""
    tape = _tape(**{"/proc/7/cmdline": b"shop\0--password=83925713\0"})
    tape.keep(REPLY, "7/histogram", b"   1:   12   83925713  [B (java.base@17)\n")
    redact(tape)
    assert tape.find(REPLY, "7/histogram", 0) == b"   1:   12   83925713  [B (java.base@17)\n"


def test_options_variables_and_paths_that_are_no_secrets_stay():
    """Heap sizes, collectors, log files, serializers, main classes, key files."""
    words = (
        b"java\0-Xmx4g\0-XX:+UseG1GC\0-Xlog:gc:file=/var/log/gc.log\0-Dkey.serializer=org.acme.StringSerializer\0-cp\0/a.jar\0"
        b"com.acme.TokenServer\0--key-file\0/etc/ssl/shop.pem\0--token-ttl=3600\0--authorization-mode=Node,RBAC\0"
    )
    variables = b"JAVA_TOOL_OPTIONS=-Xmx1g\0MALLOC_ARENA_MAX=2\0TZ=UTC\0FAKETIME=-7h\0IRQBALANCE_BANNED_CPULIST=0-3\0"
    tape = _tape(**{"/proc/7/cmdline": words, "/proc/7/environ": variables})
    assert redact(tape).total == 0
    assert (tape.find(FILE, "/proc/7/cmdline", 0), tape.find(FILE, "/proc/7/environ", 0)) == (words, variables)


def test_the_environment_in_a_crash_report():
    """By the same allow list as that of a process."""
    report = "Environment Variables:\nPATH=/bin\nSHOP=x y\n\njvm_args: -Xmx1g -Dpw=a b -Dx=y\n"
    shown = "Environment Variables:\nPATH=/bin\nSHOP=…\n\njvm_args: -Xmx1g -Dpw=… -Dx=y\n"
    assert _redacted("/tmp/hs_err_pid7.log", report.encode()).decode() == shown


def test_real_processes_and_a_real_jvm():
    """Read as a capture reads them: command lines, environments, counters; the JVM is found as before."""
    planted = [each for each in PLANTED if not each.text]
    properties = tuple(
        word for each in planted for word in each.words if word.startswith("-D") and "\udcff" not in word
    )
    shells = [
        subprocess.Popen(
            [b"sh", b"-c", b"read x", *map(_encoded, each.words)],
            env={_encoded(name): _encoded(value) for name, value in each.variables.items()},
            stdin=subprocess.PIPE,
        )
        for each in planted[::4]
    ]
    try:
        with jvms.running(properties=properties, env={"JAVA_TOOL_OPTIONS": f"-Ddb.password={SECRET}"}) as jvm:
            tape = Tape(Origin(), (Mark(time.time(), time.monotonic()),))
            host = RecordedHost(tape, source=ProcFS())
            for pid in (jvm.pid, *(each.pid for each in shells)):
                for name in ("cmdline", "environ", "maps", "status", "stat"):
                    host.fs.maybe(str, pid, name)
            mains = {each.pid: each.main for each in found_jvms(host, [jvm.pid]).jvms}
    finally:
        for each in shells:
            each.communicate()
    assert jvm.pid in mains
    redact(tape)
    assert leaks(_archive(tape), PLANTED) == []
    assert SECRET.encode() not in _archive(tape)
    assert {each.pid: each.main for each in found_jvms(RecordedHost(tape), [jvm.pid]).jvms} == mains
