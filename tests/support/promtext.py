"""A strict reader of Prometheus' text exposition format 0.0.4, which refuses what a scrape would refuse or drop."""

from __future__ import annotations

import re

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"'
_SAMPLE = re.compile(rf"({_NAME})(?:\{{((?:{_LABEL})(?:,{_LABEL})*)\}})? (-?[0-9][0-9.e+-]*)")
_COMMENT = re.compile(rf"# (HELP|TYPE) ({_NAME}) (.*)")
_TYPES = ("counter", "gauge", "histogram", "summary", "untyped")


def parse(text: str) -> dict[tuple[str, frozenset], float]:
    """Each sample by its name and labels. Raises AssertionError."""
    assert text == "" or text.endswith("\n"), "the last line has no end"
    samples: dict[tuple[str, frozenset], float] = {}
    types: dict[str, str] = {}
    helped: set[str] = set()
    closed: set[str] = set()
    family = None
    for number, line in enumerate(text.split("\n")[:-1], 1):
        said = f"line {number}: {line!r}"
        if comment := _COMMENT.fullmatch(line):
            kind, name, rest = comment.groups()
            assert name not in closed, f"{said}: the samples of a metric stand apart"
            if name != family:
                closed |= {family} if family else set()
                family = name
            assert not any(known == name for known, _ in samples), f"{said}: after the samples"
            if kind == "TYPE":
                assert rest in _TYPES, said
                assert name not in types, f"{said}: a second type"
                types[name] = rest
                assert rest == "untyped" or (rest == "counter") == name.endswith("_total"), (
                    f"{said}: a counter ends with _total, nothing else"
                )
            else:
                assert name not in helped, f"{said}: a second help"
                assert re.fullmatch(r"(?:[^\\]|\\\\|\\n)*", rest), f"{said}: an escape"
                helped.add(name)
            continue
        sample = _SAMPLE.fullmatch(line)
        assert sample, said
        name = sample[1]
        parts = (f"{family}_sum", f"{family}_count") if types.get(str(family)) == "summary" else (family,)
        assert name in parts, f"{said}: the samples of a metric stand apart"
        assert family in types, f"{said}: no type"
        labels = re.findall(_LABEL, sample[2] or "")
        assert len({key for key, _ in labels}) == len(labels), f"{said}: a label twice"
        key = name, frozenset((label, _unescaped(value)) for label, value in labels)
        assert key not in samples, f"{said}: twice"
        samples[key] = float(sample[7])
    return samples


def _unescaped(value: str) -> str:
    return re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match[1], match[1]), value)


def value(samples: dict[tuple[str, frozenset], float], name: str, /, **labels: object) -> float:
    """The one sample of this name that has these labels, and maybe others."""
    wanted = {(key, str(label)) for key, label in labels.items()}
    [found] = [each for (known, having), each in samples.items() if known == name and wanted <= having]
    return found
