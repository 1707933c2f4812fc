"""How a JVM was started, by its command line, its environment and its counters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.errors import BadInput
from opskit.jvm.launch import (
    last_flag,
    main_of_command,
    main_of_words,
    parse_release,
    parse_words,
    without_secrets,
)


@pytest.mark.parametrize(
    ("words", "main"),
    [
        ("java -Xmx1g -cp a.jar:b.jar com.example.Main serve", "com.example.Main"),
        ("java -Da=b -jar /srv/app.jar -jar x", "/srv/app.jar"),
        ("java --class-path a --add-modules b -p c -m web/com.example.Web", "web/com.example.Web"),
        ("java --module=web/com.example.Web x", "web/com.example.Web"),
        ("java @options", None),
        ("java -version", None),
        ("java", None),
        ("/usr/bin/java -ea --enable-preview Main.java", "Main.java"),
    ],
)
def test_main_of_a_command_line(words, main):
    assert main_of_words(words.split()) == main


@pytest.mark.parametrize(
    ("command", "main"),
    [
        ("com.example.Main serve --port 1", "com.example.Main"),
        ("/srv/app.jar serve", "/srv/app.jar"),
        ("/srv/my app.jar serve x.jar", "/srv/my app.jar"),
        ("web/com.example.Web", "web/com.example.Web"),
        ("", None),
    ],
)
def test_main_of_what_the_jvm_says(command, main):
    assert main_of_command(command) == main


def test_the_last_flag_counts_and_the_programs_own_arguments_do_not():
    words = ["java", "-XX:-UsePerfData", "-XX:+UsePerfData", "Main", "-XX:-UsePerfData"]
    assert last_flag(words, [], "UsePerfData") == "-XX:+UsePerfData"
    assert last_flag(words, ["_JAVA_OPTIONS=-XX:-UsePerfData"], "UsePerfData") == "-XX:-UsePerfData"
    assert last_flag(words, ["JAVA_TOOL_OPTIONS=-XX:-UsePerfData"], "UsePerfData") == "-XX:+UsePerfData"
    assert last_flag(["java", "-XX:PerfDataMemorySize=64K", "Main"], [], "PerfDataMemorySize").endswith("=64K")
    assert last_flag(["java", "Main"], ["PATH=/bin"], "UsePerfData") is None


def test_words_of_a_command_line():
    assert parse_words("java\0-cp\0\0Main\0") == ["java", "-cp", "", "Main"]
    assert parse_words("") == []


@pytest.mark.parametrize(
    ("shown", "hidden"),
    [
        ("-Xmx1g -Dtoken=s3cret -XX:+UseG1GC", "-Xmx1g -Dtoken=… -XX:+UseG1GC"),
        ("-Da=b c d -Xss1m", "-Da=… -Xss1m"),
        ("-Dplain -Da=x=y", "-Dplain -Da=…"),
        ("-javaagent:/opt/agent.jar=key=abc --add-opens=java.base/x=ALL-UNNAMED", "-javaagent:/opt/agent.jar=… --add-opens=java.base/x=ALL-UNNAMED"),
        ("-Da=one\ntwo -Db=", "-Da=… -Db=…"),
        ("", ""),
    ],
)  # fmt: skip
def test_values_that_may_be_passwords_are_hidden(shown, hidden):
    assert without_secrets(shown) == hidden


@given(
    st.lists(st.from_regex(r"-D[a-z.]{1,8}=[a-zA-Z0-9 /=]*SECRET[a-z0-9 ]*", fullmatch=True), min_size=1, max_size=4)
)
def test_no_value_of_a_property_gets_through(options):
    """In one line of text: spaces and equals signs do not end a value."""
    assert "SECRET" not in without_secrets(" ".join(["-Xmx1g", *options, "-XX:+UseG1GC"]))


@given(st.lists(st.from_regex(r"-D[a-z.]{1,8}=[^\0]*SECRET[^\0]*", fullmatch=True), min_size=1, max_size=4))
def test_with_the_command_line_no_value_gets_through_whatever_it_is(options):
    """Also one that looks like another option."""
    words = ["java", "-Xmx1g", *options, "-XX:+UseG1GC", "Main"]
    shown = without_secrets(" ".join(words[1:-1]), words)
    assert "SECRET" not in shown
    assert shown.startswith("-Xmx1g -D")
    assert shown.endswith(" -XX:+UseG1GC")


def test_release_file():
    assert parse_release('IMPLEMENTOR="Eclipse"\nJAVA_VERSION="17.0.9"\n')["JAVA_VERSION"] == "17.0.9"
    with pytest.raises(BadInput):
        parse_release("nothing")
