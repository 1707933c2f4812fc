"""com.sun.management:type=HotSpotDiagnostic: the flags that may be set in the running JVM."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from opskit.collect.jmx.made import MEMORY, bean
from opskit.errors import NotSupported
from opskit.jvm.memory.flags import read_manageable_flags
from opskit.redact import redact_value

if TYPE_CHECKING:
    from opskit.collect.jmx.facts import Bean, Value
    from opskit.collect.jmx.sources import Sources
    from opskit.jvm.memory.flags import FlagValue, Manageable

# JVMFlagOrigin: the names of com.sun.management.VMOption.Origin.
_ORIGINS = ("DEFAULT", "VM_CREATION", "ENVIRON_VAR", "CONFIG_FILE", "MANAGEMENT", "ERGONOMIC", "ATTACH_ON_DEMAND")


def flag_beans(sources: Sources) -> list[Bean]:
    """The bean; none without rights to the JVM's memory."""
    if sources.memory is None:
        return []
    try:
        structs, _ = sources.opened
        found = sources.worked_out("manageable_flags", "list[Manageable]", partial(read_manageable_flags, structs))
    except NotSupported as error:
        sources.missing.append(f"com.sun.management:type=HotSpotDiagnostic DiagnosticOptions: {error}")
        return []
    options: Value = [_option(each) for each in found] or None
    made = bean("com.sun.management:type=HotSpotDiagnostic", (MEMORY, {"DiagnosticOptions": options}))
    return [made] if made.attributes else []


def _option(flag: Manageable) -> Value:
    origin = _ORIGINS[flag.origin] if flag.origin < len(_ORIGINS) else "OTHER"
    return {"name": flag.name, "value": redact_value(flag.name, _text(flag.value)), "writeable": True, "origin": origin}


def _text(value: FlagValue) -> str:
    """As Java writes it."""
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)
