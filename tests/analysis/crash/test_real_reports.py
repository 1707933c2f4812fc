"""The reports of real crashes of JDK 8 to 25: what crashed, and what is blamed for it."""

from __future__ import annotations

import crashes
import pytest

from opskit.analysis.crash.judge import judge
from opskit.analysis.crash.stacks import is_java
from opskit.collect.crash.facts import Facts, Read
from opskit.jvm.logs.crashes.report import parse

READ = {}


def read(name):
    if name not in READ:
        READ[name] = parse(crashes.text(name), name)
    return READ[name]


@pytest.mark.parametrize("name", crashes.names())
def test_a_real_report_is_read_and_judged(name):
    """The event, blamed frame and thread are those of the crash; the pattern and the nearest application frame fit it."""
    report, truth = read(name), crashes.truth(name)
    found = judge(Facts([Read(name, report)])).verdicts[0]
    event, frame, thread = report.event, report.frame, report.thread
    assert (event.kind, event.name, event.code) == (truth.kind, truth.name, truth.code)
    assert (frame is None) == (truth.frame is None)
    without_symbols = report.java_major == 8 and frame is not None and frame.library == "libjvm.so"
    if frame is not None and not without_symbols:
        assert truth.frame in frame.text
    if truth.thread is not None:
        assert thread.name.startswith(truth.thread)
    assert report.java_major == int(name.partition("-")[0].removeprefix("jdk"))
    assert found.pattern == truth.pattern
    assert (None if found.application is None else found.application.name) == truth.application
    assert report.complete


@pytest.mark.parametrize("major", [8, 11, 17, 21, 25])
def test_a_report_tells_the_state_of_the_jvm(major):
    """Time, uptime, command line, heap, machine and limits are read from each dialect."""
    for name in crashes.names():
        if not name.startswith(f"jdk{major}-"):
            continue
        report = parse((crashes.FIXTURES / f"{name}.log").read_bytes(), name)
        assert report.pid > 0, name
        assert report.uptime_s > 0, name
        assert "2026" in report.at, name
        assert report.java_command.startswith("com.acme.shop.Crashes"), name
        assert report.machine.memory_bytes >= 512 << 20, name
        assert report.machine.limits["NOFILE"].startswith("20000"), name
        assert report.heap.max_bytes == 64 << 20, name
        if major > 8:
            assert report.java_home.startswith("/opt/java/jdk-"), name


def test_limits_of_a_container_are_told():
    """512 MiB and 1.5 CPUs, in a cgroup of version 1."""
    machine = read("jdk25-container").machine
    assert (machine.container, machine.container_memory_bytes) == ("cgroupv1", 512 << 20)
    assert machine.container_cpus.startswith("1.5")


@pytest.mark.parametrize(
    ("platform", "is_narrow"),
    [("linux-x86", True), ("linux-arm", True), ("windows-x86", True), ("linux-amd64", False), ("linux-arm64", False), ("linux-ppc64le", False)],
)  # fmt: skip
def test_a_32_bit_jvm_has_few_addresses(platform, is_narrow):
    """With room on the machine and no limit, that is why the kernel refuses memory."""
    report = read("jdk17-c2-out-of-memory")
    limits = {**report.machine.limits, "AS": "infinity/infinity"}
    report = report._replace(vm=f"Server VM (mixed mode, {platform} )", machine=report.machine._replace(limits=limits))
    blamed = judge(Facts([Read("hs_err", report)])).verdicts[0].blamed
    assert (blamed == "the address space of a 32-bit JVM") == is_narrow


@pytest.mark.parametrize("major", [8, 11, 17, 21, 25])
def test_secrets_of_a_report_are_hidden(major):
    """Passwords and tokens of the command line and the environment are in no verdict."""
    name = f"jdk{major}-unsafe"
    text = crashes.text(name)
    shown = repr(judge(Facts([Read(name, read(name))])))
    for secret in ("hunter2-sesame", "changeit-please", "tok-4711"):
        assert secret in text
        assert secret not in shown
    assert "shop.region=eu" in shown


def test_frames_of_compiled_methods_are_java_frames():
    """J with the compiler and its level is a Java frame with a method's name."""
    for major in (8, 25):
        frame = read(f"jdk{major}-compiled-method").frame
        assert is_java(frame)
        assert frame.compiler.lower() == "c2"
