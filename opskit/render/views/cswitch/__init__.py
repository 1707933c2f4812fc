"""How waits for a CPU are shown: of the threads of a process, of the processes of the machine, of its CPUs."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Import DOCUMENT, the fields of the JSON object, when it is used: -f text does not."""
    if name != "DOCUMENT":
        raise AttributeError(name)
    from opskit.render.views.cswitch.document import DOCUMENT

    return DOCUMENT
