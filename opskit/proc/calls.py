"""Questions to the kernel, to sockets and programs that no file of a ProcFS answers: `fs.calls.ask(pipe_fill, pid, fd)`.

The function that is asked is at module level, its arguments and its answer are plain (numbers, text, bytes, tuples, named tuples
of opskit): so an answer can be recorded, and given again where the machine itself is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.proc.fs import ProcFS
    from opskit.proc.network import Network

T = TypeVar("T")


class Calls:
    """Asks this machine. A recording overrides `ask` alone."""

    def ask(self, question: Callable[..., T], *arguments: object) -> T:
        """question(*arguments), with its errors."""
        return question(*arguments)

    def work_out(
        self, fs: ProcFS, name: str, returns: str, arguments: tuple[object, ...], make: Callable[[ProcFS], T]  # noqa: ARG002
    ) -> T:  # fmt: skip
        """make(fs): a small answer, of the type `returns`, that is made of large files. A capture keeps it in their stead."""
        return make(fs)

    def network(self, path: str | None = None) -> Network:
        """The network namespace of this thread, or the one at a path. Raises OSError."""
        from opskit.proc.network import Network

        return Network(path)
