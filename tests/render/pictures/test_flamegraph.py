"""The flame graph's file: valid whatever the names, the same bytes for the same input, widths that keep the area law."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit.analysis.jpmp.flame_tree import compare
from opskit.analysis.jpmp.frame_kinds import kinds_of
from opskit.render.pictures.flame_layout import Picture, drawn_px
from opskit.render.pictures.flamegraph import Name, draw

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "</title><script>alert(1)</script>",
    "<init>",
    "]]>",
    '"><g onload="x"/>',
    "'&amp;&#0;&lt;",
    "\x00\x07\x1b[31m\r\n\t",
    "\u202egnirts\u2066",
    "\ud800\udcff\ufffe\uffff",
    "--></svg>",
    "名前\U0001f525",
    "${jndi:ldap://x}",
    "\\u003cscript\\u003e",
    "a;b c 3",
]


def picture(tree, **more):
    names = {frame.name for frame in tree.frames}
    defaults = {"title": "t", "notes": ["n"], "notes_turned": ["m"], "unit": "samples", "kinds": kinds_of(names, ())}
    return Picture(tree=tree, **{**defaults, **more})


def parsed(text):
    """The file as an XML parser takes it, which stops at anything that is not well-formed."""
    return ET.fromstring(text.encode("utf-8"))  # noqa: S314  (made here)


def boxes(svg):
    """(title, x, y, width, class) of each frame's box, in the file's order."""
    for group in svg.iter(f"{SVG}g"):
        if group.get("class") == "f":
            box = group.find(f"{SVG}rect")
            yield (
                group.findtext(f"{SVG}title"),
                *(float(box.get(name)) for name in ("x", "y", "width")),
                box.get("class"),
            )


@given(st.lists(st.tuples(st.lists(st.text() | st.sampled_from(HOSTILE), min_size=1, max_size=4), st.integers(1, 9)), min_size=1, max_size=6), st.booleans())  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_names_cannot_break_out_of_the_markup(profile, difference):
    """Whatever the names: well-formed, no element, attribute or script more than there would be, each name there as text."""
    paths = [(tuple(path), weight) for path, weight in profile]
    hostile = "".join(path[0] for path, _ in profile)
    tree = compare([(("x",), 1)] if difference else (), paths)
    sides = {"before": hostile, "after": hostile} if difference else {}
    text = draw(picture(tree, title=hostile, notes=[hostile], **sides))
    svg = parsed(text)
    assert len(list(svg.iter(f"{SVG}script"))) == 2
    assert len([group for group in svg.iter(f"{SVG}g") if group.get("class") == "f"]) == len(tree.frames) + len(
        tree.gone
    )
    known = {"title", "desc", "style", "defs", "pattern", "rect", "circle", "path", "g", "text", "script", "svg"}
    assert {element.tag.removeprefix(SVG) for element in svg.iter()} <= known
    assert not any(name.lower().startswith("on") for element in svg.iter() for name in element.attrib)
    body = text.partition("<g id=")[2].rpartition("<script>")[0]
    assert all(character.isprintable() or character == "\n" for character in body)
    data = json.loads(next(svg.iter(f"{SVG}script")).text)
    assert len(data["names"]) == len({frame.name for frame in (*tree.frames, *tree.gone)})


def test_the_same_tree_gives_the_same_bytes_whatever_the_order_of_stacks():
    """Two runs, two orders, one file."""
    paths = [((f"a.B.m{number % 7}", f"c{number}"), number + 1) for number in range(50)]
    assert draw(picture(compare((), paths))) == draw(picture(compare((), paths[::-1])))


@pytest.mark.parametrize("inverted", [False, True])
def test_boxes_keep_the_area_law(inverted):
    """In the file itself: a box is as wide as its share, and lies above or below its caller."""
    tree = compare((), [(("main", "a", "x"), 30), (("main", "a"), 10), (("main", "b"), 60)])
    svg = parsed(draw(picture(tree, inverted=inverted)))
    found = {title.partition(" ")[0]: box for title, *box in boxes(svg)}
    whole = drawn_px(None)
    for name, share, start in (("all", 1, 0), ("main", 1, 0), ("a", 0.4, 0), ("x", 0.3, 0), ("b", 0.6, 0.4)):
        x, _, width, _ = found[name]
        assert x == pytest.approx(10 + start * whole, abs=0.1)
        assert width == pytest.approx(share * whole, abs=1.1)
    step = 18 if inverted else -18
    assert found["main"][1] - found["all"][1] == found["a"][1] - found["main"][1] == step
    assert found["a"][1] == found["b"][1]


def test_titles_tell_the_figures():
    """Samples, share and own share; one sample is no samples; CPU is in ms."""
    tree = compare((), [(("main", "a"), 1), (("main",), 3999)])
    titles = [title for title, *_ in boxes(parsed(draw(picture(tree))))]
    assert titles == [
        "all (4,000 samples, 100.0 %)",
        "main (4,000 samples, 100.0 %, own 100.0 %)",
        "a (1 sample, 0.03 %, own 0.03 %)",
    ]
    cpu = draw(picture(compare((), [(("main",), 12_340)]), unit="CPU ms", per_unit=1000))
    assert "main (12.3 CPU ms, 100.0 %, own 100.0 %)" in cpu


def test_a_difference_is_coloured_by_own_shares_not_by_samples():
    """Ten times the samples with the same shares are no change; the colour shows by how much, the sign the direction."""
    before = [(("main", "a"), 5), (("main", "b"), 5)]
    same = compare(before, [(path, 10 * weight) for path, weight in before])
    svg = parsed(draw(picture(same, before="b", after="a")))
    assert [look for *_, look in boxes(svg)] == ["root", "same", "same", "same"]
    changed = compare(before, [(("main", "a"), 90), (("main", "b"), 10)])
    text = draw(picture(changed, before="b", after="a"))
    assert [look for *_, look in boxes(parsed(text))] == ["root", "same", "grew4", "shrank4"]
    assert ">\u25b2 a</text>" in text
    assert ">\u25bc b</text>" in text
    title = "a (own 90.0 % after, 50.0 % before; total 90.0 % after, 50.0 % before; 90 samples after, 5 samples before)"
    assert title in text


def test_what_is_gone_stands_in_a_strip():
    """With its share of before as its width, below a heading that says so."""
    tree = compare([(("main", "old", "older"), 3), (("main",), 1)], [(("main",), 9)])
    svg = parsed(draw(picture(tree, before="b.folded", after="a.folded")))
    assert "Gone: only in b.folded (75.0 % of it)" in [text.text for text in svg.iter(f"{SVG}text")]
    gone = [(title.partition(" ")[0], width) for title, _, _, width, look in boxes(svg) if look == "gone"]
    assert [name for name, _ in gone] == ["old", "older"]
    assert gone[0][1] == pytest.approx(0.75 * drawn_px(None), abs=1.1)


@pytest.mark.parametrize(
    ("room", "label"),
    [
        (40, "com.example.shop.Cart.total"),
        (26, "Cart.total"),
        (9, "total"),
        (4, "tot\u2026"),
        (2, "t\u2026"),
        (1.9, ""),
    ],
)
def test_a_narrow_box_keeps_the_name_that_tells_most(room, label):
    """First the package goes, then the class, then the method's end."""
    assert Name("com.example.shop.Cart.total").label(room, "") == label


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("com/example/Cart.total", "total"),
        ("Lcom/example/Cart;::total_[j]", "total_[j]"),
        ("com.example.Cart.<init>", "<init>"),
        ("com.example.Cart.lambda$main$0", "lambda$main$0"),
        ("std::vector<int>::push_back", "vector<int>::push_back"),
        ("[libjvm.so]", "[libjvm.so]"),
        ("do_syscall_64_[k]", "do_syscall_64_[k]"),
        ("main", "main"),
        ("", ""),
    ],
)
def test_where_the_method_begins(name, short):
    """In the names that dumps and other profilers write."""
    known = Name(name)
    assert known.shown[known.method_at :] == short


def test_wide_characters_take_two_columns():
    """An ideograph is as wide as two letters."""
    assert Name("名前名前").label(8, "") == "名前名前"
    assert Name("名前名前").label(7, "") == "名前名\u2026"


def test_a_picture_of_very_many_frames_stays_small():
    """Slivers under a pixel are in the picture and in the data, without an element each."""
    paths = [((f"m{number}", f"n{number}"), 1) for number in range(11_000)]
    tree = compare((), paths)
    small = draw(picture(tree))
    svg = parsed(small)
    assert len(list(boxes(svg))) == 1
    paths_drawn = "".join(path.get("d") for path in svg.find(f"{SVG}g[@id='frames']").iter(f"{SVG}path"))
    assert paths_drawn.count("M") == 22_000
    assert len(json.loads(next(svg.iter(f"{SVG}script")).text)["names"]) == 22_001
    assert len(small) < 2_000_000


def test_the_file_asks_the_network_for_nothing():
    """No address but the names of name spaces, in style, script and markup."""
    text = draw(picture(compare((), [(("main",), 1)])))
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) == {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xhtml",
    }
    assert not re.search(r"@import|url\((?!#)|\bfetch\(|XMLHttpRequest|import\(|\beval\(|innerHTML", text)


def luminance(color):
    """The relative luminance of `#rrggbb` as WCAG has it."""
    parts = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("dark", [False, True])
def test_names_can_be_read_on_every_colour(dark):
    """A contrast of 4.5 at least (WCAG AA) of the text against every fill, in light and in dark mode."""
    style = files("opskit.render").joinpath("flamegraph.css").read_text(encoding="utf-8")
    light, _, rest = style.partition("@media screen and (prefers-color-scheme: dark)")
    part = rest.partition("@media")[0] if dark else light
    ink = re.search(r"^ *\.whole text \{ fill: (#\w{6})", part, re.MULTILINE)[1]
    fills = dict(re.findall(r"\.([\w]+(?:-base)?) \{ fill: (#\w{6})", part))
    assert {"application", "jdk-base", "kernel-base", "grew4", "shrank4-base", "same", "root", "gone-base"} <= set(
        fills
    )
    for name, fill in fills.items():
        if name not in ("note", "paper"):
            low, high = sorted((luminance(fill), luminance(ink)))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (name, fill)
