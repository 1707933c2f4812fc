r"""Values that were hidden once, wherever else they stand: as they are, escaped for a URL, JSON or mountinfo, and in UTF-16.

A value that anything else may be called by is left alone: `root`, `8080`, the name of a process, a path. A short one counts only
as a word of its own.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus, unquote

from opskit.secret_names import is_file
from opskit.words import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

_SHORTEST, _ANYWHERE, _DIGITS = 4, 8, 6  # characters; from _ANYWHERE on also within a word
_LONGEST = 200  # a longer value is found by its beginning
_LOOKED_FOR = 40  # of a longer value
_LEAST_CUT = 4
_LINE = 16  # so long are the lines of a value that are looked for by themselves

_COMMON = frozenset({
    "root", "admin", "administrator", "user", "username", "guest", "test", "tests", "java", "main", "true", "false", "none",
    "null", "default", "password", "passwd", "secret", "secrets", "token", "tokens", "changeit", "changeme", "postgres",
    "postgresql", "mysql", "mariadb", "redis", "kafka", "elastic", "elasticsearch", "mongo", "mongodb", "rabbitmq", "oracle",
    "public", "private", "localhost", "prod", "production", "staging", "stage", "development", "live", "data", "name", "value",
    "bearer", "basic", "digest", "negotiate", "plain", "oauth", "oauth2", "ldap", "kerberos", "simple", "local", "server",
    "client", "service", "system", "daemon", "nobody", "string", "text", "json", "http", "https", "file", "info", "debug",
    "warn", "error", "trace", "sample", "example", "demo", "auto", "enabled", "disabled", "required", "optional", "always",
    "never", "node", "master", "worker", "proxy", "shop", "home", "tomcat", "jetty", "spring", "nginx", "apache", "docker",
    "containerd", "kubernetes", "systemd", "python", "bash", "curl", "opskit", "session", "cookie", "authorization",
})  # fmt: skip
_OPTION = re.compile(r"-{1,2}[A-Za-z][\w.\-]*(?:=.*)?", re.DOTALL)
_IDENTITY = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-f]{12,128}")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]*(?:[.\-/:][A-Za-z_$][\w$]*)+")
_MIXED = re.compile(r"(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z]).*")
_SPECIAL = re.compile(r"[!@#$%^&*+=?~|]")
_SIMPLE = re.compile(r"[A-Za-z0-9._:/\-]*")
_WORD = re.compile(rb"[A-Za-z0-9_]")
_RUN = re.compile(rb"[A-Za-z0-9\x80-\xff]{4,}")
_SLICE = 1 << 20
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b"}


def inner_value(value: str) -> str:
    """A value without the quotes or braces around it."""
    for first, last in (('"', '"'), ("'", "'"), ("{", "}")):
        if len(value) > 1 and value[0] == first and value[-1] == last:
            return value[1:-1]
    return value.strip("\"'")


def unescaped(value: str) -> str:
    """A value without the escapes of a URL, or those of JSON, Java's properties and shells."""
    if "%" in value:
        value = unquote(value, errors="surrogateescape")
    if "\\" in value:
        plain = _ESCAPE.sub(_character, value).encode("utf-16-le", "surrogatepass")
        value = plain.decode("utf-16-le", "surrogatepass")  # which joins the halves of pairs
    return value if is_encodable(value) else ""


def is_encodable(value: str) -> bool:
    """Whether a text has no half of a surrogate pair."""
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _character(found: re.Match[str]) -> str:
    return (
        chr(int(found[1], 16)) if found[1] else _CONTROLS.get(found[2], found[2])
    )  # a number: four hexadecimal digits


def is_telling(value: str, is_sure: bool, used: Collection[str]) -> bool:
    """Whether a hidden value is hidden elsewhere, too. `is_sure`: its place says that it is a secret; `used`: names of the machine."""
    if len(value) < _SHORTEST or HIDDEN in value or value.lower() in _COMMON:
        return False
    if value in used and not (len(value) >= _ANYWHERE and _MIXED.fullmatch(value)):
        return False
    if _OPTION.fullmatch(value) or is_file(value) or not value.strip("*"):
        return False
    if value.isdecimal() and len(value) < _DIGITS:
        return False
    return is_sure or _is_random(value)


def _is_random(value: str) -> bool:
    """Whether a value looks like a password or key, and not like a name, number, address or identity."""
    if not 8 <= len(value) <= 4096 or _IDENTITY.fullmatch(value) or _IDENTIFIER.fullmatch(value) or "://" in value:
        return False
    digits, upper, lower = (sum(map(kind, value)) for kind in (str.isdigit, str.isupper, str.islower))
    if _SIMPLE.fullmatch(value):
        return digits > 1 and upper > 1 and lower > 1 and len(value) > 9
    return bool(_SPECIAL.search(value)) and digits > 0 and upper + lower > 2 and not re.search(r"\s-|=", value)


class KnownValues:
    """Values in all their forms. Only those that `look_for` found are replaced."""

    def __init__(self, values: Iterable[str]) -> None:
        self._long: dict[bytes, bytes] = {}  # the beginning of a long form -> the form
        self._star: dict[bytes, bytes] = {}  # what stands for a character of a form in UTF-16
        self._bounded: set[bytes] = set()
        self.starts: set[bytes] = set()  # what the 15 bytes of a thread's name may hold of a value
        self._spread: set[bytes] = set()
        self._numbers: set[bytes] = set()
        for value in values:
            is_number = value.isdecimal()
            is_bounded = len(value) < _ANYWHERE or is_number
            for form in _forms(value):
                kept = self._beginning(form)
                (self._numbers if is_number else self._spread).add(kept)
                if is_bounded:
                    self._bounded.add(kept)
                if len(form) > 15:
                    self.starts.add(form[:15])
            for encoding, star in (("utf-16-le", b"*\0"), ("utf-16-be", b"\0*")):
                kept = self._beginning(value.encode(encoding, "surrogatepass"))
                self._star[kept] = star
                if is_bounded:
                    self._bounded.add(kept)
        self._runs: set[bytes] = set()
        self._odd: tuple[bytes, ...] = ()
        self._texts: re.Pattern[bytes] | None = None
        self._all: re.Pattern[bytes] | None = None
        self._binary: re.Pattern[bytes] | None = None

    def look_for(self, runs: set[bytes]) -> None:
        """Look which values stand in the texts whose runs of letters and digits these are (`add_runs`)."""
        pieces: dict[bytes, list[bytes]] = {}
        odd: set[bytes] = set()  # without such a run
        for form in (*self._spread, *self._numbers, *self._star):
            piece = max(_RUN.findall(form.replace(b"\0", b"") if form in self._star else form), key=len, default=b"")
            if piece:
                pieces.setdefault(piece, []).append(form)
            else:
                odd.add(form)
        grams = {piece[:_SHORTEST] for piece in pieces}
        self._runs = (
            {run for run in runs if any(run[at : at + _SHORTEST] in grams for at in range(len(run) - 3))}
            if grams
            else set()
        )
        held = b"\n".join(self._runs)
        found = [piece for piece in pieces if piece in held]
        self._runs = {run for run in self._runs if any(piece in run for piece in found)} if found else set()
        present = {form for piece in found for form in pieces[piece]}
        self._odd = tuple(odd)
        texts = (self._spread & present) | (self._spread & odd)
        numbers = self._numbers & present
        self._texts, self._all = _any_of(texts), _any_of(texts | numbers)
        self._binary = _any_of(texts | numbers | (self._star.keys() & (present | odd)))

    @property
    def is_found(self) -> bool:
        """Whether any value may stand anywhere."""
        return bool(self._runs or self._odd)

    def in_text(self, data: bytes, *, numbers: bool = False) -> tuple[bytes, int]:
        """(the text with `…`, how many were hidden). `numbers`: also values of digits alone, where no counter may be meant."""
        return (
            self._replaced(self._all if numbers else self._texts, data, HIDDEN.encode())
            if self._may_be_in(data)
            else (data, 0)
        )

    def in_binary(self, data: bytes) -> tuple[bytes, int]:
        """The same at equal length, with `*`; in UTF-16, too."""
        is_in = self.is_found and self._may_be_in(data.translate(None, b"\0"), data)
        return self._replaced(self._binary, data, None) if is_in else (data, 0)

    def _may_be_in(self, data: bytes, whole: bytes | None = None) -> bool:
        """Whether a value stands in some data; `whole`: with its NULs."""
        if self._runs and not self._runs.isdisjoint(_RUN.findall(data)):
            return True
        return any(form in (whole or data) for form in self._odd)

    def cut_at_end(self, data: bytes) -> int:
        """How many bytes at the end of a cut text are the beginning of a value."""
        for form in self._spread:
            at = data.rfind(form[:_LEAST_CUT], -len(form)) if len(form) > _LEAST_CUT else -1
            if at >= 0 and self._long.get(form, form).startswith(data[at:]):
                return len(data) - at
        return 0

    def _beginning(self, form: bytes) -> bytes:
        if len(form) <= _LONGEST:
            return form
        beginning = form[:_LOOKED_FOR]
        self._long[beginning] = max(form, self._long.get(beginning, b""), key=len)
        return beginning

    def _replaced(self, any_of: re.Pattern[bytes] | None, data: bytes, instead: bytes | None) -> tuple[bytes, int]:
        parts: list[bytes] = []
        at = done = 0
        while found := any_of.search(data, at) if any_of else None:
            start, end = found.span()
            form = found[0]
            at = start + 1
            if form in self._bounded and _is_within_word(data, start, end):
                continue
            if whole := self._long.get(form):
                end = start + _common(data, start, whole)
            parts += (data[done:start], _stars(self._star.get(form, b"*"), end - start) if instead is None else instead)
            at = done = end
        return (b"".join((*parts, data[done:])), len(parts) // 2) if parts else (data, 0)


def add_runs(runs: set[bytes], data: bytes) -> None:
    """Add the runs of letters and digits in some data, with NULs left out: ASCII in UTF-16 is ASCII then."""
    if len(data) < _SLICE and b"\0" not in data:
        runs.update(_RUN.findall(data))
        return
    for at in range(0, len(data), _SLICE):
        piece = data[max(at - _LONGEST, 0) : at + _SLICE]
        runs.update(_RUN.findall(piece))
        if b"\0" in piece:
            runs.update(_RUN.findall(piece.translate(None, b"\0")))


def _stars(star: bytes, size: int) -> bytes:
    return (star * size)[:size]


def _is_within_word(data: bytes, start: int, end: int) -> bool:
    """Whether a letter or digit stands beside a place; not where it ends a percent escape: `%3Dhunter2`."""
    is_escape = data[max(start - 3, 0) : max(start - 2, 0)] == b"%"
    return bool(_WORD.match(data, end)) or (start > 0 and bool(_WORD.match(data, start - 1)) and not is_escape)


def _common(data: bytes, start: int, form: bytes) -> int:
    """How many bytes of a form stand at a place."""
    step, done = 4096, 0
    while done < len(form) and data[start + done : start + done + step] == form[done : done + step]:
        done += step
    rest = zip(data[start + done : start + done + step], form[done : done + step])
    return min(
        done + next((place for place, (one, other) in enumerate(rest) if one != other), step),
        len(form),
        len(data) - start,
    )


def _forms(value: str) -> set[bytes]:
    """A value in every form that one byte a character has."""
    raw = encoded(value)
    texts = {value, quote(raw, safe=""), quote(raw), quote_plus(raw)}
    for plain in (True, False):
        texts.add(json.dumps(value, ensure_ascii=plain)[1:-1])
    if not value.isascii():  # Java's properties
        texts.add(re.sub(r"\\u....", lambda found: rf"\u{found[0][2:].upper()}", json.dumps(value)[1:-1]))
    texts.add(re.sub(r"([\\:=#! ])", r"\\\1", value))  # Java's properties
    texts.add(re.sub(r"[ \t\n\\]", lambda found: f"\\{ord(found[0]):03o}", value))  # the kernel's paths
    texts.add(value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
    texts |= {line for line in value.split("\n") if len(line) >= _LINE}
    forms = {encoded(text) for text in texts if text}
    try:
        forms.add(value.encode("latin-1"))
    except UnicodeEncodeError:
        pass
    if len(value) >= _ANYWHERE:
        forms.update(_base64_forms(raw))
    return forms


def _base64_forms(raw: bytes) -> Iterator[bytes]:
    """What base64 makes of a value at each of three offsets, without the characters that its neighbours share."""
    for offset in range(3):
        coded = base64.b64encode(b"\0" * offset + raw)
        first = (0, 2, 3)[offset]
        last = len(coded) - (0, 4, 4)[(len(raw) + offset) % 3] if (len(raw) + offset) % 3 else len(coded)
        if last - first >= 10:
            yield coded[first:last]
            if b"+" in coded or b"/" in coded:
                yield coded[first:last].translate(bytes.maketrans(b"+/", b"-_"))


def decoded(data: bytes) -> str:
    """Bytes of a tape as text; what is not UTF-8 becomes surrogates."""
    return data.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    """The bytes again."""
    return text.encode("utf-8", "surrogateescape")


def _any_of(literals: set[bytes]) -> re.Pattern[bytes] | None:
    """One expression for many literals, the longest first; grouped by their beginnings, as each group is skipped at once."""
    return re.compile(_grouped(sorted(literals), 0), re.DOTALL) if literals else None


def _grouped(literals: list[bytes], depth: int) -> bytes:
    """Literals, sorted, with `depth` bytes in common that are left out."""
    if len(literals) == 1 or depth > 2:
        return b"|".join(re.escape(each[depth:]) for each in sorted(literals, key=len, reverse=True))
    groups: dict[bytes, list[bytes]] = {}
    for each in literals:
        groups.setdefault(each[depth : depth + 1], []).append(each)
    return b"|".join(
        re.escape(first) + b"(?:" + _grouped(group, depth + 1) + b")"
        for first, group in sorted(groups.items(), reverse=True)
    )
