"""A report without secrets is the same report."""

from __future__ import annotations

from pathlib import Path

import pytest

from opskit.jvm.logs.crashes.redaction import redact_report
from opskit.jvm.logs.crashes.report import parse

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "crashes"


@pytest.mark.parametrize("major", [8, 11, 17, 21, 25])
def test_secrets_of_a_real_report_are_hidden(major):
    """Passwords of the command line and of JAVA_TOOL_OPTIONS; every other field stays."""
    text = (FIXTURES / f"jdk{major}-unsafe.log").read_text()
    text = text.replace("Environment Variables:\n", "Environment Variables:\nORDER_API=s3cr3t-b\n")
    text = text.replace("java_command: ", "java_command: --password hunter2-b ").replace(
        "jvm_args: ", "jvm_args: -Dapi.token=s3cr3t-b "
    )
    report = parse(text, "a file")
    redacted = redact_report(report)
    assert "s3cr3t-b" in repr(report)
    assert "hunter2-b" in repr(report)
    assert "s3cr3t-b" not in repr(redacted)
    assert "hunter2-b" not in repr(redacted)
    assert redacted.environment["ORDER_API"] == "…"
    assert redacted.jvm_arguments.startswith("-Dapi.token=… ")
    changed = {name for name, value in redacted._asdict().items() if value != getattr(report, name)}
    assert changed <= {"command_line", "jvm_arguments", "java_command", "environment"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/usr/lib/x86_64-linux-gnu/libc.so.6\n", "/srv/{}/a.jar\n"),
        ("# C  [libacme-codec.so+0x1185]", "# C  [{}+0x1185]"),
        ("SIGSEGV: crash_handler in libjvm.so", "SIGSEGV: crash_handler in {}"),
        ('"order-worker-7" ', '"worker {}" '),
        ("# No core dump will be written.", "# Core dump will be written. Default location: /srv/{}/core"),
        ("Internal exceptions (", "Internal exceptions (1 events):\nEvent: 0.1 Thread 0x1 Exception <a 'E'{{0x2}}: 'no login {}'>\nX ("),
        ("#  SIGSEGV (0xb)", "#  fatal error: {}\n#  SIGSEGV (0xb)"),
        ("/opt/java/jdk-25.0.2.1", "/opt/{}/jdk"),
    ],
    ids=["library", "frame", "handler", "thread", "core", "event", "message", "java-home"],
)  # fmt: skip
def test_no_field_shows_a_secret(before, after):
    """Wherever an application's text gets to: a URL, a property, a token, a query, a header."""
    text = (FIXTURES / "jdk25-native.log").read_text()
    secrets = (
        "https://u:hunter2-b@h", "db.password=hunter2-b", "sk_live_hunter2bhunter2b", "?sig=hunter2-b", "Bearer hunter2-b",
    )  # fmt: skip
    assert before in text
    for secret in secrets:
        report = parse(text.replace(before, after.format(secret)), "a file")
        assert "hunter2" in repr(report)
        assert "hunter2" not in repr(redact_report(report))


@pytest.mark.parametrize("name", ["jdk8-compiled-method", "jdk17-c2-crash", "jdk25-native", "jdk25-gc-parallel"])
def test_a_report_without_secrets_stays_as_it_is(name):
    """Frames, libraries, events and registers."""
    report = parse((FIXTURES / f"{name}.log").read_text(), "a file")
    assert redact_report(report)._replace(environment={}) == report._replace(environment={})


def test_the_main_class_stays_after_a_secret_of_the_options():
    """In `Command Line: …` a secret with blanks could reach to the next option; the command stands there by itself too."""
    text = (FIXTURES / "jdk25-unsafe.log").read_text()
    begin = text.index("Command Line: ")
    text = text[:begin] + "Command Line: -Ddb.password=a b com.acme.Main run" + text[text.index("\n", begin) :]
    begin = text.index("java_command: ")
    text = text[:begin] + "java_command: com.acme.Main run" + text[text.index("\n", begin) :]
    assert redact_report(parse(text, "a file")).command_line == "-Ddb.password=… com.acme.Main run"
