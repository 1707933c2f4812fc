"""A log as one file a tag: its own lines byte for byte, in bounded memory, under safe names."""

from __future__ import annotations

import os

import pytest

from opskit.actions.split_log import Splitter, file_name
from opskit.errors import CannotWrite
from opskit.proc.user_files import scratch_file

HEAD = (b"#[StartTime: 1 (seconds since epoch)]\n", b'"StartTimestamp","Interval_Length"\n')


@pytest.fixture
def split(tmp_path):
    """A function that splits (log, tag, header, line) into files: their names and contents."""

    def run(*lines):
        splitter = Splitter(str(tmp_path / "out"), scratch_file)
        for line in lines:
            splitter.add(*line)
        return {os.path.basename(path): open(path, "rb").read() for path in splitter.write()}

    return run


def test_a_file_for_each_tag_with_the_header(split):
    """Lines keep their order, also where tags take turns; a last line gets its end."""
    lines = [
        ("x/throttle.hdr", tag, HEAD, b"Tag=%s,%d\r\n" % (tag.encode(), at)) for at in range(3) for tag in ("A", "B")
    ]
    found = split(*lines, ("x/throttle.hdr", None, HEAD, b"9.0"))
    assert found == {
        "throttle.A.hdr": b"".join([*HEAD, b"Tag=A,0\r\n", b"Tag=A,1\r\n", b"Tag=A,2\r\n"]),
        "throttle.B.hdr": b"".join([*HEAD, b"Tag=B,0\r\n", b"Tag=B,1\r\n", b"Tag=B,2\r\n"]),
        "throttle.untagged.hdr": b"".join([*HEAD, b"9.0\n"]),
    }


def test_a_later_start_time_comes_before_the_lines_that_it_holds_for(split):
    """Of each tag; also one that was there before."""
    later, again = (*HEAD, b"#[StartTime: 2]\n"), (*HEAD, HEAD[0])
    found = split(
        ("x.hdr", "A", HEAD, b"1\n"), ("x.hdr", "A", later, b"2\n"), ("x.hdr", "B", later, b"3\n"), ("x.hdr", "A", again, b"4\n")
    )  # fmt: skip
    assert found["x.A.hdr"] == b"".join([*HEAD, b"1\n", later[-1], b"2\n", HEAD[0], b"4\n"])
    assert found["x.B.hdr"] == b"".join([*later, b"3\n"])


def test_lines_of_many_megabytes_come_back(split):
    """Through the scratch file."""
    lines = [("x.hdr", f"t{at % 3}", HEAD, b"%d," % at + b"x" * 50_000 + b"\n") for at in range(60)]
    found = split(*lines)
    assert found["x.t1.hdr"] == b"".join([*HEAD, *(line[3] for line in lines[1::3])])


HOSTILE = ["../x", "a/b", "", ".", "..", "x" * 300, "\n\x1b[31m", "a b", "-rf", "untagged", "\udcff", "日本", ".._x"]


def test_hostile_tags_give_safe_names(split, tmp_path):
    """No path, no hidden or overlong name, nothing for a shell, and each tag has a file of its own."""
    found = split(*(("/logs/-a b.hdr.gz", tag, HEAD, f"{at}\n".encode()) for at, tag in enumerate([*HOSTILE, None])))
    assert len(found) == len(HOSTILE) + 1
    assert sorted(os.listdir(tmp_path / "out")) == sorted(found)
    assert os.listdir(tmp_path) == ["out"]
    for name in found:
        assert name.startswith("a_b.")
        assert name.endswith(".hdr")
        assert len(name) < 200
        assert set(name) <= {*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-"}


def test_names_stay_the_same_and_apart():
    """A plain tag is itself; a changed one has a checksum, so that two of them differ."""
    assert file_name("d/throttle.hdr", "READ-rt") == "throttle.READ-rt"
    assert file_name("throttle.hlog.gz", None) == "throttle.untagged"
    assert file_name("x", "a/b") != file_name("x", "a?b") != file_name("x", "a_b")
    assert file_name("standard input", "A") == "standard_input.A"
    assert file_name("..", "A") == "log.A"


def test_two_logs_of_one_name_are_two_files(split):
    """The second one has a number."""
    assert [*split(("a/x.hdr", "A", HEAD, b"1\n"), ("b/x.hdr", "A", HEAD, b"2\n"))] == ["x.A.hdr", "x.A-2.hdr"]


def test_the_log_itself_is_never_replaced(tmp_path):
    """Where its name would be that of a part, the part gets another one."""
    log = tmp_path / "x.A.hdr"
    log.write_bytes(b"log")
    splitter = Splitter(str(tmp_path), scratch_file)
    splitter.add(str(tmp_path / "x.hdr"), "A", HEAD, b"1\n")
    splitter.add(str(log), "B", HEAD, b"2\n")
    assert [os.path.basename(path) for path in splitter.write()] == ["x.A-2.hdr", "x.A.B.hdr"]
    assert log.read_bytes() == b"log"


def test_a_directory_that_cannot_be_made_is_said_before_anything_is_read(tmp_path):
    """It names the option."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CannotWrite, match=r"--split .*file/x: .*choose another place"):
        Splitter(str(tmp_path / "file" / "x"), scratch_file)
