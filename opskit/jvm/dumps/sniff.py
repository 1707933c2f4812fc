"""Detect what kind of file a text comes from, for the message that refuses it."""

from __future__ import annotations

# (beginning, content type)
_BEGINNINGS = (
    ("JAVA PROFILE 1.0", "a heap dump (hprof); open it with a heap analyser"),
    ("FLR\0", "a flight recording (JFR)"),
    ("\x1f\udc8b", "gzip-compressed; unpack it first: zcat FILE"),
    ("(\udcb5/\udcfd", "zstd-compressed; unpack it first: zstdcat FILE"),
    ("\udcfd7zXZ", "xz-compressed; unpack it first: xzcat FILE"),
    ("BZh", "bzip2-compressed; unpack it first: bzcat FILE"),
    ("PK\x03\x04", "a zip archive; unpack it first"),
    ("\x7fELF", "a binary (ELF)"),
    ("%PDF", "a PDF"),
    ("{", "JSON"),
    ("<", "HTML or XML"),
)
# (mark, content type), the surest first
_MARKS = (
    ("#instances", "a class histogram"),
    ("object count", "a class histogram"),
    ("Full thread dump", "a thread dump"),
    ("FULL THREAD DUMP", "a thread dump"),
    ("1TIDATETIME", "a javacore"),
    ("java.lang.Thread.State:", "a thread dump"),
    ("InstBytes KlassBytes", "class statistics (GC.class_stats)"),
    ("vmop", "a safepoint log (PrintSafepointStatistics)"),
    ("[safepoint", "a safepoint log"),
    ("Total time for which application threads were stopped", "a safepoint log"),
    ("[gc", "a GC log"),
    ("[GC", "a GC log"),
    ("[Full GC", "a GC log"),
    ("AttachNotSupportedException", "the error message of a tool that could not attach"),
    ("Unable to open socket file", "the error message of a tool that could not attach"),
    ("Traceback (most recent call last)", "a Python traceback"),
    ("\tat ", "a stack trace"),
)
_SEARCHED_CHARACTERS = 1 << 20


def content_type(text: str) -> str:
    """A short description of the text's type, by its beginning and by marks in it."""
    text = text[:_SEARCHED_CHARACTERS]
    begins = text.lstrip(" \t\r\n")
    if not begins:
        return "empty"
    for beginning, what in _BEGINNINGS:
        if text.startswith(beginning) or begins.startswith(beginning):  # \x1f is white space to strip()
            return what
    if "\0" in text:
        return "binary data"
    for mark, what in _MARKS:
        if mark in text:
            return what
    return f"text that begins with {begins.partition(chr(10))[0][:60]!r}"
