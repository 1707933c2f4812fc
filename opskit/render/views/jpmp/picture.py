"""The pictures of `opskit jpmp`: flame graphs, differences, speedscope files; their titles and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import __version__
from opskit.analysis.jpmp.stacks import Weight, weight_of, with_weight
from opskit.errors import UsageError
from opskit.jvm.profiles import WeightedStack
from opskit.quantities import agreeing, plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.jpmp.flame_tree import FlameTree, Path
    from opskit.render.views.jpmp.report import Look


class Unit(NamedTuple):
    """What the widths are: `by` says which weight of a stack; `per_unit` of its integers are one `name`."""

    by: Weight
    name: str
    per_unit: int
    speedscope: str

    @classmethod
    def of(cls, by: Weight, counted: str = "samples") -> Unit:
        """The unit of a weight. `counted`: what samples count, where async-profiler weighs them."""
        if by == "samples":
            return cls(by, counted, 1, {"bytes": "bytes", "ns": "nanoseconds"}.get(counted, "none"))
        return cls(by, "CPU ms" if by == "cpu_ms" else "ms off CPU", 1000, "milliseconds")


class Drawn(NamedTuple):
    """Stacks to draw, their name, and notes about them."""

    name: str
    stacks: Sequence[WeightedStack]
    notes: Sequence[str] = ()


def draw(
    format_: str, look: Look, now: Drawn, before: Drawn | None, unit: Unit, *, threads_outermost: bool
) -> tuple[str, list[str]]:
    """The file, and sentences about what it leaves out. Raises UsageError if there is nothing to draw."""
    paths, paths_before = _both(now, before, look, unit)
    if not paths and not paths_before:
        weight = {"cpu_ms": "CPU time", "off_cpu_ms": "time off the CPUs"}.get(unit.by, "frames")
        raise UsageError(f"nothing to draw: {now.name} has no stack with {weight} that the options leave in")
    title = _title(look, now, before, unit)
    if format_ == "speedscope":
        from opskit.render.pictures import speedscope

        profiles = {now.name if before is None else f"{now.name} (after)": paths}
        if before is not None:
            profiles[f"{before.name} (before)"] = paths_before
        return speedscope.document(title, profiles, __version__, unit.speedscope, unit.per_unit), []
    from opskit.analysis.jpmp import flame_tree, frame_kinds
    from opskit.render.pictures import flame_layout, flamegraph

    tree = flame_tree.compare(paths_before, paths, flame_layout.NARROWEST_PX / flame_layout.drawn_px(look.width_px))
    said = [] if before is None else _nothing_in_common(now, before, tree, paths, paths_before)
    if tree.left_out:
        are = agreeing(tree.left_out, "is", "are")
        said.append(f"{plural(tree.left_out, 'frame')} {are} narrower than 0.1 px and left out")
    tree = flame_tree.thin(tree, flame_layout.bytes_of(tree, look.width_px), flame_layout.MOST_BYTES)
    if tree.thinned:
        said.append(
            f"{tree.thinned:,} {'more ' if tree.left_out else ''}frames are left out (the narrowest, of equal ones those "
            f"farthest from the root): with them the picture would be larger than {flame_layout.MOST_BYTES / 1e6:.0f} MB; "
            "--include shows a part whole"
        )

    stacks = len({path for path, _ in paths})
    turned = look._replace(inverted=not look.inverted)
    notes, notes_turned = (
        [*_reading(each, now, before, tree, stacks, unit), *now.notes, *said] for each in (look, turned)
    )
    picture = flame_layout.Picture(
        tree,
        title,
        notes,
        notes_turned,
        unit=unit.name,
        per_unit=unit.per_unit,
        kinds=frame_kinds.kinds_of(
            {frame.name for frame in tree.frames},
            {stack.frames[-1] for stack in now.stacks if stack.frames},
            threads_outermost=threads_outermost,
            threads={frame for stack in now.stacks for frame in _labels(stack)},
        ),
        inverted=look.inverted,
        width_px=look.width_px,
        before=None if before is None else before.name,
        after=now.name,
    )
    return flamegraph.draw(picture), said


def _both(
    now: Drawn, before: Drawn | None, look: Look, unit: Unit
) -> tuple[list[tuple[Path, int]], list[tuple[Path, int]]]:
    """The paths now and before. Those of two profiles are made alike: the same names, and native frames in both or in neither."""
    if before is None:
        return paths_of(now.stacks, unit, reverse=look.reverse), []
    return (
        _unmarked(_like(before.stacks, now.stacks), look, unit),
        _unmarked(_like(now.stacks, before.stacks), look, unit),
    )


def _nothing_in_common(
    now: Drawn, before: Drawn, tree: FlameTree, paths: Sequence[object], paths_before: Sequence[object]
) -> list[str]:
    if tree.in_common and paths_before:
        return []
    empty = before.name if not paths_before else now.name if not paths else None
    why = "are they of the same program?" if empty is None else f"{empty} has no stacks at all"
    return [f"{now.name} and {before.name} have no frame in common: {why}"]


def paths_of(stacks: Sequence[WeightedStack], unit: Unit, *, reverse: bool) -> list[tuple[Path, int]]:
    """Each stack from the outermost frame inwards, with marks where the kinds of its frames are known, and its weight."""
    weighed = _weighed(stacks, unit)
    if not any(stack.kinds for stack, _ in weighed):
        return [(stack.frames if reverse else stack.frames[::-1], weight) for stack, weight in weighed]
    from opskit.analysis.jpmp.frame_marks import marked

    step = 1 if reverse else -1
    return marked((stack.frames[::step], stack.kinds[::step], weight) for stack, weight in weighed)


def with_marks(stacks: Sequence[WeightedStack], by: Weight, *, reverse: bool) -> list[WeightedStack]:
    """The stacks with the marks of their frames in the names, leaf first; only frames and weight are kept."""
    unit = Unit.of(by)
    return [
        with_weight(WeightedStack(path if reverse else path[::-1]), by, weight / unit.per_unit)
        for path, weight in paths_of(stacks, unit, reverse=reverse)
    ]


def _like(other: Sequence[WeightedStack], stacks: Sequence[WeightedStack]) -> Sequence[WeightedStack]:
    """The stacks without native frames, where the other profile (thread dumps) has none of them."""
    from opskit.analysis.jpmp.frame_marks import NOT_NATIVE, kinds_by_marks, without_native

    known = [stack if stack.kinds else stack._replace(kinds=kinds_by_marks(stack.frames)) for stack in stacks]
    native = {name for stack in known for name, kind in zip(stack.frames, stack.kinds) if kind not in NOT_NATIVE}
    if not native or any(name in native for stack in other for name in stack.frames):
        return stacks
    return [stack._replace(frames=without_native(stack.frames, stack.kinds)) for stack in known]


def _unmarked(stacks: Sequence[WeightedStack], look: Look, unit: Unit) -> list[tuple[Path, int]]:
    """As paths_of, without marks: a method is the same after it was compiled."""
    from opskit.analysis.jpmp.frame_marks import unmarked

    return [
        (tuple(map(unmarked, stack.frames if look.reverse else stack.frames[::-1])), weight)
        for stack, weight in _weighed(stacks, unit)
    ]


def _weighed(stacks: Sequence[WeightedStack], unit: Unit) -> list[tuple[WeightedStack, int]]:
    """The stacks with frames and weight; the weight as an integer: samples, us of CPU time, or bytes."""
    weights = ((stack, round(unit.per_unit * weight_of(stack, unit.by))) for stack in stacks if stack.frames)
    return [(stack, weight) for stack, weight in weights if weight > 0]


def _labels(stack: WeightedStack) -> Iterator[str]:
    """The names of threads in the stack."""
    return (frame for frame, kind in zip(stack.frames, stack.kinds) if kind == "label")


def _title(look: Look, now: Drawn, before: Drawn | None, unit: Unit) -> str:
    named = "" if unit.name == "samples" else unit.name
    if before is None and named:
        return f"{named} of {now.name}" if look.title is None else f"{look.title} ({named})"
    if before is None:
        return now.name if look.title is None else look.title
    return ": ".join(filter(None, (look.title, named, f"{now.name} (after) against {before.name} (before)")))


def _reading(look: Look, now: Drawn, before: Drawn | None, tree: FlameTree, stacks: int, unit: Unit) -> list[str]:
    """How much there is, and how to read the picture."""

    def amount(weight: int) -> str:
        return f"{weight / unit.per_unit:,.0f} {unit.name}"

    width = unit.name
    place = f"a frame is {'below' if look.inverted else 'above'} its caller"
    if look.reverse:
        place = f"merged from the leaves: a frame's callers are {'below' if look.inverted else 'above'} it"
    if before is None:
        return [f"{amount(tree.total)} in {plural(stacks, 'stack')}; widths are {width}; {place}"]
    return [
        f"widths are {width} of {now.name} ({amount(tree.total)}); {place}",
        f"colours are changes of each frame's own share since {before.name} ({amount(tree.total_before)})",
    ]
