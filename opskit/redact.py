"""Secrets in command lines, environments, properties and URLs: names are kept, values are replaced by `…`.

-Ddb.password=x  --api-key x  --token=x  -p x  -u user:x  DB_SECRET=x  https://user:x@host  jdbc:…;password=x  Bearer x
password = x  <password>x</password>  IDENTIFIED BY 'x'  ?sig=x  -----BEGIN PRIVATE KEY-----x  mysql -px

A value with blanks has no end in one line of text: there, a secret of an option reaches to the next option. Each text is
read a bounded number of times.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opskit.program_options import glued_secret, habits_at, login_parts, programs_in, user_parts
from opskit.secret_names import LONGEST_NAME, is_file, is_plain, is_secret
from opskit.words import HIDDEN, is_java_launcher, launcher_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.program_options import Habits

# What is hidden, for those who count it.
VARIABLES, OPTIONS, PROPERTIES, URLS, TOKENS, TEXTS = KINDS = (
    "variables", "options", "properties", "urls", "tokens", "texts",
)  # fmt: skip
_SHORTEST_TOKEN = 14  # xox…-

_OPTION = re.compile(r"(-{1,2}[^\s=:]+)([=:])(.*)", re.DOTALL)
_NEXT_OPTION = re.compile(r"--(?:[A-Za-z][\w\-]*(?:=.*)?)?", re.DOTALL)  # `mongod --auth --port 1`: no value of --auth
_ASSIGNMENT = re.compile(r"([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
_AGENT = re.compile(r"(-javaagent|-agentlib|-agentpath|-Xbootclasspath[^:]*):")
_BARE_KEY = re.compile(r"[A-Za-z0-9+/_\-]{20,}=*")  # an agent's only option
# `-p`: the module path of `java`; a port, unless a user is named; else a password.
_SHORT_WITH_SECRET, _USER = "-p", frozenset({"-u", "--user", "-U", "--proxy-user", "--login"})
_USER_AND_PASSWORD = re.compile(  # 1000:1000 is a group, and `beeline -u jdbc:hive2://host` a URL
    r"(?![0-9]+:[0-9]+\Z|jdbc:|[a-z]{1,12}://)([^:]*):(.*)", re.DOTALL
)
_HEADER = re.compile(
    r"((?:--header=|-H)?([\w\-]+) ?: ?(?:(?i:(?<=authorization: )|(?<=authorization:))[\w\-]+ +)?)(.+)", re.DOTALL
)
_HEADER_OPTIONS = frozenset({"-H", "--header", "--proxy-header"})
# Words before a secret: `mysqladmin password x`.  `config set NAME x` is another way.
_SAY_SECRET = frozenset({"password", "passwd", "passphrase", "requirepass", "masterauth"})
_GLUED_USER = re.compile(r"(-[uU](?![0-9]+:[0-9]+\Z)[\w.@\-]{1,64}):(.+)", re.DOTALL)  # curl -uadmin:x
_LOGIN = re.compile(
    r"(?<![\w:/@.\-])([\w.\-]{1,64}):([^\s:/@'\"]{1,256})@(?=[\w(\[])(?!sha256:)"
)  # of a URL without its scheme
_PORT = re.compile(r"[1-9][0-9]{0,4}(?::[0-9]{1,5})?")
_QUOTES = ("'", '"')
_NAMES_USER = re.compile(r"-u|--user(?:name)?(?:=.*)?", re.DOTALL)

# In any text. No two parts of an expression match the same character, so that each text is read once.
_VALUE = r"""("(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|(?:\{[^}\n]*\}?|\[[^\]\n]*\]?)[^\s;&,"'}\])]*|[^\s;&,"'{\[][^\s;&,"']*)"""
_NAME = re.compile(rf"(?<![\w.\-])([\w.\-]{{1,{LONGEST_NAME}}})(?:\\?[\"'])?(?:=|%3[dD]|:(?!:) ?| (?:=>?|:) )")
_NAMED_VALUE = re.compile(_VALUE)
_ESCAPED_VALUE = re.compile(r'\\"((?:[^"\\\n]|\\(?!"))*)')  # JSON in JSON
_PAIR = re.compile(  # {"name":"DB_PASSWORD","value":"x"}, <property name="password" value="x"/>
    rf"""(\b(?:name|key)\\?["']?\s{{0,3}}[:=]\s{{0,3}}\\?["']([\w.\-]{{1,{LONGEST_NAME}}})\\?["'],?\s{{0,20}}\\?["']?value\\?["']?\s{{0,3}}[:=]\s{{0,3}}\\?["'])([^"'\\\n]+)""",
    re.IGNORECASE,
)
_SIGNATURES = frozenset({"sig", "signature", "x-amz-signature", "x-goog-signature"})  # of a URL's query
_COOKIE = re.compile(r"\b((?:set-)?cookie: ?)([^\n\"']+)", re.IGNORECASE)
_ELEMENT = re.compile(rf"<([\w.:\-]{{1,{LONGEST_NAME}}})>([^<\n]+)")
_QUOTED = re.compile(  # SQL
    r"""\b((?:IDENTIFIED (?:WITH [\w.]{1,64} )?BY|PASSWORD)(?: ?\( ?| ))('[^'\n]*'?|"[^"\n]*"?)""", re.IGNORECASE
)
_PROSE = re.compile(
    r"\b((?:password|passwd|passphrase|secret|token) (?:is|was) )([\"']?)(?=[^\s\"']{0,64}[0-9])([^\s\"']{4,})",
    re.IGNORECASE,
)
_PRIVATE_KEY = re.compile(r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)([^-]+)")
_AUTHORIZATION = re.compile(
    r"\b(authorization[\"']?: ?(?!Bearer|Basic|Digest|Negotiate)[A-Za-z0-9\-]{1,40} {1,4})([^\s\"']+)", re.IGNORECASE
)
_PATH = re.compile(r"[\s/?#@]")
_KEY_OF_URL = re.compile(r"([A-Za-z0-9_\-]{16,})(?::|:x-oauth-basic)?@")
_IN_URL = re.compile(r"""[^\s"'<>]*""")
_ORACLE = re.compile(r"(:(?:thin|oci8?):)([^\s/@]{1,128})/([^\s]{1,256})@")  # the last @
_SCHEME = re.compile(r"\b(Bearer|Basic|Digest|Negotiate) +([A-Za-z0-9._~+/][A-Za-z0-9._~+/=\-]{5,})", re.IGNORECASE)
_TOKENS = re.compile(
    r"(?<![A-Za-z0-9_\-])(?:eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]*|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|xox[abprs]-[A-Za-z0-9\-]{10,}|xapp-[A-Za-z0-9\-]{10,}"
    r"|gl(?:pat|rt|dt|ptt|ft|soat|agent|cbt)-[A-Za-z0-9_\-]{16,}|sk-[A-Za-z0-9_\-]{20,}|[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|npm_[A-Za-z0-9]{36}|AIza[A-Za-z0-9_\-]{35}"
    r"|ya29\.[A-Za-z0-9_\-]{10,}|hv[bs]\.[A-Za-z0-9_\-]{20,}|SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}|do[opr]_v1_[0-9a-f]{20,}"
    r"|pypi-[A-Za-z0-9_\-]{20,}|dapi[0-9a-f]{32}|(?<=hooks\.slack\.com/services/)[A-Za-z0-9/]{20,}"
    r"|(?<=/api/webhooks/)[0-9]{15,20}/[A-Za-z0-9_\-]{40,}|GOCSPX-[A-Za-z0-9_\-]{20,}|dckr_pat_[A-Za-z0-9_\-]{20,}|hf_[A-Za-z0-9]{30,}"
    r"|ATATT3[A-Za-z0-9_\-=]{20,}|shp(?:at|ca|pa|ss)_[0-9a-f]{32}|[sb]\.(?=[A-Za-z]{0,23}[0-9])[A-Za-z0-9]{24}(?![A-Za-z0-9_.]))"
    r"|(?<=/bot)[0-9]{6,12}:[A-Za-z0-9_\-]{30,}"
)

# Variables whose values say how a program runs, and hold no secret but in options, which are redacted. Every other is hidden.
_SHOWN = frozenset({
    "PATH", "HOME", "PWD", "SHELL", "USER", "LOGNAME", "USERNAME", "HOSTNAME", "TERM", "TZ", "TZDIR", "DISPLAY", "SHLVL", "TMPDIR", "TMP",
    "TEMP", "OS", "PROCESSOR_IDENTIFIER", "PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS", "OSTYPE", "HOSTTYPE", "MACHTYPE", "ARCH",
    "LANG", "LANGUAGE", "JAVA_HOME", "JRE_HOME", "JDK_HOME", "JAVA_VERSION", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS", "_JAVA_SR_SIGNUM", "_ALT_JAVA_HOME_DIR", "JAVA_OPTS", "JAVA_OPTIONS", "CATALINA_OPTS", "CATALINA_HOME",
    "CATALINA_BASE", "MAVEN_OPTS", "GRADLE_OPTS", "OPENJ9_JAVA_OPTIONS", "IBM_JAVA_OPTIONS", "CLASSPATH", "LD_LIBRARY_PATH",
    "LD_PRELOAD", "LD_BIND_NOW", "LIBPATH", "SHLIB_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH",
    "DYLD_FRAMEWORK_PATH", "DYLD_INSERT_LIBRARIES", "GLIBC_TUNABLES", "OMP_NUM_THREADS", "container", "INVOCATION_ID",
    "JAVA_MAIN_CLASS", "UV_THREADPOOL_SIZE", "FAKETIME", "DATEFUDGE", "GOMAXPROCS", "GOMEMLIMIT", "GOGC", "GODEBUG", "NODE_OPTIONS",
})  # fmt: skip
_SHOWN_PREFIXES = ("LC_", "MALLOC_", "XDG_", "SUDO_UID", "SUDO_GID", "IRQBALANCE_")


class Hider:
    """What stands for a hidden value. Another one may count or keep what is hidden, or keep its length."""

    mark = HIDDEN  # with which what it gives ends

    def hide(self, kind: str, value: str) -> str:  # noqa: ARG002
        """What stands for a value of one of KINDS."""
        return HIDDEN

    def tail(self, value: str) -> str:  # noqa: ARG002
        """What stands for more words of the value that was hidden last."""
        return ""

    # values and texts

    def value(self, name: str, value: str, kind: str = PROPERTIES) -> str:
        """The value of a property or option; hidden if its name says that it is a secret."""
        return self.hide(kind, value) if is_secret(name) and not is_plain(name, value) else self.text(value)

    def text(self, text: str) -> str:
        """Any text, such as a message: credentials in URLs, `name=value` and `name: value` of secrets, known forms of tokens."""
        if ":" in text:
            first, *pieces = text.split("://")
            text = "://".join([first, *map(self._without_password, pieces)])
            text = _ORACLE.sub(lambda found: f"{found[1]}{found[2]}/{self.hide(URLS, found[3])}@", text)
            text = _AUTHORIZATION.sub(lambda found: found[1] + self.hide(TOKENS, found[2]), text)
            text = _COOKIE.sub(lambda found: found[1] + self.hide(TOKENS, found[2]), text)
        if "<" in text:
            text = _ELEMENT.sub(self._element, text)
        if "value" in text:
            text = _PAIR.sub(self._pair, text)
        if "-----BEGIN" in text:
            text = _PRIVATE_KEY.sub(lambda found: found[1] + self.hide(TOKENS, found[2]), text)
        if " " in text:
            text = _QUOTED.sub(lambda found: found[1] + self.hide(TEXTS, found[2]), text)
            text = _SCHEME.sub(lambda found: f"{found[1]} {self.hide(TOKENS, found[2])}", text)
            text = _PROSE.sub(lambda found: found[1] + found[2] + self.hide(TEXTS, found[3]), text)
        text = _TOKENS.sub(lambda found: self.hide(TOKENS, found[0]), text)
        return self._without_named(text)

    def _element(self, found: re.Match[str]) -> str:
        """An XML element with its text."""
        return f"<{found[1]}>{self.hide(TEXTS, found[2])}" if is_secret(found[1]) else found[0]

    def _pair(self, found: re.Match[str]) -> str:
        """A name and a value, each after a word that says so."""
        is_hidden = is_secret(found[2]) and not is_plain(found[2], found[3])
        return found[1] + self.hide(TEXTS, found[3]) if is_hidden else found[0]

    def _without_password(self, piece: str) -> str:
        """What follows `://`: the password between a user's name and the last @, which may have a slash or an @ of its own."""
        if key := _KEY_OF_URL.match(piece):
            return self.hide(URLS, key[1]) + piece[key.end(1) :]
        user, colon, rest = piece.partition(":")
        found = _IN_URL.match(rest)
        at = rest.rfind("@", 0, found.end()) if found and colon else -1
        return piece if at < 1 or _PATH.search(user) else f"{user}:{self.hide(URLS, rest[:at])}{rest[at:]}"

    def _without_named(self, text: str) -> str:
        """Hide the values of secret names. What follows another name may be a name itself: `login failed: password=x`."""
        parts, at = [], 0
        while found := _NAME.search(text, at):
            parts.append(text[at : found.end()])
            at = found.end()
            is_hidden = is_secret(found[1]) or (
                found[1].lower() in _SIGNATURES and text[found.start() - 1 : found.start()] in ("?", "&")
            )
            value = (_ESCAPED_VALUE.match(text, at) or _NAMED_VALUE.match(text, at)) if is_hidden else None
            if value is not None and not is_plain(found[1], value[1]) and value[1].rstrip("}])>") != HIDDEN:
                parts.append(text[at : value.start(1)] + self.hide(TEXTS, value[1]))
                at = value.end()
        return "".join((*parts, text[at:]))

    # command lines

    def words(self, words: Sequence[str]) -> list[str]:
        """The words of a command line."""
        hidden = []
        look = _Line(words)
        for place, word in enumerate(words):
            hidden.append(self._after(look, place, word) or self._word(word))
        return hidden

    def line(self, text: str, *, is_quoted: bool = False) -> str:
        """A command line in one line, its words separated by blanks; a secret with blanks ends where the next option begins.

        `is_quoted`: blanks in a value are quoted.
        """
        return self.text(" ".join(self._line_words(text.split(" "), is_quoted)))

    def _after(self, look: _Line, place: int, word: str) -> str | None:
        """A word that the option before it, or the program, makes a secret; None: it makes none."""
        before = look.words[place - 1] if place else ""
        if look.programs and (shown := self._of_program(habits_at(look.programs, place), before, word)) is not None:
            return shown
        if before == _SHORT_WITH_SECRET:
            return None if look.is_plain_short(place) or _NEXT_OPTION.fullmatch(word) else self.hide(OPTIONS, word)
        if before in _USER and (user := _USER_AND_PASSWORD.fullmatch(word)):
            return f"{user[1]}:{self.hide(OPTIONS, user[2])}"
        if (before in _HEADER_OPTIONS or word[:2] == "-H" or word[:9] == "--header=") and (
            found := _HEADER.fullmatch(word)
        ):
            return found[1] + self.hide(TOKENS, found[3]) if is_secret(found[2]) else None
        if before[:1] != "-":
            is_hidden = place > 1 and (before in _SAY_SECRET or (look.words[place - 2] == "set" and is_secret(before)))
        else:
            is_hidden = before[:2] != "-X" and "=" not in before and ":" not in before and is_secret(before)
        return (
            self.hide(OPTIONS, word)
            if is_hidden and not is_plain(before, word) and not _NEXT_OPTION.fullmatch(word)
            else None
        )

    def _of_program(self, habits: Habits, before: str, word: str) -> str | None:
        """A word that its program makes a secret."""
        if option := glued_secret(habits, word):
            return option + self.hide(OPTIONS, word[len(option) :])
        if habits.login and (parts := login_parts(word)):
            return f"{parts[0]}/{self.hide(OPTIONS, parts[1])}{parts[2]}"
        if before in habits.secret:
            return self.hide(OPTIONS, word)
        if before in habits.user and (user := user_parts(word)):
            return user[0] + self.hide(OPTIONS, user[1])
        name, _, value = word.removeprefix("--env=").partition("=")
        if habits.variables and value and (before in habits.variables or word.startswith("--env=")):
            return word[: -len(value)] + self.variable(name, value)
        return None

    def _word(self, word: str) -> str:
        """One word by itself."""
        if len(word) < _SHORTEST_TOKEN and "=" not in word and ":" not in word and " " not in word:
            return word
        if word[:5] == "pass:":  # openssl -passin pass:x
            return f"pass:{self.hide(OPTIONS, word[5:])}"
        if _AGENT.match(word):
            path, equals, options = word.partition("=")
            return path + equals + (self.hide(OPTIONS, options) if _BARE_KEY.fullmatch(options) else self.text(options))
        if (user := _GLUED_USER.fullmatch(word)) and "//" not in word:
            return f"{user[1]}:{self.hide(OPTIONS, user[2])}"
        option = None if word.startswith("-X") else _OPTION.fullmatch(word) or None
        if option is not None:
            if option[1] in _USER and (user := _USER_AND_PASSWORD.fullmatch(option[3])):
                return f"{option[1]}{option[2]}{user[1]}:{self.hide(OPTIONS, user[2])}"
            is_property = option[1].startswith("-D")
            name, kind = (option[1][2:], PROPERTIES) if is_property else (option[1], OPTIONS)
            return option[1] + option[2] + self._value(name, option[3], kind)
        assignment = _ASSIGNMENT.fullmatch(word)
        if assignment is not None:
            return f"{assignment[1]}={self._value(assignment[1], assignment[2], VARIABLES)}"
        return self._login(self.script(word))

    def _value(self, name: str, value: str, kind: str) -> str:
        if is_secret(name) and not is_plain(name, value):
            return self.hide(kind, value)
        inner = _ASSIGNMENT.fullmatch(value) if "=" in value else None  # --env=DB_PASSWORD=x
        if inner and is_secret(inner[1]) and not is_plain(inner[1], inner[2]):
            return f"{inner[1]}={self.hide(kind, inner[2])}"
        return self._login(self.script(value))

    def _login(self, text: str) -> str:
        """A word with `user:password@host`, which no scheme precedes."""
        if "@" not in text or "://" in text:
            return text
        return _LOGIN.sub(lambda found: f"{found[1]}:{self.hide(URLS, found[2])}@", text)

    def script(self, text: str) -> str:
        """A text, or a command line within a word: `sh -c 'tool --password x'`."""
        if " -" not in text and not (text[:1] == "-" and " " in text):
            return self.text(text)
        if "-----BEGIN" in text:  # which has lines
            text = _PRIVATE_KEY.sub(lambda found: found[1] + self.hide(TOKENS, found[2]), text)
        return "\n".join([self.line(each, is_quoted=True) for each in text.split("\n")])

    def _line_words(self, words: Sequence[str], is_quoted: bool) -> Iterator[str]:
        look = _Line(words)
        place = 0
        while place < len(words):
            word = words[place]
            place += 1
            shown = word and self._after(look, place - 1, word)
            value = word
            if not shown:
                shown = word and self._word(word)
                option = _OPTION.match(word) if word[:1] == "-" else None
                value = option[3] if option else word if word[:1] in _QUOTES else ""
            end = place
            if word and shown.endswith(self.mark):
                end = _end_of_value(words, place, value, reaches=word.startswith("-D") and not is_quoted)
            yield shown + (self.tail(" ".join(("", *words[place:end]))) if end > place else "")
            place = end

    # environments

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """An environment: the values of well-known names are kept, every other is hidden."""
        return {name: self.variable(name, value) for name, value in variables.items()}

    def variable(self, name: str, value: str) -> str:
        """The value of a variable of an environment."""
        if not value or (name not in _SHOWN and (not name.startswith(_SHOWN_PREFIXES) or is_secret(name))):
            return value and self.hide(VARIABLES, value)
        if name == "JDK_JAVA_OPTIONS":  # read by the launcher, whose -p is the module path
            return self.line(f"java {value}").removeprefix("java ")
        return self.line(value)

    def cmdline(self, data: bytes) -> bytes:
        r"""Words that each end with NUL, as in /proc/PID/cmdline."""
        return _nul_separated(self.words(_words(data)), data)

    def environ(self, data: bytes) -> bytes:
        r"""NAME=value entries that each end with NUL, as in /proc/PID/environ."""
        entries = (entry.partition("=") for entry in _words(data))
        return _nul_separated([f"{name}{equals}{self.variable(name, value)}" for name, equals, value in entries], data)


class _Line:
    """The words of a command line, with what its program makes of them."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words, self.programs = words, programs_in(words)
        self._options = launcher_options(words)[1] if is_java_launcher(words) else 0
        self._has_user = any(map(_NAMES_USER.fullmatch, words))

    def is_plain_short(self, place: int) -> bool:
        """Whether the word at a place, the value of a `-p`, is no password."""
        word = self.words[place]
        if place < self._options or habits_at(self.programs, place).plain or is_file(word):
            return True
        return not self._has_user and bool(_PORT.fullmatch(word))


def _end_of_value(words: Sequence[str], place: int, value: str, *, reaches: bool) -> int:
    """Where a hidden value ends whose first word stands before `place`; `reaches`: to the next option."""
    while place < len(words) and words[place - 1].endswith("\\"):  # a\ b
        place += 1
    if value[:1] in _QUOTES and not (len(value) > 1 and value.endswith(value[0])):
        while place < len(words) and not words[place].endswith(value[0]):
            place += 1
        return min(place + 1, len(words))
    while reaches and place < len(words) and not words[place].startswith("-"):
        place += 1
    return place


def _words(data: bytes) -> list[str]:
    return data.removesuffix(b"\0").decode("utf-8", "surrogateescape").split("\0") if data else []


def _nul_separated(words: list[str], before: bytes) -> bytes:
    return "\0".join(words).encode("utf-8", "surrogateescape") + (b"\0" if before.endswith(b"\0") else b"")


class _Noting(Hider):
    """The one of all reports. While a capture is made it notes what it hides: values that stand in the memory of JVMs alone."""

    noted: set[str] | None = None

    def hide(self, kind: str, value: str) -> str:
        """Note a value, unless it is one of a variable, which may be no secret."""
        if self.noted is not None and kind != VARIABLES:
            self.noted.add(value)
        return HIDDEN


_DEFAULT = _Noting()


@contextmanager
def noting() -> Iterator[set[str]]:
    """The values that reports hide meanwhile."""
    noted: set[str] = set()
    _DEFAULT.noted = noted
    try:
        yield noted
    finally:
        _DEFAULT.noted = None


redact_value, redact_text, redact_words, redact_line = _DEFAULT.value, _DEFAULT.text, _DEFAULT.words, _DEFAULT.line
redact_environment, redact_cmdline, redact_environ = _DEFAULT.environment, _DEFAULT.cmdline, _DEFAULT.environ
