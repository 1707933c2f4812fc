"""Whose code a frame is: the JDK's, a library's or the application's; short names of frames. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_JDK = re.compile(r"(?:java|javax|jdk|sun|com\.sun|com\.ibm\.(?:oti|misc|jvm)|openj9)\.")
# Libraries and servers between an application and the JDK. What is missing here counts as application.
_LIBRARY = re.compile(
    r"(?:(?:\w+\.)*?(?:shaded?|shadow|repackaged|relocated)\.)?"
    r"(?:com\.(?:zaxxer\.hikari|mchange|alibaba\.druid|mysql|microsoft\.sqlserver|google\.(?:common|inject|api|cloud)|mongodb"
    r"|datastax|fasterxml|codahale|netflix|rabbitmq|hazelcast|github\.benmanes|caucho|ibm\.(?:ws|ejs|io|websphere|wsspi)"
    r"|amazonaws|jolbox|couchbase|squareup|azure|sap\.(?:db|conn)|vaadin|evolveum)"
    r"|org\.(?:springframework|hibernate|h2|hsqldb|postgresql|mariadb|apache\.(?:commons|http|hc|kafka|catalina|coyote|tomcat"
    r"|naming|jasper|activemq|artemis|camel|cxf|felix|jackrabbit|logging|log4j|lucene|mina|pulsar|shiro|solr|thrift|zookeeper"
    r"|curator|cassandra\.driver|derby|avro|ibatis|pekko|axis2?|struts2?)"
    r"|eclipse\.(?:jetty|persistence|microprofile|osgi|core|jdt|equinox|swt|ui|e4|jface)|jboss|wildfly|xnio|glassfish|mortbay|redisson|quartz"
    r"|jooq|vibur|infinispan|jgroups|aspectj|codehaus|slf4j|mongodb|xerial|asynchttpclient|elasticsearch\.client|osgi)"
    r"|redis\.clients|io\.(?:lettuce|netty|grpc|undertow|vertx|reactivex|r2dbc|micrometer|agroal|projectreactor|quarkus|micronaut"
    r"|helidon|smallrye|opentelemetry|prometheus)|reactor|rx|okhttp3|okio|retrofit2|kotlinx?|scala|akka|clojure|groovy"
    r"|oracle|weblogic|ch\.qos|jakarta|net\.sf\.(?:ehcache|cglib)|net\.sourceforge|net\.bytebuddy|bsh|cats|zio|sbt)\."
)
_GENERATED = re.compile(r"\$\$|\$Proxy\d|LambdaForm\$|Generated\w*Accessor|\$[A-Za-z]*\$\d+\.\w*lambda|access\$\d+")
_LAMBDA_METHOD = re.compile(r"lambda\$(.*?)\$\d+")
_NUMBERED = re.compile(r"(?:\$\d+)+$")


def bare(frame: str) -> str:
    """The frame without the descriptor of SAP's JVM: `read(I)I`."""
    return frame.partition("(")[0]


@lru_cache(maxsize=1 << 16)
def is_jdk(frame: str) -> bool:
    """Whether the method is the JDK's. `frame`: a short name."""
    return _JDK.match(frame) is not None


@lru_cache(maxsize=1 << 16)
def is_application(frame: str) -> bool:
    """Whether the method is neither the JDK's nor a known library's, nor generated at run time."""
    return not (_JDK.match(frame) or _LIBRARY.match(frame) or _GENERATED.search(frame))


def application_frame(frames: Iterable[str]) -> str | None:
    """The frame nearest to the leaf that is not the JDK's; None without one. `frames`: short names, leaf first."""
    return next((frame for frame in frames if not is_jdk(frame)), None)


def method_name(frame: str) -> str:
    """`HikariPool.getConnection` for `com.zaxxer.hikari.pool.HikariPool.getConnection`: the innermost class and the method.

    The `lambda$load$3` of a class is its `load`; `Outer$Inner` is `Inner`, and an anonymous class has its outer one's name.
    """
    owner, _, method = bare(frame).rpartition(".")
    simple = _NUMBERED.sub("", owner.rpartition(".")[2])
    lambda_of = _LAMBDA_METHOD.fullmatch(method)
    name = simple.rpartition("$")[2] or simple
    return f"{name}.{(lambda_of[1] if lambda_of else method) or method}" if owner else method
