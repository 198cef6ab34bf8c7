"""Whether the requests of the last day are those that an SLO was made of, as plain rows."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tailburn.engine.names import UNKNOWN
from tailburn.engine.slo.mix import LENGTHS, Change, Verdict, changes
from tailburn.engine.slo.model import Mix
from tailburn.engine.store.api import Store, Window
from tailburn.engine.store.sql import equalities
from tailburn.engine.store.state.models import SloVersion

DAY_NS: Final = 86_400_000_000_000
"""A whole day is looked at: morning and night are different mixes."""

_TOKENS: Final = {
    "uncached_tokens": "prompt_tokens - cached_tokens",
    "prompt_tokens": "prompt_tokens",
    "output_tokens": "output_tokens",
}


class Made(Protocol):
    """An SLO, as far as it says of which requests it was made."""

    @property
    def name(self) -> str: ...

    @property
    def select(self) -> Mapping[str, str]: ...

    @property
    def mix(self) -> Mix | None: ...


@dataclass(frozen=True)
class Kept:
    """What the state database keeps of that."""

    name: str
    select: Mapping[str, str]
    mix: Mix | None


def kept_in(versions: Iterable[SloVersion]) -> list[Kept]:
    """Of the SLOs that were in force when a service last ran on the database."""
    found: dict[str, Kept] = {}
    for row in versions:
        said = json.loads(row.document)["slo"]
        if row.retired_ns is None and said["source"] is None:
            # A service of an earlier version wrote no mix.
            found[row.slo] = Kept(row.slo, said["select"], _mix_in(said.get("mix")))
    return list(found.values())


def _mix_in(said: dict[str, Any] | None) -> Mix | None:
    """As it was written down, classes of lengths in their order again."""
    if said is None:
        return None
    shares = {
        of: dict(sorted(by_class.items(), key=lambda one: int(one[0])))
        if of in LENGTHS
        else by_class
        for of, by_class in said["shares"].items()
    }
    return Mix(said["requests"], shares)


def mix_rows(store: Store, slos: Iterable[Made], now_ns: int) -> list[dict[str, Any]]:
    """A row per measure of each SLO that says what it was made of. Raises StoreError."""
    return [
        _row(slo, change)
        for slo in slos
        if slo.mix is not None
        for change in changes(slo.mix, _counts(store, slo, slo.mix, now_ns))
    ]


def moved(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """By SLO what moved of its mix, in words; without those whose mix did not."""
    found: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row["verdict"] == Verdict.MOVED:
            found[row["slo"]].append(told(row))
    return {slo: "; ".join(parts) for slo, parts in found.items()}


def told(row: Mapping[str, Any]) -> str:
    """What moved, in words: the class that gained and the one that lost the most."""
    by_gain = sorted(row["shares"], key=lambda one: one["now"] - one["then"])
    parts = [f"{_named(row['of'], one)} from {one['then']:.0%} to {one['now']:.0%}"
             for one in (by_gain[-1], by_gain[0])]  # fmt: skip
    return f"{row['of']} moved (index {row['psi']:.2f}): {', '.join(parts)} of the requests"


def _named(of: str, one: Mapping[str, Any]) -> str:
    return f"{one['class']} and more" if of in LENGTHS else f"{of} {one['class']}"


def _row(slo: Made, change: Change) -> dict[str, Any]:
    return {
        "slo": slo.name,
        "of": change.of,
        "verdict": str(change.verdict),
        "psi": change.psi,
        "limit": change.limit,
        "requests": change.requests,
        "shares": [{"class": name, "then": then, "now": now} for name, then, now in change.shares],
    }


def _counts(store: Store, slo: Made, mix: Mix, now_ns: int) -> dict[str, dict[str, int]]:
    """Requests of the last day by measure and class, weighted; those that don't tell left out."""
    conditions, values = equalities(slo.select)
    asked = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(_classes(mix)))
    found = store.query(
        f"SELECT {asked}, sum(greatest(round(coalesce(weight, 1)), 1))::BIGINT AS requests "
        f"FROM request_versions WHERE {' AND '.join(['version = 1', *conditions])} GROUP BY ALL",
        values,
        window=Window(now_ns - DAY_NS, now_ns),
    )
    counts: dict[str, dict[str, int]] = {of: defaultdict(int) for of in mix.shares}
    for row in found.to_pylist():
        for i, (of, shares) in enumerate(mix.shares.items()):
            place = row[f"c{i}"]
            if place is not None:
                counts[of][list(shares)[place] if of in LENGTHS else place] += row["requests"]
    return counts


def _classes(mix: Mix) -> Iterator[str]:
    """SQL of the class of a request in each measure: its place for lengths, else its name."""
    for of, shares in mix.shares.items():
        if of in LENGTHS:
            reached = " + ".join(f"({_TOKENS[of]} >= {int(low)})::INT" for low in list(shares)[1:])
            yield f"CASE WHEN {_TOKENS[of]} IS NOT NULL THEN {reached or 0} END"
        else:
            yield f"nullif(CAST({of} AS VARCHAR), '{UNKNOWN}')"
