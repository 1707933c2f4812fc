"""limits.conf and limits.d as pam_limits reads them: its source decides (linux-pam, modules/pam_limits/pam_limits.c)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.proc.config import pam_limits as pamlimits
from opskit.proc.config.pam_limits import Account, account_of, pam_limits, parse_value
from opskit.proc.files.limits import UNLIMITED, parse_limits
from opskit.proc.fs import ProcFS

APP = Account("app", 1001, 1001, {"app": 1001, "web": 2001})
ROOT = Account("root", 0, 0, {"root": 0}, wildcards_apply=False)


@pytest.fixture
def read(tree):
    """Read limits.conf (and files of limits.d by name) for an account; gives values by (item, side)."""

    def run(conf, account=APP, **drop_ins):
        files = {"etc/security/limits.conf": conf}
        files |= {f"etc/security/limits.d/{name.replace('_', '.')}": text for name, text in drop_ins.items()}
        root = tree(files)
        return pam_limits(ProcFS(f"{root}/proc", str(root)), account)

    return run


def values(found):
    """By item, soft and hard."""
    return {(name.removeprefix("RLIMIT_").lower(), side): limit.value for (name, side), limit in found.limits.items()}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("* - stack 8192", {("stack", "soft"): 8192 << 10, ("stack", "hard"): 8192 << 10}),
        ("* soft nproc 10", {("nproc", "soft"): 10}),
        ("* hard nproc 10", {("nproc", "hard"): 10}),
        ("  *\t-\tnproc\t10   ", {("nproc", "soft"): 10, ("nproc", "hard"): 10}),
        ("app - cpu 2", {("cpu", "soft"): 120, ("cpu", "hard"): 120}),
        ("app SOFT NPROC 10", {("nproc", "soft"): 10}),
        ("app soft nproc UNLIMITED", {("nproc", "soft"): UNLIMITED}),
        ("app soft nproc infinity", {("nproc", "soft"): UNLIMITED}),
        ("app soft nproc -1", {("nproc", "soft"): UNLIMITED}),
        ("app soft nproc -", {("nproc", "soft"): UNLIMITED}),
        ("app soft as 18446744073709551615", {("as", "soft"): UNLIMITED}),
        ("app soft as 18014398509481984", {("as", "soft"): UNLIMITED}),
        ("app soft nproc 12abc", {("nproc", "soft"): 12}),
        ("app soft nproc 12 # why", {("nproc", "soft"): 12}),
        ("app soft nproc 12 13", {("nproc", "soft"): 12}),
        ("app soft nproc +7", {("nproc", "soft"): 7}),
        ("app - nice -5", {("nice", "soft"): 25, ("nice", "hard"): 25}),
        ("app - nice 99", {("nice", "soft"): 1, ("nice", "hard"): 1}),
        ("@web - nproc 5", {("nproc", "soft"): 5, ("nproc", "hard"): 5}),
        ("@:2001 soft nproc 5", {("nproc", "soft"): 5}),
        ("@1000:1500 soft nproc 5", {("nproc", "soft"): 5}),
        ("@1000: soft nproc 5", {("nproc", "soft"): 5}),
        ("1000: soft nproc 5", {("nproc", "soft"): 5}),
        ("1000:1001 soft nproc 5", {("nproc", "soft"): 5}),
        (":1001 soft nproc 5", {("nproc", "soft"): 5}),
        ("# app soft nproc 5", {}),
        ("   # app soft nproc 5", {}),
        ("app soft nproc", {}),
        ("app soft nproc many", {}),
        ("app soft nproc unlimited x", {}),
        ("app soft nproc unlimited\r", {}),
        ("app soft threads 5", {}),
        ("app firm nproc 5", {}),
        ("apple soft nproc 5", {}),
        ("@apple soft nproc 5", {}),
        ("% - nproc 5", {}),
        ("%web - nproc 5", {}),
        (":1000 soft nproc 5", {}),
        ("1002: soft nproc 5", {}),
        ("1:1000 soft nproc 5", {}),
        ("@2000: soft nproc 5", {}),  # of the primary group alone
        (": soft nproc 5", {}),
        ("a:b soft nproc 5", {}),
        ("1001:x soft nproc 5", {}),
        ("", {}),
    ],
)
def test_a_line_gives(read, line, expected):
    """Domains, types, items, values: what counts, what is skipped."""
    assert values(read(line + "\n")) == expected


def test_a_more_specific_line_beats_an_earlier_and_a_later_one(read):
    """User and uid range, then group, then wildcard, across all files; the order decides within a class alone."""
    found = read("app - nproc 1\n@web - nproc 2\n* - nproc 3\n", **{"50-x_conf": "* - nproc 4\n@web - nproc 5\n"})
    assert values(found)["nproc", "soft"] == 1
    assert (
        values(read("@web - nproc 2\n* - nproc 3\n", **{"50-x_conf": "* - nproc 4\n@web - nproc 5\n"}))["nproc", "soft"]
        == 5
    )
    assert values(read("app - nproc 1\n1000: - nproc 6\n"))["nproc", "soft"] == 6


def test_a_dash_that_may_not_set_the_soft_limit_leaves_the_hard_one_alone(read):
    """pam_limits returns at the first of the two that a more specific line has set."""
    assert values(read("app soft stack 100\n* - stack 200\n")) == {("stack", "soft"): 100 << 10}
    assert values(read("app hard stack 100\n* - stack 200\n")) == {
        ("stack", "hard"): 100 << 10,
        ("stack", "soft"): 200 << 10,
    }


ASK_PAM = """
for file in passwd shadow group security; do mount --bind "$0/$file" "/etc/$file" || exit; done
exec su pamtest -s /bin/sh -c 'exec cat /proc/self/limits'
"""


@pytest.fixture
def real(root_only, tmp_path):
    """Log a user in, in a mount namespace of its own, with these files; gives the limits that pam_limits gave him."""
    pam = Path("/etc/pam.d/su")
    if not pam.exists() or "pam_limits.so" not in pam.read_text():
        pytest.skip("su without pam_limits here")

    def run(conf, **drop_ins):
        (tmp_path / "security" / "limits.d").mkdir(parents=True)
        for file, line in (
            ("passwd", "pamtest:x:64777:64778::/:/bin/sh"),
            ("shadow", "pamtest:*:19000:0:99999:7:::"),
            ("group", "pamtest:x:64778:\nweb:x:64779:pamtest"),
        ):
            (tmp_path / file).write_text(f"{Path('/etc', file).read_text()}{line}\n")
        for file in Path("/etc/security").iterdir():
            if file.is_file():
                (tmp_path / "security" / file.name).write_bytes(file.read_bytes())
        for name, text in {
            "limits.conf": conf,
            **{f"limits.d/{name}.conf": text for name, text in drop_ins.items()},
        }.items():
            (tmp_path / "security" / name).write_text(text)
        command = ["unshare", "-m", "sh", "-c", ASK_PAM, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if "Max stack size" not in done.stdout:
            pytest.skip(f"no session can be opened here: {done.stdout}{done.stderr}")
        return parse_limits(done.stdout[done.stdout.index("Limit ") :])

    return run


@pytest.mark.parametrize(
    ("conf", "drop_ins"),
    [
        ("* - stack 100\n* soft core 7\n", {}),
        ("@web soft stack 4096\n* - stack 8192\n", {}),
        ("@web hard stack 4096\n* - stack 8192\n", {}),
        ("pamtest hard fsize 500\n* - fsize 800\n@web soft fsize 300 # why\n", {"b": "* - fsize 9\n", "a": "@web soft fsize 200\n"}),
        ("64777: - nproc 70\npamtest - nproc 80\n@web - nproc 60\n", {}),
        ("64000:64777 soft nproc 70\n@:64779 - nproc 60\n@64778:64778 soft core 5\n@64779: hard core 4\n", {}),
        ("%web - nproc 60\n* soft nproc 50x\n* soft core many\nweb - fsize 1\n", {"z": "PAMTEST - fsize 2"}),
        ("* - nproc 50\n@web -\n* - fsize 3\n", {}),
        ("* - nproc 50\n", {"x": "@other -\n* -\n% -\n", "y": " \t* Soft NPROC\t40"}),
    ],
)  # fmt: skip
def test_what_pam_limits_really_gives(real, read, conf, drop_ins):
    """A session opened by PAM has the limits that we compute, and otherwise its old ones."""
    said = values(
        read(
            conf,
            Account("pamtest", 64777, 64778, {"pamtest": 64778, "web": 64779}),
            **{f"{n}_conf": t for n, t in drop_ins.items()},
        )
    )
    before, after = parse_limits(Path("/proc/1/limits").read_text()), real(conf, **drop_ins)
    for item in ("stack", "core", "fsize", "nproc"):
        was, now = before[f"RLIMIT_{item.upper()}"], after[f"RLIMIT_{item.upper()}"]
        hard = said.get((item, "hard"), was.hard)
        assert (now.soft, now.hard) == (min(said.get((item, "soft"), was.soft), hard), hard), item


def test_limits_d_is_read_in_the_order_of_the_names(read):
    """C's order: 10 before 9, upper case before lower; files that do not end in .conf, and hidden ones, do not count."""
    found = read(
        "* - nproc 1\n",
        **{
            "9_conf": "* - nproc 9\n",
            "10_conf": "* - nproc 10\n",
            "99_bak": "* - nproc 99\n",
            "_h_conf": "* - nproc 7\n",
        },
    )
    limit = found.limits["RLIMIT_NPROC", "soft"]
    assert limit.value == 9
    assert limit.setting.place == "/etc/security/limits.d/9.conf line 1: `* - nproc 9`"
    assert values(read("", B_conf="* - nproc 2\n", a_conf="* - nproc 3\n"))["nproc", "soft"] == 3


def test_wildcards_pass_root_by_on_debian_and_hold_elsewhere(tree):
    """A line for root itself always applies; `*` applies to root where os-release is not Debian's."""
    conf = "* - nproc 5\n@root - nofile 6\nroot - stack 7\n"
    for release, expected in (("ID=debian\n", 1), ('ID=ubuntu\nID_LIKE="debian"\n', 1), ("ID=fedora\n", 3)):
        root = tree({"etc/security/limits.conf": conf, "etc/os-release": release, "etc/group": "root:x:0:\n"})
        fs = ProcFS(f"{root}/proc", str(root))
        found = pam_limits(fs, account_of(fs, "root", 0, 0, ()))
        assert len({name for name, _ in found.limits}) == expected


@pytest.mark.parametrize("line", ["app -", "@web -", "1001: -", ":1001 -", "app  -   # nothing for it"])
def test_a_line_of_a_domain_and_a_dash_leaves_the_user_without_limits(read, line):
    """`<domain> -`: all lines of all files are forgotten, also those before it."""
    found = read(f"app soft nproc 5\n{line}\n", **{"50_conf": "app soft nproc 6\n"})
    assert found.limits == {}
    assert found.exempt.line == 2


@pytest.mark.parametrize("line", ["* -", "bob -", "@staff -", "9000: -", "app soft"])
def test_a_dash_for_others_changes_nothing(read, line):
    """A wildcard with a dash does not either."""
    assert values(read(f"app soft nproc 5\n{line}\n")) == {("nproc", "soft"): 5}


def test_an_unreadable_file_is_named_and_the_rest_goes_on(tree):
    """A directory where a file should be."""
    root = tree({"etc/security/limits.d/10.conf/x": "", "etc/security/limits.d/20.conf": "app - nproc 3\n"})
    found = pam_limits(ProcFS(f"{root}/proc", str(root)), APP)
    assert found.unread == ["/etc/security/limits.d/10.conf: Is a directory"]
    assert values(found)["nproc", "soft"] == 3


def test_the_vendors_files_are_hidden_by_the_administrators(tree):
    """/usr/lib/security applies to names that /etc does not have."""
    root = tree(
        {
            "usr/lib/security/limits.conf": "app - nproc 1\n",
            "usr/lib/security/limits.d/50.conf": "app - nofile 2\n",
            "etc/security/limits.d/50.conf": "app - nofile 3\n",
        }
    )
    found = values(pam_limits(ProcFS(f"{root}/proc", str(root)), APP))
    assert (found["nproc", "soft"], found["nofile", "soft"]) == (1, 3)


def test_a_file_without_a_last_newline_and_with_bytes_that_are_no_text(tree):
    """Read as bytes, to the end."""
    root = tree({"etc/security/limits.conf": b"\xff\xfe * - nproc 3\napp - nproc 4"})
    found = pam_limits(ProcFS(f"{root}/proc", str(root)), APP)
    assert values(found)["nproc", "soft"] == 4


@given(st.integers(min_value=0, max_value=2**70))
def test_sizes_are_kb_and_saturate(number):
    """As the C code computes with 64 bits."""
    value = parse_value("stack", str(number))
    assert value == (number * 1024 if number < (2**64 - 1) // 1024 else UNLIMITED)
    assert parse_value("nproc", str(number)) == (number if number < 2**64 - 1 else UNLIMITED)


@given(st.text(max_size=40))
def test_no_line_breaks_it(line):
    """Any text gives a limit or none, never an exception."""
    found, classes = pamlimits.PamLimits(), {}
    pamlimits._apply(found, classes, "f", 1, line, APP)
    parse_value("as", line)
