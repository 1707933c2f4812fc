"""Run in the namespaces of a chronyd that has no server: print the next command of its finding, after it was typed."""

from __future__ import annotations

import json

import inprocess
from nextsteps import try_next


def main() -> None:
    """Look, check the note, type the command."""
    document = json.loads(inprocess.run("clock", "-f", "json").out)
    [finding] = [each for each in document["findings"] if each["code"] == "clock-daemon-unsynchronised"]
    assert finding["severity"] == "note", finding
    assert " yet: it was started " in finding["summary"], finding
    assert document["state"] == "unsynchronised"
    assert document["verdict"][0].endswith(" follows no server."), document["verdict"]
    print(try_next(document["findings"], "clock-daemon-unsynchronised"))


if __name__ == "__main__":
    main()
