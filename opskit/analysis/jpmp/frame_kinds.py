"""What kind of code a frame is: it chooses the colour of a flame graph. Pure.

com.example.Shop.serve                        the application
java.util.HashMap.get, java/util/HashMap.get  the JDK; other profilers write slashes, or Ljava/util/HashMap;::get
com.example.Shop$$Lambda.run                  generated while running: lambdas, proxies, accessors
[libjvm.so], JavaThread::run, epoll_wait      native
tcp_sendmsg_[k]                               the kernel, by its mark
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal["thread", "application", "jdk", "generated", "inlined", "native", "kernel"]

_MARK = re.compile(r"_\[([kij01])\]$")
_BEFORE_THE_CLASS = re.compile(r"^(?:[\w.$-]+@[\w.+-]+/|\w*//|L(?=[\w$/]+;))")
_JDKS = re.compile(r"(?:java|javax|jdk|sun|j|com[./]sun)[./]")
_JAVA = re.compile(r"(?:[\w$-]+[./])+[\w$<>]+(?:;?(?:::|\.)[\w$<>-]+)?(?:\([^()]*\))?")
_GENERATED = re.compile(
    r"\$\$Lambda|LambdaForm\$|Generated(?:Method|Constructor|Serialization)Accessor|\$Proxy\d|\$\$EnhancerBy|\$\$FastClass"
    r"|CGLIB|ByteBuddy|\$HibernateProxy|\$MockitoMock|\$\$_(?:jvst|javassist)|_\$\$_|Holder\.(?:invoke|newInvoke)\w*|/0x[0-9a-f]+"
)
_THREADS_TID = re.compile(r"\[.*\btid=\d+\]")
_IN_NO_THREADS_NAME = re.compile(r"^\[|[();:<>]")
_IN_A_THREADS_NAME = re.compile(r"[ #]|-\d")
_LIBRARY = re.compile(r"\[.*\]|\S+\.so(?:[.\d]*)?(?:\+0x[0-9a-f]+)?|0x[0-9a-f]+")


def is_java(frame: str) -> bool:
    """Whether the name is a Java method's: package and class before it, or a mark that says so."""
    mark = _MARK.search(frame)
    if mark is not None:
        return mark[1] != "k"
    return _LIBRARY.fullmatch(frame) is None and _JAVA.fullmatch(_BEFORE_THE_CLASS.sub("", frame)) is not None


def kind_of(frame: str, *, outermost: bool = False, among_java: bool = True) -> Kind:
    """The kind of the frame.

    `outermost`: it may be a thread's name. `among_java`: False in a profile without Java methods, where every name
    without a library or a mark is the application's.
    """
    mark = _MARK.search(frame)
    if mark is not None and mark[1] == "k":
        return "kernel"
    if mark is not None and mark[1] == "i":
        return "inlined"
    name = _BEFORE_THE_CLASS.sub("", frame if mark is None else frame[: mark.start()])
    if mark is None and _LIBRARY.fullmatch(frame):
        return "thread" if outermost and _is_thread(frame) else "native"
    if _GENERATED.search(name):
        return "generated"
    if mark is not None or _JAVA.fullmatch(name):
        return "jdk" if _JDKS.match(name) else "application"
    if outermost and _is_thread(frame):
        return "thread"
    return "native" if among_java else "application"


def _is_thread(frame: str) -> bool:
    """Whether it looks like a thread's name: `[… tid=42]`, or words or a number with nothing of a method's name."""
    if _IN_NO_THREADS_NAME.search(frame):
        return _THREADS_TID.fullmatch(frame) is not None
    return _IN_A_THREADS_NAME.search(frame) is not None


def kinds_of(names: Iterable[str], outermost: Iterable[str], *, threads_outermost: bool = False) -> dict[str, Kind]:
    """The kind of each name. `outermost`: the names that begin stacks; they are threads' where `threads_outermost`."""
    known = set(names)
    first = set(outermost)
    among_java = any(map(is_java, known))
    return {
        name: "thread"
        if threads_outermost and name in first
        else kind_of(name, outermost=name in first, among_java=among_java)
        for name in known
    }
