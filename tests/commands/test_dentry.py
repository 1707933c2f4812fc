"""`opskit dentry` on captured trees of every age, on this machine as root and as nobody, and on bad input."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from dentrytrees import HEAD_2, MERGED, OLD, POST, TODAY, line_2
from hostcaches import LOOK_FOR_ABSENT, dentry_slab_pages, in_some_run, numbers_of_dentry_state, without_a_drop
from nextsteps import try_next
from stracing import traced
from terminal import on_terminal
from trees import steady

WARNINGS = 1


def document(opskit, *arguments, code=0):
    """The JSON object; `code` None: 0 or 1, by what this machine is like."""
    done = opskit("dentry", *arguments, "-f", "json")
    assert done.code == code or (code is None and done.code in (0, WARNINGS)), done.err
    return json.loads(done.out)


# --- captured trees ---


@pytest.mark.parametrize("format_", ["text", "table", "json", "markdown"])
@pytest.mark.parametrize("name", ["post", "today"])
def test_whole_outputs(inprocess, tree, golden, name, format_):
    """The machine of the weblog post, and one of today, in every format."""
    root = tree({"post": POST, "today": TODAY}[name])
    done = inprocess("dentry", "--root", root, "-f", format_)
    assert done.code == (WARNINGS if name == "today" else 0)
    golden(f"dentry-{name}.{format_}", steady(done.out))


def test_the_post(inprocess, tree):
    """12 GB of dentries on an old kernel: their bytes and share, reclaimable; what that kernel does not count is null."""
    found = document(inprocess, "--root", tree(POST))
    assert found["dentry_slab_bytes"] == 61880000 // 20 * 4096
    assert found["inode_slab_bytes"] == (4 + 310005 // 5 + 5005 // 7) * 4096
    assert found["reclaimable_bytes"] == 12800000 * 1024
    assert found["ram_bytes"] == 25165824 * 1024
    assert (found["dentries"], found["unused"], found["negative"]) == (61879000, 61400000, None)
    assert [slab["name"] for slab in found["slabs"]][:2] == ["dentry", "ext3_inode_cache"]
    assert found["verdict"][0].startswith("The dentry cache holds 11.8 GiB (49 % of RAM), reclaimable")
    assert any("does not count negative" in note for note in found["notes"])


def test_the_sentence_of_a_machine_full_of_negative_entries(inprocess, tree):
    """The verdict says how much, that it is reclaimable, that most are negative, and that finding beats dropping."""
    found = document(inprocess, "--root", tree(TODAY), code=WARNINGS)
    assert found["verdict"][0] == (
        "The dentry cache holds 3.6 GiB (22 % of RAM), reclaimable and already counted in MemAvailable; 97 % of it are "
        "negative entries: a program keeps looking for files that do not exist. Dropping helps only for now: find that "
        "program."
    )
    assert [finding["code"] for finding in found["findings"]] == ["dentry-negative", "dentry-cgroup", "dentry-dropped"]
    assert found["findings"][0]["entity"]["kind"] == "host"
    assert try_next(found["findings"], "dentry-negative") == "opskit dentry --culprit"
    assert try_next(found["findings"], "dentry-dropped").startswith("grep -rs drop_caches ")
    assert found["findings"][1]["subject"] == "/kubepods/pod1"
    assert (found["findings"][1]["entity"]["kind"], found["findings"][1]["entity"]["id"]) == (
        "cgroup",
        "/kubepods/pod1",
    )
    assert found["findings"][1]["fix"] == "echo 3145728000 > /sys/fs/cgroup/kubepods/pod1/memory.reclaim"
    assert any("vm.vfs_cache_pressure=100 (now 50)" in way for way in found["ways"])


def test_pages_of_another_machine(inprocess, tree):
    """A slab of one 16 KiB page is 16 KiB, also when this machine's pages are smaller."""
    found = document(inprocess, "--root", tree(TODAY), code=WARNINGS)
    assert found["dentry_slab_bytes"] == -(-20000085 // 85) * 16384


def test_slab_per_cgroup_names_the_owner(inprocess, tree):
    """The largest own slab first; what a parent only sums up is not its own."""
    groups = document(inprocess, "--root", tree(TODAY), code=WARNINGS)["cgroups"]
    assert [(group["path"], group["own_slab_reclaimable_bytes"]) for group in groups] == [
        ("/kubepods/pod1", 3145728000),
        ("/system.slice", 104857600),
        ("/kubepods", 3221225472 - 3145728000),
    ]
    assert groups[0]["limit_bytes"] == 4294967296


def test_linux_2_4(inprocess, tree):
    """Slabinfo 1.1 and a meminfo that begins with a table; SReclaimable is not known."""
    found = document(inprocess, "--root", tree(OLD))
    assert found["dentry_slab_bytes"] == 196 * 4096
    assert found["inode_slab_bytes"] == 1849 * 4096
    assert found["reclaimable_bytes"] is None
    assert found["negative"] is None
    assert found["ram_bytes"] == 127748 * 1024


def test_merged_caches_are_found_by_their_aliases(inprocess, tree):
    """Dentries listed under another cache's name are found, and the other users of that cache are named."""
    root = tree(MERGED)
    found = document(inprocess, "--root", root)
    assert found["dentry_slab_bytes"] == 102900 // 21 * 4096
    cache = next(slab for slab in found["slabs"] if slab["kind"] == "dentry")
    assert (cache["name"], cache["shared_with"]) == ("ext4_xattr", ["dentry"])
    assert "slabinfo has them as ext4_xattr" in inprocess("dentry", "--root", root, "-f", "text").out


def test_a_cache_that_is_nowhere_is_unknown_not_zero(inprocess, tree):
    """Without the links the dentry cache is unknown: null, with a note."""
    files = {name: content for name, content in MERGED.items() if not name.startswith("sys/")}
    found = document(inprocess, "--root", tree(files))
    assert found["dentry_slab_bytes"] is None
    assert any("lists no dentry cache" in note for note in found["notes"])
    assert found["verdict"][0].startswith("The dentry cache holds about 18.3 MiB")


@pytest.mark.parametrize("missing", ["slabinfo", "meminfo", "sys/fs/dentry-state", "vmstat"])
def test_a_file_that_is_missing_leaves_the_rest(inprocess, tree, missing):
    """Null where unknown; the others are as they were."""
    whole = document(inprocess, "--root", tree(TODAY), code=WARNINGS)
    (Path(tree({})) / "proc" / missing).unlink()
    part = document(inprocess, "--root", tree({}), code=WARNINGS)
    keys = {
        "slabinfo": {"dentry_slab_bytes", "inode_slab_bytes", "slabs"},
        "meminfo": {"ram_bytes", "reclaimable_bytes"},
        "sys/fs/dentry-state": {"unused", "negative"},
        "vmstat": {"drop_slab_count"},
    }[missing]
    for key in keys:
        assert whole[key] is not None
        assert part[key] is None
    for key in {"dentries", "vfs_cache_pressure"} - keys:
        assert part[key] == whole[key]


def test_a_tree_without_any_of_the_files(inprocess, tree):
    """Neither slabinfo nor dentry-state nor meminfo: one line, exit 2."""
    done = inprocess("dentry", "--root", tree({"proc/loadavg": "0 0 0 1/2 3\n"}))
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "no dentry cache to read" in done.err


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("slabinfo", TODAY["proc/slabinfo"][:500], "slabinfo:5: cut short"),
        ("slabinfo", TODAY["proc/slabinfo"][:-1], "slabinfo:7: cut short"),
        ("slabinfo", "slabinfo - version: 2.1\n" + HEAD_2, "slabinfo:2: cut short"),
        ("slabinfo", "", "slabinfo:1: "),
        ("slabinfo", b"\xff\xfe\x00garbage\n", "slabinfo:1: "),
        ("meminfo", "MemTotal\n", "meminfo:1: "),
        ("sys/fs/dentry-state", "1 2 3\n", "sys/fs/dentry-state:1: "),
        ("vmstat", "nr_x\n", "vmstat:1: "),
    ],
)
def test_garbled_files_are_refused_with_their_place(inprocess, tree, name, content, words):
    """One clear line and exit 2, never a number out of half a file."""
    done = inprocess("dentry", "--root", tree(TODAY | {f"proc/{name}": content}), "-f", "json")
    assert (done.code, done.out) == (2, "")
    assert f"/proc/{words}" in done.err
    assert done.err.count("\n") == 1


def test_names_from_the_machine_are_escaped(inprocess, tree):
    """A cache's or a cgroup's name cannot reach the terminal as an escape."""
    files = TODAY | {
        "proc/slabinfo": TODAY["proc/slabinfo"] + line_2("evil\x1b[31m[bold]", 9, 900000, 512, 32, 1),
        "sys/fs/cgroup/a\x1b[2J/memory.stat": "slab_reclaimable 9999999999\n",
    }
    root = tree(files)
    for format_ in ("text", "table", "markdown"):
        out = inprocess("dentry", "--root", root, "-f", format_).out
        assert "\x1b" not in out
        assert "evil\\x1b[31m" in out.replace("\\\\", "\\").replace("\\[", "[")


def test_top(inprocess, tree):
    """-n N bounds every table and says what it leaves out; -n 0 shows all."""
    root = tree(TODAY)
    assert "kmalloc-512" not in inprocess("dentry", "-n", "2", "--root", root, "-f", "table").out
    assert "… 3 more; -n 0 shows all" in inprocess("dentry", "-n", "2", "--root", root, "-f", "table").out
    assert "kmalloc-512" in inprocess("dentry", "-n", "0", "--root", root, "-f", "table").out


@pytest.mark.parametrize(("percent", "code"), [("20", 1), ("20%", 1), ("23.4", 0), ("100", 0), ("0", 1)])
def test_check(inprocess, tree, percent, code):
    """Exit 1 only when dentries and inodes take more than that of RAM (here 23.3 %): other findings are notes."""
    done = inprocess("dentry", "--root", tree(TODAY), "--check", percent)
    assert done.code == code
    assert ("dentry-share" in done.out) == bool(code)
    if code:
        found = document(inprocess, "--root", tree(TODAY), "--check", percent, code=WARNINGS)
        assert try_next(found["findings"], "dentry-share") == "opskit dentry --culprit"


def test_check_where_the_slabs_are_not_known(inprocess, tree):
    """SReclaimable bounds them from above (here 23.8 %): below it the answer is open, exit 2."""
    root = tree({name: content for name, content in TODAY.items() if name != "proc/slabinfo"})
    assert inprocess("dentry", "--root", root, "--check", "24").code == 0
    done = inprocess("dentry", "--root", root, "--check", "23")
    assert done.code == 2
    assert "is unknown without slabinfo" in done.err


def test_pressure_zero_is_a_warning(inprocess, tree):
    """vfs_cache_pressure 0 ends in out-of-memory."""
    found = document(inprocess, "--root", tree(POST | {"proc/sys/vm/vfs_cache_pressure": "0\n"}), code=WARNINGS)
    assert "dentry-pressure" in [finding["code"] for finding in found["findings"]]


def test_proc_alone_does_not_mix_in_this_machines_cgroups_and_slabs(inprocess, tree):
    """--proc gives another machine's proc: /sys here is not that machine's."""
    found = document(inprocess, "--proc", tree(TODAY) / "proc", code=WARNINGS)
    assert found["cgroups"] == []
    assert all(not slab["shared_with"] for slab in found["slabs"])


# --- invalid usage ---


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--drop", "4", "--yes"], "'4' is not a level (4 would only mute the kernel's log); write dentries (2)"),
        (["--drop", "slabs"], "'slabs' is not a level"),
        (["--yes"], "--yes goes with --drop"),
        (["--in-container"], "--in-container goes with --drop"),
        (["--sync-timeout", "3"], "--sync-timeout goes with --drop"),
        (["--drop", "--culprit"], "--drop and --culprit exclude each other"),
        (["--drop", "-w"], "--drop and -w/--watch exclude each other"),
        (["--culprit", "-w"], "--culprit and -w/--watch exclude each other"),
        (["--culprit", "soon"], "'soon' is not a duration"),
        (["--check", "lots"], "'lots' is not a percentage"),
        (["--check", "101"], "'101' is not a percentage"),
        (["--check", "nan"], "'nan' is not a percentage"),
        (["-i", "2"], "-i/--interval goes with -w/--watch"),
    ],
)
def test_invalid_usage(inprocess, arguments, words):
    """Exit 2 with what to write instead."""
    done = inprocess("dentry", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


@pytest.mark.parametrize("arguments", [["--drop", "--yes"], ["--culprit"]])
def test_acting_on_a_captured_tree_is_refused(inprocess, tree, arguments):
    """What acts is for this machine only."""
    done = inprocess("dentry", "--proc", tree(TODAY) / "proc", *arguments)
    assert (done.code, done.out) == (2, "")
    assert "another machine or pid namespace" in done.err
    nothing = inprocess("dentry", "--proc", tree({"proc/loadavg": ""}) / "proc", *arguments)
    assert "another machine or pid namespace" in nothing.err, "before anything is read"


# --- this machine ---


def test_the_numbers_are_the_kernels(inprocess, machine_root):
    """dentry-state, slabinfo and meminfo, read by the test itself, agree within what other processes change."""

    def agree():
        found = document(inprocess, code=None)
        state = numbers_of_dentry_state()
        assert abs(found["dentries"] - state["dentries"]) < 0.2 * state["dentries"] + 20_000
        assert found["unused"] <= found["dentries"]
        assert found["dentry_slab_bytes"] % os.sysconf("SC_PAGE_SIZE") == 0
        assert abs(found["dentry_slab_bytes"] / 4096 - dentry_slab_pages()) < 0.2 * dentry_slab_pages() + 2_000
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        assert found["ram_bytes"] == pytest.approx(total, rel=0.001)
        assert found["inode_slab_bytes"] == sum(slab["bytes"] for slab in found["slabs"] if slab["kind"] == "inode")

    in_some_run(agree)


def test_an_unprivileged_user_gets_counts_and_an_estimate(machine_root, as_nobody):
    """No slabinfo: counts and shares from dentry-state and meminfo, an estimate that says so, and what is missing."""
    done = as_nobody("dentry", "-f", "json")
    assert done.returncode in (0, WARNINGS), done.stderr
    found = json.loads(done.stdout)
    assert found["dentries"] > 0
    assert found["reclaimable_bytes"] > 0
    assert (found["dentry_slab_bytes"], found["inode_slab_bytes"], found["slabs"]) == (None, None, None)
    assert "holds about" in found["verdict"][0]
    assert any("slabinfo is for root only" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--drop", "--yes"], "Run as root: sudo opskit dentry --drop dentries"),
        (["--culprit"], "run as root: sudo opskit dentry --culprit"),
        (["--check", "0"], "run as root: sudo opskit dentry --check 0"),
        (["-f", "png"], "run as root: sudo opskit dentry -o FILE"),
    ],
)
def test_without_the_rights_the_message_says_what_would_work(machine_root, as_nobody, arguments, words):
    """Exit 2, one line, nothing changed."""
    done = without_a_drop(lambda: as_nobody("dentry", *arguments))
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_the_look_writes_and_signals_nothing(machine_root):
    """As strace sees it: nothing is opened for writing but our own oom_score_adj, no signal, no sync, no mount."""
    done = traced("dentry", "-f", "json")
    assert done.code in (0, WARNINGS)
    assert done.acting() == []


# --- watching ---


def test_watch_shows_growth_per_minute(inprocess, machine_root, disk, spawn):
    """A process that makes negative entries all the while shows as growth; JSON has every sample."""
    spawn(LOOK_FOR_ABSENT, disk, 300_000, 0)
    found = document(inprocess, "-w", "-i", "200ms", "-c", "4", code=None)
    assert [one["at_s"] for one in found["samples"]] == sorted(one["at_s"] for one in found["samples"])
    assert len(found["samples"]) == 4
    assert set(found["growth_per_min"]) == {
        "dentries", "unused", "negative", "dentry_slab_bytes", "inode_slab_bytes", "reclaimable_bytes",
    }  # fmt: skip
    assert all(one["dentries"] > 0 for one in found["samples"])
    assert found["growth_per_min"]["dentries"] is not None


def test_a_live_table_is_about_what_grows(inprocess, machine_root):
    """The figures and the slabs with their growth: no explanations, and not the rest of a single look."""
    done = inprocess("dentry", "-w", "-c", "2", "-i", "50ms", "-f", "table")
    once = inprocess("dentry", "-f", "table")
    assert "bytes per min" in done.out
    for words in ("inode caches by file system", "in the dentry slab"):
        assert words in once.out
        assert words not in done.out


def test_watch_in_text_is_a_row_a_sample(inprocess, machine_root):
    """Header and row, the same columns each time."""
    done = inprocess("dentry", "-w", "-i", "100ms", "-c", "2", "-f", "text")
    first, second = done.out.strip().split("\n\n")
    assert first.split("\n")[0].split() == second.split("\n")[0].split()
    assert first.split("\n")[0].split()[:4] == ["AT_S", "DENTRIES", "UNUSED", "NEGATIVE"]
    assert len(first.split("\n")[1].split()) == len(first.split("\n")[0].split()) == 13


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_pictures(inprocess, machine_root, tmp_path, suffix):
    """The largest slabs now, and over the samples of a watch; -f is the same as the suffix of -o."""
    pytest.importorskip("matplotlib")
    path = tmp_path / f"slabs.{suffix}"
    for arguments in ([], ["-w", "-c", "2", "-i", "100ms"], ["-f", suffix]):
        done = inprocess("dentry", *arguments, "-o", path)
        assert done.code in (0, WARNINGS)
        assert done.out == ""
        data = path.read_bytes()
        assert data.startswith(b"<?xml" if suffix == "svg" else b"\x89PNG")
        assert suffix == "png" or b"dentry" in data
        path.unlink()


def test_on_a_terminal_the_answer_fits_one_screen(tree):
    """80 x 24: the verdict, the reason, the figures; -n adds the slabs and memory cgroups."""
    root = tree(TODAY)
    code, shown = on_terminal("dentry", "--root", str(root), env={"NO_COLOR": "1"})
    lines = shown.splitlines()
    assert code == WARNINGS
    assert lines[1].startswith("The dentry cache holds 3.6 GiB")
    assert any("MemAvailable" in line for line in lines)
    assert "-n 10 adds the largest slabs, inode caches and memory cgroups" in shown
    assert "largest slabs\r\n" not in shown
    assert "largest slabs\r\n" in on_terminal("dentry", "--root", str(root), "-n", "3", env={"NO_COLOR": "1"})[1]
