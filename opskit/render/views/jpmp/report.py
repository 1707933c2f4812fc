"""The reports of `opskit jpmp`: weighted stacks, or contended locks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from opskit import shell
from opskit.analysis.jpmp import stacks
from opskit.analysis.jpmp.judge import lock_line, lock_name, waits_line
from opskit.errors import UsageError
from opskit.quantities import percent, plural
from opskit.records import NamedTuple
from opskit.render.report import Block, Listing, Report
from opskit.render.views.jpmp import pools, sentences
from opskit.render.views.jpmp.sentences import flame_graph

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.analysis.jpmp.judge import Locks, Profile, Weighing
    from opskit.collect.cpu_profile import CpuProfile
    from opskit.collect.jpmp.collect import Facts
    from opskit.jvm.profiles import WeightedStack
    from opskit.render.report import About

PICTURES = ("svg", "speedscope")
_GOES_WITH = {
    **dict.fromkeys(("inverted", "width"), ("svg",)),
    **dict.fromkeys(("title", "diff"), PICTURES),
    "reverse": (*PICTURES, "folded"),
}
_LINES = ("text", "folded")  # formats of exact lines: everything else goes to stderr
_LOCK_SENTENCES = 3  # the table has all locks; on a terminal they stand right below


class Look(NamedTuple):
    """How to draw: the root on top, merged from the leaves, the title, the width (None: that of the window)."""

    inverted: bool = False
    reverse: bool = False
    title: str | None = None
    width_px: int | None = None


class View(NamedTuple):
    """What to show: the format, the number of rows (None: not given, 0: all), the look of a picture, details of the run.

    `wall`: elapsed time was asked for. `has_options`: whether the command has --no-idle.
    """

    format: str
    terminal: bool = False
    top: int | None = None
    look: Look = Look()
    verbose: bool = False
    wall: bool = False
    has_options: bool = True


def look_of(options: Mapping[str, Any], format_: str, top: int | None) -> Look:
    """The look by --inverted, --reverse, --title and --width. Raises UsageError for options without effect in the format."""
    for name, formats in _GOES_WITH.items():
        if options[name] and format_ not in formats:
            files = " or ".join(f"-o x.{'speedscope.json' if each == 'speedscope' else each}" for each in formats)
            raise UsageError(f"--{name} goes with {files}, not with -f {format_}")
    if options["diff"] is not None and top:
        raise UsageError("-n leaves stacks out, which --diff would show as gone: leave one of them out")
    return Look(options["inverted"], options["reverse"], options["title"], options["width"])


def profile_report(about: About, facts: Facts, how: Weighing, profile: Profile, view: View) -> Report:
    """The stacks, heaviest or hottest first."""
    deadlocks = [sentences.reported_deadlock(links) for links in profile.deadlocks]
    taken = _taken(facts, how, profile, view)
    if view.format in PICTURES:
        return _picture_report(about, facts, how, profile, view, deadlocks, taken)
    if view.format in _LINES:
        footer = [*pools.lines(profile.pools, terminal=False), *(f"opskit: {line}" for line in deadlocks), *taken]
        lines = list(_lines(how, profile, view))
        report = Report(about, footer=footer, findings=profile.findings)
        if view.format == "text":
            return report._replace(text=lambda: lines)
        return report._replace(draw=lambda _: "".join(f"{line}\n" for line in lines))
    from opskit.render.views.jpmp.document import DOCUMENT, Shown, stack_columns

    if facts.cpu is not None and how.on_cpu:
        return _cpu_report(about, facts, facts.cpu, how, profile, view, taken)
    if view.format == "json":
        ordered = stacks.heaviest_first(profile.selected, how.by)
    else:
        from opskit.analysis.jpmp.recursion import folded

        ordered = stacks.hottest_first(folded(profile.selected), how.by)
        ordered = [stack for stack in ordered if how.by == "samples" or round(stacks.weight_of(stack, how.by))]

    collects = any(finding.code == "jvm-gc-cpu" for finding in profile.findings)  # then Java code is not the answer
    with_idle = stacks.select(profile.stacks, how.selection._replace(idle=True))
    rows = ordered[: view.top or None]
    if view.format != "json" and how.by == "samples":
        rows = _with_largest(rows, folded(with_idle))
    hidden = 0 if how.selection.idle else sum(stack.idle and not stack.deadlocked for stack in with_idle)
    hidden -= sum(stack.idle for stack in rows) if hidden else 0
    listing = _listing(how, profile, view, facts.counted) if view.terminal else None
    columns = stack_columns(profile.stacks, by=how.by, full_names=how.naming.full, counted=facts.counted)
    blocks = [Block(columns, rows, max(len(ordered), len(rows)), listing=listing)] if rows else []
    hides = f"{plural(hidden, 'idle stack')} hidden; --idle shows {'it' if hidden == 1 else 'them'}"
    footer = [*([hides] if hidden else ()), *taken, *flame_graph(facts)]
    if _says_enough(facts, how, profile, view):
        target = shell.operands(*facts.files) if facts.live is None else [facts.live.pid]
        blocks, footer = [], [f"the stacks: {shell.command('opskit', 'jpmp', '-n', 10, *target)}", *taken]
    hottest = (sentences.longest_wait if how.by == "off_cpu_ms" else sentences.hottest)(profile.stacks)
    return Report(
        about,
        blocks,
        verdict=[
            *deadlocks,
            *pools.lines(profile.pools, terminal=view.terminal),
            *([] if hottest else pools.idle_line(profile.pools)),
            *filter(None, [None if collects else hottest]),
            *(
                []
                if rows
                else [sentences.no_stacks(profile.stacks, with_idle, by=how.by, sampled=facts.cpu is not None)]
            ),
        ],
        footer=footer,
        findings=profile.findings,
        document=(DOCUMENT, Shown(facts, how, profile, rows)),
    )


def _taken(facts: Facts, how: Weighing, profile: Profile, view: View) -> list[str]:
    """How the samples or dumps were taken; nothing about saved profiles."""
    if facts.cpu is not None:
        from opskit.render.views.jpmp import cpu_sentences

        return [*cpu_sentences.footer(facts, facts.cpu, profile, how, verbose=view.verbose)]
    if not facts.dumps:
        return []
    by = sentences.by_dumps(facts, how.by, wall=view.wall)
    return [
        *by,
        *sentences.of_load(facts, profile.findings, how.by),
        sentences.taken_line(facts, running=not by, verbose=view.verbose),
    ]


def _cpu_report(
    about: About, facts: Facts, of: CpuProfile, how: Weighing, profile: Profile, view: View, taken: Sequence[str]
) -> Report:
    """Methods and stacks of a CPU profile."""
    from opskit.render.views.jpmp.cpu_profile import blocks
    from opskit.render.views.jpmp.cpu_sentences import verdict
    from opskit.render.views.jpmp.document import DOCUMENT, Shown

    shown = [] if view.format == "json" else blocks(of, how, profile, view)
    rows = stacks.heaviest_first(profile.selected, how.by)[: view.top or None]
    none = [] if rows or not profile.stacks else [sentences.no_stacks(profile.stacks, [], by=how.by)]
    return Report(
        about,
        shown,
        verdict=[*verdict(of, profile), *none],
        footer=[*taken, *flame_graph(facts)],
        findings=profile.findings,
        document=(DOCUMENT, Shown(facts, how, profile, rows, top=view.top)),
    )


def _listing(how: Weighing, profile: Profile, view: View, counted: str) -> Listing:
    from opskit.render.views.jpmp.stack_listing import stack_listing

    whole = how.selection.depth is not None or view.top is not None
    return stack_listing(
        profile.stacks, by=how.by, counted=counted, full_names=how.naming.full, whole=whole, rooted=how.root is not None
    )


def _says_enough(facts: Facts, how: Weighing, profile: Profile, view: View) -> bool:
    """Whether findings about pools stand alone: on a terminal, which has no room for stacks too, unless an option asks for them."""
    asked = view.top is not None or how.root or how.by != "samples" or how.selection != stacks.Selection(idle=False)
    plain = view.terminal and not asked and "-" not in facts.files
    return plain and any(finding.entity.kind == "pool" for finding in profile.findings)


def _with_largest(rows: Sequence[WeightedStack], stacks_: Sequence[WeightedStack]) -> list[WeightedStack]:
    """The rows, with the stack of most samples in the second place where --no-idle, -n or the screen would leave it out."""
    largest = max(
        (stack for stack in stacks_ if stack.frames), key=lambda stack: (stack.samples, not stack.idle), default=None
    )
    if largest is None or any(stack.samples >= largest.samples for stack in rows[:1]):
        return [*rows]
    same = largest.frames, largest.state, largest.idle, largest.container
    others = [stack for stack in rows if (stack.frames, stack.state, stack.idle, stack.container) != same]
    return [*others[:1], largest, *others[1:]]


def _lines(how: Weighing, profile: Profile, view: View) -> Iterable[str]:
    folded, selected = view.format == "folded", profile.selected
    if folded and any(stack.kinds for stack in selected):
        from opskit.render.views.jpmp.picture import with_marks

        selected = with_marks(selected, how.by, reverse=view.look.reverse)
    if view.look.reverse:
        selected = [stack._replace(frames=stack.frames[::-1]) for stack in selected]
    write = sentences.root_first if folded else partial(sentences.leaf_first, full=how.naming.full)
    rows = stacks.lines_by_weight(selected, write, how.by)[: view.top or None]
    return sentences.weighed_lines(rows, folded=folded)


def _picture_report(
    about: About, facts: Facts, how: Weighing, profile: Profile, view: View, deadlocks: list[str], taken: list[str]
) -> Report:
    from opskit.render.views.jpmp import picture

    notes = list(deadlocks)
    idle = sum(stack.samples for stack in profile.stacks if stack.idle and stack.frames)
    if idle and how.by != "cpu_ms":
        share = percent(idle / sum(stack.samples for stack in profile.stacks if stack.frames))
        to_do = "; --no-idle leaves them out" if view.has_options else ""
        left_out = f"are in the picture{to_do}" if how.selection.idle else "are left out"
        notes.append(f"threads that wait for work ({share} of the samples) {left_out}")
    notes += [line.removesuffix(".") for line in taken]
    selected = profile.selected
    if view.top:
        selected = stacks.heaviest_first(selected, how.by)[: view.top]
    drawn, said = picture.draw(
        view.format,
        view.look,
        picture.Drawn(sentences.name(facts), selected, notes),
        None if facts.before is None else picture.Drawn(sentences.name(facts.before), profile.before or ()),
        picture.Unit.of(how.by, facts.counted),
        threads_outermost=how.root is not None,
    )
    footer = [*(f"opskit: {line}" for line in (*said, *deadlocks)), *taken]
    return Report(about, footer=footer, findings=profile.findings, draw=lambda _: drawn)


def locks_report(about: About, facts: Facts, locks: Locks, view: View) -> Report:
    """Deadlocks, then the locks that hold up most threads."""
    from opskit.analysis.jpmp.lock_owners import ASK_FOR_SYNCHRONIZERS
    from opskit.render.views.jpmp.document import DOCUMENT, LOCK_COLUMNS, Shown, deadlock_line
    from opskit.render.views.jpmp.lock_listing import DETAIL, lock_lines

    found = locks.contention
    said = {finding.summary for finding in locks.findings}
    found_as = {finding.entity.id for finding in locks.findings}
    dead = {link.lock for deadlock in found.deadlocks for link in deadlock.links}
    most = 1 if view.format == "table" else _LOCK_SENTENCES
    shown = [lock for lock in found.locks[:_LOCK_SENTENCES] if lock.key not in dead][:most]
    lines = [lock_line(lock) for lock in shown if lock_name(lock.key) not in found_as]
    lines += [line for line in (waits_line(group, facts) for group in locks.by_stack) if line not in said]
    verdict = [*map(deadlock_line, found.deadlocks), *lines]
    # A pinned thread may wait for a monitor: JDK 21 to 23 do not tell.
    pinned = any(finding.code == "virtual-threads-pinned" for finding in locks.findings)
    if not (found.locks or found.deadlocks or locks.by_stack or pinned):
        verdict = [sentences.no_waits(facts, known=locks.known, unseen=locks.unseen)]
        verdict += pools.lines(locks.pools, terminal=view.terminal)
    footer = [
        *sentences.of_load(facts, locks.findings),
        sentences.taken_line(facts, running=False, verbose=view.verbose),
    ]
    if locks.unseen is not None and (found.locks or found.deadlocks):
        footer.insert(0, sentences.virtual_unknown(facts, locks.unseen))
    if facts.live is not None and any(lock.owner_unknown in ASK_FOR_SYNCHRONIZERS for lock in found.locks):
        finds = shell.command("opskit", "jpmp", facts.live.pid, "--locks", "--synchronizers")
        if all(finding.next != finds for finding in locks.findings):
            footer.append(f"owners of java.util.concurrent locks: {finds}")
    rows = list(found.locks)
    if view.format == "table":
        rows.sort(key=lambda lock: lock.key not in dead)
    least = sum(lock.key in dead for lock in rows)
    listing = Listing(lambda lock, detail, width: lock_lines(lock, dead, detail, width), DETAIL, least)
    chosen = rows[: max(view.top, least if view.format == "table" else 0) if view.top else None]
    blocks = [Block(LOCK_COLUMNS, chosen, len(rows), listing=listing)] if rows else []
    document = DOCUMENT, Shown(facts, locks=locks, top=view.top)
    return Report(about, blocks, verdict=verdict, footer=footer, findings=locks.findings, document=document)
