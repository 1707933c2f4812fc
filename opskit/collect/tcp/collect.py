"""Read TCP connections over a window: all at its two ends, and those that do the most 20 to 50 times a second. Nothing is sent to anyone."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from opskit.collect.given_pids import GivenPids
from opskit.collect.tcp.facts import Facts, Space
from opskit.collect.tcp.gather import begin, bounded, gather, wanted
from opskit.collect.tcp.owners import Owners
from opskit.collect.tcp.records import Records
from opskit.collect.tcp.sampling import (
    LISTENING_HZ,
    MOST_ACTIVE,
    MOST_QUICK,
    MOST_SAMPLED,
    QUICK_HZ,
    Sampler,
    rate_hz,
)
from opskit.collect.tcp.space import NetworkSpace, our_namespace
from opskit.collect.tcp.threads import ConnectionThreads
from opskit.collect.windows import Windows, uneven_step
from opskit.errors import NoSuchProcess, NotPermitted, NotSupported
from opskit.proc.namespaces import namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opskit.collect.tcp.facts import Request
    from opskit.host import Host
    from opskit.proc.inet_diag import Row
    from opskit.proc.socket_owners import SocketOwners
    from opskit.proc.tcp_dumps import Dump

S = TypeVar("S")
T = TypeVar("T")
_RECENT_MS = 1000
_MOST_CANDIDATES = 400
_CHOOSING_LOOKS = 3  # then those are kept that did the most
_MANY_LISTENING, _MANY_LISTENING_S = 300, 0.5


class _Window:
    """One network namespace in one window."""

    def __init__(
        self, host: Host, name: bytes | None, space: NetworkSpace, first: Dump, is_wanted: Callable[[Row], bool] | None,
        *, quick: bool,
    ) -> None:  # fmt: skip
        self.name, self.space, self.first, self.last = name, space, first, first
        self.begun = begin(first, is_wanted, *((0, 0) if quick else (_RECENT_MS,)))
        self.sampler = Sampler(host, space)
        self.sampler.begin(self.begun.places[: MOST_QUICK if quick else _MOST_CANDIDATES])


class Collector:
    """Looks once, or again and again for a watch: then each window begins where the last one ended."""

    def __init__(self, host: Host, ask: Request, *, watch: bool = False) -> None:
        """Check the request. Raises NoSuchProcess."""
        self._host, self._ask, self._keeps_dumps = host, ask, watch
        self._given = GivenPids(host, ask.pids, "tcp")
        self._owners = Owners(host)
        self._threads = ConnectionThreads(host, ask)
        self._spaces: dict[bytes | None, tuple[NetworkSpace, Dump]] = {}  # with the last dump
        self._last: tuple[Request, Sequence[_Window]] = ask, ()
        self._begun_s = host.monotonic()
        self._windows = Windows(host, ask.window_s, watch=watch)

    def look(self) -> Facts:
        """Read one window. Raises NoSuchProcess, NotPermitted where a process's fds cannot be read, NotSupported for a copy without sockets."""
        host, begun_s = self._host, self._host.monotonic()
        ask = self._ask._replace(pids=self._given.living())
        scan = self._scan_given(ask.pids) if ask.pids else None
        named = self._namespaces(ask.pids)
        windows = _of_living(lambda name: self._begin(name, named[name], wanted(ask, scan)), named)
        if host.fs.has_rates:
            self._sample(windows, self._windows.end_s(begun_s))
        sampled_s = host.monotonic()
        if host.fs.has_rates:
            windows = _of_living(self._read_end, windows)
        scan = self._owners.scan(ask.pids or (() if ask.quick else host.fs.pids()))
        facts = self._facts(ask, windows, scan)
        if ask.quick:
            self._last = ask, windows
        elif not self._keeps_dumps:
            self.close()
        self._windows.look_done(sampled_s)
        return facts

    def with_owners(self) -> Facts:
        """The same look of a quick form, with the processes that have the sockets."""
        ask, windows = self._last
        return self._facts(ask, windows, self._owners.scan(ask.pids or self._host.fs.pids()))

    def close(self) -> None:
        """Let the network namespaces go."""
        for space, _ in self._spaces.values():
            space.close()
        self._spaces.clear()

    def _facts(self, ask: Request, windows: Sequence[_Window], scan: SocketOwners) -> Facts:
        host = self._host
        records = Records(self._owners)
        ends = [self._end(window, records, wanted(ask, scan)) for window in windows]
        notes = [line for window in windows for line in window.space.missing]
        connections, closing = tuple(records.connections), tuple(records.closing)
        if not ask.quick:
            connections, closing = self._threads.add(connections, closing, notes)
        if records.unowned and scan.scanned:
            from opskit.proc.visibility import coverage_lines

            notes += coverage_lines(host.fs, len(scan.scanned), scan.denied, 0 if ask.quick else len(scan.vanished))
        elsewhere = () if ask.pids else self._elsewhere(scan.counts())
        return Facts(
            ask, max(window.last.at_s for window in windows) - min(window.first.at_s for window in windows),
            connections, tuple(records.listeners), closing, tuple(ends),
            is_still=not host.fs.has_rates, elsewhere=elsewhere,
            missing=tuple(dict.fromkeys(notes)), at_s=host.monotonic() - self._begun_s, idle=tuple(records.idle),
        )  # fmt: skip

    def _scan_given(self, pids: tuple[int, ...]) -> SocketOwners:
        scan = self._owners.scan(pids)
        for pid in scan.denied:
            fs = self._host.fs
            if not fs.is_live:
                raise NotSupported(f"{fs.path(pid, 'fd')} is not in this copy: the sockets of {pid} are unknown")
            from opskit.proc.rights import how_to_be_allowed

            who = self._host.process(pid)
            remedy = how_to_be_allowed(fs, "CAP_SYS_PTRACE", "opskit", "tcp", pid, pid=pid)
            what = f"the file descriptors of {pid} ({who.command}, user {who.user or 'unknown'})"
            raise NotPermitted(f"cannot read {what}: permission denied; {remedy}")
        return scan

    def _namespaces(self, pids: tuple[int, ...]) -> dict[bytes | None, list[int | None]]:
        """Each network namespace, and processes in it; None: that of opskit."""
        fs, ours = self._host.fs, our_namespace(self._host.fs)
        if not pids:
            return {ours: [None]} if self._host.is_own or not fs.is_live else {namespace(fs, 1, "net"): [1]}
        found: dict[bytes | None, list[int | None]] = {}
        for pid in pids:
            name = namespace(fs, pid, "net")
            found.setdefault(name, []).append(None if name is not None and name == ours and self._host.is_own else pid)
        return found

    def _begin(
        self, name: bytes | None, pids: Sequence[int | None], is_wanted: Callable[[Row], bool] | None
    ) -> _Window:
        known = self._spaces.get(name)
        if known is None or not self._keeps_dumps:
            known = self._spaces[name] = self._opened(pids)
        return _Window(self._host, name, *known, is_wanted, quick=self._ask.quick)

    def _opened(self, pids: Sequence[int | None]) -> tuple[NetworkSpace, Dump]:
        """The network namespace of the first process that has not ended by now, with its sockets. Raises NoSuchProcess."""
        *others, last = pids
        for pid in others:
            with suppress(NoSuchProcess):
                return self._open(pid)
        return self._open(last)

    def _open(self, pid: int | None) -> tuple[NetworkSpace, Dump]:
        space = NetworkSpace(self._host, pid)
        try:
            return space, space.dump()
        except NoSuchProcess:
            space.close()
            raise

    def _read_end(self, window: _Window) -> _Window:
        """Read all sockets again. Where that fails, the next look opens the space anew."""
        try:
            window.last = window.space.dump()
        except NoSuchProcess:
            self._spaces.pop(window.name)[0].close()
            raise
        self._spaces[window.name] = window.space, window.last
        return window

    def _sample(self, windows: Sequence[_Window], end_s: float) -> None:
        """Look at the connections until the window ends."""
        host = self._host
        next_s = listened_s = host.monotonic()
        many = sum(len(window.begun.listening) for window in windows) > _MANY_LISTENING
        looks, dice = 0, 1
        while (now := host.monotonic()) < end_s:
            for window in windows:
                window.sampler.look()
                if now >= listened_s:
                    window.sampler.look_at_listening()
                if looks == _CHOOSING_LOOKS and window.begun.connections > MOST_SAMPLED:
                    window.sampler.keep_most_active(MOST_ACTIVE)
            looks += 1
            if now >= listened_s:
                listened_s = end_s if self._ask.quick else now + (_MANY_LISTENING_S if many else 1 / LISTENING_HZ)
            tracked = sum(len(window.sampler.tracks) for window in windows)
            step_s = 1 / rate_hz(tracked) if not self._ask.quick else 1 / QUICK_HZ if tracked else max(0.0, end_s - now)
            next_s = max(next_s + step_s, now + step_s / 2)  # late looks are left out
            gap_s, dice = uneven_step(step_s, dice)
            due_s = next_s + gap_s - step_s
            host.step(max(0.0, min(due_s, end_s) - host.monotonic()))
        for window in windows:
            window.sampler.look_at_listening()
            if self._ask.quick or host.is_recorded:  # the looks are few: the last one ends the window
                window.sampler.look()

    def _end(self, window: _Window, records: Records, is_wanted: Callable[[Row], bool] | None) -> Space:
        """Add the records of a network namespace."""
        quick = self._ask.quick
        active_ms = -1 if quick else round((window.last.at_s - window.first.at_s) * 1000)
        most = (0,) if quick else ()
        found = gather(window.last, is_wanted, self._owners.pid_of, window.begun.ports, active_ms, *most)
        if quick:
            found = bounded(found, window.sampler.tracks)
        records.add(window.first, window.begun, window.sampler, found)
        space = window.space
        return Space(space.name, space.source, found.states, space.end(window.last.ends()))

    def _elsewhere(self, sockets: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
        """Of each other network namespace the process with the most sockets, and how many processes have any. `sockets`: by PID."""
        fs = self._host.fs
        found: dict[bytes, list[int]] = {}
        for pid in sockets:
            name = namespace(fs, pid, "net")
            if name is not None and name not in self._spaces:
                found.setdefault(name, []).append(pid)
        return tuple((max(pids, key=lambda pid: sockets[pid]), len(pids)) for pids in found.values())


def _of_living(read: Callable[[S], T], places: Iterable[S]) -> list[T]:
    """What is read in each place, without those whose processes end meanwhile. Raises NoSuchProcess where all have."""
    found, ended = [], None
    for place in places:
        try:
            found.append(read(place))
        except NoSuchProcess as error:
            ended = error
    if ended is not None and not found:
        raise ended
    return found
