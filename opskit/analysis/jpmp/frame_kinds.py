"""The kind of code of a frame, which sets its colour in a flame graph. Pure.

com.example.Shop.serve                        the application
java.util.HashMap.get, java/util/HashMap.get  the JDK; some profilers write slashes, or Ljava/util/HashMap;::get
com.example.Shop$$Lambda.run                  generated at run time: lambdas, proxies, accessors
[libjvm.so], JavaThread::run, epoll_wait      native
tcp_sendmsg_[k]                               the kernel, by the mark [k]
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal["thread", "application", "jdk", "generated", "inlined", "native", "kernel"]

_MARK = re.compile(r"_\[([kij01])\]$")
_BEFORE_THE_CLASS = re.compile(r"^(?:[\w.$-]+@[\w.+-]+/|\w*//|L(?=[\w$/]+;))")
_JDK = re.compile(r"(?:java|javax|jdk|sun|j|com[./]sun)[./]")
_JAVA = re.compile(r"(?:[\w$-]+[./])+[\w$<>]+(?:;?(?:::|\.)[\w$<>-]+)?(?:\([^()]*\))?")
_GENERATED = re.compile(
    r"\$\$Lambda|LambdaForm\$|Generated(?:Method|Constructor|Serialization)Accessor|\$Proxy\d|\$\$EnhancerBy|\$\$FastClass"
    r"|CGLIB|ByteBuddy|\$HibernateProxy|\$MockitoMock|\$\$_(?:jvst|javassist)|_\$\$_|Holder\.(?:invoke|newInvoke)\w*|/0x[0-9a-f]+"
)
_THREAD_TID = re.compile(r"\[.*\btid=\d+\]")
_NOT_IN_THREAD_NAMES = re.compile(r"^\[|[();:<>]")
_IN_THREAD_NAMES = re.compile(r"[ #]|-\d")
_CLONE = re.compile(r"\.(?:constprop|part|isra|cold|lto_priv)(?:\.\d+)*$")  # of a function, made by the compiler
_LIBRARY = re.compile(r"\[.*\]|\S+\.so(?:[.\d]*)?(?:\+0x[0-9a-f]+)?|0x[0-9a-f]+")


def is_java(frame: str) -> bool:
    """Whether the name is a Java method: with package and class, or a mark of one."""
    mark = _MARK.search(frame)
    if mark is not None:
        return mark[1] != "k"
    if _LIBRARY.fullmatch(frame) or _CLONE.search(frame):
        return False
    return _JAVA.fullmatch(_BEFORE_THE_CLASS.sub("", frame)) is not None


def kind_of(frame: str, *, outermost: bool = False, among_java: bool = True) -> Kind:
    """The kind of the frame. `outermost`: it may be a thread name. `among_java`: whether the profile has Java methods."""
    mark = _MARK.search(frame)
    if mark is not None and mark[1] in "ki":
        return "kernel" if mark[1] == "k" else "inlined"
    name = _BEFORE_THE_CLASS.sub("", frame if mark is None else frame[: mark.start()])
    if mark is None and _LIBRARY.fullmatch(frame):
        return "thread" if outermost and _is_thread(frame) else "native"
    if _GENERATED.search(name):
        return "generated"
    if mark is not None or (_JAVA.fullmatch(name) and not _CLONE.search(name)):
        return "jdk" if _JDK.match(name) else "application"
    if outermost and _is_thread(frame):
        return "thread"
    return "native" if among_java else "application"


def _is_thread(frame: str) -> bool:
    """Whether it looks like a thread name: `[… tid=42]`, or words or a number and no part of a method name."""
    if _NOT_IN_THREAD_NAMES.search(frame):
        return _THREAD_TID.fullmatch(frame) is not None
    return _IN_THREAD_NAMES.search(frame) is not None


def kinds_of(
    names: Iterable[str], outermost: Iterable[str], *, threads_outermost: bool = False, threads: Iterable[str] = ()
) -> dict[str, Kind]:
    """The kind of each name. `outermost`: the names that begin stacks; with `threads_outermost` they are threads, as `threads` are."""
    known = set(names)
    first = set(outermost)
    among_java = any(map(is_java, known))
    kinds = {name: kind_of(name, outermost=name in first, among_java=among_java) for name in known}
    named = {*threads, *(first if threads_outermost else ())}
    return {**kinds, **dict.fromkeys(named & known, "thread")}
