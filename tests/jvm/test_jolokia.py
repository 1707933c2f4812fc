"""Jolokia's URLs, options, property and answers, without a Jolokia."""

from __future__ import annotations

import pytest

from opskit.jvm.jolokia import (
    Url,
    error_of,
    list_path,
    parse_answer,
    parse_url,
    plain_value,
    url_in_properties,
    url_of_option,
    without_secrets,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "url", "shown"),
    [
        ("http://h", Url("http", "h", 80), "http://h:80/jolokia/"),
        ("https://u:p%40@[::1]:8443/x", Url("https", "::1", 8443, "/x/", "u", "p@"), "https://[::1]:8443/x/"),
        ("http://h:1/jolokia/?t=s", Url("http", "h", 1, "/jolokia/?t=s"), "http://h:1/jolokia/"),
    ],
)
def test_urls(text, url, shown):
    """Path and port have defaults; user, password and query are not shown."""
    assert parse_url(text) == url
    assert parse_url(text).shown == shown


def test_the_property_is_unescaped():
    """As java.util.Properties writes it; empty right after Jolokia was loaded."""
    head = "#Mon\nother.jolokia.agent=x\n"
    assert (
        url_in_properties(head + "jolokia.agent=http\\://127.0.0.1\\:8778/jolokia/\n")
        == "http://127.0.0.1:8778/jolokia/"
    )
    assert url_in_properties(head + "jolokia.agent=http\\u003a//h") == "http://h"
    assert url_in_properties(head + "jolokia.agent=\n") is None
    assert url_in_properties(head) is None


@pytest.mark.parametrize(
    ("word", "url"),
    [
        ("-javaagent:/opt/jolokia-jvm-1.7.2.jar", "http://127.0.0.1:8778/jolokia/"),
        ("-javaagent:jolokia.jar=port=7,host=0.0.0.0,agentContext=/j", "http://127.0.0.1:7/j/"),
        ("-javaagent:jolokia.jar=protocol=https,host=10.0.0.7", "https://10.0.0.7:8778/jolokia/"),
        ("-javaagent:jolokia.jar=port=0", None),
        ("-javaagent:jolokia.jar=port=x", None),
        ("-javaagent:/opt/jolokia/other.jar=port=7", None),
        ("-Djolokia.jar=port=7", None),
    ],
)
def test_options(word, url):
    """What the command line says, where it names a port."""
    found = url_of_option(["-Xmx1g", word])
    assert (found and found.shown) == url


def test_answers_with_wrong_escapes_are_repaired():
    """Jolokia 2 writes the digits of control characters from ten on as `:;<=>?`; what is right stays."""
    assert parse_answer(rb'{"a":"\u001;[31m","b":"\\u001;","c":"\\\u000="}') == {
        "a": "\x1b[31m",
        "b": "\\u001;",
        "c": "\\\r",
    }
    assert parse_answer(rb'{"b":"\\u001;"}') == {"b": "\\u001;"}
    with pytest.raises(ValueError):
        parse_answer(b'{"a":')


def test_values_without_jolokias_wrapping():
    """Large integers, ObjectNames, and numbers that no float holds."""
    value = {"a": {"bigint": "-" + "9" * 30}, "b": [{"objectName": "c:d=e"}], "f": {"bigint": "x"}}
    assert plain_value(value) == {"a": -int("9" * 30), "b": ["c:d=e"], "f": {"bigint": "x"}}
    assert parse_answer(b"[1E+400, 1e2, " + b"9" * 500 + b"]") == ["1E+400", 100.0, "9" * 500]
    assert error_of({"error_type": "a.B", "error": "a.B : no"}) == "a.B: no"
    assert list_path('d/x:type="a!/b"') == 'd!/x/type="a!!!/b"/attr'
    assert without_secrets("https://u:p@h:1/x?token=y#z") == "https://h:1/x"


@pytest.mark.parametrize(("opening", "closing"), ["[]", ('{"a":', "}"), ('[{"a":', "}]")])
def test_what_is_nested_too_deep_is_refused(opening, closing):
    """A hostile server brings no reader of its values to the end of the stack."""
    assert parse_answer(f"{opening * 20}0{closing * 20}".encode())
    for levels in (60, 900, 100_000):
        with pytest.raises(ValueError):
            parse_answer(f"{opening * levels}0{closing * levels}".encode())
