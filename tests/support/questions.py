"""The questions that opskit asks by `Calls.ask`, found in its source: `optional(fs.calls.ask, allowed_cpus, tid)`."""

from __future__ import annotations

import ast
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from opskit.proc.recorded import answers

PACKAGE = Path(__file__).resolve().parent.parent.parent / "opskit"
_QUESTIONS_ELSEWHERE = ("read_rights", "our_", "devices_here", "losses_now", "listener_at", "ask_program")
_ASKS = ("ask", "ask_kernel")
_PASSED_ON = ("optional", "partial")
_KERNEL = "opskit.proc.kernel"
_WORDS = (".ask", "ask_kernel", "proc.kernel", "ProcFS(", *_QUESTIONS_ELSEWHERE)


class Use(NamedTuple):
    """What a file does: the questions that it asks, as (module, name), and calls by line of functions of opskit.proc.kernel and of its own."""

    asked: set[tuple[str, str]]
    called: list[tuple[int, str, str]]  # line, module, name


@cache
def uses() -> dict[str, Use]:
    """Each file of opskit outside proc/kernel that may ask, by its path."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        relative, text = str(path.relative_to(PACKAGE)), path.read_text(encoding="utf-8")
        if not relative.startswith("proc/kernel/") and any(word in text for word in _WORDS):
            found[relative] = _use(ast.parse(text), relative)
    return found


def questions() -> list[tuple[str, str]]:
    """All of them, as (module, name)."""
    return sorted(set().union(*(use.asked for use in uses().values())))


def function(module, name):
    """The function itself."""
    return getattr(import_module(module), name)


def _use(tree, relative) -> Use:
    module = f"opskit.{relative[:-3].replace('/', '.')}"
    known: dict[str, tuple[str, str]] = {}  # by the name that it has in the file
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("opskit."):
            for alias in node.names:
                known[alias.asname or alias.name] = node.module, alias.name
                if node.module == _KERNEL:
                    modules[alias.asname or alias.name] = f"{_KERNEL}.{alias.name}"
    known.update({node.name: (module, node.name) for node in tree.body if isinstance(node, ast.FunctionDef)})

    def named(node) -> tuple[str, str] | None:
        if isinstance(node, ast.Name):
            return known.get(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in modules:
                return modules[node.value.id], node.attr
            if node.value.id == "names" and "names" in known:
                return ".".join(known["names"]), node.attr
        return None

    found = Use(set(), [])
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        place = _question(node)
        if place is not None and (question := named(place)) is not None and question[1].islower():
            found.asked.add(question)
        elif (called := named(node.func)) is not None:
            found.called.append((node.lineno, *called))
    return found


def _question(node: ast.Call):
    """The argument that is the question, where this asks one."""
    arguments = [*node.args]
    if isinstance(node.func, ast.Name) and node.func.id in _PASSED_ON and len(arguments) > 1 and _is_ask(arguments[0]):
        return arguments[1]
    return arguments[0] if arguments and _is_ask(node.func) else None


def _is_ask(node) -> bool:
    return (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")) in _ASKS


_TEXTS = ("", "a", "\udc80\u20ac\x00", "x" * 300)


def any_answer(annotation, chance):
    """Any value of an annotated type."""
    return _made(ast.parse(annotation, mode="eval").body, chance)


def _made(node, chance):
    if isinstance(node, ast.BinOp):
        return _made(chance.choice((node.left, node.right)), chance)
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return _plain(node.id, chance)
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    number = chance.randrange(4)
    if node.value.id == "dict":
        return {_made(inner[0], chance): _made(inner[1], chance) for _ in range(number)}
    if node.value.id == "tuple" and not isinstance(inner[-1], ast.Constant):
        return tuple(_made(each, chance) for each in inner)
    if node.value.id == "tuple" and inner[-1].value is not ...:
        return tuple(_made(each, chance) for each in inner)
    kind = {"list": list, "tuple": tuple, "frozenset": frozenset}[node.value.id]
    return kind(_made(inner[0], chance) for _ in range(number))


def _plain(name, chance):
    if name in answers._RECORDS:
        record = function(answers._RECORDS[name], name)
        return record(*(_made(ast.parse(each, mode="eval").body, chance) for each in record.__annotations__.values()))
    return {
        "bool": lambda: chance.random() < 0.5,
        "int": lambda: chance.choice((0, -1, 7, 1 << 63, chance.getrandbits(40))),
        "float": lambda: chance.choice((0.0, -1.5, 1e-9, 1e300, chance.random())),
        "str": lambda: chance.choice(_TEXTS),
        "bytes": lambda: chance.choice((b"", b"text\n", b"\0\xff", bytes(6000))),
    }[name]()
