"""The mix of the requests that a proposal is made of: lengths in classes, models, streaming."""

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tailburn.engine.baseline.load import token_bin
from tailburn.engine.grouping import F64, I64
from tailburn.engine.names import UNKNOWN
from tailburn.engine.slo.model import Mix
from tailburn.engine.slo.verdicts import Requests

NEEDED: Final = ("prompt_tokens", "cached_tokens", "output_tokens", "model", "streamed", "weight")
LEAST_SHARE: Final = 0.05
"""Of a class of lengths; smaller ones are joined with the next."""
_TOLD: Final = 0.5  # of the requests tell a measure that is to be watched
_PER_OCTAVE: Final = 2


@dataclass
class Mixed:
    """Requests by half octave of each length, by model and by whether they were streamed."""

    uncached_tokens: Counter[int] = field(default_factory=Counter)
    prompt_tokens: Counter[int] = field(default_factory=Counter)
    output_tokens: Counter[int] = field(default_factory=Counter)
    model: Counter[str] = field(default_factory=Counter)
    streamed: Counter[str] = field(default_factory=Counter)
    requests: int = 0

    def take(self, requests: Requests, rows: I64) -> None:
        """Some rows of requests, weighted."""
        weight = requests.weight[rows]
        self.requests += int(weight.sum())
        prompt = requests.number("prompt_tokens")[rows]
        _count(self.prompt_tokens, prompt, weight)
        _count(self.uncached_tokens, prompt - requests.number("cached_tokens")[rows], weight)
        _count(self.output_tokens, requests.number("output_tokens")[rows], weight)
        streamed = requests.number("streamed")[rows]
        for name, value in (("true", 1.0), ("false", 0.0)):
            self.streamed[name] += int(weight[streamed == value].sum())
        models, model = requests.texts("model")
        for code, count in enumerate(np.bincount(model[rows], weight, len(models)).tolist()):
            self.model[models[code]] += int(count)

    def mix(self, selected: Container[str] = ()) -> Mix:
        """What most requests tell, without what the SLO selects by."""
        told = self._told(self.uncached_tokens)
        prompt = ("uncached_tokens", self.uncached_tokens) if told else (
            "prompt_tokens", self.prompt_tokens
        )  # fmt: skip
        shares = {}
        for name, lengths in (prompt, ("output_tokens", self.output_tokens)):
            if self._told(lengths):
                shares[name] = _shares(_joined(lengths))
        for name, kinds in (("model", self.model), ("streamed", self.streamed)):
            known = Counter({k: n for k, n in kinds.items() if n and k != UNKNOWN})
            if name not in selected and self._told(known):
                shares[name] = _shares(dict(known.most_common()))
        return Mix(self.requests, shares)

    def _told(self, counts: Counter[int] | Counter[str]) -> bool:
        return sum(counts.values()) >= max(_TOLD * self.requests, 1)


def _count(counts: Counter[int], tokens: F64, weight: I64) -> None:
    known = ~np.isnan(tokens)
    bins = token_bin(np.maximum(tokens[known], 0).astype(np.int64))
    for one, count in enumerate(np.bincount(bins, weight[known]).tolist()):
        if count:
            counts[one] += int(count)


def _joined(counts: Counter[int]) -> dict[str, int]:
    """Requests by the least tokens of their class, neighbours joined until each is enough."""
    least = LEAST_SHARE * sum(counts.values())
    found: list[list[int]] = []
    for one in sorted(counts):
        if found and found[-1][1] < least:
            found[-1][1] += counts[one]
        else:
            found.append([one, counts[one]])
    if len(found) > 1 and found[-1][1] < least:
        found[-2][1] += found.pop()[1]
    found[0][0] = 0
    return {str(_lowest(one)): count for one, count in found}


def _lowest(one: int) -> int:
    """The least number of tokens in a bin; none and one are alike."""
    return int(np.ceil(2 ** (one / _PER_OCTAVE))) if one else 0


def _shares(counts: dict[str, int]) -> dict[str, float]:
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}
