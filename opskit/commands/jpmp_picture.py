"""The pictures of `opskit jpmp`: flame graphs, differences, speedscope files; their options, titles and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from opskit import __version__
from opskit.commands.shared.output import SUFFIXES, Output
from opskit.errors import UsageError
from opskit.escape import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opskit.analysis import flame_tree as flametree
    from opskit.analysis.stacks import WeightedStack

F = TypeVar("F", bound="Callable[..., Any]")

FORMATS = "svg", "speedscope"
KNOWN_SUFFIXES = {
    ".speedscope.json": "speedscope",
    **SUFFIXES,
    ".folded": "folded",
    ".collapsed": "folded",
    ".svg": "svg",
}
_NARROWEST_PX, _BROADEST_PX = 200, 20_000


class Asked(NamedTuple):
    """What the options say. `before`: the file to compare with."""

    inverted: bool
    reverse: bool
    before: str | None
    title: str | None
    width_px: int | None

    def check(self, format_: str, top: int | None) -> None:
        """Refuse what would have no effect. Raises UsageError."""
        goes_with: Mapping[str, tuple[object, tuple[str, ...]]] = {
            "--inverted": (self.inverted, ("svg",)),
            "--width": (self.width_px, ("svg",)),
            "--title": (self.title, FORMATS),
            "--diff": (self.before, FORMATS),
            "--reverse": (self.reverse, (*FORMATS, "folded")),
        }
        for option, (value, formats) in goes_with.items():
            if value and format_ not in formats:
                files = " or ".join(f"-o x.{'speedscope.json' if each == 'speedscope' else each}" for each in formats)
                raise UsageError(f"{option} goes with {files}, not with -f {format_}")
        if self.before is not None and top:
            raise UsageError("-n leaves stacks out, which --diff would show as gone: leave one of them out")


class Profile(NamedTuple):
    """Stacks to be drawn, what they are called, and what is to be said about them."""

    name: str
    stacks: Sequence[WeightedStack]
    notes: Sequence[str] = ()


def picture_options(function: F) -> F:
    """--inverted, --reverse, --diff, --title and --width."""
    for option in reversed(
        (
            click.option("--inverted", is_flag=True, help="An icicle: the root on top (-o x.svg)."),
            click.option("--reverse", is_flag=True, help="Merge from the leaves: who calls what is hot?"),
            click.option("--diff", metavar="BEFORE", help="What changed since the profile or dumps in this file."),
            click.option("--title", metavar="TEXT", help="The picture's title."),
            click.option(
                "--width",
                type=click.IntRange(_NARROWEST_PX, _BROADEST_PX),
                metavar="PX",
                help="The SVG's width; without it, that of the window.",
            ),
        )
    ):
        function = option(function)
    return function


def emit(
    out: Output, asked: Asked, now: Profile, before: Profile | None, *, on_cpu: bool, threads_outermost: bool
) -> None:
    """Draw, write, and say on stderr what the picture leaves out. Raises UsageError where there is nothing to draw."""
    paths = _paths(now.stacks, asked, on_cpu=on_cpu)
    paths_before = [] if before is None else _paths(before.stacks, asked, on_cpu=on_cpu)
    if not paths and not paths_before:
        raise UsageError(
            f"nothing to draw: {now.name} has no stack with {'CPU' if on_cpu else 'frames'} that the options leave in"
        )
    title = _title(asked, now, before, on_cpu=on_cpu)
    if out.format == "speedscope":
        from opskit.render.pictures import speedscope

        profiles = {now.name if before is None else f"{now.name} (after)": paths}
        if before is not None:
            profiles[f"{before.name} (before)"] = paths_before
        out.write(speedscope.document(title, profiles, __version__, cpu_us=on_cpu))
        return
    from opskit.analysis import flame_tree as flametree
    from opskit.analysis import frame_kinds as framekind
    from opskit.render.pictures import flamegraph

    tree = flametree.compare(paths_before, paths, flamegraph.narrowest_share(asked.width_px))
    said = []
    if before is not None and not (tree.in_common and paths_before):
        empty = before.name if not paths_before else now.name if not paths else None
        said.append(
            f"{now.name} and {before.name} have no frame in common: "
            + ("are they of the same program?" if empty is None else f"{empty} has no stacks at all")
        )
    if tree.left_out:
        frames = f"{tree.left_out:,} frame{'s are' if tree.left_out > 1 else ' is'}"
        said.append(f"{frames} narrower than 0.1 px and left out")
    tree = flametree.thin(tree, flamegraph.bytes_of(tree, asked.width_px), flamegraph.MOST_BYTES)
    if tree.thinned:
        said.append(
            f"{tree.thinned:,} {'more ' if tree.left_out else ''}frames are left out (the narrowest, of equal ones those "
            f"farthest from the root): with them the picture would be larger than {flamegraph.MOST_BYTES / 1e6:.0f} MB; --include shows a part whole"
        )
    stacks = len({path for path, _ in paths})

    def notes(turned: bool) -> list[str]:
        return [
            *_reading(asked._replace(inverted=asked.inverted != turned), now, before, tree, stacks, on_cpu=on_cpu),
            *now.notes,
            *said,
        ]

    picture = flamegraph.Picture(
        tree=tree,
        title=title,
        notes=notes(turned=False),
        notes_turned=notes(turned=True),
        unit="CPU ms" if on_cpu else "samples",
        per_unit=1000 if on_cpu else 1,
        kinds=framekind.kinds_of(
            {frame.name for frame in tree.frames},
            {stack.frames[-1] for stack in now.stacks if stack.frames},
            threads_outermost=threads_outermost,
        ),
        inverted=asked.inverted,
        width_px=asked.width_px,
        before=None if before is None else before.name,
        after=now.name,
    )
    out.write(flamegraph.draw(picture))
    for line in said:
        click.echo(f"opskit: {printable(line)}", err=True)


def _paths(stacks: Sequence[WeightedStack], asked: Asked, *, on_cpu: bool) -> list[tuple[flametree.Path, int]]:
    """Each stack as the picture grows, and its weight: samples or CPU us."""
    weighed = ((stack.frames, round(1000 * (stack.cpu_ms or 0)) if on_cpu else stack.samples) for stack in stacks)
    return [
        (frames if asked.reverse else tuple(reversed(frames)), weight)
        for frames, weight in weighed
        if frames and weight > 0
    ]


def _title(asked: Asked, now: Profile, before: Profile | None, *, on_cpu: bool) -> str:
    unit = "CPU ms" if on_cpu else ""
    if before is None:
        if asked.title is None:
            return f"{unit} of {now.name}" if unit else now.name
        return f"{asked.title} ({unit})" if unit else asked.title
    which = f"{now.name} (after) against {before.name} (before)"
    return ": ".join(filter(None, (asked.title, unit, which)))


def _reading(
    asked: Asked, now: Profile, before: Profile | None, tree: flametree.FlameTree, stacks: int, *, on_cpu: bool
) -> list[str]:
    """How much there is, and how the picture is to be read."""
    if on_cpu:
        amount, width = f"{tree.total / 1000:,.0f} CPU ms", "CPU ms"
    else:
        amount, width = f"{tree.total:,} samples", "samples"
    if asked.reverse:
        place = f"merged from the leaves: a frame's callers {'hang below' if asked.inverted else 'stand on'} it"
    else:
        place = f"a frame {'hangs below' if asked.inverted else 'stands on'} its caller"
    if before is None:
        return [f"{amount} in {stacks:,} {'stack' if stacks == 1 else 'stacks'}; widths are {width}; {place}"]
    once = f"{tree.total_before / 1000:,.0f} CPU ms" if on_cpu else f"{tree.total_before:,} samples"
    return [
        f"widths are {width} of {now.name} ({amount}); {place}",
        f"colours are changes of each frame's own share since {before.name} ({once})",
    ]
