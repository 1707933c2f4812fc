"""Write the JSON Schema of each command's -f json into docs/schemas, from the program's own fields.

python docs/schemas.py            rewrite the schemas
python docs/schemas.py --check    exit with 1 if one is out of date (the tests run this)
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from opskit.catalog import COMMANDS
from opskit.render.formats.json import schema

SCHEMAS = Path(__file__).resolve().parent / "schemas"


def schemas() -> dict[Path, str]:
    """The schema of each command, by the path of its file."""
    found = {}
    for command in COMMANDS:
        if not command.hidden:
            view = importlib.import_module(f"opskit.render.views.{command.module}")
            document = {"title": f"opskit {command.name} -f json", **schema(view.DOCUMENT)}
            found[SCHEMAS / f"{command.name}.json"] = json.dumps(document, indent=1) + "\n"
    return found


def main() -> int:
    """Write or check."""
    fresh = schemas()
    stale = [path for path, text in fresh.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.name} is out of date: run python docs/schemas.py")
        return 1 if stale else 0
    SCHEMAS.mkdir(exist_ok=True)
    for path in stale:
        path.write_text(fresh[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
