"""MBeans by a Jolokia: real ones of 1.x and 2.x beside a JMX client, how they are found, and what servers that are none answer."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import agentjar
import jvms
import maven
import pytest
from atonce import ForEach

from opskit.collect.jmx import jolokia as collected
from opskit.collect.jmx.facts import Request
from opskit.collect.jmx.jolokia import read_jolokia
from opskit.collect.jmx.jolokia_place import Place, discover
from opskit.errors import BadInput, NotPermitted, NotSupported, TargetTimeout, UsageError
from opskit.host import Host
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.jolokia import Url, parse_url
from opskit.proc.fs import ProcFS

JARS = {
    "1.7.2": ("org.jolokia:jolokia-jvm:1.7.2", "jolokia-jvm-1.7.2.jar"),
    "2.1.2": ("org.jolokia:jolokia-agent-jvm:2.1.2:javaagent", "jolokia-agent-jvm-2.1.2-javaagent.jar"),
}
# What Jolokia writes in another way than JMX: no number, half a character, objects that are not open types.
DIFFERENT = ("NotANumber", "Infinite", "MinusInfinite", "LoneSurrogate", "Date", "Decimal")


def jar(version):
    artifact, name = JARS[version]
    return next(path for path in maven.jars(artifact).split(":") if path.endswith(name))


def read(pid=None, *patterns, url="", ask=False, timeout_s=10.0):
    return read_jolokia(Host(ProcFS()), Request(pid, patterns, ask, url), timeout_s=timeout_s)


def in_a_jvm(version):
    """Everything that one JVM with this Jolokia shows."""
    workload = agentjar.start(17, f"-javaagent:{jar(version)}=port=0,host=127.0.0.1,user=ops,password=hunter2")
    try:
        with pytest.raises(NotSupported) as unasked:
            discover(Host(ProcFS()), workload.pid, may_start=False)
        with pytest.raises(NotPermitted) as refused:
            read(workload.pid, "app.kinds:*", ask=True)
        place = discover(Host(ProcFS()), workload.pid, may_start=False)
        url = f"http://ops:hunter2@{place.url.host}:{place.url.port}/jolokia"
        patterns = (
            "app.kinds:*",
            "app.hostile:*",
            "app.many:area=east,name=n1?,*",
            "java.lang:type=Memory HeapMemoryUsage.max",
        )
        found = read(None, *patterns, url=url)
        plain = read(None, "app.plain:*", url=url)
        cheap = read(None, url=url)
        with ThreadPoolExecutor(1) as pool:
            late = pool.submit(read, None, "app.slow:*", url=url, timeout_s=1.5)  # meanwhile the JVM prints
            printed = {}
            for pattern in ("app.kinds:*", "app.hostile:*", "app.many:area=east,name=n1?,*"):
                printed.update(agentjar.client_values(workload, pattern))
        return unasked.value, refused.value, found, plain, cheap, printed, late.result(), place
    finally:
        workload.stop()


real = ForEach(in_a_jvm, list(JARS))


@pytest.mark.xdist_group("jmx_jolokia")
@pytest.mark.parametrize("version", list(JARS))
def test_values_are_those_of_a_jmx_client(version):
    """Names, values, throwing attributes and tables, found by the property and read in bulk; the password is never shown."""
    unasked, refused, found, plain, cheap, printed, late, place = real.result(version)
    assert "--ask" in str(unasked)
    assert "HTTP 401" in str(refused)
    assert "OPSKIT_JOLOKIA_USER" in str(refused)
    assert (found.version, found.missing) == ("1.7.1" if version == "1.7.2" else version, [])
    assert found.url == f"http://127.0.0.1:{place.url.port}/jolokia/"
    assert "hunter2" not in str((unasked, refused, found, plain, cheap, late))
    ours = agentjar.values_of(each for each in found.beans if each.name.startswith("app."))
    assert ours.keys() == printed.keys()
    different = {key for key, value in ours.items() if not agentjar.is_same(value, printed[key])}
    assert not {key for key in different if not key.endswith(DIFFERENT)}
    assert len(printed) > 500
    (memory,) = (each for each in found.beans if each.name.startswith("java"))
    assert [each.name for each in memory.attributes] == ["HeapMemoryUsage"]
    values = {each.name: each.error or each.value for each in plain.beans[0].attributes}
    assert values["Map"] == {"a": 1, "b": [True, "x"]}
    assert values["Unchecked"] == "java.lang.IllegalArgumentException: bad \x1b[0m state"
    assert values["BadToString"] == "Jolokia cannot write its value as JSON"
    assert any("Huge" in each for each in plain.missing)
    assert {each.name.partition(":")[0] for each in cheap.beans} == {"java.lang", "java.nio"}
    assert any("'app.hostile:*'" in each for each in cheap.missing)
    assert late.beans == []
    assert any("app.slow:type=Slow not read" in each for each in late.missing)


def test_a_port_of_someone_else_is_not_asked():
    """What a JVM says of itself leads to no server but its own: it must listen on that port."""
    with server(lambda _: ok({"agent": "x"})) as (url, asked):
        options = ("-Xmx64m", f"-Djolokia.agent={url}")
        with jvms.running("sleep=1", options=options) as workload:
            AttachClient(ProcFS(), workload.pid).jcmd("VM.version")
            with pytest.raises(NotSupported, match="does not listen on port"):
                read(workload.pid, "a:*")
        assert asked == []


def ok(value, kind="application/json"):
    return reply(json.dumps({"value": value, "status": 200}).encode(), kind)


def reply(body, kind="application/json", status="200 OK", extra=""):
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{extra}Content-Length: {len(body)}\r\n\r\n".encode() + body


@contextlib.contextmanager
def server(answer, wrap=None):
    """Its URL, and the requests it got. `answer`: bytes for a request, or a list of parts between which it waits."""
    asked = []
    stop = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), wrap(connection) if wrap else connection as link:
                asked.append(whole_request(link))
                found = answer(asked[-1])
                for part in [found] if isinstance(found, bytes) else found:
                    link.sendall(part)
                    if not isinstance(found, bytes):
                        stop.wait(0.05)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/jolokia/", asked
    finally:
        stop.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def whole_request(link):
    """Its head, and the body, which may come later."""
    found = b""
    while chunk := link.recv(65536):
        found += chunk
        head, _, body = found.partition(b"\r\n\r\n")
        if f"Content-Length: {len(body)}".encode() in head.split(b"\r\n"):
            break
    return found


def endless():
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
    while True:
        yield b" "


BAD = {
    "an HTML page": (reply(b"<!doctype html><p>Welcome", "text/html"), BadInput, "HTML page"),
    "no JSON": (reply(b"hello"), BadInput, "no complete JSON"),
    "half of it": (reply(b'{"value":{"agent":"2.1'), BadInput, "no complete JSON"),
    "a deep nest": (reply(b"[" * 100_000), BadInput, "no complete JSON"),
    "cut": (b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"value"', NotSupported, "before its end"),
    "no HTTP": (b"220 mail.example ESMTP\r\n", NotSupported, "no HTTP answer"),
    "nothing": (b"", NotSupported, "no HTTP answer"),
    "a list": (reply(b"[1]"), BadInput, "no JSON object"),
    "no version": (ok({"product": "nginx"}), BadInput, "not a Jolokia"),
    "an error": (reply(b"oops", status="500 Internal Server Error"), NotSupported, "HTTP error 500"),
    "not found": (reply(b"", status="404 Not Found"), NotSupported, "/actuator/jolokia"),
    "denied": (reply(b"", status="401 Unauthorized"), NotPermitted, "OPSKIT_JOLOKIA_PASSWORD"),
    "a redirect": (
        reply(b"", status="302 Found", extra="Location: http://u:s3cret@other:1/x?token=s3cret\r\n"), NotSupported,
        "redirects to http://other:1/x, which is not followed",
    ),
    "its policy": (reply(b'{"status":403,"error":"no access"}'), NotPermitted, "jolokia-access.xml"),
    "50 MB": (b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n" + b" " * 50_000_000, BadInput, "more than 16 MiB"),
    "no names": (ok({"agent": "2.1.2"}), BadInput, "no list of MBeans"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(BAD))
def test_what_is_no_jolokia_costs_one_line(name):
    """Each answer gives one line that says what was found; no secret is in it."""
    answer, kind, said = BAD[name]
    with server(lambda _: answer) as (url, asked), pytest.raises(kind) as raised:
        read(None, "a:*", url=url.replace("//", "//ops:s3cret@"))
    assert said in str(raised.value)
    assert "s3cret" not in str(raised.value)
    assert "\n" not in str(raised.value)
    assert b"Authorization: Basic b3BzOnMzY3JldA==" in asked[0]


def test_a_server_that_hangs_is_left_at_the_deadline():
    """A server that sends a byte now and then cannot prolong it."""
    with server(lambda _: endless()) as (url, _), pytest.raises(TargetTimeout, match=r"no answer within 0\.3 s"):
        read(None, "a:*", url=url, timeout_s=0.3)


def test_nothing_listens_and_no_such_host():
    """One line each."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NotSupported, match="connection refused; is it running"):
        read(None, "a:*", url=f"http://127.0.0.1:{port}/jolokia")
    with pytest.raises(NotSupported):
        read(None, "a:*", url="http://no-such-host.invalid:8778/jolokia", timeout_s=3)


def test_only_read_only_requests_are_sent():
    """version, search and read; names are asked for as they are."""
    names = ['app:type="a,b",name=x', "other:type=Y"]

    def answer(request):
        question = json.loads(request.partition(b"\r\n\r\n")[2])
        if isinstance(question, list):
            replies = [{"status": 200, "value": {"A": 1, "Big": {"bigint": "9" * 30}, "T": "ERROR: x (class Y)"}}]
            return reply(json.dumps(replies if len(question) == 1 else []).encode())
        return ok({"agent": "2.1.2"} if question["type"] == "version" else names)

    with server(answer) as (url, asked):
        found = read(None, "app:*", url=url)
    sent = [json.loads(each.partition(b"\r\n\r\n")[2]) for each in asked]
    kinds = [question["type"] for each in sent for question in (each if isinstance(each, list) else [each])]
    assert kinds == ["version", "search", "read", "read"]
    assert [each.name for each in found.beans] == [names[0]]
    assert [(each.name, each.value) for each in found.beans[0].attributes] == [
        ("A", 1), ("Big", int("9" * 30)), ("T", "ERROR: x (class Y)"),
    ]  # fmt: skip


def test_https_is_verified(tmp_path, monkeypatch):
    """A certificate that is not trusted is refused; with its CA the same server is read. One that was found is asked where it listens."""
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    named = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    try:
        subprocess.run([*made, *named], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with server(lambda _: ok({"agent": "2.1.2"}), lambda link: context.wrap_socket(link, server_side=True)) as (url, _):
        with pytest.raises(NotSupported, match=r"its certificate is not trusted.*SSL_CERT_FILE"):
            read(None, "a:*", url=url.replace("http:", "https:"))
        monkeypatch.setenv("SSL_CERT_FILE", certificate)
        with pytest.raises(BadInput, match="no list of MBeans"):
            read(None, "a:*", url=url.replace("http:", "https:"))
        named = Url("https", "jolokia.invalid", parse_url(url).port, address="127.0.0.1")
        monkeypatch.setattr(collected, "discover", lambda *_, **__: Place(named))
        with pytest.raises(NotSupported, match=r"certificate is not valid for 'jolokia\.invalid'"):
            read(1, "a:*")


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8778",
        "ftp://h/jolokia",
        "http://",
        "http://h:99999/",
        "http://[::1/",
        "http://h/a b",
        "http://u:s3cret@",
        "x",
    ],
)
def test_a_url_that_is_none_is_refused(url):
    """Nothing is asked, and no password is shown."""
    with pytest.raises(UsageError, match="--jolokia") as raised:
        read(None, "a:*", url=url)
    assert "s3cret" not in str(raised.value)


def test_user_and_password_come_from_the_environment(monkeypatch):
    """They need not stand on the command line, may have any bytes, and those of the URL win."""
    monkeypatch.setenv(collected.USER_VARIABLE, "ops")
    monkeypatch.setenv(collected.PASSWORD_VARIABLE, "\udce9")
    with server(lambda _: reply(b"", status="403 Forbidden")) as (url, asked):
        for each in (url, url.replace("//", "//me:other@")):
            with pytest.raises(NotPermitted):
                read(None, "a:*", url=each)
    assert [line for each in asked for line in each.split(b"\r\n") if line.startswith(b"Auth")] == [
        b"Authorization: Basic b3BzOuk=", b"Authorization: Basic bWU6b3RoZXI=",
    ]  # fmt: skip


def test_no_descriptor_is_left():
    """Every connection is closed, also after errors."""
    before = len(os.listdir("/proc/self/fd"))
    with server(lambda _: reply(b"hello")) as (url, _), pytest.raises(BadInput):
        read(None, "a:*", url=url)
    assert len(os.listdir("/proc/self/fd")) == before
    assert Path("/proc/self/fd").exists()
