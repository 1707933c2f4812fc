r"""Properties as java.util.Properties.store() writes them, which the attach command `properties` answers with.

#Mon Nov 23 15:31:24 UTC 2026
java.version=17.0.9
path.separator=\:
greeting=\u00fcber\n
"""

from __future__ import annotations

import re

_MOST_LINES = 1 << 16
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NAME = re.compile(r"((?:[^=\\]|\\.)+)=", re.DOTALL)  # up to the first `=` that is not escaped
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_COMMENTS = ("#", "!")


def parse_java_properties(text: str) -> dict[str, str]:
    """The values by name. Lines without `=` are left out: store() writes none."""
    found = {}
    for line in text.split("\n", _MOST_LINES)[:_MOST_LINES]:
        name = _NAME.match(line)
        if name is not None and not line.startswith(_COMMENTS):
            found[_plain(name[1])] = _plain(line[name.end() :].rstrip("\r"))
    return found


def _plain(text: str) -> str:
    text = _ESCAPED.sub(_meant, text)
    # Java writes characters beyond 16 bits as two escapes.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _meant(found: re.Match[str]) -> str:
    each = found[1]
    return chr(int(each[1:], 16)) if len(each) == 5 else _CONTROLS.get(each, each)  # a number, by its syntax
