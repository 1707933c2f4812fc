"""Application MBeans by a Jolokia that already runs: read-only requests over HTTP. It is never started by us.

Requests: `version` proves that it is one, `search` gives the names, `list` the attributes where only some are wanted, `read` the values
in bulk. A value that Jolokia cannot write makes it refuse the whole request, which is then divided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from opskit import shell
from opskit.collect.jmx.collect import paths_of
from opskit.collect.jmx.facts import Attribute, Bean
from opskit.collect.jmx.jolokia_place import Place, discover, entered
from opskit.collect.jmx.secrets import without_secrets as hide_secrets
from opskit.errors import BadInput, NotPermitted, NotSupported, OpskitError, TargetTimeout, UsageError
from opskit.jvm.jolokia import error_of, list_path, parse_answer, parse_url, plain_value, without_secrets
from opskit.jvm.object_names import glob_matches, parse_pattern, type_first, wants_attribute, wants_bean
from opskit.proc.kernel import http_post
from opskit.quantities import listed, plural
from opskit.records import NamedTuple
from opskit.redact import redact_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.collect.jmx.facts import Request, Value
    from opskit.host import Host
    from opskit.jvm.jolokia import Json, Url

    Question = Mapping[str, object]
    Reply = dict[str, Json]

USER_VARIABLE, PASSWORD_VARIABLE = "OPSKIT_JOLOKIA_USER", "OPSKIT_JOLOKIA_PASSWORD"
LARGEST_ANSWER_BYTES = 16 << 20
_MOST_BEANS, _CHUNK = 100_000, 32
_MOST_LATE = 2  # a getter that hangs keeps a thread of Jolokia's
_OF_THE_JDK = ("JMImplementation", "java.", "jdk.", "com.sun.management", "jmx4perl", "jolokia")
_CHEAP = (
    "java.lang:*",
    "java.nio:*",
)  # read where nothing is asked for: getters of an application may be slow or have side effects
_MOST_ELEMENTS = 10_000  # of an array, list or map
_READ_SHARE, _ALIVE_SHARE = 3, 10  # of the deadline that one answer with values, and one without, may take
_CONFIG = {
    "canonicalNaming": "false",
    "maxDepth": "16",
    "maxCollectionSize": str(_MOST_ELEMENTS),
    "maxObjects": "200000",
}
_ERRORS_INSIDE = {**_CONFIG, "ignoreErrors": "true"}
_ERROR = "ERROR: "
_THROWN = (_ERROR, "Unsupported")
_NOT_READABLE = "javax.management.AttributeNotFoundException"  # `list` does not say which only can be set
_NAMED = 5


class JolokiaRead(NamedTuple):
    """What it answered. `url`: without user and password. `missing`: sentences on what was left out and why."""

    url: str
    version: str | None  # of Jolokia
    beans: Sequence[Bean]
    missing: Sequence[str] = ()
    names: Sequence[str] = ()  # of all MBeans


def read_jolokia(host: Host, ask: Request, *, timeout_s: float = 10.0) -> JolokiaRead:
    """The MBeans of `ask.patterns` by the Jolokia at `ask.jolokia`; "" discovers that of `ask.pid` (`ask.ask`: may start the listener).

    Raises UsageError, BadInput, NotPermitted, NotSupported and TargetTimeout, and as AttachClient does where it discovers.
    """
    if ask.jolokia:
        place = Place(parse_url(ask.jolokia))
        user, password = http_post.variable(USER_VARIABLE), http_post.variable(PASSWORD_VARIABLE)
        if place.url.user is None and user:
            place = place._replace(url=place.url._replace(user=user, password=password))
    elif ask.pid is not None:
        place = discover(host, ask.pid, may_start=ask.ask)
    else:
        raise UsageError("--jolokia: no JVM and no URL; write http://HOST:PORT/jolokia, or name a JVM")
    with entered(host, place):
        return _Reader(host, place.url, ask.patterns, timeout_s).read()


class _Unusable(Exception):  # noqa: N818
    """One answer for all questions, no JSON, or too large: fewer questions may be answered. The text says why."""


class _Reader:
    def __init__(self, host: Host, url: Url, patterns: Sequence[str], timeout_s: float) -> None:
        self.host, self.url, self.timeout_s = host, url, timeout_s
        self.patterns = [parse_pattern(each) for each in patterns]
        self.end_s = host.monotonic() + timeout_s
        self.missing: list[str] = []
        self.late = 0
        self.found: dict[str, dict[str, Attribute]] = {}

    def read(self) -> JolokiaRead:
        version = self._version()
        names = self._names()
        if not self.patterns:
            self.patterns = [parse_pattern(each) for each in _CHEAP]
            self._tell_of_others(names)
        wanted = [name for name in names if wants_bean(self.patterns, name)]
        if len(wanted) > _MOST_BEANS:
            self.missing.append(f"{plural(len(wanted) - _MOST_BEANS, 'MBean')} not read: at most {_MOST_BEANS:,} are")
        questions: list[Question] = []
        partly = []
        for name in wanted[:_MOST_BEANS]:
            if any(each.matches(name) for each in self.patterns):
                questions.append({"type": "read", "mbean": name, "config": _ERRORS_INSIDE})
            else:
                partly.append(name)
        for name, attributes in self._attributes(partly):
            chosen = [each for each in attributes if self._may_want(name, each)]
            if chosen:
                questions.append({"type": "read", "mbean": name, "attribute": chosen, "config": _ERRORS_INSIDE})
        again: list[Question] = []
        for question, reply in self._answers(questions, again):
            self._keep(question, reply)
        self._one_by_one([str(each["mbean"]) for each in again])
        self._again_with_errors()
        beans = [
            Bean(name, tuple(each[key] for key in sorted(each))) for name, each in sorted(self.found.items()) if each
        ]
        return JolokiaRead(self.url.shown, version, beans, self.missing, names)

    def _tell_of_others(self, names: Sequence[str]) -> None:
        domains = sorted({name.partition(":")[0] for name in names})
        others = [each for each in domains if not each.startswith(_OF_THE_JDK)]
        if others:
            self.missing.append(
                f"MBeans of {plural(len(others), 'other domain')} not read without a pattern ({listed(others, _NAMED)}); "
                f"name them, for example '{others[0]}:*'"
            )

    def _may_want(self, name: str, attribute: str) -> bool:
        """Also where the pattern may mean a part of it (HeapMemoryUsage.used)."""
        tails = [tail for each in self.patterns if (tail := each.attribute_of(name)) is not None]
        heads = {".".join(tail.split(".")[: length + 1]) for tail in tails for length in range(tail.count(".") + 1)}
        return any(glob_matches(head, attribute) for head in heads)

    def _version(self) -> str | None:
        answer = self._single({"type": "version"})
        value = answer.get("value")
        if not isinstance(value, dict) or "agent" not in value:
            raise BadInput(self.url.shown, "it is not a Jolokia: its answer has no version")
        return str(value["agent"])[:40]

    def _names(self) -> list[str]:
        value = self._single({"type": "search", "mbean": "*:*", "config": _CONFIG}).get("value")
        if not isinstance(value, list):
            raise BadInput(self.url.shown, "Jolokia's answer has no list of MBeans")
        return sorted({type_first(each) for each in value if isinstance(each, str)})

    def _single(self, question: Question) -> Reply:
        """The reply to one question. Raises what the user can do about its refusal."""
        try:
            answer = self._post(question)
        except _Unusable as why:
            raise BadInput(self.url.shown, str(why)) from None
        if not isinstance(answer, dict):
            raise BadInput(self.url.shown, "it is not a Jolokia: its answer is no JSON object")
        status = answer.get("status")
        if status == 403:
            raise NotPermitted(
                f"{self.url.shown}: Jolokia's policy refuses `{question['type']}`: {error_of(answer)}; allow it in jolokia-access.xml"
            )
        if status != 200:
            raise BadInput(
                self.url.shown, f"Jolokia refused `{question['type']}` (status {status}): {error_of(answer)}"
            )
        return answer

    def _attributes(self, names: Sequence[str]) -> Iterable[tuple[str, list[str]]]:
        questions = [{"type": "list", "path": list_path(name), "config": _CONFIG} for name in names]
        by_path = {list_path(name): name for name in names}
        unlisted: list[Question] = []
        for question, reply in self._answers(questions, unlisted):
            name = by_path[str(question["path"])]
            value = reply.get("value")
            if reply.get("status") == 200 and isinstance(value, dict):
                yield name, sorted(value)
            else:
                self.missing.append(f"{name} was not read: {error_of(reply)}")
        self.missing += [
            f"{by_path[str(each['path'])]} was not read: Jolokia cannot list its attributes" for each in unlisted
        ]

    def _answers(self, questions: Sequence[Question], unusable: list[Question]) -> Iterable[tuple[Question, Reply]]:
        """Each question with its reply; those that Jolokia cannot answer go to `unusable`."""
        todo = [list(questions[at : at + _CHUNK]) for at in range(0, len(questions), _CHUNK)][::-1]
        while todo:
            asked = todo.pop()
            try:
                replies = self._bulk(asked)
            except _Unusable:
                half = len(asked) // 2
                if half:
                    todo += [asked[half:], asked[:half]]
                else:
                    unusable += asked
                continue
            except TargetTimeout as error:
                self.late += 1
                if self.late >= _MOST_LATE or not self._still_answers():
                    asked += [each for chunk in todo for each in chunk]
                    todo.clear()
                names = [str(each.get("mbean", each.get("path"))) for each in asked]
                self.missing.append(f"{listed(names, _NAMED)} not read: {error}; name fewer MBeans")
                continue
            yield from zip(asked, replies)

    def _still_answers(self) -> bool:
        """Whether a getter that hangs left Jolokia a thread to answer with: by default it has one."""
        try:
            self._post({"type": "version"}, _ALIVE_SHARE)
        except (OpskitError, _Unusable):
            self.missing.append(
                f"{self.url.shown} answers nobody now: a getter that hangs keeps its thread, until it returns"
            )
            return False
        return True

    def _bulk(self, asked: Sequence[Question]) -> list[Reply]:
        answer = self._post(asked, _READ_SHARE)
        if (
            not isinstance(answer, list)
            or len(answer) != len(asked)
            or not all(isinstance(each, dict) for each in answer)
        ):
            raise _Unusable("Jolokia's answer is no list of replies")
        return answer

    def _keep(self, question: Question, reply: Reply) -> None:
        name, value = str(question["mbean"]), reply.get("value")
        if reply.get("status") != 200 or not isinstance(value, dict):
            if reply.get("status") != 404 or "attribute" in question:  # 404: unregistered since then
                self.missing.append(f"{name} could not be read: {error_of(reply)}")
            return
        for attribute, each in value.items():
            self._add(name, attribute, plain_value(each))

    def _add(self, name: str, attribute: str, value: Json, error: str | None = None) -> None:
        plain: Value = value  # type: ignore[assignment]
        if isinstance(value, (list, dict)) and len(value) == _MOST_ELEMENTS:
            self.missing.append(f"{name} {attribute}: at most its first {_MOST_ELEMENTS:,} elements were read")
        if error is not None or wants_attribute(self.patterns, name, attribute, paths_of(plain)):
            hidden = hide_secrets(attribute, plain)
            self.found.setdefault(name, {})[attribute] = Attribute(
                attribute, hidden, "jolokia", error and redact_text(error)
            )

    def _one_by_one(self, names: Sequence[str]) -> None:
        """Read MBeans of which one attribute makes Jolokia refuse all."""
        questions: list[Question] = []
        for name, attributes in self._attributes(names):
            questions += [
                {"type": "read", "mbean": name, "attribute": [each], "config": _ERRORS_INSIDE}
                for each in attributes
                if any(pattern.matches(name) for pattern in self.patterns) or self._may_want(name, each)
            ]
        unusable: list[Question] = []
        for question, reply in self._answers(questions, unusable):
            self._keep(question, reply)
        for question in unusable:
            (attribute,) = cast("list[str]", question["attribute"])
            self._add(str(question["mbean"]), attribute, None, "Jolokia cannot write its value as JSON")

    def _again_with_errors(self) -> None:
        """Tell an attribute that throws from a text that looks like it: without ignoreErrors the reply has a status."""
        doubtful = [
            (name, each.name) for name, attributes in self.found.items() for each in attributes.values()
            if isinstance(each.value, str) and each.value.startswith(_THROWN)
        ]  # fmt: skip
        questions = [
            {"type": "read", "mbean": name, "attribute": attribute, "config": _CONFIG} for name, attribute in doubtful
        ]
        unusable: list[Question] = []
        for question, reply in self._answers(questions, unusable):
            if reply.get("status") != 200:
                self._fail(question, error_of(reply))
        for question in unusable:  # what it threw breaks Jolokia's own report of it
            said = self.found[str(question["mbean"])][str(question["attribute"])].value
            self._fail(question, str(said).removeprefix(_ERROR))

    def _fail(self, question: Question, error: str) -> None:
        name, attribute = str(question["mbean"]), str(question["attribute"])
        if error.startswith(_NOT_READABLE):
            self.found[name].pop(attribute)
        else:
            self._add(name, attribute, None, error)

    def _left(self) -> float:
        return self.end_s - self.host.monotonic()

    def _post(self, question: object, share: int = 1) -> Json:
        """One request; the JSON of its answer. Raises _Unusable and OpskitError."""
        import json

        shown = self.url.shown
        seconds = min(self._left(), self.timeout_s / share)
        if seconds <= 0:
            raise TargetTimeout(f"{shown}: {self.timeout_s:g} s had passed")
        url = self.url
        try:
            answer = http_post.post(
                url.scheme, url.host, url.port, url.path, json.dumps(question).encode(), _headers(url),
                seconds=seconds, limit_bytes=LARGEST_ANSWER_BYTES, address=url.address,
            )  # fmt: skip
        except http_post.NoAnswer as error:
            if error.kind == "size":
                raise _Unusable(str(error)) from None
            raise _explained(shown, error) from None
        _check(shown, answer)
        try:
            return parse_answer(answer.body)
        except ValueError:
            raise _Unusable(_not_json(answer)) from None


def _headers(url: Url) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "opskit"}
    if url.user is not None:
        from base64 import b64encode

        pair = f"{url.user}:{url.password or ''}".encode("utf-8", "surrogateescape")  # as the environment has it
        headers["Authorization"] = f"Basic {b64encode(pair).decode()}"
    return headers


def _explained(shown: str, error: http_post.NoAnswer) -> OpskitError:
    if error.kind == "time":
        return TargetTimeout(f"{shown}: {error}: it hangs, or a getter of an MBean does")
    advice = {
        "refused": "is it running, and is this its port?",
        "certificate": f"name the file of its CA: {shell.command('export', 'SSL_CERT_FILE=ca.pem')}",
        "tls": "is it http instead of https?",
        "protocol": "is it https instead of http?",
    }.get(error.kind)
    return NotSupported(f"{shown}: {error}" + (f"; {advice}" if advice else ""))


def _check(shown: str, answer: http_post.Answer) -> None:
    """Raise what the HTTP status says."""
    status = answer.status
    if status == 200:
        return
    if status in (401, 403):
        advice = f"set {USER_VARIABLE} and {PASSWORD_VARIABLE}" if status == 401 else "ask who runs it for access"
        if status == 401:
            advice += ", and name the URL: --jolokia URL"
        raise NotPermitted(f"{shown}: it refused us (HTTP {status}); {advice}")
    if answer.location is not None:
        raise NotSupported(
            f"{shown}: it redirects to {without_secrets(answer.location)}, which is not followed; name the URL of the Jolokia itself"
        )
    advice = "; name the path of the Jolokia, for example /jolokia or /actuator/jolokia" if status == 404 else ""
    raise NotSupported(f"{shown}: HTTP error {status}{advice}")


def _not_json(answer: http_post.Answer) -> str:
    kind = answer.content_type.partition(";")[0].strip().lower()
    if "html" in kind or answer.body.lstrip()[:1] == b"<":
        return "it is not a Jolokia: it answered with an HTML page"
    return f"its answer of {plural(len(answer.body), 'byte')} is no complete JSON"
