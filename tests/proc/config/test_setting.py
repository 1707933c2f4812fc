"""sysctl.d: which line of which file sets a number at boot."""

from __future__ import annotations

from opskit.proc.config.setting import sysctl_settings
from opskit.proc.fs import ProcFS


def of(files, tree):
    root = tree(files)
    return ProcFS(f"{root}/proc", str(root))


def test_sysctl_d_in_its_order(tree):
    """By name across the directories, /etc hides /usr/lib, sysctl.conf last; comments, dashes, slashes and dots."""
    where = of(
        {
            "usr/lib/sysctl.d/10-a.conf": "kernel.pid_max=1\nvm.max_map_count = 2\n",
            "etc/sysctl.d/10-a.conf": "-kernel.pid_max=3\n",
            "run/sysctl.d/20-b.conf": "; no\n# vm.swappiness=1\nnet/ipv4/conf/eth0.1/forwarding = 1\n",
            "etc/sysctl.conf": "kernel.threads-max = 9\n",
            "etc/sysctl.d/README": "kernel.threads-max = 8\n",
        },
        tree,
    )
    found = sysctl_settings(where)
    assert {key: setting.value for key, setting in found.items()} == {
        "kernel.pid_max": "3",
        "net.ipv4.conf.eth0/1.forwarding": "1",
        "kernel.threads-max": "9",
    }
    assert found["kernel.threads-max"].place == "/etc/sysctl.conf line 1: `kernel.threads-max = 9`"


def test_missing_files_set_nothing(tree):
    """No /etc at all."""
    assert sysctl_settings(of({"proc/1/comm": "x"}, tree)) == {}
