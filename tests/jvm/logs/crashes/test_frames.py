"""Frames of every kind, as JDK 6 to 25 print them."""

from __future__ import annotations

import pytest

from opskit.jvm.logs.crashes.frames import frames, parse_frame


@pytest.mark.parametrize(
    ("line", "kind", "library", "name", "offset", "signature"),
    [
        ("C  [libc.so.6+0x14d667]  __memcpy_ssse3+0xb57", "C", "libc.so.6", "__memcpy_ssse3", 0xB57, None),
        ("C  [libstdc++.so.6+0x12]", "C", "libstdc++.so.6", None, 0x12, None),
        ("C  [jna858.tmp+0x3480]  CkBase::next(int)+0x10", "C", "jna858.tmp", "CkBase::next", 16, "(int)"),
        ("C  [+0x416]  __kernel_vsyscall+0x10", "C", None, "__kernel_vsyscall", 16, None),
        ("C  0x0000000030000000", "C", None, None, None, None),
        ("V  [jvm.dll+0x5abff0]", "V", "jvm.dll", None, 0x5ABFF0, None),
        ("V  [libjvm.so+0x6804ce]  JavaCalls::call_helper(JavaValue*, Thread*)+0xf5e", "V", "libjvm.so", "JavaCalls::call_helper", 0xF5E, "(JavaValue*, Thread*)"),
        ("V  [libjvm.so+0x1]  (anonymous namespace)::run(int)+0x2", "V", "libjvm.so", "(anonymous namespace)::run", 2, "(int)"),
        ("V  [libjvm.so+0x1]  Closure::operator()(int) const+0x2", "V", "libjvm.so", "Closure::operator()", 2, "(int) const"),
        ("J 302  java.util.zip.ZipFile.getEntry(J[BZ)J (0 bytes) @ 0x00007f [0x00007e+0xce]", "J", None, "java.util.zip.ZipFile.getEntry", 0xCE, "(J[BZ)J"),
        ("J  com.acme.Order.total()V", "J", None, "com.acme.Order.total", None, "()V"),
        ("J 1 c2 a.B.c(I)I (1 bytes) @ 0x1 [0x2+0xffffffffffffff8c]", "J", None, "a.B.c", None, "(I)I"),
        ("j  com.acme.Order.total(Ljava/lang/String;)V+3 java.base@25.0.1", "j", None, "com.acme.Order.total", 3, "(Ljava/lang/String;)V"),
        ("j  com.acme.Order$$Lambda+0x00007f8.run()V+4", "j", None, "com.acme.Order$$Lambda+0x00007f8.run", 4, "()V"),
        ("A 12  java.lang.String.hashCode()I java.base@17 (60 bytes) @ 0x1 [0x1+0x10]", "A", None, "java.lang.String.hashCode", 16, "()I"),
        ("v  ~StubRoutines::call_stub 0x00007fa37eb38fa6", "v", None, "StubRoutines::call_stub", None, None),
        ("v  ~BufferBlob::Interpreter", "v", None, "BufferBlob::Interpreter", None, None),
    ],
)  # fmt: skip
def test_each_kind_of_frame(line, kind, library, name, offset, signature):
    """The method or function, its parameters, and the offset into it; without a name, the offset into the library."""
    frame = parse_frame(line)
    assert (frame.kind, frame.library, frame.name, frame.offset, frame.signature) == (
        kind, library, name, offset, signature,
    )  # fmt: skip
    assert frame.text == line[1:].strip()


@pytest.mark.parametrize(
    ("line", "compiler"),
    [
        ("J 473% C2 a.B.c()V (22 bytes) @ 0x1 [0x1+0x3]", "c2"),
        ("J 12 c1 a.B.c()V java.base@21 (22 bytes) @ 0x1 [0x1+0x3]", "c1"),
        ("J 99 jvmci a.B.c()V (22 bytes) @ 0x1 [0x1+0x3]", "jvmci"),
        ("J 10  a.B.c()V (22 bytes) @ 0x1 [0x1+0x3]", None),
    ],
)
def test_a_compiled_frame_names_its_compiler(line, compiler):
    """A loop that is compiled alone has a % after its number."""
    frame = parse_frame(line)
    assert (frame.name, frame.compiler) == ("a.B.c", compiler)


def test_the_source_of_a_native_frame_is_apart_from_its_name():
    """JDK 18 and later, where libjvm's symbols are there; `library_offset` is for addr2line."""
    frame = parse_frame("V  [libjvm.so+0x8e4b0f]  MethodLiveness::init()+0x4f  (methodLiveness.cpp:136)")
    assert (frame.name, frame.offset, frame.source) == ("MethodLiveness::init", 0x4F, "methodLiveness.cpp:136")
    assert frame.library_offset == 0x8E4B0F


@pytest.mark.parametrize(
    "line", ["", "C", "C ", "[error occurred during error reporting]", "...<more frames>...", "Cx  [a+0x1]", "v"]
)
def test_another_line_is_no_frame(line):
    """Between the frames of a stack, the JVM says what failed."""
    assert parse_frame(line) is None
    assert [frame.name for frame in frames([line, "C  [a+0x1]  b+0x2", line])] == ["b"]
