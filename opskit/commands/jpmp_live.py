"""The live side of `opskit jpmp`: which JVM, how often, and what is said about what it cost."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Literal

import click

from opskit import shell
from opskit.collect.targets import WhichJvm, is_pid, resolve_jvm
from opskit.commands.gathered import Gathered
from opskit.commands.sampling import DEFAULT_MAX_STOP_PERCENT, Plan, Run, Sampler
from opskit.commands.shared.confirm import agreed
from opskit.commands.shared.options import Duration
from opskit.commands.shared.output import make_directory, write_file
from opskit.errors import OpskitError, UsageError
from opskit.escape import printable
from opskit.jvm.attach.client import DEFAULT_TIMEOUT_S, AttachClient
from opskit.jvm.discover import read_perfdata
from opskit.jvm.perfdata.counters import heap
from opskit.proc.cgroup.owner import unit_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.fs import DENIED, GONE
from opskit.quantities import integer, size

if TYPE_CHECKING:
    from opskit.host import Host
    from opskit.jvm.dumps.dialects import DumpReader
    from opskit.jvm.dumps.thread_dump import ThreadDump

_DEFAULT_SAMPLES = 20
_SYNCHRONIZERS_S_PER_GIB = 0.6  # 36-39 s were reported of 65 GB
_LONG_STOP_S = 1.0
_VIRTUAL_TIMEOUT_S = 60.0  # a JVM writes some 15,000 threads a second

What = Literal["threads", "synchronizers", "virtual"]


class Live:
    """A JVM to be sampled, with what the words and options say about it."""

    def __init__(
        self,
        host: Host,
        words: tuple[str, ...],
        max_stop_percent: float | None,
        timeout_s: float | None,
        save: str | None,
        what: What = "threads",
    ) -> None:
        """Raises UsageError for words that make no sense, NoSuchProcess and WhichJvm for a JVM that is not there."""
        self.host, self.save, self.what = host, save, what
        name, numbers = (words[0], words[1:]) if words else (None, ())
        if len(numbers) > 2:
            raise UsageError(f"jpmp: {numbers[2]!r} is one too many: PID, SAMPLES and INTERVAL are all there is")
        # What walks the heap, or writes a file in the JVM's /tmp, is done once unless more is asked for.
        self.samples = _samples(numbers[0], name) if numbers else _DEFAULT_SAMPLES if what == "threads" else 1
        self.interval_s = _interval(numbers[1]) if len(numbers) > 1 else None
        self.max_stop_percent = max_stop_percent
        self.pid = _resolve(host, name)
        default_s = _VIRTUAL_TIMEOUT_S if what == "virtual" else DEFAULT_TIMEOUT_S
        self.client = AttachClient(host.fs, self.pid, default_s if timeout_s is None else timeout_s)

    def ask_before_long_stop(self, yes: bool) -> None:
        """Say what --synchronizers costs, and ask where it is long. Raises UsageError after a no."""
        used = self._heap_used_bytes()
        if used is None:
            cost, is_long = "how full its heap is, is not known", True
        else:
            seconds = self.samples * used / 2**30 * _SYNCHRONIZERS_S_PER_GIB
            cost, is_long = (
                f"heap used {size(used)}: it may stand still for about {seconds:.1f} s",
                seconds > _LONG_STOP_S,
            )
        _say(f"--synchronizers walks the heap of {self.pid}, which stands still meanwhile; {cost}")
        if is_long and not agreed(yes, f"Stop the JVM {self.pid} for that long?"):
            raise UsageError("nothing was asked of the JVM; add --yes to go on, or leave --synchronizers out")

    def _heap_used_bytes(self) -> int | None:
        try:
            found = heap(read_perfdata(self.host.fs, self.pid))
        except OpskitError:
            return None
        return None if found is None else found.used_bytes

    def _dump(self) -> bytes:
        if self.what == "virtual":
            from opskit.actions.dump_virtual_threads import dump_virtual_threads

            return dump_virtual_threads(self.host, self.client, self._heap_used_bytes())
        return self.client.thread_dump(locks=self.what == "synchronizers").encode("utf-8", "surrogateescape")

    def gather(self, reader: DumpReader, *, cpu: bool) -> tuple[Gathered | None, int]:
        """Sample it; what was gathered (None: nothing) and the exit code."""
        self.host.prove_own(self.pid)
        if self.save is not None:
            make_directory(self.save)
        self._began = self.host.now().strftime("%Y%m%dT%H%M%SZ")
        sampler = Sampler(
            self.host,
            self.client,
            reader,
            Plan(self.samples, self.interval_s, self.max_stop_percent, cpu),
            self._keep,
            self._dump,
        )
        run = sampler.sample()
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", err=True, nl=False)
        code = 130 if run.ended == "interrupted" else 0
        if not run.dumps:
            return None, code
        if run.ended == "exited":
            _say(f"the JVM {self.pid} ended after {_samples_word(len(run.dumps))} of {self.samples}")
        return self._gathered(run), code

    def _keep(self, number: int, dump: bytes) -> None:
        if self.save is not None:
            suffix = "json" if dump.startswith(b"{") else "txt"
            write_file(os.path.join(self.save, f"jpmp-{self.pid}-{self._began}-{number:04d}.{suffix}"), dump)
        if sys.stderr.isatty():
            click.echo(f"\rsample {number} of {self.samples}", err=True, nl=False)

    def _gathered(self, run: Run) -> Gathered:
        percent, gathered = run.stopped_percent, Gathered()
        gathered.dumps, gathered.times_s = run.dumps, list(run.times_s)
        gathered.cpu_before, gathered.cpu_after, gathered.natives = run.cpu_before, run.cpu_after, run.natives
        gathered.head, gathered.said = _samples_word(len(run.dumps)), self._sentences(run)
        gathered.data = {
            "interval_s": run.mean_interval_s and round(run.mean_interval_s, 4),
            "duration_s": round(run.elapsed_s, 3),
            "late_samples": run.late,
            "stopped_ms": round(run.stopped_ms, 3),
            "stopped_percent": percent and round(percent, 3),
            "stopped_by": "wall time" if run.stops_are_bounds else "hsperfdata",
            "throttled_percent": run.throttled_percent and round(run.throttled_percent, 3),
            "ended": run.ended,
        }
        gathered.target, gathered.live = self._target(run), True
        gathered.error = run.error if run.ended == "failed" else None
        return gathered

    def _target(self, run: Run) -> dict[str, object]:
        try:
            unit = unit_of(self.host.fs.load(parse_cgroup, self.pid, "cgroup"))
        except (*GONE, DENIED):
            unit = None
        return {"pid": self.pid, "main": self.client.target.jvm.main, "jdk": run.dumps[0].version, "unit": unit}

    def _sentences(self, run: Run) -> list[str]:
        """What it cost the JVM, and what of the numbers is to be taken with care."""
        percent = run.stopped_percent
        share = "" if percent is None else f"{percent:.1f} % of the run, "
        source = "the dumps' wall time" if run.stops_are_bounds else "hsperfdata"
        most = "at most " if run.stops_are_bounds else ""
        said = [f"the JVM stood still {most}{run.stopped_ms:.1f} ms for it ({share}{source})"]
        if run.throttled_percent is not None:
            said.append(f"throttled by its CPU quota {run.throttled_percent:.0f} %")
        if run.late:
            said.append(f"{_samples_word(run.late)} came late: a dump takes longer than the interval")
        limit = self.max_stop_percent or DEFAULT_MAX_STOP_PERCENT
        if run.stretched:
            said.append(
                f"the interval was stretched from {run.interval_s:g} s to {run.mean_interval_s or 0:.2g} s, to stop the JVM "
                f"for no more than {limit:g} % of the time (--max-stop; an INTERVAL that is given is kept)"
            )
        elif percent is not None and percent > limit:
            longer = run.stopped_ms / len(run.dumps) / 10 / limit
            said.append(
                f"its stops are more than {limit:g} % of the run (--max-stop): give an INTERVAL of {longer * 1.05:.2g} s or more"
            )
        if run.ended == "long stop":
            said.append(
                f"ended after the first sample, since it stopped the JVM for {run.stops_ms[0]:.0f} ms; to go on all the same: "
                + shell.command("opskit", "jpmp", self.pid, self.samples, "--max-stop", f"{limit:g}")
            )
        if cut_off := sum(dump.cut_off for dump in run.dumps):
            said.append(f"{_samples_word(cut_off)} cut off: the JVM did not write all of its threads")
        if self.what == "threads":
            said += _hidden_virtual_threads(run.dumps[-1], self.pid)
        return said


def _hidden_virtual_threads(dump: ThreadDump, pid: int) -> list[str]:
    """JDK 21 and 22 print a carrier's own stack, and not that of the virtual thread which runs on it."""
    carriers = sum(thread.stack.role == "carrier" for thread in dump.threads)
    if not carriers or any(thread.stack.role == "mounted" for thread in dump.threads):
        return []
    run = "virtual thread runs" if carriers == 1 else "virtual threads run"
    shows = shell.command("opskit", "jpmp", pid, "--virtual")
    return [f"{carriers} {run} whose stack this JDK's dump leaves out: {shows} shows it"]


def _samples_word(count: int) -> str:
    return f"{count} sample{'s' * (count != 1)}"


def _say(line: str) -> None:
    click.echo(f"opskit: {printable(line)}", err=True)


def _samples(word: str, name: str | None) -> int:
    samples = integer(word)
    if samples is None:
        if name is not None and not is_pid(name):
            raise UsageError(f"jpmp: {name!r} is no file, and {word!r} is no number of samples")
        raise UsageError(f"jpmp: SAMPLES is {word!r}; give a whole number from 1 up, such as 20")
    if samples == 0:
        raise UsageError("jpmp: SAMPLES is 0; give a whole number from 1 up, such as 20")
    return samples


def _interval(word: str) -> float:
    try:
        return Duration(zero=True).convert(word, None, None)
    except click.BadParameter:
        raise UsageError(f"jpmp: INTERVAL is {word!r}; give seconds from 0 up, 250ms, 2s or 1m") from None


def _resolve(host: Host, name: str | None) -> int:
    try:
        return resolve_jvm(host, name)
    except WhichJvm as which:
        if name is None or " match " in str(which):
            raise
        raise WhichJvm(f"{name!r} is no file, and in no running JVM's main class or jar", which.lines) from None
