"""Class names: readable forms, packages and owners, and names that change with every start."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.jvm.dumps import class_names


@pytest.mark.parametrize(("generated", "folded"), [
    ("a.B$$Lambda$14/0x0000000800c03000", "a.B$$Lambda/*"),
    ("a.B$$Lambda/0x0000000036040210", "a.B$$Lambda/*"),
    ("a.B$$Lambda$1/1234567", "a.B$$Lambda/*"),
    ("a.B$$Lambda$1+0x00007f4144000a08", "a.B$$Lambda/*"),
    ("java.lang.invoke.LambdaForm$MH+0x00007f12", "java.lang.invoke.LambdaForm$MH/*"),
    ("[La.B$$Lambda$14/0x0000000800c03000;", "[La.B$$Lambda/*;"),
    ("java.lang.invoke.LambdaForm$MH/0x00007f12", "java.lang.invoke.LambdaForm$MH/*"),
    ("java.lang.invoke.LambdaForm$DMH/788117692", "java.lang.invoke.LambdaForm$DMH/*"),
    ("java.lang.String$$StringConcat/0x0000000036040210", "java.lang.String$$StringConcat/*"),
    ("sun.reflect.GeneratedMethodAccessor993", "sun.reflect.GeneratedMethodAccessor*"),
    ("jdk.internal.reflect.GeneratedConstructorAccessor7", "jdk.internal.reflect.GeneratedConstructorAccessor*"),
    ("com.sun.proxy.$Proxy12", "com.sun.proxy.$Proxy*"),
    ("jdk.proxy2.$Proxy31", "jdk.proxy*.$Proxy*"),
    ("a.B$$EnhancerBySpringCGLIB$$1a2b3c4d", "a.B$$EnhancerBySpringCGLIB$$*"),
    ("a.B$$EnhancerBySpringCGLIB$$1a2b$$FastClassBySpringCGLIB$$9f", "a.B$$EnhancerBySpringCGLIB$$*$$FastClassBySpringCGLIB$$*"),
    ("a.B$$SpringCGLIB$$0", "a.B$$SpringCGLIB$$*"),
    ("a.B$$SpringCGLIB$$FastClass$$1", "a.B$$SpringCGLIB$$FastClass$$*"),
    ("a.B$ByteBuddy$xY12abCD", "a.B$ByteBuddy$*"),
    ("a.B$HibernateProxy$gHb12XyZ", "a.B$HibernateProxy$*"),
    ("a.B$MockitoMock$123456", "a.B$MockitoMock$*"),
    ("a.B_$$_jvst1a2_3", "a.B_$$_jvst*"),
    ("a.B_$$_javassist_17", "a.B_$$_javassist_*"),
])  # fmt: skip
def test_generated_names_fold(generated, folded):
    """Names that are numbered differently in each run get one name; folding again changes nothing."""
    assert class_names.fold(generated) == folded
    assert class_names.fold(folded) == folded
    assert class_names.fold_all([generated, "a.B", folded], f"{generated}\na.B\n{folded}") == {generated: folded}


@pytest.mark.parametrize("name", [
    "a.B$1", "a.B$$anonfun$1", "a.Accessor7", "[B", "java.lang.String", "a.B$Proxy", "a.Lambda$1", "<methodKlass>",
    "a.GeneratedMethodAccessorFactory", "user$eval123$fn__124", "a.B$HibernateProxy",
])  # fmt: skip
def test_other_names_do_not(name):
    """Anonymous classes, Scala's functions, look-alikes."""
    assert class_names.fold(name) == name


@given(st.lists(st.text("aB$./+0x1;LambdProxy", max_size=30)))
def test_folding_all_is_folding_each(names):
    """Searching many names at once gives the same as folding each."""
    changed = class_names.fold_all(names, "\n".join(names))
    assert [changed.get(name, name) for name in names] == [class_names.fold(name) for name in names]


@pytest.mark.parametrize(("internal", "readable"), [
    ("[B", "byte[]"), ("[[I", "int[][]"), ("[Ljava.lang.String;", "java.lang.String[]"), ("a.B", "a.B"),
    ("[[La.B$C;", "a.B$C[][]"), ("<methodKlass>", "<methodKlass>"),
])  # fmt: skip
def test_names_as_people_write_them(internal, readable):
    """Conversion in both directions."""
    assert class_names.to_readable(internal) == readable
    assert class_names.to_internal(readable) == internal


@pytest.mark.parametrize(("name", "package"), [
    ("java.util.HashMap$Node", "java.util"), ("[Ljava.util.HashMap$Node;", "java.util"), ("[B", "(arrays of primitives)"),
    ("Main", "(default package)"), ("<methodKlass>", "(the VM's own)"), ("[LMain;", "(default package)"),
])  # fmt: skip
def test_packages(name, package):
    """An array belongs to its element's package."""
    assert class_names.package(name) == package


def test_whose_they_are():
    """Classes of the application are neither arrays nor the JDK's nor the VM's."""
    assert [n for n in ("a.B", "[La.B;", "[B", "java.lang.String", "<no name>", "* MethodKlass", "sun.misc.X", "Main")
            if class_names.is_application(n)] == ["a.B", "Main"]  # fmt: skip
    assert class_names.is_vm("* ConstMethodKlass")
