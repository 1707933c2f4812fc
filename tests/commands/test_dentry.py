"""`opskit dentry` on captured trees of every age, on this machine as root and as nobody, and on bad input."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dentrytrees import HEAD_2, MERGED, OLD, POST, TODAY, line_2
from stracing import needs_strace, traced
from terminal import on_terminal
from trees import steady

NOBODY = 65534
NEGATIVES = 200_000

# The venv's Python may lie where nobody may look: import all that is needed first, then give up the rights.
AS_NOBODY = f"""
import difflib, importlib.util, os, pwd, sys
try:
    import matplotlib  # its place may be closed to nobody
except ImportError:
    pass
import opskit.cli, opskit.commands.dentry, opskit.actions.trace_lookups
import opskit.render.formats.json, opskit.render.formats.table, opskit.render.formats.text
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
sys.exit(opskit.cli.run(sys.argv[1:]))
"""


def as_nobody(*arguments):
    return subprocess.run(
        [sys.executable, "-c", AS_NOBODY, "dentry", *arguments],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def document(opskit, *arguments, code=0):
    done = opskit("dentry", *arguments, "-f", "json")
    assert done.code == code, done.err
    return json.loads(done.out)


@pytest.fixture(scope="session")
def machine_root(initial_pid_namespace):
    """Skip unless we are root of the machine itself: what these tests prove, a container's root may not do."""
    if os.geteuid() != 0 or not os.access("/proc/sys/vm/drop_caches", os.W_OK):
        pytest.skip("needs root of the machine itself, not of a container")


# --- captured trees ---


@pytest.mark.parametrize("format_", ["text", "table", "json", "markdown"])
@pytest.mark.parametrize("name", ["post", "today"])
def test_whole_outputs(opskit, tree, golden, name, format_):
    """The machine of the weblog post, and one of today, in every format."""
    root = tree({"post": POST, "today": TODAY}[name])
    done = opskit("dentry", "--root", root, "-f", format_)
    assert done.code == 0
    golden(f"dentry-{name}.{format_}", steady(done.out))


def test_the_post(opskit, tree):
    """12 GB of dentries on an old kernel: their bytes and share, reclaimable; what that kernel does not count is null."""
    found = document(opskit, "--root", tree(POST))
    assert found["dentry_slab_bytes"] == 61880000 // 20 * 4096
    assert found["inode_slab_bytes"] == (4 + 310005 // 5 + 5005 // 7) * 4096
    assert found["reclaimable_bytes"] == 12800000 * 1024
    assert found["ram_bytes"] == 25165824 * 1024
    assert (found["dentries"], found["unused"], found["negative"]) == (61879000, 61400000, None)
    assert [slab["name"] for slab in found["slabs"]][:2] == ["dentry", "ext3_inode_cache"]
    assert found["verdict"][0].startswith("The dentry cache holds 11.8 GiB (49 % of RAM), reclaimable")
    assert any("does not count negative" in note for note in found["notes"])


def test_the_sentence_of_a_machine_full_of_negative_entries(opskit, tree):
    """The verdict says how much, that it is reclaimable, that most are negative, and that finding beats dropping."""
    found = document(opskit, "--root", tree(TODAY))
    assert found["verdict"][0] == (
        "The dentry cache holds 3.6 GiB (22 % of RAM), reclaimable and already counted in MemAvailable; 97 % of it are "
        "negative entries: a program keeps looking for files that are not there. Dropping helps for now; finding it helps "
        "for good."
    )
    assert [finding["code"] for finding in found["findings"]] == ["dentry-negative", "dentry-cgroup", "dentry-dropped"]
    assert found["findings"][1]["subject"] == "/kubepods/pod1"
    assert found["findings"][1]["fix"] == "echo 3145728000 > /sys/fs/cgroup/kubepods/pod1/memory.reclaim"
    assert any("vm.vfs_cache_pressure=100 (now 50)" in way for way in found["ways"])


def test_pages_of_another_machine(opskit, tree):
    """A slab of one 16 KiB page is 16 KiB, also when this machine's pages are smaller."""
    found = document(opskit, "--root", tree(TODAY))
    assert found["dentry_slab_bytes"] == -(-20000085 // 85) * 16384


def test_slab_per_cgroup_names_the_owner(opskit, tree):
    """The largest own slab first; what a parent only sums up is not its own."""
    groups = document(opskit, "--root", tree(TODAY))["cgroups"]
    assert [(group["path"], group["own_slab_reclaimable_bytes"]) for group in groups] == [
        ("/kubepods/pod1", 3145728000),
        ("/system.slice", 104857600),
        ("/kubepods", 3221225472 - 3145728000),
    ]
    assert groups[0]["limit_bytes"] == 4294967296


def test_linux_2_4(opskit, tree):
    """Slabinfo 1.1 and a meminfo that begins with a table; SReclaimable is not known."""
    found = document(opskit, "--root", tree(OLD))
    assert found["dentry_slab_bytes"] == 196 * 4096
    assert found["inode_slab_bytes"] == 1849 * 4096
    assert found["reclaimable_bytes"] is None
    assert found["negative"] is None
    assert found["ram_bytes"] == 127748 * 1024


def test_merged_caches_are_found_by_their_aliases(opskit, tree):
    """Dentries listed under another cache's name are found, and who shares the cache is said."""
    root = tree(MERGED)
    found = document(opskit, "--root", root)
    assert found["dentry_slab_bytes"] == 102900 // 21 * 4096
    cache = next(slab for slab in found["slabs"] if slab["kind"] == "dentry")
    assert (cache["name"], cache["shared_with"]) == ("ext4_xattr", ["dentry"])
    assert "slabinfo has them as ext4_xattr" in opskit("dentry", "--root", root, "-f", "text").out


def test_a_cache_that_is_nowhere_is_unknown_not_zero(opskit, tree):
    """Without the links nobody can tell where the dentries are: null, and said."""
    files = {name: content for name, content in MERGED.items() if not name.startswith("sys/")}
    found = document(opskit, "--root", tree(files))
    assert found["dentry_slab_bytes"] is None
    assert any("lists no dentry cache" in note for note in found["notes"])
    assert found["verdict"][0].startswith("The dentry cache holds about 18.3 MiB")


@pytest.mark.parametrize("missing", ["slabinfo", "meminfo", "sys/fs/dentry-state", "vmstat"])
def test_a_file_that_is_missing_leaves_the_rest(opskit, tree, missing):
    """Null where unknown; the others are as they were."""
    whole = document(opskit, "--root", tree(TODAY))
    (Path(tree({})) / "proc" / missing).unlink()
    part = document(opskit, "--root", tree({}))
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


def test_a_tree_that_tells_nothing(opskit, tree):
    """Neither slabinfo nor dentry-state nor meminfo: one line, exit 2."""
    done = opskit("dentry", "--root", tree({"proc/loadavg": "0 0 0 1/2 3\n"}))
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "nothing to tell" in done.err


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
def test_garbled_files_are_refused_with_their_place(opskit, tree, name, content, words):
    """One clear line and exit 2, never a number out of half a file."""
    done = opskit("dentry", "--root", tree(TODAY | {f"proc/{name}": content}), "-f", "json")
    assert (done.code, done.out) == (2, "")
    assert f"/proc/{words}" in done.err
    assert done.err.count("\n") == 1


def test_names_from_the_machine_are_escaped(opskit, tree):
    """A cache's or a cgroup's name cannot reach the terminal as an escape."""
    files = TODAY | {
        "proc/slabinfo": TODAY["proc/slabinfo"] + line_2("evil\x1b[31m[bold]", 9, 900000, 512, 32, 1),
        "sys/fs/cgroup/a\x1b[2J/memory.stat": "slab_reclaimable 9999999999\n",
    }
    root = tree(files)
    for format_ in ("text", "table", "markdown"):
        out = opskit("dentry", "--root", root, "-f", format_).out
        assert "\x1b" not in out
        assert "evil\\x1b[31m" in out.replace("\\\\", "\\").replace("\\[", "[")


def test_top(opskit, tree):
    """-n N bounds every table and says what it leaves out; -n 0 shows all."""
    root = tree(TODAY)
    assert "kmalloc-512" not in opskit("dentry", "-n", "2", "--root", root, "-f", "table").out
    assert "… 3 more; -n 0 shows all" in opskit("dentry", "-n", "2", "--root", root, "-f", "table").out
    assert "kmalloc-512" in opskit("dentry", "-n", "0", "--root", root, "-f", "table").out


@pytest.mark.parametrize(("percent", "code"), [("20", 1), ("20%", 1), ("23.4", 0), ("100", 0), ("0", 1)])
def test_check(opskit, tree, percent, code):
    """Exit 1 when dentries and inodes take more than that of RAM (here 23.3 %)."""
    done = opskit("dentry", "--root", tree(TODAY), "--check", percent)
    assert done.code == code
    assert ("dentry-share" in done.out) == bool(code)


def test_check_where_the_slabs_are_not_known(opskit, tree):
    """SReclaimable bounds them from above (here 23.8 %): below it the answer is open, exit 2."""
    root = tree({name: content for name, content in TODAY.items() if name != "proc/slabinfo"})
    assert opskit("dentry", "--root", root, "--check", "24").code == 0
    done = opskit("dentry", "--root", root, "--check", "23")
    assert done.code == 2
    assert "cannot be told without slabinfo" in done.err


def test_pressure_zero_is_a_warning(opskit, tree):
    """vfs_cache_pressure 0 ends in out-of-memory."""
    found = document(opskit, "--root", tree(TODAY | {"proc/sys/vm/vfs_cache_pressure": "0\n"}))
    assert "dentry-pressure" in [finding["code"] for finding in found["findings"]]


def test_proc_alone_does_not_mix_in_this_machines_cgroups_and_slabs(opskit, tree):
    """--proc gives another machine's proc: /sys here is not that machine's."""
    found = document(opskit, "--proc", tree(TODAY) / "proc")
    assert found["cgroups"] == []
    assert all(not slab["shared_with"] for slab in found["slabs"])


# --- the words of the command ---


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--drop", "4", "--yes"], "'4' is no level (4 would only mute the kernel's log); write dentries (2)"),
        (["--drop", "slabs"], "'slabs' is no level"),
        (["--yes"], "--yes goes with --drop"),
        (["--in-container"], "--in-container goes with --drop"),
        (["--sync-timeout", "3"], "--sync-timeout goes with --drop"),
        (["--drop", "--culprit"], "--drop and --culprit exclude each other"),
        (["--drop", "-w"], "--drop and --watch exclude each other"),
        (["--culprit", "-w"], "--culprit and --watch exclude each other"),
        (["--culprit", "soon"], "'soon' is no duration"),
        (["--check", "lots"], "'lots' is no percentage"),
        (["--check", "101"], "'101' is no percentage"),
        (["--check", "nan"], "'nan' is no percentage"),
        (["-i", "2"], "-i/--interval goes with -w"),
    ],
)
def test_words_that_are_off(opskit, arguments, words):
    """Exit 2 with what to write instead."""
    done = opskit("dentry", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


@pytest.mark.parametrize("arguments", [["--drop", "--yes"], ["--culprit"]])
def test_acting_on_a_captured_tree_is_refused(opskit, tree, arguments):
    """What acts is for this machine only."""
    done = opskit("dentry", "--proc", tree(TODAY) / "proc", *arguments)
    assert (done.code, done.out) == (2, "")
    assert "another machine or pid namespace" in done.err
    nothing = opskit("dentry", "--proc", tree({"proc/loadavg": ""}) / "proc", *arguments)
    assert "another machine or pid namespace" in nothing.err, "before anything is read"


# --- this machine ---


def numbers_of_dentry_state():
    words = Path("/proc/sys/fs/dentry-state").read_text(encoding="ascii").split()
    return {"dentries": int(words[0]), "unused": int(words[1]), "negative": int(words[4])}


def dentry_slab_pages():
    for line in Path("/proc/slabinfo").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if words[0] == "dentry":
            return int(words[-2]) * int(words[5])
    return None


def drops():
    text = Path("/proc/vmstat").read_text(encoding="ascii")
    return re.findall(r"^drop_\w+ \d+$", text, re.MULTILINE)


@pytest.fixture
def disk(tmp_path):
    """A directory on a file system that keeps negative dentries."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True, check=True).stdout
    if kind.strip() in ("tmpfs", "ramfs"):
        pytest.skip("needs a directory on disk: tmpfs keeps no negative dentries (set TMPDIR)")
    return tmp_path


LOOK_FOR_ABSENT = """
import os, sys, time
folder, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
end = time.monotonic() + seconds
print("ready", flush=True)
number = 0
while number < count or time.monotonic() < end:
    try:
        os.stat(f"{folder}/absent-{number % max(count, 1000)}")
    except OSError:
        pass
    number += 1
print("done", flush=True)
"""


def make_negatives(folder, count):
    subprocess.run([sys.executable, "-c", LOOK_FOR_ABSENT, folder, str(count), "0"], check=True, capture_output=True)


def test_the_numbers_are_the_kernels(opskit, machine_root):
    """dentry-state, slabinfo and meminfo, read by the test itself, agree within what a living machine moves."""
    found = document(opskit)
    state = numbers_of_dentry_state()
    assert abs(found["dentries"] - state["dentries"]) < 0.2 * state["dentries"] + 20_000
    assert found["unused"] <= found["dentries"]
    assert found["dentry_slab_bytes"] % os.sysconf("SC_PAGE_SIZE") == 0
    assert abs(found["dentry_slab_bytes"] / 4096 - dentry_slab_pages()) < 0.2 * dentry_slab_pages() + 2_000
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found["ram_bytes"] == pytest.approx(total, rel=0.001)
    assert found["inode_slab_bytes"] == sum(slab["bytes"] for slab in found["slabs"] if slab["kind"] == "inode")


def test_negative_entries_are_seen_named_and_given_back(opskit, machine_root, disk):
    """200,000 failed stat()s show as so many negative dentries; --drop gives the slab back, by /proc/slabinfo itself."""
    for _ in range(5):
        first_drops = drops()
        before = document(opskit)
        make_negatives(disk, NEGATIVES)
        after = document(opskit)
        if drops() == first_drops:  # somebody else's drop would have taken them
            break
    grown = after["negative"] - before["negative"]
    assert grown == pytest.approx(NEGATIVES, rel=0.05)
    assert re.search(r"\d+ % of it are negative entries", after["verdict"][0])
    pages_before, drops_before = dentry_slab_pages(), drops()
    done = opskit("dentry", "--drop", "--yes", "-f", "json")
    pages_after = dentry_slab_pages()
    assert done.code == 0, done.err
    assert drops() != drops_before
    assert (pages_before - pages_after) * 4096 > 0.8 * NEGATIVES * 192
    dropped = json.loads(done.out)["drop"]
    assert (dropped["level"], dropped["written"], dropped["synced"]) == ("dentries", 2, True)
    assert dropped["before"]["dentries"] - dropped["after"]["dentries"] > 0.8 * NEGATIVES
    assert dropped["freed_bytes"] > 0.8 * NEGATIVES * 192
    assert dropped["drop_s"] > 0


@pytest.mark.parametrize(("level", "word", "number"), [("1", "pagecache", 1), ("all", "all", 3)])
def test_levels(machine_root, level, word, number):
    """The numbers 1, 2, 3 are understood; what is written is 1, 2 or 3: seen by strace, not believed."""
    done = traced("dentry", "--drop", level, "--yes", "-f", "json", calls=("write", "sync"))
    assert done.code == 0
    assert json.loads(done.out)["drop"]["level"] == word
    # The value is written by a child whose standard streams are elsewhere: a number and a newline, and nothing else.
    assert re.findall(r'write\(\d+, "(\d)\\n", 2\)', "\n".join(done.calls)) == [str(number)]
    assert done.of("sync")


def test_without_yes_nothing_is_changed(opskit, machine_root):
    """Off a terminal it says what would happen, asks nothing, changes nothing, exits with 2."""
    before = drops()
    done = opskit("dentry", "--drop")
    assert (done.code, done.out) == (2, "")
    assert "write 2 to /proc/sys/vm/drop_caches" in done.err
    assert "Nothing was changed; add --yes" in done.err
    assert drops() == before


def in_namespace(script, *flags):
    return subprocess.run(
        ["unshare", "-m", *flags, "sh", "-c", script], capture_output=True, text=True, check=False, timeout=120
    )


DROP = f"{sys.executable} -m opskit dentry --drop --yes"
READ_ONLY = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && "


@pytest.mark.parametrize("answer", [b"no\n", b"\n", b"y\n", b"\x04", b"\x03"])
def test_anything_but_yes_changes_nothing(machine_root, answer):
    """On a terminal it asks; no, nothing, a hasty y, end of input and Ctrl-C are all a no."""
    before = drops()
    code, shown = on_terminal("dentry", "--drop", question="Type yes to go on", answer=answer)
    assert code in (2, 130)
    assert "Type yes to go on" in shown
    assert "Freed" not in shown
    assert drops() == before


def test_a_typed_yes_drops(machine_root):
    """The plan, the question, before and after."""
    before = drops()
    code, shown = on_terminal("dentry", "--drop", "-f", "text", question="Type yes to go on", answer=b"yes\n")
    assert code == 0
    assert "write 2 to /proc/sys/vm/drop_caches" in shown
    assert "Freed" in shown
    assert drops() != before


def test_a_read_only_proc_sys(machine_root):
    """EROFS: nothing changed, and what would work."""
    before = drops()
    done = in_namespace(READ_ONLY + DROP)
    assert done.returncode == 2
    assert "Read-only file system" in done.stderr
    assert "Nothing was changed" in done.stderr
    assert "on the host itself" in done.stderr
    assert drops() == before


def test_a_container_is_refused_without_the_word(machine_root):
    """In a pid namespace of its own: refused, with the gentler way; --in-container lets it through to the rights."""
    before = drops()
    done = in_namespace(DROP, "-p", "-f", "--mount-proc")
    assert done.returncode == 2
    assert "this is a container (its pid namespace" in done.stderr
    assert "--in-container" in done.stderr
    assert "memory.reclaim" in done.stderr
    done = in_namespace(f"{READ_ONLY}{DROP} --in-container", "-p", "-f", "--mount-proc")
    assert done.returncode == 2
    assert "Read-only file system" in done.stderr
    assert drops() == before


def test_culprit_in_a_container_says_where_to_go(machine_root):
    """The kernel's pids mean nothing in a pid namespace."""
    done = in_namespace(f"{sys.executable} -m opskit dentry --culprit", "-p", "-f", "--mount-proc")
    assert done.returncode == 2
    assert "run opskit dentry --culprit on the host" in done.stderr


def test_a_sync_that_hangs_is_left_behind(machine_root):
    """With sync() delayed far beyond the timeout the drop is done all the same, and it is said that nothing dirty went."""
    done = traced(
        "dentry", "--drop", "pagecache", "--yes", "--sync-timeout", "500ms", "-f", "json",
        calls=("sync",), options=("-e", "inject=sync:delay_enter=15000000"),
    )  # fmt: skip
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["drop"]["synced"], found["drop"]["written"]) == (False, 1)
    assert any("sync did not end within 0.5 s" in note for note in found["notes"])


def test_ctrl_c_while_it_waits_for_sync_changes_nothing(machine_root):
    """Exit 130 at once, and nothing was dropped."""
    needs_strace()
    before = drops()
    process = subprocess.Popen(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=sync", "-e", "inject=sync:delay_enter=15000000",
         sys.executable, "-m", "opskit", "dentry", "--drop", "--yes"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip

    def children(pid):
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()

    assert wait_until(lambda: any(children(child) for child in children(process.pid)))
    [ours] = children(process.pid)
    os.kill(int(ours), signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert out == ""
    assert "interrupted while it waited for sync. Nothing was changed" in err
    assert drops() == before


def test_an_unprivileged_user_gets_the_best_answer_there_is(machine_root):
    """No slabinfo: counts and shares from dentry-state and meminfo, an estimate that says so, and what is missing."""
    done = as_nobody("-f", "json")
    assert done.returncode == 0, done.stderr
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
def test_without_the_rights_the_message_says_what_would_work(machine_root, arguments, words):
    """Exit 2, one line, nothing changed."""
    before = drops()
    done = as_nobody(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert drops() == before


def test_the_look_writes_and_signals_nothing(machine_root):
    """As strace sees it: nothing is opened for writing but our own oom_score_adj, no signal, no sync, no mount."""
    done = traced("dentry", "-f", "json")
    assert done.code == 0
    assert done.acting() == []


# --- watching ---


def test_watch_shows_growth_per_minute(opskit, machine_root, disk, spawn):
    """A process that makes negative entries all the while shows as growth; JSON has every sample."""
    process = spawn(LOOK_FOR_ABSENT, disk, 300_000, 0)
    found = document(opskit, "-w", "-i", "200ms", "-c", "4")
    process.kill()
    assert [round(one["at_s"], 1) for one in found["samples"]] == sorted(
        round(one["at_s"], 1) for one in found["samples"]
    )
    assert len(found["samples"]) == 4
    assert set(found["growth_per_min"]) == {
        "dentries", "unused", "negative", "dentry_slab_bytes", "inode_slab_bytes", "reclaimable_bytes",
    }  # fmt: skip
    assert all(one["dentries"] > 0 for one in found["samples"])


def test_a_live_table_is_about_what_grows(opskit, machine_root):
    """The figures and the slabs with their growth: no explanations, and not the rest of a single look."""
    done = opskit("dentry", "-w", "-c", "2", "-i", "50ms", "-f", "table")
    once = opskit("dentry", "-f", "table")
    assert "bytes per min" in done.out
    for words in ("inode caches by file system", "in the dentry slab"):
        assert words in once.out
        assert words not in done.out


def test_watch_in_text_is_a_row_a_sample(opskit, machine_root):
    """Header and row, the same columns each time."""
    done = opskit("dentry", "-w", "-i", "100ms", "-c", "2", "-f", "text")
    first, second = done.out.strip().split("\n\n")
    assert first.split("\n")[0].split() == second.split("\n")[0].split()
    assert first.split("\n")[0].split()[:4] == ["AT_S", "DENTRIES", "UNUSED", "NEGATIVE"]
    assert len(first.split("\n")[1].split()) == len(first.split("\n")[0].split()) == 13


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_pictures(opskit, machine_root, tmp_path, suffix):
    """The largest slabs now, and over the samples of a watch."""
    pytest.importorskip("matplotlib")
    for arguments in ([], ["-w", "-c", "2", "-i", "100ms"]):
        path = tmp_path / f"slabs.{suffix}"
        done = opskit("dentry", *arguments, "-o", path)
        assert (done.code, done.out) == (0, "")
        data = path.read_bytes()
        assert data.startswith(b"<?xml" if suffix == "svg" else b"\x89PNG")
        assert suffix == "png" or b"dentry" in data
        path.unlink()


# --- the culprit ---


IN_TRACEFS = "mount -t tracefs tracefs /sys/kernel/tracing && cd /sys/kernel/tracing && "


def in_tracefs(script):
    done = in_namespace(IN_TRACEFS + script)
    if done.returncode:
        pytest.skip(f"needs tracefs: {done.stderr.strip()}")
    return done.stdout.split()


def instances():
    """The tracing instances of ours that there are on this machine, seen in mounts of our own."""
    return [name for name in in_tracefs("ls instances") if name.startswith("opskit-")]


def perf_events(*pids):
    """How many perf events these processes hold open."""
    count = 0
    for pid in pids:
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        count += links.count("anon_inode:[perf_event]")
    return count


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("events", ["perf", "syscalls", "raw_syscalls"])
def test_the_culprit_is_named(opskit, machine_root, disk, spawn, events):
    """A process that keeps looking for absent files is named, with either kind of events; nothing stays behind."""
    before = instances()
    process = spawn(LOOK_FOR_ABSENT, disk, 1000, 120)
    code = (
        "from opskit.host import Host; from opskit.actions.trace_lookups import trace_failed_lookups as trace;"
        f"found = trace(Host.at(None, None), 1.0, ('{events}',)); import json;"
        "print(json.dumps([found.events, found.total, [(r.pid, r.lookups, r.calls) for r in found.lookers]]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    used, total, lookers = json.loads(done.stdout)
    assert used == events
    pid, lookups, calls = lookers[0]
    assert pid == process.pid
    assert lookups > 0.5 * total
    assert set(calls) & {"newfstatat", "stat", "statx", "newstat"}
    assert set(instances()) <= set(before)


def test_culprit_as_a_user_sees_it(opskit, machine_root, disk, spawn):
    """`--culprit SECONDS` prints who it is first, and what to type to see the paths."""
    process = spawn(LOOK_FOR_ABSENT, disk, 1000, 120)
    for _ in range(10):  # the paths need the process to run in a moment of 150 ms
        found = document(opskit, "--culprit", "500ms")
        if found["culprits"][0]["paths"]:
            break
    assert found["culprits"][0]["pid"] == process.pid
    assert all(path.startswith(f"{disk}/absent-") for path in found["culprits"][0]["paths"])
    assert found["verdict"][1].startswith(f"It looks for names like {disk}/absent-")
    assert found["culprits"][0]["user"] == "root"
    assert f"({process.pid}) made" in found["verdict"][0]
    assert found["verdict"][2].endswith(f"-p {process.pid}")
    assert found["failed_lookups"] >= found["failed_lookups_counted"] > 0
    assert found["dentries"] > 0


def test_processes_that_have_ended_are_named_by_their_command(opskit, machine_root, disk, spawn):
    """A shell that starts a failing program again and again: the programs are gone, their name is there."""
    loop = "import subprocess, sys, time\nprint(flush=True)\nend = time.monotonic() + 120\n"
    loop += "while time.monotonic() < end: subprocess.run(['/bin/ls', *(f'{sys.argv[1]}/x{i}' for i in range(500))],"
    loop += " stderr=subprocess.DEVNULL)"
    spawn(loop, disk)
    found = document(opskit, "--culprit", "2s", "-n", "0")
    ended = [row for row in found["culprits"] if row["pid"] is None and row["command"] == "ls"]
    assert ended
    assert ended[0]["processes"] > 1
    assert ended[0]["failed_lookups"] > 500


def test_a_busy_process_keeps_its_row_when_it_has_ended(opskit, machine_root, disk):
    """It came and went while the tracer looked: its pid is there, marked, and nobody is told to strace it."""
    code = (
        "import os, sys, time\ntime.sleep(2)\nfor i in range(100000):\n"
        "    try: os.stat(f'{sys.argv[1]}/absent-{i}')\n    except OSError: pass"
    )
    process = subprocess.Popen([sys.executable, "-c", code, disk])
    try:
        found = document(opskit, "--culprit", "8s")
    finally:
        process.kill()
        process.wait()
    [row] = [row for row in found["culprits"] if row["pid"] == process.pid]
    assert row["ended"]
    assert row["failed_lookups"] > 80_000
    if row == found["culprits"][0]:
        assert f"({process.pid}, ended) made" in found["verdict"][0]
        assert not any("strace" in line for line in found["verdict"])


def test_every_failed_lookup_is_counted_and_told_apart_where_they_are_few(machine_root, disk, spawn):
    """By perf events: of a process that makes exactly so many, each one is seen, by call."""
    code = (
        "import os, sys, time\nprint(flush=True); time.sleep(1)\n"
        "for number in range(400):\n"
        "    for act in (os.stat, os.readlink):\n"
        "        try: act(f'{sys.argv[1]}/absent-{number}')\n        except OSError: pass\n"
        "time.sleep(60)"
    )
    process = spawn(code, disk)
    found = traced_in_python("perf", 2.5)
    if found["total"] > 50_000:
        pytest.skip("this machine is too busy to record every lookup")
    [row] = [row for row in found["lookers"] if row["pid"] == process.pid]
    assert row["lookups"] == 800
    assert sorted(row["calls"].values()) == [400, 400]
    assert found["counted"] == found["total"]


def test_a_flood_is_sampled_and_scaled_to_the_kernels_count(machine_root, disk, spawn):
    """Two processes with different calls: their shares are right although few of their lookups are recorded."""
    both = (
        "import os, sys, time\nprint(flush=True); act = getattr(os, sys.argv[2]); end = time.monotonic() + 60; count = 0\n"
        "while time.monotonic() < end:\n"
        "    for number in range(100):\n"
        "        try: act(f'{sys.argv[1]}/absent-{number}')\n        except OSError: pass\n"
    )
    processes = {spawn(both, disk, name).pid: name for name in ("stat", "readlink")}
    found = traced_in_python("perf", 2.0)
    assert found["counted"] < 0.8 * found["total"]
    assert sum(row["lookups"] for row in found["lookers"]) == pytest.approx(found["total"], rel=0.01)
    for pid, name in processes.items():
        [row] = [row for row in found["lookers"] if row["pid"] == pid]
        assert row["lookups"] > 0.1 * found["total"]
        main = next(iter(row["calls"]))
        assert name in main
        assert row["calls"][main] > 0.95 * row["lookups"]


def traced_in_python(events, seconds):
    code = (
        "from opskit.host import Host; from opskit.actions.trace_lookups import trace_failed_lookups as trace;"
        f"found = trace(Host.at(None, None), {seconds}, ('{events}',)); import json;"
        "print(json.dumps({**found._asdict(), 'lookers': [row._asdict() for row in found.lookers]}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_where_perf_events_are_refused_an_instance_does(machine_root, disk, spawn):
    """A seccomp filter or a security module: the answer is the same, and nothing stays."""
    needs_strace()
    process = spawn(LOOK_FOR_ABSENT, disk, 1000, 120)
    before = set(instances())
    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=perf_event_open",
         "-e", "inject=perf_event_open:error=EPERM",
         sys.executable, "-m", "opskit", "dentry", "--culprit", "1", "-f", "json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert process.pid in [row["pid"] for row in json.loads(done.stdout)["culprits"]]
    assert set(instances()) <= before


CULPRIT = """
import sys
from opskit import cli
from opskit.actions import trace_lookups
if sys.argv[1] == "instance":
    trace_lookups.trace_failed_lookups.__defaults__ = (("syscalls", "raw_syscalls"),)
sys.argv = ["opskit", "dentry", "--culprit", "60", "-f", "json"]
cli.main()
"""


@pytest.fixture(params=["perf", "instance"])
def culprit(request, machine_root):
    """`opskit dentry --culprit 60` at work, by perf events and by an instance: (the process, its child, its instances)."""
    before = set(instances())
    process = subprocess.Popen(
        [sys.executable, "-c", CULPRIT, request.param],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip

    def at_work():
        return perf_events(*children(process.pid)) or set(instances()) - before

    assert wait_until(at_work)
    [child] = children(process.pid)
    made = {name for name in set(instances()) - before if name.startswith(f"opskit-{child}-")}
    assert bool(perf_events(child)) is (request.param == "perf")
    assert bool(made) is (request.param == "instance")
    yield process, child, made
    process.kill()
    process.communicate()


def test_ctrl_c_tells_what_was_seen_and_leaves_nothing(culprit):
    """SIGINT to the whole foreground group, as a terminal sends it: exit 130, the report, no instance left."""
    process, child, made = culprit
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert json.loads(out)["culprit_s"] < 60
    assert not made & set(instances())
    assert not os.path.exists(f"/proc/{child}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_us_removes_everything_first(culprit, number):
    """The report of what was seen, ended by the signal, and the instance is gone when we are."""
    process, child, made = culprit
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == -number
    assert json.loads(out)["culprit_s"] < 60
    assert not made & set(instances())
    assert not os.path.exists(f"/proc/{child}")


def test_even_kill_9_leaves_nothing(culprit):
    """The child sees that its parent is gone."""
    process, child, made = culprit
    process.kill()
    process.communicate(timeout=60)
    assert wait_until(lambda: not made & set(instances()) and not os.path.exists(f"/proc/{child}"))


def test_a_killed_tracer_is_cleaned_up_after(culprit):
    """The child is killed: one clear line, exit 2, and its instance is removed."""
    process, child, made = culprit
    os.kill(child, signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "what it had set up was removed" in err
    assert not made & set(instances())


def test_both_killed_leave_no_event_and_the_next_run_removes_an_instance(opskit, culprit, spawn):
    """SIGKILL of both processes: perf events end with them; an instance, without those, stays until the next run."""
    process, child, made = culprit
    enabled = "grep -l 1 events/syscalls/*/enable events/raw_syscalls/*/enable | sort"
    for pid in (process.pid, child):
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert wait_until(lambda: not os.path.exists(f"/proc/{child}") or not perf_events(child))
    assert made <= set(instances())
    assert in_tracefs(f"({enabled}) || true") == []
    if made:
        living = spawn(
            "from opskit.actions import leftovers; print(leftovers.new_name()[1:]); import time; time.sleep(60)"
        )
        in_tracefs(f"mkdir instances/{living.line}")
        try:
            opskit("dentry", "--culprit", "100ms")
            assert not made & set(instances())
            assert living.line in instances(), "one whose owner lives stays"
        finally:
            in_tracefs(f"rmdir instances/{living.line}")


def test_a_bug_in_the_tracer_ends_with_70(machine_root):
    """One line with its place, as any other bug."""
    code = CULPRIT.replace("cli.main()", "trace_lookups._Tracer._answer = lambda *_: {}['x']\ncli.main()").replace(
        '"60"', '"100ms"'
    )
    done = subprocess.run([sys.executable, "-c", code, "perf"], capture_output=True, text=True, check=False)
    assert done.returncode == 70
    [line] = done.stderr.splitlines()
    assert line.startswith("opskit: this is a bug in opskit")
    assert "KeyError: 'x' at opskit/actions/trace_lookups.py" in line
