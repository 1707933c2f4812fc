"""Healthy busy servers for the tests: real ones from Maven Central, with a load of requests from another JVM. `wrapper`: comes before java."""

from __future__ import annotations

import contextlib
import random
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import jvms
import maven

if TYPE_CHECKING:
    from collections.abc import Sequence

SOURCES = jvms.SOURCE.parent / "servers"
TOMCAT = (
    "org.apache.tomcat.embed:tomcat-embed-core:10.1.34",
    "com.zaxxer:HikariCP:5.1.0",
    "com.h2database:h2:2.2.224",
    "org.slf4j:slf4j-nop:1.7.36",
)
JETTY = ("org.eclipse.jetty:jetty-server:12.0.16", "org.slf4j:slf4j-nop:2.0.16")
KAFKA = ("org.apache.kafka:kafka_2.13:3.9.0", "org.apache.kafka:kafka-tools:3.9.0", "org.slf4j:slf4j-nop:1.7.36")


@contextlib.contextmanager
def tomcat(*options: str, version: int = 17, wrapper: Sequence[str] = ()):
    """Tomcat, HikariCP and H2 with 16 clients."""
    with _loaded("Shop", TOMCAT, options, version, wrapper, clients=16) as server:
        yield server


@contextlib.contextmanager
def jetty(*options: str, version: int = 21, wrapper: Sequence[str] = ()):
    """Jetty with virtual threads and 16 clients."""
    with _loaded("Greeter", JETTY, options, version, wrapper, clients=16) as server:
        yield server


@contextlib.contextmanager
def _loaded(main, artifacts, options, version, wrapper, clients):
    path = maven.jars(*artifacts)
    command = [
        *wrapper,
        jvms.java(version),
        *options,
        "-cp",
        f"{maven.classes(SOURCES / f'{main}.java', path)}:{path}",
        main,
    ]
    with contextlib.closing(_Stopped(jvms.run(command))) as server:
        port = server.workload.lines[-1].split()[1]
        load = [
            *wrapper,
            jvms.java(17),
            "-Xmx64m",
            "-cp",
            maven.classes(SOURCES / "Load.java"),
            "Load",
            port,
            str(clients),
            "10",
        ]
        with contextlib.closing(_Stopped(jvms.run(load))):
            yield server.workload


class _Stopped:
    def __init__(self, workload: jvms.Workload) -> None:
        self.workload, self.close = workload, workload.stop


@contextlib.contextmanager
def kafka(
    *options: str, version: int = 17, binary: str | None = None, throughput: int = 2_000, wrapper: Sequence[str] = ()
):
    """A Kafka broker with a producer that sends `throughput` records of 200 bytes a second."""
    path = maven.jars(*KAFKA)
    place = Path(tempfile.mkdtemp(prefix="kafka-"))
    try:
        broker, controller = _free_ports(2)
        (place / "server.properties").write_text(
            f"process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:{controller}\n"
            f"listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}\n"
            f"controller.listener.names=CONTROLLER\nlog.dirs={place}/logs\noffsets.topic.replication.factor=1\n"
        )
        java = [binary or jvms.java(version), "-cp", path]
        storage = [
            *java,
            "kafka.tools.StorageTool",
            "format",
            "-t",
            "AAAAAAAAAAAAAAAAAAAAAQ",
            "-c",
            f"{place}/server.properties",
        ]
        subprocess.run(storage, check=True, capture_output=True, timeout=120)
        command = [*wrapper, java[0], *options, *java[1:], "kafka.Kafka", f"{place}/server.properties"]
        with contextlib.closing(_Stopped(jvms.run(command, ready=False))) as server:
            producer = [
                *wrapper,
                java[0],
                "-Xmx128m",
                *java[1:],
                "org.apache.kafka.tools.ProducerPerformance",
                "--topic",
                "orders",
                "--num-records",
                str(500 * throughput),
                "--record-size",
                "200",
                "--throughput",
                str(throughput),
                "--producer-props",
                f"bootstrap.servers=127.0.0.1:{broker}",
            ]
            with contextlib.closing(_Stopped(jvms.run(producer, ready=False))) as sender:
                sender.workload.wait_for_line("", jvms.time.monotonic() + jvms.START_S)
                yield server.workload
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _free_ports(number: int) -> list[int]:
    """Below those that the kernel gives to clients, which would take them before the server listens."""
    found: list[int] = []
    while len(found) < number:
        port = random.randrange(20_000, 32_000)  # noqa: S311
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            found = sorted({*found, port})
    return found
