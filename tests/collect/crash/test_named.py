"""Reports that the user named, as files and directories, also hostile ones."""

from __future__ import annotations

import gzip
import os
import shutil

import crashes
import pytest
from corefiles import core_bytes

from opskit.collect.crash import collect as collecting
from opskit.collect.crash import directory as listing
from opskit.collect.crash.collect import collect
from opskit.collect.crash.facts import Request
from opskit.errors import BadInput, OpskitError
from opskit.host import Host

REPORT = crashes.FIXTURES / "jdk17-native.log"


@pytest.fixture(scope="module")
def host():
    return Host.at(None, None)


@pytest.fixture
def put(tmp_path):
    """Write reports: name -> seconds since the epoch."""

    def write(names):
        for name, written_s in names.items():
            shutil.copyfile(REPORT, tmp_path / name)
            os.utime(tmp_path / name, (written_s, written_s))
        return tmp_path

    return write


def found(host, *names):
    return collect(host, Request([str(name) for name in names]))


def test_a_directory_gives_its_reports_newest_first(host, put):
    """By the time of the files; other logs, texts and names are left alone."""
    place = put(
        {
            "hs_err_pid7.log": 3000,
            "hs_err_pid8.log": 5000,
            "hs_err_pid9.log-20260131": 4000,
            "crash-of-monday.log": 2000,
        }
    )
    (place / "gc.log").write_text("[0.1s][info][gc] Using G1\n")
    (place / "notes").write_text(REPORT.read_text())
    facts = found(host, place)
    assert [read.name.rpartition("/")[2] for read in facts.read] == [
        "hs_err_pid8.log", "hs_err_pid9.log-20260131", "hs_err_pid7.log", "crash-of-monday.log",
    ]  # fmt: skip
    assert [read.modified_s for read in facts.read] == [5000, 4000, 3000, 2000]
    assert (facts.unread, facts.places) == ([], ())


def test_a_directory_of_directories(host, tmp_path):
    """Reports of several machines, one directory each; links to directories are left out."""
    for name in ("web1", "web2"):
        (tmp_path / name).mkdir()
        shutil.copyfile(REPORT, tmp_path / name / "hs_err_pid1.log")
    os.symlink("web1", tmp_path / "web3")
    assert sorted(read.name for read in found(host, tmp_path).read) == [
        f"{tmp_path}/{name}/hs_err_pid1.log" for name in ("web1", "web2")
    ]


def test_a_directory_without_a_report_is_a_place(host, tmp_path):
    """No report is an answer; core files are named with their size."""
    (tmp_path / "core.77").write_bytes(bytes(5 << 20))
    facts = found(host, tmp_path)
    assert facts.read == []
    assert facts.places[0].path == str(tmp_path)
    assert "1 core file: core.77 (5" in facts.places[0].what


def test_gzip_files_are_unpacked(host, tmp_path):
    """Also one that is cut off: what is there is read."""
    whole = gzip.compress(REPORT.read_bytes())
    (tmp_path / "hs_err_pid1.log.gz").write_bytes(whole)
    (tmp_path / "hs_err_pid2.log.gz").write_bytes(whole[: len(whole) * 3 // 4])
    facts = found(host, tmp_path)
    assert [read.report.complete for read in sorted(facts.read)] == [True, False]
    assert found(host, tmp_path / "hs_err_pid1.log.gz").read[0].report.event.name == "SIGSEGV"


def test_a_zip_bomb_in_a_directory_is_refused(host, tmp_path, monkeypatch):
    """More than the limit is not unpacked."""
    monkeypatch.setattr(listing, "LARGEST_BYTES", 4 << 20)
    with gzip.open(tmp_path / "hs_err_pid1.log.gz", "wb", compresslevel=1) as file:
        for _ in range((listing.LARGEST_BYTES >> 20) + 2):
            file.write(bytes(1 << 20))
    facts = found(host, tmp_path)
    assert facts.read == []
    assert "more than 4 MiB" in facts.unread[0].why


def test_a_hostile_directory_is_read_without_harm(host, put):
    """FIFOs, links, directories and other content cost themselves only, and are said."""
    place = put({"hs_err_pid9.log": 1000})
    os.mkfifo(place / "hs_err_pid1.log")
    os.mkfifo(place / "app.log")
    os.symlink("/dev/zero", place / "hs_err_pid2.log")
    os.symlink("/dev/zero", place / "other.log")
    os.symlink("hs_err_pid9.log", place / "hs_err_pid3.log")
    (place / "hs_err_pid4.log").mkdir()
    (place / "hs_err_pid5.log").write_text("hallo")
    (place / "hs_err_\x1b[31mred\n.log").write_bytes(b"\xff\0\xfe")
    os.mkfifo(place / "core.9")
    facts = found(host, place)
    assert [read.name for read in facts.read] == [f"{place}/hs_err_pid9.log"]
    why = {each.name.rpartition("/")[2]: each.why for each in facts.unread}
    assert why["hs_err_pid1.log"] == "a FIFO, not a regular file"
    assert why["hs_err_pid2.log"].startswith("a symbolic link")
    assert why["hs_err_pid3.log"].startswith("a symbolic link")
    assert why["hs_err_pid4.log"] == "a directory, not a regular file"
    assert "not a JVM crash report" in why["hs_err_pid5.log"]
    assert "hs_err_\x1b[31mred\n.log" in why
    assert len(why) == 6


def test_of_very_many_reports_the_newest_are_read(host, put, monkeypatch):
    """The older ones are counted."""
    monkeypatch.setattr(listing, "MOST_REPORTS", 3)
    place = put({f"hs_err_pid{number}.log": number * 1000 for number in range(1, 9)})
    facts = found(host, place)
    assert [read.modified_s for read in facts.read] == [8000, 7000, 6000]
    assert facts.unread[0].why == "5 older reports were not read, only the newest 3"


def test_of_very_many_other_logs_the_first_are_looked_into(host, put, monkeypatch):
    """The rest is said."""
    monkeypatch.setattr(listing, "_MOST_SNIFFED", 2)
    place = put({"a.log": 1000, "b.log": 2000, "c.log": 3000})
    facts = found(host, place)
    assert [read.modified_s for read in facts.read] == [2000, 1000]
    assert facts.unread[0].why == "of 3 files with other names only 2 were looked into"


def test_a_link_that_the_user_names_is_followed(host, put, tmp_path):
    """To a file and to a directory."""
    place = put({"hs_err_pid9.log": 1000})
    os.symlink(place / "hs_err_pid9.log", place / "latest")
    os.symlink(place, place / "logs")
    assert found(host, place / "latest").read[0].report.event.name == "SIGSEGV"
    assert len(found(host, place / "logs").read) == 1


def test_a_file_named_twice_counts_once(host, put):
    """By its name and by its directory."""
    place = put({"hs_err_pid9.log": 1000})
    file = place / "hs_err_pid9.log"
    assert len(found(host, file, place, file).read) == 1


def test_crashes_alike_in_one_log_count_each(host, tmp_path):
    """A program that was started again ended itself in the same way, which has no address."""
    text = (crashes.FIXTURES / "jdk8-java-heap.log").read_text()
    (tmp_path / "app.log").write_text(
        "".join(f"started\n{text.replace('pid=', f'pid={number}')}" for number in (1, 2, 3))
    )
    assert len(found(host, tmp_path / "app.log").read) == 3


def test_the_header_in_the_programs_output_counts_once(host, put):
    """The JVM prints it, too; without the report beside it, it is all there is."""
    place = put({"hs_err_pid30834.log": 1000})
    header = "\n".join(REPORT.read_text().splitlines()[:12])
    for saved in ("", "# An error report file with more information is saved as:\n# /srv/shop/hs_err_pid30834.log\n"):
        (place / "app.log").write_text(f"{header}\n{saved}#\n")
        assert [read.name for read in found(host, place).read] == [f"{place}/hs_err_pid30834.log"]
    assert [read.name for read in found(host, place / "app.log").read] == [f"{place}/app.log"]


def test_one_unreadable_file_costs_itself_only(host, put):
    """Alone it is an error."""
    place = put({"hs_err_pid9.log": 1000})
    facts = found(host, place / "nothing", place / "hs_err_pid9.log")
    assert (len(facts.read), facts.unread[0].why) == (
        1,
        "no such file or directory; without a name, opskit crash looks where JVMs write their reports",
    )
    with pytest.raises(BadInput, match="no such file or directory; without a name"):
        found(host, place / "nothing")


def test_an_endless_file_is_an_error(host, monkeypatch):
    """It is read up to a limit."""
    monkeypatch.setattr(collecting, "_LARGEST_BYTES", 8 << 20)
    with pytest.raises(BadInput, match="more than 8 MiB"):
        found(host, "/dev/zero")


def test_a_long_output_before_a_report_is_not_kept():
    """What a report needs of it, its beginning and the lines before the report, is; the crash is the same."""
    text = REPORT.read_bytes()
    before = b"An irrecoverable stack overflow has occurred.\n"
    chunks = [b"started\n", *[b"x" * 99 + b"\n" + bytes(1 << 20)] * 9, before, text[:500], text[500:]]
    data = listing.joined(chunks, "out", 1 << 30)
    assert len(data) < 6 << 20
    assert data.startswith(b"started\n")
    assert data.endswith(before + text)


def test_what_is_no_report_is_named(host, tmp_path):
    """A core file, a log, an empty file."""
    for name, content, what in (("core.1", None, "core file"), ("a.log", "x\n", "text"), ("b.log", "", "empty")):
        path = tmp_path / name
        path.write_bytes(core_bytes(1) if content is None else content.encode())
        with pytest.raises(OpskitError, match=what):
            found(host, path)


def test_the_replay_file_of_the_compiler_is_found(host, put):
    """Beside the report, of the same PID."""
    place = put({"hs_err_pid30834.log": 1000})
    (place / "replay_pid30834.log").write_text("# 1 ciObject found\n")
    (place / "replay_pid1.log").write_text("# 1 ciObject found\n")
    assert found(host, place).read[0].replay == f"{place}/replay_pid30834.log"


def test_a_directory_that_may_not_be_listed_is_an_error(as_user, put):
    """It names the reason."""
    place = put({"hs_err_pid9.log": 1000})
    place.chmod(0o700)
    with pytest.raises(OpskitError, match="permission denied"):
        as_user(65534, lambda: found(Host.at(None, None), place))
