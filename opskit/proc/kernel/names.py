"""The names of users and groups that this machine knows by NSS, which asks LDAP and the like; the machine's own name."""

from __future__ import annotations

import os


def user_by_uid(uid: int) -> str | None:
    """The user's name; None: there is no such user."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return None


def group_by_gid(gid: int) -> str | None:
    """The group's name; None: there is no such group."""
    import grp

    try:
        return grp.getgrgid(gid).gr_name
    except (KeyError, OverflowError):
        return None


def uid_by_name(user: str) -> int | None:
    """The user's uid; None: there is no such user."""
    import pwd

    try:
        return pwd.getpwnam(user).pw_uid
    except (KeyError, ValueError):  # a name with NUL
        return None


def node_name() -> str:
    """The name of this machine (uname(2))."""
    return os.uname().nodename
