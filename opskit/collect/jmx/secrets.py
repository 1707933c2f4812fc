"""Hide what MBeans say in clear: passwords of data sources, secrets in the JVM's arguments and system properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.redact import redact_text, redact_value, redact_words

if TYPE_CHECKING:
    from opskit.collect.jmx.facts import Value

_ARGUMENTS = "InputArguments"
_COLUMNS = ("key", "keys")  # of tables: their values are names


def without_secrets(name: str, value: Value) -> Value:
    """The value of an attribute, or of a key in one, with `…` for secrets in texts."""
    if isinstance(value, str):
        return redact_text(value) if name.lower() in _COLUMNS else redact_value(name, value)
    if isinstance(value, dict):
        return {key: without_secrets(key, each) for key, each in value.items()}
    if isinstance(value, list):
        if name == _ARGUMENTS and all(isinstance(each, str) for each in value):
            return redact_words([str(each) for each in value])
        return [without_secrets(name, each) for each in value]
    return value
