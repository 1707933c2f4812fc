"""Which differences count, what is folded into one row, and the order of the rows."""

from __future__ import annotations

import pytest
from comparing import jvm, machine, setting, share, sides, throttled_sides

from opskit.analysis.compare.judge import judge
from opskit.analysis.compare.pairing import NotComparable
from opskit.collect.compare.facts import PER_S, SECONDS, Facts


def keys(result):
    """The keys of the rows, in order."""
    return [each.key for each in result.differences]


@pytest.mark.parametrize(
    ("bad", "good", "differs"),
    [
        (0.10, 0.04, True),
        (0.0, 0.049, False),  # below five points
        (0.0, 0.05, True),
        (0.90, 0.80, False),  # ten points, 11 %
        (1.0, 0.7, True),
    ],
)
def test_a_share_differs_by_five_points_and_30_percent(bad, good, differs):
    """Both are needed, and either side may have more."""
    for one, other in ((bad, good), (good, bad)):
        assert bool(judge(sides([share("host.cpu.user", one)], [share("host.cpu.user", other)])).differences) is differs


@pytest.mark.parametrize(
    ("fact", "other", "differs"),
    [
        (share("host.pgmajfault", 0.3, PER_S, events=1), share("host.pgmajfault", 0.1, PER_S, events=0), False),
        (share("host.pgmajfault", 900.0, PER_S, events=900), share("host.pgmajfault", 0.0, PER_S, events=0), True),
        (share("host.pgmajfault", 25.0, PER_S, events=25), share("host.pgmajfault", 1.0, PER_S, events=1), False),
        (share("jvm.gc", 0.2, events=1), share("jvm.gc", 0.0, events=0), False),
        (share("jvm.gc", 0.2, events=1, since=0.2), share("jvm.gc", 0.0, events=0, since=0.01), True),
        (share("jvm.gc", 0.2, events=40), share("jvm.gc", 0.0, events=0), True),
        (share("jvm.gc", 0.9, events=1), share("jvm.gc", 0.0, events=0), True),
        (share("host.cpu.user", 0.6, low=0.3, high=0.9), share("host.cpu.user", 0.3, low=0.1, high=0.5), False),
        (share("disk.a.await", 0.006, SECONDS, events=25), share("disk.a.await", 0.001, SECONDS, events=400), False),
        (share("disk.a.await", 0.006, SECONDS, events=300), share("disk.a.await", 0.001, SECONDS, events=400), True),
        (share("host.memory_used", 0.6), share("host.memory_used", 0.2), False),
    ],
)
def test_few_events_and_wide_spreads_are_noise(fact, other, differs):
    """One pause in the window is chance, unless the time since the start says the same."""
    assert bool(judge(sides([fact], [other])).differences) is differs


def test_measured_come_first_then_configured_then_host():
    """The worst symptom stands first, and names the setting that may explain it."""
    result = judge(throttled_sides())
    assert keys(result) == ["jvm.throttled", "host.cpu.steal", "cgroup.cpu_quota", "sysctl.vm.swappiness", "host.cpus"]
    assert result.differences[0].explained_by == ("cgroup.cpu_quota",)
    assert result.differences[0].is_worse is True


@pytest.mark.parametrize(
    ("bad", "good", "row", "echoes"),
    [
        (
            {"jvm.collector": "Serial", "flag.UseSerialGC": "on", "jvm.generation.0.name": "new", "jvm.gc_threads": 1},
            {"jvm.collector": "G1", "jvm.generation.0.name": "young", "jvm.gc_threads": 2},
            "jvm.collector",
            3,
        ),
        (
            {"jvm.heap_max": 64, "flag.MaxHeapSize": 64},
            {"jvm.heap_max": 256, "flag.MaxHeapSize": 256},
            "jvm.heap_max",
            1,
        ),
        (
            {"cgroup.cpu_quota": 1.0, "jvm.cpus": 1, "jvm.gc_threads": 1, "jvm.collector": "Serial"},
            {"cgroup.cpu_quota": "none", "jvm.cpus": 8, "jvm.gc_threads": 8, "jvm.collector": "G1"},
            "cgroup.cpu_quota",
            3,
        ),
        (
            {"cgroup.memory_limit": 1 << 30, "jvm.heap_max": 1 << 28},
            {"cgroup.memory_limit": "none", "jvm.heap_max": 1 << 32},
            "cgroup.memory_limit",
            1,
        ),
        ({"jvm.jdk": "17.0.1", "jvm.build": "17.0.1+9"}, {"jvm.jdk": "21", "jvm.build": "21+35"}, "jvm.jdk", 1),
    ],
)
def test_echoes_of_one_cause_are_one_row(bad, good, row, echoes):
    """What follows from a setting stands in its row."""
    facts = [[setting(key, value) for key, value in side.items()] for side in (bad, good)]
    result = judge(sides(jvm_bad=facts[0], jvm_good=facts[1]))
    assert keys(result) == [row]
    assert len(result.differences[0].echoes) == echoes


def test_a_flag_of_its_own_is_no_echo_of_the_memory_limit():
    """-Xmx and a limit that both differ are two causes."""
    bad = [setting("cgroup.memory_limit", 1), setting("flag.MaxHeapSize", 5), setting("jvm.heap_max", 5)]
    good = [setting("cgroup.memory_limit", 9), setting("flag.MaxHeapSize", 6), setting("jvm.heap_max", 6)]
    assert sorted(keys(judge(sides(jvm_bad=bad, jvm_good=good)))) == ["cgroup.memory_limit", "jvm.heap_max"]


def test_a_flag_that_says_the_default_changes_nothing():
    """-XX:+UseG1GC where G1 is chosen anyway."""
    bad = [setting("flag.UseG1GC", "on"), setting("jvm.collector", "G1")]
    assert keys(judge(sides(jvm_bad=bad, jvm_good=[setting("jvm.collector", "G1")]))) == []


def test_a_newer_kernel_brings_its_parameters():
    """What it alone has is its echo; with the same kernel it is unknown."""
    mine, extra = setting("kernel.release", "6.1", "kernel"), setting("sysctl.vm.new", "1", "sysctl")
    result = judge(sides([mine, extra], [setting("kernel.release", "5.4", "kernel")]))
    assert keys(result) == ["kernel.release"]
    assert [echo.key for echo in result.differences[0].echoes] == ["sysctl.vm.new"]
    result = judge(sides([mine, extra], [mine]))
    assert keys(result) == []
    assert result.unknown == [("sysctl.vm.new", "only one side has it")]


@pytest.mark.parametrize(
    ("key", "bad", "good"),
    [
        ("property.server.id", "1", "2"),
        ("property.node.name", "a", "b"),
        ("property.http.port", "8080", "8081"),
        ("property.kafka.logs.dir", "/var/log/1", "/var/log/2"),
        ("property.x.peer", "10.0.0.1:9092", "10.0.0.2:9093"),
        ("property.x", "web-1", "web-2"),
        ("property.brokerid", "1", "2"),
        ("property.nodeName", "a", "b"),
        ("property.spool", "/var/spool/app-4711/x", "/var/spool/app-4712/x"),
        ("property.upstream", "kafka-1.prod.internal:9092", "kafka-2.prod.internal:9093"),
        ("agent.libjdwp.so", "jdwp transport=dt_socket,address=5005", "jdwp transport=dt_socket,address=5006"),
        ("property.x", "job-4007", "job-4008"),
        ("property.x", "0b4a7c1e-1111-2222-3333-444455556666", "0b4a7c1e-1111-2222-3333-444455550000"),
        ("agent.a.jar", "a.jar port=1,host=10.0.0.1", "a.jar port=1,host=10.9.9.9"),
        ("flag.HeapDumpPath", "set", "set"),
    ],
)
def test_what_names_one_machine_is_no_difference(key, bad, good):
    """Names, ports, addresses, PIDs, directories."""
    result = judge(sides(jvm_bad=[setting(key, bad)], jvm_good=[setting(key, good)]))
    assert keys(result) == []


@pytest.mark.parametrize(
    ("key", "bad", "good"),
    [
        ("property.cache.entries", "10", "10000"),
        ("property.transport", "nio", "epoll"),
        ("property.app.profile", "prod", "test"),
        ("property.logging.level.root", "DEBUG", "INFO"),
        ("property.cache", "size:100", "size:10000"),
        ("sysctl.kernel.shmmax", "137438953472", "274877906944"),
    ],
)
def test_other_properties_are_a_difference(key, bad, good):
    """A value that is no identity."""
    assert keys(judge(sides(jvm_bad=[setting(key, bad)], jvm_good=[setting(key, good)]))) == [key]


@pytest.mark.parametrize(
    ("key", "bad", "good", "differs"),
    [
        ("sysctl.kernel.threads-max", "190112", "190020", False),
        ("sysctl.net.ipv4.tcp_mem", "284580 379440 569160", "284500 379400 569100", False),
        ("sysctl.net.ipv4.tcp_mem", "284580 379440 569160", "4096 379400 569100", True),
        ("sysctl.vm.swappiness", "60", "61", True),
        ("jvm.heap_max", 6_308_233_216, 6_306_136_064, False),
        ("flag.MaxHeapSize", 1000 << 20, 1010 << 20, True),
    ],
)
def test_defaults_that_are_shares_of_the_memory_vary_with_it(key, bad, good, differs):
    """Two machines of one size never have the same number of bytes."""
    assert bool(keys(judge(sides([setting(key, bad)], [setting(key, good)])))) is differs


def test_what_all_jvms_share_is_one_row():
    """Four JVMs with another limit are one cause; what only one has is a row of its own."""
    limits = [[setting("limit.RLIMIT_NOFILE", top, "limits")] for top in (512, 4096)]
    bad = [jvm(number, f"Main{number}", *limits[0], *([setting("flag.X", "1")] if number == 3 else ())) for number in (1, 2, 3)]  # fmt: skip
    good = [jvm(number + 10, f"Main{number}", *limits[1]) for number in (1, 2, 3)]
    result = judge(Facts(machine("a", jvms=bad), machine("b", jvms=good)))
    assert sorted(keys(result)) == ["flag.X", "limit.RLIMIT_NOFILE"]
    (row,) = (each for each in result.differences if each.key == "limit.RLIMIT_NOFILE")
    assert [echo.name for echo in row.echoes] == [
        "limit.RLIMIT_NOFILE of Main2 (2)",
        "limit.RLIMIT_NOFILE of Main3 (3)",
    ]


def test_a_library_that_another_jdk_loads_is_its_echo():
    """A shared object of one side alone follows from the JDK or the collector; another version is a cause of its own."""
    bad = [setting("jvm.jdk", "11"), setting("object.libz", "1.2"), setting("object.libssl", "1.1")]
    facts = sides(jvm_bad=bad, jvm_good=[setting("jvm.jdk", "17"), setting("object.libssl", "3")])
    jvms = [side.jvms[0]._replace(known=side.jvms[0].known._replace(whole=("object.",))) for side in facts]
    facts = Facts(*(side._replace(jvms=(each,)) for side, each in zip(facts, jvms)))
    assert keys(judge(facts)) == ["jvm.jdk", "object.libssl"]


def test_options_of_variables_are_unknown_where_those_cannot_be_read():
    """Another user sees the command line alone."""
    facts = sides(jvm_bad=[setting("flag.A", "1"), setting("flag.B", "1")], jvm_good=[])
    bad, good = (side.jvms[0] for side in facts)
    bad = bad._replace(known=bad.known._replace(off_line=frozenset(("flag.A",))))
    good = good._replace(known=good.known._replace(off_line=None))
    result = judge(Facts(facts.bad._replace(jvms=(bad,)), facts.good._replace(jvms=(good,))))
    assert keys(result) == ["flag.B"]
    assert result.unknown == [("flag.A", "only one side has it")]


def test_what_was_redacted_or_is_unknown_is_no_difference():
    """It is listed as not compared."""
    result = judge(sides(jvm_bad=[setting("variable.LANG", "…")], jvm_good=[setting("variable.LANG", "C")]))
    assert keys(result) == []
    assert result.unknown == [("variable.LANG", "its value was redacted")]


FACTS = sides(
    [
        setting("sysctl.vm.swappiness", "10", "sysctl"),
        setting("boot.x", "on"),
        share("host.cpu.steal", 0.3),
        share("host.pressure.cpu", 0.5),
    ],
    [setting("sysctl.vm.swappiness", "60", "sysctl"), share("host.cpu.steal", 0.0), share("host.pressure.cpu", 0.1)],
    jvm_bad=[setting("jvm.collector", "Serial"), setting("flag.UseSerialGC", "on"), share("jvm.gc", 0.5, events=50)],
    jvm_good=[setting("jvm.collector", "G1"), share("jvm.gc", 0.0, events=0)],
)


def test_the_mirror_has_the_same_rows():
    """Compare A B and compare B A differ in the direction alone."""
    one, other = judge(FACTS), judge(Facts(FACTS.good, FACTS.bad))
    assert {(each.key, each.bad, each.good) for each in one.differences} == {
        (each.key, each.good, each.bad) for each in other.differences
    }
    assert {each.is_worse for each in one.differences if each.class_ == "measured"} == {True}
    assert {each.is_worse for each in other.differences if each.class_ == "measured"} == {False}


@pytest.mark.parametrize("side", [FACTS.bad, FACTS.good])
def test_a_machine_is_like_itself(side):
    """No row, whatever it holds."""
    assert judge(Facts(side, side)).differences == []


def test_jvms_are_paired_by_their_commands():
    """By the whole command, then without identities, then by the main class where it is the only one."""
    bad = [
        jvm(1, "Kafka", command="Kafka /etc/a"),
        jvm(2, "Main", command="Main 10.0.0.1"),
        jvm(3, "Main", command="Main b"),
        jvm(4, "app-1.2.jar"),
    ]
    good = [
        jvm(5, "Kafka", command="Kafka /etc/b"),
        jvm(6, "Main", command="Main 10.0.0.2"),
        jvm(7, "Main", command="Main c"),
        jvm(8, "/x/app-1.3.jar"),
    ]
    twins = [jvm(pid, "Twin", line="java Twin") for pid in (21, 22)]
    result = judge(Facts(machine("a", jvms=[*bad, *twins]), machine("b", jvms=[*good, *twins])))
    assert {(pair.bad.pid, pair.good.pid) for pair in result.pairs} >= {(2, 6), (21, 21), (22, 22)}
    assert (3, 7) in {(pair.bad.pid, pair.good.pid) for pair in result.pairs} or {
        each.pid for _, each in result.unpaired
    } >= {3, 7}


def test_a_word_means_one_jvm_of_each_side():
    """Two that match, or none, are an error with the list; two words are for one side each."""
    facts = Facts(
        machine("a", jvms=[jvm(1, "Kafka"), jvm(2, "Kafka")]),
        machine("b", jvms=[jvm(3, "Kafka", line="java -Dx=one Kafka")]),
    )
    with pytest.raises(NotComparable, match="2 JVMs of a ") as error:
        judge(facts, ("kafka",))
    assert error.value.lines == ("1  Kafka", "2  Kafka")
    with pytest.raises(NotComparable, match="no JVM of a "):
        judge(facts, ("zookeeper",))
    assert [(each.bad.pid, each.good.pid) for each in judge(facts, ("1", "x=one")).pairs] == [(1, 3)]


def test_one_sample_leaves_the_symptoms_unknown():
    """Unknown is not the same as none."""
    result = judge(sides([setting("kernel.release", "1")], [setting("kernel.release", "1")], window_s=0.0))
    assert not result.has_rates
    assert result.unknown == [
        ("rates and shares of bad.tgz", "rates need two samples"),
        ("rates and shares of good.tgz", "rates need two samples"),
    ]
