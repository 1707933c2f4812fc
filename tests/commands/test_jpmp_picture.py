"""`opskit jpmp -o x.svg`: pictures from dumps, collapsed stacks and JSON; what is said, and what is refused."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest
from twodumps import DUMP, LATER

SVG = "{http://www.w3.org/2000/svg}"
FOLDED = (
    "main;com.example.A.a;java.util.HashMap.get 30\nmain;com.example.A.a 10\nmain;com.example.B.b_[j];read_[k] 60\n"
)


@pytest.fixture
def saved(tmp_path):
    """A function that saves a text to a file; its path."""

    def save(content, name):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return str(path)

    return save


def picture(path):
    """The root element of a picture, and its frames: (title, class)."""
    root = ET.fromstring(path.read_bytes())  # noqa: S314  (made here)
    frames = [
        (group.findtext(f"{SVG}title"), group.find(f"{SVG}rect").get("class").split()[0])
        for group in root.iter(f"{SVG}g")
        if group.get("class") == "f"
    ]
    return root, frames


def test_collapsed_stacks_become_a_picture(opskit, inprocess, saved, tmp_path):
    """Root first, by name, with samples and shares; marks choose the colour; the same bytes each time."""
    path = saved(FOLDED, "a.folded")
    out = tmp_path / "x.svg"
    assert opskit("jpmp", path, "-o", out) == (0, "", "")
    root, frames = picture(out)
    assert frames == [
        ("all (100 samples, 100.0 %)", "root"),
        ("main (100 samples, 100.0 %)", "native"),
        ("com.example.A.a (40 samples, 40.0 %, own 10.0 %)", "application"),
        ("java.util.HashMap.get (30 samples, 30.0 %, own 30.0 %)", "jdk"),
        ("com.example.B.b_[j] (60 samples, 60.0 %)", "application"),
        ("read_[k] (60 samples, 60.0 %, own 60.0 %)", "kernel"),
    ]
    assert root.findtext(f"{SVG}title") == path
    first = out.read_bytes()
    assert inprocess("jpmp", path, "-f", "svg", "-o", "-").out.encode() == first
    assert inprocess("jpmp", path, "-f", "svg").out.encode() == first


def test_a_dump_becomes_a_picture_with_threads_as_roots(inprocess, saved, tmp_path):
    """`--by-pool`: the pool's name is a thread's colour; safepoints and idle threads are told in the notes."""
    out = tmp_path / "x.svg"
    assert inprocess("jpmp", saved(DUMP, "d.txt"), "--by-pool", "-o", out).code == 0
    root, frames = picture(out)
    assert ("pool-1-thread-* (1 sample, 33.3 %)", "thread") in frames
    notes = root.findtext(f"{SVG}desc")
    assert "3 samples in 3 stacks; widths are samples; a frame is above its caller" in notes
    assert "threads that wait for work (67 % of the samples) are in the picture; --no-idle leaves them out" in notes
    assert "safepoints" in notes
    assert inprocess("jpmp", saved(DUMP, "d.txt"), "--no-idle", "-o", out).code == 0
    assert picture(out)[1][0][0] == "all (1 sample, 100.0 %)"


def test_cpu_is_in_the_title_and_is_the_width(inprocess, saved, tmp_path):
    """`--on-cpu`: 100 ms and 10 ms over the run."""
    out = tmp_path / "x.svg"
    path = saved(DUMP + LATER, "d.txt")
    assert inprocess("jpmp", path, "--on-cpu", "-o", out).code == 0
    root, frames = picture(out)
    assert root.findtext(f"{SVG}title") == f"CPU ms of {path}"
    assert frames[0][0] == "all (110 CPU ms, 100.0 %)"
    assert ("[GC Thread] (10.0 CPU ms, 9.1 %, own 9.1 %)", "native") in frames
    assert inprocess("jpmp", path, "--on-cpu", "--title", "Shop", "-o", out).code == 0
    assert picture(out)[0].findtext(f"{SVG}title") == "Shop (CPU ms)"


def test_json_is_drawn_as_the_dump_it_came_from(inprocess, saved, tmp_path):
    """`-f json` and back: the same frames, of samples and of CPU."""
    path, profile = saved(DUMP + LATER, "d.txt"), tmp_path / "x.json"
    assert inprocess("jpmp", path, "--on-cpu", "-o", profile).code == 0
    for options in ([], ["--on-cpu"]):
        here, there = tmp_path / "a.svg", tmp_path / "b.svg"
        source = path if options else saved(inprocess("jpmp", path, "-f", "json").out, "y.json")
        assert inprocess("jpmp", path, *options, "-o", here).code == 0
        assert inprocess("jpmp", profile if options else source, *options, "-o", there).code == 0
        assert picture(here)[1] == picture(there)[1]


def test_inverted_reverse_width_and_title(inprocess, saved, tmp_path):
    """The icicle has its root on top; reversed, the leaf is at the root; a width that is given is kept."""
    out = tmp_path / "x.svg"
    path = saved("a;b;hot 1\nc;hot 2\n", "a.folded")
    assert (
        inprocess("jpmp", path, "--inverted", "--reverse", "--width", "700", "--title", "T & <x>", "-o", out).code == 0
    )
    root, frames = picture(out)
    assert [title.split(" ")[0] for title, _ in frames] == ["all", "hot", "b", "a", "c"]
    assert (root.get("width"), root.findtext(f"{SVG}title")) == ("700", "T & <x>")
    heights = [float(box.get("y")) for group in root.iter(f"{SVG}g") if group.get("class") == "f" for box in group if box.get("y") and box.tag == f"{SVG}rect"]  # fmt: skip
    assert heights[0] < heights[1] < heights[2] < heights[3]
    assert "callers are below it" in root.findtext(f"{SVG}desc")
    assert inprocess("jpmp", path, "--reverse", "-f", "folded").out == "hot;c 2\nhot;b;a 1\n"


def test_a_difference_says_which_is_which(inprocess, saved, tmp_path):
    """Both names in the title, both figures at each frame, the vanished in a strip."""
    after, before = saved("m;a 80\nm;b 20\n", "now.folded"), saved("m;a 2\nm;b 1\nm;c;d 1\n", "then.folded")
    out = tmp_path / "d.svg"
    assert inprocess("jpmp", after, "--diff", before, "-o", out) == (0, "", "")
    root, frames = picture(out)
    assert root.findtext(f"{SVG}title") == f"{after} (after) against {before} (before)"
    assert [(title.partition(" (")[0], look) for title, look in frames] == [
        ("all", "root"),
        ("m", "same"),
        ("a", "grew4"),
        ("b", "shrank2"),
        ("c", "gone"),
        ("d", "gone"),
    ]
    assert "own 80.0 % after, 50.0 % before" in frames[2][0]
    assert any(text.text == f"Gone: only in {before} (25.0 % of it)" for text in root.iter(f"{SVG}text"))
    assert inprocess("jpmp", after, "--diff", before, "--title", "Release", "-o", out).code == 0
    assert picture(out)[0].findtext(f"{SVG}title").startswith("Release: ")


def test_two_profiles_with_nothing_in_common_are_drawn_and_it_is_said(inprocess, saved, tmp_path):
    """On stderr and in the picture."""
    after, before = saved("a;b 1\n", "now.folded"), saved("x;y 1\n", "then.folded")
    out = tmp_path / "d.svg"
    done = inprocess("jpmp", after, "--diff", before, "-o", out)
    said = f"{after} and {before} have no frame in common: are they of the same program?"
    assert (done.code, done.err) == (0, f"opskit: {said}\n")
    root, frames = picture(out)
    assert said in root.findtext(f"{SVG}desc")
    assert [look for _, look in frames] == ["root", "same", "grew4", "gone", "gone"]


def test_what_is_too_narrow_is_counted_and_said(inprocess, saved, tmp_path):
    """Under 0.1 px of 1,180; on stderr and in the picture."""
    path = saved("a;b 100000\na;c 1\na;d;e 1\n", "a.folded")
    out = tmp_path / "x.svg"
    done = inprocess("jpmp", path, "-o", out)
    assert (done.code, done.err) == (0, "opskit: 3 frames are narrower than 0.1 px and left out\n")
    root, frames = picture(out)
    assert "3 frames are narrower than 0.1 px and left out" in root.findtext(f"{SVG}desc")
    assert len(frames) == 3


def test_a_picture_of_too_many_different_frames_is_thinned(inprocess, saved, tmp_path):
    """Of thousands of stacks without a frame in common, each is cut at its leaf end, and a note says so."""
    stacks = (
        ";".join(f"com.example.p{number}.C{depth}.method" for depth in range(60)) + " 1\n" for number in range(5000)
    )
    out = tmp_path / "x.svg"
    done = inprocess("jpmp", saved("".join(stacks), "a.folded"), "-o", out)
    assert done.code == 0
    assert "frames are left out (the narrowest, of equal ones those farthest from the root)" in done.err
    assert 8_000_000 < out.stat().st_size <= 15_000_000
    root, _ = picture(out)
    assert "the picture would be larger than 15 MB" in root.findtext(f"{SVG}desc")
    [data] = [element for element in root.iter(f"{SVG}script") if element.get("id") == "data"]
    tree = json.loads(data.text)["regions"][0]
    assert tree["depth"].count(1) == tree["depth"].count(2) == 5000


def test_speedscope(inprocess, saved, tmp_path):
    """The suffix chooses it; two profiles for a difference; the title is its name."""
    path, before = saved(FOLDED, "a.folded"), saved("x;y 1\n", "b.folded")
    out = tmp_path / "x.speedscope.json"
    assert inprocess("jpmp", path, "--title", "T", "-o", out) == (0, "", "")
    file = json.loads(out.read_text())
    assert file["name"] == "T"
    assert sum(file["profiles"][0]["weights"]) == 100
    assert inprocess("jpmp", path, "--diff", before, "-o", out).code == 0
    names = [profile["name"] for profile in json.loads(out.read_text())["profiles"]]
    assert names == [f"{path} (after)", f"{before} (before)"]
    plain = tmp_path / "x.json"
    assert inprocess("jpmp", path, "-o", plain).code == 0
    assert "stacks" in json.loads(plain.read_text())


@pytest.mark.parametrize("name", ["a.folded", "a.txt"])
def test_collapsed_stacks_in_utf_16(inprocess, saved, tmp_path, name):
    """As PowerShell's > writes them."""
    plain = inprocess("jpmp", saved(FOLDED, "b.folded"), "-f", "folded").out
    (tmp_path / name).write_bytes(FOLDED.replace("\n", "\r\n").encode("utf-16"))
    assert inprocess("jpmp", tmp_path / name, "-f", "folded") == (0, plain, "")


def test_a_negative_count_is_one_also_where_it_is_all_there_is(inprocess, saved):
    """A single line, in a file whose name says nothing."""
    done = inprocess("jpmp", saved("main;a.B.c -5\n", "a.txt"), "-f", "svg")
    assert (done.code, done.out) == (2, "")
    assert "a.txt:1: a negative count: 'main;a.B.c -5'" in done.err


def test_what_shrank_out_of_sight_is_not_called_gone(inprocess, saved, tmp_path):
    """The strip's heading says that it may still be there."""
    after, before = saved("a;b 100000\na;c 1\n", "now.folded"), saved("a;b 1\na;c 1\n", "then.folded")
    assert inprocess("jpmp", after, "--diff", before, "-o", tmp_path / "d.svg").code == 0
    texts = [text.text for text in picture(tmp_path / "d.svg")[0].iter(f"{SVG}text")]
    assert f"Gone, or under 0.1 px now: in {before} (50.0 % of it)" in texts


def test_a_difference_to_nothing_names_the_empty_file(inprocess, saved, tmp_path):
    """Drawn all the same."""
    after, before = saved("a;b 1\n", "now.folded"), saved("", "then.folded")
    done = inprocess("jpmp", after, "--diff", before, "-o", tmp_path / "d.svg")
    assert (done.code, done.err.count("\n")) == (0, 1)
    assert done.err.endswith(f"no frame in common: {before} has no stacks at all\n")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("a;b 1\na;b\n", ":2: not `frame;frame;… count`: 'a;b'"),
        ("a;b 1\n\na;b -4\n", ":3: a negative count: 'a;b -4'"),
        ("a;b 1\na;b x1\n", ":2: not `frame;frame;… count`: 'a;b x1'"),
        ("", "nothing to draw"),
        ("a;b 0\n", "nothing to draw"),
    ],
)
def test_bad_stacks_are_named_and_nothing_is_written(inprocess, saved, tmp_path, content, complaint):
    """File, line and text; exit code 2; no file."""
    out = tmp_path / "x.svg"
    done = inprocess("jpmp", saved(content, "a.folded"), "-o", out)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err
    assert done.err.count("\n") == 1
    assert not out.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.folded"]


def test_an_output_that_cannot_be_written(opskit, inprocess, saved, tmp_path):
    """Said before any work; what was there stays; an unknown suffix is named with those that are known."""
    path = saved(FOLDED, "a.folded")
    done = inprocess("jpmp", path, "-o", tmp_path / "no" / "x.svg")
    assert (done.code, done.out) == (2, "")
    assert "there is no directory" in done.err
    assert inprocess("jpmp", path, "-o", tmp_path).code == 2
    done = inprocess("jpmp", path, "-o", tmp_path / "x.gif")
    assert done.code == 2
    assert "unknown suffix '.gif'" in done.err
    assert ".svg" in done.err
    full = opskit("jpmp", path, "-f", "svg", "-o", "/dev/full")
    assert (full.code, full.out) == (2, "")
    assert "No space left" in full.err


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--inverted"], "--inverted goes with -o x.svg"),
        (["--width", "900", "-f", "folded"], "--width goes with -o x.svg"),
        (["--title", "x", "-f", "json"], "--title goes with -o x.svg or -o x.speedscope.json"),
        (["--diff", "b.folded"], "--diff goes with -o x.svg"),
        (["--reverse"], "--reverse goes with"),
        (["--width", "10", "-f", "svg"], "10 is not in the range"),
        (["--diff", "/nowhere", "-f", "svg"], "/nowhere: cannot be read"),
        (["--diff", "/dev/null", "-n", "5", "-f", "svg"], "-n leaves stacks out"),
    ],
)
def test_options_that_would_have_no_effect_are_refused(inprocess, saved, options, complaint):
    """One line, exit code 2."""
    done = inprocess("jpmp", saved(FOLDED, "a.folded"), *options)
    assert (done.code, done.out) == (2, "")
    assert complaint in done.err


def test_a_live_jvm_becomes_a_picture(inprocess, workload, saved, tmp_path):
    """Its main class in the title; the workload's frames in the picture; compared with a file, too."""
    jvm = workload("burn=2", version=17)
    out = tmp_path / "x.svg"
    assert inprocess("jpmp", jvm.pid, 3, 0.1, "-o", out).code == 0
    root, frames = picture(out)
    assert "Workload" in root.findtext(f"{SVG}title")
    assert any(title.startswith("Workload.burnForever (") for title, _ in frames)
    assert inprocess("jpmp", jvm.pid, 2, 0.1, "--diff", saved("x;y 1\n", "b.folded"), "-o", out).code == 0
    assert "(after) against" in picture(out)[0].findtext(f"{SVG}title")
