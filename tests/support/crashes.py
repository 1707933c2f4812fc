"""JVMs that crash, each in its own way, and what is true of the reports in tests/fixtures/crashes.

tests/java/crashes has the program (package com.acme.shop), compiled once: javac -source 8 -target 8 -g -d classes FILE.
tests/native/crashing.c is its JNI library. Modes of the program, with the exit status:

    unsafe                Unsafe.putLong(0)                                          134, report
    hot                   Unsafe.getLong(16) in a method that C2 has compiled        134, report
    truncated FILE        Unsafe on a mapped file that was truncated                 1, InternalError
    crc FILE              CRC32.update on one                                        134, report (SIGBUS in a stub)
    heap                  with -XX:+CrashOnOutOfMemoryError                          134, report
    gc                    an invalid reference, then System.gc()                     134, report
    threads, direct       as many threads, as much direct memory as there may be     with ulimit -v, as a rule OutOfMemoryError
    compile, wait         print READY, then compile for ever, or sleep: for signals from outside
    exit                  3

and with the library as the next word:

    null, inthread        writes to address 0, in the Java thread or in one of its own    134, report
    divide, trap          SIGFPE, SIGILL                                             134, report
    buffer FILE           reads a mapped file that was truncated                     134, report
    tmpfs FILE            writes to a mapped file of 64 MiB                          134, report, where the file system is full
    maps                  uses up vm.max_map_count, then starts threads              1, report
    stack                 a stack overflow in native code                            139, no report
    abort, free           abort(); free() twice                                      134, no report
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import jvms
import nativeprograms

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "crashes"
CLASSES = Path(__file__).resolve().parents[1] / "java" / "crashes" / "classes"
MAIN = "com.acme.shop.Crashes"
# No counters in /tmp. Core files are kept off by prlimit: with -XX:-CreateCoredumpOnCrash the exit status is 1, not 134.
QUIET = ("-Xmx64m", "-XX:-UsePerfData")
_LONGEST_S = 120
_NO_CORE = ("prlimit", "--core=0", "--")


class Truth(NamedTuple):
    """What is true of a report. `frame`: a part of the blamed frame; `thread`: the beginning of its name; `application`: the nearest method."""

    kind: str
    name: str
    code: str | None
    frame: str | None
    thread: str | None
    application: str | None
    pattern: str


_WORKER, _SHOP = "order-worker-7", "com.acme.shop.Crashes"
_GC = "OopOopIterateDispatch"
CASES = {
    "unsafe": Truth("signal", "SIGSEGV", "SEGV_MAPERR", "libjvm.so", _WORKER, f"{_SHOP}$Prices.store", "crash-unsafe-access"),
    "compiled-method": Truth("signal", "SIGSEGV", "SEGV_MAPERR", f"{_SHOP}$Prices.total", _WORKER, f"{_SHOP}$Prices.total", "crash-compiled-code"),
    "native": Truth("signal", "SIGSEGV", "SEGV_MAPERR", "parse_header", _WORKER, f"{_SHOP}$Native.nullWrite", "crash-native-library"),
    "container": Truth("signal", "SIGSEGV", "SEGV_MAPERR", "parse_header", _WORKER, f"{_SHOP}$Native.nullWrite", "crash-native-library"),
    "native-thread": Truth("signal", "SIGSEGV", "SEGV_MAPERR", "parse_header", None, None, "crash-native-library"),
    "division": Truth("signal", "SIGFPE", "FPE_INTDIV", "libacme-codec.so", _WORKER, f"{_SHOP}$Native.divide", "crash-native-library"),
    "illegal-instruction": Truth("signal", "SIGILL", "ILL_ILLOPN", "libacme-codec.so", _WORKER, f"{_SHOP}$Native.trap", "crash-illegal-instruction"),
    "truncated-file": Truth("signal", "SIGBUS", "BUS_ADRERR", "libacme-codec.so", _WORKER, f"{_SHOP}$Native.read", "crash-mapped-file"),
    "truncated-file-crc32": Truth("signal", "SIGBUS", "BUS_ADRERR", "updateBytesCRC32", _WORKER, f"{_SHOP}.crc", "crash-mapped-file"),
    "full-tmpfs": Truth("signal", "SIGBUS", "BUS_ADRERR", "libc.so.6", _WORKER, f"{_SHOP}$Native.write", "crash-mapped-file"),
    "gc-g1": Truth("signal", "SIGSEGV", "SI_KERNEL", _GC, "GC Thread#", None, "crash-gc"),
    "gc-parallel": Truth("signal", "SIGSEGV", "SI_KERNEL", _GC, "GC Thread#", None, "crash-gc"),
    "gc-serial": Truth("signal", "SIGSEGV", "SEGV_MAPERR", "libjvm.so", None, f"{_SHOP}.corrupt", "crash-gc"),
    "java-heap": Truth("java-heap", "OutOfMemory encountered: Java heap space", None, None, _WORKER, f"{_SHOP}.fillHeap", "crash-java-heap"),
    "kill-segv": Truth("signal", "SIGSEGV", "SI_USER", "libc.so.6", None, None, "crash-signal-sent"),
    "compiler-kill-segv": Truth("signal", "SIGSEGV", "SI_TKILL", "libjvm.so", "C2 CompilerThread0", None, "crash-signal-sent"),
    "c2-crash": Truth("signal", "SIGSEGV", "SEGV_MAPERR", "0x", "C2 CompilerThread0", None, "crash-compiler"),
    "mappings": Truth("memory", "Out of Memory Error", None, None, "filler-", None, "crash-map-count"),
    "c2-out-of-memory": Truth("memory", "Out of Memory Error", None, None, "C2 CompilerThread0", None, "crash-address-space"),
}  # fmt: skip


def names() -> list[str]:
    """The reports: jdk17-unsafe and so on."""
    return sorted(path.stem for path in FIXTURES.glob("*.log"))


def truth(name: str) -> Truth:
    """What is true of a report of `names`."""
    return CASES[name.partition("-")[2]]


def text(name: str) -> str:
    """A report, with as many mappings as the whole one had."""
    found = (FIXTURES / f"{name}.log").read_text()
    if not name.endswith("-mappings"):
        return found
    title = "Dynamic libraries:\n"
    pages = "".join(f"{at:012x}-{at + 4096:012x} r--p 00000000 00:00 0 \n" for at in range(4096, 65_521 * 4096, 4096))
    return found.replace(title, title + pages, 1)


class Crash(NamedTuple):
    """How a JVM ended. `status`: as a shell has it. `report`: its hs_err file; None: it wrote none."""

    status: int
    output: str
    report: Path | None


def library(directory: Path) -> Path:
    """Compile the JNI library."""
    return nativeprograms.build("crashing.c", directory / "libacme-codec.so", "-O0", "-g", "-shared", "-fPIC", "-w")


def command(version: int, *words: object, options: tuple[str, ...] = (), binary: str | None = None) -> list[str]:
    """Run the program without core file."""
    java = binary or jvms.java(version)
    return [*_NO_CORE, java, *QUIET, *options, "-cp", str(CLASSES), MAIN, *map(str, words)]


def crash(
    version: int, cwd: Path, *words: object, options: tuple[str, ...] = (), wrapper: tuple[str, ...] = ()
) -> Crash:
    """Run the program until its end, in its own directory."""
    cwd.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [*wrapper, *command(version, *words, options=options)],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=_LONGEST_S,
        check=False,
    )
    return _ended(done.returncode, done.stdout, cwd)


def killed(version: int, cwd: Path, number: int, *words: object, options: tuple[str, ...] = ()) -> Crash:
    """Run the program until it prints READY, and send it a signal."""
    cwd.mkdir(parents=True, exist_ok=True)
    running = jvms.run(command(version, *words, options=options), cwd=str(cwd))
    try:
        os.kill(running.pid, number)
        running.process.wait(_LONGEST_S)
        return _ended(running.process.returncode, running.output(), cwd)
    finally:
        running.stop()


def _ended(status: int, output: str, cwd: Path) -> Crash:
    reports = sorted(cwd.glob("hs_err_pid*.log"))
    assert len(reports) < 2, reports
    assert not list(cwd.glob("core*")), "a core file was written"
    return Crash(status if status >= 0 else 128 - status, output, reports[0] if reports else None)
