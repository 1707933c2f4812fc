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
    title: str, profiles: Mapping[str, Iterable[tuple[Path, int]]], version: str, *, cpu_us: bool = False
) -> str:
    """The file. `profiles`: by name, stacks (outermost frame first) and their weights: samples, or CPU us."""
    numbers: dict[str, int] = {}
    shown = [_profile(name, sorted(stacks), numbers, cpu_us=cpu_us) for name, stacks in profiles.items()]
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
    name: str, rows: Sequence[tuple[Path, int]], numbers: dict[str, int], *, cpu_us: bool
) -> dict[str, object]:
    weights = [weight / 1000 if cpu_us else weight for _, weight in rows]
    return {
        "type": "sampled",
        "name": printable(name),
        "unit": "milliseconds" if cpu_us else "none",
        "startValue": 0,
        "endValue": sum(weight for _, weight in rows) / 1000 if cpu_us else sum(weights),
        "samples": [[numbers.setdefault(frame, len(numbers)) for frame in path] for path, _ in rows],
        "weights": weights,
    }
