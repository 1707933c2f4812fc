r"""/proc/PID/status (proc_pid_status(5), fs/proc/array.c): a `Key:\\tvalue` a line.

Name:   java
State:  S (sleeping)
Uid:    1001    1001    1001    1001
NSpid:  4242    1
VmSize:  6301232 kB
SigCgt: 2000000181005ccf
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import hexadecimal, integer, integers
from opskit.records import NamedTuple


class Status(NamedTuple):
    """The fields by their names in the file; typed views beside them. None: not in this kernel's file."""

    fields: dict[str, str]

    @property
    def real_uid(self) -> int:
        """The real uid, whose limits apply."""
        return self._ids("Uid")[0]

    @property
    def effective_uid(self) -> int:
        """The effective uid, whose rights apply."""
        return self._ids("Uid")[1]

    @property
    def effective_gid(self) -> int:
        """The effective gid, whose rights apply."""
        return self._ids("Gid")[1]

    @property
    def threads(self) -> int | None:
        """Threads of the process."""
        return self._number("Threads")

    @property
    def parent_pid(self) -> int | None:
        """The parent; 0 for init, and where the parent is outside the pid namespace."""
        return self._number("PPid")

    @property
    def real_gid(self) -> int:
        """The real gid."""
        return self._ids("Gid")[0]

    @property
    def groups(self) -> tuple[int, ...]:
        """The supplementary groups' gids."""
        return self._numbers("Groups")

    @property
    def ns_pids(self) -> tuple[int, ...]:
        """The pid in each pid namespace, outermost first; empty before Linux 4.1."""
        return self._numbers("NSpid")

    def bytes_of(self, key: str) -> int | None:
        """A `… kB` field (VmSize, VmData, VmLck, …) in bytes."""
        number = self._number(key)
        return None if number is None else number * 1024

    def mask(self, key: str) -> int | None:
        """A hexadecimal mask (SigCgt, SigIgn, CapEff, …)."""
        return hexadecimal(self.fields.get(key, ""))

    def _number(self, key: str) -> int | None:
        words = self.fields.get(key, "").split(None, 1)
        return integer(words[0]) if words else None

    def _numbers(self, key: str) -> tuple[int, ...]:
        return tuple(integers(self.fields.get(key, "").split()) or ())

    def _ids(self, key: str) -> tuple[int, ...]:
        """Real, effective, saved and file system id. Raises BadInput."""
        ids = self._numbers(key)
        if len(ids) < 4:
            raise BadInput("status", f"{key} does not have four ids", found=self.fields.get(key))
        return ids


def parse_status(text: str) -> Status:
    """Split the lines; a line without a colon (a raw newline in Name) is left out."""
    pairs = (line.partition(":") for line in text.split("\n"))
    return Status({key: value.strip() for key, colon, value in pairs if colon})
