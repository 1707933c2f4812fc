"""The files of a capture: what was asked of the machine is answered again, and what was not asked is unknown."""

from __future__ import annotations

import errno
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit.errors import NotPermitted
from opskit.proc.fs import DENIED, ProcFS, Refused
from opskit.proc.kept_reads import KeptReads
from opskit.proc.recorded import tape as kinds
from opskit.proc.recorded.tape import Failure, Mark, Origin, Tape
from opskit.proc.treefs import TreeFS
from opskit.recorded_host import RecordedHost

MARKS = Mark(1_700_000_000.0, 100.0), Mark(1_700_000_001.0, 101.0)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A tree with a process, its fds, links, a directory of others, a FIFO and a file that is too large."""
    root = tmp_path_factory.mktemp("tree")
    process = root / "proc/40"
    (process / "fd").mkdir(parents=True)
    (process / "task/41").mkdir(parents=True)
    (process / "task/40").mkdir()
    (process / "stat").write_text("40 (java) S")
    (process / "cmdline").write_bytes(b"java\0-jar\0")
    (process / "exe").symlink_to("/usr/bin/java")
    (process / "root").symlink_to("/")
    for number, target in {0: "pipe:[7]", 1: "pipe:[8]", 10: "/var/log/x"}.items():
        (process / f"fd/{number}").symlink_to(target)
    (root / "proc/meminfo").write_text("MemTotal: 1 kB\n")
    (root / "etc").mkdir()
    (root / "etc/passwd").write_text("app:x:7::/:\n")
    (root / "etc/localtime").symlink_to("../etc/passwd")
    (root / "etc/loop").symlink_to("loop")
    (root / "tmp").mkdir()
    for name in ("fifo", "pipe"):
        os.mkfifo(root / "tmp" / name)
    (root / "tmp/dir").mkdir()
    (root / "tmp/data").write_bytes(bytes(range(256)) * 40)
    with open(root / "proc/40/status", "wb") as status:
        status.truncate(2 << 20)
    return root


# Of each primitive calls that succeed, and calls that fail in each way.
CALLS = (
    *(("read", (40, name)) for name in ("stat", "cmdline", "status", "none", "exe")),
    *(("link", (40, name)) for name in ("exe", "stat", "none", "fd/10")),
    *(("file_id", (40, name)) for name in ("stat", "exe", "none")),
    *(("exists", (40, name)) for name in ("stat", "none")),
    *(("root_exists", ("etc", name)) for name in ("passwd", "loop", "none")),
    ("pids", ()), ("tids", (40,)), ("tids", (41,)), ("thread_count", (40,)), ("fd_count", (40,)), ("fd_count", (7,)),
    ("names_root", ("etc",)), ("names_root", ("none",)), ("root_directories", ("tmp",)), ("root_links", ("etc",)), ("root_links", ("none",)),
    ("fd_targets", (40,)), ("fd_pairs", (40,)), ("fd_links", (40,)), ("all_fds", (40,)), ("fd_targets", (7,)),
    ("inside", (40, "/etc/localtime")), ("inside", (40, "/etc/loop")), ("inside", (7, "/etc")), ("read_inside", (40, "/etc/localtime", 100)),
)  # fmt: skip
BY_PATH = (
    ("read_path", "etc/passwd"), ("read_path", "tmp/pipe"), ("read_path", "etc/loop"), ("names_at", "etc"), ("names_at", "etc/passwd"),
    ("file_id_at", "etc/localtime"), ("file_id_at", "none"), ("is_writable", "tmp"), ("is_writable", "none"), ("space_at", "tmp"),
    ("space_at", "none"), ("entries_at", "tmp"), ("entries_at", "none"),
)  # fmt: skip


def _answer(call, *arguments):
    try:
        return call(*arguments)
    except OSError as error:
        return type(error), error.errno, error.strerror


def _ask_all(fs, root):
    path = lambda name: f"{root}/{name}"  # noqa: E731
    answers = {(name, *arguments): _answer(getattr(fs, name), *arguments) for name, arguments in CALLS}
    answers |= {each: _answer(getattr(fs, each[0]), path(each[1])) for each in BY_PATH}
    for name in ("data", "fifo", "dir", "none"):
        answers["regular", name] = _answer(lambda name=name: fs.hold_regular(path(f"tmp/{name}")).read_at(4, 5))
        answers["untrusted", name] = _answer(fs.read_untrusted, path("tmp"), name, 20_000)
        if name in ("fifo", "dir"):  # no part is read of those
            continue
        answers["held", name] = _answer(lambda name=name: fs.hold(path(f"tmp/{name}")).read_at(3, 5))
        answers["part", name] = _answer(fs.read_at, path(f"tmp/{name}"), 300, 5)
    answers["space_at", "tmp"] = answers["space_at", "tmp"].size_bytes  # what is free changes meanwhile
    answers["too large"] = _answer(fs.read_untrusted, path("tmp"), "data", 100)
    answers["by a link"] = _answer(fs.read_untrusted, path("etc"), "localtime", 100)
    answers["first"] = len(fs.names_at(path("tmp"), 2)), sorted(fs.names_at(path("tmp"), 9))
    return answers, dict(fs.refused)


@pytest.mark.parametrize("kind", [TreeFS, ProcFS])
def test_a_capture_answers_as_its_tree(root, kind):
    """Answers, errors with their type and text, and the count of refused files; without the tree as with it."""
    tree = kind(f"{root}/proc", str(root))
    origin = Origin(proc=tree.proc, root=tree.root, is_live=tree.is_live)
    tape = Tape(origin, MARKS[:1] if kind is TreeFS else MARKS)
    expected = _ask_all(tree, root)
    recorded = _ask_all(RecordedHost(tape, kind(f"{root}/proc", str(root))).fs, root)
    replayed = _ask_all(RecordedHost(tape).fs, root)
    if kind is ProcFS:  # what is always small is refused in a replay above 1 MiB
        expected[0].pop(("read", 40, "status"))
    for found in (recorded, replayed):
        assert {key: (each, found[0][key]) for key, each in expected[0].items() if each != found[0][key]} == {}
        assert kind is ProcFS or found[1] == expected[1]
    assert any(isinstance(each, tuple) and each[:1] == (Refused,) for each in expected[0].values()) == (kind is TreeFS)


def _empty(**answers):
    tape = Tape(Origin(), MARKS)
    for kind, by_key in answers.items():
        for key, answer in by_key.items():
            tape.keep(kind, key, answer)
    return RecordedHost(tape)


def test_what_nobody_asked_for_is_unknown():
    """It is refused, counted for the last line of the run, and never taken for absent."""
    fs = _empty(names={"/proc": ("1", "self")}, file={"/proc/1/stat": b"1"}).fs
    for call, arguments in (
        (fs.read, (1, "maps")), (fs.link, (1, "exe")), (fs.file_id, (1, "ns")), (fs.names_at, ("/opt",)),
        (fs.all_fds, (1,)), (fs.entries_at, ("/opt",)), (fs.hold, ("/proc/1/mem",)), (fs.read_at, ("/opt/x", 0, 9)),
        (fs.space_at, ("/",)), (fs.read_untrusted, ("/tmp", "x", 9)), (fs.file_id_at, ("/opt/x",)),
    ):  # fmt: skip
        with pytest.raises(Refused, match="not in the capture") as error:
            call(*arguments)
        assert isinstance(error.value, DENIED)
        assert error.value.filename in fs.refused
    assert set(fs.refused.values()) == {"not in the capture"}
    assert not fs.is_writable("/opt")
    assert not fs.root_exists("opt", "x")


@pytest.mark.parametrize(
    "ask",
    [
        lambda fs: fs.read(7, "stat"),
        lambda fs: fs.read(7, "task", 8, "stat"),
        lambda fs: fs.link("self2"),
        lambda fs: fs.read(1, "task", 9, "stat"),
        lambda fs: fs.read_path("/etc/none"),
        lambda fs: fs.read_path("/gone/below/it"),
        lambda fs: fs.read_path("/sys/a/none"),
        lambda fs: fs.link(1, "fd", 9),
        lambda fs: fs.read(2, "stat"),
        lambda fs: fs.names_at("/etc/none/x"),
    ],
)
def test_a_name_that_a_listing_lacks_is_absent(ask):
    """As on the machine: FileNotFoundError, which is not counted."""
    fs = _empty(
        names={
            "/proc": ("1", "2", "self"),
            "/proc/1/task": ("1",),
            "/etc": ("passwd",),
            "/gone": Failure(errno.ENOENT),
        },
        entries={"/sys/a": (("b", True, False),)},
        fds={"/proc/1/fd": ((b"0", b"pipe:[1]", 0),)},
        lstat={"/proc/2": Failure(errno.ENOENT)},
    ).fs
    with pytest.raises(FileNotFoundError):
        ask(fs)
    assert fs.refused == {}


def test_what_another_answer_says_is_known():
    """A listed name exists, an fd's link stands in the list of fds, their names are a listing, the stat of a plain file is its lstat."""
    plain = _empty(names={"/proc": ("1",)}).fs
    assert plain.exists(1)
    fs = _empty(
        fds={"/proc/1/fd": ((b"0", b"pipe:[1]", 0), (b"3", b"", 0))}, some={"/tmp": ("a",)}, file={"/x": b"abc"},
        entries={"/d": (("a", True, False),)},
    ).fs  # fmt: skip
    assert (fs.fd_count(1), fs.link(1, "fd", 0)) == (2, b"pipe:[1]")
    assert fs.fd_links(1) == [(b"0", b"pipe:[1]", 0)]
    assert fs.names_at("/tmp", 5) == ["a"]
    assert fs.names_at("/d") == ["a"]
    assert fs.hold("/x").read_at(1, 5) == b"bc"


def test_a_process_that_ended_between_the_samples_is_gone():
    """From the sample on whose list lacks it; its files of earlier samples are not taken for those of now."""
    host = _empty(
        names={"/proc": ("1", "2"), "/proc/1/task": ("1", "3")},
        file={"/proc/2/stat": b"2", "/proc/1/stat": b"1", "/proc/1/task/3/stat": b"3", "/proc/20": b"20"},
    )
    host.tape.keep(kinds.NAMES, "/proc", ("1",), 1)
    host.tape.keep(kinds.NAMES, "/proc/1/task", ("1",), 1)
    fs = host.fs
    assert [fs.read(2, "stat"), fs.read(1, "task", 3, "stat")] == [b"2", b"3"]
    host.sleep(1)
    assert fs.read(1, "stat") == b"1"
    assert fs.read(20) == b"20"
    for parts in ((2, "stat"), (1, "task", 3, "stat")):
        with pytest.raises(FileNotFoundError):
            fs.read(*parts)
    with pytest.raises(FileNotFoundError):
        fs.read_at("/proc/2/stat", 0, 1)


def test_an_answer_is_that_of_its_sample():
    """A later sample holds only what has changed."""
    host = _empty(file={"/proc/stat": b"first", "/proc/loadavg": b"same"})
    host.tape.keep(kinds.FILE, "/proc/stat", b"second", 1)
    assert host.fs.read("stat") == b"first"
    host.sleep(1)
    assert (host.fs.read("stat"), host.fs.read("loadavg"), host.fs.read_at("/proc/stat", 1, 3)) == (
        b"second",
        b"same",
        b"eco",
    )


def test_files_of_a_stranger_are_bounded():
    """A file that is always small is refused above 1 MiB, as in a copied tree."""
    fs = _empty(
        file={
            "/proc/1/status": bytes((1 << 20) + 1),
            "/proc/1/cmdline": bytes((8 << 20) + 1),
            "/proc/1/maps": bytes(1 << 21),
        }
    ).fs
    for name in ("status", "cmdline"):
        with pytest.raises(Refused, match="larger than"):
            fs.read(1, name)
    assert len(fs.read(1, "maps")) == 1 << 21


def test_parsed_files_are_kept():
    """KeptReads works on a capture: a file is parsed once."""
    fs, parsed = _empty(file={"/proc/1/status": b"x"}).fs, []
    fs.kept = KeptReads()
    for _ in range(3):
        fs.load(parsed.append, 1, "status")
    assert parsed == ["x"]


def test_is_own_is_that_of_the_machine():
    """The same files are read as on it; nothing can be sent to a process."""
    host = _empty()
    assert (host.is_own, host.is_here) == (True, False)
    with pytest.raises(NotPermitted, match="is a capture, and its processes are not here"):
        host.prove_own(1)


DATA = bytes(range(256)) * 2


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 600), st.integers(1, 300)), min_size=1, max_size=8),
    st.integers(0, 600),
    st.integers(1, 300),
)
def test_parts_of_a_file(asked, offset, size):
    """A replay gives each part as it was read; of another part what was read of it from its begin on, and never other bytes."""
    reads = []

    class Source(ProcFS):
        def read_at(self, path, offset, size):
            reads.append((offset, size))
            if offset > len(DATA):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return DATA[offset : offset + size]

    tape = Tape(Origin(), MARKS)
    recording, replay = RecordedHost(tape, Source()).fs, RecordedHost(tape).fs
    given_then = [_answer(recording.read_at, "/opt/x", *each) for each in asked]
    assert given_then == [
        DATA[at : at + length] if at <= len(DATA) else (OSError, errno.EIO, "Input/output error")
        for at, length in asked
    ]
    assert [_answer(replay.read_at, "/opt/x", *each) for each in asked] == given_then
    known = {at for begin, length in asked for at in range(begin, min(begin + length, len(DATA)))}
    found = _answer(replay.read_at, "/opt/x", offset, size)
    if isinstance(found, bytes):
        assert found == DATA[offset : offset + len(found)]
        assert known.issuperset(range(offset, offset + len(found)))
        assert offset + len(found) not in known or len(found) == size
    else:
        assert offset not in known
    assert len(reads) <= 2 * len(asked) + 8


def test_a_held_file_opens_nothing_in_a_replay():
    """It is closed as a real one, and read as often as one likes."""
    host = _empty(ranges={"/proc/1/mem": {4096: b"abcd", 4100: Failure(errno.EIO)}}, opened={"/proc/1/mem": True})
    held = host.fs.hold("/proc/1/mem")
    assert [held.read_at(4096, 2), held.read_at(4097, 9)] == [b"ab", b"bcd"]
    with pytest.raises(OSError, match="Input/output error"):
        held.read_at(4100, 1)
    with pytest.raises(Refused):
        held.read_at(0, 1)
    held.close()
    with pytest.raises(OSError, match="closed"):
        held.read_at(4096, 2)
