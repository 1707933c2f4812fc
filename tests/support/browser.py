"""A real browser for the tests: headless Chromium over the WebDriver protocol, with the standard library only.

Each browser has a new, empty profile and asks the network for nothing; it is quit at the end, with all its processes.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from itertools import combinations
from pathlib import Path

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--window-size=1280,900",
]
KEYS = {
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "Tab": "\ue004",
    "ArrowUp": "\ue013",
    "ArrowDown": "\ue015",
    "ArrowLeft": "\ue012",
    "ArrowRight": "\ue014",
    "Home": "\ue011",
    "Backspace": "\ue003",
}
_TEXTS = """
return [...document.querySelectorAll("text")].filter(text => text.textContent.trim()).map(text => {
    const box = text.getBoundingClientRect();
    return [text.textContent, box.left, box.top, box.right, box.bottom];
});
"""
_OUTSIDE = """
return [...document.querySelectorAll('g')].filter(g =>
    g.querySelector('text') && g.getBBox().width > g.querySelector('rect').getBBox().width + 1).length
"""
_SIZE = "const box = document.documentElement.getBoundingClientRect(); return [box.width, box.height];"
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_PATIENCE_S = 120
# The driver takes a port of one family that is free, and wants the same one of the other: another program may hold that.
_STARTS, _PORT_TAKEN = 20, "port not available"


def over_each_other(boxes):
    """The pairs of texts that cover each other by more than a pixel, in both directions. A box: text, left, top, right, bottom."""
    return [
        (one[0], other[0])
        for one, other in combinations(boxes, 2)
        if min(one[3], other[3]) - max(one[1], other[1]) > 1 and min(one[4], other[4]) - max(one[2], other[2]) > 1
    ]


def check_layout(browser, path, space=0):
    """No text of a picture lies over another one, with so many px between them on a line; all of them are inside it, labels in their cells."""
    browser.open(path)
    boxes = browser.texts()
    assert boxes
    assert (
        over_each_other([(text, left - space, top, right + space, low) for text, left, top, right, low in boxes]) == []
    )
    width, height = browser.run(_SIZE)
    assert [text for text, left, top, right, low in boxes if min(left, top) < 0 or right > width or low > height] == []
    assert browser.run(_OUTSIDE) == 0, "a label beside its cell"


class Browser:
    """One browser window. `quit` ends it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="opskit-browser-"))
        self.session = ""
        try:
            self.base = f"http://127.0.0.1:{self._start()}"
            options = {"binary": CHROMIUM, "args": [*FLAGS, f"--user-data-dir={self.folder / 'profile'}"]}
            wanted = {
                "browserName": "chrome",
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            }
            answer = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self.session = f"/session/{answer['sessionId']}"
        except BaseException:
            self.quit()
            raise

    def _start(self) -> int:
        """Start the driver; its port."""
        for _ in range(_STARTS):
            said, port = self._start_once()
            if port is not None:
                return port
            if _PORT_TAKEN not in said:
                break
        raise AssertionError(f"chromedriver did not start: {said}")

    def _start_once(self) -> tuple[str, int | None]:
        """What the driver said, and its port, None if it has ended or says none."""
        output = self.folder / "driver.log"
        with output.open("wb") as log:
            self.driver = subprocess.Popen(
                [DRIVER, "--port=0"],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "HOME": str(self.folder), "TMPDIR": str(self.folder)},
            )
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            has_ended = self.driver.poll() is not None
            said = output.read_text(errors="replace")
            if " on port " in said.partition("successfully")[2]:
                return said, int(said.rpartition(" on port ")[2].split()[0].rstrip("."))
            if has_ended:
                break
            time.sleep(0.05)
        return said, None

    def _ask(self, method, path, body=None):
        data = None if method == "GET" else json.dumps(body or {}).encode()
        url, headers = self.base + path, {"Content-Type": "application/json"}
        request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310  (always the driver's)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_PATIENCE_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path}: {error.read().decode(errors='replace')[:600]}") from None

    def open(self, path: Path | str) -> None:
        """Open a file, or an address, and wait until it is loaded."""
        self._ask("POST", f"{self.session}/url", {"url": "about:blank"})
        self._ask("POST", f"{self.session}/url", {"url": path.as_uri() if isinstance(path, Path) else path})

    def run(self, script, *arguments):
        """Run a function body in the page and return its value."""
        return self._ask("POST", f"{self.session}/execute/sync", {"script": script, "args": list(arguments)})

    def texts(self):
        """The texts of an SVG file that have characters, each with its box."""
        return self.run(_TEXTS)

    def find(self, css):
        """The elements that match a CSS selector."""
        return self._ask("POST", f"{self.session}/elements", {"using": "css selector", "value": css})

    def click(self, css) -> None:
        """Click the first match in its middle, as a mouse does."""
        self._ask("POST", f"{self.session}/element/{self.find(css)[0][_ELEMENT]}/click")

    def hover(self, css) -> None:
        """Move the mouse over it."""
        origin = self.find(css)[0]
        move = {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": origin}
        self._act({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [move]})

    def press(self, *keys) -> None:
        """Press and release each key."""
        strokes = []
        for key in keys:
            value = KEYS.get(key, key)
            strokes += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self._act({"type": "key", "id": "keyboard", "actions": strokes})

    def _act(self, source) -> None:
        self._ask("POST", f"{self.session}/actions", {"actions": [source]})

    def devtools(self, command, **parameters):
        """Run a command of the DevTools protocol."""
        return self._ask("POST", f"{self.session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def window(self, width, height, *, mobile=False) -> None:
        """Set the size of the page; `mobile`: like a phone."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if mobile else 1, mobile=mobile
        )  # fmt: skip
        self.devtools("Emulation.setTouchEmulationEnabled", enabled=mobile)

    def prefer(self, **media) -> None:
        """Set media features: prefers_color_scheme="dark" and others."""
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        self.devtools("Emulation.setEmulatedMedia", features=features)

    def script(self, *, enabled) -> None:
        """Allow or forbid scripts in pages opened from now on."""
        self.devtools("Emulation.setScriptExecutionDisabled", value=not enabled)

    def screenshot(self, path: Path) -> bytes:
        """Write a PNG file of the window."""
        data = base64.b64decode(self._ask("GET", f"{self.session}/screenshot"))
        path.write_bytes(data)
        return data

    def pdf(self, path: Path) -> None:
        """Write a PDF file of the page."""
        printed = self.devtools("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        path.write_bytes(base64.b64decode(printed["data"]))

    def errors(self) -> list[str]:
        """The warnings and errors of the page since the last call."""
        logged = self._ask("POST", f"{self.session}/se/log", {"type": "browser"})
        return [entry["message"] for entry in logged if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self) -> list[str]:
        """The addresses requested since the last call."""
        asked = []
        for entry in self._ask("POST", f"{self.session}/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                asked.append(message["params"]["request"]["url"])
        return asked

    def quit(self) -> None:
        """End the browser and its children, and remove its profile."""
        try:
            if self.session:
                self._ask("DELETE", self.session)
        except (OSError, AssertionError):
            pass  # it is killed anyway
        finally:
            try:
                os.killpg(self.driver.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.driver.wait()
            shutil.rmtree(self.folder, ignore_errors=True)
