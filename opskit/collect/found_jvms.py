"""The JVMs of a machine, or those among some processes, searched for once in a run that keeps what it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import NoSuchProcess, NotAJvm, OpskitError
from opskit.jvm.discover import HOTSPOT, Survey, find_jvm, survey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.host import Host


def found_jvms(host: Host, pids: Sequence[int] = ()) -> Survey:
    """All JVMs; with `pids` those among them. Their counters may be of an earlier moment of the run."""
    fs, kept = host.fs, host.fs.kept
    if kept is None:
        return _search(host, tuple(pids))
    return kept.once((found_jvms, fs, tuple(pids)), lambda: _search(host, tuple(pids)))


def hotspot_jvms(host: Host, pids: Sequence[int] = ()) -> Survey:
    """The same without OpenJ9 and native images."""
    found = found_jvms(host, pids)
    return found._replace(jvms=[jvm for jvm in found.jvms if jvm.kind == HOTSPOT])


def _search(host: Host, pids: tuple[int, ...]) -> Survey:
    if not pids:
        return survey(host.fs, host.clock_ticks)
    found = Survey([], [], [], [])
    for pid in pids:
        try:
            jvm = find_jvm(host.fs, pid, host.clock_ticks)
        except NotAJvm:
            found.scanned.append(pid)
        except NoSuchProcess:
            found.vanished.append(pid)
        except OpskitError:  # whether it is a JVM is unknown
            found.denied.append(pid)
        else:
            found.scanned.append(pid)
            found.jvms.append(jvm)
    return found
