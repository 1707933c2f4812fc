"""Only opskit.shell makes commands for the user to type: no f-string, %, .format(), + or join() does."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import pytest
from eachof import each_of

PACKAGE = Path(__file__).resolve().parent.parent / "opskit"
MAKERS = {"command", "quote"}  # any text may include their result
EXEMPT = "# no command: "  # on the line, followed by the reason

KNOWN = """
apt awk bash bunzip2 bzcat bzip2 cat chgrp chmod chown chrt cp crictl ctr curl cut dash dd df dmesg docker du echo
env find findmnt flock free fuser gdb getcap grep gunzip gzip head ionice ip jattach jcmd jhsdb jinfo jmap jps
jstack jstat kill killall kubectl ln ls lsns lsof mkdir mkfifo mount mv nice nohup nsenter opskit perf pgrep pidof
pip pkill pmap podman prlimit ps python readlink realpath renice rm rmdir runuser sed setcap setfacl setpriv sh
sleep sort ss ssh stat strace su sudo swapoff swapon sync sysctl systemctl systemd-run tail tar taskset tee timeout
top touch tr truncate udevadm ulimit umount uniq unlink unshare unxz unzip unzstd update-alternatives vi vmstat
watch xargs xz xzcat zcat zgrep zstd zstdcat
"""
# These continue a sentence: `the kill of {pid}`, `sync did not end within {seconds} s`.
PROSE = """
a about after again all also an and any are as at be because been before but by can cannot could did do does end
ended ends for from gave gives had has have how if in into is it its made makes may more must no none not of off on
once only or out over shows since so takes than that the their them then there these they this those to was were
what when where which while who whoever whose will with within without would you your
"""
HOLE = "\0"
_PROSE = frozenset(PROSE.split())
_START = rf"(?:^|[\s(`\"'{HOLE}])"
_COMMAND = re.compile(rf"{_START}(?:{'|'.join(map(re.escape, KNOWN.split()))})(?=[ \t])")
_END = re.compile(r"[;,:.)]?\s+(?=\()|[;,:)](?:\s|$)|[.?!](?:\s|$)|\n|`")  # of a command inside a text
_SHELL_SYNTAX = re.compile(r"\s(?:\||\|\||&&|2?>>?|<)\s?")


_WITHOUT_TEXT = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop)


def children(node):
    """The nodes right below, without those that can hold no text; kept, since each is asked for several times."""
    found = getattr(node, "below", None)
    if found is None:
        found = node.below = [each for each in ast.iter_child_nodes(node) if not isinstance(each, _WITHOUT_TEXT)]
    return found


def walk(node):
    """A node and all below it, in no order."""
    todo = [node]
    while todo:
        each = todo.pop()
        yield each
        todo += children(each)


class Texts:
    """Every text that an expression of a module can make, with a hole for each value: (line, text)."""

    def __init__(self, tree):
        self.found = []
        self.scopes = [self._names_of(tree)]
        self.returns = {
            node.name: [each.value for each in walk(node) if isinstance(each, ast.Return)]
            for node in tree.body
            if isinstance(node, ast.FunctionDef)
        }
        self._inner = set()
        self.visit(tree)

    @staticmethod
    def _names_of(scope):
        """The values assigned to each local name; names that are assigned elsewhere are left out."""
        values, todo = {}, [*children(scope)]
        while todo:
            node = todo.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                continue
            todo += children(node)
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                targets, value = node.targets[0], node.value
                if isinstance(targets, ast.Tuple):
                    given = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(targets.elts) else []
                    pairs = itertools.zip_longest(targets.elts, given)
                else:
                    pairs = [(targets, value)]
            elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
                pairs = [(node.target, node.value)]
            elif isinstance(node, ast.AugAssign):
                pairs = [(node.target, None)]
            else:
                continue
            for target, each in pairs:
                if isinstance(target, ast.Name):
                    values.setdefault(target.id, []).append(each)
        return values

    def _look_up(self, name):
        """The expressions that a name stands for; None if unknown."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name] if all(scope[name]) else None
        return None

    def visit(self, node):
        """Look at a node and all below it."""
        if isinstance(node, ast.FunctionDef):
            self._visit_function(node)
        elif isinstance(node, ast.AugAssign):
            self._visit_augmented(node)
        elif not isinstance(node, (ast.Constant, ast.Name)):
            self._visit_any(node)

    def _visit_function(self, node):
        self.scopes.append(
            self._names_of(node) | {each.arg: [None] for each in walk(node.args) if isinstance(each, ast.arg)}
        )
        self._visit_any(node)
        self.scopes.pop()

    def _visit_augmented(self, node):
        begun = self.scopes[-1].get(getattr(node.target, "id", None), []) if isinstance(node.op, ast.Add) else []
        for value in filter(None, begun):
            texts = self._together("", [self.texts(value), self.texts(node.value)])
            self.found += [(node.lineno, text) for text in texts if HOLE in text]
        self._visit_any(node)

    def _visit_any(self, node):
        if isinstance(node, ast.expr) and id(node) not in self._inner and self._is_text(node):
            self._inner.update(map(id, walk(node)))
            self.found += [(node.lineno, text) for text in dict.fromkeys(self.texts(node)) if HOLE in text]
            # What is inside a hole is text of its own.
            for each in walk(node):
                if isinstance(each, ast.Call) and not self._is_text(each):
                    for argument in (*each.args, *(keyword.value for keyword in each.keywords)):
                        self._inner.difference_update(map(id, walk(argument)))
        for each in children(node):
            self.visit(each)

    def _is_text(self, node):
        if isinstance(node, ast.JoinedStr):
            return True
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Mod):
                return isinstance(node.left, (ast.Constant, ast.JoinedStr)) and isinstance(self._first(node.left), str)
            return isinstance(node.op, ast.Add) and any(
                isinstance(each, ast.JoinedStr) or (isinstance(each, ast.Constant) and isinstance(each.value, str))
                for each in walk(node)
            )
        return self._is_join(node) or self._is_format(node)

    @staticmethod
    def _first(node):
        return node.value if isinstance(node, ast.Constant) else ""

    @staticmethod
    def _is_join(node):
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "join"
            and isinstance(node.func.value, ast.Constant)
            and isinstance(node.func.value.value, str)
        )

    @staticmethod
    def _is_format(node):
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "format"
            and isinstance(node.func.value, (ast.Constant, ast.JoinedStr))
        )

    def texts(self, node, depth=0):
        """The texts of an expression: constants, and a hole for everything else."""
        if isinstance(node, ast.Constant):
            return [str(node.value)]
        if self._is_made(node):
            return ["…"]
        if depth > 12:
            return [HOLE]
        if isinstance(node, ast.JoinedStr):
            return self._together("", [self.texts(each, depth + 1) for each in node.values])
        if isinstance(node, ast.FormattedValue):
            return self.texts(node.value, depth + 1) if node.conversion == -1 and node.format_spec is None else [HOLE]
        if isinstance(node, ast.IfExp):
            return [*self.texts(node.body, depth + 1), *self.texts(node.orelse, depth + 1)]
        if isinstance(node, ast.BoolOp):
            return [text for each in node.values for text in self.texts(each, depth + 1)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._together("", [self.texts(node.left, depth + 1), self.texts(node.right, depth + 1)])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return [re.sub(r"%[-#0 +]*[\d*.]*[a-zA-Z]", HOLE, text) for text in self.texts(node.left, depth + 1)]
        if self._is_format(node):
            return [re.sub(r"\{[^{}]*\}", HOLE, text) for text in self.texts(node.func.value, depth + 1)]
        if self._is_join(node):
            parts = self._elements(node.args[0]) if node.args else None
            if parts is None:
                return [HOLE]
            return self._together(node.func.value.value, [self.texts(each, depth + 1) for each in parts])
        if isinstance(node, ast.Name):
            values = self._look_up(node.id)
            if values:
                return [text for value in values for text in self.texts(value, depth + 3)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            given = [text for value in self.returns.get(node.func.id, []) for text in self.texts(value, depth + 6)]
            if given and not any(HOLE in text for text in given):
                return given
        return [HOLE]

    def _elements(self, node):
        if isinstance(node, ast.Name):
            values = self._look_up(node.id)
            node = values[0] if values and len(values) == 1 else None
        if not isinstance(node, (ast.List, ast.Tuple)):
            return None
        return [each.value if isinstance(each, ast.Starred) else each for each in node.elts]

    @staticmethod
    def _is_made(node):
        """Whether it is a call of opskit.shell, which quotes every name."""
        if not isinstance(node, ast.Call):
            return False
        if isinstance(node.func, ast.Attribute):
            return node.func.attr in MAKERS and isinstance(node.func.value, ast.Name) and node.func.value.id == "shell"
        return isinstance(node.func, ast.Name) and node.func.id in MAKERS

    @staticmethod
    def _together(between, parts):
        return [between.join(each) for each in itertools.islice(itertools.product(*parts), 64)]


def commands_with_holes(text):
    """Yield the parts of a text that look like a command with a value in it."""
    for found in _COMMAND.finditer(text):
        begin = found.start() + (not found[0][0].isalnum())
        end = _END.search(text, found.end())
        part = text[begin : end.start() if end else len(text)]
        before_hole = part.partition(HOLE)[0].split()[1:]
        if HOLE in part and not _PROSE.intersection(before_hole):
            yield part
        elif found[0][:1] == HOLE or (_SHELL_SYNTAX.search(text[:begin]) and HOLE in text[:begin].rpartition(": ")[2]):
            yield text[:begin].rpartition(": ")[2] + part  # `{tool} {name} | opskit safepoints -`


def offences(source):
    """Yield (line, command with its holes) of a module."""
    lines = source.splitlines()
    tree = ast.parse(source)
    for line, text in Texts(tree).found:
        for part in commands_with_holes(text):
            if EXEMPT not in lines[line - 1]:
                yield line, part.replace(HOLE, "{}")
    for node in walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) == "Syntax":
            for argument in node.args:
                if not isinstance(argument, ast.Constant):
                    yield node.lineno, f"Syntax({ast.unparse(argument)})"


@pytest.mark.parametrize(
    "line",
    [
        'x = f"chown {user} {path}"',
        'x = f"why: {why}; chmod go-w {path}"',
        'x = f"run as root: sudo opskit limits {pid}"',
        'x = f"answers nobody; kill -CONT {pid}"',
        'x = "rm %s" % path',
        'x = "rm -- {}".format(path)',
        'x = "rm " + path',
        'x = "run as root: " + ("sudo " if other else "") + "opskit pipes " + str(pid)',
        'x = " ".join(["kill", "-CONT", str(pid)])',
        'x = " ".join(("docker", "update", *options, name))',
        'x = f"echo {wanted} > {source}"',
        'x = f"{tool} {name} | opskit safepoints -"',
        'x = f"zcat {name} 2>/dev/null | opskit safepoints -"',
        'x = f"then systemctl restart {unit}"',
        'x = f"(try `kill {pid}`)"',
        'tool = "kill"\nx = f"{tool} {pid}"',
        'x = "kill "\nx += str(pid)',
        'def tool():\n    return "systemctl --user" if user else "systemctl"\nx = f"{tool()} set-property {unit}"',
        'x = f"{shell.command(*words)}; rm {path}"',
        'x = shell.command("sh", "-c", f"rm {path}")',
        "x = shell.Syntax(name)",
    ],
)  # fmt: skip
def test_what_makes_a_command_is_found(line):
    """Each way to put a value into a command."""
    assert list(offences(line))


@pytest.mark.parametrize(
    "line",
    [
        'x = f"run as root: {shell.command(*words)}"',
        'x = f"sudo {command(*words)}"',
        'fix = shell.command("rm", path)\nx = f"remove it: {fix} (now)"',
        'x = f"echo 512M > /sys/fs/cgroup/memory.reclaim gives back {amount}"'.replace(" gives", ": gives"),
        'x = f"sync did not end within {seconds} s"',
        'x = f"the kill of {pid}"',
        'x = f"opskit: {error}"',
        'x = f"systemctl set-property of {unit}, or whoever manages it"',
        'x = "smaller stacks: ulimit -s 1024 before it is started"',
        'x = f"wrote {path}; opskit limits PID shows more"',
        'x = f"opskit {version}"  # no command: who wrote it',
    ],
)  # fmt: skip
def test_what_makes_none_is_let_pass(line):
    """Calls of opskit.shell, constants, sentences."""
    assert not list(offences(line))


@each_of("path", (path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "shell.py"))
def test_no_text_with_a_value_in_it_is_a_command(path):
    """Outside opskit/shell.py no expression puts a value into a command; any text may include a result of shell.command().

    A line that only looks like a command says `# no command: why`.
    """
    source = path.read_text(encoding="utf-8")
    assert not list(offences(source)), path.name
    assert "shlex" not in source, f"{path.name}: opskit.shell quotes"
