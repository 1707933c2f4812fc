"""Read how a process, or the machine, reads and writes over a window. Nothing is sent to anyone but for --ask: one thread dump of a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opskit.collect.io.facts import Facts, Request
    from opskit.collect.io.host import HostReader
    from opskit.collect.io.process import ProcessReader
    from opskit.host import Host


class Collector:
    """Looks once, or again and again for a watch: then each window begins where the last one ended."""

    def __init__(self, host: Host, ask: Request, *, watch: bool = False) -> None:
        """Check the request. Raises NoSuchProcess, NotSupported for a copy, which has no rates."""
        self._reader = _reader(host, ask, watch=watch)

    def look(self) -> Facts:
        """Read one window. Raises NoSuchProcess, NotPermitted where a process's counters may not be read, NotSupported."""
        return self._reader.look()


def _reader(host: Host, ask: Request, *, watch: bool) -> HostReader | ProcessReader:
    if ask.pid is None:
        from opskit.collect.io.host import HostReader

        return HostReader(host, ask, watch=watch)
    from opskit.collect.io.process import ProcessReader

    return ProcessReader(host, ask, watch=watch)
