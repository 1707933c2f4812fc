"""Percentiles are those of a plain sort, with runs in memory, in a file, or where the file fails."""

from __future__ import annotations

import io
import math
import resource

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit.analysis import distribution
from opskit.analysis.distribution import Distribution, Scratch, percentiles
from opskit.proc.user_files import scratch_file

PERCENTS = (0.001, 1, 50, 90, 99, 99.9, 100)


class FullDisk(io.BytesIO):
    """Takes two runs, then has no space."""

    def write(self, data):
        if self.tell() > 300:
            raise OSError(28, "No space left on device")
        return super().write(data)


def nearest_rank(values, percent):
    return sorted(values)[max(math.ceil(round(len(values) * percent / 100, 9)), 1) - 1]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.floats(0, 100), st.integers(0, 3).map(float)), min_size=1, max_size=400),
    st.integers(1, 40),
    st.sampled_from([io.BytesIO, FullDisk]),
)
def test_each_percentile_is_a_value_that_a_sort_finds(values, step, make):
    """The nearest rank, over several distributions together; whatever the order, the repetitions and the batches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distribution, "RUN_VALUES", 16)
        patch.setattr(distribution, "_BLOCK_VALUES", 4)
        scratch = Scratch(make)
        parts = [Distribution(scratch), Distribution(scratch)]
        for number, at in enumerate(range(0, len(values), step)):
            parts[number % 2].extend(values[at : at + step])
        assert percentiles(parts, PERCENTS) == [nearest_rank(values, percent) for percent in PERCENTS]
        assert sum(part.count for part in parts) == len(values)
        assert max(part.maximum for part in parts if part.maximum is not None) == max(values)


def test_no_temporary_directory_is_no_obstacle():
    """Then runs stay in memory."""

    def fails():
        raise FileNotFoundError(2, "No usable temporary directory found")

    values = [number * 7919 % 100_003 / 7 for number in range(distribution.RUN_VALUES * 3)]
    whole = Distribution(Scratch(fails))
    for at in range(0, len(values), 1000):
        whole.extend(values[at : at + 1000])
    assert percentiles([whole], (50.0, 99.9)) == [nearest_rank(values, 50), nearest_rank(values, 99.9)]


def test_a_disk_that_is_full_in_the_last_bytes_of_a_run():
    """The run stays in memory, and the earlier ones can still be read from the file."""
    limit, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    values = [number * 7919 % 100_003 / 7 for number in range(distribution.RUN_VALUES * 3)]
    whole = Distribution(Scratch(scratch_file))
    resource.setrlimit(resource.RLIMIT_FSIZE, (distribution.RUN_VALUES * 2 * 8 - 100, hard))
    try:
        for at in range(0, len(values), distribution.RUN_VALUES):
            whole.extend(values[at : at + distribution.RUN_VALUES])
        assert percentiles([whole], (50.0, 99.9)) == [nearest_rank(values, 50), nearest_rank(values, 99.9)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))


def test_nothing_has_no_percentile():
    """None, not 0."""
    empty = Distribution(Scratch(io.BytesIO))
    assert percentiles([empty], (50.0,)) == [None]
    assert (empty.count, empty.maximum) == (0, None)
