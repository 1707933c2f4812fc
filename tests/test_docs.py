"""The docs describe the program: every command, every option, every finding."""

from __future__ import annotations

import functools
import itertools
import re
from pathlib import Path

import click
import pytest
from eachof import each_of

from opskit import catalog
from opskit.catalog import COMMANDS
from opskit.cli import group

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *DOCS.rglob("*.md")]


def command(entry):
    return group.get_command(None, entry.name)


def page(entry):
    return DOCS / "commands" / f"{entry.module.replace('_', '-')}.md"


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_command_has_its_page_with_every_option(entry):
    """The page names each option of the command, and has the safety table."""
    text = page(entry).read_text(encoding="utf-8")
    for parameter in command(entry).params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            for name in (*parameter.opts, *parameter.secondary_opts):
                assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text), f"{page(entry).name} has no {name}"
    assert "## Safety" in text
    assert "```" in text, "no example"


@pytest.mark.parametrize("entry", [entry for entry in COMMANDS if not entry.hidden], ids=lambda entry: entry.name)
def test_the_readme_shows_every_command(entry):
    """README has an example of each command."""
    assert f"opskit {entry.name}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_page_belongs_to_a_command():
    """Each page describes a command, and each command has a page."""
    assert {path.name for path in (DOCS / "commands").glob("*.md")} == {page(entry).name for entry in COMMANDS}


PARAGRAPH = re.compile(
    r"""
    Severity:[ ](?P<severity>(?:error,[ ]warning[ ]or[ ]note|(?:error|warning|note)(?:[ ]or[ ](?:warning|note))?))[.][ ]
    Class:[ ](?P<class>\w+)[.][ ]Command:[ ]`opskit[ ](?P<command>[a-z-]+)[^`]*`[.]\n\n
    -[ ][*]{2}Meaning[*]{2}:[ ].+?\n
    -[ ][*]{2}Usual[ ]causes[*]{2}(?:,[^:]+)?:[ ].+?\n
    -[ ][*]{2}How[ ]to[ ]confirm[*]{2}:[ ].+?\n
    -[ ][*]{2}Fix[*]{2}:[ ].+?\n
    """,
    re.VERBOSE | re.DOTALL,
)


@functools.cache
def findings():
    """The paragraphs of docs/findings.md: code -> text."""
    text = (DOCS / "findings.md").read_text(encoding="utf-8")
    parts = re.split(r"^#{2,3} (.*)\n\n", text, flags=re.MULTILINE)[1:]
    return {title.strip("`"): body for title, body in zip(parts[::2], parts[1::2]) if title.startswith("`")}


def test_the_findings_are_those_of_the_catalog():
    """Each code has a paragraph, and each paragraph a code."""
    assert findings().keys() == catalog.FINDINGS.keys()


@each_of("code", catalog.FINDINGS)
def test_every_finding_has_its_paragraph(code):
    """Severity, class and command; meaning, usual causes, how to confirm, fix. Class tidy is always a note."""
    text = findings().get(code, "")
    found = PARAGRAPH.match(text)
    assert found, text
    class_, explains = catalog.FINDINGS[code]
    assert found["class"] == class_
    assert (found["severity"] == "note") or class_ != "tidy"
    assert found["command"] in {entry.name for entry in COMMANDS}
    assert set(explains) <= catalog.FINDINGS.keys() - {code}


def test_every_code_is_given_by_the_program_and_no_other():
    """Each code of the catalog is used in a module, and each Finding has a code of the catalog."""
    sources = [
        path.read_text(encoding="utf-8") for path in (ROOT / "opskit").rglob("*.py") if path.name != "catalog.py"
    ]
    unused = {code for code in catalog.FINDINGS if not any(f'"{code}"' in source for source in sources)}
    assert not unused, "nothing gives these"
    given = {
        code
        for source in sources
        for code in re.findall(r"""\b(?:Finding|Rule)\(\s*(?:code=)?["']([a-z0-9-]+)["']""", source)
    }
    assert given <= catalog.FINDINGS.keys()


def test_the_severities_are_those_of_the_program():
    """Where the source names a finding's severity as a constant, its paragraph names it too."""
    paragraphs = findings()
    for path in (ROOT / "opskit" / "analysis").rglob("*.py"):
        for code, severity in re.findall(
            r"""\b(?:Finding|Rule)\(\s*"([a-z0-9-]+)",\s*"(error|warning|note)",""", path.read_text(encoding="utf-8")
        ):
            allowed = re.findall("error|warning|note", paragraphs[code].partition(".")[0])
            assert severity in allowed, f"{path.name}: {code} is {severity}"


def test_examples_name_commands_and_options_that_exist():
    """Each `$ opskit …` line and each `opskit …` in a sentence of the docs names a command, and long options that it has."""
    entries = {entry.name: entry for entry in COMMANDS}
    known = {
        name: {
            "--help",
            *(each for parameter in command(entry).params for each in (*parameter.opts, *parameter.secondary_opts)),
        }
        for name, entry in entries.items()
    }
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        shown = re.findall(r"^\s*\$ (?:sudo )?opskit ([a-z].*)$", text, re.MULTILINE)
        for line in [*shown, *re.findall(r"`(?:sudo )?opskit ([a-z][^`\n]*)`", text)]:
            words = list(itertools.takewhile(lambda word: word not in ("|", "#", ">", "&&"), line.split()))
            assert words[0] in entries, f"{path.name}: opskit {line}"
            options = {word.partition("=")[0] for word in words if word.startswith("--")}
            assert options <= known[words[0]], f"{path.name}: opskit {line}"


def anchors(path):
    """The anchors of a page's headings, as GitHub forms them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_to_a_file_and_a_heading():
    """Links within a page and between pages."""
    for path in PAGES:
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", path.read_text(encoding="utf-8")):
            file = path.parent / target if target else path
            assert file.exists(), f"{path.name}: {target}"
            assert not anchor or anchor in anchors(file), f"{path.name}: {target}#{anchor}"
