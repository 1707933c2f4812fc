"""Hide the secrets of a file of any kind, keep the values, and count them."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from opskit.analysis.capture.known_values import decoded, encoded, inner_value, is_encodable, unescaped
from opskit.jvm.perfdata.hsperfdata import text_places
from opskit.redact import PROPERTIES, TEXTS, TOKENS, Hider
from opskit.secret_names import LONGEST_NAME, is_plain, is_secret
from opskit.words import HIDDEN

if TYPE_CHECKING:
    from opskit.analysis.capture.known_values import KnownValues

# A text without any of these, in lower case, holds no secret that is known by its form or name.
_SIGNS = (
    b"key", b"pass", b"pwd", b"psw", b"pw", b"secret", b"token", b"cred", b"auth", b"connection", b"session", b"otp", b"jwt",
    b"dsn", b"bearer", b"pin", b"salt", b"sas", b"cookie", b"://", b"basic ", b"digest ", b"negotiate ", b"identified by",
    b"eyj", b"akia", b"asia", b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"xox", b"xapp-", b"glpat-", b"sk-", b"sk_", b"rk_",
    b"npm_", b"aiza", b"ya29.", b"hvb.", b"hvs.", b"sg.", b"doo_v1", b"dop_v1", b"dor_v1", b"pypi-", b"dapi", b"sig=",
    b"signature=", b" -p", b" -u", b"thin:", b":oci", b"environment",
)  # fmt: skip
_SIGNS_IN_MEMORY = (
    b"passw", b"secret", b"token", b"://", b"bearer ", b"apikey", b"api_key", b"api-key", b"api.key", b"eyj", b"akia",
    b"credential",
)  # fmt: skip
_RUN = re.compile(rb"[\x20-\x7e]+")
_MOST_RUN = 4096
_SETTING = re.compile(rf"(\s*(?:export +|set +)?)([\w.\-]{{1,{LONGEST_NAME}}})(\s*[=:]\s*)(\S.*)", re.DOTALL)
_UNIT_ENVIRONMENT = re.compile(r"(\s*(?:Pass)?Environment\s*=)(.*)", re.DOTALL)
_ASSIGNMENT = re.compile(
    r"""(?:"([A-Za-z_]\w*)=([^"\n]*)|'([A-Za-z_]\w*)=([^'\n]*)|(?<!\w)([A-Za-z_]\w*)=("[^"\n]*"?|'[^'\n]*'?|[^\s"']*))"""
)
_VARIABLE = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_PRIVATE_KEY = re.compile(r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)([^-]+)")
_SECTION = "Environment Variables:"  # of a JVM's crash report
_JVM_LINES = ("jvm_args:", "java_command:", "VM Arguments:", "Command Line:", "JVM Args:")
_LONGEST_COUNTER = 1000  # bytes; HotSpot cuts its texts at 1023
_COMMANDS = frozenset({"sun.rt.javaCommand", "java.rt.vmArgs", "java.rt.vmFlags"})


class Keeper(Hider):
    """Keeps what it hides: value -> whether its name or form says that it is a secret."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts = counts
        self.values: dict[str, bool] = {}
        self._is_sure = True
        self._last = ""

    def hide(self, kind: str, value: str) -> str:
        """Count and keep a value; one that is hidden already is neither."""
        if value.strip("\"'*" + self.mark):
            self.counts[kind] += 1
            self.keep(value)
        self._last = value
        return self._instead(value)

    def tail(self, value: str) -> str:
        """More words of the last one."""
        self.keep(self._last + value)
        return self._more(value)

    def variable(self, name: str, value: str) -> str:
        """An environment's. What a hidden one is called tells whether it is surely a secret; a URL in it may hold one, too."""
        before, self._is_sure = self._is_sure, is_secret(name)
        shown = super().variable(name, value)
        if shown == HIDDEN and not self._is_sure and len(value) < 1 << 16:
            self._is_sure, counts = True, self.counts
            self.counts = Counter()
            self.script(value)
            self.counts = counts
        self._is_sure = before
        return shown

    def _instead(self, value: str) -> str:  # noqa: ARG002
        return HIDDEN

    def _more(self, value: str) -> str:  # noqa: ARG002
        return ""

    def keep(self, value: str) -> None:
        """Keep a value as it stands there, and as a program reads it."""
        inner = inner_value(value)
        for each in {value, inner, unescaped(inner) or inner} if inner and is_encodable(value) else ():
            self.values[each] = self.values.get(each, False) or self._is_sure

    # files

    def text_file(self, data: bytes) -> bytes:
        """Any text: the lines that may hold a secret."""
        lower = data.lower()
        places = _lines_with(lower, _SIGNS)
        if not places:
            return data
        if b"PRIVATE KEY" in data:
            text = decoded(data)
            hidden = _PRIVATE_KEY.sub(lambda found: found[1] + self.hide(TOKENS, found[2]), text)
            if hidden != text:
                data = encoded(hidden)
                places = _lines_with(data.lower(), _SIGNS)
        section = data.find(_SECTION.encode())
        if section >= 0:
            places = sorted({*places, *_section_lines(data, section)})
        parts: list[bytes] = []
        at = 0
        for start, end in places:
            in_section = 0 <= section < start
            parts += (data[at:start], encoded(self._text_line(decoded(data[start:end]), in_section)))
            at = end
        return b"".join((*parts, data[at:]))

    def _text_line(self, line: str, in_section: bool) -> str:
        if found := _UNIT_ENVIRONMENT.fullmatch(line):
            return found[1] + _ASSIGNMENT.sub(self._assigned, found[2])
        if in_section and (found := _VARIABLE.fullmatch(line)):
            return f"{found[1]}={self.variable(found[1], found[2])}"
        stripped = line.rstrip()
        found = _SETTING.fullmatch(stripped)
        if found and is_secret(found[2]) and not is_plain(found[2], found[4]):
            return "".join((*found.groups()[:3], self.hide(TEXTS, found[4]), line[len(stripped) :]))
        if any(name in line for name in _JVM_LINES):
            return self.line(line)
        return self.script(line)

    def _assigned(self, found: re.Match[str]) -> str:
        name, value = next((found[at], found[at + 1]) for at in (1, 3, 5) if found[at])
        return f"{found[0][: -len(value) or None]}{self.variable(name, value)}"

    def line_file(self, data: bytes) -> bytes:
        """A command line in one line."""
        return encoded(self.line(decoded(data)))


class EqualLength(Keeper):
    """The same at equal length in bytes, with `*`."""

    mark = "\x7f"  # while it works

    def _instead(self, value: str) -> str:
        return self.mark * len(encoded(value))

    def _more(self, value: str) -> str:
        return self._instead(value)

    def perfdata(self, data: bytes) -> bytes:
        """An hsperfdata file: its texts."""
        changed = bytearray(data)
        for name, at, size in text_places(data):
            text = decoded(data[at : at + size])
            shown = self.line(text) if name in _COMMANDS else self.value(name, text, PROPERTIES)
            self._put(changed, at, size, shown)
        return bytes(changed)

    def memory(self, data: bytes) -> bytes:
        """Any bytes: ASCII texts that hold a secret by its form or name."""
        lower = data.lower()
        found: set[tuple[int, int]] = set()
        for sign in _SIGNS_IN_MEMORY:
            at = lower.find(sign)
            while at >= 0:
                begin = max(at - _MOST_RUN, 0)
                run = next(each for each in _RUN.finditer(data, begin, at + _MOST_RUN) if each.end() > at)
                found.add(run.span())
                at = lower.find(sign, max(run.end(), at + 1))
        if not found:
            return data
        changed = bytearray(data)
        for start, end in sorted(found):
            self._put(changed, start, end - start, self.line(changed[start:end].decode("ascii")))
        return bytes(changed)

    def _put(self, changed: bytearray, at: int, size: int, shown: str) -> None:
        new = encoded(shown)
        if len(new) == size and self.mark in shown:
            changed[at : at + size] = new.replace(self.mark.encode(), b"*")


def without_cut(data: bytes, known: KnownValues) -> bytes:
    """The same counters; a text that ends at HotSpot's longest with the beginning of a value ends with `*`."""
    for _, at, size in text_places(data):
        if size >= _LONGEST_COUNTER and (cut := known.cut_at_end(data[at : at + size])):
            data = data[: at + size - cut] + b"*" * cut + data[at + size :]
    return data


def _lines_with(lower: bytes, signs: tuple[bytes, ...]) -> list[tuple[int, int]]:
    """(start, end) of the lines that hold one of the signs, in order."""
    found = {}
    for sign in signs:
        at = lower.find(sign)
        while at >= 0:
            end = lower.find(b"\n", at)
            end = len(lower) if end < 0 else end
            found[lower.rfind(b"\n", 0, at) + 1] = end
            at = lower.find(sign, end)
    return sorted(found.items())


def _section_lines(data: bytes, at: int) -> list[tuple[int, int]]:
    """The lines after a heading, up to an empty one."""
    places = []
    at = data.find(b"\n", at) + 1
    while at:
        end = data.find(b"\n", at)
        if end <= at:
            break
        places.append((at, end))
        at = end + 1
    return places
