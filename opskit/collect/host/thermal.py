"""Heat: how often and for how long CPUs were slowed down for it, temperatures, frequencies that were capped.

/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count         of a core: each of its CPUs shows the same number
/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count      of a package, likewise
/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_total_time_ms since Linux 5.9
/sys/class/thermal/thermal_zone0/{type,temp,trip_point_0_type,trip_point_0_temp}      in 1/1000 degrees Celsius
/sys/class/hwmon/hwmon0/{name,temp1_input,temp1_crit}                     of the CPU's own sensors alone: others wake devices up
/sys/devices/system/cpu/cpufreq/policy0/{cpuinfo_max_freq,scaling_max_freq}           in kHz
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.cpu_topology import read_topology
from opskit.proc.files.cpuinfo import parse_cpuinfo
from opskit.quantities import integer, signed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opskit.host import Host
    from opskit.proc.cpu_topology import Topology
    from opskit.proc.fs import ProcFS

_CPUS = ("sys", "devices", "system", "cpu")
_ZONES, _SENSORS, _POLICIES = ("sys", "class", "thermal"), ("sys", "class", "hwmon"), (*_CPUS, "cpufreq")
_OF_CPUS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
_CRITICAL = "critical"
_MOST, _MOST_SENSORS, _MOST_TRIPS = 256, 16, 12


class Unit(NamedTuple):
    """What is slowed down as a whole: a `core` or a `package`, by its first CPU."""

    kind: str
    cpu: int


class Throttle(NamedTuple):
    """Since boot: how often, and for how many ms (None: not counted)."""

    times: int
    total_ms: int | None = None


class Slowed(NamedTuple):
    """A unit with its counters at the begin and the end of the window; `first` None in a copy."""

    unit: Unit
    first: Throttle | None
    last: Throttle


class Temperature(NamedTuple):
    """A sensor in degrees Celsius, with its limit.

    `is_last`: at the limit the kernel switches the machine off (a zone's critical trip point). A CPU's own sensor has the
    temperature at which the CPU slows down, which many laptops reach under load.
    """

    name: str
    celsius: float
    limit: float
    is_last: bool


class Frequency(NamedTuple):
    """A group of CPUs, by its first one, that may run at `allowed_khz` at most, of `able_khz`; `before_khz`: at the window's begin."""

    cpu: int
    allowed_khz: int
    able_khz: int
    before_khz: int | None


class Facts(NamedTuple):
    """`slowed`: each core and package that counts. `is_virtual`: a hypervisor says so (asked where nothing is shown)."""

    window_s: float
    slowed: tuple[Slowed, ...]
    temperatures: tuple[Temperature, ...]
    frequencies: tuple[Frequency, ...]
    is_virtual: bool = False

    @property
    def shows_something(self) -> bool:
        """Whether the machine has any of these."""
        return bool(self.slowed or self.temperatures or self.frequencies)


def collect(host: Host, window_s: float) -> Facts:
    """Look for one window; at once in a copy, and where the machine has none of the counters."""
    fs = host.fs
    units = _units(fs)
    first, before = _throttles(fs, units), dict(_allowed(fs))
    temperatures = (*_of_zones(fs), *_of_sensors(fs))
    begun_s, passed_s = host.monotonic(), 0.0
    if fs.has_rates and (first or before):
        host.sleep(window_s)
        passed_s = max(host.monotonic() - begun_s, 1e-6)
    last = _throttles(fs, units)
    slowed = tuple(Slowed(unit, first.get(unit) if passed_s else None, now) for unit, now in last.items())
    frequencies = tuple(_frequencies(fs, before, live=bool(passed_s)))
    is_virtual = False
    if not (slowed or temperatures or frequencies):
        info = fs.maybe(parse_cpuinfo, "cpuinfo")
        is_virtual = info is not None and info.is_virtual
    return Facts(passed_s, slowed, temperatures, frequencies, is_virtual)


def _units(fs: ProcFS) -> tuple[Unit, ...]:
    """The cores and packages; none where the first CPU counts nothing."""
    if not fs.names_root(*_CPUS, "cpu0", "thermal_throttle"):
        return ()
    topology = read_topology(fs)
    return tuple(dict.fromkeys(_units_of(topology)))[: 4 * _MOST]


def _units_of(topology: Topology) -> Iterator[Unit]:
    packages: dict[int | None, int] = {}
    for cpu in topology.online:
        place = topology.place(cpu)
        yield Unit("core", min(place.siblings))
        yield Unit("package", packages.setdefault(place.package, cpu))


def _throttles(fs: ProcFS, units: tuple[Unit, ...]) -> dict[Unit, Throttle]:
    found = {}
    for unit in units:
        base = (*_CPUS, f"cpu{unit.cpu}", "thermal_throttle")
        times = fs.maybe_root(_number, *base, f"{unit.kind}_throttle_count")
        if times is not None:
            found[unit] = Throttle(times, fs.maybe_root(_number, *base, f"{unit.kind}_throttle_total_time_ms"))
    return found


def _of_zones(fs: ProcFS) -> Iterator[Temperature]:
    """The zones with a critical trip point: of more of them the lowest one counts."""
    for zone in fs.names_root(*_ZONES)[:_MOST]:
        if not zone.startswith("thermal_zone"):
            continue
        base = (*_ZONES, zone)
        limits = []
        for number in range(_MOST_TRIPS):
            kind = fs.maybe_root(str.strip, *base, f"trip_point_{number}_type")
            if kind is None:
                break
            if kind == _CRITICAL:
                limits.append(fs.maybe_root(_signed, *base, f"trip_point_{number}_temp"))
        name = fs.maybe_root(str.strip, *base, "type", default=zone)
        limit = min((each for each in limits if each), default=None)
        yield from _temperature(fs, (*base, "temp"), f"{zone} ({name})", limit, is_last=True)


def _of_sensors(fs: ProcFS) -> Iterator[Temperature]:
    for sensor in fs.names_root(*_SENSORS)[:_MOST]:
        name = fs.maybe_root(str.strip, *_SENSORS, sensor, "name")
        for number in range(1, _MOST_SENSORS + 1) if name in _OF_CPUS else ():
            base = (*_SENSORS, sensor)
            limit = fs.maybe_root(_signed, *base, f"temp{number}_crit")
            if limit is None:
                break
            yield from _temperature(fs, (*base, f"temp{number}_input"), f"{name} temp{number}", limit, is_last=False)


def _temperature(
    fs: ProcFS, parts: tuple[str, ...], name: str, limit: int | None, *, is_last: bool
) -> Iterator[Temperature]:
    now = None if limit is None else fs.maybe_root(_signed, *parts)
    if now is not None and limit is not None:
        yield Temperature(name, now / 1000, limit / 1000, is_last)


def _policies(fs: ProcFS) -> list[str]:
    return [name for name in fs.names_root(*_POLICIES) if name.startswith("policy")][:_MOST]


def _allowed(fs: ProcFS) -> Iterator[tuple[str, int]]:
    for name in _policies(fs):
        khz = fs.maybe_root(_number, *_POLICIES, name, "scaling_max_freq")
        if khz is not None:
            yield name, khz


def _frequencies(fs: ProcFS, before: Mapping[str, int], *, live: bool) -> Iterator[Frequency]:
    for name, khz in _allowed(fs):
        cpu, able_khz = integer(name[6:]), fs.maybe_root(_number, *_POLICIES, name, "cpuinfo_max_freq")
        if cpu is not None and able_khz:
            yield Frequency(cpu, khz, able_khz, before.get(name) if live else None)


def _number(text: str) -> int | None:
    return integer(text.strip())


def _signed(text: str) -> int | None:
    return signed(text.strip())
