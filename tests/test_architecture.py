"""Rules that import contracts cannot express: which modules do I/O, how long a file may be, what no module does."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

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
    "proc/treefs.py",
    "proc/user_files.py",
    "proc/kernel/adjtimex.py",
    "proc/kernel/clock_reads.py",
    "proc/kernel/kmsg.py",
    "proc/kernel/lost_time.py",
    "proc/kernel/network_namespace.py",
    "proc/kernel/sntp.py",
    "proc/kernel/sock_diag.py",
    "proc/kernel/switch_cost.py",
    "proc/kernel/syscalls.py",
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


@cache
def nodes(path):
    """Every node of a file's syntax tree."""
    return [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]


def imports(path):
    """Every module that a file imports, also inside functions, by its full name."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module == "opskit" or node.module.startswith("opskit."):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_files_and_functions_are_short():
    """At most 400 lines a file, 150 a command, 60 a function."""
    for path in modules():
        relative = str(path.relative_to(PACKAGE))
        most = MOST_LINES_OF_A_COMMAND if relative.startswith("commands/") else MOST_LINES
        assert len(path.read_text(encoding="utf-8").splitlines()) <= most, relative
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef):
                length = (node.end_lineno or 0) - node.lineno + 1
                assert length <= MOST_LINES_OF_A_FUNCTION, f"{relative}: {node.name} has {length} lines"


def test_only_the_openers_do_io():
    """Outside the OPENERS, layers that parse and decide import no I/O, clock or terminal."""
    for path in modules("proc", "jvm", "analysis", "collect"):
        relative = str(path.relative_to(PACKAGE))
        if relative in OPENERS:
            continue
        used = {name.split(".")[0] for name in imports(path)} & FORBIDDEN
        assert not used, f"{relative} imports {sorted(used)}"
        calls = {node.func.id for node in nodes(path) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        assert not calls & {"open", "print", "input"}, relative


def test_only_plot_imports_matplotlib_and_only_render_imports_rich():
    """Each heavy library is imported in one place."""
    for path in modules():
        relative = str(path.relative_to(PACKAGE))
        names = {name.split(".")[0] for name in imports(path)}
        assert "matplotlib" not in names or relative == "render/pictures/plot.py", relative
        assert "rich" not in names or relative.startswith("render/"), relative


def test_no_bare_except_and_no_shell():
    """No bare `except Exception` but the one in cli.py that reports a bug, and no shell is ever run."""
    for path in modules():
        source = path.read_text(encoding="utf-8")
        for node in nodes(path):
            if isinstance(node, ast.ExceptHandler):
                caught = ast.unparse(node.type) if node.type else ""
                place = path.relative_to(PACKAGE).name
                assert caught != "", f"{place}:{node.lineno}"
                assert caught != "Exception" or place == "cli.py", f"{place}:{node.lineno}"
        assert "shell=True" not in source
        assert "os.system" not in source


def test_numbers_in_foreign_text_are_parsed_in_one_place():
    """Outside quantities.py, no isdigit(), isnumeric(), isdecimal(), int() or float() on text: they take `²`, `1_000`, `1e999`.

    int(x) of what is no text is written round(x), x // 1 or bool sums; a line that must have it says `# a number`.
    """
    for path in modules("proc", "jvm"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in nodes(path):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            assert name not in ("isdigit", "isnumeric", "isdecimal"), f"{path.name}:{node.lineno}: {name}()"
            if isinstance(node.func, ast.Name) and name in ("int", "float"):
                assert "# a number" in lines[node.lineno - 1], f"{path.name}:{node.lineno}: {name}()"
