"""Machines in the kernel's formats whose threads run and wait while opskit sleeps."""

from __future__ import annotations

from opskit.host import Host
from opskit.proc.fs import ProcFS

HZ = 100
OLD_S = 360_000  # what a thread has run before: a hundred hours


class Machine:
    """CPUs, and processes with threads: name, share running, share waiting. `odd`: files by a function of the seconds, None to remove one."""

    def __init__(self, cpus=2, allowed="0-1", **processes):
        self.cpus, self.allowed, self.odd = cpus, allowed, {}
        self.threads = {
            (int(pid[1:]), tid): shares for pid, threads in processes.items() for tid, shares in threads.items()
        }

    def files(self, seconds):
        """What all files hold then."""
        ticks = round(seconds * HZ)
        files = {
            "proc/stat": "".join(f"cpu{cpu} {5000 + ticks} 0 0 900 0 0 0 0 0 0\n" for cpu in range(self.cpus))
            + f"ctxt {9000 + round(seconds * 1000)}\n",
            "proc/1/schedstat": "9000000 4000 3\n",
            "proc/loadavg": "0.1 0.1 0.1 4/80 99\n",
            "sys/devices/system/cpu/online": f"0-{self.cpus - 1}\n" if self.cpus > 1 else "0\n",
        }
        for (pid, tid), (name, running, waiting) in self.threads.items():
            ran, waited = OLD_S + running * seconds, waiting * seconds
            cpu = round(ran * HZ)
            fields = " ".join(map(str, (1, pid, pid, 0, -1, 4194304, 0, 0, 0, 0, cpu, 0, 0, 0, 20, 0, 1, 0, 8000)))
            own = {
                "schedstat": f"{round(ran * 1e9)} {round(waited * 1e9)} {round(100 * seconds)}\n",
                "stat": f"{tid} ({name}) S {fields} 0 0 {'0 ' * 13}17 1 0 0 0\n",
                "status": f"Name:\t{name}\nState:\tS (sleeping)\nTgid:\t{pid}\nPid:\t{tid}\nUid:\t0\t0\t0\t0\nThreads:\t1\n"
                f"Cpus_allowed_list:\t{self.allowed}\nvoluntary_ctxt_switches:\t{round(20 * seconds)}\nnonvoluntary_ctxt_switches:\t7\n",
                "comm": f"{name}\n",
            }
            files.update({f"proc/{pid}/task/{tid}/{key}": text for key, text in own.items()})
            if pid == tid:
                files.update({f"proc/{pid}/{key}": text for key, text in own.items()})
        files.update({path: odd(seconds) for path, odd in self.odd.items()})
        return files

    def host(self, tree):
        """The machine at 0 s; it goes on while opskit sleeps."""
        now = [0.0]

        def write():
            files = self.files(now[0])
            for path, text in files.items():
                place = root / path
                if text is None and place.exists():
                    place.unlink()
            tree({path: text for path, text in files.items() if text is not None})

        def sleep(seconds):
            before, now[0] = now[0], now[0] + seconds
            if int(before * 5 + 1e-6) != int(now[0] * 5 + 1e-6):  # each fifth of a second: when the threads are read
                write()

        root = tree({"proc/version": "", "sys/x": ""})
        write()
        host = Host(ProcFS(str(root / "proc"), str(root)))
        host.monotonic, host.sleep = (lambda: 1000.0 + now[0]), sleep
        return host
