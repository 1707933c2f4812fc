"""What is read of the caches, without click and without a terminal."""

from __future__ import annotations

import pytest
from dentrytrees import MERGED, OLD, TODAY

from opskit.analysis.dentry.judge import judge
from opskit.collect.dentry import Collector, Request, collect
from opskit.errors import NotPermitted, NotSupported
from opskit.host import Host
from opskit.proc.files.dentry_state import DentryState


def host_of(root):
    return Host.at(str(root), None)


def test_everything_that_a_tree_has(tree):
    """The records of the kernel's files, the machine's own page size, its cgroups and sysctls."""
    facts = collect(host_of(tree(TODAY)), Request())
    assert facts.state == DentryState(20_000_000, 19_900_000, 19_400_000)
    assert [slab.name for slab in facts.slabs][:2] == ["xfs_inode", "lsm_inode_cache"]
    assert (facts.page_bytes, facts.vfs_cache_pressure, facts.dentry_negative) == (16384, 50, 0)
    assert facts.vmstat["drop_slab"] == 31
    assert [group.path for group in facts.cgroups] == ["/kubepods", "/kubepods/pod1", "/system.slice"]
    assert facts.missing == ()


def test_other_names_of_merged_caches(tree):
    """From the links in /sys/kernel/slab."""
    assert collect(host_of(tree(MERGED)), Request()).merged == {"ext4_xattr": ("dentry",)}


def test_what_is_missing_is_named(tree):
    """A kernel that does not count negative dentries; a tree without slabinfo."""
    files = {name: text for name, text in OLD.items() if name != "proc/slabinfo"}
    facts = collect(host_of(tree(files)), Request())
    assert facts.slabs is None
    assert any(line.endswith("/proc/slabinfo does not exist") for line in facts.missing)
    assert any("does not count negative dentries" in line for line in facts.missing)


def test_a_picture_needs_the_slabs(tree):
    """NotPermitted before anything is drawn."""
    files = {name: text for name, text in TODAY.items() if name != "proc/slabinfo"}
    with pytest.raises(NotPermitted, match="a picture shows the slabs"):
        collect(host_of(tree(files)), Request(needs_slabs=True))


def test_a_tree_without_any_of_the_files(tree):
    """NotSupported, with what is missing."""
    with pytest.raises(NotSupported, match=r"no dentry cache to read: .*/dentry-state does not exist"):
        collect(host_of(tree({"proc/loadavg": "0 0 0 1/2 3\n"})), Request())


def test_samples_have_the_time_since_the_first(tree):
    """By the host's clock; judged one by one they give the growth per minute."""
    host = host_of(tree(TODAY))
    clock = iter((100.0, 100.0, 160.0))
    host.monotonic = lambda: next(clock)
    collector = Collector(host, Request())
    first = judge(collector.look(), earlier=())
    tree({"proc/sys/fs/dentry-state": "20000600\t19900000\t45\t0\t19400000\t0\n"})
    second = judge(collector.look(), earlier=first.samples)
    assert [sample.at_s for sample in second.samples] == [0.0, 60.0]
    assert second.growth["dentries"] == pytest.approx(600)
    assert judge(collect(host_of(tree({})), Request())).samples is None
