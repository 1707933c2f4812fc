"""The versions of a JVM's libraries: jars of its class path or open, and shared objects that it maps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.collect.compare.facts import CONFIGURED, Fact
from opskit.proc.lines import lines_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_MOST = 5000
_JAR = re.compile(r"(.+?)[-_]v?([0-9][\w.+-]*)\.jar")
_OBJECT = re.compile(r"(.+?)(?:-([0-9][0-9.]*))?\.so(?:\.([0-9][\w.]*))?")
_RANDOM = re.compile(r"[-_.]?[0-9a-f]{6,}|[0-9]{6,}")
# Loaded when they are first used, so that their absence says nothing.
_LATE = re.compile(r"libnss_|libresolv|libgcc_s|libkeyutils|libkrb|libcom_err|libgssapi|libk5|libnl|libanl|libthread_db|libtinfo|ld-linux|libsystemd|libcap|liblz|libzstd|libgcrypt|libgpg")  # fmt: skip
_TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/shm/")  # noqa: S108


def jar_facts(class_path: Sequence[str], opened: Iterable[str]) -> tuple[list[Fact], bool]:
    """The jars by artifact, with their versions; and whether all of the class path is known."""
    named, late = _versions(class_path), _versions(path for path in opened if not path.startswith(_TEMPORARY))
    whole = bool(class_path) and not any(each.endswith(("*", "/")) for each in class_path)
    # A jar that is only open may not be opened yet on the other side, or its fds may be unreadable there.
    kinds = {**{artifact: ("open_jar", late[artifact]) for artifact in late}, **{artifact: ("jar", named[artifact]) for artifact in named}}  # fmt: skip
    return [
        Fact(f"{kind}.{artifact}", CONFIGURED, "libraries", f"{artifact}.jar", ", ".join(sorted(versions)) or "no version")
        for artifact, (kind, versions) in sorted(kinds.items())[:_MOST]
    ], whole  # fmt: skip


def _versions(paths: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in paths:
        name = path.rpartition("/")[2]
        if path.startswith(_TEMPORARY):
            name = _RANDOM.sub("", name)
        if name.endswith(".jar"):
            match = _JAR.fullmatch(name)
            versions = found.setdefault(match[1] if match else name[:-4], set())
            if match:
                versions.add(match[2])
    return found


def object_facts(maps: str, java_home: str | None) -> list[Fact]:
    """The shared objects outside of the JDK, by name, with the version in the file's name."""
    paths: dict[str, None] = {}
    for line in lines_of(maps):
        words = line.split(None, 5)
        if len(words) == 6 and ".so" in words[5]:
            paths[words[5].removesuffix(" (deleted)")] = None
    found: dict[str, str] = {}
    for path in list(paths)[:_MOST]:
        if java_home and path.startswith(f"{java_home}/"):
            continue
        name = path.rpartition("/")[2]
        if path.startswith(_TEMPORARY):
            name = _RANDOM.sub("", name)
        match = _OBJECT.fullmatch(name)
        if match and not _LATE.match(name):
            found.setdefault(match[1], match[2] or match[3] or "no version")
    return [
        Fact(f"object.{name}", CONFIGURED, "libraries", f"{name}.so", version)
        for name, version in sorted(found.items())
    ]


def java_home_of(libjvm: str | None, properties: Mapping[str, str]) -> str | None:
    """The JDK's directory."""
    if properties.get("java.home"):
        return properties["java.home"].rstrip("/")
    return None if libjvm is None else libjvm.partition("/lib/")[0] or None
