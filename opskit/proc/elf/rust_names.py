"""Short names of Rust functions: `crate::module::function`, without hashes and generic arguments.

The v0 scheme is RFC 2603 (`_R…`); the legacy scheme looks like C++ with a hash at the end (`_ZN…17h<hash>E`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from opskit.proc.elf.mangled_text import DIGITS, MangledText, NotMangled

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_LEGACY = re.compile(r"_ZN.*17h[0-9a-f]{16}E")
_ESCAPES = {
    "SP": "@", "BP": "*", "RF": "&", "LT": "<", "GT": ">", "LP": "(", "RP": ")", "C": ",",
}  # fmt: skip
_ESCAPE = re.compile(r"\$(?:(SP|BP|RF|LT|GT|LP|RP|C)|u([0-9a-f]{1,6}))\$|\.\.")
_GENERIC = re.compile(r"(?<=[\w>])<[^<>]*>")
_BASIC = {
    "a": "i8", "b": "bool", "c": "char", "d": "f64", "e": "str", "f": "f32", "h": "u8", "i": "isize", "j": "usize", "l": "i32",
    "m": "u32", "n": "i128", "o": "u128", "s": "i16", "t": "u16", "u": "()", "v": "...", "x": "i64", "y": "u64", "z": "!",
    "p": "_",
}  # fmt: skip
_MOST_STEPS = 4096


def legacy_rust(raw: str) -> str | None:
    """The path of a legacy name; None for what is not one. Raises NotMangled."""
    if not _LEGACY.fullmatch(raw):
        return None
    name = MangledText(raw)
    name.at = 3
    parts = []
    while not name.take("E"):
        parts.append(name.take_many(name.number()))
    return _without_generics("::".join(_unescaped(part) for part in parts[:-1]))


def _unescaped(part: str) -> str:
    def plain(found: re.Match[str]) -> str:
        if found[1]:
            return _ESCAPES[found[1]]
        if found[2]:
            number = int(found[2], 16)  # a number: six digits at most
            return chr(number) if 32 <= number < 0x110000 else "?"
        return "::"

    return _ESCAPE.sub(plain, part[1:] if part.startswith("_$") else part)


def _without_generics(path: str) -> str:
    """Drop generic arguments, and keep `<Type as Trait>`, which has no name before it."""
    for _ in range(16):
        shorter = _GENERIC.sub("", path)
        if shorter == path:
            break
        path = shorter
    return path


def rust(raw: str) -> str:
    """The path of a v0 name. Raises NotMangled, IndexError."""
    name = _V0(raw[2:])
    if name.peek() in DIGITS:  # a later version of the scheme
        raise NotMangled
    return name.path()


class _V0(MangledText):
    """A v0 name while it is parsed. Types are shown where an impl is of one that has no path."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._steps = 0

    def path(self) -> str:
        with self:
            kind = self._kind()
            if kind == "C":
                self._disambiguator()
                return self._identifier()
            if kind == "N":
                return self._nested()
            if kind == "M":
                self._impl()
                return f"<{self.type()}>"
            if kind in "XY":
                if kind == "X":
                    self._impl()
                return f"<{self.type()} as {self.path()}>"
            if kind == "I":
                found = self.path()
                while not self.take("E"):
                    self._generic()
                return found
            if kind == "B":
                return self._back(self.path)
            raise NotMangled

    def _kind(self) -> str:
        self._steps += 1  # references back may repeat a part many times
        if self._steps > _MOST_STEPS:
            raise NotMangled
        return self.next()

    def _impl(self) -> None:
        self._disambiguator()
        self.path()

    def _nested(self) -> str:
        space = self.next()
        scope = self.path()
        number = self._disambiguator()
        found = self._identifier()
        if space.isupper():
            text = {"C": "closure", "S": "shim"}.get(space, space)
            return f"{scope}::{{{text}{f':{found}' if found else ''}#{number}}}"
        return self._bounded(f"{scope}::{found}" if found else scope)

    def _bounded(self, text: str) -> str:
        if len(text) > self.longest:
            raise NotMangled
        return text

    def _back(self, what: Callable[[], T]) -> T:
        target = self._base62()
        begin = self.at
        if target >= begin - 2:
            raise NotMangled
        self.at = target
        found = what()
        self.at = begin
        return found

    def _base62(self) -> int:
        value = 0
        for count in range(12):
            digit = self.next()
            if digit == "_":
                return value + 1 if count else 0
            number = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".find(digit)
            if number < 0:
                raise NotMangled
            value = value * 62 + number
        raise NotMangled

    def _disambiguator(self) -> int:
        return self._base62() + 1 if self.take("s") else 0

    def _identifier(self) -> str:
        is_unicode = self.take("u")
        size = 0 if self.take("0") else self.number()
        self.take("_")
        found = self.take_many(size) if size else ""
        return _punycode(found) if is_unicode else found

    def _generic(self) -> None:
        with self:
            if self.take("L"):
                self._base62()
            elif self.take("K"):
                self._constant()
            else:
                self.type()

    def _constant(self) -> None:
        with self:
            kind = self._kind()
            if kind == "B":
                self._back(self._constant)
            elif kind != "p":
                if kind not in _BASIC:
                    raise NotMangled
                while self.peek() not in ("_", ""):
                    self.at += 1
                self.expect("_")

    def type(self) -> str:
        with self:
            kind = self._kind()
            if kind in _BASIC:
                return _BASIC[kind]
            return self._bounded(self._type(kind))

    def _type(self, kind: str) -> str:
        if kind in "RQ":
            if self.take("L"):
                self._base62()
            return ("&" if kind == "R" else "&mut ") + self.type()
        if kind in "PO":
            return ("*const " if kind == "P" else "*mut ") + self.type()
        if kind in "AS":
            found = f"[{self.type()}]"
            if kind == "A":
                self._constant()
            return found
        if kind == "T":
            parts = []
            while not self.take("E"):
                parts.append(self.type())
            return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
        if kind == "F":
            return self._function()
        if kind == "D":
            return self._dynamic()
        if kind == "B":
            return self._back(self.type)
        self.at -= 1
        return self.path()

    def _function(self) -> str:
        if self.take("G"):
            self._base62()
        self.take("U")
        if self.take("K") and not self.take("C"):
            self._identifier()
        parts = []
        while not self.take("E"):
            parts.append(self.type())
        result = self.type()
        return f"fn({', '.join(parts)})" + (f" -> {result}" if result != "()" else "")

    def _dynamic(self) -> str:
        if self.take("G"):
            self._base62()
        parts = []
        while not self.take("E"):
            parts.append(self.path())
            while self.take("p"):
                self._identifier()
                self.type()
        if self.take("L"):
            self._base62()
        return f"dyn {' + '.join(parts)}"


def _punycode(text: str) -> str:
    basic, _, rest = text.rpartition("_")
    try:
        return f"{basic}-{rest}".lstrip("-").encode("ascii").decode("punycode")
    except UnicodeError:
        return text
