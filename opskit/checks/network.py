"""Network interfaces: links, errors, drops; UDP receive buffers; tables of neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Outcome
from opskit.analysis.host.network import judge
from opskit.checks.gaps import no_rates
from opskit.collect.host.network import collect
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge one window. Of processes: nothing, since interfaces are the machine's."""
    if look.pids:
        return Outcome()
    facts = collect(look.host, look.window_s)
    gaps = () if look.window_s else no_rates(look.host.fs, "network", "errors and drops of interfaces")
    return Outcome(judge(facts), [plural(facts.interfaces, "network interface")], gaps)
