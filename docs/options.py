"""Write each command's options into its page, from the program itself.

python docs/options.py            rewrite the tables between the markers
python docs/options.py --check    exit with 1 if a page is out of date (the tests run this)
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from opskit.catalog import COMMANDS
from opskit.cli import group

PAGES = Path(__file__).resolve().parent / "commands"
MARKED = re.compile(r"<!-- options -->\n.*?<!-- /options -->\n", re.DOTALL)


def table(command: click.Command) -> str:
    """The options of a command as a Markdown table between its markers."""
    lines = ["<!-- options -->", "| option | meaning |", "| --- | --- |"]
    for parameter in command.params:
        if not isinstance(parameter, click.Option) or parameter.hidden:
            continue
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        value = "" if parameter.is_flag else f" {_value(parameter)}"
        lines.append(f"| {names}{value} | {(parameter.help or '').replace('|', '&#124;')} |")
    lines += ["| `-h`, `--help` | Show the command's help. |", "<!-- /options -->", ""]
    return "\n".join(lines)


def _value(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return " &#124; ".join(map(str, option.type.choices))
    return (option.metavar or option.type.name.upper()).replace("|", "&#124;")


def page_of(module: str) -> Path:
    """The page of a command's module."""
    return PAGES / f"{module.replace('_', '-')}.md"


def updated() -> dict[Path, str]:
    """Every page with its options as they are in the program."""
    context = click.Context(group)
    pages = {}
    for entry in COMMANDS:
        path = page_of(entry.module)
        command = group.get_command(context, entry.name)
        if command is None:
            raise SystemExit(f"{entry.name}: no such command")
        text = path.read_text(encoding="utf-8")
        if not MARKED.search(text):
            raise SystemExit(f"{path}: no <!-- options --> … <!-- /options --> to fill")
        fresh = table(command)
        pages[path] = MARKED.sub(lambda _, fresh=fresh: fresh, text, count=1)
    return pages


def main() -> int:
    """Write or check."""
    stale = {path: text for path, text in updated().items() if path.read_text(encoding="utf-8") != text}
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.name} is out of date: run python docs/options.py")
        return 1 if stale else 0
    for path, text in stale.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
