"""Chains told to a service that is ready, whole and broken, and the judge's word on each."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bench.lab.ear.broken import Broken
from bench.lab.ear.chains import Chain
from bench.lab.ear.feeding import Fed, feed, strike, until
from bench.lab.ear.judge import Verdict, judge
from bench.lab.ear.knows import Row
from bench.lab.ear.scenes import SCENES, Scene

_HOURS_AFTER: Final = 3


@dataclass(frozen=True)
class Heard:
    """A chain as it was fed, and how it was broken, if it was."""

    fed: Fed
    broken: Broken | None


def scenes_for(chains: Iterable[Chain], requests: int, seed: int) -> Mapping[str, Scene]:
    """The scenes that these chains are told of."""
    wanted = {chain.scene for chain in chains}
    return {name: SCENES[name](requests, seed) for name in sorted(wanted)}


def listen(
    url: str,
    scenes: Mapping[str, Scene],
    told: Iterable[tuple[Chain, Broken | None]],
) -> list[Heard]:
    """Feed one after the other at full speed, and let all that is open close."""
    heard = []
    for number, (chain, broken) in enumerate(told):
        scene = scenes[chain.scene]
        faults = broken.faults(scene) if broken else ()
        heard.append(Heard(feed(url, chain, scene, number, faults), broken))
    for later in range(_HOURS_AFTER):
        strike(url, len(heard) + later)
    return heard


def lost(heard: Iterable[Heard], totals: Callable[[], Mapping[str, int]]) -> int:
    """Spans acknowledged that the balance lacks, once nothing is open any more.

    However slow the machine is: it is waited for as long as the balance still moves. Raises
    TimeoutError with the balance where it stands still.
    """
    least = sum(h.fed.telemetry.spans for h in heard)
    now = totals()
    while now["open"] or now["received"] < least:
        try:
            until(lambda before=now: totals() != before)  # type: ignore[misc]
        except TimeoutError as error:
            raise TimeoutError(f"{least} spans were sent, and it stands at {now}") from error
        now = totals()
    kept = ("stored", "folded", "duplicate", "sampled_out")
    return now["received"] - sum(now[name] for name in kept)


def verdicts(heard: Iterable[Heard], rows: Sequence[Row]) -> list[Verdict]:
    """The judge's word on each chain, by the rows of all."""
    return [
        judge(
            h.fed,
            rows,
            whole=h.broken is None or h.broken.whole,
            how=h.broken.name if h.broken else "",
        )
        for h in heard
    ]
