"""The flame graph in a real browser: zoom, search, keyboard, reset and back; light, dark, phone, print, without script."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess

import pytest

FOLDED = (
    "main;com.example.shop.Cart.total;java.util.HashMap.get 300\n"
    "main;com.example.shop.Cart.total 100\n"
    "main;com.example.shop.Search$$Lambda.find;java.util.HashMap.get;[libc.so.6];read_[k] 400\n"
    "main;com.example.shop.Search$$Lambda.find;java.util.HashMap.get_[i] 150\n"
    "other;x.Y.z 49\n"
    "other;x.Narrow.<init> 1\n"
)
BEFORE = (
    "main;com.example.shop.Cart.total;java.util.HashMap.get 30\nmain;com.example.Old.was;java.util.TreeMap.get 70\n"
)
HOSTILE = '<img src=x onerror=alert(1)>;]]></script><script>document.title="owned"</script>;"\'&\u202e\x07 5\na;b 5\n'
KINDS = {
    "flame": (FOLDED, ()),
    "icicle": (FOLDED, ("--inverted",)),
    "reverse": (FOLDED, ("--reverse", "--inverted")),
    "diff": (FOLDED, ("--diff",)),
    "hostile": (HOSTILE, ()),
    "cpu": ("", ("--on-cpu",)),
}


@pytest.fixture
def browser(browser):
    """The browser, as wide as a desk's."""
    browser.window(1280, 900)
    return browser


@pytest.fixture(scope="module")
def pictures(opskit, tmp_path_factory):
    """A file of each kind of picture, by its name."""
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "before.folded").write_text(BEFORE)
    profile = {"stacks": [{"frames": ["a.B.hot", "main"], "samples": 1, "cpu_ms": 90.5, "state": "RUNNABLE"}]}
    (folder / "cpu.json").write_text(json.dumps(profile))
    made = {}
    for kind, (content, options) in KINDS.items():
        source = folder / f"{kind}.{'folded' if content else 'json'}"
        if content:
            source.write_text(content)
        made[kind] = folder / f"{kind}.svg"
        words = [*options, *([folder / "before.folded"] if kind == "diff" else [])]
        done = opskit("jpmp", source, *words, "-o", made[kind])
        assert done.code == 0, done.err
    return made


def pixels(png):
    """Width, height and the set of the colours of a screenshot."""
    pillow = pytest.importorskip("PIL.Image", reason="matplotlib, which brings Pillow, is not installed")
    image = pillow.open(io.BytesIO(png)).convert("RGB")
    return *image.size, {bytes(color) for _, color in image.getcolors(image.width * image.height)}


def width_of(browser, name):
    """The width in px of the widest box of that name; None where it is out of sight."""
    return browser.run(
        "return [...document.querySelectorAll('.f')].filter(g => g.getAttribute('aria-label').startsWith(arguments[0] + ','))"
        ".map(g => g.querySelector('rect').getBoundingClientRect().width).sort((a, b) => b - a)[0] ?? null",
        name,
    )


def at(name):
    """The CSS selector of a frame."""
    return f'.f[aria-label^="{name},"]'


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_picture_opens_without_an_error_and_asks_for_nothing(browser, pictures, tmp_path, kind):
    """Drawn by its script, to the window's width; no request but for the file; nothing in a name is run."""
    browser.requests()
    browser.open(pictures[kind])
    assert [url for url in browser.requests() if not url.startswith("about:")] == [pictures[kind].as_uri()]
    assert browser.run("return document.documentElement.getBoundingClientRect().width") > 1200
    assert browser.run("return document.title") != "owned"
    assert width_of(browser, "all") > 1200
    assert browser.run("return [...document.querySelectorAll('.f')].every(g => g.getAttribute('aria-label'))")
    width, _, colors = pixels(browser.screenshot(tmp_path / f"{kind}.png"))
    assert width == 1280
    assert len(colors) > 20


def test_click_zooms_back_and_reset_lead_back(browser, pictures):
    """The clicked frame fills the width, its callers stay, its siblings go."""
    browser.open(pictures["flame"])
    whole = width_of(browser, "all")
    assert width_of(browser, "com.example.shop.Cart.total") == pytest.approx(0.4 * whole, abs=2)
    assert browser.run("return document.getElementById('back').disabled")
    browser.click(at("main"))
    assert width_of(browser, "main") == pytest.approx(whole, abs=2)
    browser.click(at("com.example.shop.Cart.total"))
    assert width_of(browser, "com.example.shop.Cart.total") == pytest.approx(whole, abs=2)
    assert width_of(browser, "java.util.HashMap.get") == pytest.approx(0.75 * whole, abs=2)
    assert width_of(browser, "main") == pytest.approx(whole, abs=2)
    assert width_of(browser, "x.Y.z") is None
    browser.click("#back")
    assert width_of(browser, "com.example.shop.Cart.total") == pytest.approx(4 / 9.5 * whole, abs=2)
    browser.click("#reset")
    assert width_of(browser, "com.example.shop.Cart.total") == pytest.approx(0.4 * whole, abs=2)
    assert width_of(browser, "x.Y.z") is not None
    assert browser.run("return document.getElementById('reset').disabled")


def test_the_keyboard_reaches_and_zooms_every_frame(browser, pictures):
    """Tab into the tree, arrows to walk, Enter, Escape, Home; the focused frame is named and its figures are shown."""
    browser.open(pictures["flame"])
    whole = width_of(browser, "all")
    focused = "return document.activeElement.getAttribute('aria-label').replace(/\\s/g, ' ')"
    browser.press("Tab", "Tab", "Tab")  # the search, the button that is not disabled, the tree
    assert browser.run(focused).startswith("all, ")
    browser.press("ArrowUp", "ArrowUp")
    assert browser.run(focused).startswith(
        "com.example.shop.Search$$Lambda.find, generated (lambda, proxy), 550 samples"
    )
    assert "55.0" in browser.run("return document.getElementById('tip').textContent")
    browser.press("ArrowLeft")
    assert browser.run(focused).startswith("com.example.shop.Cart.total, application, 400 samples, 40.0")
    browser.press("Enter")
    assert width_of(browser, "com.example.shop.Cart.total") == pytest.approx(whole, abs=2)
    assert browser.run(focused).startswith("com.example.shop.Cart.total,")
    browser.press("ArrowDown")
    assert browser.run(focused).startswith("main,")
    browser.press("Escape")
    assert width_of(browser, "com.example.shop.Cart.total") == pytest.approx(0.4 * whole, abs=2)
    browser.press("Enter", "Home")
    assert width_of(browser, "all") == pytest.approx(whole, abs=2)
    assert browser.run("return document.querySelectorAll('.f[tabindex=\"0\"]').length") == 1
    assert browser.run("return document.getElementById('frames').getAttribute('role')") == "tree"


def test_search_takes_a_regular_expression_and_tells_the_share(browser, pictures):
    """Nested matches count once; an invalid expression is reported; Escape clears; Enter goes to the first."""
    browser.open(pictures["flame"])
    said = "return document.getElementById('matched').textContent.replace(/\\s/g, ' ')"
    browser.press("/", *"hashmap.*get")
    assert browser.run(said) == "matched 85.0 % (850 samples, 3 frames)"
    assert browser.run("return document.querySelectorAll('.match').length") == 3
    browser.press("Enter")
    assert "java.util.HashMap.get" in browser.run("return document.activeElement.getAttribute('aria-label')")
    browser.press("/", *"Cart|get")  # selected by the slash: typed over
    assert browser.run(said) == "matched 95.0 % (950 samples, 4 frames)"
    browser.press("Escape", "/", *"CART")
    assert browser.run(said) == "nothing matches"
    browser.press("Escape", "/", *"a(")
    assert browser.run(said).startswith("no regular expression: ")
    assert browser.run("return document.getElementById('search').getAttribute('aria-invalid')") == "true"
    browser.press("Escape")
    assert browser.run(said) == ""
    assert browser.run("return document.querySelectorAll('.match').length") == 0


def test_a_reloaded_address_shows_the_same(browser, pictures):
    """Zoom and search are in it."""
    browser.open(pictures["flame"])
    browser.click(at("main"))
    browser.press("/", *"Cart")
    address = browser.run("return location.href")
    browser.open(address)
    assert width_of(browser, "main") == pytest.approx(width_of(browser, "all"), abs=2)
    assert browser.run("return document.getElementById('search').value") == "Cart"
    assert browser.run("return document.querySelectorAll('.match').length") == 1


def test_hover_tells_both_figures_of_a_difference(browser, pictures):
    """Own and total, before and after, and the change; what is gone has its strip."""
    browser.open(pictures["diff"])
    browser.hover(at("java.util.HashMap.get"))
    text = re.sub(r"\s", " ", browser.run("return document.getElementById('tip').textContent"))
    assert browser.run("return document.getElementById('tip').getAttribute('visibility')") == "visible"
    for figure in ("own", "before", "after", "30.0 %", "total"):
        assert figure in text
    strip = browser.run("return [...document.querySelectorAll('.f')].filter(g => g.querySelector('.gone')).length")
    assert strip == 2
    assert browser.run("return document.getElementById('frames').textContent").count("Gone: only in ") == 1
    whole = width_of(browser, "all")
    assert width_of(browser, "com.example.Old.was") == pytest.approx(0.7 * whole, abs=2)
    browser.click(at("com.example.Old.was"))
    assert width_of(browser, "com.example.Old.was") == pytest.approx(whole, abs=2)
    assert width_of(browser, "main") is not None
    browser.press("Escape")


def test_the_icicle_has_its_root_on_top_and_can_be_turned(browser, pictures):
    """And the other way round."""
    top = "return document.querySelector('.f[aria-level=\"1\"] rect').getBoundingClientRect().top - document.querySelector('.f[aria-level=\"2\"] rect').getBoundingClientRect().top"
    for kind, sign in (("icicle", -1), ("flame", 1)):
        browser.open(pictures[kind])
        assert browser.run(top) * sign > 0
        browser.click("#flip")
        assert browser.run(top) * sign < 0


def test_a_picture_that_is_turned_over_says_so(browser, pictures):
    """What is read of the picture above it is true of it; turned back, it is as before."""
    browser.open(pictures["flame"])
    notes = "return document.querySelector('.page').textContent"
    assert "a frame is above its caller" in browser.run(notes)
    browser.click("#flip")
    assert "a frame is below its caller" in browser.run(notes)
    assert "is above" not in browser.run(notes)
    browser.click("#flip")
    assert "a frame is above its caller" in browser.run(notes)


def test_search_tells_what_it_found_among_what_is_gone(browser, pictures):
    """A share of the profile before, apart from that of the one that is drawn."""
    browser.open(pictures["diff"])
    said = "return document.getElementById('matched').textContent.replace(/\\s/g, ' ')"
    browser.press("/", *"com.example.Old")
    assert browser.run(said).startswith("gone: 70.0 % of ")
    assert browser.run("return document.querySelectorAll('.match').length") == 1
    browser.press("Escape", "/", *"HashMap|Old")
    assert re.fullmatch(r"matched .* % \(.*\); gone: 70.0 % of .*", browser.run(said))


def test_narrow_frames_are_reached_too(browser, tmp_path, opskit):
    """A sliver has no element of its own, and is found by its place and by the arrows all the same."""
    source = tmp_path / "many.folded"
    source.write_text("".join(f"main;a.B.m{number:05d};a.C.n 1\n" for number in range(4000)))
    assert opskit("jpmp", source, "-o", tmp_path / "x.svg").code == 0
    browser.open(tmp_path / "x.svg")
    assert browser.run("return document.querySelectorAll('.f').length") == 2
    browser.press("Tab", "Tab", "Tab", "ArrowUp", "ArrowUp", "ArrowRight", "ArrowRight")
    assert browser.run("return document.activeElement.getAttribute('aria-label')").startswith("a.B.m00002,")
    browser.press("Enter", "ArrowUp")
    assert browser.run("return document.activeElement.getAttribute('aria-label')").startswith("a.C.n,")
    browser.click("#reset")
    browser.run(
        "const box = document.querySelector('#frames path').getBoundingClientRect();"
        "document.querySelector('#frames path').dispatchEvent(new MouseEvent('click', {bubbles: true, clientX: box.left + box.width / 2, clientY: box.bottom - 3}))"
    )
    assert width_of(browser, "a.B.m01999") == pytest.approx(width_of(browser, "all"), abs=2) or width_of(
        browser, "a.B.m02000"
    ) == pytest.approx(width_of(browser, "all"), abs=2)


def test_dark_mode(browser, pictures, tmp_path):
    """Dark paper, dark boxes, light names."""
    browser.prefer(prefers_color_scheme="dark")
    browser.open(pictures["flame"])
    _, _, colors = pixels(browser.screenshot(tmp_path / "dark.png"))
    assert bytes.fromhex("14171b") in colors
    assert bytes.fromhex("ffffff") not in colors or bytes.fromhex("ffb366") not in colors
    assert bytes.fromhex("ffb366") not in colors


def test_a_phone(browser, pictures, tmp_path):
    """390 px wide: no scrolling sideways, names at full size, rows that a finger hits, nothing cut off in the head."""
    browser.window(390, 844, mobile=True)
    browser.open(pictures["flame"])
    assert browser.run("return [innerWidth, document.documentElement.scrollWidth]") == [390, 390]
    assert width_of(browser, "all") == pytest.approx(370, abs=8)
    assert browser.run("return getComputedStyle(document.querySelector('.f text')).fontSize") == "12px"
    assert browser.run("return document.querySelector('.f rect').getBoundingClientRect().height") >= 24
    widest = "return Math.max(...[...document.querySelectorAll('.page *')].map(e => e.getBoundingClientRect().right))"
    assert browser.run(widest) <= 390
    browser.click(at("main"))
    assert width_of(browser, "main") == pytest.approx(width_of(browser, "all"), abs=2)
    browser.screenshot(tmp_path / "phone.png")


@pytest.mark.parametrize("script", [True, False])
def test_print(browser, pictures, tmp_path, script):
    """One page, with the names on it and without the controls."""
    browser.script(enabled=script)
    browser.open(pictures["diff"])
    browser.pdf(tmp_path / "x.pdf")
    printed = (tmp_path / "x.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 1
    if shutil.which("pdftotext"):
        text = subprocess.run(["pdftotext", tmp_path / "x.pdf", "-"], capture_output=True, text=True, check=True).stdout
        assert "Gone: only in" in text
        assert "Cart.total" in text
        assert "Reset" not in text


def test_without_script_it_is_the_same_picture(browser, pictures, tmp_path):
    """Boxes, names, the browser's own tooltips, head and legend are in the file itself."""
    browser.script(enabled=False)
    browser.open(pictures["flame"])
    _, _, colors = pixels(browser.screenshot(tmp_path / "still.png"))
    assert {bytes.fromhex("ffffff"), bytes.fromhex("ffb366")} <= colors or len(colors) > 40


def test_in_a_page_of_others_it_is_an_image_and_it_is_a_part(browser, pictures, tmp_path):
    """As <img>, where no script runs, and pasted into HTML, where the script finds its own picture."""
    svg = pictures["flame"].read_text()
    page = tmp_path / "page.html"
    page.write_text(f'<!doctype html><meta charset="utf-8"><img src="{pictures["flame"].as_uri()}">')
    browser.open(page)
    assert browser.run("return document.images[0].naturalWidth") == 1200
    browser.window(1000, 800)
    inline = re.sub(r"^<\?xml.*?\?>", "", svg)
    page.write_text(f'<!doctype html><meta charset="utf-8"><body><h1>Ticket</h1><div>{inline}</div>')
    browser.open(page)
    browser.click(at("main"))
    assert width_of(browser, "main") == pytest.approx(width_of(browser, "all"), abs=2)
