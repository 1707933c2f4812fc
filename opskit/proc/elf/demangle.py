"""Short names of functions: C++ and Rust names demangled, without parameters, template arguments and the compiler's suffixes."""

from __future__ import annotations

from opskit.proc.elf.itanium import Itanium
from opskit.proc.elf.mangled_text import NotMangled
from opskit.proc.elf.rust_names import legacy_rust, rust

_LONGEST = 8192
# What compilers append to a part of a function, or to a copy of it: parse.part.0, scan.cold, sum.llvm.123, runtime.memmove.abi0.
_CLONES = frozenset(
    ("abi0", "actor", "cleanup", "clone", "cold", "constprop", "destroy", "isra", "llvm", "localalias", "lto_priv", "part", "resume",
     "specialized")
)  # fmt: skip


def demangle(raw: str) -> str:
    """The short name of a symbol; the symbol itself where it is not mangled."""
    bare = _without_clone(raw)
    if len(bare) > _LONGEST or not bare.startswith(("_Z", "_R", "__Z", "___Z")):
        return bare
    try:
        if bare.startswith("_R"):
            return rust(bare)
        found = legacy_rust(bare)
        return cxx(bare) if found is None else found
    except (NotMangled, IndexError, ValueError, KeyError):
        return bare


def _without_clone(raw: str) -> str:
    found, dot, suffix = raw.rpartition(".")
    while dot and found and (suffix in _CLONES or (suffix and not suffix.strip("0123456789"))):
        raw = found
        found, dot, suffix = raw.rpartition(".")
    return raw


def cxx(raw: str) -> str:
    """The name of a C++ function, `Class::function`. Raises NotMangled, and IndexError for a substitution of nothing."""
    name = Itanium(raw)
    name.expect("_Z")
    found = name.encoding()
    following = name.peek()
    # Types of parameters follow, or a clone's suffix. They may have something that is not known here.
    if not following.isalnum() and following not in ("", ".", "@"):
        raise NotMangled
    return found
