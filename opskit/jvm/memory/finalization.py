"""How many objects wait for their finalizer, as jdk.internal.misc.VM (JDK 8: sun.misc.VM) counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.memory import i32

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.jvm.memory.objects import Objects

FINALIZATION_CLASSES = ("jdk/internal/misc/VM", "sun/misc/VM")
_COUNT = "finalRefCount"


def read_pending_finalizations(objects: Objects, found: Mapping[str, int]) -> int | None:
    """The number; None: it cannot be read now. `found`: those of FINALIZATION_CLASSES that are loaded."""
    klass = next((found[name] for name in FINALIZATION_CLASSES if name in found), 0)
    field = objects.classes.fields(klass).get(_COUNT) if klass else None
    mirror = objects.mirror(klass, is_current=True) if klass else 0
    if field is None or not field.is_static or not mirror:
        return None
    count = i32(objects.memory, mirror + field.offset)
    return count if count is not None and count >= 0 else None
