"""Class histograms as JVMs print them, made of rows, for the tests."""

from __future__ import annotations

RULER = "-" * 55


def text(rows, *, modules=False, total=True, header=True, first=1):
    """A histogram of (name, instances, bytes[, module]) rows, largest first, in HotSpot's columns."""
    lines = []
    if header:
        lines += [" num     #instances         #bytes  class name" + (" (module)" if modules else ""), RULER]
    ordered = sorted(rows, key=lambda row: -row[2])
    for number, (name, instances, size, *module) in enumerate(ordered, first):
        place = f" ({module[0]})" if module and module[0] else ""
        lines.append(f"{number:4d}: {instances:13d} {size:14d}  {name}{place}")
    if total:
        lines.append(f"Total {sum(row[1] for row in rows):13d} {sum(row[2] for row in rows):14d}")
    return "\n".join(lines) + "\n"


# The table of the post: (class, instances, bytes) more after than before. The names that our copy of it has lost are made up.
POST = [
    ("<methodKlass>", 615, 74264), ("<constMethodKlass>", 615, 72416), ("<constantPoolKlass>", 65, 47288),
    ("<instanceKlassKlass>", 65, 46264), ("<symbolKlass>", 705, 33312), ("<constantPoolCacheKlass>", 67, 32024),
    ("java.lang.Class", 69, 12696), ("[C", 85, 10664), ("[[I", 121, 8760), ("[I", 73, 5928), ("[S", 96, 5232),
    ("[B", 58, 4600), ("java.lang.String", 94, 3760), ("java.util.LinkedList$Entry", 65, 2600),
    ("<objArrayKlassKlass>", 4, 2336), ("<methodDataKlass>", 4, 1800), ("java.net.URL", 15, 1560),
    ("java.util.HashMap$Entry", 29, 1392), ("[Ljava.util.HashMap$Entry;", 8, 1344),
    ("java.util.LinkedHashMap$Entry", 15, 960), ("java.util.LinkedList", 23, 920),
    ("sun.misc.URLClassPath$JarLoader", 6, 432), ("java.util.HashMap", 6, 384), ("java.util.Hashtable$Entry", 11, 352),
    ("java.util.jar.JarFile$JarFileEntry", 3, 336), ("java.lang.reflect.Constructor", 2, 240),
    ("[Ljava.lang.Object;", 2, 208), ("java.net.InetAddress$Lost", 5, 200), ("java.nio.Lost", 1, 176),
    ("java.util.LinkedHashMap", 2, 160), ("java.lang.Object", 8, 128), ("java.lang.ThreadLocal", 5, 120),
    ("java.lang.ClassLoader$NativeLibrary", 2, 96), ("[Ljava.net.InetAddress;", 2, 88), ("java.util.ArrayList", 2, 80),
    ("sun.misc.JarIndex", 2, 80), ("[Ljava.lang.String;", 2, 64), ("java.net.InetAddress$CacheEntry", 2, 64),
    ("java.net.InetAddress$Cache", 2, 64), ("java.net.InetAddress$Cache$Type", 2, 64), ("sun.misc.URLClassPath", 1, 56),
    ("java.lang.ref.SoftReference", 1, 56), ("[Ljava.lang.ThreadLocal;", 1, 48), ("java.util.Stack", 1, 40),
    ("sun.reflect.NativeConstructorAccessorImpl", 1, 40), ("sun.nio.ch.Lost1", 1, 40),
    ("[Ljava.net.InetAddress$Cache$Type;", 1, 40), ("[Ljava.lang.reflect.Constructor;", 1, 32),
    ("sun.nio.ch.Lost2", 1, 32), ("sun.reflect.DelegatingConstructorAccessorImpl", 1, 24),
    ("java.util.HashMap$KeySet", 1, 24), ("java.nio.channels.spi.AbstractInterruptibleChannel$1", 1, 24),
    ("[Ljava.lang.Class;", 1, 24), ("sun.nio.ch.Lost3$1", 1, 16), ("sun.nio.ch.Lost4", 1, 16),
    ("sun.nio.ch.Lost5", 1, 16), ("sun.nio.ch.Lost6", 1, 16), ("sun.nio.ch.Lost7", -1, -24),
    ("java.util.Vector", -1, -40), ("java.util.zip.Lost8", -2, -64), ("java.util.jar.JarFile", -1, -80),
    ("java.util.zip.Lost9", -4, -96), ("java.util.zip.Lost10", -4, -192),
    ("java.util.zip.ZipFile$ZipFileInputStream", -12, -672), ("java.lang.ref.Finalizer", -17, -1088),
]  # fmt: skip
