r"""Class names: as the JVM writes them and as people do, whose they are, and which of them are one and the same.

[Ljava.lang.String;                          java.lang.String[]
[[I                                          int[][]
com.acme.App$$Lambda$14/0x0000000800c03000   a lambda: another number in each run
jdk.proxy2.$Proxy31                          a proxy: numbered in the order they were needed
<methodKlass>                                the VM's own (JDK 5 to 7)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_PRIMITIVES = {
    "Z": "boolean",
    "B": "byte",
    "C": "char",
    "D": "double",
    "F": "float",
    "I": "int",
    "J": "long",
    "S": "short",
}
_LETTERS = {name: letter for letter, name in _PRIMITIVES.items()}
_JDK = ("java.", "javax.", "jdk.", "sun.", "com.sun.", "org.w3c.dom.", "org.xml.sax.", "org.ietf.jgss.", "org.omg.")

# What is made anew in each run under a name that counts or hashes: * stands for the part that differs.
_GENERATED = tuple(
    (re.compile(pattern), folded)
    for pattern, folded in (
        (r"\$\$Lambda(?:\$\d+)?(?:/(?:0x)?[0-9a-f]+)?(?=;?$)", r"$$Lambda/*"),
        (r"/(?:0x[0-9a-f]+|\d+)(?=;?$)", r"/*"),  # hidden classes, and the anonymous ones before JDK 15
        (r"\b(Generated(?:Method|Constructor|SerializationConstructor)Accessor)\d+(?=;?$)", r"\1*"),
        (r"\bjdk\.proxy\d+\.(?=\$Proxy\d)", r"jdk.proxy*."),
        (r"(\$Proxy)\d+(?=;?$)", r"\1*"),
        (r"(\$\$\w*(?:CGLIB|Guice)\w*\$\$(?:FastClass\$\$)?)[0-9a-f]+", r"\1*"),
        (r"(\$(?:ByteBuddy|HibernateProxy|MockitoMock|auxiliary)\$)\w+(?=;?$)", r"\1*"),
        (r"(_\$\$_(?:javassist_|jvst))[0-9a-f_]+(?=;?$)", r"\1*"),
    )
)
_HINTS = ("$$", "/", "Accessor", "$Proxy", "$ByteBuddy$", "$HibernateProxy$", "$MockitoMock$", "$auxiliary$")


def fold(name: str) -> str:
    """One name for all that is generated alike: lambdas of a class, hidden classes, proxies, reflection's accessors."""
    if not any(hint in name for hint in _HINTS):
        return name
    for pattern, folded in _GENERATED:
        name = pattern.sub(folded, name)
    return name


def fold_module(module: str) -> str:
    """The JDK makes modules for proxies and numbers them."""
    return re.sub(r"^jdk\.proxy\d+$", "jdk.proxy*", module)


def generated_among(names: Collection[str]) -> set[str]:
    """Those of many names that `fold` might change: a search through all of them at once, then only where it hits."""
    everything = "\n".join(names)
    return {name for hint in _HINTS if hint in everything for name in names if hint in name}


def to_readable(name: str) -> str:
    """`[B` as `byte[]`, `[Ljava.lang.String;` as `java.lang.String[]`; any other name as it is."""
    element = name.lstrip("[")
    depth = len(name) - len(element)
    if not depth:
        return name
    if len(element) > 2 and element[0] == "L" and element[-1] == ";":
        element = element[1:-1]
    elif element in _PRIMITIVES:
        element = _PRIMITIVES[element]
    else:
        return name
    return element + "[]" * depth


def to_internal(name: str) -> str:
    """`byte[]` as `[B`, `java.lang.String[]` as `[Ljava.lang.String;`; any other name as it is."""
    element = name
    while element.endswith("[]"):
        element = element[:-2]
    depth = (len(name) - len(element)) // 2
    return "[" * depth + _LETTERS.get(element, f"L{element};") if depth else name


def is_array(name: str) -> bool:
    """Whether this is an array's class."""
    return name.startswith("[")


def is_vm(name: str) -> bool:
    """Whether these are the VM's own objects: `<methodKlass>`, and `* MethodKlass` of the serviceability agent."""
    return name.startswith(("<", "* "))


def is_jdk(name: str) -> bool:
    """Whether the JDK brings this class (or the array's element)."""
    return _element(name).startswith(_JDK)


def is_application(name: str) -> bool:
    """Whether this is a class of the application or of a library it brought: no array, not the JDK's, not the VM's."""
    return not name.startswith(("[", "<", "* ", *_JDK))


def package(name: str) -> str:
    """The package; of an array, its element's. What has none is named in parentheses."""
    if is_vm(name):
        return "(the VM's own)"
    element = _element(name)
    if is_array(name) and element in _PRIMITIVES:
        return "(arrays of primitives)"
    return element.rpartition(".")[0] or "(default package)"


def _element(name: str) -> str:
    element = name.lstrip("[")
    return element[1:] if element is not name and element[:1] == "L" and element.endswith(";") else element
