"""Fixtures for all tests."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import inprocess as in_this_process
import jvms
import pytest
from alone import Room
from hypothesis import settings
from inprocess import Ran
from shells import NOBODY, opskit_as
from trees import Link

# CI uses the same examples every time, so that a failure belongs to the change. Other runs look for new ones.
settings.register_profile("ci", derandomize=True, print_blob=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

# A background job may ignore these signals, and every child would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)

ROOT = Path(__file__).resolve().parent.parent
ROOM, DOOR = pytest.StashKey[Room](), pytest.StashKey[str]()


# Tests in these files that start no JVM run on any worker. One worker runs all others, one after the other: they would see
# each other's JVMs and hsperfdata files. A file that is not listed is one of those. BY_PID is a second such worker.
ANYWHERE = (
    *("analysis/", "checks/", "proc/", "render/", "jvm/dumps/", "jvm/logs/", "jvm/perfdata/", "jvm/attach/test_wire."),
    *(
        "jvm/test_jolokia.",
        "jvm/test_launch.",
        "jvm/test_mapped_files.",
        "jvm/test_object_names.",
        "jvm/test_progress.",
        "jvm/unwind/test_instructions.",
        "jvm/unwind/test_recorded_samples.",
        "collect/test_cpu_rights.",
        "collect/test_schedule.",
        "collect/test_targets.",
        "collect/crash/test_cores.",
        "collect/crash/test_named.",
        "collect/hdr/",
        "collect/jpmp/test_sampling.",
        "collect/limits/",
        "collect/mem/test_accounting.",
        "collect/mem/test_limits.",
        "collect/safepoints/test_logs.",
        "collect/tcp/",
        "collect/clock/",
        "collect/cswitch/test_bench.",
        "collect/cswitch/test_trees.",
        "collect/irqs/",
        "collect/io/test_counters.",
        "collect/io/test_looks.",
        "collect/io/test_positions.",
    ),
    *(
        "actions/test_child.",
        "actions/test_leftovers.",
        "actions/test_outfile",
        "actions/test_split_log.",
        "actions/test_time_daemons",
        "commands/shared/",
    ),
    *(
        f"commands/test_{name}"
        for name in ("copies.", "hdr", "jmap_diff", "jpmp", "limits.", "safepoints", "sampling.")
    ),
    "test_",
)
GROUPS = {
    # Full pipes change the exit code of every `opskit pipes` on the machine.
    "pipes": ("commands/test_pipes", "collect/test_pipes"),
    # Real servers and busy JVMs, which are looked at by their PIDs.
    "servers": ("test_healthy_servers", "commands/test_jpmp_load"),
    # Delays and speeds of programs in network namespaces, which other tests' load would change.
    "network": ("commands/test_tcp_staged", "commands/test_tcp_healthy"),
    # Network namespaces whose tests of one file run side by side, in one worker.
    "namespaces": ("commands/test_tcp_host_staged", "commands/test_tcp_stuck"),
    # A process whose memory is locked: each reader of it waits.
    "hung reads": ("checks/test_hung_reads",),
    # One worker starts the browsers, one after the other.
    "browser": (
        "render/test_flamegraph_browser",
        "render/test_hdr_browser",
        "render/test_heatmap_browser",
        "render/test_plot_browser",
        "render/test_stacked_browser",
    ),
    # A staged daemon would be the time daemon of every other look at the clock.
    "clock": ("commands/test_clock",),
    # Dropped caches, negative dentries, tracing instances and perf's sysctls belong to the whole machine.
    "kernel": (
        "collect/test_cpu_profile",
        "commands/test_dentry",
        "commands/test_irqs",
        "collect/test_dentry",
        "actions/test_drop",
        "actions/test_peek",
        "actions/test_trace_lookups",
        "collect/io/test_staged",
        "collect/cswitch/test_staged",
        "collect/test_softirq_losses",
        "commands/test_cswitch",
    ),
}
BY_PID = (  # they look at no JVM but their own, and start none whose load or leftovers others could see
    *("commands/test_jmap_diff", "commands/test_limits_real", "commands/test_jpmp_live", "collect/io/test_process"),
    *("commands/test_jpmp_locks", "commands/test_jpmp_virtual_locks", "commands/test_profile_live"),
    *(
        "jvm/attach/test_client.",
        "jvm/attach/test_deadline.",
        "jvm/attach/test_descriptors.",
        "jvm/memory/",
        "jvm/unwind/test_java.",
        "jvm/unwind/test_virtual.",
        "commands/test_jmx.",
    ),
)
STARTS_JVMS = {"workload", "fake_jvm", "jvm", "jvm_version"}


def stages(item):
    """The fixtures that are made once for all tests of its file: in one worker, or each would make them."""
    return [found[-1] for found in item._fixtureinfo.name2fixturedefs.values() if found[-1].scope == "module"]


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items):
    for item in items:
        place = item.path.relative_to(ROOT / "tests").as_posix()
        group = next((name for name, places in GROUPS.items() if place.startswith(places)), None)
        if group is None and (not place.startswith(ANYWHERE) or STARTS_JVMS.intersection(item.fixturenames)):
            group = "JVMs by PID" if place.startswith(BY_PID) else "machine"
        is_live = group not in (None, "browser") or item.get_closest_marker("xdist_group") is not None
        if group is None and stages(item):
            group = place
        if group is not None and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(group))
        if is_live:
            # Whatever else runs on the machine can stretch a delay. What fails alone too is no such chance; the report
            # names each test that was run again. Tests that need no live machine are never run again.
            item.add_marker(pytest.mark.flaky(reruns=2))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Tell a worker of xdist where the workers meet."""
    config = node.config
    if DOOR not in config.stash:
        config.stash[DOOR] = tempfile.mkdtemp(prefix="opskit-tests-")
        config.add_cleanup(lambda: shutil.rmtree(config.stash[DOOR], ignore_errors=True))
    node.workerinput["door"] = config.stash[DOOR]


def pytest_configure(config):
    """A worker comes in where the others do."""
    if "door" in getattr(config, "workerinput", {}):
        config.stash[ROOM] = Room(Path(config.workerinput["door"]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Each test runs beside those of the other workers."""
    room = item.config.stash.get(ROOM, None)
    if room is None:
        return (yield)
    room.enter()
    try:
        return (yield)
    finally:
        room.leave()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Where it is run again, it runs alone, on a stage made anew: what a fixture measured may be what failed."""
    if getattr(item, "execution_count", 1) == 1:
        return
    room = item.config.stash.get(ROOM, None)
    if room is not None:
        room.be_alone()
    for each in stages(item):
        each.finish(item._request)


@pytest.fixture(scope="session")
def opskit():
    """Run `opskit ARGUMENTS` in a process: a function that returns code, out and err."""

    def run(*arguments, env=None, user=None, group=None, stdin="", timeout=120, encoding="utf-8"):
        done = subprocess.run(
            [sys.executable, "-m", "opskit", *map(str, arguments)],
            capture_output=True,
            input=stdin,
            encoding=encoding,
            errors="surrogateescape",
            env={**os.environ, **(env or {})},
            user=user,
            group=group,
            extra_groups=[] if user is not None else None,
            timeout=timeout,
            check=False,
            cwd="/",
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode != 70, done.stderr  # a bug in opskit
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def inprocess():
    """The same without a process, for tests that need no other user, signal or terminal."""
    return in_this_process.run


@pytest.fixture
def spawn():
    """Start `python -c CODE ARG…`: a function that returns the Popen after its first line, which is its `.line`."""
    started = []

    def start(code, *arguments, **options):
        process = subprocess.Popen(
            [sys.executable, "-u", "-c", code, *map(str, arguments)],  # unbuffered: its first line is read
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )
        started.append(process)
        process.line = process.stdout.readline().rstrip("\n")
        return process

    yield start
    for process in started:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="session")
def root_only():
    """Skip unless the tests run as root."""
    if os.geteuid() != 0:
        pytest.skip("needs root")


@pytest.fixture(scope="session")
def initial_pid_namespace():
    """Skip in a container's PID namespace: it hides some processes of the machine, and permits less."""
    if os.readlink("/proc/self/ns/pid") != "pid:[4026531836]":
        pytest.skip("needs the initial pid namespace, not a container's")


@pytest.fixture
def as_nobody(root_only):
    """Run opskit as an unprivileged user."""

    def run(*arguments):
        draws = any(str(argument).rpartition(".")[2] in ("png", "svg") for argument in arguments)
        return subprocess.run(
            opskit_as(NOBODY, *arguments, draws=draws), capture_output=True, text=True, check=False, cwd="/"
        )

    return run


@pytest.fixture
def cgroup(root_only):
    """Make a v1 or v2 cgroup of a controller with these files; it is removed at the end."""
    made = []

    def make(controller, files):
        for base in (f"/sys/fs/cgroup/{controller}", "/sys/fs/cgroup"):
            if os.path.exists(f"{base}/cgroup.procs"):
                place = Path(base) / f"opskit-test-{os.getpid()}"
                try:
                    place.mkdir(exist_ok=True)
                    for name, value in files.items():
                        (place / name).write_text(value)
                except OSError as error:
                    pytest.skip(f"cannot make a cgroup: {error}")
                made.append(place)
                return place
        pytest.skip("needs cgroups")

    yield make
    for place in made:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                place.rmdir()
                break
            except OSError:
                time.sleep(0.1)


@pytest.fixture(scope="session")
def samples():
    """The directory of real dumps, histograms and logs; skip without it."""
    folder = Path(os.environ.get("OPSKIT_SAMPLES", ROOT.parent / "shared" / "samples"))
    if not folder.is_dir():
        pytest.skip("needs the directory of real samples (set OPSKIT_SAMPLES)")
    return folder


@pytest.fixture
def golden(request):
    """Compare an output with tests/golden/NAME; OPSKIT_UPDATE_GOLDEN=1 rewrites the file."""

    def check(name, content):
        path = ROOT / "tests" / "golden" / name
        if os.environ.get("OPSKIT_UPDATE_GOLDEN"):
            path.write_text(content, encoding="utf-8")
        assert content == path.read_text(encoding="utf-8")

    return check


@pytest.fixture
def tree(tmp_path):
    """Write a captured tree: a function of {file name: text, bytes or Link} that returns its root."""

    def write(files):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Link):
                path.symlink_to(content.target)
            elif isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content, encoding="utf-8")
        return tmp_path

    return write


@pytest.fixture(params=sorted(jvms.WHEELS))
def jvm_version(request):
    """Each JVM that opskit supports: 11, 17, 21, 25."""
    return request.param


@pytest.fixture
def workload():
    """Start the Java test program (see jvms.start); all are killed at the end."""
    started = []

    def start(*modes, **options):
        started.append(jvms.start(*modes, **options))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def fake_jvm(tmp_path_factory):
    """Start tests/support/fakejvm.py in a mode: a function that returns a jvms.Workload, as `workload` does."""
    library = tmp_path_factory.mktemp("fake", numbered=True) / "libjvm.so"
    library.write_bytes(b"\0" * 4096)
    started = []

    def start(mode, **options):
        started.append(jvms.start_fake(mode, str(library), **options))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def as_user(root_only):
    """Call a function with the ids of a user, in a forked child; return its value or raise its exception.

    It forks, since another user may not be able to run this Python.
    """

    def run(uid, function, gid=None):
        receive, send = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.setgroups([])
                os.setresgid(*[uid if gid is None else gid] * 3)
                os.setresuid(uid, uid, uid)
                outcome = (True, function())
            except BaseException as error:
                outcome = (False, (type(error), str(error)))
            os.write(send, pickle.dumps(outcome))
            os._exit(0)
        os.close(send)
        with open(receive, "rb") as pipe:
            worked, value = pickle.loads(pipe.read())  # noqa: S301  (our own child wrote it)
        os.waitpid(child, 0)
        if not worked:
            kind, message = value
            error = kind.__new__(kind)
            Exception.__init__(error, message)
            raise error
        return value

    return run
