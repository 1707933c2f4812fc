"""Moments that the user names, of --since and --until: a date, or a number of seconds."""

from __future__ import annotations

from datetime import datetime, timezone

from opskit.quantities import seconds_of
from opskit.records import NamedTuple


class Moment(NamedTuple):
    """`at_s` on one of a stamp's clocks: "uptime", "utc" or "local"."""

    at_s: float
    clock: str


def moment_of(text: str) -> Moment | None:
    """`2026-01-31T10:05[:30][+0100]`, or an uptime: `90s`, `5m`, `2h`, a number of seconds; None for anything else."""
    text = text.strip()
    if len(text) < 10 or text[4:5] != "-":
        uptime = seconds_of(text)
        return None if uptime is None else Moment(uptime, "uptime")
    plain = text.replace(",", ".").replace(" ", "T", 1)
    plain = plain[:-1] + "+0000" if plain.endswith("Z") else plain
    for shape in ("%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"):
        for zone in ("", "%z"):
            try:
                found = datetime.strptime(plain, shape + zone)  # noqa: DTZ007  (then the log's own zone is meant)
            except ValueError:
                continue
            if found.tzinfo is None:
                return Moment(found.replace(tzinfo=timezone.utc).timestamp(), "local")
            return Moment(found.timestamp(), "utc")
    return None
