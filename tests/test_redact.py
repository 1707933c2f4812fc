"""Secrets are hidden where command lines, environments and messages show them; everything else stays."""

from __future__ import annotations

import pytest

from opskit.redact import (
    is_secret,
    redact_cmdline,
    redact_environ,
    redact_environment,
    redact_line,
    redact_text,
    redact_value,
    redact_words,
)


@pytest.mark.parametrize(
    "name",
    [
        "password", "db.password", "DB_PASSWORD", "keyStorePassword", "api.token", "accessToken", "x.secret", "client-secret", "apiKey",
        "API_KEY", "aws.credential", "aws_secret_access_key", "encryption.key", "tls.keyPass", "MYSQL_PWD", "passphrase", "my.key",
        "license.keys", "sas", "jwt", "Authorization", "spring.datasource.passwd", "private-key", "userPass",
        "storepass", "dbpwd", "passcode", "authkey", "JSESSIONID",
    ],
)  # fmt: skip
def test_names_of_secrets(name):
    """In any case, with any separator."""
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "monkey", "keyboard", "author", "keyStore", "javax.net.ssl.trustStore", "key.serializer", "keySize", "bypass", "compass", "sessionIdLength",
        "java.security.auth.login.config", "spring.profiles.active", "user.name", "passive", "Xmx", "address", "",
    ],
)  # fmt: skip
def test_names_that_only_resemble_them(name):
    """Part of another word, or a setting of a key."""
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("-Ddb.password=a b c -Xmx2g -Dfoo=bar", "-Ddb.password=… -Xmx2g -Dfoo=bar"),
        ("com.acme.Main --password hunter2 serve", "com.acme.Main --password … serve"),
        ("com.acme.Main --password=hunter2 -p hunter3 serve", "com.acme.Main --password=… -p … serve"),
        ("ssh -p 22 host", "ssh -p 22 host"),
        ("docker run -p 8080:80 shop", "docker run -p 8080:80 shop"),
        ("mongo -u root -p 1234 shop", "mongo -u root -p … shop"),
        ("com.acme.Main -p 99999999", "com.acme.Main -p …"),
        ("/opt/jdk/bin/java -p mods -cp x -m shop/com.acme.Main -p hunter2", "/opt/jdk/bin/java -p mods -cp x -m shop/com.acme.Main -p …"),
        ("java -Xmx1g com.acme.Main -p hunter2", "java -Xmx1g com.acme.Main -p …"),
        ("tool --api-key 'my long key' --verbose", "tool --api-key … --verbose"),
        ("tool -u admin:pw -user x", "tool -u admin:… -user x"),
        ("curl --user=admin:pw --proxy-user a:b -u 1000:1000", "curl --user=admin:… --proxy-user a:… -u 1000:1000"),
        ("keytool -storepass changeit -list", "keytool -storepass … -list"),
        ("DB_SECRET=3 run", "DB_SECRET=… run"),
        ("--token:abc", "--token:…"),
        ("mysql -uroot -phunter2 shop", "mysql -uroot -p… shop"),
        ("sqlplus scott/tiger@db", "sqlplus scott/…@db"),
        ("redis-cli -a hunter2 ping", "redis-cli -a … ping"),
        ("ionice -c2 -n7 mysqldump -phunter2 shop", "ionice -c2 -n7 mysqldump -p… shop"),
        ("kubectl exec -it -n shop db-0 -- mysql -uroot -phunter2", "kubectl exec -it -n shop db-0 -- mysql -uroot -p…"),
        ("docker run --name mysql -p3306:3306 -p 8080:80 mysql:8", "docker run --name mysql -p3306:3306 -p 8080:80 mysql:8"),
        ("docker login -u bob -p hunter2 reg", "docker login -u bob -p … reg"),
        ("docker run -e SHOP=a --env=B=c -e TZ=UTC x", "docker run -e SHOP=… --env=B=… -e TZ=UTC x"),
        ("python3 shop.py -p hunter2 -p 8080", "python3 shop.py -p … -p 8080"),
        ("sshpass -p hunter2 ssh -p 22 host", "sshpass -p … ssh -p 22 host"),
        ("mysqladmin -u root password hunter2", "mysqladmin -u root password …"),
        ("aws configure set aws_secret_access_key aB3/dE", "aws configure set aws_secret_access_key …"),
        ("openssl rsa -passin pass:a;b -k hunter2", "openssl rsa -passin pass:… -k …"),
        ("smbclient -U bob%hunter2 //h/x", "smbclient -U bob%… //h/x"),
        ("beeline -u jdbc:hive2://h:1 -n shop -p hunter2", "beeline -u jdbc:hive2://h:1 -n shop -p …"),
        ("mysql -u root -p shop", "mysql -u root -p shop"),
        ("memcached -u memcache -p 11211 -o auth=no", "memcached -u memcache -p 11211 -o auth=no"),
        ("sqlplus scott/p@ss@db @x.sql", "sqlplus scott/…@db @x.sql"),
        ("app -Dcache.password=836251 --bindpw=x --psk x", "app -Dcache.password=… --bindpw=… --psk …"),
        ("sh -c tool --password a\\ b -x", "sh -c tool --password … -x"),
        ("curl -uadmin:hunter2 -x u:hunter2@proxy:3128 x", "curl -uadmin:… -x u:…@proxy:3128 x"),
        ("docker run nginx:1.25@sha256:0123 -p 127.0.0.1:8080:80", "docker run nginx:1.25@sha256:0123 -p 127.0.0.1:8080:80"),
        ("mongod --auth --port 27017", "mongod --auth --port 27017"),
        ("perf record -p 4194303", "perf record -p 4194303"),
        ("app --key-file /etc/x.pem --token-ttl=3600 --max-tokens 512", "app --key-file /etc/x.pem --token-ttl=3600 --max-tokens 512"),
        ("app --secret /aB3+dE= --secret /etc/ssl/x.pem", "app --secret … --secret /etc/ssl/x.pem"),
        ("kube-apiserver --authorization-mode=Node,RBAC", "kube-apiserver --authorization-mode=Node,RBAC"),
        ("mysqld --key_buffer_size=16M", "mysqld --key_buffer_size=16M"),
        ("-Djavax.net.ssl.keyStore=/x.jks -Dx.secret=true", "-Djavax.net.ssl.keyStore=/x.jks -Dx.secret=true"),
        ("-javaagent:/opt/a.jar=key=abc,server=http://u:p@h:80/x", "-javaagent:/opt/a.jar=key=…,server=http://u:…@h:80/x"),
        ("-javaagent:/opt/a.jar=0123456789abcdefABCDEF", "-javaagent:/opt/a.jar=…"),
        ("-agentlib:jdwp=transport=dt_socket,address=5005", "-agentlib:jdwp=transport=dt_socket,address=5005"),
        ("-XX:+UseG1GC -XX:OnOutOfMemoryError=kill -9 %p", "-XX:+UseG1GC -XX:OnOutOfMemoryError=kill -9 %p"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_command_line_in_one_line(line, shown):
    """Options keep their names; a secret with blanks ends where the next option begins."""
    assert redact_line(line) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("jdbc:mysql://h/db?user=a&password=b&c=d", "jdbc:mysql://h/db?user=a&password=…&c=d"),
        ("jdbc:sqlserver://h:1433;user=sa;password=p;x=1", "jdbc:sqlserver://h:1433;user=sa;password=…;x=1"),
        ("jdbc:oracle:thin:scott/tiger@host:1521/x", "jdbc:oracle:thin:scott/…@host:1521/x"),
        ("https://user:p@ss@host/x", "https://user:…@host/x"),
        ("redis://:p/w@host:6379", "redis://:…@host:6379"),
        ("https://0123456789abcdef0123@sentry.example/1", "https://…@sentry.example/1"),
        ("https://0123456789abcdef0123:x-oauth-basic@h/1", "https://…:x-oauth-basic@h/1"),
        ("jdbc:sqlserver://h;password={a;b};user=sa", "jdbc:sqlserver://h;password=…;user=sa"),
        ("User{password=(x}y, name=z}", "User{password=…, name=z}"),
        ("http://host:8080/path?x=1", "http://host:8080/path?x=1"),
        ("Authorization: Bearer abcdefghijk.l", "Authorization: … …"),
        ("Authorization: token abcdefgh1", "Authorization: … …"),
        ("the password is hunter2, says he", "the password is … says he"),
        ("the password is required", "the password is required"),
        ("sent Basic dXNlcjpwYXNz to it", "sent Basic … to it"),
        ("jwt is eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.abc_-x", "jwt is …"),
        ("key AKIAIOSFODNN7EXAMPLE here", "key … here"),
        ("ghp_0123456789abcdefghij0123", "…"),
        ('{"password":"a b","user":"x"}', '{"password":…,"user":"x"}'),
        ('{"password":"a\\"b","tokens":["c","d"]}', '{"password":…,"tokens":…}'),
        ('{"name":"DB_PASSWORD","value":"a"},{"name":"USER","value":"b"}', '{"name":"DB_PASSWORD","value":"…"},{"name":"USER","value":"b"}'),
        ('<property name="password" value="a"/>', '<property name="password" value="…"/>'),
        ("password=ab{cd", "password=…"),
        ("SET PASSWORD FOR x, IDENTIFIED WITH sha2 BY 'a'", "SET PASSWORD FOR x, IDENTIFIED WITH sha2 BY …"),
        ("https://h/api/webhooks/123456789012345678/0123456789012345678901234567890123456789x", "https://h/api/webhooks/…"),
        ("login failed for password: hunter2", "login failed for password: …"),
        ('{"password" : "a", "user" : "x"}', '{"password" : …, "user" : "x"}'),
        ("db.password = hunter2", "db.password = …"),
        ("-Ddb.password= -Xmx1g", "-Ddb.password= -Xmx1g"),
        ("<soap:Password>hunter2</soap:Password><name>x</name>", "<soap:Password>…</soap:Password><name>x</name>"),
        ("ALTER USER shop IDENTIFIED BY 'hunter2'", "ALTER USER shop IDENTIFIED BY …"),
        ("https://h/x?sv=2026&sig=abc%2Bd&se=1", "https://h/x?sv=2026&sig=…&se=1"),
        ("sig=abc", "sig=abc"),
        ("-----BEGIN RSA PRIVATE KEY-----MIIabc=-----END RSA PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----…-----END RSA PRIVATE KEY-----"),
        ("sk_live_0123456789abcdef github_pat_0123456789abcdefghij hvs.0123456789abcdefghij", "… … …"),
        ("KeyStore::token::next(int)+0x1", "KeyStore::token::next(int)+0x1"),
        ("java.security.InvalidKeyException: Wrong size", "java.security.InvalidKeyException: Wrong size"),
        ("Exception <a 'java/lang/Error'{0x02}: 'x'>", "Exception <a 'java/lang/Error'{0x02}: 'x'>"),
    ],
)  # fmt: skip
def test_secrets_in_any_text(text, shown):
    """URLs, JDBC, JSON, headers, and tokens that are known by their form."""
    assert redact_text(text) == shown


def test_words_keep_their_number():
    """A value with blanks is one word; /proc/PID/cmdline keeps its NULs and bytes that are not UTF-8."""
    words = ["java", "-Dpassword=a b", "-jar", "x.jar", "--secret", "-x y", "-p", "x", "last"]
    assert redact_words(words) == ["java", "-Dpassword=…", "-jar", "x.jar", "--secret", "…", "-p", "…", "last"]
    assert redact_cmdline(b"java\0-Dtoken=x y\0\xff\0") == "java\0-Dtoken=…\0".encode() + b"\xff\0"
    assert redact_cmdline(b"") == b""
    assert redact_cmdline(b"-Dtoken=cut") == "-Dtoken=…".encode()


def test_a_word_ends_where_it_ends():
    """A value that is a word, or the end of one, is hidden whole, with blanks, commas and quotes."""
    assert redact_words(["java", "--db.password a b"]) == ["java", "--db.password … b"]
    words = ["curl", "-H", "X-Api-Key: a;b,c", "-HAuthorization: AWS4 Credential=a, Signature=b", "--env=DB_PASS=a b"]
    assert redact_words(words) == ["curl", "-H", "X-Api-Key: …", "-HAuthorization: AWS4 …", "--env=DB_PASS=…"]


def test_an_environment_shows_what_is_known_to_hold_no_secret():
    """An allow list: the name of a variable does not say what a company keeps in it."""
    shown = redact_environment({
        "PATH": "/usr/bin", "AWS_REGION": "eu", "DB_URL": "x", "LC_ALL": "C", "EMPTY": "",
        "LC_PASSWORD": "x", "JAVA_OPTS": "'-Ddb.password=x y' -Dx=y",
        "JAVA_TOOL_OPTIONS": "-Xmx1g -Ddb.password=x", "JDK_JAVA_OPTIONS": "-p mods -Ddb.password=x",
    })  # fmt: skip
    assert shown == {
        "PATH": "/usr/bin", "AWS_REGION": "…", "DB_URL": "…", "LC_ALL": "C", "EMPTY": "",
        "LC_PASSWORD": "…", "JAVA_OPTS": "'-Ddb.password=… -Dx=y",
        "JAVA_TOOL_OPTIONS": "-Xmx1g -Ddb.password=…", "JDK_JAVA_OPTIONS": "-p mods -Ddb.password=…",
    }  # fmt: skip
    assert redact_environ(b"PATH=/x\0AWS_KEY=2\0no equals\0") == "PATH=/x\0AWS_KEY=…\0no equals\0".encode()


def test_a_property_by_its_name_or_by_its_value():
    """A URL in a property of any name is searched too."""
    assert redact_value("db.password", "x") == "…"
    assert redact_value("db.url", "postgres://a:b@h/x") == "postgres://a:…@h/x"
    assert redact_value("auth", "false") == "false"
