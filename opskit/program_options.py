"""Programs whose short options take a secret, and those whose `-p` takes none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Habits(NamedTuple):
    """What a program does with short options.

    `secret`: their next word is one; `glued`: so is the rest of the word; `login`: `user/password@place` is one; `plain`: `-p` is none;
    `user`: their next word is `user:password`; `variables`: it is `NAME=value`, of an environment.
    """

    secret: tuple[str, ...] = ()
    glued: tuple[str, ...] = ()
    login: bool = False
    plain: bool = False
    user: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


_MYSQL = Habits(glued=("-p",), plain=True)  # -p alone: it asks for it
_LDAP = Habits(secret=("-w",), glued=("-w",))
_SQLCMD = Habits(secret=("-P",), glued=("-P",))
_LOGIN = Habits(login=True)
_PLAIN = Habits(plain=True)
_SEVENZIP = Habits(glued=("-p", "-hp"))
_SMB = Habits(user=("-U", "--user"))
_CONTAINERS = Habits(plain=True, variables=("-e", "--env"))
_LOGIN_COMMAND = Habits(secret=("-p",))  # docker login -u x -p y
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
    "openssl": Habits(secret=("-k", "-K")),
    "curl": Habits(secret=("-b",), user=("-E", "--cert")),
    "ssh-keygen": Habits(secret=("-N", "-P")),
    "db2": Habits(secret=("using",)),
    "lftp": Habits(user=("-u",)),
    "ab": Habits(user=("-A", "-P")),
    **dict.fromkeys(("http", "https", "xh"), Habits(user=("-a",))),
    **dict.fromkeys(("smbclient", "smbget", "rpcclient", "net"), _SMB),
    **dict.fromkeys(("docker", "podman", "nerdctl"), _CONTAINERS),
    "snmpwalk": Habits(secret=("-A", "-X", "-c")),
    "snmpget": Habits(secret=("-A", "-X", "-c")),
    **dict.fromkeys(
        (
            *("perf", "strace", "ltrace", "gdb", "pidstat", "top", "htop", "ps", "taskset", "renice", "chrt", "ionice", "lsof", "prlimit"),
            *("mkdir", "cp", "install", "rsync", "touch", "tar", "ssh", "autossh", "nmap", "pytest", "py.test", "git"),
            *("kubectl", "memcached", "iotop", "pmap", "pgrep", "bpftrace", "nc", "ncat", "time", "unshare", "xargs"),
        ),
        _PLAIN,
    ),
}  # fmt: skip
_MOST_WORDS = 64  # kubectl exec -it -n shop db-0 -- nice -n 10 mysqldump -psecret
_LOGIN_WORD = re.compile(r"([^/@\s=]{1,128})/(?!\S{0,256}\.sql\Z)(\S{1,256}?)(@[^@]*)?", re.DOTALL)
_USER_AND_PASSWORD = re.compile(r"([^:%,]*[:%,])(.+)", re.DOTALL)
_PORTS = re.compile(r"[0-9]{1,5}:[0-9]{1,5}")


def programs_in(words: Sequence[str]) -> list[tuple[int, Habits]]:
    """(place, habits) of each known program, the last one first: an option belongs to the program before it."""
    found: list[tuple[int, Habits]] = []
    for place, word in enumerate(words[:_MOST_WORDS]):
        habits = _PROGRAMS.get(word.rpartition("/")[2]) if word[:1] != "-" else None
        if habits is not None:
            is_login = habits is _CONTAINERS and "login" in words[place + 1 : place + 4]
            found.insert(0, (place, _LOGIN_COMMAND if is_login else habits))
    return found


def habits_at(programs: Sequence[tuple[int, Habits]], place: int) -> Habits:
    """Those of the program that a word belongs to."""
    return next((habits for at, habits in programs if at < place), _NONE)


def glued_secret(habits: Habits, word: str) -> str | None:
    """The option that a secret is glued to: `-p` of `-phunter2`."""
    for option in habits.glued:
        if word.startswith(option) and len(word) > len(option):
            return None if _PORTS.fullmatch(word, len(option)) else option
    return None


def user_parts(word: str) -> tuple[str, str] | None:
    """(user with what follows, password) of `bob:x`, `bob%x` and `bob,x`."""
    found = _USER_AND_PASSWORD.fullmatch(word)
    return (found[1], found[2]) if found else None


def login_parts(word: str) -> tuple[str, str, str] | None:
    """(user, password, the rest) of `scott/tiger@host`."""
    found = _LOGIN_WORD.fullmatch(word)
    return (found[1], found[2], found[3] or "") if found else None
