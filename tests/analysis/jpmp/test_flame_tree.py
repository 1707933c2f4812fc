"""The merged call tree: the area law, what is left out, and the difference between two profiles."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.jpmp.flame_tree import Frame, compare, starts, thin

NAMES = st.sampled_from(["a", "b", "c", "all", "", "a b", "ä"])
PATHS = st.lists(NAMES, min_size=1, max_size=6).map(tuple)
PROFILES = st.lists(st.tuples(PATHS, st.integers(0, 50)), max_size=25)


def children(frames, place):
    """The frames that this one calls."""
    depth = frames[place].depth
    for frame in frames[place + 1 :]:
        if frame.depth <= depth:
            return
        if frame.depth == depth + 1:
            yield frame


def path_of(frames, place):
    """The names from below the root to this frame."""
    names, depth = [], frames[place].depth + 1
    for frame in reversed(frames[: place + 1]):
        if frame.depth < depth:
            names.append(frame.name)
            depth = frame.depth
    return tuple(reversed(names))[1:]


@given(PROFILES)
def test_a_frames_width_is_the_sum_of_its_childrens_and_its_own(profile):
    """The area law, with every frame: and the root is as wide as all samples."""
    tree = compare((), profile)
    assert tree.left_out == 0
    assert tree.total == sum(weight for _, weight in profile)
    for place, frame in enumerate(tree.frames):
        assert frame.total == frame.own + sum(child.total for child in children(tree.frames, place))


@given(PROFILES)
def test_every_frame_weighs_what_the_stacks_through_it_weigh(profile):
    """Counted from the stacks themselves, for total and own, each path once and in order."""
    tree = compare((), profile)
    paths = [path_of(tree.frames, place) for place in range(len(tree.frames))]
    assert paths == sorted(set(paths))
    assert set(paths) == {()} | {path[:end] for path, weight in profile if weight for end in range(len(path) + 1)}
    for path, frame in zip(paths, tree.frames):
        assert frame.total == sum(weight for other, weight in profile if other[: len(path)] == path)
        assert frame.own == sum(weight for other, weight in profile if other == path)


@given(PROFILES, PROFILES, st.sampled_from([0.0, 0.01, 0.1, 0.4, 1.0]))
def test_children_lie_within_their_parents_beside_each_other(before, after, narrowest):
    """What is drawn never overlaps and never sticks out, whatever was left out."""
    tree = compare(before, after, narrowest)
    for frames, begin, past in (
        (tree.frames, starts(tree.frames), False),
        (tree.gone, starts(tree.gone, before=True), True),
    ):
        open_, ends = [], {}
        for frame, start in zip(frames, begin):
            width = frame.total_before if past else frame.total
            del open_[frame.depth :]
            if open_:
                parent_start, parent_end = open_[-1]
                assert parent_start <= start
                assert start + width <= parent_end
            assert ends.get(frame.depth, 0) <= start
            ends[frame.depth] = start + width
            open_.append((start, start + width))


@given(PROFILES, st.sampled_from([0.01, 0.1, 0.4]))
def test_what_is_too_narrow_is_left_out_and_counted(profile, narrowest):
    """Nothing narrower is there, nothing wider is missing, and the numbers add up."""
    whole, tree = compare((), profile), compare((), profile, narrowest)
    assert all(frame.total >= narrowest * tree.total for frame in tree.frames)
    wide = [frame for frame in whole.frames if frame.depth == 0 or frame.total >= narrowest * whole.total]
    assert list(tree.frames) == wide
    assert len(tree.frames) + tree.left_out == len(whole.frames)


@given(PROFILES, PROFILES)
def test_a_difference_holds_the_figures_of_both(before, after):
    """Each frame of now with its weight before; each frame that vanished, once, with its weight before."""
    tree = compare(before, after)
    alone, past = compare((), after), compare((), before)
    assert [frame[:4] for frame in tree.frames] == [frame[:4] for frame in alone.frames]
    assert tree.total_before == past.total
    known = {path_of(past.frames, place): frame for place, frame in enumerate(past.frames)}
    now = set()
    for place, frame in enumerate(tree.frames):
        path = path_of(tree.frames, place)
        now.add(path)
        was = known.get(path, Frame(0, "", 0, 0))
        assert (frame.total_before, frame.own_before) == (was.total, was.own)
    vanished = [frame for path, frame in sorted(known.items()) if path not in now]
    assert sorted((frame.name, frame.total_before, frame.own_before) for frame in tree.gone) == sorted(
        (frame.name, frame.total, frame.own) for frame in vanished
    )
    if past.total:
        assert tree.in_common == any(path in known for path in now if path)


def test_one_hot_method_called_from_many_places_shows_as_one_when_merged_from_the_leaves():
    """With reversed stacks, the leaf is next to the root."""
    profile = [(("main", f"caller{number}", "hot"), 1) for number in range(9)]
    tree = compare((), ((path[::-1], weight) for path, weight in profile))
    assert tree.frames[1] == Frame(1, "hot", 9, 9 - 9)
    assert sum(frame.name == "hot" for frame in tree.frames) == 1


def test_a_frame_that_shrank_out_of_sight_is_with_those_that_are_gone():
    """A frame that was wide and is now too narrow is listed in `gone`."""
    tree = compare([(("was",), 50), (("is",), 50)], [(("was",), 1), (("is",), 999)], narrowest=0.01)
    assert [frame.name for frame in tree.frames] == ["all", "is"]
    assert tree.gone == [Frame(0, "was", 1, 1, 50, 50)]
    assert tree.left_out == 0


def test_two_profiles_with_nothing_in_common_are_told_apart():
    """All of now is new, all of before is gone."""
    tree = compare([(("x", "y"), 2)], [(("p", "q"), 3)])
    assert not tree.in_common
    assert [frame.name for frame in tree.frames] == ["all", "p", "q"]
    assert [(frame.depth, frame.name) for frame in tree.gone] == [(0, "x"), (1, "y")]
    assert compare([(("x", "y"), 2)], [(("x", "q"), 3)]).in_common


def test_a_deep_recursion_is_no_trouble():
    """A stack of 100,000 frames is merged."""
    tree = compare((), [(("f",) * 100_000, 1)])
    assert len(tree.frames) == 100_001
    assert tree.frames[-1].own == 1


@given(PROFILES, PROFILES, st.integers(0, 40))
def test_what_is_thinned_keeps_its_callers_and_goes_from_the_narrowest(before, after, most):
    """The limit is kept, every kept frame has its callers, and no frame left out is wider than a kept one."""
    tree = compare(before, after)
    if not tree.frames[0].total and not tree.total_before:
        return
    thinned = thin(tree, [1] * (len(tree.frames) + len(tree.gone)), most)
    assert len(thinned.frames) + len(thinned.gone) <= max(most, 1)
    assert thinned.thinned == len(tree.frames) + len(tree.gone) - len(thinned.frames) - len(thinned.gone)
    for region, whole in ((thinned.frames, tree.frames), (thinned.gone, tree.gone)):
        depths = [frame.depth for frame in region]
        assert all(later <= earlier + 1 for earlier, later in zip(depths, depths[1:]))
        assert not depths or depths[0] == 0
        assert set(region) <= set(whole)

    def share(frame):
        return max(frame.total / (tree.total or 1), frame.total_before / (tree.total_before or 1))

    kept = {*thinned.frames, *thinned.gone}
    widest_lost = max((share(frame) for frame in {*tree.frames, *tree.gone} - kept), default=0.0)
    assert min(map(share, kept)) >= widest_lost
    assert thin(tree, [1] * 1000, 1000) is tree


def test_of_equally_wide_frames_those_near_the_root_are_kept():
    """Of many stacks of one sample each, all keep the frames nearest to the root."""
    tree = compare((), [((f"a{number}", f"b{number}", f"c{number}"), 1) for number in range(5)])
    thinned = thin(tree, [10] * len(tree.frames), 110)
    assert [frame.name for frame in thinned.frames if frame.depth == 1] == [f"a{number}" for number in range(5)]
    assert [frame.name for frame in thinned.frames if frame.depth == 2] == [f"b{number}" for number in range(5)]
    assert thinned.thinned == 5
