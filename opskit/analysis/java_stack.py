"""A Java stack in a few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_NAMED = 5


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


def path_in_java(frames: Sequence[str]) -> str:
    """`RandomAccessFile.read0 < RandomAccessFile.readLine < Loader.load`: from the innermost method out to the first that is not the JDK's."""
    from opskit.analysis.jpmp.frames import frame_name
    from opskit.analysis.jpmp.libraries import application_frame, method_name

    names = [frame_name(frame) for frame in frames]
    ours = application_frame(names)
    end = names.index(ours) + 1 if ours in names else len(names)
    methods = list(dict.fromkeys(method_name(name) for name in names[:end]))
    if len(methods) > _MOST_NAMED:
        methods[_MOST_NAMED - 2 : -1] = ["…"]
    return " < ".join(methods)
