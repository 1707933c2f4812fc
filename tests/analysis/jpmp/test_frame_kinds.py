"""Which kind of code a frame is."""

from __future__ import annotations

import pytest

from opskit.analysis.jpmp.frame_kinds import kind_of, kinds_of


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        ("com.example.Shop.serve", "application"),
        ("com.example.Shop.serve(Shop.java:12)", "application"),
        ("com/example/Shop.serve", "application"),
        ("Lcom/example/Shop;::serve", "application"),
        ("app//com.example.Shop.serve(Shop.java:12)", "application"),
        ("Workload.main", "application"),
        ("Workload.lambda$burn$5", "application"),
        ("javassist.Loader.load", "application"),
        ("sunshine.Day.rise", "application"),
        ("java.util.HashMap.get", "jdk"),
        ("j.util.HashMap.get", "jdk"),
        ("java/util/HashMap.get", "jdk"),
        ("Ljava/util/HashMap;::get", "jdk"),
        ("java.base@17.0.9/java.util.HashMap.get(HashMap.java:552)", "jdk"),
        ("jdk.internal.misc.Unsafe.park", "jdk"),
        ("com.sun.proxy.Thing.do", "jdk"),
        ("sun.nio.ch.EPoll.wait", "jdk"),
        ("java.util.HashMap.<init>", "jdk"),
        ("com.example.Main$$Lambda.run", "generated"),
        ("com.example.Main$$Lambda$14/0x0000000800c03000.run", "generated"),
        ("java.lang.invoke.LambdaForm$DMH.invokeStatic", "generated"),
        ("jdk.internal.reflect.GeneratedMethodAccessor12.invoke", "generated"),
        ("com.sun.proxy.$Proxy33.find", "generated"),
        ("com.example.Cart$$EnhancerBySpringCGLIB$$1a2b.total", "generated"),
        ("[libjvm.so]", "native"),
        ("/usr/lib/libc.so.6", "native"),
        ("JavaThread::thread_main_inner()", "native"),
        ("std::vector<int, std::allocator<int> >::push_back", "native"),
        ("epoll_wait", "native"),
        ("[GC Thread]", "native"),
        ("do_syscall_64_[k]", "kernel"),
        ("java.lang.Kernel.run_[k]", "kernel"),
        ("java/util/HashMap.get_[j]", "jdk"),
        ("com/example/Shop.serve_[j]", "application"),
        ("com/example/Shop.serve_[0]", "application"),
        ("com/example/Shop.serve_[1]", "application"),
        ("java/util/HashMap.hash_[i]", "inlined"),
    ],
)
def test_a_frames_kind(frame, kind):
    """As the dump, opskit, perf or async-profiler writes it."""
    assert kind_of(frame) == kind


@pytest.mark.parametrize("frame", ["[main tid=4242]", "pool-1-thread-3", "http-nio-8080-exec-12", "GC Thread#1"])
def test_a_threads_name_counts_only_where_stacks_begin(frame):
    """In other places it is not a thread."""
    assert kind_of(frame, outermost=True) == "thread"
    assert kind_of(frame) == "native"


def test_a_profile_without_java_is_the_applications():
    """Whose functions are called main and serve; libraries and the kernel stay what they are."""
    kinds = kinds_of(["main", "serve", "[libc.so.6]", "read_[k]"], ["main"])
    assert kinds == {"main": "application", "serve": "application", "[libc.so.6]": "native", "read_[k]": "kernel"}
    assert kinds_of(["main", "a.B.c"], ["main"])["main"] == "native"


def test_with_threads_as_roots_their_names_are_threads_whatever_they_look_like():
    """`main` and `com.example.Worker.run` may be a thread's name."""
    kinds = kinds_of(["com.example.Worker.run", "a.B.c"], ["com.example.Worker.run"], threads_outermost=True)
    assert kinds == {"com.example.Worker.run": "thread", "a.B.c": "application"}


@pytest.mark.parametrize("frame", ["", ".", "/", "[", "a" * 50_000, "a." * 20_000, "$" * 20_000 + "!", "((((", "L;::"])
def test_odd_names_have_a_kind_too_and_soon(frame):
    """Every name has a kind, found in bounded time."""
    assert kind_of(frame, outermost=True)
