"""Expressions in mangled C++ names (Itanium C++ ABI, 5.1.6): parsed to find their end, never shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.elf.itanium_tables import BINARY, CASTS, OF_TYPE, OPERATORS, UNARY
from opskit.proc.elf.mangled_text import DIGITS, NotMangled

if TYPE_CHECKING:
    from opskit.proc.elf.itanium import Itanium


def literal(name: Itanium) -> None:
    """L type value E, or L and a mangled name."""
    with name:
        name.expect("L")
        if name.take("_Z") or name.take("Z"):
            name.whole_function()
            return
        name.type()
        while name.peek() not in ("E", ""):
            name.at += 1
        name.expect("E")


def expression(name: Itanium) -> None:
    """One expression."""
    with name:
        _expression(name)


def _expression(name: Itanium) -> None:
    first, two = name.peek(), name.text[name.at : name.at + 2]
    if first == "L":
        literal(name)
        return
    if first == "T":
        name.type()
        return
    if first in DIGITS or two in ("on", "gs", "sr"):
        _unresolved(name)
        return
    name.at += 2
    if two in ("fp", "fL"):
        _parameter(name, two)
    elif two in OF_TYPE:
        name.type()
    elif two in UNARY:
        if two in ("pp", "mm"):
            name.take("_")
        expression(name)
    elif two in CASTS:
        name.type()
        expression(name)
    elif two in ("dt", "pt"):
        expression(name)
        _unresolved(name)
    else:
        _longer(name, two)


def _longer(name: Itanium, two: str) -> None:
    if two in BINARY:
        expression(name)
        expression(name)
    elif two == "qu":
        for _ in range(3):
            expression(name)
    elif two in ("cl", "il", "cp"):
        _until_end(name)
    elif two == "tl":
        name.type()
        _until_end(name)
    elif two == "cv":
        name.type()
        if name.take("_"):
            _until_end(name)
        else:
            expression(name)
    elif two in ("nw", "na"):
        while not name.take("_"):
            expression(name)
        name.type()
        if name.take("pi"):
            _until_end(name)
        else:
            name.expect("E")
    elif two in ("dl", "da", "sZ"):
        expression(name)
    elif two in ("fl", "fr", "fL", "fR"):
        name.at += 2
        expression(name)
        if two in ("fL", "fR"):
            expression(name)
    elif two in ("rq", "rQ"):
        _requirements(name, two)
    elif two != "tr":
        raise NotMangled


def _until_end(name: Itanium) -> None:
    while not name.take("E"):
        expression(name)


def _parameter(name: Itanium, two: str) -> None:
    """A parameter of the function: fp_, fp0_, fpT, fL0p_."""
    if name.take("T"):
        return
    if two == "fL":
        name.number()
        name.expect("p")
    while name.peek() and name.peek() in "rVK":
        name.at += 1
    if name.peek() != "_":
        name.number()
    name.expect("_")


def _unresolved(name: Itanium) -> None:
    """A name that depends on a template's arguments."""
    name.take("gs")
    if name.take("sr"):
        if name.take("N"):
            name.type()
            while not name.take("E"):
                _simple(name)
        elif name.peek() in DIGITS:
            # By the ABI these are qualifiers up to an E; GCC writes one type.
            name.type()
        else:
            name.type()
    name.take("on")
    name.take("dn")
    _simple(name)


def _simple(name: Itanium) -> None:
    if name.peek() in DIGITS:
        name.take_many(name.number())
    else:
        code = name.next() + name.next()
        if code == "cv":
            name.type()
        elif code not in OPERATORS:
            raise NotMangled
    if name.peek() == "I":
        name.template_arguments()


def _requirements(name: Itanium, two: str) -> None:
    if two == "rQ":
        while not name.take("_"):
            name.type()
    while not name.take("E"):
        kind = name.next()
        if kind == "T":
            name.type()
        elif kind == "X":
            expression(name)
            name.take("N")
            if name.take("R"):
                expression(name)
        else:
            name.expect("Q") if kind != "Q" else None
            expression(name)
