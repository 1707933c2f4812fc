"""A hundred secrets of many kinds, as they stand in command lines, environments and files of real programs, and a search for them."""

from __future__ import annotations

import base64
import json
import random
import string
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

_random = random.Random(22)  # noqa: S311


def _key(size: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(_random.choice(letters) for _ in range(size))


class Planted(NamedTuple):
    """A secret with the words of the command line, the variables or the text that it stands in."""

    kind: str
    secret: str
    words: tuple[str, ...] = ()
    variables: Mapping[str, str] = MappingProxyType({})
    text: str = ""


def _plant() -> list[Planted]:
    found: list[Planted] = []

    def words(kind: str, secret: str, *given: str) -> None:
        found.append(Planted(kind, secret, tuple(word.replace("@@", secret) for word in given)))

    def variable(kind: str, secret: str, name: str, value: str = "@@") -> None:
        found.append(Planted(kind, secret, variables={name: value.replace("@@", secret)}))

    def text(kind: str, secret: str, line: str) -> None:
        found.append(Planted(kind, secret, text=line.replace("@@", secret)))

    for name in (
        "db.password",
        "javax.net.ssl.keyStorePassword",
        "api.token",
        "shop.secret",
        "encryption.key",
        "user.pwd",
        "client-secret",
    ):
        words("property", _key(12), f"-D{name}=@@")
    words("property with blanks", f"{_key(6)} {_key(5)} {_key(4)}", "-Ddb.password=@@", "-Xmx64m")
    words("property with quotes", f"{_key(6)}\"x'{_key(4)}", "-Dquoted.password=@@")
    for option in ("--password", "--api-key", "--token", "--client-secret", "--db-passwd", "-storepass", "--auth"):
        words("option and word", _key(13), option, "@@")
    for option in ("--password", "--apiKey", "--access-token", "-token", "--secret_key"):
        words("option with =", _key(13), f"{option}=@@")
    words("option with :", _key(13), "--token:@@")
    words("-p", _key(10), "-p", "@@")
    words("-p and a user", "83925713", "-u", "root", "-p", "@@")
    words("-u user:password", _key(11), "-u", "admin:@@")
    words("-u user:password", _key(11), "--user=admin:@@")
    words("glued -p", _key(11), "mysql", "-uroot", "-p@@", "shop")
    words("a program's option", _key(11), "redis-cli", "-a", "@@", "ping")
    words("a login", _key(11), "sqlplus", "scott/@@@db1")
    words("openssl", _key(11), "-passin", "pass:@@")
    for url in (
        "https://shop:@@@10.0.0.1/x",
        "postgres://shop:@@@db:5432/shop",
        "amqp://u:@@@mq/v",
        "redis://:@@@cache:6379",
        "mongodb+srv://u:@@@c/x",
    ):
        words("URL", _key(14), f"--url={url}")
    words("URL with @ and /", f"{_key(5)}@{_key(4)}/{_key(4)}", "https://shop:@@@10.0.0.1/x")
    words("URL, escaped", f"{_key(5)}%40{_key(6)}", "https://shop:@@@10.0.0.1/x")
    words("URL, key alone", _key(32, "0123456789abcdef"), "https://@@@sentry.example/1")
    for jdbc in (
        "jdbc:sqlserver://h:1433;user=sa;password=@@;x=1",
        "jdbc:mysql://h/db?user=a&password=@@&c=d",
        "jdbc:oracle:thin:scott/@@@h:1521/x",
    ):
        words("JDBC", _key(14), f"-Djdbc.url={jdbc}")
    words("JDBC in braces", f"{_key(5)};{_key(5)}", "-Djdbc.url=jdbc:sqlserver://h;password={@@};user=sa")
    words("header", _key(30), "-H", "Authorization: Bearer @@")
    words("header", base64.b64encode(f"shop:{_key(12)}".encode()).decode(), "-H", "Authorization: Basic @@")
    words("header", _key(24), "-H", "X-Api-Key: @@")
    words("cookie", f"id={_key(20)}", "-H", "Cookie: @@")
    words("cookie", _key(32), "-b", "JSESSIONID=@@")
    words("signature of a URL", _key(30), "https://store.example/a?sv=2026&sig=@@&se=1")
    words("signature of a URL", _key(40, "0123456789abcdef"), "https://s3.example/a?X-Amz-Signature=@@")
    words("AWS key", f"AKIA{_key(16, string.ascii_uppercase + string.digits)}", "sync", "@@")
    words("GitHub token", f"ghp_{_key(36)}", "clone", "@@")
    words("GitHub token", f"github_pat_{_key(40)}", "clone", "@@")
    words("GitLab token", f"glpat-{_key(20)}", "clone", "@@")
    words("Slack token", f"xoxb-{_key(12, string.digits)}-{_key(24)}", "post", "@@")
    words("Stripe key", f"sk_live_{_key(24)}", "pay", "@@")
    words("Vault token", f"hvs.{_key(30)}", "read", "@@")
    words("JWT", f"eyJ{_key(20)}.eyJ{_key(40)}.{_key(43)}", "call", "@@")
    words("npm token", f"npm_{_key(36)}", "publish", "@@")
    words("XML", _key(12), "--request=<a><Password>@@</Password></a>")
    words("JSON", _key(12), '{"user":"x","password":"@@"}')
    words("JSON", f"{_key(6)} {_key(6)}", '--config={"db":{"password" : "@@", "host":"h"}}')
    words("JSON in JSON", _key(12), '{"a":"{\\"password\\":\\"@@\\"}"}')
    words(
        "private key",
        f"\n{_key(64)}\n{_key(64)}\n{_key(40)}=\n",
        "--cert=-----BEGIN RSA PRIVATE KEY-----@@-----END RSA PRIVATE KEY-----",
    )
    words("SQL", _key(12), "-e", "ALTER USER shop IDENTIFIED BY '@@'")
    words("agent", _key(40, "0123456789abcdef"), "-javaagent:/opt/agent.jar=@@")
    words("agent", _key(20), "-javaagent:/opt/agent.jar=key=@@,server=x")
    words("assignment", _key(12), "env", "DB_PASSWORD=@@", "run")
    words("script", _key(12), "sh", "-c", "tool --password @@ --verbose")
    words("script", _key(12), "bash", "-c", "cd /x\nDB_PASSWORD=@@ exec tool -v")
    words("script", _key(12), "bash", "-c", "mysql -uroot -p@@ shop -e 'select 1'")
    words("unicode", f"пароль{_key(4)}密码é", "--password", "@@")
    words("unicode", "naïveté-é42", "-Dx.password=@@")
    words("not UTF-8", f"{_key(5)}\udcff\udcfe{_key(5)}", "--secret", "@@")
    words("regular expression", f"a.*[{_key(4)}(+?{{2}}$^|\\", "--password", "@@")
    words("percent and quotes", f"{_key(4)}%20&<>'\"{_key(4)}", "--password", "@@")
    words("very long", _key(60_000), "--token", "@@")
    words("slash and base64", f"/{_key(10)}+{_key(8)}/{_key(6)}==", "--secret-key", "@@")
    words("Windows line end", f"{_key(12)}\r", "--password", "@@")
    for name in ("DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "MYSQL_PWD", "PGPASSWORD", "API_KEY", "JWT"):
        variable("variable by its name", _key(16), name)
    for name in ("SHOP_THING", "X1", "MY_SETTING", "SPRING_APPLICATION_JSON", "FOO", "lower"):
        variable("variable of any name", _key(16), name)
    variable("URL in a variable", _key(14), "DATABASE_URL", "postgres://shop:@@@db/shop")
    variable("options in a variable", _key(14), "JAVA_OPTS", "-Xmx1g -Ddb.password=@@ -Dx=y")
    variable("lines in a variable", f"{_key(20)}\r\n{_key(20)}", "CERT")
    text("properties", f"{_key(6)} {_key(6)}", "db.password=@@")
    text("properties", _key(12), "spring.datasource.password = @@\r")
    text("prose", _key(12), "login failed, the password is @@ for shop")
    text("prose", _key(12), "2026-01-01 WARN connect to https://u:@@@h/x failed")
    text("unit", _key(12), 'Environment=SHOP=@@ LANG=C "THREE=a b"')
    text("unit", f"{_key(6)} {_key(6)}", 'Environment="SHOP_NAME=@@"')
    text("unit", _key(12), "ExecStart=/opt/shop --token @@ -v")
    text("YAML", _key(12), "  password: @@")
    text("crash report", _key(12), "jvm_args: -Xmx1g -Ddb.password=@@ -Dx=y")
    return found


PLANTED = _plant()


def forms_of(secret: str) -> dict[str, bytes]:
    """A secret as it may stand in an archive."""
    raw = secret.encode("utf-8", "surrogateescape")
    forms = {
        "raw": raw,
        "UTF-16 LE": secret.encode("utf-16-le", "surrogatepass"),
        "UTF-16 BE": secret.encode("utf-16-be", "surrogatepass"),
        "percent": quote(raw, safe="").encode(),
        "JSON": json.dumps(secret)[1:-1].encode(),
        "JSON, UTF-8": json.dumps(secret, ensure_ascii=False)[1:-1].encode("utf-8", "surrogateescape"),
        "TSV": secret.replace("\\", "\\\\")
        .replace("\n", "\\n")
        .replace("\t", "\\t")
        .encode("utf-8", "surrogateescape"),
    }
    if len(raw) >= 8:
        for offset in range(3):
            coded = base64.b64encode(b"\0" * offset + raw)[4 if offset else 0 :]
            forms[f"base64 at {offset}"] = coded[: len(raw) * 4 // 3 - 4]
    return forms


def leaks(data: bytes, planted: list[Planted]) -> list[tuple[str, str, str]]:
    """(kind, form, secret) of each secret that stands in some bytes."""
    return [
        (each.kind, form, each.secret[:40])
        for each in planted
        for form, found in forms_of(each.secret).items()
        if found in data
    ]
