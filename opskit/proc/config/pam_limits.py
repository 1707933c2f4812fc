"""/etc/security/limits.conf and limits.d/*.conf, read as pam_limits reads them (linux-pam, pam_limits.c).

# domain   type  item    value         sizes are in KB, cpu in minutes
*          -     stack   17179869184
@web       soft  nproc   4096
1000:1999  hard  as      unlimited
root       -                            (no limits for this user at all)

Precedence: a line for the user (by name or uid range), then one for a group, then the wildcard; within a class the last
line wins, limits.conf first and then limits.d in the order of the names. On Debian and its derivatives wildcard and group
lines are not applied to root.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.proc.config.setting import Setting, conf_files
from opskit.proc.files.limits import UNLIMITED
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opskit.proc.fs import ProcFS

# Each is RLIMIT_ITEM of setrlimit(2).
_ITEMS = {
    "cpu", "fsize", "data", "stack", "core", "rss", "nproc", "nofile", "memlock", "as", "locks", "sigpending", "msgqueue",
    "nice", "rtprio", "rttime",
}  # fmt: skip
_KB = {"fsize", "data", "stack", "core", "rss", "memlock", "as"}
_INFINITE = {"-1", "-", "unlimited", "infinity"}
_RLIM_INFINITY = 2**64 - 1
_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?)0*([0-9]*)(?<=[0-9])")
_USER, _GROUP, _WILDCARD = 0, 1, 2  # lower beats higher
_BAD_RANGE = (1.0, 0.0)  # empty: pam_limits skips the line


class Account(NamedTuple):
    """The user whom PAM logs in. `gid` is the primary group of the passwd entry; `groups` are gids by name."""

    name: str
    uid: int
    gid: int
    groups: dict[str, int]
    wildcards_apply: bool = True


class PamLimit(NamedTuple):
    """What one line gives: bytes, seconds or a count, or UNLIMITED. `in_kb`: the line's number is in KB."""

    value: float
    setting: Setting
    in_kb: bool


class PamLimits:
    """Limits by (RLIMIT name, "soft" or "hard"), unreadable files, and the line `<domain> -` that exempts."""

    def __init__(self) -> None:
        self.limits: dict[tuple[str, str], PamLimit] = {}
        self.unread: list[str] = []
        self.exempt: Setting | None = None


def pam_limits(fs: ProcFS, account: Account) -> PamLimits:
    """Read all files for an account. A file that cannot be read goes to `unread`, and the rest is read."""
    found = PamLimits()
    classes: dict[tuple[str, str], int] = {}
    for path in _files(fs):
        try:
            lines = fs.load_root(_getlines, path)
        except FileNotFoundError:
            continue
        except OSError as error:
            found.unread.append(f"/{path}: {error.strerror}")
            continue
        for number, line in enumerate(lines, 1):
            _apply(found, classes, f"/{path}", number, line, account)
            if found.exempt:
                found.limits.clear()
                return found
    return found


def _files(fs: ProcFS) -> Iterator[str]:
    """limits.conf, or the vendor's; then limits.d, where the administrator's file hides the vendor's of the same name."""
    vendor = "limits.conf" not in fs.names_root("etc/security")
    yield "usr/lib/security/limits.conf" if vendor else "etc/security/limits.conf"
    yield from conf_files(fs, ("etc/security/limits.d", "usr/lib/security/limits.d"), hidden=False)


def _apply(
    found: PamLimits, classes: dict[tuple[str, str], int], path: str, number: int, line: str, account: Account
) -> None:
    words = _split(line)
    if not words:
        return
    domain, kind, item = words[0], words[1].lower() if len(words) > 1 else "", words[2].lower() if words[2:] else ""
    setting = Setting(path, number, item, "", line.strip())
    if len(words) == 2:
        if kind.startswith("-") and domain != "*" and _rank(domain, account) is not None:
            found.exempt = setting
        return
    if len(words) < 4 or item not in _ITEMS or kind not in ("soft", "hard", "-"):
        return
    rank = _rank(domain, account)
    value = parse_value(item, words[3].lower())
    if rank is None or value is None:
        return
    for side in ("soft", "hard") if kind == "-" else (kind,):
        key = (f"RLIMIT_{item.upper()}", side)
        if classes.get(key, rank) < rank:
            return  # even if the hard limit were free: pam_limits looks no further
        classes[key] = rank
        found.limits[key] = PamLimit(value, setting, item in _KB)


def _split(line: str) -> list[str]:
    """Up to four words, the last one the rest of the line, without comments."""
    text = line.lstrip().partition("#")[0].strip(" \t")
    return re.split(r"[ \t]+", text, maxsplit=3) if text else []


def _rank(domain: str, account: Account) -> int | None:
    if domain == account.name:
        return _USER
    ranged = _range(domain)
    if domain.startswith("%"):  # for maxlogins only
        return None
    if domain.startswith("@"):
        return _GROUP if account.wildcards_apply and _in_group(domain[1:], ranged, account) else None
    if ranged is None:
        return _WILDCARD if domain == "*" and account.wildcards_apply else None
    low, high = ranged
    return _USER if low <= account.uid <= high else None


def _in_group(name: str, ranged: tuple[float, float] | None, account: Account) -> bool:
    if ranged is None:
        return name in account.groups
    if name.startswith(":") and ranged is not _BAD_RANGE:  # @:gid means membership, @min:max the primary group
        return ranged[0] in {account.gid, *account.groups.values()}
    return ranged[0] <= account.gid <= ranged[1]


def _range(domain: str) -> tuple[float, float] | None:
    """`min:max`, `min:`, `:exact` of uids, or of gids behind `@`; None: no range."""
    text = domain[1:] if domain[:1] in ("@", "%") else domain
    low, colon, high = text.partition(":")
    if not colon:
        return None
    first, last = integer(low), integer(high)
    if (low and first is None) or (high and last is None) or not (low or high):
        return _BAD_RANGE
    return (last or 0, last or 0) if first is None else (first, UNLIMITED if last is None else last)


def parse_value(item: str, text: str) -> float | None:
    """A line's value in bytes, seconds or a count, read as strtoull does; None for one that pam_limits refuses."""
    if item != "nice" and text in _INFINITE:
        return UNLIMITED
    match = _NUMBER.match(text)
    if match is None:
        return None
    number = integer(match[2] or "0")
    number = _RLIM_INFINITY if number is None else min(number, _RLIM_INFINITY)  # longer ones saturate, as strtoull's do
    if item == "nice":
        return 20 - max(-20, min(19, -number if match[1] == "-" else number))
    if match[1] == "-":
        number = -number % 2**64
    factor = 1024 if item in _KB else 60 if item == "cpu" else 1
    return UNLIMITED if number >= _RLIM_INFINITY // factor else number * factor


def account_of(fs: ProcFS, name: str, uid: int, gid: int, gids: Iterable[int]) -> Account:
    """The account of a process: its groups by /etc/group, and those of the process (`gids`)."""
    known = {*gids, gid}
    groups = {}
    for line in fs.maybe_root(_getlines, "etc/group", default=[]):
        fields = line.split(":")
        number = integer(fields[2]) if len(fields) > 3 else None
        if number is not None and (number in known or name in fields[3].split(",")):
            groups[fields[0]] = number
    return Account(name, uid, gid, groups, wildcards_apply=uid != 0 or not _root_is_special(fs))


def _root_is_special(fs: ProcFS) -> bool:
    """Whether wildcards skip root (Debian's patch, and so Ubuntu's); assumed where there is no os-release."""
    lines = fs.maybe_root(_getlines, "etc/os-release") or fs.maybe_root(_getlines, "usr/lib/os-release", default=[])
    fields = dict(line.replace('"', "").split("=", 1) for line in lines if "=" in line)
    return not fields or "debian" in (fields.get("ID", "") + " " + fields.get("ID_LIKE", "")).split()


def _getlines(text: str) -> list[str]:
    """Lines as getline(3) sees them: only a newline ends one, a carriage return stays in it."""
    return text.split("\n")
