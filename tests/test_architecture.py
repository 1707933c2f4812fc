"""Rules that import contracts cannot express: which modules do I/O, how long a file may be, what no module does."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "opskit"

MOST_LINES, MOST_LINES_OF_A_COMMAND, MOST_LINES_OF_A_FUNCTION = 400, 150, 60
# I/O, clocks and heavy libraries stay out of the layers that parse and decide.
FORBIDDEN = {
    "os",
    "pathlib",
    "socket",
    "time",
    "click",
    "rich",
    "matplotlib",
    "psutil",
    "subprocess",
    "shutil",
    "tempfile",
}
OPENERS = {
    "proc/fd_directory.py",
    "proc/file_id.py",
    "proc/fs.py",
    "proc/held_file.py",
    "proc/kernel/affinity.py",
    "proc/kernel/children.py",
    "proc/kernel/hiccups.py",
    "proc/kernel/http_post.py",
    "proc/kernel/perf_event.py",
    "proc/recorded/unpacked.py",
    "proc/treefs.py",
    "proc/user_files.py",
    "proc/kernel/adjtimex.py",
    "proc/kernel/clock_reads.py",
    "proc/kernel/kmsg.py",
    "proc/kernel/lost_time.py",
    "proc/kernel/names.py",
    "proc/kernel/network_namespace.py",
    "proc/kernel/sntp.py",
    "proc/kernel/sock_diag.py",
    "proc/kernel/switch_cost.py",
    "proc/kernel/syscalls.py",
    "proc/recorded/fs.py",  # the texts of errors alone; it opens nothing
    "proc/resolve.py",
    "jvm/attach/client.py",
    "jvm/attach/deadline.py",
    "jvm/attach/listener.py",
    "jvm/attach/starter.py",
    "jvm/attach/trigger.py",
}


def modules(*layers):
    """The files of these layers, or all."""
    return [
        each for each in sorted(PACKAGE.rglob("*.py")) if not layers or each.relative_to(PACKAGE).parts[0] in layers
    ]


class Source(NamedTuple):
    """What the rules are about, of one file: a syntax tree of each would fill the memory of the worker."""

    lines: list[str]
    functions: list[tuple[str, int]]  # name, lines
    imports: set[str]
    calls: list[tuple[int, str, bool]]  # line, name, whether it is a plain name
    caught: list[tuple[int, str]]  # line, class


def parsed(path):
    text = path.read_text(encoding="utf-8")
    found = Source(text.splitlines(), [], set(), [], [])
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.imports.add(node.module)
            if node.module == "opskit" or node.module.startswith("opskit."):
                found.imports.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.FunctionDef):
            found.functions.append((node.name, (node.end_lineno or 0) - node.lineno + 1))
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            found.calls.append((node.lineno, name, isinstance(node.func, ast.Name)))
        elif isinstance(node, ast.ExceptHandler):
            found.caught.append((node.lineno, ast.unparse(node.type) if node.type else ""))
    return found


@pytest.fixture(scope="module")
def sources():
    """Each file of opskit, parsed once."""
    return {path: parsed(path) for path in modules()}


def test_files_and_functions_are_short(sources):
    """At most 400 lines a file, 150 a command, 60 a function."""
    for path in modules():
        relative = str(path.relative_to(PACKAGE))
        most = MOST_LINES_OF_A_COMMAND if relative.startswith("commands/") else MOST_LINES
        assert len(sources[path].lines) <= most, relative
        for name, length in sources[path].functions:
            assert length <= MOST_LINES_OF_A_FUNCTION, f"{relative}: {name} has {length} lines"


def test_only_the_openers_do_io(sources):
    """Outside the OPENERS, layers that parse and decide import no I/O, clock or terminal."""
    for path in modules("proc", "jvm", "analysis", "collect"):
        relative = str(path.relative_to(PACKAGE))
        if relative in OPENERS:
            continue
        used = {name.split(".")[0] for name in sources[path].imports} & FORBIDDEN
        assert not used, f"{relative} imports {sorted(used)}"
        calls = {name for _, name, is_plain in sources[path].calls if is_plain}
        assert not calls & {"open", "print", "input"}, relative


def test_only_plot_imports_matplotlib_and_only_render_imports_rich(sources):
    """Each heavy library is imported in one place."""
    for path in modules():
        relative = str(path.relative_to(PACKAGE))
        names = {name.split(".")[0] for name in sources[path].imports}
        assert "matplotlib" not in names or relative == "render/pictures/plot.py", relative
        assert "rich" not in names or relative.startswith("render/"), relative


def test_no_bare_except_and_no_shell(sources):
    """No bare `except Exception` but the one in cli.py that reports a bug, and no shell is ever run."""
    for path in modules():
        place = path.relative_to(PACKAGE).name
        for line, caught in sources[path].caught:
            assert caught != "", f"{place}:{line}"
            assert caught != "Exception" or place in ("cli.py", "every_command.py"), f"{place}:{line}"
        text = "\n".join(sources[path].lines)
        assert "shell=True" not in text
        assert "os.system" not in text


def test_numbers_in_foreign_text_are_parsed_in_one_place(sources):
    """Outside quantities.py, no isdigit(), isnumeric(), isdecimal(), int() or float() on text: they take `²`, `1_000`, `1e999`.

    int(x) of what is no text is written round(x), x // 1 or bool sums; a line that must have it says `# a number`.
    """
    for path in modules("proc", "jvm"):
        for line, name, is_plain in sources[path].calls:
            assert name not in ("isdigit", "isnumeric", "isdecimal"), f"{path.name}:{line}: {name}()"
            if is_plain and name in ("int", "float"):
                assert "# a number" in sources[path].lines[line - 1], f"{path.name}:{line}: {name}()"
