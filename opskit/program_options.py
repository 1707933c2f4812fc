"""Programs whose short options take a secret, and those whose `-p` takes none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Habits(NamedTuple):
    """What a program does with short options.

    `secret`: their next word is one; `glued`: so is the rest of the word; `login`: `user/password@place` is one; `plain`: `-p` is none.
    """

    secret: tuple[str, ...] = ()
    glued: tuple[str, ...] = ()
    login: bool = False
    plain: bool = False


_MYSQL = Habits(glued=("-p",))
_LDAP = Habits(secret=("-w",), glued=("-w",))
_SQLCMD = Habits(secret=("-P",), glued=("-P",))
_LOGIN = Habits(login=True)
_PLAIN = Habits(plain=True)
_SEVENZIP = Habits(glued=("-p",))
_NONE = Habits()
_PROGRAMS: dict[str, Habits] = {
    **dict.fromkeys(
        (
            *("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlcheck", "mysqlshow", "mysqlslap", "mysqlbinlog", "mysqlpump"),
            *("mariadb", "mariadb-dump", "mariadb-admin", "mariadb-import", "mariadb-check", "mariadb-binlog", "xtrabackup"),
        ),
        _MYSQL,
    ),
    **dict.fromkeys(("ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami", "ldappasswd", "ldapcompare"), _LDAP),
    **dict.fromkeys(("sqlcmd", "bcp", "isql", "tsql", "mosquitto_pub", "mosquitto_sub", "zip", "unzip", "ipmitool"), _SQLCMD),
    **dict.fromkeys(("sqlplus", "sqlldr", "expdp", "impdp", "rman"), _LOGIN),
    **dict.fromkeys(("7z", "7za", "7zr", "rar", "unrar"), _SEVENZIP),
    "sshpass": Habits(secret=("-p",), glued=("-p",)),
    "redis-cli": Habits(secret=("-a",)),
    "snmpwalk": Habits(secret=("-A", "-X", "-c")),
    "snmpget": Habits(secret=("-A", "-X", "-c")),
    **dict.fromkeys(
        (
            *("perf", "strace", "ltrace", "gdb", "pidstat", "top", "htop", "ps", "taskset", "renice", "chrt", "ionice", "lsof", "prlimit"),
            *("mkdir", "cp", "install", "rsync", "touch", "tar", "ssh", "autossh", "nmap", "pytest", "py.test", "git", "docker", "podman"),
            *("nerdctl", "kubectl", "iotop", "pmap", "pgrep", "bpftrace", "nc", "ncat", "time", "unshare", "python", "python3", "xargs"),
        ),
        _PLAIN,
    ),
}  # fmt: skip
_WRAPPERS = 6  # sudo -u x timeout 5 mysql -psecret: the program is one of the first words
_LOGIN_WORD = re.compile(r"([^/\s=]{1,128})/([^@\s/]{1,256})(@.*)?", re.DOTALL)


def habits_of(words: Sequence[str]) -> Habits:
    """Those of the first known program among the first words."""
    for word in words[:_WRAPPERS]:
        if word[:1] != "-":
            found = _PROGRAMS.get(word.rpartition("/")[2])
            if found is not None:
                return found
    return _NONE


def glued_secret(habits: Habits, word: str) -> str | None:
    """The option that a secret is glued to: `-p` of `-phunter2`."""
    return next((option for option in habits.glued if word.startswith(option) and len(word) > len(option)), None)


def login_parts(word: str) -> tuple[str, str, str] | None:
    """(user, password, the rest) of `scott/tiger@host`."""
    found = _LOGIN_WORD.fullmatch(word)
    return (found[1], found[2], found[3] or "") if found else None
