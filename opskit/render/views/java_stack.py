"""A Java stack in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def where_in_java(frames: Sequence[str]) -> str:
    """`NioSocketImpl.read, from OrderDao.load`: the innermost method, and the one nearest to it that is not the JDK's; empty without frames."""
    if not frames:
        return ""
    from opskit.analysis.jpmp.frames import frame_name
    from opskit.analysis.jpmp.libraries import application_frame, method_name

    names = [frame_name(frame) for frame in frames]
    ours = application_frame(names)
    caller = f", from {method_name(ours)}" if ours is not None and ours != names[0] else ""
    return f"{method_name(names[0])}{caller}"
