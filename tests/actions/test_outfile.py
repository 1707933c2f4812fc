"""Where -o and --save write: completely or not at all, not to a place that another user chose, with the old attributes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from shells import NOBODY

from opskit.actions import outfile
from opskit.errors import CannotWrite

NEW = b"new content"


@pytest.fixture
def sticky(tmp_path, root_only):
    """A directory like /tmp."""
    place = tmp_path / "sticky"
    place.mkdir()
    place.chmod(0o1777)
    return place


@pytest.fixture
def open_place(root_only):
    """A directory where every user may go, which pytest's are not."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        place = Path(name)
        place.chmod(0o755)
        yield place


@pytest.fixture
def victim(tmp_path):
    path = tmp_path / "victim"
    path.write_text("precious")
    return path


def link(path, target, uid=NOBODY):
    os.symlink(target, path)
    os.lchown(path, uid, uid)
    return path


def refused(path, said):
    for act in (outfile.check, lambda where: outfile.write_file(where, NEW)):
        with pytest.raises(CannotWrite, match=said):
            act(str(path))


# --- links ---


@pytest.mark.parametrize("mode", [0o1777, 0o777, 0o1775])
def test_another_users_link_in_a_shared_directory_is_not_followed(sticky, victim, mode):
    """A link of another user to a file or to an absent name is refused, whatever fs.protected_symlinks is."""
    sticky.chmod(mode)
    refused(link(sticky / "x.json", victim), "x.json is a symbolic link of uid 65534")
    refused(link(sticky / "y.json", victim.parent / "new"), "y.json is a symbolic link of uid 65534")
    assert victim.read_text() == "precious"
    assert not (victim.parent / "new").exists()
    assert sorted(os.listdir(sticky)) == ["x.json", "y.json"]


def test_root_is_not_led_to_its_own_file_by_a_link_in_a_shared_directory(opskit, sticky, victim):
    """`opskit pipes -o /tmp/x.json`, where another user's link waits: one line, exit 2, before any work."""
    link(sticky / "x.json", victim)
    done = opskit("pipes", "-o", sticky / "x.json")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"opskit: cannot write {sticky}/x.json: {sticky}/x.json is a symbolic link of uid 65534 in a directory that others "
        "may write to; choose another place with -o\n"
    )
    assert victim.read_text() == "precious"


def test_a_link_in_the_middle_of_the_path_is_not_followed_either(sticky, tmp_path):
    """A directory link of another user is refused too, also behind a link of ours; --save behaves the same."""
    (tmp_path / "away").mkdir()
    link(sticky / "dir", tmp_path / "away")
    refused(sticky / "dir" / "x.json", "dir is a symbolic link of uid 65534")
    (tmp_path / "mine").symlink_to(sticky / "dir")
    refused(tmp_path / "mine" / "x.json", "dir is a symbolic link of uid 65534")
    (tmp_path / "up").symlink_to("sticky/../sticky/dir")
    refused(tmp_path / "up" / "x.json", "dir is a symbolic link of uid 65534")
    for place in (sticky / "dir", sticky / "dir" / "new", tmp_path / "mine" / "a" / "b"):
        with pytest.raises(CannotWrite, match=r"--save .*dir is a symbolic link of uid 65534"):
            outfile.make_directory(str(place))
    assert os.listdir(tmp_path / "away") == []


def test_root_follows_no_other_users_link_anywhere(tmp_path, victim, root_only):
    """Root follows no link of another user in that user's own directory, which no sysctl covers."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    refused(link(home / "x.json", victim), "x.json is a symbolic link of uid 65534 which root does not follow")
    assert victim.read_text() == "precious"


def test_a_user_follows_the_links_of_others_where_only_they_can_be(as_user, open_place):
    """Links are refused only in shared directories, and there not those of root, as in the kernel."""
    target, name = open_place / "target", open_place / "x.json"
    target.write_text("old")
    os.chown(target, NOBODY, NOBODY)
    link(name, "target", 1)
    as_user(NOBODY, lambda: outfile.write_file(str(name), NEW))
    assert target.read_bytes() == NEW
    open_place.chmod(0o1777)
    with pytest.raises(CannotWrite, match="symbolic link of uid 1 in a directory"):
        as_user(NOBODY, lambda: outfile.write_file(str(name), NEW))
    name.unlink()
    link(name, "target", 0)
    as_user(NOBODY, lambda: outfile.write_file(str(name), NEW))


def test_links_of_ours_are_followed(sticky, victim, tmp_path):
    """The target is written, and the link stays: absolute, relative, to a directory, dangling, in a chain."""
    (sticky / "x.json").symlink_to(victim)
    outfile.write_file(str(sticky / "x.json"), NEW)
    assert (sticky / "x.json").is_symlink()
    assert victim.read_bytes() == NEW
    (sticky / "dir").symlink_to("../real")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "chain").symlink_to("../real/./end")
    for name in ("y.json", "chain"):
        outfile.check(f"{sticky}/dir/{name}")
        outfile.write_file(f"{sticky}/dir/{name}", NEW)
    assert sorted(os.listdir(tmp_path / "real")) == ["chain", "end", "y.json"]


def test_links_in_a_circle_end(tmp_path):
    """A loop of links raises ELOOP."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    refused(tmp_path / "a", "Too many levels of symbolic links")


SWAP = """
import os
os.setgroups([]); os.setgid(65534); os.setuid(65534); print(flush=True)
def quietly(act, *words):
    try: act(*words)
    except OSError: pass
while True:
    quietly(os.symlink, "victim", "x.json"); quietly(os.unlink, "x.json")
    quietly(os.symlink, "victim", ".l"); quietly(os.rename, ".l", "x.json"); quietly(os.unlink, "x.json")
    quietly(os.link, "victim", "x.json"); quietly(os.mkfifo, "x.json"); quietly(os.unlink, "x.json")
"""


def test_a_race_for_the_name_wins_nothing(open_place, spawn):
    """Another user swaps link, hard link, FIFO and nothing at the name as fast as it can, while root writes there."""
    open_place.chmod(0o1777)
    precious = open_place / "victim"
    precious.write_text("precious")
    attacker = spawn(SWAP, cwd=open_place)
    outcomes = set()
    for _ in range(1500):
        try:
            outfile.write_file(str(open_place / "x.json"), NEW)
            outcomes.add("written")
            (open_place / "x.json").unlink(missing_ok=True)
        except CannotWrite:
            outcomes.add("refused")
    attacker.kill()
    assert precious.read_text() == "precious"
    assert outcomes == {"written", "refused"}
    assert [name for name in os.listdir(open_place) if name.startswith(".opskit")] == []


# --- what is there already ---


def test_another_users_file_or_fifo_in_a_shared_directory_is_left_alone(sticky):
    """Root writes to no file or FIFO of another user, who could read or block the output."""
    (sticky / "x.json").write_text("theirs")
    os.mkfifo(sticky / "fifo.json", 0o666)
    for name in ("x.json", "fifo.json"):
        os.chown(sticky / name, NOBODY, NOBODY)
        refused(sticky / name, f"{name} is a file of uid 65534 in a directory that others may write to")
    assert (sticky / "x.json").read_text() == "theirs"


def test_owner_group_mode_and_attributes_of_a_file_stay(tmp_path, root_only):
    """Owner, mode, ACL and user.* attributes stay; setuid and setgid do not; the temporary file has mode 0600."""
    path = tmp_path / "x.json"
    path.write_text("old")
    os.chown(path, 1234, 4321)
    path.chmod(0o6640)
    os.setxattr(path, "user.note", b"kept")
    acl = bytes.fromhex("0200000001000600ffffffff020004000d27000004000400ffffffff10000400ffffffff20000000ffffffff")
    os.setxattr(path, "system.posix_acl_access", acl)
    seen = []

    def parts():
        [beside] = [name for name in os.listdir(tmp_path) if name != "x.json"]
        seen.append(stat.S_IMODE((tmp_path / beside).stat().st_mode))
        yield NEW

    outfile.write_file(str(path), parts())
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 4321, 0o640)
    assert os.getxattr(path, "user.note") == b"kept"
    assert os.getxattr(path, "system.posix_acl_access") == acl
    assert path.read_bytes() == NEW
    assert seen == [0o600]


def test_an_acl_of_the_directorys_default_is_not_added_to_a_file_that_had_none(tmp_path):
    """A replaced file is not opened to more than the old one was."""
    default = bytes.fromhex("0200000001000700ffffffff020004000d27000004000500ffffffff10000500ffffffff20000000ffffffff")
    path = tmp_path / "x.json"
    path.write_text("old")
    path.chmod(0o640)
    os.setxattr(tmp_path, "system.posix_acl_default", default)
    outfile.write_file(str(path), NEW)
    assert "system.posix_acl_access" not in os.listxattr(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_new_file_has_the_mode_that_umask_leaves(tmp_path):
    """A new file has mode 0666 without the umask's bits."""
    before = os.umask(0o027)
    try:
        outfile.write_file(str(tmp_path / "x.json"), NEW)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x.json").stat().st_mode) == 0o640


def test_other_names_of_a_replaced_file_keep_the_old_content(tmp_path, victim):
    """A hard link that another user made to root's file is not written through."""
    os.link(victim, tmp_path / "x.json")
    outfile.write_file(str(tmp_path / "x.json"), NEW)
    assert victim.read_text() == "precious"
    assert (tmp_path / "x.json").read_bytes() == NEW


def test_a_file_in_a_directory_that_is_closed_to_us_is_written_in_place(as_user, open_place):
    """A file in a directory that is not writable, or of another owner, is written in place."""
    path = open_place / "x.json"
    path.write_text("old and much longer than that")
    path.chmod(0o666)
    inode = path.stat().st_ino
    for mode in (0o755, 0o775):
        open_place.chmod(mode)
        os.chown(open_place, 0, NOBODY)
        as_user(NOBODY, lambda: (outfile.check(str(path)), outfile.write_file(str(path), NEW)))
        assert (path.read_bytes(), path.stat().st_ino, path.stat().st_uid) == (NEW, inode, 0)
    path.chmod(0o644)
    with pytest.raises(CannotWrite, match=f"no permission on {path}"):
        as_user(NOBODY, lambda: outfile.check(str(path)))
    assert os.listdir(open_place) == ["x.json"]


def test_nothing_is_written_in_place_through_a_hard_link_of_another_user(as_user, open_place):
    """Where fs.protected_hardlinks is off, the name in a directory of another user may be one of our own file's."""
    (open_place / "home").mkdir()
    (open_place / "shared").mkdir()
    mine, theirs = open_place / "home" / "profile", open_place / "shared" / "x.json"
    mine.write_text("precious")
    os.chown(mine, NOBODY, NOBODY)
    os.link(mine, theirs)
    for owner, mode in ((1, 0o755), (0, 0o775)):
        os.chown(theirs.parent, owner, 1)
        theirs.parent.chmod(mode)
        for act in (outfile.check, lambda where: outfile.write_file(where, NEW)):
            with pytest.raises(CannotWrite, match=r"x\.json has 2 hard links"):
                as_user(NOBODY, lambda act=act: act(str(theirs)))
        assert mine.read_text() == "precious"
    os.chown(theirs.parent, 0, 0)
    theirs.parent.chmod(0o755)
    as_user(NOBODY, lambda: outfile.write_file(str(theirs), NEW))
    assert mine.read_bytes() == NEW


# --- no space left ---

IN_TMPFS = """
import os, sys, ctypes
sys.path.insert(0, {path!r})
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x20000) or libc.mount(b"none", b"/", None, 0x44000, None):
    sys.exit(77)
place = sys.argv[1]
libc.mount(b"tmpfs", place.encode(), b"tmpfs", 0, b"size=64k")
from opskit.actions import outfile
from opskit.errors import CannotWrite
os.chdir(place)
"""


def in_tmpfs(place, code):
    path = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", IN_TMPFS.format(path=path) + code, str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("needs mount namespaces")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_full_disk_leaves_the_old_file_as_it_was(tmp_path, root_only):
    """An error of one line; no partial file and no temporary file stays."""
    said = in_tmpfs(
        tmp_path,
        "open('x.json', 'w').write('old')\n"
        "for name in ('x.json', 'y.json'):\n"
        "    try: outfile.write_file(name, (b'x' * 4096 for _ in range(100)))\n"
        "    except CannotWrite as error: print(error)\n"
        "print(os.listdir('.'), open('x.json').read())",
    )
    assert said == [
        "cannot write x.json: No space left on device; choose another place with -o",
        "cannot write y.json: No space left on device; choose another place with -o",
        "['x.json'] old",
    ]


def test_a_mount_point_is_written_in_place_and_whole_or_not_at_all(tmp_path, root_only):
    """A file that is bind-mounted into a container; without space it stays unchanged."""
    said = in_tmpfs(
        tmp_path,
        "for name in ('real', 'x.json'): open(name, 'w').write('old')\n"
        "libc.mount(b'real', b'x.json', None, 0x1000, None)\n"
        "outfile.check('x.json'); outfile.write_file('x.json', b'new')\n"
        "print(open('real').read(), os.listdir('.'))\n"
        "os.mkdir('full'); libc.mount(b'tmpfs', b'full', b'tmpfs', 0, b'size=1m')\n"
        "open('full/x.json', 'w').write('old'); libc.mount(b'real', b'full/x.json', None, 0x1000, None)\n"
        "try: outfile.write_file('full/x.json', b'x' * 100000)\n"
        "except CannotWrite as error: print(error)\n"
        "print(open('real').read(), os.listdir('full'))",
    )
    assert said[0] == "new ['x.json', 'real']"
    assert said[1] == "cannot write full/x.json: No space left on device; choose another place with -o"
    assert said[2] == "new ['x.json']"


def test_an_error_on_the_way_leaves_nothing(tmp_path):
    """An exception of the function that makes the content leaves no file."""

    def parts():
        yield NEW
        raise RuntimeError

    with pytest.raises(RuntimeError):
        outfile.write_file(str(tmp_path / "x.json"), parts())
    assert os.listdir(tmp_path) == []


# --- devices, FIFOs, our own fds ---


def test_a_fifo_is_written_directly(tmp_path):
    """A FIFO stays a FIFO."""
    path = tmp_path / "fifo.json"
    os.mkfifo(path)
    got = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    outfile.check(str(path))
    outfile.write_file(str(path), [NEW, NEW])
    reader.join()
    assert got == [NEW + NEW]
    assert path.is_fifo()


@pytest.mark.parametrize("name", ["/dev/fd/{}", "/proc/self/fd/{}", "/proc/self/../self/fd/{}"])
def test_an_fd_of_ours_is_written_to_by_its_name(tmp_path, name):
    """Output to an fd goes to its current position, as with a shell's redirection; the file is not replaced."""
    with open(tmp_path / "log", "wb", buffering=0) as file:
        file.write(b"before\n")
        os.set_inheritable(file.fileno(), True)
        outfile.check(name.format(file.fileno()))
        outfile.write_file(name.format(file.fileno()), NEW)
        assert (tmp_path / "log").read_bytes() == b"before\n" + NEW


def test_an_fd_that_we_were_not_given_is_none(tmp_path):
    """An fd that is closed, opskit's own, or read-only is refused."""
    refused("/dev/fd/987", "file descriptor 987 is not open")
    with open(os.devnull, "wb") as own:
        refused(f"/dev/fd/{own.fileno()}", "is not open")
    with open(os.devnull, "rb") as reading:
        os.set_inheritable(reading.fileno(), True)
        refused(f"/dev/fd/{reading.fileno()}", "is not open for writing")


def test_process_substitution_and_devices(opskit, tmp_path):
    """`-o >(…)`, `-o /dev/stderr`, `-o /dev/null`, and a device that takes nothing."""
    python = f"{sys.executable} -m opskit pipes -n 1 -f json"
    script = f"{python} -o >(cat > {tmp_path}/out); {python} -o /dev/stderr 2> {tmp_path}/err; {python} -o /dev/null"
    subprocess.run(["bash", "-c", script], check=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "out").exists() or not (tmp_path / "out").read_text().endswith("}\n"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert (tmp_path / "err").read_text().startswith("{")
    done = opskit("pipes", "-f", "json", "-o", "/dev/full")
    assert (done.code, done.err) == (
        2,
        "opskit: cannot write /dev/full: No space left on device; choose another place with -o\n",
    )
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


# --- bad places ---


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("no/x.json", "there is no directory .*/no;"),
        ("file/x.json", "file is not a directory"),
        ("", "it is a directory; name a file in it"),
        ("x.json/", "there is no directory .*x.json"),
        (".", "it is a directory"),
        ("..", "it is a directory"),
        ("y" * 300, "File name too long"),
    ],
)
def test_a_bad_place_is_one_line(tmp_path, path, said):
    """The message names the problem, before the work and at the write."""
    (tmp_path / "file").write_text("")
    refused(f"{tmp_path}/{path}", said)


def test_a_directory_is_made_with_those_above(tmp_path):
    """--save twice is allowed; a path that leads through a file is refused."""
    for _ in range(2):
        outfile.make_directory(f"{tmp_path}/a/b/c")
    outfile.write_file(f"{tmp_path}/a/b/c/x.txt", NEW)
    with pytest.raises(CannotWrite, match=r"--save .*x\.txt is not a directory; choose another place"):
        outfile.make_directory(f"{tmp_path}/a/b/c/x.txt")


# --- what a killed run left ---


def test_the_next_run_removes_what_a_killed_one_left(tmp_path):
    """SIGKILL during the write: the temporary file stays while its process runs, and the next write removes it."""
    code = (
        "import time\nfrom opskit.actions import outfile\n"
        "def parts():\n    yield b'half'\n    print(flush=True); time.sleep(60)\n"
        f"outfile.write_file({str(tmp_path / 'x.json')!r}, parts())"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    process.stdout.readline()
    write_elsewhere = [sys.executable, "-m", "opskit", "pipes", "-n", "1", "-o", str(tmp_path / "y.txt")]
    subprocess.run(write_elsewhere, check=True)
    names = sorted(os.listdir(tmp_path))
    assert len(names) == 2, "the file of a living process stays"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert sorted(os.listdir(tmp_path)) == names
    subprocess.run(write_elsewhere, check=True)
    assert os.listdir(tmp_path) == ["y.txt"]
