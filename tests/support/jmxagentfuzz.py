"""Fuzz targets of Jolokia's answers, its URLs and options, and of what opskit's agent writes and is asked."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from opskit.collect.jmx.secrets import without_secrets
from opskit.errors import UsageError
from opskit.jvm import jolokia
from opskit.jvm.agent import protocol
from opskit.jvm.object_names import parse_pattern

if TYPE_CHECKING:
    from collections.abc import Callable

_AGENT = (
    b'[1\n,["app:type=Pool","Active",3]\n,["app:type=Pool","Size",null,"javax.management.X: y\\u0000java.io.IOException: z"]\n'
    b',["app:type=Pool","Table",{"":["id"],"rows":[{"id":1,"name":"a"}]}]\n,["app:type=Pool",null,null,"no value in time"]\n,0]'
)
_READ = b'[{"request":{"mbean":"a:b=c"},"value":{"A":{"bigint":"99"},"B":{"objectName":"d:e=f"}},"status":200}]'


def register(
    text_target: Callable[..., None], target: Callable[..., Callable[..., object]], text: Callable[[bytes], str]
) -> None:
    """Add the targets."""

    @target("answer of the agent", _AGENT, words=(b'{"":[', b'"rows":', b"\\u0000", b"1e999", b"NaN"))
    def answer_of_agent(data: bytes) -> None:
        for record in protocol.parse_answer(data).records:
            without_secrets(record.name or "", record.value)

    @target("answer of Jolokia", _READ, words=(b"\\u001;", b"1e999", b"-Infinity", b'{"bigint":"'))
    def answer_of_jolokia(data: bytes) -> None:
        with suppress(ValueError):
            jolokia.plain_value(jolokia.parse_answer(data))

    text_target(
        "pattern for the agent",
        lambda words: protocol.request([parse_pattern(words).text], 1, 1, 1, [(words, words)]),
        b'a:type=*,b="c?" D.e',
    )
    text_target(
        "place of a Jolokia",
        _place,
        b"https://user:pw@[::1]:8778/jolokia?x=1#y",
        b"http://host",
        b"#d\njolokia.agent=http\\://h\\:8778/jolokia/\\u0041\n",
        b"-javaagent:/opt/jolokia.jar=port=8778,host=*,protocol=https",
        b'app/x:type="a!/b"',
        words=(b"%00", b"://", b"@", b"[", b"agentContext=", b"port=", b",", b"jolokia.agent="),
    )


def _place(words: str) -> None:
    with suppress(UsageError):
        _ = jolokia.parse_url(words).shown
    jolokia.without_secrets(words)
    jolokia.url_in_properties(words)
    jolokia.url_of_option(words.split(" "))
    jolokia.list_path(words)
