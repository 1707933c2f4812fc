"""Secrets in command lines, environments, properties and URLs: names are kept, values are replaced by `…`.

-Ddb.password=x  --api-key x  --token=x  -p x  -u user:x  DB_SECRET=x  https://user:x@host  jdbc:…;password=x  Bearer x
password = x  <password>x</password>  IDENTIFIED BY 'x'  ?sig=x  -----BEGIN PRIVATE KEY-----x

A value with blanks has no end in one line of text: there, a secret of an option reaches to the next option. Each text is
read a bounded number of times.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from opskit.words import HIDDEN, is_java_launcher, launcher_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

# A name is a secret's if it contains one of these, without regard to case and separators …
_MARKS = re.compile(
    r"passw|passphrase|passcode|secret|token|credential|authorization|connectionstring|sessionid$"
    r"|(?:api|access|private|signing|auth|master|crypt|encryption|shared|license|account|storage|ssh)key"
)
# … or has one of these as a word: `tls.key`, `keyPass`, `MYSQL_PWD`.
_WORDS = frozenset({"key", "keys", "pass", "pw", "pwd", "otp", "jwt", "dsn", "creds", "cred", "bearer"})
_ENDINGS = ("pass", "pwd", "psw", "pswd")  # -storepass, dbpwd
_NOT_ENDINGS = frozenset({"bypass", "compass", "encompass", "trespass", "surpass", "overpass", "underpass"})
_LAST_WORDS = frozenset({"auth", "pin", "salt", "sas", "cookie"})
_NOT_SECRET_OF_A_KEY = frozenset(
    {"store", "serializer", "deserializer", "alias", "type", "size", "length", "algorithm", "manager"}
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_LONGEST_NAME = 256
_SHORTEST_TOKEN = 14  # xox…-
_PLAIN_VALUES = frozenset({"", "true", "false", "null", "none"})

_OPTION = re.compile(r"(-{1,2}[^\s=:]+)([=:])(.*)", re.DOTALL)
_ASSIGNMENT = re.compile(r"([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)
_AGENT = re.compile(r"(-javaagent|-agentlib|-agentpath|-Xbootclasspath[^:]*):")
_BARE_KEY = re.compile(r"[A-Za-z0-9+/_\-]{20,}=*")  # an agent's only option
# `-p`: the module path of `java`; a port, unless a user is named; else a password.
_SHORT_WITH_SECRET, _USER = "-p", frozenset({"-u", "--user", "-U", "--proxy-user"})
_USER_AND_PASSWORD = re.compile(r"(?![0-9]+:[0-9]+\Z)([^:]*):.*", re.DOTALL)  # 1000:1000 is a group
_PORT = re.compile(r"[1-9][0-9]{0,4}(?::[0-9]{1,5})?")
_NAMES_USER = re.compile(r"-u|--user(?:name)?(?:=.*)?", re.DOTALL)

# In any text. No two parts of an expression match the same character, so that each text is read once.
_VALUE = r"""("[^"\n]*"?|'[^'\n]*'?|\{[^}\n]*\}?|[^\s;&,"'{]+)"""
_NAME = re.compile(rf"(?<![\w.\-])([\w.\-]{{1,{_LONGEST_NAME}}})[\"']?(?:=|%3[dD]|:(?!:) ?| (?:=>?|:) )")
_NAMED_VALUE = re.compile(_VALUE)
_SIGNATURES = frozenset({"sig", "signature", "x-amz-signature", "x-goog-signature"})  # of a URL's query
_ELEMENT = re.compile(rf"<([\w.:\-]{{1,{_LONGEST_NAME}}})>([^<\n]+)")
_QUOTED = re.compile(r"\b(IDENTIFIED BY|PASSWORD) ('[^'\n]*'?)", re.IGNORECASE)  # SQL
_PRIVATE_KEY = re.compile(r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)[^-]+")
_PATH = re.compile(r"[\s/?#@]")
_KEY_OF_URL = re.compile(r"[A-Za-z0-9_\-]{16,}@")
_IN_URL = re.compile(r"""[^\s"'<>]*""")
_ORACLE = re.compile(r"(:(?:thin|oci8?):)([^\s/@]{1,128})/([^\s@]{1,256})@")
_SCHEME = re.compile(r"\b(Bearer|Basic|Digest|Negotiate) +([A-Za-z0-9._~+/=\-]{6,})", re.IGNORECASE)
_TOKENS = re.compile(
    r"(?<![A-Za-z0-9_\-])(?:eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]*|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|xox[abprs]-[A-Za-z0-9\-]{10,}|xapp-[A-Za-z0-9\-]{10,}"
    r"|glpat-[A-Za-z0-9_\-]{16,}|sk-[A-Za-z0-9_\-]{20,}|[rs]k_(?:live|test)_[A-Za-z0-9]{10,}|npm_[A-Za-z0-9]{36}|AIza[A-Za-z0-9_\-]{35}"
    r"|ya29\.[A-Za-z0-9_\-]{10,}|hv[bs]\.[A-Za-z0-9_\-]{20,}|SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}|do[opr]_v1_[0-9a-f]{20,}"
    r"|pypi-[A-Za-z0-9_\-]{20,}|dapi[0-9a-f]{32})"
)

# Variables whose values say how a program runs, and hold no secret but in options, which are redacted. Every other is hidden.
_SHOWN = frozenset({
    "PATH", "HOME", "PWD", "SHELL", "USER", "LOGNAME", "USERNAME", "HOSTNAME", "TERM", "TZ", "DISPLAY", "SHLVL", "TMPDIR", "TMP",
    "TEMP", "OS", "PROCESSOR_IDENTIFIER", "PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS", "OSTYPE", "HOSTTYPE", "MACHTYPE", "ARCH",
    "LANG", "LANGUAGE", "JAVA_HOME", "JRE_HOME", "JDK_HOME", "JAVA_VERSION", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS", "_JAVA_SR_SIGNUM", "_ALT_JAVA_HOME_DIR", "JAVA_OPTS", "JAVA_OPTIONS", "CATALINA_OPTS", "CATALINA_HOME",
    "CATALINA_BASE", "MAVEN_OPTS", "GRADLE_OPTS", "OPENJ9_JAVA_OPTIONS", "IBM_JAVA_OPTIONS", "CLASSPATH", "LD_LIBRARY_PATH",
    "LD_PRELOAD", "LD_BIND_NOW", "LIBPATH", "SHLIB_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH",
    "DYLD_FRAMEWORK_PATH", "DYLD_INSERT_LIBRARIES", "GLIBC_TUNABLES", "OMP_NUM_THREADS", "container", "INVOCATION_ID",
    "JAVA_MAIN_CLASS", "UV_THREADPOOL_SIZE",
})  # fmt: skip
_SHOWN_PREFIXES = ("LC_", "MALLOC_", "XDG_", "SUDO_UID", "SUDO_GID")


@lru_cache(maxsize=1024)
def is_secret(name: str) -> bool:
    """Whether the value of an option, property or variable of this name is a secret: `db.password`, `API_KEY`."""
    name = name[:_LONGEST_NAME]
    if name.endswith(("Exception", "Error")):  # its message follows
        return False
    plain = name.lower().replace("_", "").replace("-", "").replace(".", "")
    if _MARKS.search(plain):
        return True
    words = [word.lower() for word in _WORD.findall(name)]
    if words and (words[-1] in _LAST_WORDS or (words[-1].endswith(_ENDINGS) and words[-1] not in _NOT_ENDINGS)):
        return True
    following = (*words[1:], "")
    return any(word in _WORDS and after not in _NOT_SECRET_OF_A_KEY for word, after in zip(words, following))


def redact_value(name: str, value: str) -> str:
    """The value of a property or option; `…` if its name says that it is a secret."""
    if is_secret(name) and value.lower() not in _PLAIN_VALUES:
        return HIDDEN
    return redact_text(value)


def redact_text(text: str) -> str:
    """Any text, such as a message: credentials in URLs, `name=value` and `name: value` of secrets, known forms of tokens."""
    if ":" in text:
        first, *pieces = text.split("://")
        text = "://".join([first, *map(_without_password, pieces)])
        text = _ORACLE.sub(rf"\1\2/{HIDDEN}@", text)
    if "<" in text:
        text = _ELEMENT.sub(_element, text)
    text = _PRIVATE_KEY.sub(rf"\1{HIDDEN}", text)
    text = _QUOTED.sub(rf"\1 {HIDDEN}", text)
    text = _SCHEME.sub(rf"\1 {HIDDEN}", text)
    text = _TOKENS.sub(HIDDEN, text)
    return _without_named(text)


def _element(found: re.Match[str]) -> str:
    """An XML element with its text."""
    return f"<{found[1]}>{HIDDEN}" if is_secret(found[1]) else found[0]


def _without_password(piece: str) -> str:
    """What follows `://`: the password between a user's name and the last @, which may have a slash or an @ of its own."""
    if key := _KEY_OF_URL.match(piece):
        return HIDDEN + piece[key.end() - 1 :]
    user, colon, rest = piece.partition(":")
    found = _IN_URL.match(rest)
    at = rest.rfind("@", 0, found.end()) if found and colon else -1
    return piece if at < 1 or _PATH.search(user) else f"{user}:{HIDDEN}{rest[at:]}"


def redact_words(words: Sequence[str]) -> list[str]:
    """The words of a command line."""
    hidden = []
    before = ""
    is_plain = _plain_short(words)
    for place, word in enumerate(words):
        hidden.append(_after(before, word, is_plain(place)) or _word(word))
        before = word
    return hidden


def _plain_short(words: Sequence[str]) -> Callable[[int], bool]:
    """Whether the word at a place is the value of a `-p` that is no password."""
    options = launcher_options(words)[1] if is_java_launcher(words) else 0
    has_user = any(map(_NAMES_USER.fullmatch, words))
    return lambda place: place < options or (not has_user and bool(_PORT.fullmatch(words[place])))


def redact_line(text: str) -> str:
    """A command line in one line, its words separated by blanks; a secret with blanks ends where the next option begins."""
    return redact_text(" ".join(_line_words(text.split(" "))))


def redact_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """An environment: the values of well-known names are kept, every other is hidden."""
    return {name: _variable(name, value) for name, value in variables.items()}


def redact_cmdline(data: bytes) -> bytes:
    r"""Words that each end with NUL, as in /proc/PID/cmdline."""
    return _nul_separated(redact_words(_words(data)), data)


def redact_environ(data: bytes) -> bytes:
    r"""NAME=value entries that each end with NUL, as in /proc/PID/environ."""
    entries = (entry.partition("=") for entry in _words(data))
    return _nul_separated([f"{name}{equals}{_variable(name, value)}" for name, equals, value in entries], data)


def _words(data: bytes) -> list[str]:
    return data.removesuffix(b"\0").decode("utf-8", "surrogateescape").split("\0") if data else []


def _nul_separated(words: list[str], before: bytes) -> bytes:
    return "\0".join(words).encode("utf-8", "surrogateescape") + (b"\0" if before.endswith(b"\0") else b"")


def _variable(name: str, value: str) -> str:
    if not value or (name not in _SHOWN and not name.startswith(_SHOWN_PREFIXES)):
        return value and HIDDEN
    if name == "JDK_JAVA_OPTIONS":  # read by the launcher, whose -p is the module path
        return redact_line(f"java {value}").removeprefix("java ")
    return redact_line(value)


def _after(before: str, word: str, is_plain_short: bool) -> str | None:
    """A word that the option before it makes a secret; None: it makes none."""
    if before == _SHORT_WITH_SECRET:
        return None if is_plain_short else HIDDEN
    if before in _USER and (user := _USER_AND_PASSWORD.fullmatch(word)):
        return f"{user[1]}:{HIDDEN}"
    if before[:1] != "-" or before[:2] == "-X" or "=" in before or ":" in before or word.lower() in _PLAIN_VALUES:
        return None
    return HIDDEN if is_secret(before) else None


def _word(word: str) -> str:
    """One word by itself."""
    if len(word) < _SHORTEST_TOKEN and "=" not in word and ":" not in word:
        return word
    if _AGENT.match(word):
        path, equals, options = word.partition("=")
        return path + equals + (HIDDEN if _BARE_KEY.fullmatch(options) else redact_text(options))
    option = None if word.startswith("-X") else _OPTION.fullmatch(word) or None
    if option is not None:
        if option[1] in _USER and (user := _USER_AND_PASSWORD.fullmatch(option[3])):
            return f"{option[1]}{option[2]}{user[1]}:{HIDDEN}"
        return option[1] + option[2] + redact_value(option[1], option[3])
    assignment = _ASSIGNMENT.fullmatch(word)
    if assignment is not None:
        return f"{assignment[1]}={redact_value(assignment[1], assignment[2])}"
    return redact_text(word)


def _line_words(words: Sequence[str]) -> Iterator[str]:
    before, open_quote, in_secret = "", "", False
    known: dict[str, str] = {}
    is_plain = _plain_short(words)
    for place, word in enumerate(words):
        if open_quote:
            open_quote = "" if word.endswith(open_quote) else open_quote
            continue
        if in_secret and not word.startswith("-"):
            continue
        if not word:
            yield word
            continue
        in_secret = False
        shown = _after(before, word, is_plain(place))
        value = word
        if shown is None:
            shown = known.get(word)
            if shown is None:
                shown = known[word] = _word(word)
            option = _OPTION.match(word) if word[0] == "-" else None
            value = option[3] if option else ""
            in_secret = bool(option) and shown.endswith(HIDDEN) and word.startswith("-D")
        if shown.endswith(HIDDEN) and value[:1] in ("'", '"') and not (len(value) > 1 and value.endswith(value[0])):
            open_quote = value[0]
        before = word
        yield shown


def _without_named(text: str) -> str:
    """Hide the values of secret names. What follows another name may be a name itself: `login failed: password=x`."""
    parts, at = [], 0
    while found := _NAME.search(text, at):
        parts.append(text[at : found.end()])
        at = found.end()
        is_hidden = is_secret(found[1]) or (
            found[1].lower() in _SIGNATURES and text[found.start() - 1 : found.start()] in ("?", "&")
        )
        value = _NAMED_VALUE.match(text, at) if is_hidden else None
        if value is not None and value[1].lower() not in _PLAIN_VALUES:
            parts.append(HIDDEN)
            at = value.end()
    return "".join((*parts, text[at:]))
