"""One JSON object: schema, where, when and on what; the command's own keys; verdict, findings and notes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from opskit.catalog import SCHEMA
from opskit.render.fields import COUNT, TEXT, Field, Kind, list_of, object_schema, records, to_object
from opskit.render.views.findings import FINDING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.render.report import About, Report

HEAD: Sequence[Field[About]] = (
    Field("schema", COUNT, value=lambda _: SCHEMA, help="the version of this object's shape"),
    Field("host", help="the host's name"),
    Field("time_utc", Kind({"type": "string", "format": "date-time"})),
    Field("version", help="of opskit"),
    Field("command_line"),
    Field("target", Kind({"type": "object"}), help="what was asked about"),
)
TAIL: Sequence[Field[Report]] = (
    Field("verdict", list_of(TEXT)),
    Field("findings", records(FINDING), help="see docs/findings.md"),
    Field("notes", list_of(TEXT), help="what could not be read, and advice", value=lambda report: report.footer),
)


def render(report: Report) -> str:
    """The object, indented by one; names that are not UTF-8 come as escaped surrogates."""
    own, value = report.document or ((), ())
    parts = ((HEAD, report.about), (own, value), (_tail(own), report))
    document = {key: each for fields, each_part in parts for key, each in (to_object(fields, each_part) or {}).items()}
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def schema(fields: Sequence[Field[Any]]) -> Mapping[str, Any]:
    """The JSON Schema of the object of a command with these fields."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **object_schema([*HEAD, *fields, *_tail(fields)]),
    }


def _tail(own: Sequence[Field[Any]]) -> Sequence[Field[Report]]:
    """The keys at the end, without those that the command fills itself."""
    named = {field.name for field in own}
    return [field for field in TAIL if field.name not in named]
