"""Sample a live process as the options say: by perf events, by thread dumps, by a profiler of the user."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from opskit.collect.jpmp.collect import Facts, Request, Sampler, collect, read_before
from opskit.commands.shared.profile_options import asks_for_dumps
from opskit.commands.shared.profile_request import what_to_sample
from opskit.errors import NotAJvm, NotPermitted, NotSupported, OpskitError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opskit.collect.cpu_profile import CpuProfile
    from opskit.commands.shared.progress import Progress
    from opskit.commands.shared.run import Run
    from opskit.host import Host


def gatherer(
    run: Run,
    words: tuple[str, ...],
    given: Mapping[str, Any],
    ask: Request,
    default_s: float | None,
    progress: Progress,
) -> Callable[[], Facts]:
    """The function that takes a profile. Raises UsageError, and asks for confirmation where the options need one."""
    ask, seconds = what_to_sample(run, words, given, ask, default_s)
    by_samples = given["sampler"] == "asprof" or (given["on_cpu"] and given["sampler"] != "dumps")
    # Read once: it may be a pipe, and -w takes many profiles.
    before, ask = read_before(ask), ask._replace(before=None)

    def gather() -> Facts:
        if by_samples:
            return _profile(run.host, ask, given, seconds, progress)._replace(before=before)
        return _dumps(run.host, ask, given, progress)._replace(before=before)

    return gather


def _profile(host: Host, ask: Request, given: Mapping[str, Any], seconds: float, progress: Progress) -> Facts:
    """CPU samples; thread dumps where they are impossible and the sampler may be chosen."""
    host.prove_own(ask.pid)
    sampler, why = given["sampler"] or "auto", asks_for_dumps(given)
    if why is None and not seconds:
        why = "an interval of 0 s leaves no time to sample in"
        if sampler != "auto":
            raise UsageError(f"--sampler {sampler}: {why}")
    if why is not None and not given["locks"]:
        return _dumps(host, ask, given, progress)._replace(fallback=why)
    if why is not None:  # a question about locks, not about CPU time
        return _dumps(host, ask, given, progress)
    progress.expect(f"profile of {ask.pid}", seconds)
    if sampler == "asprof":
        return _by_asprof(host, ask.pid or 0, given, seconds)
    from opskit.collect.cpu_target import NO_JAVA
    from opskit.collect.jpmp.beside import Beside

    beside = Beside(host, ask.pid or 0)
    try:
        taken = _sample(host, ask.pid or 0, sampler, given["hz"], seconds, progress)
    except (NotPermitted, NotSupported) as error:
        if sampler != "auto":
            raise
        try:
            return _dumps(host, ask, given, progress)._replace(fallback=str(error))
        except NotAJvm:
            raise error from None
    lacking = next((each for each in taken.missing if each.startswith(NO_JAVA)), None)
    if sampler == "auto" and lacking is not None and taken.ended is None:
        with suppress(OpskitError):  # then the native frames are all there is
            return _dumps(host, ask, given, progress)._replace(fallback=lacking)
    name: Sampler = "perf-map" if sampler == "perf-map" else "unwind"
    cpu, load = beside.named(taken), beside.measure()
    return Facts(cpu=cpu, sampler=name, load=load, unit=beside.unit, is_jvm=beside.is_jvm)


def _sample(host: Host, pid: int, sampler: str, hz: float | None, seconds: float, progress: Progress) -> CpuProfile:
    from opskit.collect.cpu_profile import DEFAULT_HZ, profile

    hz = hz or DEFAULT_HZ
    if sampler == "perf-map":
        from opskit.actions.perf_map import profile_by_perf_map

        return profile_by_perf_map(host, pid, hz, seconds)
    return profile(
        host, pid, hz, seconds, progress=lambda samples, left_s: progress.expect(f"{samples:,} samples", left_s)
    )


def _by_asprof(host: Host, pid: int, given: Mapping[str, Any], seconds: float) -> Facts:
    from opskit.actions.asprof import profile_by_asprof
    from opskit.collect.asprof import AsprofRequest
    from opskit.collect.asprof_library import find_library
    from opskit.collect.cpu_profile import DEFAULT_HZ

    library = find_library(given["asprof"], os.environ)
    ask = AsprofRequest(pid, library, given["event"] or "ctimer", given["hz"] or DEFAULT_HZ, seconds)
    taken = profile_by_asprof(host, ask)
    return Facts(cpu=taken.profile, sampler="asprof", asprof=taken)


def _dumps(host: Host, ask: Request, given: Mapping[str, Any], progress: Progress) -> Facts:
    """Thread dumps; their raw text goes to the folder of --save."""
    from opskit.actions.outfile import dump_saver

    host.prove_asking(ask.pid)
    folder = given["save"]
    save = None if folder is None else dump_saver(folder, f"jpmp-{ask.pid}-{host.now():%Y%m%dT%H%M%SZ}")

    def keep(number: int, dump: bytes) -> None:
        if save is not None:
            save(number, dump)
        progress.sampled(number, ask.schedule.samples, ask.schedule.planned_s)

    return collect(host, ask, dump_virtual=_dump_virtual, keep=keep)


def _dump_virtual(*of_jvm: Any) -> bytes:
    from opskit.actions.dump_virtual_threads import dump_virtual_threads

    return dump_virtual_threads(*of_jvm)
