"""/proc/sys/fs/dentry-state (Documentation/admin-guide/sysctl/fs.rst): six numbers.

432690	430030	45	0	12319	0

In all, unused, age limit (s), wanted pages, negative (since Linux 5.0, and in kernels of vendors that took it over;
always 0 before), reserved.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from opskit.errors import BadInput

_NEGATIVE_SINCE = (5, 0)
_RELEASE = re.compile(r"(\d+)\.(\d+)")


class DentryState(NamedTuple):
    """Counts of dentries. `negative` counts unused ones that stand for absent files; None where the kernel does not count.

    `unused` are those that nothing holds: the kernel may free them.
    """

    dentries: int
    unused: int
    negative: int | None


def parse_dentry_state(text: str, release: str | None) -> DentryState:
    """The counts; `release` is /proc/sys/kernel/osrelease, which tells a 0 that was counted from one that was not.

    Raises BadInput.
    """
    words = text.split()
    if len(words) != 6 or not all(re.fullmatch(r"-?\d+", word) for word in words):
        raise BadInput("sys/fs/dentry-state", "not six numbers", 1, text.strip())
    dentries, unused, _, _, negative, _ = map(int, words)
    counted = negative > 0 or _counts_negative(release)
    return DentryState(max(dentries, 0), max(unused, 0), max(negative, 0) if counted else None)


def _counts_negative(release: str | None) -> bool:
    match = _RELEASE.match(release or "")
    return match is not None and (int(match[1]), int(match[2])) >= _NEGATIVE_SINCE
