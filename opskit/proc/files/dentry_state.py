"""/proc/sys/fs/dentry-state (Documentation/admin-guide/sysctl/fs.rst): six numbers.

432690	430030	45	0	12319	0

All, unused, age limit (s), wanted pages, negative (since Linux 5.0 and in kernels with a backport; 0 before), reserved.
"""

from __future__ import annotations

import re

from opskit.errors import BadInput
from opskit.quantities import integers, signed
from opskit.records import NamedTuple

_NEGATIVE_SINCE = [5, 0]
_RELEASE = re.compile(r"([0-9]+)\.([0-9]+)")


class DentryState(NamedTuple):
    """Counts of dentries. `unused`: nothing holds them. `negative`: for absent files; None where they are not counted."""

    dentries: int
    unused: int
    negative: int | None


def parse_dentry_state(text: str, release: str | None) -> DentryState:
    """The counts. `release` (/proc/sys/kernel/osrelease) decides whether a 0 was counted. Raises BadInput."""
    words = text.split()
    numbers = [max(number, 0) for word in words if (number := signed(word)) is not None]
    if len(words) != 6 or len(numbers) != 6:
        raise BadInput("sys/fs/dentry-state", "not six numbers", 1, text.strip())
    dentries, unused, _, _, negative, _ = numbers
    match = _RELEASE.match(release or "")
    version = integers(match.groups()) if match else None
    counted = negative > 0 or (version or []) >= _NEGATIVE_SINCE
    return DentryState(dentries, unused, negative if counted else None)
