"""The samples of a capture: tight passes over all counters, without parsing, in the same order each time.

So between two readings of any file passes the time between two samples, however long a pass takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.capture.counters import CGROUP, DEVICES, HOST, NETWORK, NETWORKS, PROCESS, THREAD, is_counter
from opskit.host import scheduled_first
from opskit.proc.cgroup.sweep import all_cgroups
from opskit.proc.cgroup.tree import cgroup_mounts, visible_levels
from opskit.proc.fs import GONE, ids, optional
from opskit.proc.recorded import tape as kinds
from opskit.proc.recorded.call_samples import CallSamples
from opskit.proc.recorded.tape import Mark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.host import Host
    from opskit.proc.cgroup.tree import Level
    from opskit.recorded_host import RecordedHost

_CONTROLLERS = ("memory", "cpu", "cpuacct", "pids", "freezer", "blkio")
_LARGEST_PERFDATA_BYTES = 16 << 20
_MOST_CGROUPS = 64  # of processes, where both versions are mounted
_MOST_POSITIONS = 256  # open files of a process whose positions are read


class Sampler:
    """Puts samples of a machine on the tape of a RecordedHost that has it as its source.

    `pids`: processes whose network namespaces and positions in files are read, too. Counters of JVMs are those on the tape already.
    """

    def __init__(self, machine: Host, recorded: RecordedHost, pids: Sequence[int] = ()) -> None:
        self._machine, self._recorded = machine, recorded
        self._fs, self._tape = machine.fs, recorded.tape
        self._pids = pids
        self._calls = CallSamples(self._tape, self._fs, self._networks())
        self._of_host = list(self._host_paths())  # after the first sample those that are there
        self._perfdata = [
            path for path in self._tape.answers[kinds.UNTRUSTED][0] if "/hsperfdata_" in path and is_counter(path)
        ]
        self._positions = [path for pid in pids for path in self._open_files(pid)]

    def take(self, interval_s: float, before_each: Callable[[int], None] = lambda _: None) -> None:
        """Take a sample a mark of the tape, on the schedule start + n × interval. `before_each` gets the number from 1."""
        host = self._machine
        begun_s = host.monotonic()
        for number in range(len(self._tape.marks)):
            left_s = begun_s + number * interval_s - host.monotonic()
            if number and left_s > 0:
                host.sleep(left_s)
            before_each(number + 1)
            with scheduled_first():  # where the CPUs are busy, all files are still read within a short time
                self._tape.marks[number] = Mark(host.now().timestamp(), host.monotonic())
                self._pass(number)
        self._calls.keep()

    def _pass(self, mark: int) -> None:
        read = self._reader(mark, self._fs.read_path)
        found = [path for path in self._of_host if read(path)]
        if not mark:
            self._of_host = found
        self._calls.sample(mark)
        read_perfdata = self._reader(mark, self._read_untrusted)
        for path in self._perfdata:
            read_perfdata(path)
        for path in self._positions:
            read(path)
        proc = self._fs.proc
        for name in PROCESS:  # what opskit itself uses is left out of what the machine does
            read(f"{proc}/self/{name}")
        for pid in self._names(proc, mark):
            for name in PROCESS:
                read(f"{proc}/{pid}/{name}")
            for tid in self._names(f"{proc}/{pid}/task", mark):
                for name in THREAD:
                    read(f"{proc}/{pid}/task/{tid}/{name}")

    def _reader(self, mark: int, read_path: Callable[[str], bytes]) -> Callable[[str], bool]:
        """Reads a file onto the tape; whether it was there."""
        failed, shared = self._recorded.fs.failure_of, self._recorded.fs.shared
        by_mark = self._tape.answers[kinds.FILE]
        while len(by_mark) <= mark:
            by_mark.append({})
        now = by_mark[mark]
        earlier = by_mark[:mark][::-1]

        def read(path: str) -> bool:
            try:
                answer: object = read_path(path)
            except OSError as error:
                answer = failed(error, path)
                there = not isinstance(error, GONE)
            else:
                there = True
            for before in earlier:
                if path in before:
                    if before[path] == answer:
                        return there
                    break
            now[path] = shared(answer) if type(answer) is bytes else answer
            return there

        return read

    def _read_untrusted(self, path: str) -> bytes:
        """A file that another user may have replaced by a link since it was found."""
        directory, _, name = path.rpartition("/")
        return self._fs.read_untrusted(directory, name, _LARGEST_PERFDATA_BYTES)[1]

    def _open_files(self, pid: int) -> list[str]:
        """The fdinfo of the files of a process that have a name."""
        found = optional(lambda: self._fs.fd_links(pid, wanted=(b"/",)), default=[])
        return [self._fs.path(pid, "fdinfo", name.decode()) for name, *_ in found[:_MOST_POSITIONS]]

    def _names(self, directory: str, mark: int) -> list[int]:
        try:
            names = tuple(self._fs.names_at(directory))
        except OSError as error:
            self._tape.keep_change(kinds.NAMES, directory, self._recorded.fs.failure_of(error, directory), mark)
            return []
        self._tape.keep_change(kinds.NAMES, directory, names, mark)
        return ids(names)

    def _host_paths(self) -> Iterator[str]:
        proc, root = self._fs.proc, self._fs.root
        yield from (f"{proc}/{name}" for name in HOST)
        for network in NETWORKS:
            yield from (f"{proc}/{network}/{name}" for name in NETWORK)
        for directory, names in DEVICES:
            for entry in self._fs.names_root("sys", directory):
                device = f"{root}/sys/{directory}/{entry}"
                for name in names:
                    inner, star, rest = name.partition("/*")
                    each_of = optional(self._fs.names_at, f"{device}/{inner}", default=[]) if star else ()
                    yield from (f"{device}/{inner}/{each}{rest}" for each in each_of) if star else (f"{device}/{name}",)
        levels = (*(level for each in _CONTROLLERS for level in all_cgroups(self._fs, each)), *self._of_processes())
        roots = [mount.mount_point for mount in cgroup_mounts(self._fs, "1")]
        every = (*roots, *(level.directory for level in levels))
        directories = dict.fromkeys(f"{root}/{each.lstrip('/')}" for each in every)
        for directory in directories:
            held = set(optional(self._fs.names_at, directory, default=[]))
            yield from (f"{directory}/{name}" for name in CGROUP if name in held)

    def _of_processes(self) -> Iterator[Level]:
        """The cgroups (v2) that processes are in, which the controllers of a machine with both versions do not list."""
        each_of = {optional(self._fs.read, pid, "cgroup"): pid for pid in optional(self._fs.pids, default=[])}
        for pid in list(each_of.values())[:_MOST_CGROUPS]:
            yield from visible_levels(self._fs, pid, "")[0][:1]

    def _networks(self) -> list[str]:
        """Those of the processes that are not ours, by a path each."""
        found = {optional(self._fs.link, "self", "ns", "net"): ""}
        for pid in self._pids:
            name = optional(self._fs.link, pid, "ns", "net")
            if name is not None:
                found.setdefault(name, self._fs.path(pid, "ns", "net"))
        return [path for path in found.values() if path]
