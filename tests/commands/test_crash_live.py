"""`opskit crash` on JVMs that crash here: each in its own way, side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import crashes
import pytest

CRASHES = {
    "native-17": (17, "null", "LIBRARY"),
    "file-25": (25, "buffer", "LIBRARY", "prices.map"),
    "unsafe-25": (25, "unsafe", "--password=hunter2"),
    "stack-17": (17, "stack", "LIBRARY"),
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """How each JVM ended."""
    top = tmp_path_factory.mktemp("crashes")
    library = crashes.library(top)
    with ThreadPoolExecutor(4) as pool:
        started = {
            name: pool.submit(
                crashes.crash, version, top / name, *(library if each == "LIBRARY" else each for each in words)
            )
            for name, (version, *words) in CRASHES.items()
        }
        return {name: each.result() for name, each in started.items()}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "native-17",
            ["died of SIGSEGV", "libacme-codec.so", "parse_header", "com.acme.shop.Crashes$Native.nullWrite"],
        ),
        ("file-25", ["died of SIGBUS", "prices.map", "truncated", "com.acme.shop.Crashes$Native.read"]),
        ("unsafe-25", ["died of SIGSEGV", "com.acme.shop.Crashes$Prices.store", "Unsafe.putLong()"]),
    ],
)
def test_a_jvm_that_has_just_crashed(inprocess, ended, name, said):
    """Signal, blame and the nearest application frame; exit code 1; secrets are hidden."""
    crash = ended[name]
    assert crash.status == 134, crash.output
    found = inprocess("crash", crash.report)
    assert found.code == 1, found.err
    for each in said:
        assert each in found.out
    verbose = inprocess("crash", "-v", "-f", "json", crash.report)
    assert "hunter2" not in verbose.out


def test_a_directory_of_one_crash(inprocess, ended):
    """The directory of the report gives the same answer as the file."""
    report = ended["native-17"].report
    assert inprocess("crash", report.parent).out == inprocess("crash", report).out


def test_a_stack_overflow_in_native_code_leaves_no_report(inprocess, ended, tmp_path):
    """The kernel kills such a JVM (status 139); `opskit crash` without a file says what the status means."""
    assert (ended["stack-17"].status, ended["stack-17"].report) == (139, None)
    found = inprocess("crash", tmp_path)
    assert (found.code, found.out) == (0, f"no crash report in {tmp_path}\n")
