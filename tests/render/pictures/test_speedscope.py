"""speedscope's file format: by hand, and against the schema that its makers publish."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.render.pictures.speedscope import document

SCHEMA = Path(__file__).resolve().parents[2] / "fixtures" / "speedscope" / "file-format-schema.json"
PROFILES = {
    "after": [(("main", "a"), 3), (("main", "<b>&\u202e"), 4)],
    "before": [(("main",), 1)],
}


def check(text, *, total):
    """What a reader relies on: frames by number, a weight for each sample, weights that add up."""
    file = json.loads(text)
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = file["shared"]["frames"]
    assert all(set(frame) == {"name"} and frame["name"].isprintable() for frame in frames)
    for profile in file["profiles"]:
        assert profile["type"] == "sampled"
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= number < len(frames) for sample in profile["samples"] for number in sample)
        assert sum(profile["weights"]) == pytest.approx(profile["endValue"] - profile["startValue"])
    assert file["profiles"][0]["endValue"] == pytest.approx(total)
    return file


def test_two_profiles_in_one_file():
    """Frames shared, stacks from the root, samples without a unit."""
    file = check(document("t", PROFILES, "1.0"), total=7)
    assert [frame["name"] for frame in file["shared"]["frames"]] == ["main", "<b>&\\u202e", "a"]
    after, before = file["profiles"]
    assert (after["name"], after["unit"], after["samples"], after["weights"]) == (
        "after",
        "none",
        [[0, 1], [0, 2]],
        [4, 3],
    )
    assert (before["samples"], before["weights"]) == ([[0]], [1])
    assert file["name"] == "t"
    assert file["exporter"] == "opskit@1.0"


def test_cpu_is_in_milliseconds():
    """Weights of CPU us are ms in the file."""
    file = check(document("t", {"p": [(("main",), 1500), (("x",), 1)]}, "1.0", "milliseconds", 1000), total=1.501)
    assert file["profiles"][0]["unit"] == "milliseconds"
    assert file["profiles"][0]["weights"] == [1.5, 0.001]


@given(st.lists(st.tuples(st.lists(st.text(), max_size=5).map(tuple), st.integers(0, 9)), max_size=9))
def test_any_names_make_a_file_that_can_be_read_back(stacks):
    """Also control characters and halves of surrogate pairs."""
    document("t", {"p": stacks}, "1").encode("utf-8")
    check(document("t", {"p": stacks}, "1"), total=sum(weight for _, weight in stacks))


def test_the_published_schema_accepts_it():
    """And refuses other files: the check can fail. The schema is that of the npm package speedscope 1.25.0."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for text in (document("t", PROFILES, "1.0"), document("t", PROFILES, "1.0", "milliseconds", 1000)):
        jsonschema.validate(json.loads(text), schema)
    broken = json.loads(document("t", PROFILES, "1.0"))
    del broken["profiles"][0]["weights"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)
