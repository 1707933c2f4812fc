"""The pictures of `opskit jpmp`: flame graphs, differences, speedscope files; their titles and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import __version__
from opskit.errors import UsageError
from opskit.quantities import agreeing, plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.jpmp.flame_tree import FlameTree, Path
    from opskit.jvm.profiles import WeightedStack
    from opskit.render.views.jpmp.report import Look


class Drawn(NamedTuple):
    """Stacks to draw, their name, and notes about them."""

    name: str
    stacks: Sequence[WeightedStack]
    notes: Sequence[str] = ()


def draw(
    format_: str, look: Look, now: Drawn, before: Drawn | None, *, on_cpu: bool, threads_outermost: bool
) -> tuple[str, list[str]]:
    """The file, and sentences about what it leaves out. Raises UsageError if there is nothing to draw."""
    paths = _paths(now.stacks, look, on_cpu=on_cpu)
    paths_before = [] if before is None else _paths(before.stacks, look, on_cpu=on_cpu)
    if not paths and not paths_before:
        weight = "CPU time" if on_cpu else "frames"
        raise UsageError(f"nothing to draw: {now.name} has no stack with {weight} that the options leave in")
    title = _title(look, now, before, on_cpu=on_cpu)
    if format_ == "speedscope":
        from opskit.render.pictures import speedscope

        profiles = {now.name if before is None else f"{now.name} (after)": paths}
        if before is not None:
            profiles[f"{before.name} (before)"] = paths_before
        return speedscope.document(title, profiles, __version__, cpu_us=on_cpu), []
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
        [*_reading(each, now, before, tree, stacks, on_cpu=on_cpu), *now.notes, *said] for each in (look, turned)
    )
    picture = flame_layout.Picture(
        tree,
        title,
        notes,
        notes_turned,
        unit="CPU ms" if on_cpu else "samples",
        per_unit=1000 if on_cpu else 1,
        kinds=frame_kinds.kinds_of(
            {frame.name for frame in tree.frames},
            {stack.frames[-1] for stack in now.stacks if stack.frames},
            threads_outermost=threads_outermost,
        ),
        inverted=look.inverted,
        width_px=look.width_px,
        before=None if before is None else before.name,
        after=now.name,
    )
    return flamegraph.draw(picture), said


def _nothing_in_common(
    now: Drawn, before: Drawn, tree: FlameTree, paths: Sequence[object], paths_before: Sequence[object]
) -> list[str]:
    if tree.in_common and paths_before:
        return []
    empty = before.name if not paths_before else now.name if not paths else None
    why = "are they of the same program?" if empty is None else f"{empty} has no stacks at all"
    return [f"{now.name} and {before.name} have no frame in common: {why}"]


def _paths(stacks: Sequence[WeightedStack], look: Look, *, on_cpu: bool) -> list[tuple[Path, int]]:
    """Each stack from the outermost frame inwards, and its weight: samples or CPU us."""
    weighed = ((stack.frames, round(1000 * (stack.cpu_ms or 0)) if on_cpu else stack.samples) for stack in stacks)
    return [(frames if look.reverse else frames[::-1], weight) for frames, weight in weighed if frames and weight > 0]


def _title(look: Look, now: Drawn, before: Drawn | None, *, on_cpu: bool) -> str:
    unit = "CPU ms" if on_cpu else ""
    if before is None and unit:
        return f"{unit} of {now.name}" if look.title is None else f"{look.title} ({unit})"
    if before is None:
        return now.name if look.title is None else look.title
    return ": ".join(filter(None, (look.title, unit, f"{now.name} (after) against {before.name} (before)")))


def _reading(look: Look, now: Drawn, before: Drawn | None, tree: FlameTree, stacks: int, *, on_cpu: bool) -> list[str]:
    """How much there is, and how to read the picture."""

    def amount(weight: int) -> str:
        return f"{weight / 1000:,.0f} CPU ms" if on_cpu else f"{weight:,} samples"

    width = "CPU ms" if on_cpu else "samples"
    place = f"a frame is {'below' if look.inverted else 'above'} its caller"
    if look.reverse:
        place = f"merged from the leaves: a frame's callers are {'below' if look.inverted else 'above'} it"
    if before is None:
        return [f"{amount(tree.total)} in {plural(stacks, 'stack')}; widths are {width}; {place}"]
    return [
        f"widths are {width} of {now.name} ({amount(tree.total)}); {place}",
        f"colours are changes of each frame's own share since {before.name} ({amount(tree.total_before)})",
    ]
