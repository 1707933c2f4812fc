"""Replies of JVMs in a capture: their names, their errors, and who may make a client that sends something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import opskit
from opskit.collect.replayed import go_to_reply, recorded_samples
from opskit.errors import AttachError, NotPermitted, NotSupported
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.attach.connect import client_of
from opskit.jvm.attach.recorded import RecordedClient, _error_of, failure_of
from opskit.proc.fs import ProcFS
from opskit.proc.recorded.replies import name_of
from opskit.proc.recorded.tape import REPLY, Failure, Mark, Origin, Tape
from opskit.recorded_host import RecordedHost

PACKAGE = Path(opskit.__file__).parent
FLAGS = (
    b"[Global flags]\n"
    b"   size_t MaxHeapSize                              = 134217728                                {product} {command line}\n"
    b"     bool UseSerialGC                              = true                                     {product} {ergonomic}\n"
    b"    ccstr HeapDumpPath                             =                                          {manageable} {default}\n"
    b"    ccstr ErrorFile                                = /var/log/a b{c                           {product} {command line}\n"
)


def client(**replies):
    """A client of process 7 in a capture with these replies."""
    tape = Tape(Origin(), (Mark(1.0, 1.0), Mark(2.0, 2.0)))
    for name, reply in replies.items():
        tape.keep(REPLY, f"7/{name}", reply)
    return client_of(RecordedHost(tape).fs, 7)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("threaddump",), "threads"),
        (("threaddump", "-le"), "threads"),
        (("inspectheap", "-all"), "histogram"),
        (("inspectheap", "-live"), "histogram-live"),
        (("inspectheap",), "histogram-live"),
        (("properties",), "properties"),
        (("jcmd", "VM.flags -all"), "VM.flags_-all"),
        (("jcmd", "../../etc/passwd"), "etc_passwd"),
        (("jcmd", "x" * 300), "x" * 100),
    ],
)
def test_a_reply_has_the_name_of_its_command(words, name):
    """It is a file's name in an archive: letters, digits and few signs."""
    assert name_of(*words) == name


def test_each_sample_has_the_reply_of_its_own_moment():
    """Of four samples the third has none: the replies of the others follow each other."""
    tape = Tape(Origin(), tuple(Mark(1.0 + number, 1.0 + number) for number in range(4)))
    for name in ("threads", "threads-2", "threads-4"):
        tape.keep(REPLY, f"7/{name}", name.encode())
    host = RecordedHost(tape)
    found = []
    for number in range(recorded_samples(host, 7, "threads", None)):
        go_to_reply(host, 7, "threads", next_one=number > 0)
        found.append(host.fs.replies.find(7, "threads"))
    assert found == [b"threads", b"threads-2", b"threads-4"]


def test_a_live_tree_gets_a_client_that_asks():
    """And a capture never does."""
    assert type(client_of(ProcFS(), 7)) is AttachClient
    assert type(client()) is RecordedClient


@pytest.mark.parametrize(
    ("flag", "said"), [("MaxHeapSize", "134217728"), ("UseSerialGC", "true"), ("HeapDumpPath", "")]
)
def test_a_flag_is_read_from_the_list_of_all(flag, said):
    """As the attach command printflag answers."""
    asked = client(**{"VM.flags_-all": FLAGS})
    assert asked.execute("printflag", flag) == f"-XX:{flag}={said}\n".encode()


def test_a_flag_that_is_not_there_is_unknown():
    """Neither among the flags, nor where the capture has none."""
    with pytest.raises(NotSupported, match="NoSuch is not among the flags of 7"):
        client(**{"VM.flags_-all": FLAGS}).execute("printflag", "NoSuch")
    with pytest.raises(NotSupported, match=r"no reply to VM\.flags -all of 7: capture with --ask --what flags"):
        client().execute("printflag", "MaxHeapSize")


def test_an_error_is_given_again_as_it_was():
    """Its reason, its text, and the lines below it; also of an error that has no reason."""
    error = AttachError("stopped", "7 (App)", why="is stopped", advice="resume it")
    error.lines = ("first", "second")
    with pytest.raises(AttachError) as caught:
        client(threads=failure_of(error)).thread_dump()
    assert (caught.value.reason, str(caught.value), caught.value.lines) == ("stopped", str(error), error.lines)
    with pytest.raises(NotSupported, match=r"^no rights$"):
        client(threads=failure_of(NotPermitted("no rights"))).thread_dump()
    assert str(_error_of(failure_of(error))) == str(error)


@pytest.mark.parametrize("why", [None, "", "\n", "nonsense", "a\nb\nc"])
def test_any_failure_of_an_archive_is_an_error_of_opskit(why):
    """A capture comes from a stranger."""
    with pytest.raises((AttachError, NotSupported)):
        client(threads=Failure(5, why)).thread_dump()


def test_a_dump_without_owners_does_not_pass_for_one_with_them():
    """No lock would have an owner, which is wrong."""
    asked = client(threads=b"Full thread dump x\n\nJNI global refs: 1\n")
    assert asked.thread_dump().startswith("Full thread dump")
    with pytest.raises(NotSupported, match=r"no owners of java\.util\.concurrent locks"):
        asked.thread_dump(locks=True)
    with pytest.raises(AttachError, match="has no end"):
        client(threads=b"Full thread dump x\n").thread_dump()


def test_who_makes_a_client_that_sends_something():
    """Those who ask for a capture, and actions, which prove that the process is here. All others go through client_of."""
    made = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if re.search(r"\bAttachClient\(\w", path.read_text(encoding="utf-8"))
    }
    assert made == {
        "actions/asprof.py", "actions/load_agent.py", "actions/perf_map.py", "collect/capture/replies.py",
        "collect/hsperf_check.py", "collect/jmx/jolokia_place.py", "jvm/attach/connect.py", "jvm/attach/recorded.py",
    }  # fmt: skip
    for name in made - {"jvm/attach/connect.py", "jvm/attach/recorded.py"}:
        assert "prove_own(" in (PACKAGE / name).read_text(encoding="utf-8"), name
