r"""How a JVM was started: /proc/PID/cmdline (words, each ended by NUL), its environment, and its options in hsperfdata.

java -Xmx2g -Dtoken=… -cp app.jar com.example.Main serve
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.fs import optional
from opskit.quantities import integer
from opskit.words import HIDDEN, is_java_launcher, launcher_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.discover import Jvm
    from opskit.proc.fs import ProcFS

# In one line of text a value with spaces ends where the next option of a JVM begins.
_NEXT_OPTION = r"(?=\s+(?:-D|-X|-javaagent:|-agent(?:lib|path):|-(?:ea|da|esa|dsa|server|client|jar|cp)\b|--)|\s*$)"
_VALUED = r"(?:-D[^=\s]+|-javaagent:[^=\s]+|-agent(?:lib|path):[^=\s]+)"
_VALUED_IN_LINE = rf"((?:^|(?<=\s)){_VALUED})=.*?(?<!\s){_NEXT_OPTION}"
_MOST_RELEASE_BYTES = 1 << 20  # a JDK's has a dozen lines; a container's may have any size
_MOST_WITH_SPACES = 1000  # options with spaces in their values


def parse_words(text: str) -> list[str]:
    """The words of a cmdline, or the NAME=value entries of an environ."""
    return text.removesuffix("\0").split("\0") if text else []


def main_of_words(words: list[str]) -> str | None:
    """The jar, module or main class on a java launcher's command line; None: not shown (@argfile, JNI)."""
    return _split(words)[1]


def vm_words(words: list[str]) -> list[str]:
    """The options before the main class or jar, except those with a separate value (-cp)."""
    return _split(words)[0] if is_java_launcher(words) else []


def _split(words: list[str]) -> tuple[list[str], str | None]:
    """(the launcher's and the JVM's options, the main class or jar)."""
    options, place = launcher_options(words)
    main = words[place] if place < len(words) else None
    if main is None or main.startswith("@"):
        return options, None
    return options, main.removeprefix("--module=")


def main_of_command(command: str) -> str | None:
    """The jar, module or main class of sun.rt.javaCommand, where its arguments follow it after a space."""
    first = command.split(" ", 1)[0]
    if "/" in first and not first.endswith(".jar"):
        jar, found, _ = command.partition(".jar")  # a path with a space in it
        if found and "/" in jar:
            first = jar + found
    return first or None


def jvm_options(words: list[str], environment: list[str]) -> list[str]:
    """The JVM's options of the command line and the environment, the last one in force; without those in files."""
    variables = dict(entry.partition("=")[::2] for entry in environment)
    options = [option for key in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS") for option in variables.get(key, "").split()]
    options += _split(words)[0]
    return options + variables.get("_JAVA_OPTIONS", "").split()


def last_flag(words: list[str], environment: list[str], name: str) -> str | None:
    """The last of `-XX:+NAME`, `-XX:-NAME` or `-XX:NAME=value`, which is in force; None: not given, or in a file."""
    options = jvm_options(words, environment)
    wanted = (f"-XX:+{name}", f"-XX:-{name}")
    return next((word for word in reversed(options) if word in wanted or word.startswith(f"-XX:{name}=")), None)


def without_secrets(vm_args: str, words: Sequence[str] = ()) -> str:
    """The JVM's options without the values of -D and the options of agents, which hold passwords.

    `vm_args` is one line, in which a value with spaces has no end; `words` of the command line delimit it. Options from the
    environment are not in `words`, and have no spaces.
    """
    with_spaces = {word for word in words if re.search(r"\s", word) and re.match(_VALUED + "=", word)}
    if len(with_spaces) > _MOST_WITH_SPACES:
        return HIDDEN
    for word in sorted(with_spaces, key=len, reverse=True):
        vm_args = vm_args.replace(word, f"{word.partition('=')[0]}={HIDDEN}")
    return re.sub(_VALUED_IN_LINE, rf"\1={HIDDEN}", vm_args, flags=re.DOTALL)


def major_of(version: str) -> int | None:
    """8 for `1.8.0_402`, 17 for `17.0.15` or `17-ea`; None for text that is not a version."""
    first, _, rest = version.removeprefix("1.").partition(".")
    first = first.partition("-")[0].partition("_")[0]
    return integer(first) if first != "1" or not rest else None


def parse_release(text: str) -> dict[str, str]:
    """The `KEY="value"` lines of a JDK's release file (JAVA_VERSION, IMPLEMENTOR, …). Raises BadInput if there is none."""
    pairs = (line.partition("=") for line in text.splitlines())
    fields = {key: value.strip().strip('"') for key, equals, value in pairs if equals}
    if not fields:
        raise BadInput("release", 'no `KEY="value"` line', found=text)
    return fields


def jdk_release(fs: ProcFS, jvm: Jvm) -> dict[str, str]:
    """JAVA_VERSION, IMPLEMENTOR, …; empty where the file is unreadable."""
    if jvm.libjvm is None:
        return {}
    home = posixpath.dirname(posixpath.dirname(posixpath.dirname(jvm.libjvm)))
    # JDK 8 has its library in jre/lib/amd64/server, and the file next to jre.
    for place in (home, posixpath.dirname(home), posixpath.dirname(posixpath.dirname(home))):
        data = optional(fs.read_inside, jvm.pid, f"{place}/release", _MOST_RELEASE_BYTES)
        fields = data and optional(parse_release, data.decode("utf-8", "replace"))
        if fields:
            return fields
    return {}
