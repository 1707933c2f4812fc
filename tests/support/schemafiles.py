"""The published schemas."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import jsonschema

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def schema_of(name):
    """The schema of a command's JSON object."""
    return json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text(encoding="utf-8"))


@functools.cache
def _validator_of(name):
    return jsonschema.Draft202012Validator(schema_of(name))


def keeps_to_schema(document, name):
    """Raise ValidationError where a command's JSON object is invalid. That its schema is one is a test of test_schemas.py."""
    for error in _validator_of(name).iter_errors(document):
        raise error
