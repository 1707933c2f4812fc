"""Class histograms of JDK 5 to 25: every dialect is read, missing rows are reported, damage is refused."""

from __future__ import annotations

import json
import re
import time

import pytest
from histotext import RULER, text
from hypothesis import given
from hypothesis import strategies as st

from opskit.errors import BadInput
from opskit.jvm.dumps.histogram import Counts, sum_rows
from opskit.jvm.dumps.histogram_reader import parse_histograms

ROWS = [("[B", 30, 4000), ("java.lang.String", 20, 480), ("a.B$C", 5, 80), ("a.D", 1, 16)]
SIMPLE = text(ROWS)
UNIFIED = """\
[0.041s][info ][gc,start           ] GC(0) Pause Full (System.gc())
[0.041s][trace][gc,classhisto,start] Class Histogram (before full gc)
[0.042s][trace][gc,classhisto      ] GC(0)  num     #instances         #bytes  class name (module)
[0.042s][trace][gc,classhisto      ] GC(0) -------------------------------------------------------
[0.042s][trace][gc,classhisto      ] GC(0)    1:            30           4000  [B (java.base@17.0.15)
[0.042s][trace][gc,classhisto      ] GC(0)    2:             2             32  Grow$Leak
[0.043s][trace][gc,classhisto      ] GC(0) Total            32           4032
[0.043s][trace][gc,classhisto      ] GC(0) Class Histogram (before full gc) 2.178ms
[0.048s][trace][gc,classhisto,start] Class Histogram (after full gc)
[0.049s][trace][gc,classhisto      ] GC(0)  num     #instances         #bytes  class name (module)
[0.049s][trace][gc,classhisto      ] GC(0) -------------------------------------------------------
[0.049s][trace][gc,classhisto      ] GC(0)    1:             2             32  Grow$Leak
[0.049s][trace][gc,classhisto      ] GC(0) Total             2             32
"""
AGENT = """\
Attaching to process ID 17590, please wait...
JVM version is 17.0.15+6
Object Histogram:

num \t  #instances\t#bytes\tClass description
--------------------------------------------------------------------------
1:\t\t7250\t334416\tbyte[]
2:\t\t909\t96200\tjava.lang.Object[]
3:\t\t47\t1416\t* ConstMethodKlass
Total : \t8206\t432032
Heap traversal took 1.507 seconds.
"""
OPENJ9 = """\
num   object count     total size    class name
-------------------------------------------------
  1           3354         107328    [C
  2            717          57360    java.lang.Class

"""
JDK5 = """\
num   #instances    #bytes  class name
--------------------------------------
  1:     15660     3695576  [C
  2:     28591     3246576  <no name>
  3:     44495     1611808  <symbolKlass>
  4:         2          16  <no name>
Total    88748     8553976
"""


def only(content):
    [histogram] = parse_histograms(content, "x")
    return histogram


def slowly(content):
    """The same table, made to be read line by line."""
    return content.replace(RULER, "~" * 55)


def test_a_plain_table():
    """Rows by name, the Total, nothing cut."""
    found = only(SIMPLE)
    assert found.rows == {name: (instances, size) for name, instances, size in ROWS}
    assert (found.total, found.cut, found.doubts) == (Counts(56, 4576), None, ())
    assert (found.dialect, found.line, found.has_modules) == ("hotspot", 1, False)


def test_modules_are_no_part_of_a_name():
    """`(java.base@17)` is stored separately; a class in the unnamed module has none."""
    content = text([("[B", 30, 4000, "java.base@17.0.5"), ("a.B", 1, 16)], modules=True)
    for form in (content, slowly(content)):
        found = only(form)
        assert found.rows == {"[B": (30, 4000), "a.B": (1, 16)}
        assert found.modules == {"[B": "java.base@17.0.5"}
        assert found.has_modules


def test_rows_of_one_class_are_summed():
    """There is one row for each class loader."""
    content = text([("a.B", 3, 48), ("a.B", 2, 32, "m@1"), ("[B", 1, 100)], modules=True)
    for form in (content, slowly(content)):
        assert only(form).rows == {"[B": (1, 100), "a.B": (5, 80)}


def test_unified_log():
    """Prefixes of -Xlog with other times; before and after the collection; the uptime."""
    before, after = parse_histograms(UNIFIED, "gc.log")
    assert before.rows == {"[B": (30, 4000), "Grow$Leak": (2, 32)}
    assert (before.moment, after.moment) == ("before full gc", "after full gc")
    assert (before.stamp.uptime_s, after.stamp.uptime_s) == (0.042, 0.049)
    assert (before.cut, after.cut) == (None, None)
    assert (before.line, after.line) == (3, 10)


@pytest.mark.parametrize(
    "prefix",
    ["2024-05-05 12:00:{:02d},123 INFO  [main] c.a.Dump - ", "2024-05-05T12:00:{:02d}.5Z stdout F ", "May  5 12:00:{:02d} host app[12]: "],
)  # fmt: skip
def test_prefixes_of_application_logs(prefix):
    """A logger or shipper puts a prefix before each line, with other digits each time."""
    lines = [prefix.format(number) + line for number, line in enumerate(SIMPLE.splitlines())]
    lines.insert(4, "2024-05-05 12:00:03,999 WARN  [http-8080-1] c.a.Other - 1 of 3 requests took 12 ms")
    found = only("\n".join(lines))
    assert found.rows == only(SIMPLE).rows
    assert found.cut is None


@pytest.mark.parametrize("change", [
    lambda content: content.replace("\n", "\r\n"),
    lambda content: "\ufeff" + content,
    lambda content: content.rstrip("\n"),
    lambda content: "\n".join("    " + line for line in content.split("\n")),
    lambda content: re.sub(r"^ +", "", content, flags=re.MULTILINE),
    lambda content: "4242:\n" + content,
    lambda content: content + "and then\nother lines: 5 6 7\n",
    lambda content: re.sub(r"^ num.*\n-+\n", "", content),
])  # fmt: skip
def test_what_saving_and_pasting_do_to_it(change):
    """Line ends, a byte order mark, no last newline, indented or not, jcmd's pid, lines around it, no header."""
    found = only(change(SIMPLE))
    assert found.rows == only(SIMPLE).rows
    assert found.cut is None


def test_the_agents_dialect():
    """`jhsdb jmap --histo`: arrays in source notation get the JVM's names, so that both can be compared."""
    found = only(AGENT)
    assert found.rows == {"[B": (7250, 334416), "[Ljava.lang.Object;": (909, 96200), "* ConstMethodKlass": (47, 1416)}
    assert (found.dialect, found.cut) == ("agent", None)


def test_the_agent_counts_in_32_bits():
    """Its Total overflows at 2 GiB; the rows do not."""
    rows = [("a.B", 1, 3 << 30), ("a.C", 1, 2 << 30)]
    lines = "".join(f"{n}:\t\t{i}\t{size}\t{name}\n" for n, (name, i, size) in enumerate(rows, 1))
    header = "num \t  #instances\t#bytes\tClass description\n---\n"
    found = only(f"{header}{lines}Total : \t2\t{(5 << 30) - (4 << 30)}\n")
    assert sum_rows(found.rows).bytes == 5 << 30
    assert found.cut is None


def test_openj9():
    """No colon, no Total."""
    found = only(OPENJ9)
    assert found.rows == {"[C": (3354, 107328), "java.lang.Class": (717, 57360)}
    assert (found.dialect, found.cut) == ("openj9", "it has no Total line")


def test_jdk5_has_nameless_rows():
    """A narrower header; `<no name>` twice."""
    found = only(JDK5)
    assert found.rows["<no name>"] == (28593, 3246592)
    assert found.cut is None


def test_a_file_may_be_a_series():
    """Several histograms follow each other, with or without a header."""
    later = text([("[B", 31, 4200)])
    found = parse_histograms(SIMPLE + "\n# an hour later\n" + later, "x")
    assert [histogram.total for histogram in found] == [Counts(56, 4576), Counts(31, 4200)]
    bare = SIMPLE.split(RULER + "\n")[1]
    assert [h.total for h in parse_histograms(bare + bare, "x")] == [Counts(56, 4576)] * 2


@pytest.mark.parametrize(("content", "why"), [
    (text(ROWS, total=False), "it has no Total line"),
    ("\n".join(SIMPLE.split("\n")[:4]), "it has no Total line"),
    (SIMPLE.replace("   2:", "...\n   2:").replace(SIMPLE.split("\n")[3] + "\n", ""), "1 of 4 rows are missing, from row 2 on"),
    ("\n".join([*SIMPLE.split("\n")[:4], "...", SIMPLE.split("\n")[6]]), "rows are left out before the Total"),
    (SIMPLE[:-40], "its last line is cut off"),
    (text(ROWS, header=False, total=False, first=7), "6 of 10 rows are missing, from row 1 on; it has no Total line"),
])  # fmt: skip
def test_cut_is_said(content, why):
    """A gap, no Total, an ellipsis, a torn last line: the rows count, the totals are partial."""
    assert only(content).cut == why


@pytest.mark.parametrize(("old", "new", "line", "found"), [
    ("4000", "4001", 7, "Total"),
    ("           480", "           48O", 4, "48O"),
    ("   2:", "   2;", 4, "2;"),
    ("   2:", "   1:", 4, "1:"),
    ("   4:             1             16  a.D\n", "", 6, "Total"),
    ("Total            56", "Total            5x", 7, "5x"),
    ("Total            56", "Total            57", 7, "57"),
    ("            20 ", "          2 0 ", 4, "2 0"),
    ("             5             80", "            81             80", 5, "81"),
])  # fmt: skip
def test_damage_is_refused_with_line_and_text(old, new, line, found):
    """Malformed numbers, repeated rows and wrong sums are refused, however the table is read."""
    assert old in SIMPLE
    with pytest.raises(BadInput) as caught:
        parse_histograms(slowly(SIMPLE).replace(old, new), "h.txt")
    assert caught.value.line == line
    assert found in caught.value.found
    assert str(caught.value).startswith(f"h.txt:{line}: ")
    if old != "   2:":  # where only a row's number is off, the Total vouches for all the rest
        with pytest.raises(BadInput):
            parse_histograms(SIMPLE.replace(old, new), "h.txt")


def test_rows_that_alone_exceed_the_total_are_refused():
    """This holds where rows are missing too."""
    lines = SIMPLE.split("\n")
    del lines[4]
    with pytest.raises(BadInput, match="more than this Total"):
        only("\n".join(lines).replace("4000", "5000"))


def test_a_larger_row_below_a_smaller_one_is_doubted():
    """Without a Total the numbers cannot be checked."""
    content = text(ROWS, total=False)
    assert only(content).doubts == ()
    [doubt] = only(content.replace("  480 ", "84800 ")).doubts
    assert doubt.startswith("row 2 has more bytes")


@pytest.mark.parametrize(("content", "what"), [
    ("", "empty"),
    ("Full thread dump OpenJDK 64-Bit Server VM", "a thread dump"),
    ("JAVA PROFILE 1.0.2\0\0\0", "a heap dump (hprof)"),
    ("\x1f\udc8b\x08\0", "gzip-compressed"),
    ("[0.1s][info][gc] GC(0) Pause Young", "a GC log"),
    ('{"a": 1}', "JSON"),
    ("Dear diary,\n", "text that begins with 'Dear diary,'"),
    ("abc\0def", "binary data"),
])  # fmt: skip
def test_what_is_no_histogram_is_named(content, what):
    """What it looks like instead."""
    with pytest.raises(BadInput) as caught:
        parse_histograms(content, "f")
    assert what in str(caught.value)


NAMES = st.one_of(
    st.sampled_from(["[B", "[[I", "<no name>", "<methodKlass>", "java.lang.String", "a.B$$Lambda$1/0x00000008000c1"]),
    st.from_regex(r"[a-z]{1,5}(\.[A-Z][a-zA-Z0-9$_]{0,8}){1,3};?", fullmatch=True),
)
TABLES = st.lists(
    st.tuples(NAMES, st.integers(0, 10**9), st.integers(0, 10**12), st.sampled_from(["", "java.base@17.0.5", "m"])).map(
        lambda row: (row[0], min(row[1], row[2]), row[2], row[3] if " " not in row[0] else "")
    ),
    min_size=1,
    max_size=30,
)


@given(TABLES, st.booleans())
def test_reading_by_column_and_by_line_give_the_same(rows, series):
    """All rows are read, and both ways give the same."""
    content = text(rows, modules=True) * (1 + series)
    quick, slow = parse_histograms(content, "x"), parse_histograms(slowly(content), "x")
    assert [(h.rows, h.modules, h.total, h.cut) for h in quick] == [(h.rows, h.modules, h.total, h.cut) for h in slow]
    assert sum_rows(quick[0].rows) == (sum(row[1] for row in rows), sum(row[2] for row in rows))


@given(TABLES)
def test_both_ways_agree_on_what_has_no_total(rows):
    """Both give the same where no Total confirms the numbers."""
    content = text(rows, modules=True, total=False)
    [quick], [slow] = parse_histograms(content, "x"), parse_histograms(slowly(content), "x")
    assert (quick.rows, quick.modules, quick.cut, quick.doubts) == (slow.rows, slow.modules, slow.cut, slow.doubts)
    assert quick.cut == "it has no Total line"


@given(TABLES, st.data())
def test_a_changed_character_never_gives_a_wrong_number(rows, data):
    """A whole histogram with one character changed is refused, or said to be cut, or its numbers are still right."""
    content = text(rows, modules=True)
    place = data.draw(st.integers(0, len(content) - 1))
    character = data.draw(st.sampled_from("0123456789 :.x-(\n\t,"))
    try:
        found = parse_histograms(content[:place] + character + content[place + 1 :], "x")
    except BadInput:
        return
    whole = parse_histograms(content, "x")[0]
    for histogram in found:
        if histogram.cut is None:
            assert sum_rows(histogram.rows) == whole.total
            assert sorted(histogram.rows.values()) == sorted(whole.rows.values()) or len(histogram.rows) != len(
                whole.rows
            )
        else:
            assert sum_rows(histogram.rows).bytes <= whole.total.bytes or histogram.doubts or histogram.total is None


@given(st.text(max_size=300) | st.binary(max_size=300).map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_any_text_is_read_or_refused(content):
    """Any text gives histograms or BadInput."""
    for form in (content, SIMPLE[:120] + content, content + SIMPLE):
        try:
            parse_histograms(form, "x")
        except BadInput:
            continue


def test_every_real_one_parses(samples):
    """Each file's rows add up to its Total, or the histogram is marked as cut."""
    folder = samples / "class-histograms"
    files = sorted(folder.iterdir())
    assert len(files) >= 12
    whole = 0
    for file in files:
        for histogram in parse_histograms(file.read_bytes().decode("utf-8", "surrogateescape"), file.name):
            if histogram.cut is None:
                assert sum_rows(histogram.rows) == histogram.total, file.name
                whole += 1
            assert not histogram.doubts
    assert whole >= 4


def test_other_real_files_are_no_histograms(samples):
    """Thread dumps and safepoint logs are refused, and the message names most of them."""
    for folder in ("thread-dumps", "safepoint-logs"):
        for file in (samples / folder).iterdir():
            content = file.read_bytes().decode("utf-8", "surrogateescape")
            with pytest.raises(BadInput, match="not a class histogram but"):
                parse_histograms(content, file.name)


def test_a_changed_digit_in_a_real_one_is_refused(samples):
    """In any row of a whole histogram."""
    content = (samples / "class-histograms" / "jdk8-jmap-histo-846rows.txt").read_text()
    lines = content.split("\n")
    for number in range(3, len(lines) - 2, 37):
        row = lines[number]
        digit = re.search(r":\s+\d+\s+(\d)", row)
        changed = row[: digit.start(1)] + str((int(digit[1]) + 1) % 10) + row[digit.end(1) :]
        with pytest.raises(BadInput):
            parse_histograms("\n".join([*lines[:number], changed, *lines[number + 1 :]]), "x")


@pytest.mark.parametrize("damaged", ["4_80", "+480", "-480"])
def test_what_only_looks_like_a_number_is_none(damaged):
    """int() accepts more; where there is a Total, it confirms the numbers."""
    content = text(ROWS, total=False).replace(" 480 ", f" {damaged} ", 1)
    assert damaged in content
    with pytest.raises(BadInput):
        parse_histograms(content, "x")


@pytest.mark.parametrize("key", ["log", "message", "MESSAGE"])
def test_a_log_of_one_json_object_a_line(key):
    """Docker's and similar files contain the histogram line by line."""
    content = text(ROWS, modules=True)
    end = "\n" if key == "log" else ""
    logged = "".join(
        json.dumps({key: line + end, "stream": "stdout", "time": "2026-11-21T11:13:38.1Z"}) + "\n"
        for line in content.splitlines()
    )
    found, plain = only(logged), only(content)
    assert (found.rows, found.total, found.cut, found.line) == (plain.rows, plain.total, None, plain.line)


@pytest.mark.parametrize("total", [True, False])
def test_a_terminals_colours_are_no_part_of_a_name(total):
    """`script` and coloured logs save them."""
    content = text(ROWS, total=total)
    coloured = "".join(f"\x1b[1;32m{line}\x1b[0m\n" for line in content.splitlines())
    assert only(coloured).rows == only(content).rows


@pytest.mark.parametrize("tail", ["", " (java.ba"])
def test_a_last_line_without_an_end_is_doubted(tail):
    """Its name may be cut off, with or without a log's prefix, unless a Total confirms the rows."""
    content = text(ROWS, modules=True, total=False)
    for prefixed in (content, "".join(f"app | {line}\n" for line in content.splitlines())):
        assert only(prefixed).doubts == ()
        assert only(prefixed[:-2] + tail).doubts == ("its last line has no line feed: the name in it may be cut off",)
    assert only(text(ROWS).rstrip("\n")).doubts == ()


def test_the_moment_is_known_though_another_thread_logs_in_between():
    """G1's service thread does; the words with a duration end the histogram before."""
    other = "[0.048s][debug][gc,task,start      ] G1 Service Thread (Card Set Free Memory Task) (run 0.183ms after schedule)\n"
    torn = re.sub(r"(\(\w+ full gc\)\n)", r"\1" + other, UNIFIED)
    assert torn.count(other) == 2
    assert [histogram.moment for histogram in parse_histograms(torn, "x")] == ["before full gc", "after full gc"]
    later = UNIFIED + "[0.050s][trace][gc,classhisto      ] Class Histogram (after full gc) 1.2ms\n" + SIMPLE
    assert [histogram.moment for histogram in parse_histograms(later, "x")][2] is None


def cpu_s(*contents):
    """The CPU seconds of reading each, by turns: the least of five."""
    took = [[] for _ in contents]
    for _ in range(5):
        for content, times in zip(contents, took):
            before = time.process_time()
            parse_histograms(content, "x")
            times.append(time.process_time() - before)
    return map(min, took)


@pytest.mark.parametrize("modules", [False, True])
@pytest.mark.parametrize("total", [True, False])
def test_a_plain_table_costs_less_than_its_lines(total, modules):
    """It is read column by column, also where its names have modules and where the last line is not the Total."""
    rows = [(f"com.acme.p{n % 97}.C{n}", 1 + n % 50, 16 * (30_000 - n), "m@1" if n % 2 else "") for n in range(8_000)]
    content = text(rows, modules=modules, total=total)
    fast_s, slow_s = cpu_s(content, slowly(content))
    assert fast_s * 1.5 < slow_s  # a third or a quarter, where it is measured alone
    assert only(content).rows == only(slowly(content)).rows


def test_a_large_table_is_read_whole():
    """Rows on both sides of every chunk, of several loaders, and the table after it."""
    rows = [(f"com.acme.Class{n % 9_000}", 1, 400_000 - n) for n in range(12_000)]
    content = text(rows)
    first, second = parse_histograms(content + SIMPLE, "x")
    assert len(first.rows) == 9_000
    assert sum_rows(first.rows) == first.total == Counts(12_000, sum(row[2] for row in rows))
    assert first.rows["com.acme.Class0"] == (2, 400_000 + 400_000 - 9_000)
    assert (second.rows, second.line) == (only(SIMPLE).rows, 12_000 + 4)


@pytest.mark.parametrize(("old", "new", "why"), [
    ("   3:", "   4:", "row 4 occurs twice"),
    ("   2:", "   1:", "row 1 occurs twice"),
    ("   1:            30           4000", "   1:          5000           4000", "5000 instances cannot take 4000 bytes"),
])  # fmt: skip
def test_rows_that_cannot_be_are_refused_without_a_total(old, new, why):
    """Without a Total, the numbers are checked against each other, however the table is read."""
    content = text(ROWS, total=False)
    assert old in content
    for form in (content, slowly(content)):
        with pytest.raises(BadInput, match=why):
            only(form.replace(old, new))


@pytest.mark.parametrize(("gone", "why"), [
    (("   2:",), "1 of 4 rows are missing, from row 2 on"),
    (("   1:", "   3:"), "2 of 4 rows are missing, from row 1 on"),
])  # fmt: skip
@pytest.mark.parametrize("total", [True, False])
def test_rows_that_are_missing_are_counted(gone, why, total):
    """Row numbers show the gap; the other rows count, and may be less than the Total."""
    content = text(ROWS, total=total)
    left = "".join(line for line in content.splitlines(keepends=True) if not line.startswith(gone))
    for form in (left, slowly(left)):
        found = only(form)
        assert found.cut == why + ("" if total else "; it has no Total line")
        assert found.total == (Counts(56, 4576) if total else None)
        assert len(found.rows) == 4 - len(gone)


def test_a_total_of_nothing_is_a_whole_histogram_of_nothing():
    """A Total of 0 without rows is whole; an ellipsis before a Total says that rows are left out."""
    header = SIMPLE[: SIMPLE.index("   1:")]
    found = only(header + "Total             0              0\n")
    assert (found.rows, found.total) == ({}, Counts(0, 0))
    assert only(header + "...\nTotal             5             80\n").cut == "rows are left out before the Total"


def test_a_header_with_neither_a_row_nor_a_total_is_no_histogram():
    """Refused in one line where nothing else is there; else left out, and said."""
    bare = "1: 1 16 a num #instances #bytes class name"
    for content in (bare, f"{bare}\n", f"{bare}\n" * 3, "num #instances #bytes class name\n----\n"):
        with pytest.raises(BadInput, match=r"^h.txt:1: a histogram's header without a row or a Total; take it again$"):
            parse_histograms(content, "h.txt")
    found = only(SIMPLE + bare)
    assert (found.rows, found.cut) == (only(SIMPLE).rows, None)
    assert found.doubts == ("the header in line 8 has neither a row nor a Total, and is left out",)


@pytest.mark.parametrize("dots", ["...", "…", "[...]", "<...>", "... 12 more rows of this table"])
def test_an_ellipsis_says_that_rows_are_left_out(dots):
    """Rows 1 and 2, then dots, then the Total of all."""
    lines = SIMPLE.split("\n")
    found = only("\n".join([*lines[:4], dots, lines[6], ""]))
    assert (found.cut, len(found.rows), found.total) == ("rows are left out before the Total", 2, Counts(56, 4576))


def test_many_words_behind_dots_are_no_ellipsis():
    """Such a line is a sentence, and the rows have to add up."""
    lines = SIMPLE.split("\n")
    with pytest.raises(BadInput, match="the 2 rows add up to 50 instances and 4480 bytes, not to this Total"):
        only("\n".join([*lines[:4], "... and here I went away for lunch, sorry", lines[6], ""]))


@pytest.mark.parametrize("line", [
    "   3; 5 80 a.B$C", "3x 5 80 a.B$C", "   3:", "   3: 5", "3 5x 80 a.B$C", "a 5 80 a.B$C (m@1)", "x 5x 8x b (m)",
])  # fmt: skip
def test_what_was_a_row_once_is_refused(line):
    """In the middle of a table; with its number and text. As the last line of a file it is cut off."""
    lines = slowly(SIMPLE).split("\n")
    with pytest.raises(BadInput, match=r"x:5: not a row of a histogram \(number: instances bytes class\)") as caught:
        only("\n".join([*lines[:4], line, *lines[5:]]))
    assert caught.value.found == line.strip()
    found = only("\n".join([*lines[:4], line]))
    assert found.cut == "its last line is cut off"
    assert len(found.rows) == 2


@pytest.mark.parametrize("line", [
    "", "   ", "some words", "5 of them", "-----", "a b c d", "1 2 3 4 5 6 7", "1 2:3 4 x", "1 2-3 4 x", "1 2 3 x y",
    "12:30:05 GC 5 80 ran", "1234567890 5 80 a.B",
])  # fmt: skip
def test_other_lines_of_a_log_are_passed_over(line):
    """These lines do not look like rows."""
    lines = slowly(SIMPLE).split("\n")
    content = "\n".join([*lines[:4], line, *lines[4:]])
    if line.startswith("12:"):
        with pytest.raises(BadInput, match="not a row"):  # a number with a colon is all that is left of some rows
            only(content)
    else:
        assert only(content).rows == only(SIMPLE).rows
        assert only(content).cut is None


@pytest.mark.parametrize("line", ["Total", "Total 5", "Total 56 457x", "Totals: 56 4576", "Total : x"])
def test_a_total_that_is_none_is_refused(line):
    """Otherwise the rows before it would count as the whole histogram."""
    lines = slowly(SIMPLE).split("\n")
    with pytest.raises(BadInput, match="x:7: not a Total line of a histogram"):
        only("\n".join([*lines[:6], line, ""]))


def test_a_sentence_about_a_total_is_passed_over():
    """A line of five words or more is not a Total."""
    lines = slowly(SIMPLE).split("\n")
    assert only("\n".join([*lines[:6], "Total time of the collection", *lines[6:]])).cut is None


def test_row_1_again_begins_another_histogram_only_with_more_bytes():
    """The largest comes first: row 1 with no more bytes than a row before it is the same row again, which is damage."""
    bare = "".join(text(ROWS, header=False, total=False).splitlines(keepends=True))
    first, second = parse_histograms(bare + bare, "x")
    assert (first.rows, second.rows) == (only(bare).rows, only(bare).rows)
    assert (first.line, second.line) == (1, 5)
    again = text([("z.Z", 1, 16)], header=False, total=False)
    with pytest.raises(BadInput, match="x:5: row 1 occurs twice in one histogram"):
        parse_histograms(bare + again, "x")
    larger = text([("z.Z", 1, 17)], header=False, total=False)
    assert [len(found.rows) for found in parse_histograms(bare + larger, "x")] == [4, 1]


def test_the_agent_runs_over_in_32_bits_alone():
    """Only in its own dialect, and by multiples of 2**32; any other difference is refused."""
    lines = "".join(
        f"{n}:\t\t{i}\t{size}\t{name}\n"
        for n, (name, i, size) in enumerate([("a.B", 1, 3 << 30), ("a.C", 1, 2 << 30)], 1)
    )
    header = "num \t  #instances\t#bytes\tClass description\n---\n"
    assert only(f"{header}{lines}Total : \t2\t{1 << 30}\n").total == Counts(2, 1 << 30)
    for total in ((1 << 30) + 1, (1 << 30) - 1, 1 << 31):
        with pytest.raises(BadInput, match="not to this Total"):
            only(f"{header}{lines}Total : \t2\t{total}\n")
    with pytest.raises(BadInput, match="not to this Total"):
        only(f"{header}{lines}Total : \t3\t{1 << 30}\n")
    with pytest.raises(BadInput, match="not to this Total"):
        only(f"{header}{lines}Total : \t2\t{1 << 30}\n".replace("Class description", "class name"))


def test_each_dialect_by_its_header():
    """The agent's names become the JVM's own, but not where they have a module; the others' stay as they are."""
    row = "   1:            30           4000  int[]\n"
    agent = "num   #instances   #bytes  Class description\n---\n"
    found = only(agent + row)
    assert (found.dialect, found.rows) == ("agent", {"[I": (30, 4000)})
    assert only(agent + row.replace("int[]", "int[] (m@1)")).rows == {"int[]": (30, 4000)}
    found = only(SIMPLE[: SIMPLE.index("   1:")] + row)
    assert (found.dialect, found.rows) == ("hotspot", {"int[]": (30, 4000)})
    openj9 = "num   object count     total size    class name\n---\n"
    found = only(openj9 + "  1           3354         107328    [C\n")
    assert (found.dialect, found.has_modules, found.modules) == ("openj9", False, {})
    # A colon is HotSpot's, and OpenJ9 puts nothing behind a name.
    with pytest.raises(BadInput):
        only(openj9 + row + "  2           3354         107328    [C\n")


def test_modules_are_told_by_the_header_or_by_the_rows():
    """A header that says (module) has them, though no class may be in one."""
    content = text([("a.B", 1, 16)], modules=True)
    for form in (content, slowly(content)):
        assert only(form).has_modules
        assert only(form).modules == {}
    bare = text([("a.B", 1, 16, "m@1")], header=False)
    assert only(bare).has_modules
    assert only(bare).modules == {"a.B": "m@1"}
    # A name may have parentheses of its own, which stand without a blank.
    assert only(slowly(text([("a.B(c)", 1, 16)]))).rows == {"a.B(c)": (1, 16)}


def test_a_doubt_names_the_first_row_that_is_too_large():
    """The second of the two, by its number; and a cut-off last line."""
    content = text(ROWS, total=False).replace("   1  ", "   1  ")
    larger = content.replace("            16  a.D", "            99  a.D")
    assert only(larger).doubts == ("row 4 has more bytes than the row before it: one of the two may be damaged",)
    torn = larger.rstrip("\n")
    assert only(torn).doubts[1:] == ("its last line has no line feed: the name in it may be cut off",)
    equal = content.replace("            16  a.D", "            80  a.D")
    assert only(equal).doubts == ()


def test_a_prefix_has_other_digits_and_blanks_on_each_line():
    """The words stay the same: with another word before it, a line is not a row of this table."""
    lines = [f"[{n}s] app{n}  | {line}" for n, line in enumerate(SIMPLE.rstrip("\n").split("\n"), 8)]
    found = only("\n".join(lines) + "\n")
    assert (found.rows, found.cut) == (only(SIMPLE).rows, None)
    other = [line.replace("| ", "> ") if number == 3 else line for number, line in enumerate(lines)]
    assert only("\n".join(other) + "\n").cut == "1 of 4 rows are missing, from row 2 on"


def test_when_a_histogram_was_taken_stands_right_before_it():
    """Its date or uptime, and whether before or after the collection; not the text before the table above it."""
    dated = "2024-05-05 12:00:00\nFull thread dump\n\n" + SIMPLE + "\n2024-05-05 13:00:00\n" + SIMPLE + SIMPLE
    first, second, third = parse_histograms(dated, "x")
    assert first.stamp != second.stamp
    assert only(SIMPLE).stamp.time_s is None
    assert (first.line, second.line, third.line) == (4, 13, 20)
    assert [found.moment for found in (first, second, third)] == [None, None, None]
    said = "0.1: (Before Full GC)\n" + SIMPLE + "(after full gc): 12 ms\n" + SIMPLE + "(after full gc) 1.5ms\n" + SIMPLE
    assert [found.moment for found in parse_histograms(said, "x")] == ["before full gc", "after full gc", None]


def test_a_text_of_something_else_is_told_with_what_writes_one():
    """The message has the source, its type, and the command."""
    with pytest.raises(BadInput, match=r"^f: not a class histogram but empty; jmap -histo PID > FILE writes one$"):
        parse_histograms("", "f")


@pytest.mark.parametrize("colour", ["\x1b[1m", "\x1b[31;1m", "\x1b[K"])
def test_an_escape_within_a_name_is_the_names_own(colour):
    """Colours are removed only at the ends of a line."""
    content = text([("a.B", 30, 4000), (f"a.{colour}C", 2, 32)])
    wrapped = "".join(f"\x1b[0m\x1b[32m{line}\x1b[0m\x1b[K\n" for line in content.splitlines())
    for form in (content, wrapped, wrapped.rstrip("\n")):
        assert only(form).rows == {"a.B": (30, 4000), f"a.{colour}C": (2, 32)}
