"""A machine with many faults at once, or the same kinds of programs in health, for `opskit doctor`.

    python tests/support/doctorstage.py faults|healthy [--here] [NAME...]

It runs in a PID, mount, network and IPC namespace of its own, with its own /tmp, so that only its processes are seen; with --here on
this machine as it is. It prints one line of JSON, {name: {"pid": …, "codes": […], "subject": …}}, and then runs each command that is
written to it as a line of JSON, an argument list: {"code": …, "out": …, "err": …}. It ends with its standard input.

Each fault is a real one: JVMs, cgroups, pipes, sockets, tmpfs mounts.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

ROOT = Path(__file__).resolve().parents[2]
_LIVES_S = "180"
_RUN = os.environ.get("OPSKIT_STAGE") or os.urandom(3).hex()  # in a PID namespace every stage has the same PID
_UNSHARE = (
    "unshare",
    "--mount",
    "--pid",
    "--net",
    "--ipc",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "--propagation",
    "private",
)

# Each says a line when it stands, and ends with its standard input.
_PYTHON = {
    "pipe": """
r, w = os.pipe()
if os.fork() == 0:
    os.close(r)
    while True: os.write(w, bytes(4096))
os.close(w)
stand(os.getpid())
time.sleep(LONG)
""",
    "accept-queue": """
with open("/proc/sys/net/core/somaxconn") as file: assert int(file.read()) >= 4
server = socket.create_server(("127.0.0.1", 0), backlog=4)
clients = []
for _ in range(12):
    clients.append(socket.socket())
    clients[-1].setblocking(False)
    clients[-1].connect_ex(server.getsockname())
stand(os.getpid())
time.sleep(LONG)
""",
    "close-wait": """
resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))
server = socket.create_server(("127.0.0.1", 0), backlog=64)
if os.fork() == 0:
    for _ in range(40): socket.create_connection(server.getsockname()).close()
    os._exit(0)
kept = [server.accept()[0] for _ in range(40)]
os.wait()
stand(os.getpid())
time.sleep(LONG)
""",
    "open-files": """
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(57)]
stand(os.getpid())
time.sleep(LONG)
""",
    "zombies": """
for _ in range(300):
    if os.fork() == 0: os._exit(0)
stand(os.getpid())
time.sleep(LONG)
""",
    "pids": """
for _ in range(38):
    threading.Thread(target=time.sleep, args=(LONG,), daemon=True).start()
stand(os.getpid())
time.sleep(LONG)
""",
    "peer": """
server = socket.create_server(("127.0.0.1", 0))
if os.fork() == 0:
    kept = server.accept()
    time.sleep(LONG)
client = socket.create_connection(server.getsockname())
server.close()
threading.Thread(target=lambda: [client.send(bytes(65536)) for _ in range(10_000)], daemon=True).start()
time.sleep(3)
stand(os.getpid())
time.sleep(LONG)
""",
    # In health
    "pipe-healthy": """
r, w = os.pipe()
if os.fork() == 0:
    os.close(r)
    while True: os.write(w, bytes(4096))
os.close(w)
stand(os.getpid())
while True:
    os.read(r, 65536)
    time.sleep(0.001)
""",
    "accept-healthy": """
server = socket.create_server(("127.0.0.1", 0), backlog=128)
if os.fork() == 0:
    place = server.getsockname()
    server.close()
    while True:
        with socket.create_connection(place) as client: client.recv(1)
        time.sleep(0.002)
stand(os.getpid())
while True: server.accept()[0].close()
""",
    "stream-healthy": """
server = socket.create_server(("127.0.0.1", 0))
if os.fork() == 0:
    got = server.accept()[0]
    while got.recv(1 << 16): pass
client = socket.create_connection(server.getsockname())
stand(os.getpid())
while True:
    client.send(bytes(65536))
    time.sleep(0.001)
""",
    "open-files-healthy": """
kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(300)]
stand(os.getpid())
time.sleep(LONG)
""",
    "forks-healthy": """
stand(os.getpid())
while True:
    for _ in range(5):
        if os.fork() == 0: os._exit(0)
    for _ in range(5): os.wait()
    time.sleep(0.01)
""",
    "spin-healthy": """
stand(os.getpid())
while True: sum(range(10_000))
""",
    "disk-healthy": """
path = f"/tmp/written-{os.getpid()}"
stand(os.getpid())
while True:
    with open(path, "wb") as file:
        for _ in range(64): file.write(bytes(1 << 20))
        os.fsync(file.fileno())
""",
    "pids-healthy": """
for _ in range(20):
    threading.Thread(target=time.sleep, args=(LONG,), daemon=True).start()
stand(os.getpid())
time.sleep(LONG)
""",
}
_BEGIN = f"""
import os, resource, socket, sys, threading, time
LONG = {_LIVES_S}
def stand(pid):
    print(pid, flush=True)
"""


class Stage:
    """What stands, by name: its PID, the codes that tell it, and the subject that its finding names."""

    def __init__(self) -> None:
        self.stack = contextlib.ExitStack()
        self.staged: dict[str, dict] = {}
        self._waits: list[tuple[object, object]] = []

    def python(self, name, codes, program=None, cgroup=None):
        """Start a program of _PYTHON."""
        enter = f"open({str(cgroup)!r} + '/cgroup.procs', 'w').write('0')\n" if cgroup else ""
        process = subprocess.Popen(
            [sys.executable, "-c", _BEGIN + enter + _PYTHON[program or name], name],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self.stack.callback(_end, process)

        def stands():
            line = process.stdout.readline()
            assert line, f"{name} did not stand"
            self.add(name, int(line), codes)

        self._waits.append((name, stands))

    def java(self, name, codes, *modes, options=("-Xmx48m",), cgroup=None, main=None, then=None):
        """Start a JVM with tests/java/Workload.java, or MemoryHolder.java."""
        import jvms

        wrapper = ("sh", "-c", 'echo $$ > "$0" && exec "$@"', f"{cgroup}/cgroup.procs") if cgroup else ()
        # Serial: few threads; the class data archive and C1 alone make the start short.
        command = [
            *wrapper,
            jvms.java(17),
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            *options,
            "-cp",
            jvms.classes(),
            main or "Workload",
            *modes,
        ]
        started = jvms.run(command, ready=False)
        self.stack.callback(started.stop)

        def stands():
            started.wait_ready()
            self.add(name, started.pid, codes)
            if then is not None:
                then(started)

        self._waits.append((name, stands))

    def cgroup(self, controller, name, needs, **files):
        """A cgroup with these values; a dot in a file's name is `__`."""
        from cgroups import new_cgroup

        place = self.stack.enter_context(new_cgroup(controller, f"opskit-stage-{_RUN}-{name}", needs))
        for file, value in files.items():
            if (place / file.replace("__", ".")).exists():
                (place / file.replace("__", ".")).write_text(str(value))
        return place

    def tmpfs(self, name, codes, options, fill):
        """Mount a tmpfs, and fill it."""
        place = Path("/tmp") / f"opskit-stage-{_RUN}-{name}"
        place.mkdir()
        self.stack.callback(place.rmdir)
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, f"stage-{name}", str(place)], check=True)
        self.stack.callback(subprocess.run, ["umount", str(place)], check=False)
        fill(place)
        self.add(name, None, codes, str(place))

    def add(self, name, pid, codes, subject=None):
        """Remember what stands."""
        self.staged[name] = {"pid": pid, "codes": codes, "subject": subject or (str(pid) if pid else None)}

    def wait(self):
        """Until all that was started stands."""
        for _, stands in self._waits:
            stands()


def _end(process):
    import psutil

    for each in [*psutil.Process(process.pid).children(recursive=True), process] if process.poll() is None else ():
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            each.kill()
    process.wait()
    process.stdout.close()


def _fill_bytes(place):
    with contextlib.suppress(OSError), open(place / "big", "wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))


def _fill_inodes(place):
    with contextlib.suppress(OSError):
        for number in range(1000):
            (place / str(number)).touch()


def _stop(jvm):
    import signal

    jvm.signal(signal.SIGSTOP)


def _foreign_socket(jvm):
    """An attach socket of a real listener, given to another user."""
    _attached(jvm)
    os.chown(f"/tmp/.java_pid{jvm.pid}", 65534, 65534)


def _attached(jvm):
    """It opens its attach socket."""
    from attaching import client

    client(jvm).execute("properties")


def _delete_counters(jvm):
    Path(f"/tmp/hsperfdata_root/{jvm.pid}").unlink()


def _pids(stage, name, program, most):
    group = stage.cgroup("pids", "pids", "pids.max", pids__max=most)
    stage.python(name, ["threads-nearly-none-left"], program, cgroup=group)


def _throttled(stage):
    group = stage.cgroup("cpu", "cpu", "cpu.cfs_quota_us" if _old("cpu") else "cpu.max",
                         cpu__cfs_quota_us=15_000, cpu__max="15000 100000")  # fmt: skip
    # It starts outside, and enters when it stands.
    stage.java(
        "throttled",
        ["cpu-throttled"],
        "burn=4:3:2:1",
        then=lambda jvm: (group / "cgroup.procs").write_text(str(jvm.pid)),
    )


def _near_limit(stage):
    group = stage.cgroup("memory", "memory", "memory.limit_in_bytes" if _old("memory") else "memory.max",
                         memory__limit_in_bytes=200 << 20, memory__max=200 << 20)  # fmt: skip
    stage.java(
        "near-memory-limit",
        ["memory-near-limit"],
        "sleep=2",
        options=("-Xms172m", "-Xmx172m", "-XX:+AlwaysPreTouch"),
        cgroup=group,
    )


def _old(controller):
    return os.path.exists(f"/sys/fs/cgroup/{controller}/cgroup.procs")


# Twelve faults; some more that can be asked for by name.
FAULTS = {
    "stopped": lambda stage: stage.java("stopped", ["process-stopped"], "sleep=2", then=_stop),
    "pipe": lambda stage: stage.python("pipe", ["pipe-full-writer-blocked"]),
    "accept-queue": lambda stage: stage.python("accept-queue", ["tcp-listen-queue-full"]),
    "throttled": _throttled,
    "gc": lambda stage: stage.java(
        "gc",
        ["jvm-gc-share", "jvm-gc-cpu", "heap-nearly-full"],
        "retain=740000",
        "allocate=50000000",
        "gc=2",
        options=("-Xms24m", "-Xmx24m", "-Xmn2m"),
    ),
    "close-wait": lambda stage: stage.python("close-wait", ["tcp-close-wait"]),
    "open-files": lambda stage: stage.python("open-files", ["rlimit-nearly-used"]),
    "pids": lambda stage: _pids(stage, "pids", "pids", 40),
    "disk-bytes": lambda stage: stage.tmpfs("disk-bytes", ["disk-full"], "size=8m", _fill_bytes),
    "disk-inodes": lambda stage: stage.tmpfs(
        "disk-inodes", ["disk-inodes-used-up"], "size=8m,nr_inodes=200", _fill_inodes
    ),
    "zombies": lambda stage: stage.python("zombies", ["zombies"]),
    "attach": lambda stage: stage.java("attach", ["attach-socket-owner"], "sleep=2", then=_foreign_socket),
}
MORE_FAULTS = {
    "near-memory-limit": _near_limit,
    "hsperf": lambda stage: stage.java("hsperf", ["hsperf-file-deleted"], "sleep=2", then=_delete_counters),
    "deadlock": lambda stage: stage.java("deadlock", ["jvm-deadlock"], "deadlock", "blocked=3"),
    "peer": lambda stage: stage.python("peer", ["tcp-peer-does-not-read"]),
}
HEALTHY = {
    "jvm": lambda stage: stage.java("jvm", [], "sleep=20", "park=10", "allocate=100000000"),
    "jvm-busy": lambda stage: stage.java("jvm-busy", [], "burn=1"),
    "jvm-in-cgroup": lambda stage: stage.java(
        "jvm-in-cgroup",
        [],
        "sleep=5",
        cgroup=stage.cgroup("cpu", "cpu", "cgroup.procs", cpu__cfs_quota_us=100_000, cpu__max="100000 100000"),
    ),
    "jvm-attached": lambda stage: stage.java("jvm-attached", [], "socket=2", then=_attached),
    "pipe": lambda stage: stage.python("pipe", [], "pipe-healthy"),
    "accept": lambda stage: stage.python("accept", [], "accept-healthy"),
    "stream": lambda stage: stage.python("stream", [], "stream-healthy"),
    "open-files": lambda stage: stage.python("open-files", [], "open-files-healthy"),
    "forks": lambda stage: stage.python("forks", [], "forks-healthy"),
    "spin": lambda stage: stage.python("spin", [], "spin-healthy"),
    "disk": lambda stage: stage.tmpfs(
        "disk", [], "size=64m", lambda place: (place / "some").write_bytes(bytes(8 << 20))
    ),
    "pids": lambda stage: _pids(stage, "pids", "pids-healthy", 1000),
}
MORE_HEALTHY = {"written": lambda stage: stage.python("written", [], "disk-healthy")}


@contextlib.contextmanager
def staged(which, names=()):
    """Stage them in this process's namespaces: the Stage."""
    known = {**FAULTS, **MORE_FAULTS} if which == "faults" else {**HEALTHY, **MORE_HEALTHY}
    stage = Stage()
    with stage.stack:
        for name in names or (FAULTS if which == "faults" else HEALTHY):
            known[name](stage)
        stage.wait()
        yield stage


class Machine:
    """A stage in namespaces of its own: `staged`, and `run` for commands there."""

    def __init__(self, which, *names, here=False):
        command = [sys.executable, __file__, which, "--inside", *names]
        if here:
            command[3] = "--here"
        self.name = os.urandom(3).hex()
        self._process = subprocess.Popen(
            [*(() if here else _UNSHARE), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPSKIT_STAGE": self.name},
        )
        line = self._process.stdout.readline()
        assert line, "the stage did not stand"
        self.staged = json.loads(line)

    def run(self, *words, **environment):
        """Run a command there: its exit code, output and messages."""
        self._process.stdin.write(json.dumps([list(map(str, words)), environment]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def opskit(self, *words, **environment):
        """The same for opskit."""
        return self.run(sys.executable, "-m", "opskit", *words, PYTHONPATH=str(ROOT), **environment)

    def on_terminal(self, *words):
        """The same for opskit on a terminal of 80 columns and many lines, without colors."""
        return self.run("on a terminal", *words, NO_COLOR="1", PYTHONPATH=str(ROOT))

    def close(self):
        """End all that was staged."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def _inside(which, names, *, private):
    if private:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512m,mode=1777", "tmp", "/tmp"], check=True)
    with staged(which, names) as stage:
        print(json.dumps(stage.staged), flush=True)
        for line in sys.stdin:
            words, environment = json.loads(line)
            print(json.dumps(_done(words, {**os.environ, **environment})), flush=True)


def _done(words, environment):
    if words[0] == "on a terminal":
        from terminal import on_terminal

        code, shown = on_terminal(*words[1:], env=environment, rows=80)
        return {"code": code, "out": shown, "err": ""}
    done = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=environment)
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr}


def _main():
    which, *rest = sys.argv[1:]
    names = [each for each in rest if not each.startswith("--")]
    if "--inside" in rest or "--here" in rest:
        _inside(which, names, private="--inside" in rest)
        return
    began_s = time.monotonic()
    machine = Machine(which, *names)
    print(
        json.dumps(machine.staged, indent=1),
        f"\nstands after {time.monotonic() - began_s:.1f} s; type a command, or end it with Ctrl-D",
        file=sys.stderr,
    )
    try:
        for line in sys.stdin:
            done = machine.run("sh", "-c", line, PYTHONPATH=str(ROOT))
            print(done["out"] + done["err"], flush=True)
    finally:
        machine.close()


if __name__ == "__main__":
    _main()
