r"""Class names: JVM and source notation, folding of generated names, package, owner. Pure.

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
    from collections.abc import Sequence

VM = "(the VM's own)"  # package and module of such a class
_PRIMITIVES = dict(zip("ZBCDFIJS", ("boolean", "byte", "char", "double", "float", "int", "long", "short")))
_LETTERS = {name: letter for letter, name in _PRIMITIVES.items()}
_JDK = ("java.", "javax.", "jdk.", "sun.", "com.sun.", "org.w3c.dom.", "org.xml.sax.", "org.ietf.jgss.", "org.omg.")

# Names with a counter or hash that differs in each run: a part of such names, the pattern, the folded name (* stands
# for the part that differs).
_END = r"(?=;?$)"  # of the name, or of the element's name of an array
_GENERATED = (
    ("$$Lambda", r"\$\$Lambda(?:\$\d+)?(?:[/+](?:0x)?[0-9a-f]+)?" + _END, "$$Lambda/*"),
    ("/", r"/(?:0x[0-9a-f]+|\d+)" + _END, "/*"),  # hidden classes, and the anonymous ones before JDK 15
    ("+0x", r"\+0x[0-9a-f]+" + _END, "/*"),  # the same, as the serviceability agent writes it
    *(
        (f"Generated{kind}Accessor", rf"Generated{kind}Accessor\d+" + _END, f"Generated{kind}Accessor*")
        for kind in ("Method", "Constructor", "SerializationConstructor")
    ),
    ("jdk.proxy", r"\bjdk\.proxy\d+(?=\.\$Proxy\d|$)", "jdk.proxy*"),
    ("$Proxy", r"\$Proxy\d+" + _END, "$Proxy*"),
    ("CGLIB$$", r"(\$\$\w*CGLIB\$\$(?:FastClass\$\$)?)[0-9a-f]+", r"\1*"),
    ("ByGuice$$", r"(\$\$\w+ByGuice\$\$)[0-9a-f]+", r"\1*"),
    ("$ByteBuddy$", r"\$ByteBuddy\$\w+" + _END, "$ByteBuddy$*"),
    ("$HibernateProxy$", r"\$HibernateProxy\$\w+" + _END, "$HibernateProxy$*"),
    ("$MockitoMock$", r"\$MockitoMock\$\w+" + _END, "$MockitoMock$*"),
    ("$auxiliary$", r"\$auxiliary\$\w+" + _END, "$auxiliary$*"),
    ("_$$_", r"(_\$\$_(?:javassist_|jvst))[0-9a-f_]+" + _END, r"\1*"),
)


def fold(name: str) -> str:
    """The common name of generated classes: lambdas of a class, hidden classes, proxies, reflection accessors."""
    for hint, pattern, folded in _GENERATED:
        if hint in name:
            name = re.sub(pattern, folded, name)
    return name


def fold_all(names: Sequence[str], everything: str) -> dict[str, str]:
    """The names that `fold` changes, with their folded names. `everything`: all names in one text."""
    changed: dict[str, str] = {}
    for hint, pattern, folded in _GENERATED:
        if hint in everything:
            hit = [name for name in names if hint in name]
            before = [changed.get(name, name) for name in hit] if changed else hit
            # One text for all, one line each: no pattern crosses a line.
            after = re.sub(pattern, folded, "\n".join(before), flags=re.MULTILINE).split("\n")
            changed.update((name, new) for name, old, new in zip(hit, before, after) if new != old)
    return changed


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
    end = len(name)
    while name.endswith("[]", 0, end):
        end -= 2
    element, depth = name[:end], (len(name) - end) // 2
    return "[" * depth + _LETTERS.get(element, f"L{element};") if depth else name


def is_vm(name: str) -> bool:
    """Whether these are objects of the VM: `<methodKlass>`, or `* MethodKlass` of the serviceability agent."""
    return name.startswith(("<", "* "))


def any_vm(everything: str) -> bool:
    """Whether one of many names in a text may be the VM's own."""
    return "<" in everything or "* " in everything


def is_application(name: str) -> bool:
    """Whether the class belongs to the application or its libraries: no array, not the JDK's or the VM's."""
    return not name.startswith(("[", "<", "* ", *_JDK))


def package(name: str) -> str:
    """The package; of an array, that of its elements. In parentheses where there is none."""
    if is_vm(name):
        return VM
    element = name.lstrip("[")
    if element != name and element in _PRIMITIVES:
        return "(arrays of primitives)"
    if element != name and element.endswith(";"):
        element = element.removeprefix("L")
    return element.rpartition(".")[0] or "(default package)"
