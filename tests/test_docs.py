"""The docs tell what the program does: every command, every option, every finding."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from opskit.catalog import COMMANDS
from opskit.cli import LazyGroup, group

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def command(entry):
    return LazyGroup.get_command(group, None, entry.name)


def page(entry):
    name = (entry.module or entry.name).replace("_", "-")
    return DOCS / "commands" / f"{name}.md"


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_command_has_its_page_with_every_option(entry):
    """The page names each option of the command, and has the safety table."""
    text = page(entry).read_text(encoding="utf-8")
    for parameter in command(entry).params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            for name in (*parameter.opts, *parameter.secondary_opts):
                assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text), (
                    f"{page(entry).name} does not tell {name}"
                )
    assert "## Safety" in text
    assert "```" in text, "no example"


@pytest.mark.parametrize("entry", [entry for entry in COMMANDS if not entry.hidden], ids=lambda entry: entry.name)
def test_the_readme_shows_every_command(entry):
    """README has an example of each."""
    assert f"opskit {entry.name}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_page_belongs_to_a_command():
    """No page of a command that is gone."""
    assert {path.name for path in (DOCS / "commands").glob("*.md")} == {page(entry).name for entry in COMMANDS}


def test_every_finding_has_its_paragraph_and_every_paragraph_its_finding():
    """Codes are stable and greppable: docs/findings.md has each code that the program can give, and no other."""
    paragraphs = set(
        re.findall(r"^### `([a-z0-9-]+)`", (DOCS / "findings.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    codes = set()
    for path in (ROOT / "opskit").rglob("*.py"):
        codes |= set(re.findall(r"""Finding\(\s*(?:code=)?["']([a-z0-9-]+)["']""", path.read_text(encoding="utf-8")))
    assert codes <= paragraphs, f"without a paragraph: {sorted(codes - paragraphs)}"
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "opskit").rglob("*.py"))
    unknown = {code for code in paragraphs if f'"{code}"' not in source}
    assert not unknown, f"nothing gives these: {sorted(unknown)}"


def test_examples_name_commands_and_options_that_exist():
    """Each `$ opskit …` line in the docs names a command of the table and long options that it has."""
    names = {entry.name: entry for entry in COMMANDS}
    for path in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for line in re.findall(r"^\s*\$ (?:sudo )?opskit ([a-z].*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            words = line.split()
            assert words[0] in names, f"{path.name}: opskit {line}"
            known = {
                name
                for parameter in command(names[words[0]]).params
                for name in (*parameter.opts, *parameter.secondary_opts)
            }
            for word in words[1:]:
                if word.startswith("--"):
                    assert word.partition("=")[0] in known | {"--help"}, f"{path.name}: opskit {line}"
                if word in ("|", "#", ">", "&&"):
                    break


def test_relative_links_lead_somewhere():
    """No dead link between the pages."""
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
