"""A tree of a machine with JVMs in it, for ProcFS(root)."""

from __future__ import annotations

import os

import hsperf

from opskit.proc.fs import ProcFS

BOOT_S = 1_700_000_000
START_TICKS = 50_000  # 500 s after the boot
START_MS = BOOT_S * 1000 + 500_000
PROGRAM = "55d000000000-55d000001000 r-xp 00000000 08:01 76 /usr/bin/program\n"
LIBJVM = "7f0000000000-7f0000001000 r-xp 00000000 08:01 77 /opt/jdk/lib/server/libjvm.so\n"


class Tree:
    """A machine's tree below a directory, with processes put into it."""

    def __init__(self, root):
        self.root = root
        self.write("proc/stat", f"cpu  1 2 3 4\nbtime {BOOT_S}\nprocesses 9\n")
        self.write("proc/uptime", "9000.00 100.00\n")
        self.write("etc/passwd", f"app:x:{os.getuid()}:0::/:/bin/sh\n")
        (root / "tmp").mkdir()

    @property
    def fs(self):
        return ProcFS(f"{self.root}/proc", str(self.root))

    def write(self, path, content):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    def process(
        self, pid, words=("java", "-cp", "x", "com.example.Main"), *, maps=PROGRAM, threads=12, ns_pid=None, environ=""
    ):
        ids = "\t".join([str(os.getuid())] * 4)
        self.write(
            f"proc/{pid}/status",
            f"Name:\t{words[0]}\nTgid:\t{pid}\nState:\tS (sleeping)\nUid:\t{ids}\nGid:\t{ids}\n"
            f"NSpid:\t{pid}{f'	{ns_pid}' if ns_pid else ''}\n",
        )
        self.write(
            f"proc/{pid}/stat",
            f"{pid} ({words[0]}) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 {threads} 0 {START_TICKS} 9 9 9",
        )
        self.write(f"proc/{pid}/cmdline", "".join(word + "\0" for word in words))
        self.write(f"proc/{pid}/environ", environ)
        self.write(f"proc/{pid}/maps", maps)
        for tid in range(pid, pid + threads):
            self.write(f"proc/{pid}/task/{tid}/comm", f"{words[0]}\n")
        self.write(f"proc/{pid}/comm", f"{words[0]}\n")

    def perf(self, name, user="app", began_ms=START_MS + 80, **counters):
        """An hsperfdata file; gives the line of maps of the process that has it."""
        content = hsperf.build(
            {"sun.rt.createVmBeginTime": began_ms, "sun.rt.javaCommand": "com.example.Main x", **counters}
        )
        file = self.write(f"tmp/hsperfdata_{user}/{name}", content)
        return f"7f0000002000-7f000000a000 rw-s 00000000 08:01 {file.stat().st_ino} /tmp/hsperfdata_{user}/{name}\n"


def elf(section):
    """The least ELF file with one section and the table of section names."""
    names = b"\0" + section.encode() + b"\0.shstrtab\0"
    head = bytearray(64)
    head[:6] = b"ELF"
    head[0x28:0x30] = (64 + len(names)).to_bytes(8, "little")
    head[0x3A:0x40] = b"".join(number.to_bytes(2, "little") for number in (64, 1, 0))
    header = bytearray(64)
    header[0x18:0x28] = (64).to_bytes(8, "little") + len(names).to_bytes(8, "little")
    return bytes(head) + names + bytes(header)
