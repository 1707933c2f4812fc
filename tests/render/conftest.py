"""One headless browser for the tests of all pictures."""

from __future__ import annotations

import pytest
from browser import CHROMIUM, DRIVER, Browser


@pytest.fixture(scope="session")
def chromium():
    """It starts once for each worker."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("needs Debian's packages chromium and chromium-driver")
    found = Browser()
    yield found
    found.quit()


@pytest.fixture
def browser(chromium):
    """The browser with a large window, in light colours, with script; no page in it has complained at the end."""
    chromium.window(1400, 1700)
    chromium.prefer(prefers_color_scheme="light")
    chromium.script(enabled=True)
    chromium.open("about:blank")
    chromium.errors()
    yield chromium
    assert chromium.errors() == []
