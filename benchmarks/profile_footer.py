"""What `opskit jpmp --on-cpu -f folded` says of its samples on stderr."""

from __future__ import annotations

import re


class Footer:
    """`rooted`: the share of samples that end at the entry of a thread, `explained`: of the CPU time, by samples."""

    def __init__(self, text: str) -> None:
        """Raise ValueError where the sampler was another one, or said nothing."""
        self.text = text
        sampled = re.search(
            r"sampler unwind: .* ([\d,]+) samples, ([\d,]+) lost.*?; ([\d.]+) % of the CPU time explained", text
        )
        if sampled is None:
            raise ValueError(f"no figures of the sampler in {text!r}")
        self.samples, self.lost = (int(number.replace(",", "")) for number in sampled.group(1, 2))
        self.explained = float(sampled[3]) / 100
        incomplete = re.search(r"([\d,]+) stacks? \([\d.]+ %\) (?:is|are) incomplete", text)
        self.rooted = 1 - (int(incomplete[1].replace(",", "")) / max(1, self.samples) if incomplete else 0)
