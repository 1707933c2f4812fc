"""Which names of options, properties and variables are those of secrets, and which of their values are plainly no secret."""

from __future__ import annotations

import re
from functools import lru_cache

LONGEST_NAME = 256

# A name is a secret's if it contains one of these, without regard to case and separators …
_MARKS = re.compile(
    r"passw|passphrase|passcode|secret|token|credential|authorization|masterauth|connectionstring|sessionid$"
    r"|(?:api|access|private|signing|auth|master|crypt|encryption|shared|license|account|storage|ssh)key"
)
# … or has one of these as a word: `tls.key`, `keyPass`, `MYSQL_PWD`.
_WORDS = frozenset({"key", "keys", "pass", "pw", "pwd", "otp", "jwt", "dsn", "creds", "cred", "bearer", "psk"})
_ENDINGS = ("pass", "pwd", "psw", "pswd", "pw")  # -storepass, dbpwd
_NOT_ENDINGS = frozenset({"bypass", "compass", "encompass", "trespass", "surpass", "overpass", "underpass"})
_LAST_WORDS = frozenset({"auth", "pin", "salt", "sas", "cookie"})
_NOT_SECRET_OF_A_KEY = frozenset(
    {"store", "serializer", "deserializer", "alias", "type", "size", "length", "algorithm", "manager"}
)
_KEYS_OF_DATA = frozenset({"primary", "foreign", "sort", "partition", "routing", "row", "public"})
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

_PLAIN_VALUES = frozenset({"", "true", "false", "yes", "no", "null", "none"})
# The last word of a name that says something about a secret: `token.ttl=3600`, `--authorization-mode=Node,RBAC`.
_SETTINGS = frozenset({
    "ttl", "timeout", "expiry", "expiration", "expires", "length", "size", "interval", "enabled", "type", "provider", "algorithm",
    "format", "policy", "period", "seconds", "ms", "days", "hours", "minutes", "age", "lifetime", "validity", "limit", "min", "max",
    "required", "bits", "rounds", "iterations", "encoding", "mode", "fd", "version", "retries", "attempts", "helper",
})  # fmt: skip
_AMOUNTS = _SETTINGS | {
    "max",
    "maximum",
    "minimum",
    "num",
    "number",
    "concurrent",
    "rotation",
    "refresh",
    "cache",
    "buffer",
    "syncs",
    "per",
}
# The last word of a secret's own name: `cache.password=836251` is no amount.
_ITSELF = frozenset(
    {"password", "passwd", "passphrase", "passcode", "pass", "pwd", "pw", "pin", "secret", "credential", "token", "key"}
)
_AMOUNT = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,3})?[A-Za-z%]{0,3}(?:[0-9]{1,3}[A-Za-z]{1,2}){0,2}")
_SETTING = re.compile(r"[A-Za-z]{1,16}(?:,[A-Za-z]{1,16}){0,8}")
_CLASS = re.compile(r"(?:[a-z][a-z0-9_]{0,40}\.){2,12}[A-Z][A-Za-z0-9_$]{0,80}")
_DIRECTORIES = (
    r"app|apps|backup|bin|boot|conf|config|data|dev|etc|export|home|lib|lib64|media|mnt|opt|private|proc|root|run|sbin|secrets|srv|sys|tmp"
    r"|usr|var|vault|work|workspace"
)
_COMPONENT = r"[A-Za-z0-9_.@\-]{1,80}"
_SUFFIX = (
    r"\.(?:pem|key|crt|cer|csr|der|p12|pfx|p8|jks|jceks|bcfks|ks|keystore|truststore|pub|asc|gpg|txt|json|ya?ml|conf|cfg|ini|properties"
    r"|props|env|xml|toml|config|kubeconfig|jwt|token|passwd|htpasswd)"
)
_FILE = re.compile(
    rf"(?:file:(?://)?)?(?:/(?:{_DIRECTORIES})(?:/{_COMPONENT}){{1,20}}/?"
    rf"|(?:~|\.\.?)?(?:/{_COMPONENT}){{1,20}}{_SUFFIX})"
)


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Whether the value of an option, property or variable of this name is a secret: `db.password`, `API_KEY`."""
    name = name[:LONGEST_NAME]
    if name.endswith(("Exception", "Error")):  # its message follows
        return False
    plain = name.lower().replace("_", "").replace("-", "").replace(".", "")
    if _MARKS.search(plain):
        return True
    words = _words(name)
    if words and (words[-1] in _LAST_WORDS or (words[-1].endswith(_ENDINGS) and words[-1] not in _NOT_ENDINGS)):
        return True
    around = zip(("", *words), words, (*words[1:], ""))
    return any(
        word in _WORDS and after not in _NOT_SECRET_OF_A_KEY and before not in _KEYS_OF_DATA
        for before, word, after in around
    )


def is_plain(name: str, value: str) -> bool:
    """Whether a value of a secret's name is none: `true`, the path of a file, a class, a number that the name asks for."""
    if value.lower() in _PLAIN_VALUES:
        return True
    if len(value) > 512:
        return False
    if is_file(value) or _CLASS.fullmatch(value):
        return True
    if _AMOUNT.fullmatch(value):
        words = _words(name[:LONGEST_NAME])
        return not _AMOUNTS.isdisjoint(words) and words[-1] not in _ITSELF
    return bool(_SETTING.fullmatch(value)) and not _SETTINGS.isdisjoint(_words(name[:LONGEST_NAME])[-1:])


def is_file(value: str) -> bool:
    """Whether a value is clearly the path of a file: plain components below a well-known directory, or with a file's ending."""
    return "/" in value and len(value) <= 512 and bool(_FILE.fullmatch(value))


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]
