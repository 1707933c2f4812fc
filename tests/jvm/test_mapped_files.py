"""The mapped files of a JVM, and similar mappings of other processes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opskit.jvm.mapped_files import parse_jvm_maps
from opskit.proc.files.maps import Mapping

CODE = "7f01-7f02 r-xp 003e5000 08:01 917534   /opt/my jdk/lib/server/libjvm.so\n"
OWN = "7f03-7f04 rw-s 00000000 08:01 1046541  /tmp/hsperfdata_app/4242"
OTHERS = "7f00-7f01 r--s 00000000 08:01 99       /tmp/hsperfdata_app/1\n"


def test_a_jvm():
    maps = parse_jvm_maps("55-56 r-xp 0 08:01 5 /usr/bin/java\n" + CODE + OWN + "\n")
    assert maps.libjvm == Mapping("7f01-7f02", 917534, "/opt/my jdk/lib/server/libjvm.so", deleted=False)
    assert maps.hsperfdata == Mapping("7f03-7f04", 1046541, "/tmp/hsperfdata_app/4242", deleted=False)
    assert maps.openj9 is None
    assert maps.is_jvm


def test_a_deleted_file_keeps_its_name():
    found = parse_jvm_maps(OWN + " (deleted)\n").hsperfdata
    assert (found.path, found.deleted) == ("/tmp/hsperfdata_app/4242", True)


def test_jstat_maps_the_file_of_another_jvm_to_read_it():
    assert parse_jvm_maps(OTHERS + CODE + OWN).hsperfdata.inode == 1046541
    assert parse_jvm_maps(OTHERS + CODE).hsperfdata is None


def test_a_debugger_that_reads_the_library_is_no_jvm():
    assert not parse_jvm_maps(CODE.replace("r-xp", "r--p") + OTHERS).is_jvm
    assert parse_jvm_maps(CODE.replace("r-xp", "r--p") + CODE.replace("r-xp", "rw-p")).libjvm is not None


@given(st.text(), st.sampled_from([CODE, OWN, OTHERS]), st.integers(0, 90))
def test_any_text_gives_an_answer(text, line, cut):
    parse_jvm_maps(text + line[:cut])
