"""Markdown to paste into a ticket: head, command line, verdict, tables, footer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.escape import markdown, printable
from opskit.render.views.findings import finding_lines

if TYPE_CHECKING:
    from opskit.analysis.finding import Finding
    from opskit.render.report import Block, Report


def render(report: Report) -> str:
    """The document, ended by a newline."""
    parts = [markdown(report.about.line), f"    $ {printable(report.about.command_line)}"]
    parts += [f"**{markdown(line)}**" for line in report.verdict]
    parts += ["\n".join(_finding(finding) for finding in report.findings)] if report.findings else []
    listed = "\n".join(report.listed()).strip("\n") if report.listed else ""
    parts += [listed] if listed else []
    parts += [_block(block) for block in report.blocks]
    parts += [markdown(line) for line in (*report.summary, *report.footer)]
    return "\n\n".join(parts) + "\n"


def _finding(finding: Finding) -> str:
    head, *commands = finding_lines([finding])
    return "\n".join([f"- {markdown(head)}", *(f"    - {markdown(line.strip())}" for line in commands)])


def _block(block: Block[Any]) -> str:
    lines = [f"### {markdown(block.title)}\n"] if block.title else []
    lines.append("| " + " | ".join(markdown(column.title) for column in block.columns) + " |")
    lines.append("|" + "|".join(" ---: " if column.right else " --- " for column in block.columns) + "|")
    for row in block.rows:
        cells = ("<br>".join(map(markdown, column.lines(row))) for column in block.columns)
        lines.append(f"| {' | '.join(cells)} |")
    if block.total > len(block.rows):
        lines.append(f"\n… {block.total - len(block.rows):,} more")
    return "\n".join(lines)
