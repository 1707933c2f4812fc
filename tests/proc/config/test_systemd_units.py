"""What systemd's unit files set, and sysctl.d."""

from __future__ import annotations

import pytest

from opskit.proc.config.systemd_units import manager_settings, owner_of_path, unit_of_path, unit_settings
from opskit.proc.fs import ProcFS


def of(files, tree):
    root = tree(files)
    return ProcFS(f"{root}/proc", str(root))


def test_the_administrators_file_hides_the_packages(tree):
    """/etc before /run before /usr/lib: one file of a name counts."""
    where = of(
        {
            "usr/lib/systemd/system/app.service": "[Service]\nTasksMax=1\nLimitNPROC=2\n",
            "etc/systemd/system/app.service": "[Service]\n# TasksMax=9\nTasksMax = 3\n",
        },
        tree,
    )
    found = unit_settings(where, "app.service")
    assert found["TasksMax"].place == "/etc/systemd/system/app.service line 3: `TasksMax = 3`"
    assert "LimitNPROC" not in found


def test_drop_ins_come_after_by_file_name(tree):
    """Of the unit, its template, its prefixes and all services; an empty value resets."""
    where = of(
        {
            "usr/lib/systemd/system/app-web@.service": "[Service]\nTasksMax=1\nMemoryMax=5\nLimitNPROC=8\n",
            "etc/systemd/system/app-web@7.service.d/20-b.conf": "[Service]\nTasksMax=2\n",
            "run/systemd/system.control/app-web@7.service.d/50-TasksMax.conf": "[Service]\nTasksMax=4\n",
            "etc/systemd/system/app-.service.d/10-a.conf": "[Service]\nMemoryMax=\n",
            "etc/systemd/system/service.d/05-all.conf": "[Service]\nLimitNOFILE=6\n",
            "etc/systemd/system/app-web@7.service.d/notes.txt": "TasksMax=99\n",
        },
        tree,
    )
    found = {key: setting.value for key, setting in unit_settings(where, "app-web@7.service").items()}
    assert found == {"TasksMax": "4", "LimitNPROC": "8", "LimitNOFILE": "6"}


def test_the_managers_defaults(tree):
    """system.conf and system.conf.d."""
    where = of(
        {
            "etc/systemd/system.conf": "[Manager]\n#DefaultTasksMax=1\nDefaultLimitNPROC=2\n",
            "usr/lib/systemd/system.conf.d/10-x.conf": "[Manager]\nDefaultTasksMax=33\n",
        },
        tree,
    )
    assert {key: setting.value for key, setting in manager_settings(where).items()} == {
        "DefaultLimitNPROC": "2",
        "DefaultTasksMax": "33",
    }


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("/system.slice/app.service", "app.service"),
        ("/system.slice/app.service/payload", "app.service"),
        ("/user.slice/user-1001.slice/session-3.scope", "session-3.scope"),
        ("/system.slice", "system.slice"),
        ("/", None),
        ("/docker/0123", None),
        ("/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service"),
        ("/machine.slice/machine-web\\x2d1.scope/payload/system.slice/app.service", "machine-web\\x2d1.scope"),
        ("/system.slice/_cgroup.service", "cgroup.service"),
        ("/system.slice/a b.service", "system.slice"),
        ("/user.slice/user-7.slice/user@7.service/app.slice/web.service/x.service", "web.service"),
        ("/user.slice/user-7.slice/user@7.service", "user@7.service"),
    ],
)
def test_the_unit_of_a_cgroups_path(path, unit):
    """The first part below the slices, and once more below a user's manager: what is deeper may have any name."""
    assert unit_of_path(path) == unit


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("/system.slice/app.service", ("app.service", True, None)),
        ("/system.slice/app.service/app.service", ("app.service", False, None)),
        ("/system.slice", ("system.slice", True, None)),
        ("/system.slice/x", ("system.slice", False, None)),
        ("/user.slice/user-7.slice/user@7.service", ("user@7.service", True, None)),
        ("/user.slice/user-7.slice/user@7.service/init.scope", ("init.scope", True, 7)),
        ("/user.slice/user-7.slice/user@7.service/app.slice/a.service/x", ("a.service", False, 7)),
        ("/user.slice/user-7.slice/user@7.service/x y", ("user@7.service", False, None)),
        ("/user.slice/user-7.slice/user@x.service/app.slice", ("user@x.service", False, None)),
        ("/x/system.slice/app.service", None),
        ("/../app.service", None),
    ],
)
def test_whose_a_cgroup_is(path, owner):
    """The unit, whether it is the unit's own cgroup, and the user whose systemd runs it."""
    assert owner_of_path(path) == owner


def test_missing_files_set_nothing(tree):
    """No /etc at all."""
    where = of({"proc/1/comm": "x"}, tree)
    assert unit_settings(where, "app.service") == manager_settings(where) == {}
