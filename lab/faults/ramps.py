"""Faults that grow evenly from nothing instead of being there at once."""

from dataclasses import replace
from itertools import chain, pairwise
from typing import Final, TypeVar

from tailburn.lab.faults.parts import Fault, Turn
from tailburn.lab.fleet import Fleet, arrays_of
from tailburn.lab.workload import Change
from tailburn.lab.workload.changes import KNOBS as CHANGES
from tailburn.lab.world.knobs import COLUMN, knob
from tailburn.lab.world.scopes import things

T = TypeVar("T", Turn, Change)
STEP_NS: Final = 60 * 10**9


def ramped(fault: Fault, fleet: Fleet, ramp_ns: int) -> Fault:
    """The fault grown in steps of a minute over its first `ramp_ns`; codes and flags at once.

    A train of bursts grows from burst to burst.
    """
    start = fault.truth.start_ns
    until = min(start + ramp_ns, fault.truth.end_ns)
    if until <= start:
        return fault
    arrays = arrays_of(fleet)

    def of_turn(turn: Turn) -> list[Turn]:
        one = knob(turn.knob)
        if one.unit in ("0/1", "code"):
            return [turn]
        found = things(one.level, turn.scope, arrays)
        first = float(arrays.knobs[one.level][found[0], COLUMN[one.name]])
        return _grown(turn, first, start, until)

    def of_change(change: Change) -> list[Change]:
        neutral = CHANGES[change.knob][0]
        return [change] if neutral < 0 else _grown(change, neutral, start, until)

    return replace(
        fault,
        settings=tuple(chain.from_iterable(map(of_turn, fault.settings))),
        changes=tuple(chain.from_iterable(map(of_change, fault.changes))),
    )


def _grown(whole: T, first: float, start_ns: int, until_ns: int) -> list[T]:
    """What is left of it in each step between the two instants, and all of it after them."""
    edges = [*range(start_ns, until_ns, STEP_NS), until_ns]
    grown = []
    for a, b in pairwise(edges):
        begin, end = max(a, whole.start_ns), min(b, whole.end_ns)
        if begin < end:
            share = ((a + b) / 2 - start_ns) / (until_ns - start_ns)
            value = first + share * (whole.value - first)
            grown.append(replace(whole, value=value, start_ns=begin, end_ns=end))
    if whole.end_ns > until_ns:
        grown.append(replace(whole, start_ns=max(whole.start_ns, until_ns)))
    return grown
