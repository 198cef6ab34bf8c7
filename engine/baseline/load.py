"""What requests are matched on: the load that they met, and the length of their prompt."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailburn.engine import rollup
from tailburn.engine.grouping import F64, I64, numbers

MINUTE_NS: Final = rollup.MINUTE_NS
HOUR_NS: Final = 60 * MINUTE_NS
DAY_NS: Final = 24 * HOUR_NS
_PER_OCTAVE: Final = 2
_RATE_BINS: Final = 40  # both ways of one request a second
UNTOLD_HITS: Final = -1


class Basis(StrEnum):
    """What requests are matched on, beside the arrival rate."""

    UNCACHED = "uncached"  # prompt tokens less cached ones
    PROMPT = "prompt"  # prompt tokens and, if known, the prefix-hit ratio: cached are not told
    RATE = "rate"  # nothing: TPOT, or the prompt's length is not told


BASES: Final = tuple(Basis)


@dataclass(frozen=True)
class Matched:
    """The load of each request; nan and -1 where not known."""

    rate_per_s: F64
    hit_bin: I64  # tenths of the prefix-hit ratio

    def of(self, rows: I64 | NDArray[np.bool_]) -> "Matched":
        """Of some of the requests."""
        return Matched(self.rate_per_s[rows], self.hit_bin[rows])


def hit_bin(ratio: F64) -> I64:
    """Tenths of prefix-hit ratios; -1 for nan."""
    tenths = np.clip(np.floor(np.nan_to_num(ratio) * 10), 0, 9)
    return np.where(np.isnan(ratio), UNTOLD_HITS, tenths).astype(np.int64)


def basis_of(requests: pa.Table, clock: str) -> tuple[I64, I64]:
    """What each request is matched on, its number in `BASES`, and of how many tokens it is."""
    prompt = numbers(requests.column("prompt_tokens"), np.nan)
    cached = numbers(requests.column("cached_tokens"), np.nan)
    basis = np.full(len(prompt), BASES.index(Basis.RATE))
    tokens = np.zeros(len(prompt))
    if not clock.startswith("tpot_"):
        told = ~np.isnan(prompt)
        basis[told], tokens[told] = BASES.index(Basis.PROMPT), prompt[told]
        apart = told & ~np.isnan(cached)
        basis[apart], tokens[apart] = BASES.index(Basis.UNCACHED), (prompt - cached)[apart]
    return basis, np.maximum(tokens, 0).astype(np.int64)


def counted(requests: pa.Table, clock: str) -> np.ndarray:
    """Whether the clock says anything of a request: TPOT from 16 output tokens on."""
    if not clock.startswith("tpot_"):
        return np.ones(len(requests), np.bool_)
    return numbers(requests.column("output_tokens"), 0) >= rollup.TPOT_MIN_OUTPUT_TOKENS


def rate_bin(rate_per_s: F64) -> I64:
    """Half octaves of one request a second."""
    found = np.floor(_PER_OCTAVE * np.log2(rate_per_s))
    return np.clip(found, -_RATE_BINS, _RATE_BINS).astype(np.int64)


def token_bin(tokens: I64) -> I64:
    """Half octaves of tokens; none and one are alike."""
    return np.floor(_PER_OCTAVE * np.log2(np.maximum(tokens, 1))).astype(np.int64)
