"""Profiles in speedscope's JSON file format, for https://www.speedscope.app and other tools that read it.

The format: https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources, file-format-schema.json there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from opskit.escape import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.analysis.jpmp.flame_tree import Path

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def document(
    title: str, profiles: Mapping[str, Iterable[tuple[Path, int]]], version: str, unit: str = "none", per_unit: int = 1
) -> str:
    """The file. `profiles`: by name, stacks (outermost frame first) and their weights, `per_unit` of which are a `unit` of the format."""
    numbers: dict[str, int] = {}
    shown = [_profile(name, sorted(stacks), numbers, unit, per_unit) for name, stacks in profiles.items()]
    file = {
        "$schema": _SCHEMA,
        "name": printable(title),
        "exporter": f"opskit@{version}",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": printable(name)} for name in numbers]},
        "profiles": shown,
    }
    return json.dumps(file, ensure_ascii=False, separators=(",", ":")) + "\n"


def _profile(
    name: str, rows: Sequence[tuple[Path, int]], numbers: dict[str, int], unit: str, per_unit: int
) -> dict[str, object]:
    weights = [weight if per_unit == 1 else weight / per_unit for _, weight in rows]
    total = sum(weight for _, weight in rows)
    return {
        "type": "sampled",
        "name": printable(name),
        "unit": unit,
        "startValue": 0,
        "endValue": total if per_unit == 1 else total / per_unit,
        "samples": [[numbers.setdefault(frame, len(numbers)) for frame in path] for path, _ in rows],
        "weights": weights,
    }
