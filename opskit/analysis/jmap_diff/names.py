"""The names that are compared: folded, selected, and rolled up by package or module. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.jvm.dumps import class_names
from opskit.records import NamedTuple

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping, Sequence

    from opskit.jvm.dumps.histogram import Histogram

Tallies = dict[str, tuple[int, int]]  # name -> (instances, bytes)


class Choice(NamedTuple):
    """Which classes to compare (regular expressions, searched in the JVM's names), and rolled up by what."""

    by: str = "class"
    fold: bool = True
    vm: bool = True
    include: re.Pattern[str] | None = None
    exclude: re.Pattern[str] | None = None

    @property
    def is_partial(self) -> bool:
        """Whether any class is left out."""
        return not self.vm or self.include is not None or self.exclude is not None


class Names:
    """The names under which the rows of some histograms are compared."""

    def __init__(self, histograms: Sequence[Histogram], choice: Choice, gone: Sequence[str]) -> None:
        self.choice = choice
        self.has_modules = any(histogram.has_modules for histogram in histograms)
        last = histograms[-1].rows
        names = [*last, *gone]
        for histogram in histograms[1:-1]:
            names += [name for name in histogram.rows if name not in last]
        everything = "\n".join(names)  # to search all of them at once
        self.any_vm = class_names.any_vm(everything)
        self.folded = class_names.fold_all(names, everything) if choice.fold else {}
        self.modules: dict[str, str] = {}  # of each name, some with a version
        for histogram in histograms:
            self.modules.update(histogram.modules)
        for generated, name in self.folded.items():
            if generated in self.modules:
                self.modules[name] = class_names.fold(self.modules[generated].partition("@")[0])

    def final(self, rows: Mapping[str, tuple[int, int]]) -> Tallies:
        """A histogram's rows under the names that are compared."""
        tallies = dict(rows)
        for generated, name in self.folded.items():
            counts = tallies.pop(generated, None)
            if counts is not None:
                _add(tallies, name, counts)
        return self._rolled_up(self.selected(tallies))

    def selected(self, tallies: Tallies) -> Tallies:
        """The rows of the selected classes."""
        if not self.choice.is_partial:
            return tallies
        return {name: counts for name, counts in tallies.items() if self.is_selected(name)}

    def is_selected(self, name: str) -> bool:
        """Whether the class is compared."""
        choice = self.choice
        if (not choice.vm and class_names.is_vm(name)) or (choice.include and not choice.include.search(name)):
            return False
        return choice.exclude is None or not choice.exclude.search(name)

    def _rolled_up(self, tallies: Tallies) -> Tallies:
        if self.choice.by == "class":
            return tallies
        group = class_names.package if self.choice.by == "package" else self._module
        rolled: Tallies = {}
        for name, counts in tallies.items():
            _add(rolled, group(name), counts)
        return rolled

    def _module(self, name: str) -> str:
        if class_names.is_vm(name):
            return class_names.VM
        module = self.modules.get(name, "").partition("@")[0]
        return module or ("(no named module)" if self.has_modules else "(modules unknown)")


def _add(tallies: Tallies, name: str, counts: tuple[int, int]) -> None:
    before = tallies.get(name)
    tallies[name] = counts if before is None else (before[0] + counts[0], before[1] + counts[1])
