"""What a scenario does to the workload: a knob, for some of the clients, for some time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tailburn.lab.workload.errors import WorkloadError, unknown

# name: (neutral value, lowest accepted, what it does). Order is that of the columns in code.
KNOBS: dict[str, tuple[float, float, str]] = {
    "arrival_factor": (1.0, 0.0, "arrival rate times this"),
    "added_rate": (0.0, 0.0, "req/s more, over the clients in scope by their share"),
    "prompt_factor": (1.0, 0.0, "prompt tokens times this"),
    "output_factor": (1.0, 0.0, "output tokens times this"),
    "prompt_floor": (0.0, 0.0, "prompts have at least so many tokens"),
    "long_share": (0.0, 0.0, "share of prompts that get long_tokens tokens"),
    "long_tokens": (65_536.0, 1.0, "length of those, in tokens"),
    "streamed": (-1.0, -1.0, "share that streams; -1 as the kind says"),
    "structured": (-1.0, -1.0, "share bound to a grammar; -1 as the kind says"),
    "rag": (-1.0, -1.0, "share that goes through retrieval; -1 as the kind says"),
    "lora": (-1.0, -1.0, "share that asks for an adapter; -1 as the kind says"),
    "adapters": (-1.0, -1.0, "adapters asked for, evenly; -1 as the kind says"),
    "priority": (-1.0, -1.0, "priority of its requests; -1 as the kind says"),
}
KNOB = {name: i for i, name in enumerate(KNOBS)}
NEUTRAL = np.array([neutral for neutral, _, _ in KNOBS.values()])
SHARES = ("long_share", "streamed", "structured", "rag", "lora")
FACTORS = ("arrival_factor", "prompt_factor", "output_factor")


@dataclass(frozen=True)
class Change:
    """`knob` has `value` for the clients in `scope` from start_ns until end_ns.

    scope: `all`, `tenant:NAME`, `kind:NAME` or `client:NAME`. Factors of several changes
    multiply, added rates add, of all else the last one counts.
    """

    knob: str
    value: float
    start_ns: int
    end_ns: int
    scope: str = "all"

    def __post_init__(self) -> None:
        if self.knob not in KNOBS:
            raise unknown("workload knob", self.knob, list(KNOBS))
        least = KNOBS[self.knob][1]
        most = 1.0 if self.knob in SHARES else np.inf
        if not least <= self.value <= most or not np.isfinite(self.value):
            raise WorkloadError(f"{self.knob} = {self.value}: want {least:g} to {most:g}")
        if not self.start_ns < self.end_ns:
            raise WorkloadError(
                f"{self.knob}: ends at {self.end_ns} ns, not after {self.start_ns} ns"
            )


def ramp(change: Change, until_ns: int, step_ns: int = 60 * 10**9) -> list[Change]:
    """The change grown evenly from neutral, full from until_ns on, in steps of a minute."""
    neutral = KNOBS[change.knob][0]
    if not change.start_ns < until_ns <= change.end_ns or neutral < 0:
        raise WorkloadError(
            f"{change.knob}: cannot ramp up to {until_ns} ns within "
            f"{change.start_ns} to {change.end_ns} ns from {neutral:g}"
        )
    starts = range(change.start_ns, until_ns, step_ns)
    steps = []
    for start in starts:
        end = min(start + step_ns, until_ns)
        share = ((start + end) / 2 - change.start_ns) / (until_ns - change.start_ns)
        value = neutral + share * (change.value - neutral)
        steps.append(Change(change.knob, value, start, end, change.scope))
    if until_ns < change.end_ns:
        steps.append(Change(change.knob, change.value, until_ns, change.end_ns, change.scope))
    return steps


def lay_out(
    changes: "Sequence[tuple[Change, np.ndarray]]", shares: np.ndarray, start_ns: int, end_ns: int
) -> tuple[np.ndarray, np.ndarray]:
    """(edges_ns, knobs[segment, client, knob]) of what holds between two instants.

    Each change comes with the mask of the clients in its scope; `shares` are the
    clients' long-run rates, by which an added rate is split.
    """
    live = [(c, m) for c, m in changes if c.start_ns < end_ns and c.end_ns > start_ns]
    inner = {t for c, _ in live for t in (c.start_ns, c.end_ns) if start_ns < t < end_ns}
    edges = np.array(sorted(inner | {start_ns, end_ns}), np.int64)
    knobs = np.tile(NEUTRAL, (len(edges) - 1, len(shares), 1))
    for change, mask in live:
        when = (edges[:-1] >= change.start_ns) & (edges[:-1] < change.end_ns)
        layer, held = knobs[:, :, KNOB[change.knob]], np.ix_(when, mask)
        if change.knob in FACTORS:
            layer[held] *= change.value
        elif change.knob == "added_rate":
            whole = shares[mask].sum()
            split = shares[mask] / whole if whole > 0 else np.full(mask.sum(), 1 / mask.sum())
            layer[held] += change.value * split
        else:
            layer[held] = change.value
    return edges, knobs
