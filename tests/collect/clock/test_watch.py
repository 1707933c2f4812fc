"""What a watch reads again when the clock was set: the hardware clock, and the offset to the server."""

from __future__ import annotations

import pytest
from clockfacts import server
from setclock import SetClock

from opskit.collect.clock import collect as module
from opskit.collect.clock import server as server_module
from opskit.collect.clock import steps as steps_module
from opskit.collect.clock.collect import Collector
from opskit.collect.clock.facts import Request
from opskit.collect.clock.server import ServerReader


@pytest.fixture
def clock(monkeypatch):
    made = SetClock()
    monkeypatch.setattr(steps_module, "read_pair", made.read)
    monkeypatch.setattr(server_module, "read_pair", made.read)
    return made


def test_the_offset_follows_what_the_clock_is_set_by(clock, monkeypatch):
    """The server is not asked again at once, and seven hours are no longer missing."""
    asked = []
    monkeypatch.setattr(server_module, "ask_server", lambda *_: asked.append(1) or server(25200.123).exchange)
    reader = ServerReader(clock.host, ("10.0.0.1", 123))
    assert reader.look().exchange.offset_s == 25200.123
    clock.by_ns += 25200 * 10**9
    clock.sleep(2)
    found = reader.look()
    assert (found.exchange.offset_s, found.ago_s) == (pytest.approx(0.123), 2.0)
    assert reader.look().exchange.offset_s == pytest.approx(0.123)
    assert len(asked) == 1
    clock.sleep(15)
    assert (reader.look().exchange.offset_s, len(asked)) == (25200.123, 2)


def test_the_machine_is_read_again_after_a_step(clock, monkeypatch):
    """Its RTC was compared with the clock as it was; otherwise every ten seconds."""
    read = []
    whole = module.read_machine
    monkeypatch.setattr(module, "read_machine", lambda *given: read.append(1) or whole(*given))
    collector = Collector(clock.host, Request(interval_s=1.0), watch=True)
    for _ in range(4):
        collector.look()
    assert len(read) == 1
    clock.by_ns += 10**9
    facts = collector.look()
    assert (len(read), facts.steps_total, facts.older_steps) == (2, 1, 0)
    for _ in range(4):
        collector.look()
    assert len(read) == 2
