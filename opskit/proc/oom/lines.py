r"""Lines of a log that may hold the kernel's messages: who wrote a line, when, and its text.

<4>[ 1215.612345] java invoked oom-killer: …                        syslog(2), dmesg -r; `[T4242]`, `[C1]`: CONFIG_PRINTK_CALLER
[ 1215.612345][ T4242] java invoked oom-killer: …                   dmesg; with -x `kern  :warn  : ` before it
[Thu Dec  7 00:05:14 2017] java invoked oom-killer: …               dmesg -T
2024-05-09T14:52:38,123456+02:00 java invoked oom-killer: …         dmesg --time-format=iso
Mar 17 09:16:34 web1 kernel: [ 1215.612345] java invoked …          syslog, journalctl -o short, short-precise
2024-05-09T14:52:38.123456+02:00 web1 kernel: java invoked …        rsyslog, journalctl -o short-iso
Thu 2024-05-09 14:52:38 CEST web1 kernel: java invoked …            journalctl -o short-full
1715259158.123456 web1 kernel: …  [ 1215.612345] web1 kernel: …     journalctl -o short-unix, short-monotonic
<4>1 2024-05-09T14:52:38.123Z web1 kernel - - - java invoked …      RFC 5424

A process chooses its name, and any user may write to syslog: a line of another program is never taken for the kernel's.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

from opskit.quantities import decimal, integer
from opskit.records import NamedTuple

_RAW = re.compile(
    r"(?:<(\d{1,4})>)?(?:[a-z0-9]{2,10} *: ?[a-z]{3,8} *: ?)?\[ {0,12}(\d{1,12}\.\d{1,9})\](?: ?\[ {0,12}([TC]\d{1,10})\])?:? ?"
)
_DATED = re.compile(
    r"(?:<(\d{1,4})>)?(?:[a-z0-9]{2,10} *: ?[a-z]{3,8} *: ?)?\[([^\]\[]{0,40}\d\d:\d\d[^\]\[]{0,20})\](?: ?\[ {0,12}([TC]\d{1,10})\])?:? ?"
)
_RELATIVE = re.compile(r"\[ {0,8}\+ {0,8}(\d{1,9}\.\d{1,9})\] ?")
_DECODED = re.compile(r"([a-z0-9]{2,10}) *: ?[a-z]{3,8} *: ?(?=\[)")  # dmesg -x: the facility
_ISO = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:([.,])\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?) ")
# The month in any language, as journalctl writes it.
_SYSLOG = re.compile(r"((?:\d{4} )?[^\W\d_]{3,9}\.? [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?(?: \d{4})?) ")
_FULL = re.compile(r"([A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})? [A-Z+\-\d:]{1,8}) ")
_UNIX = re.compile(r"(\d{9,11}\.\d{1,9}) ")
_RFC_5424 = re.compile(r"<(\d{1,4})>1 (\S{1,40}) (\S{1,255}) (\S{1,48}) \S{1,128} \S{1,32} (?:-|\[[^\]]{0,500}\]) ?")
_TAG = re.compile(r"(?:(\S{1,255}) )?(?:[a-z0-9]{2,10}\.[a-z]{3,8} )?([^\s:\[]{1,128})(?:\[\d{1,10}\])?: ?")
_MONOTONIC = re.compile(r"\S{1,255} ([^\s:\[]{1,128})(?:\[\d{1,10}\])?: ")
_SHIPPED = re.compile(r"<(\d{1,4})>\[ {0,12}(\d{1,12}\.\d{1,9})\](?: ?\[ {0,12}([TC]\d{1,10})\])?:? ?")
_COLOR = re.compile(r"\x1b\[[\d;]{0,16}m")
_QUOTES = " \t>|"  # of mails and documents, and of the further lines of a message
_LONGEST_PREFIX = 400
_KERNEL = "kernel"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ISO_DATE = r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))? ?(Z|UTC|GMT|[+-]\d\d:?\d\d)?"
_UNIX_DATE = r"(?:(\d{4}) )?([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?: (\d{4}))?"
_LEAP_SAFE_YEAR = 2000  # the 29th of February exists in it


class When(NamedTuple):
    """When a line was written; None: unknown. `time_s`: since the epoch; `uptime_s`: since boot; `text`: as written.

    `local_s`: as `time_s` where the date has no zone, in the zone of the log's machine.
    """

    time_s: float | None = None
    uptime_s: float | None = None
    local_s: float | None = None
    text: str = ""


class Line(NamedTuple):
    """A message. `program`: who wrote it, "" where the log does not tell. `caller`: the thread or CPU that printed it. `host`: in syslog.

    `date` and `uptime` are stamps as written, or "". `is_continued`: without any of them, as the further lines of a message.
    """

    program: str
    date: str
    uptime: str
    caller: str
    text: str
    host: str = ""

    @property
    def may_be_kernels(self) -> bool:
        """Whether the kernel wrote it, as far as the log tells."""
        return self.program in ("", _KERNEL)

    @property
    def is_continued(self) -> bool:
        """Whether it has no stamp of its own."""
        return not (self.date or self.uptime or self.program)


def read_line(line: str) -> Line:
    """A line of a log without its line feed."""
    if "\x1b" in line:
        line = _COLOR.sub("", line)
    line = line.lstrip(_QUOTES)
    if line[:1] in ("[", "<") or _DECODED.match(line):
        return _bracketed(line)
    for pattern in (_ISO, _SYSLOG, _FULL, _UNIX):
        if found := pattern.match(line):
            is_dmesg = pattern is _ISO and found[2] == ","
            return _tagged(found[1], line[found.end() :], has_tag=not is_dmesg)
    if found := _SHIPPED.search(line, 0, _LONGEST_PREFIX):
        return Line(_program(found[1]), "", found[2], found[3] or "", line[found.end() :])
    return Line("", "", "", "", line)


def _bracketed(line: str) -> Line:
    if found := _RFC_5424.match(line):
        date, host, program = found[2], found[3], found[4]
        text = line[found.end() :].removeprefix("\ufeff")
        if program == _KERNEL and (inner := _RAW.match(text)):
            return Line(program, date, inner[2], inner[3] or "", text[inner.end() :], host)
        return Line(program, date, "", "", text, host)
    decoded = _DECODED.match(line)
    program = "" if decoded is None or decoded[1] == "kern" else decoded[1]
    if found := _RAW.match(line):
        text = line[found.end() :]
        tag = _MONOTONIC.match(text)
        if tag and (tag[1] == _KERNEL or "oom" in tag[1]):
            return Line(tag[1], "", found[2], "", text[tag.end() :])
        return Line(program or _program(found[1]), "", found[2], found[3] or "", text)
    if found := _DATED.match(line):
        return Line(program or _program(found[1]), found[2], "", found[3] or "", line[found.end() :])
    if found := _RELATIVE.match(line):
        return Line(program, "", "", "", line[found.end() :])
    return Line(program, "", "", "", line[decoded.end() :] if decoded else line)


def _tagged(date: str, text: str, *, has_tag: bool) -> Line:
    """What follows a date: a host and a program, or the message itself."""
    tag = _TAG.match(text) if has_tag else None
    if tag is None:
        if shipped := _SHIPPED.search(text, 0, _LONGEST_PREFIX):
            return Line(_program(shipped[1]), date, shipped[2], shipped[3] or "", text[shipped.end() :])
        return Line("", date, "", "", text)
    host, program, text = tag[1] or "", tag[2], text[tag.end() :]
    if program == _KERNEL and (found := _RAW.match(text)):
        return Line(program, date, found[2], found[3] or "", text[found.end() :], host)
    return Line(program, date, "", "", text, host)


def _program(priority: str | None) -> str:
    """Who wrote a record of the kernel's ring: its facility is above 0 for what user space wrote to /dev/kmsg."""
    return "user space" if priority is not None and (integer(priority) or 0) >> 3 else ""


def when_of(date: str, uptime: str, now_s: float | None = None) -> When:
    """The stamps of a line. A date without a year is taken as the last one before `now_s`."""
    uptime_s = decimal(uptime) if uptime else None
    text = date or (f"{uptime} s after boot" if uptime else "")
    if not date:
        return When(None, uptime_s, None, text)
    if _UNIX.fullmatch(date + " "):
        time_s = decimal(date)
        text = datetime.fromtimestamp(time_s or 0.0, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        return When(time_s, uptime_s, time_s, text)
    if found := re.search(_ISO_DATE, date):
        year, month, zone = integer(found[1]), integer(found[2]) or 0, found[8]
    elif (found := re.search(_UNIX_DATE, date)) and found[2] in _MONTHS:
        year, month, zone = integer(found[1] or found[8] or ""), _MONTHS.index(found[2]) + 1, None
    else:
        return When(None, uptime_s, None, text)
    day, hour, minute, second = (integer(found[number]) or 0 for number in (3, 4, 5, 6))
    fraction = (decimal(f"0.{found[7]}") or 0.0) if found[7] else 0.0
    local_s = _seconds(year, (month, day, hour, minute, second), now_s)
    if local_s is None:
        return When(None, uptime_s, None, text)
    local_s += fraction
    return When(None if zone is None else local_s - _offset_s(zone), uptime_s, local_s, text)


def _seconds(year: int | None, rest: tuple[int, int, int, int, int], now_s: float | None) -> float | None:
    """Seconds since the epoch, as if in UTC; None for what is no date, and for one without a year where now is unknown."""
    try:
        if year is not None:
            return _date(year, rest).timestamp()
        if now_s is None:
            return None
        now = datetime.fromtimestamp(now_s, timezone.utc) + timedelta(days=1)  # a zone may be ahead of UTC
        _date(_LEAP_SAFE_YEAR, rest)
    except (ValueError, OverflowError):
        return None
    for past in range(8):  # years between two 29ths of February
        try:
            found = _date(now.year - past, rest)
        except ValueError:
            continue
        if found <= now:
            return found.timestamp()
    return None


def _date(year: int, rest: tuple[int, int, int, int, int]) -> datetime:
    """The date in UTC. Raises ValueError."""
    month, day, hour, minute, second = rest
    return datetime(year, month, day, hour, minute, min(second, 59), tzinfo=timezone.utc)  # 60: a leap second


def _offset_s(zone: str) -> float:
    if zone in ("Z", "UTC", "GMT"):
        return 0.0
    sign = -1 if zone[0] == "-" else 1
    return sign * ((integer(zone[1:3]) or 0) * 3600 + (integer(zone[-2:]) or 0) * 60)
