r"""What is said to the agent (OpskitJmx.java) and by it. Pure.

It gets a file of five lines: milliseconds per attribute, milliseconds in all, bytes in all, a regular expression of the wanted MBeans,
one of the wanted attributes. It writes

    [1
    ,["app:type=Pool","Active",3]
    ,["app:type=Pool","Size",null,"javax.management.MBeanException: …\u0000java.io.IOException: closed"]
    ,0]

The number at the end counts what was left out for time; there is a text instead where a limit or an error ended it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from opskit.jvm.mbean_json import loaded
from opskit.jvm.object_names import has_properties, is_value_pattern, properties_of
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Json = object

PROTOCOL = 1
SIZE = "size"
_TOO_LATE = "no value in time"
_LONGEST_ERROR = 500
_PROPERTY = r'[^=,\n]++=(?:"(?:[^"\\\n]++|\\.)*+"|[^",\n]*+)'
_MOST_PARTS = 8
_ANY_TEXT = r"[\s\S]"
_IN_NAME = r"[^\n]"
_IN_VALUE = r"[^,\n]"
_IN_DOMAIN = r"[^:\n]"


class Record(NamedTuple):
    """One attribute. `name`: None where the MBean itself failed. `hangs`: its getter did not return in time."""

    bean: str
    name: str | None
    value: Json
    error: str | None = None
    hangs: bool = False


class Answer(NamedTuple):
    """What the agent wrote. `protocol` None: nothing of ours; `end`: what was left out, a text on why, or None without an end."""

    protocol: int | None
    records: Sequence[Record]
    end: int | str | None


def request(
    patterns: Iterable[str], attribute_ms: int, total_ms: int, most_bytes: int, without: Iterable[tuple[str, str]] = ()
) -> bytes:
    """The file for the agent. The patterns are those of opskit.jvm.object_names.Pattern; `without`: (MBean, attribute) not to read."""
    beans: dict[str, None] = {}
    attributes: dict[str, None] = {}
    for text in patterns:
        for bean in _bean_expressions(text):
            beans[bean] = None
            attributes[f"(?:{bean})\\n{_ANY_TEXT}*"] = None
        head, space, tail = text.rpartition(" ")
        if space and tail:
            for bean in _bean_expressions(head.rstrip()):
                beans[bean] = None
                for name in _beginnings(tail.replace("\\x20", " ")):
                    attributes[f"(?:{bean})\\n{_glob(name, _ANY_TEXT)}"] = None
    excluded = "|".join(f"{_quoted(bean)}\\n{_IN_NAME}*\\n{_quoted(name)}" for bean, name in without)
    wanted = f"(?!(?:{excluded})$)(?:{'|'.join(attributes)})" if excluded else "|".join(attributes)
    lines = (attribute_ms, total_ms, most_bytes, "|".join(beans), wanted)
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def _bean_expressions(pattern: str) -> Iterator[str]:
    """Java regular expressions for `NAME newline CANONICAL-NAME`."""
    if not has_properties(pattern):
        whole = _glob(pattern, _IN_NAME)
        yield f"{whole}\\n{_IN_NAME}*"
        yield f"{_IN_NAME}*\\n{whole}"
    else:
        domain, properties, is_open = properties_of(pattern)
        more = f"(?:{_PROPERTY},)*?" if is_open else ""
        parts = []
        for key in sorted(properties):
            value = properties[key]
            parts.append(f"{_quoted(key)}={_value(value)}")
        listed = more + f",{more}".join(parts) + (f"(?:,{_PROPERTY})*" if is_open else "") if parts else f"{_IN_NAME}*"
        yield f"{_IN_NAME}*\\n{_glob(domain or '*', _IN_DOMAIN)}:{listed}"


def _value(pattern: str) -> str:
    """The value of a property. In a quoted one, a star may mean commas: what it means too much is left out when it is shown."""
    if not is_value_pattern(pattern):
        return _quoted(pattern)
    if pattern.startswith('"'):
        return _glob(pattern, _IN_NAME)
    return f'(?:(?=")(?:{_glob(pattern, _IN_NAME)})|(?!")(?:{_glob(pattern, _IN_VALUE)}))'


def _beginnings(attribute: str) -> list[str]:
    """`HeapMemoryUsage.used` is the part of an attribute, or an attribute with a dot in its name."""
    words = attribute.split(".")
    return [*(".".join(words[: number + 1]) for number in range(min(len(words), _MOST_PARTS))), attribute]


def _glob(pattern: str, character: str) -> str:
    """As a Java regular expression that tries each way once: the first place for what follows a star is enough."""
    first, *rest = pattern.split("*")
    parts = [_quoted(first, character)]
    for number, part in enumerate(rest, 1):
        if number == len(rest):
            parts.append(f"{character}*{_quoted(part, character)}")
        elif part:
            parts.append(f"(?>{character}*?{_quoted(part, character)})")
    return "".join(parts)


def _quoted(text: str, any_character: str | None = None) -> str:
    """The characters themselves; `any_character` for each `?`."""
    return "".join(any_character if each == "?" and any_character else _character(each) for each in text)


def _character(each: str) -> str:
    return each if each.isalnum() and each.isascii() else f"\\x{{{ord(each):x}}}"


def parse_answer(data: bytes) -> Answer:
    """Read what the agent wrote; a line that is cut ends it."""
    lines = data.decode("utf-8", "replace").split("\n")
    protocol = _loaded(lines[0].removeprefix("["))
    if not isinstance(protocol, int) or isinstance(protocol, bool):
        return Answer(None, (), None)
    records: list[Record] = []
    for line in lines[1:]:
        if line.endswith("]") and not line.startswith(",["):
            end = _loaded(line[1:-1])
            return Answer(protocol, records, end if isinstance(end, (int, str)) else None)
        record = _record(_loaded(line[1:]))
        if record is None:
            break
        records.append(record)
    return Answer(protocol, records, None)


def _record(found: Json) -> Record | None:
    if not isinstance(found, list) or len(found) not in (3, 4):
        return None
    bean, name, value = found[:3]
    error = found[3] if len(found) == 4 else None
    if not isinstance(bean, str) or not isinstance(name, (str, type(None))) or not isinstance(error, (str, type(None))):
        return None
    return Record(bean, name, with_tables(value), error and why(error), error == _TOO_LATE)


def why(said: str) -> str:
    """The cause of what JMX has wrapped, else the exception itself."""
    outer, _, cause = said.partition("\0")
    wraps = cause not in ("", "null") and outer.startswith("javax.management.")
    return (cause if wraps else outer.removeprefix("java.lang.IllegalStateException: "))[:_LONGEST_ERROR]


def with_tables(value: Json) -> Json:
    """A table with one key becomes an object by that key (with its values alone where it is a Map's), any other one a list of rows."""
    if isinstance(value, list):
        return [with_tables(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: with_tables(each) for key, each in value.items()}
    keys, rows = found.get(""), found.get("rows")
    if set(found) != {"", "rows"} or not isinstance(keys, list) or not isinstance(rows, list):
        return found
    if len(keys) != 1 or not all(isinstance(row, dict) and keys[0] in row for row in rows):
        return rows
    is_map = keys == ["key"] and all(set(row) == {"key", "value"} for row in rows)
    return {_text(row[keys[0]]): row["value"] if is_map else row for row in rows}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _loaded(text: str) -> Json:
    """JSON, or None."""
    try:
        return loaded(text)
    except ValueError:
        return None
