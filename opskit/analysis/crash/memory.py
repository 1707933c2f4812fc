"""The JVM ended itself because it got no memory: native memory that the kernel refused, and the Java heap.

A memory limit of a cgroup refuses no mapping: the kernel kills at it. What refuses one is a count of mappings, the size of the
address space, the strict accounting of overcommit, or a request that is larger than the machine.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.crash.case import Cause, limit_bytes, started_with
from opskit.quantities import percent, short_size

if TYPE_CHECKING:
    from opskit.analysis.crash.case import Case

_PID = shell.Syntax("PID")
FEWEST_MAPS = 40  # a JVM that does nothing has more than a hundred
_NEARLY, _FULL, _LITTLE = 0.95, 0.98, 0.03
_DEFAULT_MAPS = 65_530
_THREADS = re.compile(
    r"native thread|[Cc]annot create [\w ]{1,20} thread|pthread_create|start thread|create \w{1,20} thread",
    re.ASCII,
)
_REFUSED = re.compile(r"Native memory allocation|unable to|Cannot|failed to|Could not|Out of", re.ASCII)
_32_BITS = re.compile(r"\b(?:linux|windows|bsd|solaris|aix)-(?:x86|i[3-6]86|arm|ppc|sparc|mips)(?![\w-])")
_HEAP = {
    "Java heap space": "the Java heap was full",
    "GC overhead limit exceeded": "the Java heap was nearly full, and the collector freed too little",
    "Metaspace": "the metaspace was full: too many classes",
    "Compressed class space": "the compressed class space was full: too many classes",
    "Requested array size exceeds VM limit": "the application asked for an array longer than any array can be",
}


def java_heap(case: Case) -> Cause | None:
    """-XX:+CrashOnOutOfMemoryError."""
    event = case.report.event
    words = " ".join((event.name, *event.message))
    if event.kind != "java-heap" and "OutOfMemory encountered" not in words:
        return None
    what = next((key for key in _HEAP if key in words), "Java heap space")
    heap = case.report.heap
    evidence = ["-XX:+CrashOnOutOfMemoryError ended it: it is no bug of the JVM"]
    if heap.used_bytes is not None and (heap.max_bytes or heap.committed_bytes):
        most = heap.max_bytes or heap.committed_bytes
        evidence.append(f"heap used {short_size(heap.used_bytes)} of {short_size(most)}")
    option = {"Java heap space": "-Xmx", "GC overhead limit exceeded": "-Xmx"}.get(what)
    return Cause(
        "crash-java-heap", "the application's use of memory", f"OutOfMemoryError: {what}: {_HEAP[what]}{_asked_by(case)}", evidence,
        started_with("-XX:+HeapDumpOnOutOfMemoryError") if option else None,
        next=case.again if what.startswith("Requested") else shell.command("opskit", "jmap-diff", _PID, "--live", "-c", 5), alike=f"heap {what}",
    )  # fmt: skip


def _asked_by(case: Case) -> str:
    from opskit.analysis.crash.case import name_of

    return f"; {name_of(case.application)} asked for memory" if case.application else ""


def refused(case: Case) -> Cause | None:
    """Native memory that the kernel refused, by the first limit that the data show."""
    if case.report.event.kind != "memory":
        return None
    for pattern in (_map_count, _threads, _address_space, _narrow, _too_large, _exhausted, _compressed_oops):
        if found := pattern(case):
            return found
    return _overcommit(case)


def _said(case: Case) -> str:
    """The JVM's own sentence about what failed."""
    event = case.report.event
    return next(
        (line for line in event.message if _REFUSED.match(line)), event.message[0] if event.message else event.name
    )


def _cause(
    case: Case, code: str, blamed: str, sentence: str, *evidence: str | None, fix: str | None = None, next_: str
) -> Cause:
    said = [_said(case), *(each for each in evidence if each)]
    return Cause(code, blamed, sentence, said, fix, next_, alike=code)


def _refused_words(case: Case) -> str:
    count = case.report.event.bytes_refused
    return "the kernel refused memory" if count is None else f"the kernel refused {short_size(count)} of memory"


def _by_default(maps: int | None) -> int | None:
    """vm.max_map_count as the kernel sets it, for a report of JDK 8 or 11, which lacks it, with about as many mappings."""
    return _DEFAULT_MAPS if maps is not None and _DEFAULT_MAPS * _NEARLY <= maps <= _DEFAULT_MAPS + 10 else None


def _allowed_maps(case: Case) -> int | None:
    return case.report.machine.max_map_count or _by_default(case.report.machine.maps)


def _maps_share(case: Case) -> float | None:
    """Of vm.max_map_count; None where it is unknown. A list that is too short for any JVM was cut from the report."""
    maps, allowed = case.report.machine.maps, _allowed_maps(case)
    return maps / allowed if maps is not None and allowed and maps >= FEWEST_MAPS else None


def _map_count(case: Case) -> Cause | None:
    machine, said = case.report.machine, _said(case)
    is_protect = "mprotect" in said or "guard stack pages" in said or "to protect" in said
    allowed, share = _allowed_maps(case), _maps_share(case)
    if not (share >= _NEARLY if share is not None else is_protect):
        return None
    if share is not None:
        by_default = "" if machine.max_map_count else " by default"
        sentence = f"the process had {machine.maps:,} mappings; vm.max_map_count allows {allowed:,}{by_default}"
    else:
        sentence = "mprotect() failed, which splits a mapping: as a rule the limit vm.max_map_count is reached"
    limit = max(262_144, 2 * (machine.max_map_count or 0))
    return _cause(
        case, "crash-map-count", "the limit vm.max_map_count", sentence, "each thread's stack takes three mappings",
        fix=shell.command("sysctl", "-w", f"vm.max_map_count={limit}"), next_=shell.command("sysctl", "vm.max_map_count"),
    )  # fmt: skip


def _threads(case: Case) -> Cause | None:
    if not _THREADS.search(_said(case)):
        return None
    machine = case.report.machine
    nproc = limit_bytes(case, "NPROC")
    counts = (("ulimit -u", nproc), ("threads-max", machine.threads_max), ("pid_max", machine.pid_max))
    known = ", ".join(f"{name} {count:,}" for name, count in counts if count is not None)
    return _cause(
        case, "crash-threads", "a limit of threads", "the kernel refused a further thread", known,
        next_=shell.command("opskit", "limits"),
    )  # fmt: skip


def _address_space(case: Case) -> Cause | None:
    for name, option in (("AS", "-v"), ("DATA", "-d")):
        limit = limit_bytes(case, name)
        if limit is None or not _may_be_reached(case, limit):
            continue
        heap, called = case.report.heap.max_bytes, shell.command("ulimit", option)
        reserved = f"-Xmx reserves {short_size(heap)} of it" if heap and heap > limit / 4 else None
        return _cause(
            case, "crash-address-space", f"the limit {called}",
            f"{_refused_words(case)}: {called} was {short_size(limit)}, and a JVM reserves much more than it uses", reserved,
            fix=shell.command("ulimit", option, "unlimited"), next_=shell.command("opskit", "limits"),
        )  # fmt: skip
    return None


def _may_be_reached(case: Case, limit: int) -> bool:
    """Whether the process, with what was refused, comes near a limit of its address space."""
    virtual = case.report.machine.virtual_bytes
    return virtual is None or virtual + (case.report.event.bytes_refused or 0) >= limit * _NEARLY


def _address_words(case: Case) -> str:
    """That the address space is not what was exhausted."""
    called, limit, virtual = shell.command("ulimit", "-v"), limit_bytes(case, "AS"), case.report.machine.virtual_bytes
    if limit is None or virtual is None:
        return f"{called} is unlimited"
    return f"{called} was {short_size(limit)}, of which the process used {short_size(virtual)}"


def _too_large(case: Case) -> Cause | None:
    """The kernel's heuristic refuses a single request above RAM and swap."""
    event, machine = case.report.event, case.report.machine
    if event.bytes_refused is None or machine.memory_bytes is None:
        return None
    total = machine.memory_bytes + (machine.swap_free_bytes or 0)
    if event.bytes_refused <= total:
        return None
    return _cause(
        case, "crash-native-memory", "a request larger than the machine",
        f"{_refused_words(case)} at once: the machine has {short_size(machine.memory_bytes)}",
        next_=shell.command("opskit", "mem"),
    )  # fmt: skip


def _narrow(case: Case) -> Cause | None:
    """A 32-bit JVM: `… Server VM (25.40-b25 mixed mode linux-x86 )`."""
    if not _32_BITS.search(case.report.vm or ""):
        return None
    heap = case.report.heap.committed_bytes
    return _cause(
        case, "crash-address-space", "the address space of a 32-bit JVM",
        f"{_refused_words(case)}: a process of 32 bits has at most 4 GiB of addresses, often 3 GiB or less",
        None if heap is None else f"the Java heap had {short_size(heap)} of them", next_=case.again,
    )  # fmt: skip


def _exhausted(case: Case) -> Cause | None:
    machine, limit = case.report.machine, case.report.machine.container_memory_bytes
    highest = max(
        (each for each in (machine.container_used_bytes, machine.container_max_used_bytes) if each is not None),
        default=None,
    )
    if limit and highest is not None and highest >= limit * _FULL:
        used = f"{short_size(highest)} of {short_size(limit)} ({percent(min(1.0, highest / limit))})"
        return _cause(
            case, "crash-native-memory", "the memory limit of its container",
            f"{_refused_words(case)}; its container had used {used}", f"the machine had {_free_words(case) or 'unknown memory'}", next_=shell.command("opskit", "mem"),
        )  # fmt: skip
    if machine.memory_bytes is None or machine.free_bytes is None:
        return None
    left = machine.free_bytes + (machine.swap_free_bytes or 0)
    if left < max(case.report.event.bytes_refused or 0, int(machine.memory_bytes * _LITTLE)):
        return _cause(
            case, "crash-native-memory", "the memory of the machine",
            f"{_refused_words(case)}: the machine had {short_size(machine.free_bytes)} free of {short_size(machine.memory_bytes)}",
            _swap_words(case), next_=shell.command("opskit", "mem"),
        )  # fmt: skip
    return None


def _free_words(case: Case) -> str | None:
    machine = case.report.machine
    if machine.free_bytes is None or machine.memory_bytes is None:
        return None
    return f"{short_size(machine.free_bytes)} free of {short_size(machine.memory_bytes)}"


def _swap_words(case: Case) -> str | None:
    swap = case.report.machine.swap_free_bytes
    return None if swap is None else "no swap free" if not swap else f"{short_size(swap)} of swap free"


def _compressed_oops(case: Case) -> Cause | None:
    """malloc() below a heap that lies low. mmap() finds room above it: only brk() is blocked."""
    said, heap = _said(case), case.report.heap
    texts = " ".join((*case.report.event.message, *heap.lines[:4]))
    is_low = "Unscaled Compressed Oops" in texts or "Zero based" in texts or "Zero Based Compressed Oops" in texts
    if (
        "malloc" not in said
        or not is_low
        or case.report.machine.free_bytes is None
        or "AS" not in case.report.machine.limits
    ):
        return None
    bound = "4 GB" if "Unscaled" in texts else "32 GB"
    accounts = _accounts(case)
    if accounts is not None and accounts[0]:
        return None
    or_refused = "" if accounts else ", or vm.overcommit_memory=2 refuses"
    return _cause(
        case, "crash-compressed-oops", "the place of the Java heap" if accounts else "the place of the Java heap, or strict overcommit accounting",
        f"malloc() got no memory though the machine had {_free_words(case)}: the Java heap below {bound} (compressed oops) may block the growth of"
        f" the native heap{or_refused}",
        _address_words(case), accounts[1] if accounts else None,
        fix=started_with("-XX:HeapBaseMinAddress=8g"), next_=shell.command("sysctl", "vm.overcommit_memory"),
    )  # fmt: skip


def _accounts(case: Case) -> tuple[bool, str] | None:
    """(whether vm.overcommit_memory=2 may have refused it, the figures): under it Committed_AS never passes CommitLimit."""
    machine = case.report.machine
    committed, limit = machine.committed_bytes, machine.commit_limit_bytes
    if committed is None or not limit:
        return None
    words = f"Committed_AS {short_size(committed)}, CommitLimit {short_size(limit)}"
    return committed <= limit <= committed + (case.report.event.bytes_refused or 0) + limit * _LITTLE, words


def _overcommit(case: Case) -> Cause:
    """What remains where memory was free and no limit of the process is reached; else no verdict beyond what the file says."""
    machine, share = case.report.machine, _maps_share(case)
    if machine.free_bytes is None or "AS" not in machine.limits:
        return _cause(
            case, "crash-native-memory", "native memory", f"{_refused_words(case)}; the report does not show which limit was reached",
            next_=shell.command("opskit", "limits"),
        )  # fmt: skip
    though = f"{_refused_words(case)} though the machine had {_free_words(case)}"
    accounts = _accounts(case)
    if accounts is not None and not accounts[0]:
        return _cause(
            case, "crash-native-memory", "vm.max_map_count, as far as the report shows" if share is None else "native memory",
            f"{though}; strict overcommit accounting did not refuse it", accounts[1], None if share is None else f"{machine.maps:,} of {_allowed_maps(case):,} mappings",
            next_=shell.command("sysctl", "vm.max_map_count") if share is None else shell.command("opskit", "limits"),
        )  # fmt: skip
    if share is None and accounts is None:
        return _cause(
            case, "crash-native-memory", "vm.max_map_count, or strict overcommit accounting",
            f"{though}: its mappings reached vm.max_map_count, or vm.overcommit_memory=2 refuses so", "the report lacks the number of mappings",
            next_=shell.command("sysctl", "vm.max_map_count", "vm.overcommit_memory"),
        )  # fmt: skip
    return _cause(
        case, "crash-overcommit", "strict overcommit accounting, as far as the report shows", f"{though}: vm.overcommit_memory=2 refuses so",
        _address_words(case), None if share is None else f"{machine.maps:,} of {_allowed_maps(case):,} mappings", accounts and accounts[1],
        next_=shell.command("sysctl", "vm.overcommit_memory", "vm.overcommit_ratio", "vm.overcommit_kbytes"),
    )  # fmt: skip
