"""Words of a command line: what the launcher `java` takes before the main class, and what stands for a hidden value."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

HIDDEN = "…"
_WITH_VALUE = frozenset({
    "-cp", "-classpath", "--class-path", "-p", "--module-path", "--upgrade-module-path", "--add-modules", "--add-reads",
    "--add-exports", "--add-opens", "--patch-module", "--limit-modules", "--enable-native-access", "-d",
    "--describe-module", "--illegal-native-access", "--source", "--sun-misc-unsafe-memory-access",
})  # fmt: skip
_STARTS_MAIN = frozenset({"-jar", "-m", "--module"})
_JAVA = frozenset({"java", "javaw", "java.exe", "javaw.exe"})


def is_java_launcher(words: Sequence[str]) -> bool:
    """Whether the first word is the `java` program's name."""
    return bool(words) and words[0].replace("\\", "/").rpartition("/")[2] in _JAVA


def launcher_options(words: Sequence[str]) -> tuple[list[str], int]:
    """(the launcher's and the JVM's options, except those with a separate value; where the main class, jar or module stands)."""
    options: list[str] = []
    place = 1
    while place < len(words):
        word = words[place]
        if word in _STARTS_MAIN:
            return options, place + 1
        if not word.startswith("-") or word.startswith("--module="):
            return options, place
        if word in _WITH_VALUE:
            place += 1
        else:
            options.append(word)
        place += 1
    return options, len(words)
